"""Discrete Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Hashable

from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, POSITIVE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Neighbours, OptionalReal, Real, parameter
from cumulant.relation import RELATION, Relation


@register
class DiscreteGaussian(Mechanism):
    """Integers f(X) + independent noise on the integers, of mass ~ e^(-x^2 / 2 sigma^2).

    f has this L2 sensitivity.

    With `dimension=1` the pair of its two laws is used while sigma is at most about 1,700, and the sensitivity is rounded down
    to an integer; otherwise its square is. One unit of sensitivity moves one coordinate, which is dimension 1. Else Gaussian
    noise of variance sigma^2 - 1/8 dominates, from sigma = 1 on. Unknown dimension is safe.
    Proof: docs/mechanisms/discrete-gaussian.md.

    >>> DiscreteGaussian(sigma=2).rdp(2), DiscreteGaussian(sigma="1/2", dimension=1).rdp("1.5") < 3
    (0.25, True)
    """

    sigma: Real = parameter(POSITIVE)
    sensitivity: Real = parameter(POSITIVE, default=1)
    dimension: OptionalReal = parameter(COUNT, default=None)
    relation: Neighbours = parameter(RELATION, default=Relation.ANY)

    def _line(self) -> bool:
        """Return True if only one coordinate of the integer vector can move."""
        return self.dimension == 1 or math.floor(self.sensitivity**2) <= 1

    def _squared_shift(self) -> int:
        return math.floor(self.sensitivity) ** 2 if self.dimension == 1 else math.floor(self.sensitivity**2)

    def key(self) -> Hashable:
        return self.sigma, self._squared_shift(), self.dimension, self.relation

    scaled_to_norm = True

    def own_curve(self, bound: str) -> Curve:
        if not self._line():
            return Concentrated(self._squared_shift() / (2 * self.sigma**2))
        from cumulant.pairs.discrete_gaussian import DiscreteGaussianPair

        return DiscreteGaussianPair(math.isqrt(self._squared_shift()), self.sigma**2).curve()

    def pair(self) -> Pair | None:
        return self.grouped_pair(1)

    def grouped_pair(self, size: int) -> Pair | None:
        from cumulant.pairs.near_gaussian import discrete_gaussian_pair

        dimension = None if self.dimension is None else int(self.dimension)
        return discrete_gaussian_pair(self._squared_shift(), self.sigma**2, dimension, size)

    def grouped_curve(self, size: int) -> Curve | None:
        if self._line():
            return super().grouped_curve(size)
        return Concentrated(self._squared_shift() * size**2 / (2 * self.sigma**2))
