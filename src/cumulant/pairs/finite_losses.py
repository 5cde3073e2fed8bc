"""Symmetric pairs of finitely many losses, written once for every arithmetic.

Masses that are not rational need this; rational ones are in `finite`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.losses.atom_transform import point_transform
from cumulant.losses.atoms import AtomLoss
from cumulant.losses.grid import LARGEST_LOSS, SMALLEST_LOSS, Loss
from cumulant.losses.integrals import Nodes, atoms
from cumulant.losses.law import Law, point
from cumulant.losses.subsampled import BallTerm, Rate, Term, enclosed_loss, mixed_ball
from cumulant.losses.transform import Transform
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.pairs.pair import Pair

TERMS_AT_ONCE = 1 << 20
"""Terms that are in memory at once (8 MB an array)."""

MOST_POINTS = 1024
"""Losses of a pair up to which sums over thousands of moments are fast enough."""


class LossPair(Pair):
    """Losses x > 0 with Q-mass q and P-mass q e^x, their mirror images, and p = q elsewhere.

    A mirror image -x has these masses swapped. A subclass returns its losses and masses in any arithmetic; curve,
    profile, moments and the law of the loss follow.
    """

    __slots__ = ()

    symmetric = True

    @abstractmethod
    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        """Return the losses x > 0, increasing, and the logarithms of their P-masses."""

    @property
    @abstractmethod
    def equal(self) -> float:
        """The mass where p = q."""

    @property
    def leak(self) -> Fraction:
        """The mass of P where Q has none; the curve carries it as slack."""
        return Fraction(0)

    @property
    def unit_loss(self) -> float | None:
        """A number of which all losses are multiples; None if none is known."""
        return None

    @property
    def summable(self) -> bool:
        return len(self.losses(FLOATS)[0]) <= MOST_POINTS

    def curve(self) -> Curve:
        return LossCurve(self)

    def laws(self) -> tuple[Law, ...] | None:
        return None if self.leak else (LossLaw(self),)

    def loss(self) -> Loss | None:
        x, log_p = self.losses(FLOATS)
        if x.size and not (x.min() > SMALLEST_LOSS and x.max() <= LARGEST_LOSS):
            return None
        return AtomLoss(tuple(x.tolist()), tuple((log_p - x).tolist()), self.equal, float(self.leak), self.unit_loss)

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        same = type(self).loss is LossPair.loss and type(self).upper_step is Pair.upper_step
        return point_transform(self, rate, direction) if same else None

    def exact_points(self) -> list[tuple[Scalar, Scalar]]:
        """Return the losses x > 0 with their Q-masses, in balls."""
        return [(x, (log_p - x).exp()) for x, log_p in zip(*self.losses(BALLS), strict=True)]

    def exact_equal(self) -> Scalar:
        """Return the mass where p = q in balls: 1 less the losses' masses and the leak."""
        return 1 - sum((q * (1 + x.exp()) for x, q in self.exact_points()), start=BALLS.number(self.leak))

    def exact_leak(self) -> Fraction:
        return self.leak

    def exact_unit(self) -> Fraction | None:
        """Return a rational number of which all losses are multiples; None if none is known."""
        return None

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return log E_q |p/q - 1|^l = log SUM q (e^x - 1)^l (1 + e^{-(l-1) x}), q e^x = p."""
        return self._moments(orders, on, both=True)

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        return self._moments(orders, on, both=False)

    def _moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        x, log_p = self.losses(on)
        power = on.asarray(orders.astype(object if on.exact else np.float64))[:, None]
        if not len(x):
            return on.asarray(np.zeros(orders.shape)) + on.number(-np.inf)
        terms = log_p - x + power * on.log_expm1(x)
        return on.log_sum_exp(terms + on.log1p_exp((1 - power) * x) if both else terms)

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log(leak + SUM p (1 - e^{eps-x})_+)."""
        x, log_p = self.losses(FLOATS)
        with np.errstate(divide="ignore"):
            leak = np.log(FLOATS.number(self.leak))
            value = np.full(epsilons.shape, leak)
            rows = max(1, TERMS_AT_ONCE // (x.size + 1))
            for start in range(0, epsilons.size, rows):
                some = slice(start, start + rows)
                gap = np.log(-np.expm1(np.minimum(epsilons[some, None] - x, 0.0)))
                value[some] = np.logaddexp(leak, FLOATS.log_sum_exp(log_p + gap))
        return value

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        x, log_p = self.losses(on)
        mass = on.exp(log_p) if len(x) else x
        leak = on.number(self.leak)

        def delta(epsilon: Any) -> Any:
            eps = on.number(epsilon)
            return sum((m * (-(eps - each).expm1()).nonnegative_part() for each, m in zip(x, mass, strict=True)), leak)

        return np.asarray(np.frompyfunc(delta, 1, 1)(epsilons))


@dataclass(frozen=True, slots=True)
class LossCurve(Curve):
    """K = log(1 + SUM p (e^{lambda x} - 1)(1 - e^{-(lambda+1) x})), given that nothing leaks.

    No term is negative.
    """

    pair: LossPair

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        x, log_p = self.pair.losses(on)
        if not len(x):
            return on.asarray(lam) * 0
        if self.pair.leak:
            log_p = log_p - on.log1p(-on.number(self.pair.leak))
        if on.exact:
            return self._rows(x, log_p, lam, on)
        value = on.asarray(np.empty(len(lam)))
        rows = max(1, TERMS_AT_ONCE // len(x))
        for start in range(0, len(lam), rows):
            some = slice(start, start + rows)
            value[some] = self._rows(x, log_p, lam[some], on)
        return value

    def _rows(self, x: Array, log_p: Array, lam: Array, on: Arithmetic) -> Array:
        return on.log1p_sum_exp(log_terms(x, log_p, lam, on))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        x, log_p = self.pair.losses(on)
        if not len(x):
            return on.number(0)
        terms = on.exp(log_p + _log_complement(x, on)) * x  # SUM p (1 - e^-x) x
        total = sum((terms[i] for i in range(len(x))), start=on.number(0))
        return total / (1 - on.number(self.pair.leak)) if self.pair.leak else total

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        x, _ = self.pair.losses(on)
        return x[len(x) - 1] if len(x) else on.number(0)

    def slack(self) -> Fraction:
        return self.pair.leak


def log_terms(x: Array, log_p: Array, lam: Array, on: Arithmetic) -> Array:
    """Return the logarithms of the terms of e^K - 1, a row for each lambda."""
    each = on.asarray(lam)[:, None]
    return log_p + on.log_expm1(each * x) + _log_complement((each + 1) * x, on)


def _log_complement(x: Array, on: Arithmetic) -> Array:
    """Return log(1 - e^-x), x > 0, accurate near 0 and far out."""
    with np.errstate(all="ignore"):
        return np.where(x > 1, on.log1p(-on.exp(-x)), on.log_expm1(x) - x)


@dataclass(frozen=True, slots=True)
class LossLaw(Law):
    """The law of the loss of a `LossPair` under Q."""

    pair: LossPair

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        log_mass, x = self._atoms(FLOATS, whole)
        return atoms(np.append(0.0, log_mass), np.append(0.0, x), lam, rate)  # an atom at 0 contributes nothing

    def _atoms(self, on: Arithmetic, whole: bool) -> tuple[Array, Array]:
        x, log_p = self.pair.losses(on)
        if not whole:
            return log_p - x, x
        return np.concatenate([log_p - x, log_p]), np.concatenate([x, -x])

    def enclosed_atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure] | None:
        log_mass, x = self._atoms(BOUNDED, whole)
        return (log_mass, enclosed_loss(x, rate)) if len(x) else None

    def on_grid(self) -> Loss | None:
        return self.pair.loss()

    def enclosure(
        self, term: BallTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        g, total = BALLS.number(rate), BALLS.number(0)
        for log_mass, x in zip(*self._atoms(BALLS, whole), strict=True):
            w = mixed_ball(x, g)
            total += term(point(w, w.log(), log_mass.exp(), order))
        return total
