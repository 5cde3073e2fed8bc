"""The pair of the exponential mechanism in one round, and what several adaptive rounds of it need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.bounded_range import BoundedRange
from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.numerics.enclosure import FAR, FLOOR, NEAR
from cumulant.numerics.rounding import U
from cumulant.pairs.finite_losses import LossPair
from cumulant.pairs.laplace_transform import LogisticBase
from cumulant.pairs.pair import Together
from cumulant.pairs.transform import SLIGHTEST, STRONGEST, Mixed, Transform

_DOTS = 256
_MOST_ROUNDS = 400
_MOST_CELLS = 6_000
_LARGEST = 600
"""Of (rounds + 2) epsilon, so that e to it is far from the largest float."""


@dataclass(frozen=True, slots=True)
class LogisticPair(LossPair):
    """Logistic noise shifted by epsilon: delta(x) = (e^{epsilon/2} - e^{x/2})^2 / (e^epsilon - 1) for 0 <= x <= epsilon.

    It dominates every mechanism of bounded range in one round, and no two data sets have it at every x. For samples and
    compositions the profile is replaced by its chords in e^x between 256 equal steps, which dominate it.

    >>> LogisticPair(Fraction(1)).profile([0, 0.5])
    array([0.24491866, 0.07740469])
    """

    epsilon: Fraction

    attained = False

    def curve(self) -> BoundedRange:
        """That of the class, which is smaller than that of the pair."""
        return BoundedRange(self.epsilon)

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        if not self.epsilon:
            return on.asarray(np.zeros(0)), on.asarray(np.zeros(0))
        e = on.number(self.epsilon)
        x = on.asarray([self.epsilon * Fraction(i, _DOTS) for i in range(1, _DOTS + 1)])
        # tanh(d/4) e^{x/2} / sinh(e/2) at the inner ones, tanh(d/4) / (1 - e^-e) at the last
        less = on.log(-on.expm1(-e))
        inner = on.log(on.number(2)) + (x - e) / 2 - less
        log_p = on.asarray([*(inner[i] for i in range(_DOTS - 1)), -less])
        return x, log_p + on.log(on.tanh(on.number(self.epsilon / (4 * _DOTS))))

    @property
    def equal(self) -> float:
        """tanh(d/4) / sinh(e/2)."""
        e = float(self.epsilon)
        return float(np.tanh(e / (4 * _DOTS)) / np.sinh(e / 2)) if 0 < e < 1400 else float(not e)

    @property
    def unit_loss(self) -> float | None:
        return float(self.epsilon) / _DOTS if 10**-90 < self.epsilon < 10**5 else None

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Of the profile itself, not of its chords."""
        return Mixed(LogisticBase(self.epsilon), rate, direction) if SLIGHTEST <= self.epsilon <= STRONGEST else None

    def _log_profile(self, epsilons: Array) -> Array:
        e = float(self.epsilon)
        with np.errstate(divide="ignore"):
            gap = 2 * np.log(-np.expm1(np.minimum(epsilons - e, 0.0) / 2))
            return np.asarray(gap - np.log(-np.expm1(-e))) if e else np.full(epsilons.shape, -np.inf)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        if not self.epsilon:
            return on.asarray(epsilons) * 0
        e = on.number(self.epsilon)

        def delta(x: Any) -> Any:
            return ((-((on.number(x) - e) / 2).expm1()).nonnegative_part()) ** 2 / -(-e).expm1()

        return np.asarray(np.frompyfunc(delta, 1, 1)(epsilons))

    def grouped(self, size: int) -> LogisticPair:
        return LogisticPair(self.epsilon * size)

    def together(self, times: int) -> Together | None:
        known = 1 < times <= _MOST_ROUNDS and Fraction(1, 100) <= self.epsilon <= 50
        return _optimum(self.epsilon, times) if known and (times + 2) * self.epsilon <= _LARGEST else None


@lru_cache(maxsize=32)
def _optimum(epsilon: Fraction, times: int) -> Together:
    """delta(x) = e^x W(e^-x), W = W_k: W_0(y) = (y - 1)_+, W_j(y) = sup_r q W_{j-1}(y r e^e) + (1-q) W_{j-1}(y r).

    r runs over [e^-e, 1] and q = (1-r) / (r (e^e - 1)): docs/mechanisms/exponential.md. On a grid of log y, of step e/n, with
    chords in y, the objective is A/r + B + C r on each cell of r: at most the larger end, and where A < 0, so that it is
    concave, that plus |A| (r1 - r0)^2 / (4 r0^3). What floats lose is added: see `rounding` on that page.
    """
    n = max(4, min(128, _MOST_CELLS // times))
    step, reach = epsilon / n, (times + 1) * n
    x = np.array([float(step * i) for i in range(reach + 1)])  # correctly rounded
    # a float x is wrong by u x, which is u x of e^x and at most u (1 + x) of e^x - 1
    excess = np.expm1(x) * (1 + (FAR + (2 + x) * U))
    e, s = float(epsilon), float(step)
    whole, one, near = math.expm1(e), math.expm1(s), x[: n + 1]
    q, rest = np.expm1(near) / whole, np.exp(near) * np.expm1(near[::-1]) / whole
    # q and 1 - q are three functions at most, and then there are sums and products with them
    part = 3 * FAR + NEAR + (3 * e + 12) * U
    # of the sum that is the bend, in the size of its terms
    lost = 2 * FAR + (2 * s + 12) * U
    value = np.concatenate([np.zeros(reach), excess])  # at log y = (i - reach) step
    for j in range(1, times + 1):
        # below the ratio stays at most 1 and W_j is 0; above it stays at least 1 and W_j is y - 1, or is never asked for
        first, last = reach - j * n + 1, reach + min(j, times - j) * n
        best = ends_before = low_before = up_before = np.zeros(last - first + 1)
        for m in range(n + 1):
            up, low = value[first + n - m : last + n - m + 1], value[first - m : last - m + 1]
            ends = q[m] * up + rest[m] * low
            best = np.maximum(best, ends)
            if m:
                # t^2 (A2 - A1), A1 and A2 the intercepts of the chords of W(y r e^e) and W(y r) in r, t = e^step - 1
                bend = one * one * (low - up) + one * ((up_before - up) - (low_before - low))
                size = one * one * (low + up) + one * (up_before + up + low_before + low)
                most = (np.maximum(bend, 0.0) + lost * size) * (math.exp(near[m]) / (4 * whole))
                best = np.maximum(best, np.maximum(ends, ends_before) + most)
            ends_before, low_before, up_before = ends, low, up
        value = value.copy()
        value[first : last + 1] = best * (1 + part) + FLOOR
    return Together(step, -reach, np.maximum.accumulate(value[: reach + 1]))
