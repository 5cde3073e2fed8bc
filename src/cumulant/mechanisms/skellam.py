"""Skellam noise."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from typing import TYPE_CHECKING

from cumulant.curves.curve import Curve
from cumulant.curves.skellam import SkellamVector
from cumulant.domains import COUNT, POSITIVE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Neighbours, OptionalReal, Real, parameter
from cumulant.relation import RELATION, Relation

if TYPE_CHECKING:
    from cumulant.pairs.skellam import SkellamPair


@register
class Skellam(Mechanism):
    """Integers f(X) + independent Skellam noise of this variance.

    The noise is the difference of two Poisson counts of mean variance / 2.

    Sums of Skellam noise are Skellam noise, so that many parties can add a share each. With `dimension=1` the sensitivity is
    rounded down to an integer, and the pair is used up to a variance of about 3e6. For vectors it is the L2 sensitivity, whose
    square is rounded down. Their curve is that of Agarwal, Kairouz, Liu 2021, with the L1 sensitivity that integers allow: at
    most the square, and with a dimension d at most sqrt(d) times as much. Gaussian noise of variance v - 6/5 dominates, from
    v = 5 on. Unknown dimension is safe. See docs/mechanisms/skellam.md.

    >>> Skellam(variance=100, sensitivity=3, dimension=1).delta(epsilon=1)
    4.61491e-05
    """

    variance: Real = parameter(POSITIVE)
    sensitivity: Real = parameter(POSITIVE, default=1)
    dimension: OptionalReal = parameter(COUNT, default=None)
    relation: Neighbours = parameter(RELATION, default=Relation.ANY)

    def _line(self) -> bool:
        """Return True if only one coordinate of the integer vector can move."""
        return self.dimension == 1 or math.floor(self.sensitivity**2) <= 1

    def _sensitivities(self) -> tuple[int, int]:
        """Return the square of the L2 sensitivity and the L1 sensitivity, both integers."""
        if self._line():
            return math.floor(self.sensitivity) ** 2, math.floor(self.sensitivity)
        squared = math.floor(self.sensitivity**2)
        # |x| <= x^2 for integers
        return squared, squared if self.dimension is None else min(squared, math.isqrt(squared * int(self.dimension)))

    def key(self) -> Hashable:
        return Fraction(self.variance), self._sensitivities(), self._line(), self.relation

    scaled_to_norm = True

    def own_curve(self, bound: str) -> Curve:
        return self._curve(1)

    def _curve(self, size: int) -> Curve:
        """Return the curve for so many records."""
        squared, total = self._sensitivities()
        if self._line():
            return self._line_pair(total * size).curve()
        return SkellamVector(squared * size**2, total * size, Fraction(self.variance))

    def _line_pair(self, shift: int) -> SkellamPair:
        from cumulant.pairs.skellam import SkellamPair

        return SkellamPair(shift, Fraction(self.variance))

    def pair(self) -> Pair | None:
        return self.grouped_pair(1)

    def grouped_pair(self, size: int) -> Pair | None:
        from cumulant.pairs.near_gaussian import skellam_pair

        return skellam_pair(self._sensitivities()[0], Fraction(self.variance), self._line(), size)

    def grouped_curve(self, size: int) -> Curve | None:
        return self._curve(size)
