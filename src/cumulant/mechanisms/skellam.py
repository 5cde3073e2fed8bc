"""Skellam noise."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

from cumulant.curves.curve import Curve
from cumulant.curves.skellam import SkellamVector
from cumulant.domains import COUNT, POSITIVE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Neighbours, OptionalReal, Real, parameter
from cumulant.relation import RELATION, Relation


@register
class Skellam(Mechanism):
    """Integers f(X) + independent Skellam noise of this variance.

    The noise is the difference of two Poisson counts of mean variance / 2.

    Sums of Skellam noise are Skellam noise, so that many parties can add a share each. With `dimension=1` the pair is used, and
    the sensitivity is rounded down to an integer. For vectors it is the L2 sensitivity, whose square is rounded down, and the
    mechanism is known by its curve (Agarwal, Kairouz, Liu 2021), with the L1 sensitivity that integers allow: at most the
    square, and with a dimension d at most sqrt(d) times as much. Unknown dimension is safe. See docs/mechanisms/skellam.md.

    >>> Skellam(variance=100, sensitivity=3, dimension=1).delta(epsilon=1)
    4.61491e-05
    """

    variance: Real = parameter(POSITIVE)
    sensitivity: Real = parameter(POSITIVE, default=1)
    dimension: OptionalReal = parameter(COUNT, default=None)
    relation: Neighbours = parameter(RELATION, default=Relation.ANY)

    def _line(self) -> bool:
        return self.dimension == 1

    def _sensitivities(self) -> tuple[int, int]:
        """Return the square of the L2 sensitivity and the L1 sensitivity, both integers."""
        if self._line():
            return math.floor(self.sensitivity) ** 2, math.floor(self.sensitivity)
        squared = math.floor(self.sensitivity**2)
        # |x| <= x^2 for integers
        return squared, squared if self.dimension is None else min(squared, math.isqrt(squared * int(self.dimension)))

    def key(self) -> Hashable:
        return Fraction(self.variance), self._sensitivities(), self._line(), self.relation

    def own_curve(self, bound: str) -> Curve:
        pair = self.pair()
        return SkellamVector(*self._sensitivities(), Fraction(self.variance)) if pair is None else pair.curve()

    def pair(self) -> Pair | None:
        if not self._line():
            return None
        from cumulant.pairs.skellam import SkellamPair

        return SkellamPair(self._sensitivities()[1], Fraction(self.variance))
