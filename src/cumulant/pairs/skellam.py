"""The Skellam pair in one dimension: the difference of two Poisson counts, shifted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.curves.skellam import SkellamVector
from cumulant.losses.atoms import AtomLoss
from cumulant.losses.grid import LARGEST_LOSS, SMALLEST_LOSS, Loss, Step
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.bessel import log_ratio_bounds, log_scaled
from cumulant.numerics.differences import up_to
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.search import smallest_integer
from cumulant.pairs.finite_losses import log_terms
from cumulant.pairs.integer_noise_replacement import NoiseReplacementPair
from cumulant.pairs.pair import Pair

LOG_NO_FLOAT = 750.0
"""Nats of a mass that is less than every float; derived: the least one is e^-745."""


@dataclass(frozen=True, slots=True)
class SkellamSettings:
    """Tuning constants of the Skellam pair.

    Tails are bounded and added, so validity does not depend on them.
    """

    most_losses: int = 1 << 16
    """Outputs of a grid or a profile; chosen by hand, beyond it the pair offers neither."""

    most_terms: int = 4_000
    """Outputs up to which one round has a closed form; measured: a second in balls."""

    most_curve_outputs: int = 1 << 14
    """Outputs of a curve; beyond it the bound for vectors answers."""

    ball_bits: int = 128
    """Bits of the balls from which floats and enclosures are rounded; 75 more than a float has."""

    tail_digits: float = 60.0
    """Nats below the largest term at which the last term of a curve must lie."""

    slowest_decay: float = 1e-6
    """Least decay (nats) from output to output beyond the last one; the geometric series needs some."""

    terms_at_once: int = 1 << 20
    """Orders times outputs that are in memory at once (8 MB an array)."""


SETTINGS = SkellamSettings()
"""The settings in force; a test may replace them."""


@dataclass(frozen=True, slots=True)
class SkellamPair(Pair):
    """Noise of mass e^-v I_|x|(v) on the integers, around the shift m and around 0.

    The noise is log-concave and symmetric. Its losses lie on no lattice; it offers them on a grid, and no transform
    (docs/mechanisms/skellam.md).

    >>> SkellamPair(1, Fraction(10)).profile([0, 0.2])
    array([0.12783334, 0.05681172])
    """

    shift: int
    variance: Fraction

    symmetric = True
    chained = True

    def curve(self) -> SkellamCurve:
        return SkellamCurve(self.shift, self.variance)

    def group_pair(self, size: int) -> SkellamPair:
        return SkellamPair(self.shift * size, self.variance)

    def _last(self) -> int | None:
        """Return the output beyond which there is less mass than any float; None if out of reach."""
        found = _reach(self.variance)
        return found + self.shift if found + self.shift <= SETTINGS.most_losses else None

    @property
    def has_grid(self) -> bool:
        """True if its outputs are few enough for a grid."""
        return self._last() is not None

    def replacement(self, rate: Fraction) -> Pair | None:
        if not self.shift or rate == 1:
            return self.group_pair(2)
        return NoiseReplacementPair(self, rate) if self.log_masses(FLOATS) is not None else None

    def log_masses(self, on: Arithmetic) -> Array | None:
        count = _reach(self.variance) + 2 * self.shift + 1
        if count > SETTINGS.most_losses:
            return None
        bits = max(SETTINGS.ball_bits, on.precision())
        found = log_scaled(self.variance, count, bits)
        return np.array([float(each) for each in found]) if on is FLOATS else np.array(found, dtype=object)

    @property
    def has_closed_form(self) -> bool:
        last = self._last()
        return last is not None and last <= SETTINGS.most_terms

    def loss(self) -> Loss | None:
        return self._loss(leak=True)

    def lower_step(self, rate: Fraction, direction: str) -> Step | None:
        """Return the step without the mass that was cut off; None if no grid can hold it."""
        loss = self._loss(leak=False)
        return None if loss is None else loss.mixture(rate, direction)

    def _loss(self, leak: bool) -> Loss | None:
        if not self.shift:
            return AtomLoss((), (), 1.0)
        last = self._last()
        if last is None:
            return None
        x, log_p = _outputs(self.shift, self.variance, last, FLOATS, SETTINGS.ball_bits)
        if not (x[0] > SMALLEST_LOSS and x[-1] <= LARGEST_LOSS):
            return None
        half = self.shift // 2
        same = 0.0 if self.shift % 2 else math.exp(float(log_scaled(self.variance, half + 1, SETTINGS.ball_bits)[half]))
        return AtomLoss(tuple(x.tolist()), tuple((log_p - x).tolist()), same, 5e-324 if leak else 0.0)

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log of SUM p (1 - e^{eps-x})_+ and of the mass that was cut off."""
        if not self.shift:
            return np.full(epsilons.shape, -np.inf)
        last = self._last()
        if last is None:
            return np.zeros(epsilons.shape)
        x, log_p = _outputs(self.shift, self.variance, last, FLOATS, SETTINGS.ball_bits)
        value = np.empty(epsilons.shape)
        with np.errstate(divide="ignore"):
            for i, epsilon in enumerate(epsilons):
                gap = np.log(-np.expm1(np.minimum(epsilon - x, 0.0)))
                value[i] = np.logaddexp(math.log(5e-324), FLOATS.log_sum_exp(log_p + gap))
        return np.minimum(value, 0.0)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        return np.asarray(np.frompyfunc(lambda epsilon: self._delta(Fraction(epsilon), on), 1, 1)(epsilons))

    def _delta(self, epsilon: Fraction, on: Arithmetic) -> Any:
        """Return SUM p (1 - e^{eps-x})_+ over losses that floats see above eps, and the tail.

        The tail is at most e^-750.
        """
        last = self._last()
        if not self.shift or last is None:
            return on.number(0 if not self.shift else 1)
        bits = on.precision()
        floats = _outputs(self.shift, self.variance, last, FLOATS, SETTINGS.ball_bits)[0]
        first = int(np.searchsorted(floats, float(epsilon) * (1 - 1e-9) - 1e-300))
        x, log_p = _outputs(self.shift, self.variance, last, BALLS, bits)
        eps = on.number(epsilon)
        total = up_to(on.number(-Fraction(LOG_NO_FLOAT)).exp())
        for each, log_mass in zip(x[first:], log_p[first:], strict=True):
            total += log_mass.exp() * (-(eps - each).expm1()).nonnegative_part()
        return total


@dataclass(frozen=True, slots=True)
class SkellamCurve(Curve):
    """e^K - 1 = SUM p (e^{lambda x} - 1)(1 - e^{-a x}) over the outputs of loss x > 0.

    Far out the bound for vectors answers.
    """

    shift: int
    variance: Fraction

    enclosed = True

    def _vector(self) -> SkellamVector:
        return SkellamVector(self.shift**2, self.shift, self.variance)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if not self.shift:
            return on.asarray(lam) * 0
        value = on.asarray(np.zeros(len(lam)))
        ends = np.array([_outputs_needed(self.shift, self.variance, float(x)) for x in lam])
        for last in sorted(set(ends.tolist())):
            some = ends == last
            value[some] = self._near(lam[some], last, on) if last else self._vector().cgf(lam[some], on)
        return value

    def _near(self, lam: Array, last: int, on: Arithmetic) -> Array:
        bits = max(SETTINGS.ball_bits, on.precision())
        x, log_p = _outputs(self.shift, self.variance, last, on, bits)
        if on.exact:
            tails = [_log_tail(self.shift, self.variance, last, BALLS.number(each), on, bits) for each in lam]
            terms = on.log_sum_exp(log_terms(x, log_p, lam, on))
            return np.array(
                [(t.exp() + up_to(r.exp())).log1p() for t, r in zip(terms, tails, strict=True)], dtype=object
            )
        rows = max(1, SETTINGS.terms_at_once // len(x))
        value = on.asarray(np.empty(len(lam)))
        for start in range(0, len(lam), rows):
            some = slice(start, start + rows)
            sums = on.log_sum_exp(log_terms(x, log_p, lam[some], on))
            if on.enclosing:
                tail: Any = _log_tail(self.shift, self.variance, last, Enclosure(lam[some]), on, bits)
                part = np.exp(tail.upper() - sums.lower()) * (1 + 1e-6)
                sums = Enclosure(sums.mid, np.where(part < 0.5, sums.radius + part, np.nan))
            value[some] = on.log1p_exp(sums)
        return value

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """Return SUM p (1 - e^-x) x; beyond the last output p x <= p e^x."""
        if not self.shift:
            return on.number(0)
        last = _outputs_needed(self.shift, self.variance, 1.0)
        if not last:
            return self._vector().at_one(on)
        bits = max(SETTINGS.ball_bits, on.precision())
        with BALLS.at(bits):
            x, log_p = _outputs(self.shift, self.variance, last, BALLS, bits)
            total = up_to(_log_tail(self.shift, self.variance, last, BALLS.number(1), BALLS, bits).exp())
            for each, log_mass in zip(x, log_p, strict=True):
                total += log_mass.exp() * -(-each).expm1() * each
        return total if on.exact else BOUNDED.of_balls([total])[0] if on.enclosing else float(total)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf if self.shift else 0)


@lru_cache(maxsize=256)
def _reach(variance: Fraction) -> int:
    """Return n with P(X > n) <= e^-750, by Chernoff's bound.

    The bound is e^{-n asinh(n/v) + sqrt(n^2 + v^2) - v}.
    """
    v = max(float(variance), 1e-300) if variance < 10**12 else math.inf
    if v == math.inf:
        return SETTINGS.most_losses + 1

    def enough(n: int) -> bool:
        return n * math.asinh(n / v) - n * n / (math.hypot(n, v) + v) > LOG_NO_FLOAT + 1

    return smallest_integer(enough, 16)


def _outputs(shift: int, variance: Fraction, last: int, on: Arithmetic, bits: int) -> tuple[Array, Array]:
    """Return losses of the outputs shift/2 < x <= last, increasing, and log of their P-masses."""
    return _cached_outputs(shift, variance, last, on.exact, on.enclosing, bits)


@lru_cache(maxsize=32)
def _cached_outputs(
    shift: int, variance: Fraction, last: int, exact: bool, enclosing: bool, bits: int
) -> tuple[Array, Array]:
    """Return losses and log P-masses as `_outputs` does; arithmetics cannot be keys of a cache."""
    with BALLS.at(bits):
        mass = log_scaled(variance, last + 1, bits)
        log_p = [mass[abs(x - shift)] for x in range(shift // 2 + 1, last + 1)]
        losses = [mine - mass[x] for x, mine in enumerate(log_p, start=shift // 2 + 1)]
    if exact:
        return np.array(losses, dtype=object), np.array(log_p, dtype=object)
    if enclosing:
        found: Any = BOUNDED.of_balls(losses), BOUNDED.of_balls(log_p)
        return found  # type: ignore[no-any-return]
    return np.array([float(each) for each in losses]), np.array([float(each) for each in log_p])


def _log_growth(shift: int, variance: Fraction, last: int, lam: float) -> float:
    """Return log of a bound of T_{x+1} / T_x for all x >= last, T = p e^{lambda loss}.

    The ratio is r_n (r_n / r_{n+m})^lambda, n = x - m.
    """
    n, v = last - shift, float(variance)
    below, above = log_ratio_bounds(n + shift, v)[0], log_ratio_bounds(n, v)[1]
    # above - below falls with n: the derivative of asinh does
    return above + lam * (above - below)


def _log_tail(shift: int, variance: Fraction, last: int, lam: Any, on: Arithmetic, bits: int) -> Any:
    """Return log of a bound of SUM T beyond the last output: a geometric series from there."""
    x, log_p = _outputs(shift, variance, last, on, bits)
    orders = np.atleast_1d(lam.mid) if on.enclosing else [float(lam)]
    growth = [_log_growth(shift, variance, last, float(each)) for each in orders]
    series = [1e-6 - math.log(math.expm1(-each)) if each < 0 else math.inf for each in growth]
    return log_p[len(log_p) - 1] + lam * x[len(x) - 1] + (np.array(series) if on.enclosing else on.number(series[0]))


@lru_cache(maxsize=4096)
def _outputs_needed(shift: int, variance: Fraction, lam: float) -> int:
    """Return how many outputs suffice for K at this order; 0 if they are too many.

    It is a power of two, or the number of all outputs that have mass.
    """
    last = _reach(variance) + shift
    while last <= SETTINGS.most_curve_outputs or last == _reach(variance) + shift <= SETTINGS.most_losses:
        x, log_p = _outputs(shift, variance, last, FLOATS, SETTINGS.ball_bits)
        terms = log_p + lam * x + np.log(-np.expm1(-(lam + 1) * x)) + np.log(-np.expm1(-lam * x))
        if (
            terms[-1] < terms.max() - SETTINGS.tail_digits
            and _log_growth(shift, variance, last, lam) < -SETTINGS.slowest_decay
        ):
            return last
        last = 1 << last.bit_length()
    return 0
