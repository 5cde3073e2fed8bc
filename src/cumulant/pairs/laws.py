"""The law of the privacy loss x = log(p/q) under Q, for each kind of pair: float nodes, and enclosures in balls."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.curves.memory import recall
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, LOG_TWO, Enclosure
from cumulant.numerics.rationals import enclosed_logs, log_quotients, quotients
from cumulant.pairs.integrals import (
    Nodes,
    Rate,
    atoms,
    gaussian_half_line,
    gaussian_line,
    gaussian_windows,
    laplace_nodes,
)
from cumulant.pairs.mixing import Point
from cumulant.pairs.panels import (
    FAR_ERROR,
    GaussianLine,
    LaplaceLine,
    Line,
    log_far_moment,
    loss,
    protection_is_lost,
)

Term = Callable[[Array], Array]
"""The kernel as a function of L, for a matrix of L with one column per order."""

ExactTerm = Callable[[Point], Any]
"""The kernel times the weight, on balls, real or complex."""

_REMEMBERED = 8


class Law(ABC):
    """The law of x under Q; `whole` means all x, otherwise x > 0."""

    __slots__ = ()

    @abstractmethod
    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        """Nodes for the term, which is at most w^a, or a g where x < 0, at each order a = lambda + 1."""

    @abstractmethod
    def enclosure(
        self, term: ExactTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        """A ball that contains E_Q[term], good to about this many bits; log_size is its logarithm, roughly."""

    def line(self) -> Line | None:
        """Where x has a density, if it does."""
        return None

    def log_top_mass(self, on: Arithmetic) -> Any:
        """log of the Q-mass of the largest x, or less."""
        return on.number(-np.inf)

    def far_cgf(self, rate: Fraction, lam: Array, on: Arithmetic) -> tuple[Array, Array] | None:
        """Where there is a closed form for log M to within its error, and that form."""
        return None

    def atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure] | None:
        """The logarithms of the Q-masses of the atoms, and L there, if there are any."""
        return None


@dataclass(frozen=True, slots=True)
class GaussianLaw(Law):
    """x ~ N(-s/2, s), s = shift^2."""

    shift: Fraction

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        shift = self._scale()
        windows = gaussian_windows(shift, rate, lam, term, -math.inf if whole else shift / 2)
        return (gaussian_line if whole else gaussian_half_line)(windows, shift, rate, lam)

    def line(self) -> GaussianLine:
        return GaussianLine(self.shift)

    def far_cgf(self, rate: Fraction, lam: Array, on: Arithmetic) -> tuple[Array, Array]:
        value = log_far_moment(self.shift, rate, on.asarray(lam), on)
        if on.exact:
            from flint import arb

            value = value + arb(0, FAR_ERROR)
        elif on.enclosing:
            value = Enclosure(value.mid, value.radius + FAR_ERROR)
        return protection_is_lost(self.shift, rate, lam.astype(np.float64)), value

    def _scale(self) -> float:
        # the moment grows with the shift, so one whose square is below the smallest float may be enlarged
        return max(float(FLOATS.number(self.shift)), 1e-150)

    def enclosure(
        self, term: ExactTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        """acb.integral in z up to where the tails are proved to be small.

        z > Z: w <= e^x, so the tail is at most E[e^{ax}; z > Z] = e^{a(a-1)s/2} erfc((Z - a shift)/sqrt 2)/2.
        z < -Y: the term is at most a g, so the tail is at most a g erfc(Y/sqrt 2)/2.
        """
        from flint import acb, arb

        a, shift = float(order), float(self.shift)
        need = bits * math.log(2) - log_size
        Z = a * shift + math.ceil(math.sqrt(2 * max(need + a * (a - 1) * shift * shift / 2, 1.0))) + 1
        Y = math.ceil(math.sqrt(2 * max(need + math.log1p(a * float(rate)), 1.0))) + 1
        t, g, a_ball = BALLS.number(self.shift), BALLS.number(rate), BALLS.number(order)
        height, root_two = a_ball * (a_ball - 1) * t * t / 2, arb(2).sqrt()

        def near(z: Any, analytic: bool) -> Any:
            w = 1 + g * ((t * z - t * t / 2).exp() - 1)
            L, weight = w.log(analytic=analytic), (-z * z / 2).exp()
            return term(Point(w, L, weight, (a_ball * L).exp() * weight))

        def far(z: Any, analytic: bool) -> Any:
            # a L - z^2/2 = a (L - x) - (z - a t)^2/2 + a(a-1)s/2: the large parts cancel before balls see them
            x = t * z - t * t / 2
            rest = (g + (1 - g) * (-x).exp()).log(analytic=analytic)
            power = (a_ball * rest - (z - a_ball * t) ** 2 / 2 + height).exp()
            return term(Point((rest + x).exp(), rest + x, (-z * z / 2).exp(), power))

        # split where humps can be, and where w stops being 1 - g and starts being g e^x
        turn = (math.log(float(1 - rate)) - math.log(float(rate))) / shift + shift / 2
        splits = {
            x for x in (0.0, turn, a * shift - 9, a * shift, a * shift + 9) if -Y < x < Z and (whole or x > shift / 2)
        }
        points = [arb(-Y) if whole else t / 2, *(arb(x) for x in sorted(splits)), arb(Z)]
        size = _ball_exp(log_size)
        tolerance = {"rel_tol": arb(2) ** -bits, "abs_tol": size * arb(2) ** -bits}
        total = arb(0)
        for start, end in itertools.pairwise(points):
            total += acb.integral(far if start.mid() >= turn - 1e-9 * abs(turn) else near, start, end, **tolerance).real
        total /= (2 * arb.pi()).sqrt()
        tail = height.exp() * ((Z - a_ball * t) / root_two).erfc() / 2
        if whole:
            tail += a_ball * g * (Y / root_two).erfc() / 2
        return total + tail * arb(0.5, 0.5)


@dataclass(frozen=True, slots=True)
class LaplaceLaw(Law):
    """Atoms 1/2 at -t and e^-t/2 at t, density e^{-(x+t)/2}/4 between, t = shift."""

    shift: Fraction

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        shift = max(float(FLOATS.number(self.shift)), 1e-150)
        return laplace_nodes(shift, rate, lam, term, -shift if whole else 0.0)

    def line(self) -> LaplaceLine:
        return LaplaceLine(self.shift)

    def log_top_mass(self, on: Arithmetic) -> Any:
        return -on.number(self.shift) - on.log(on.number(2))

    def atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure]:
        t = BOUNDED.asarray([self.shift, -self.shift] if whole else [self.shift])
        return (t + BOUNDED.number(self.shift)) / -2 - LOG_TWO, loss(t, rate)

    def enclosure(
        self, term: ExactTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        from flint import acb, arb

        t, g = BALLS.number(self.shift), BALLS.number(rate)

        def integrand(x: Any, analytic: bool) -> Any:
            w = 1 + g * (x.exp() - 1)
            return term(_point(w, w.log(analytic=analytic), (-(x + t) / 2).exp() / 4, order))

        def atom(x: Any) -> Any:
            w = 1 + g * x.expm1()
            return term(_point(w, w.log(), (-(x + t) / 2).exp() / 2, order))

        size = _ball_exp(log_size)
        tolerance = {"rel_tol": arb(2) ** -bits, "abs_tol": size * arb(2) ** -bits}
        total = acb.integral(integrand, arb(0), t, **tolerance).real + atom(t)
        if whole:
            total += acb.integral(integrand, -t, arb(0), **tolerance).real + atom(-t)
        return total


@dataclass(frozen=True, slots=True)
class ResponseLaw(Law):
    """Two answers: e0 with mass 1/(1+e^e0), -e0 with the rest; e0 is the pure epsilon of the curve."""

    curve: Curve

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        e0 = float(self.curve.pure())
        x = np.array([e0, -e0] if whole else [e0])
        return atoms(-np.logaddexp(0.0, x), x, lam, rate)

    def atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure]:
        e0 = self.curve.at_infinity(BOUNDED)
        x = BOUNDED.asarray([e0, -e0] if whole else [e0])
        return -BOUNDED.log1p_exp(x), loss(x, rate)

    def enclosure(
        self, term: ExactTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        g, e0 = BALLS.number(rate), self.curve.pure(BALLS)

        def atom(x: Any) -> Any:
            w = 1 + g * x.expm1()
            return term(_point(w, w.log(), 1 / (1 + x.exp()), order))

        return atom(e0) + atom(-e0) if whole else atom(e0)


@dataclass(frozen=True, slots=True)
class AtomLaw(Law):
    """Finitely many ratios p/q with their Q-masses; `unbounded` when P has mass where Q has none."""

    masses: tuple[Fraction, ...]
    ratios: tuple[Fraction, ...]
    unbounded: bool = False
    _known: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        log_mass, x = recall(self._known, whole, lambda: self._logs(whole), _REMEMBERED)
        # an atom at 0 contributes nothing, or everything if its weight is infinite
        return atoms(np.append(np.inf if self.unbounded else 0.0, log_mass), np.append(0.0, x), lam, rate)

    def _logs(self, whole: bool) -> tuple[Array, Array]:
        found = self._atoms(whole)
        return log_quotients(quotients(mass for mass, _ in found)), log_quotients(quotients(x for _, x in found))

    def atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure] | None:
        found = self._atoms(whole)
        if self.unbounded:
            return Enclosure(np.full(1, np.inf)), Enclosure(np.ones(1))
        if not found:
            return None
        return recall(self._known, (rate, whole), lambda: self._enclosed(found, rate), _REMEMBERED)

    def _enclosed(self, found: list[tuple[Fraction, Fraction]], rate: Fraction) -> tuple[Enclosure, Enclosure]:
        """log of the masses, and of w = 1 - g + g p/q."""
        g, one = rate.as_integer_ratio()
        w = [((one - g) * y + g * x, one * y) for x, y in quotients(ratio for _, ratio in found)]
        return enclosed_logs(quotients(mass for mass, _ in found)), enclosed_logs(w)

    def _atoms(self, whole: bool) -> list[tuple[Fraction, Fraction]]:
        pairs = zip(self.masses, self.ratios, strict=True)
        return [(mass, ratio) for mass, ratio in pairs if ratio > 1 or (whole and ratio < 1)]

    def enclosure(
        self, term: ExactTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        if self.unbounded:
            return BALLS.number(math.inf)
        total = BALLS.number(0)
        for mass, ratio in self._atoms(whole):
            w = BALLS.number(1 - rate + rate * ratio)
            total += term(_point(w, w.log(), BALLS.number(mass), order))
        return total


def _point(w: Any, L: Any, weight: Any, order: Fraction) -> Point:
    return Point(w, L, weight, (BALLS.number(order) * L).exp() * weight)


def _ball_exp(x: float) -> Any:
    from flint import arb

    return arb(x).exp()
