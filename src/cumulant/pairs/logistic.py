"""The pair of the exponential mechanism in one round."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.bounded_range import BoundedRange
from cumulant.losses.laplace_transform import LogisticBase
from cumulant.losses.transform import SLIGHTEST, STRONGEST, Mixed, Transform
from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.pairs.finite_losses import LossPair

CHORDS = 256
"""Chords that replace the profile on samples and in compositions; they dominate it, so validity does not depend on it.
Trades losses on the grid against tightness."""


@dataclass(frozen=True, slots=True)
class LogisticPair(LossPair):
    """Logistic noise shifted by epsilon.

    delta(x) = (e^{epsilon/2} - e^{x/2})^2 / (e^epsilon - 1) for 0 <= x <= epsilon.

    It dominates every mechanism of bounded range in one round, and no two data sets have it at every x. For samples and
    compositions the profile is replaced by its chords in e^x between 256 equal steps, which dominate it.

    >>> LogisticPair(Fraction(1)).profile([0, 0.5])
    array([0.24491866, 0.07740469])
    """

    epsilon: Fraction

    attained = False
    chained = True

    def curve(self) -> BoundedRange:
        """Return the curve of bounded range, which is smaller than that of the pair."""
        return BoundedRange(self.epsilon)

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        if not self.epsilon:
            return on.asarray(np.zeros(0)), on.asarray(np.zeros(0))
        e = on.number(self.epsilon)
        x = on.asarray([self.epsilon * Fraction(i, CHORDS) for i in range(1, CHORDS + 1)])
        # tanh(d/4) e^{x/2} / sinh(e/2) at the inner ones, tanh(d/4) / (1 - e^-e) at the last
        less = on.log(-on.expm1(-e))
        inner = on.log(on.number(2)) + (x - e) / 2 - less
        log_p = on.asarray([*(inner[i] for i in range(CHORDS - 1)), -less])
        return x, log_p + on.log(on.tanh(on.number(self.epsilon / (4 * CHORDS))))

    @property
    def equal(self) -> float:
        """The mass tanh(d/4) / sinh(e/2) where p = q."""
        e = float(self.epsilon)
        return float(np.tanh(e / (4 * CHORDS)) / np.sinh(e / 2)) if 0 < e < 1400 else float(not e)

    @property
    def unit_loss(self) -> float | None:
        return float(self.epsilon) / CHORDS if 10**-90 < self.epsilon < 10**5 else None

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Return the transform of the profile itself, not of its chords; None if out of range."""
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

    def group_pair(self, size: int) -> LogisticPair:
        return LogisticPair(self.epsilon * size)

    def bounded_range(self) -> Fraction:
        return self.epsilon
