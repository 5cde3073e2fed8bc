"""The value of an adversary who chooses anew in every round, read as delta and as epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.enclosure import FAR, NEAR
from cumulant.numerics.rounding import U, rounded_down

_NARROW, _LARGEST_EXPONENT = 1e-9, 700.0


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A profile through W(y) = sup E_Q (y p/q - 1)_+, convex in y, by increasing values that are not below it.

    They stand at log y = step * (first + i), the last at 0. delta(x) = e^x W(e^-x); between two points W lies below the chord.
    """

    step: Fraction
    first: int
    values: Array

    def delta(self, epsilon: float) -> float:
        """An upper bound of delta, 1 where nothing is said."""
        place, above = divmod(-Fraction(epsilon), self.step)
        i = int(place) - self.first
        if i < 0 or not 0 <= epsilon <= _LARGEST_EXPONENT:
            return 1.0
        low, high = (float(self.values[min(j, self.values.size - 1)]) for j in (i, i + 1))
        # a float is wrong by u of itself, which is at most u (1 + x) of e^x - 1; then two functions and their quotient
        share = math.expm1(float(above)) / math.expm1(float(self.step)) * (1 + 2 * FAR + (2 * float(self.step) + 4) * U)
        found = (low + min(share, 1.0) * (high - low)) * math.exp(epsilon)
        return min(found * (1 + NEAR + 6 * U) + 5e-324, 1.0)

    def epsilon(self, delta: float) -> float:
        """The least epsilon that is found to be enough, +inf where none is."""
        low, high = 0.0, min(rounded_down(-self.first * self.step), _LARGEST_EXPONENT)
        if self.delta(high) > delta:
            return math.inf
        while high - low > _NARROW * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def needed_epsilon(self, delta: float) -> float:
        """The largest epsilon of the grid at which values that are not above W show more than this delta; 0 where none does."""
        enough = np.flatnonzero(self._needed() > delta)
        return rounded_down(-(self.first + int(enough[0])) * self.step) if enough.size else 0.0

    def needed_delta(self, epsilon: float) -> float:
        """What such values show at this epsilon: at the next one of the grid, because delta falls."""
        i = math.floor(-Fraction(epsilon) / self.step) - self.first
        return float(self._needed()[i]) if 0 <= i < self.values.size else 0.0

    def _needed(self) -> Array:
        """delta at the grid points, from below: W grows, so an epsilon that is a little larger shows less."""
        x = float(self.step) * -(self.first + np.arange(self.values.size))
        return np.maximum(self.values * np.exp(x) * (1 - NEAR - (8 + 2 * np.abs(x)) * U) - 5e-324, 0.0)
