"""Theorem V: Laplace noise on one query has a budget of chi-square on fixed-size samples.

The noise is independent in each coordinate, the query has bounded L1 sensitivity.

E_R (P/R - Q/R)^2 <= V*(t) for all triples of values at pairwise L1 distance t = sensitivity / scale, in any dimension; the
proof, and why two dimensions suffice, is in docs/bounds/laplace-budget.md. One query per sample only.
Letters: g = rate, x = log(p0/q0), w = 1 - g + g e^x, a = lambda + 1.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.cache import recall
from cumulant.curves.curve import Curve
from cumulant.losses.sampled_curve import SampledPair
from cumulant.losses.subsampled import PROFILE, Rate, unsampled_loss
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.quadrature import ball_integral, legendre
from cumulant.numerics.rounding import MANY, lowered, raised
from cumulant.pairs.laplace import LaplaceLaw, LaplacePair

TOLERANCES = (3e-4, 3e-3, 2e-2)
"""Relative tolerances of V*, the largest value over boxes; small shifts take the coarser ones, because many triples
are nearly as bad."""

SMALLEST_SHIFT = Fraction(1, 10**6)
"""Least shift for which the budget is offered; chosen by hand."""

LARGEST_SHIFT = Fraction(30)
"""Largest shift for which the budget is offered; chosen by hand."""


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Tuning constants of the budget.

    Where it is not offered the profile answers, so validity does not depend on them.
    """

    small_shift: float = 0.4
    """Shift below which the coarser tolerances are taken, because many triples are nearly as bad."""

    most_boxes: int = 60_000
    """Boxes of the bisection; beyond it the next tolerance is tried."""

    cache_size: int = 8
    """Values that a curve remembers."""

    ball_bits: int = 128
    """Bits of the balls from which the budget is rounded."""

    smallest_rate: Fraction = Fraction(1, 10**9)
    """Rates, and 1 - rates, below which the budget is not used."""


SETTINGS = BudgetSettings()
"""The settings in force; a test may replace them."""

_LARGEST_POWER = 60.0
"""Largest logarithm of A^a; beyond it only the largest ratios count, and the budget leaves them as they are."""


# ---- V*


@lru_cache(maxsize=256)
def largest_square(shift: Fraction, query: str) -> float | None:
    """A number not below V*(t), the largest E_R (X - Y)^2; None where none is offered.

    >>> largest_square(Fraction(2), "scalar")
    3.9321426122637724
    >>> 4.66879 < largest_square(Fraction(2), "vector") < 4.66879 * 1.0004
    True
    """
    if not (query and SMALLEST_SHIFT <= shift <= LARGEST_SHIFT):
        return None
    t = float(shift) * (1 + MANY)
    # one dimension: J(t) - 1
    if query == "scalar":
        return float(raised(_square_less_one(np.array([t]))[0], MANY))
    tried = (_largest_over_boxes(t, tolerance) for tolerance in TOLERANCES[t < SETTINGS.small_shift :])
    return next((found for found in tried if found is not None), None)


def _square_less_one(x: Array) -> Array:
    """J(x) - 1, J = (2/3) e^x + (1/3) e^-2x = E X^2 at distance x: nothing cancels."""
    return np.asarray((2 / 3) * FLOATS.excess(x) + (1 / 3) * FLOATS.excess(-2 * x))


def _bound(c: Array, far: Array, x: Array, y: Array, less: tuple[Array, Array]) -> Array:
    """Return a bound of J(c+d)J(x) + J(c)J(y) - 2 m(c,d) rho(x,y) over a box.

    In the box c, c+d, x, y are at most these numbers, and c, d not below `less`.

    J, m and 1 - rho grow in all their arguments. With J = 1 + j, m = 1 + mu and rho = 1 - r it is
    j(c+d) + j(x) + j(c+d) j(x) + j(c) + j(y) + j(c) j(y) + 2r - 2 mu (1 - r), and mu = j(c) + (1 - e^-d)(e^c - e^-2c)/3.
    """
    beyond, near, one, other = (_square_less_one(each) for each in (far, c, x, y))
    both = np.expm1(-x) * np.expm1(-y)
    least_c, least_d = less
    mixed = _square_less_one(least_c) + np.expm1(-least_d) * np.exp(least_c) * np.expm1(-3 * least_c) / 3
    most = beyond + one + beyond * one + near + other + near * other + 2 * both
    return np.asarray(raised(most, MANY) - lowered(2 * mixed * np.maximum(1 - raised(both, MANY), 0.0), MANY))


def _largest_over_boxes(t: float, tolerance: float) -> float | None:
    """Return the maximum of the function of `_bound`, by bisection of boxes.

    It is over c, d, x >= 0 with c+d+x <= t, y = t - max(c, d+x).

    A box is dropped when its bound is at most the largest value that is known, raised by the tolerance: that is then a bound of
    all. Directed rounding: sums of positive terms, raised and lowered by far more than they lose.
    """
    half = t / 2
    c, d, x, y = np.array([[half, 0.0, half, half], [half, half, 0.0, half], [0.0, t, 0.0, 0.0]]).T
    limit = float(np.max(_bound(c, c + d, x, y, (c, d)))) * (1 + tolerance)
    low, width, seen = np.zeros((3, 1)), np.full((3, 1), t), 0
    while low.size:
        seen += low.shape[1]
        if seen > SETTINGS.most_boxes:
            return None
        c, d, x = low
        # what the others leave of t at most; in a box that does not meet the simplex nothing
        left = [raised(np.maximum(t - others, 0.0), MANY) for others in (d + x, c + d, x, np.maximum(c, d + x))]
        top_c, top_d, top_x = raised(low + width, MANY)
        top_c, top_x = np.minimum(top_c, left[0]), np.minimum(top_x, left[1])
        far = np.minimum(raised(top_c + top_d, MANY), left[2])
        kept = (c + d + x <= raised(t, MANY)) & ~(_bound(top_c, far, top_x, left[3], (c, d)) <= limit)
        low, width = low[:, kept], width[:, kept]
        longest, here = np.argmax(width, axis=0), np.arange(width.shape[1])
        width[longest, here] /= 2
        above = low.copy()
        above[longest, here] += width[longest, here]
        low, width = np.concatenate([low, above], axis=1), np.concatenate([width, width], axis=1)
    return limit


# ---- the curve


def laplace_budget(pair: LaplacePair, rate: Fraction) -> Budget:
    """Return the profile's curve less what exceeds the budget, at orders from 2 on.

    The budget of INT H is beta = g^2 V* / (2(1-g)).

    The time value H is at most that of the profile and INT H ds <= beta, so the supremum of E t^a - 1 = a(a-1) INT s^{a-2} H ds
    fills H from the top down to some s1 = 1/w1 < 1, or s1 >= 1; every s1 is valid. Below order 2 it is the divergence at 2.

    >>> laplace_budget(LaplacePair(Fraction(2), query="vector"), Fraction(1, 1000)).rdp([2, 64])
    array([4.67485545e-06, 1.62271988e-04])
    """
    return Budget(LaplaceLaw(pair.shift).sampled(pair.curve(), rate, PROFILE), rate, pair.query)


@dataclass(frozen=True, slots=True)
class Budget(Curve):
    """The curve of the profile, lowered where the moment exceeds the budget beta.

    K = log1p( M_profile - 1 - a(a-1) [ T(a) + s1^{a-2} (M_profile(2)/2 - 1/2 - T(2) - beta) ] ).

    T(a) = INT_{s < s1} s^{a-2} H ds, for s1 = 1/w(x1) g^2 INT_{x1}^t w^{-a-1} (1 - e^{(x-t)/2}) e^x dx; what lies between 1 and
    s1 > 1 adds the same with w^{a-2}.
    """

    profile: SampledPair
    rate: Fraction
    query: str
    _cache: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    enclosed = True

    @property
    def shift(self) -> Fraction:
        return self.profile.law.scale

    def budget(self, on: Arithmetic) -> Any:
        """beta, from above; +inf where V* is not offered."""
        found = largest_square(self.shift, self.query)
        if found is None:
            return on.number(math.inf)
        return on.number(self.rate) ** 2 * on.number(Fraction(found)) / (2 * on.number(1 - self.rate))

    def start(self) -> float | None:
        """Return x1 with INT_{s > s1} H = beta; None if the budget is not used up.

        s1 = 1/w(x1), or w(-x1) if x1 < 0.
        """
        return recall(self._cache, "start", self._start, SETTINGS.cache_size)

    def _start(self) -> float | None:
        if not SETTINGS.smallest_rate <= self.rate <= 1 - SETTINGS.smallest_rate:
            return None
        total = float(np.exp(self.profile.log_excess(np.array([1.0])))[0]) / 2
        excess = total - float(self.budget(FLOATS))
        if not 0 < excess < math.inf:
            return None
        low, high = -float(self.shift), float(self.shift)
        for _ in range(80):
            middle = (low + high) / 2
            more = float(self._log_tail(np.array([2.0]), middle)[0]) > math.log(excess)
            low, high = (middle, high) if more else (low, middle)
        return low

    def _log_tail(self, orders: Array, start: float) -> Array:
        """Return log T(a) in floats; less far down, where nothing is left of a power.

        The part that is left out is not subtracted, so the bound stays valid.
        """
        t, rate = float(self.shift), Rate.of(self.rate)
        near, last = (float(rate.loss(np.array([x]))[0]) for x in (abs(start), t))
        points, shares = legendre(40)

        def log_part(low: Array, high: Array, power: Array, top: Any) -> Array:
            # in L = log w, g e^x dx = w dL: g INT (1 - e^{(x-t)/2}) e^{power L} dL
            L = low[:, None] + (high - low)[:, None] * points
            gap = -np.expm1((np.minimum(unsampled_loss(L, rate.g, rate.kept), t) - t) / 2)
            value = rate.g * (high - low) * ((np.exp(power[:, None] * (L - top)) * gap) @ shares)
            return np.asarray(np.log(value) + power * top)

        first = near if start >= 0 else 0.0
        found = log_part(np.full(orders.shape, first), np.minimum(last, first + 40 / (orders + 1)), -orders, first)
        if start >= 0:
            return found
        low = np.maximum(0.0, near - 40 / orders)
        return np.asarray(np.logaddexp(found, log_part(low, np.full(orders.shape, near), orders - 1, near)))

    def _tail_ball(self, order: Fraction, start: float) -> Scalar:
        from flint import arb

        t, g, a = BALLS.number(self.shift), BALLS.number(self.rate), BALLS.number(order)

        def part(power: Any, low: Any, high: Any, log_size: float) -> Any:
            def integrand(x: Any, analytic: bool) -> Any:
                w = 1 + g * (x.exp() - 1)
                return (power * w.log(analytic=analytic) + x).exp() * (1 - ((x - t) / 2).exp())

            return g * g * ball_integral(integrand, low, high, 60, arb(log_size).exp() * arb(2) ** -60)

        size = float(self._log_tail(np.array([float(order)]), start)[0])
        size = (size if math.isfinite(size) else -1000.0) - 2 * math.log(float(self.rate))
        if start >= 0:
            return part(-a - 1, arb(start), t, size)
        return part(-a - 1, arb(0), t, size) + part(a - 2, arb(0), arb(-start), size)

    def _spare(self, start: float) -> Scalar:
        """Return by how much INT_{s > s1} H of the profile exceeds the budget, about 0."""
        return self.profile.excess_ball(Fraction(1)) / 2 - self._tail_ball(Fraction(2), start) - self.budget(BALLS)

    def _log_edge(self, start: float) -> float:
        """log s1 in floats."""
        return -math.copysign(float(Rate.of(self.rate).loss(np.array([abs(start)]))[0]), start)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        start = self.start()
        far = np.array([float(each) * float(self.pure()) > _LARGEST_POWER for each in lam])
        if start is None or far.all():
            return self.profile._cgf(lam, on)
        if far.any():
            found = on.asarray(np.zeros(lam.shape))
            found[far], found[~far] = self.profile._cgf(lam[far], on), self._cgf(lam[~far], on)
            return found
        if on.exact:
            return np.array([self._ball(Fraction(each), start) for each in lam], dtype=object)
        if on.enclosing:
            with BALLS.at(SETTINGS.ball_bits):
                return BOUNDED.of_balls([self._ball(Fraction(float(each)), start) for each in lam])
        order = np.maximum(lam, 1.0) + 1
        with np.errstate(all="ignore"):
            log_excess = self.profile.log_excess(order - 1)
            total = np.exp(self.profile.log_excess(np.array([1.0])))[0] / 2
            spare = total - np.exp(self._log_tail(np.array([2.0]), start))[0] - float(self.budget(FLOATS))
            shares = order * (order - 1) * np.exp(self._log_tail(order, start) - log_excess)
            shares += order * (order - 1) * spare * np.exp((order - 2) * self._log_edge(start) - log_excess)
            value = np.logaddexp(0.0, log_excess + np.log1p(-shares))
        value = np.where(np.isnan(value), np.inf, value)
        return np.where(lam >= 1, value, lam * value)

    def _ball(self, lam: Fraction, start: float) -> Scalar:
        order = max(lam, Fraction(1)) + 1
        with BALLS.at(BALLS.precision() + 64):
            most = self.profile.excess_ball(order - 1)
            edge = (BALLS.number(self.rate) * BALLS.number(Fraction(abs(start))).expm1()).log1p()
            edge = edge if start < 0 else -edge
            spare = recall(self._cache, ("spare", BALLS.precision()), lambda: self._spare(start), SETTINGS.cache_size)
            less = self._tail_ball(order, start) + ((BALLS.number(order) - 2) * edge).exp() * spare
            value = (most - BALLS.number(order * (order - 1)) * less).log1p()
        return value if lam >= 1 else BALLS.number(lam) * value

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """At most the divergence at order 2."""
        if self.start() is None:
            return self.profile.kl(on)
        one = np.array([Fraction(1)], dtype=object) if on.exact else np.ones(1)
        return self.cgf(one, on)[0]

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.profile.pure(on)
