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
from cumulant.numerics.rounding import MANY
from cumulant.pairs.finite_losses import LossPair
from cumulant.pairs.pair import Together

_DOTS = 256
_MOST_ROUNDS = 400
_MOST_CELLS = 6_000
_ROUNDING = 64 * MANY


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
        return (
            _optimum(self.epsilon, times)
            if 1 < times <= _MOST_ROUNDS and Fraction(1, 100) <= self.epsilon <= 50
            else None
        )


@lru_cache(maxsize=32)
def _optimum(epsilon: Fraction, times: int) -> Together:
    """delta(x) = e^x W(e^-x), W = W_k: W_0(y) = (y - 1)_+, W_j(y) = sup_r q W_{j-1}(y r e^e) + (1-q) W_{j-1}(y r).

    r runs over [e^-e, 1] and q = (1-r) / (r (e^e - 1)): docs/mechanisms/exponential.md. On a grid of log y, of step e/n, with
    chords in y, the objective is A/r + B + C r on each cell of r: at most the larger end, and where A < 0, so that it is
    concave, that plus |A| (r1 - r0)^2 / (4 r0^3).
    """
    e = float(epsilon)
    n = max(4, min(128, _MOST_CELLS // times))
    step = e / n
    reach = (times + 1) * n
    log_y = step * np.arange(-reach, reach + 1)
    y = np.exp(log_y)
    excess = np.maximum(np.expm1(log_y), 0.0)
    value = excess
    r = np.exp(-step * np.arange(n + 1))
    q = np.clip(np.expm1(step * np.arange(n + 1)) / math.expm1(e), 0.0, 1.0)
    for _ in range(times):
        best = np.zeros_like(value)
        padded = np.concatenate([np.zeros(n), value, np.expm1(step * (reach + np.arange(1, n + 1)))])
        here = np.arange(value.size) + n
        ends_before = low_before = up_before = best
        for m in range(n + 1):
            up, low = padded[here + n - m], padded[here - m]
            ends = q[m] * up + (1 - q[m]) * low
            best = np.maximum(best, ends)
            if m:
                width = r[m] * math.expm1(step)
                # intercepts of the chords of W(y r e^e) and W(y r) in r
                above, below = up - (up_before - up) / width * r[m], low - (low_before - low) / width * r[m]
                bend = np.maximum(below - above, 0.0) / math.expm1(e)
                best = np.maximum(best, np.maximum(ends, ends_before) + bend * width**2 / (4 * r[m] ** 3))
            ends_before, low_before, up_before = ends, low, up
        value = np.minimum(best * (1 + _ROUNDING), np.maximum(y, 0.0))
        value = np.where(log_y >= times * e + step, excess, value)  # whatever follows, the ratio stays above 1
    return Together(log_y, value)
