"""Discrete Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING

from cumulant.curves.curve import Curve
from cumulant.domains import POSITIVE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.parameters import Neighbours, Real, parameter
from cumulant.relation import RELATION, Relation

if TYPE_CHECKING:
    from cumulant.pairs.discrete_laplace import DiscreteLaplacePair


@register
class DiscreteLaplace(Mechanism):
    """Integers f(X) + independent noise on the integers, of mass ~ e^(-|x| / scale).

    f has this L1 sensitivity.

    Also called geometric noise. The answer is a vector of integers, so its sensitivity is one: what is given is rounded down,
    and below 1 nothing is released. Proof: docs/mechanisms/discrete-laplace.md.

    >>> DiscreteLaplace(scale=2).pure(), DiscreteLaplace(scale=2, sensitivity="1.9") == DiscreteLaplace(scale=2)
    (0.5, True)
    """

    scale: Real = parameter(POSITIVE)
    sensitivity: Real = parameter(POSITIVE, default=1)
    relation: Neighbours = parameter(RELATION, default=Relation.ANY)

    def key(self) -> Hashable:
        return self.scale, math.floor(self.sensitivity), self.relation

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> DiscreteLaplacePair:
        from cumulant.pairs.discrete_laplace import DiscreteLaplacePair

        return DiscreteLaplacePair.of(1 / self.scale, math.floor(self.sensitivity))
