"""Discrete Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.curves.curve import Curve
from cumulant.domains import POSITIVE, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.pairs.discrete_laplace import DiscreteLaplacePair


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DiscreteLaplace(Mechanism):
    """Integers f(X) + independent noise on the integers, of mass ~ e^(-|x| / scale).

    f has this L1 sensitivity.

    Also called geometric noise. The answer is a vector of integers, so its sensitivity is one: what is given is rounded down,
    and below 1 nothing is released. Proof: docs/mechanisms/discrete-laplace.md.

    >>> DiscreteLaplace(scale=2).pure(), DiscreteLaplace(scale=2, sensitivity="1.9") == DiscreteLaplace(scale=2)
    (0.5, True)
    """

    scale: Number
    sensitivity: Number = 1
    relation: Relation = Relation.ANY

    domains: ClassVar[Mapping[str, Domain | Several]] = {"scale": POSITIVE, "sensitivity": POSITIVE}
    defaults: ClassVar[Mapping[str, Number]] = {"sensitivity": 1}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        object.__setattr__(self, "relation", Relation.read(self.relation))

    def key(self) -> Hashable:
        return Fraction(Exact(self.scale)), math.floor(Exact(self.sensitivity)), self.relation

    def arguments(self) -> Mapping[str, str]:
        stated = {} if self.relation is Relation.ANY else {"relation": f'"{self.relation}"'}
        return {**Mechanism.arguments(self), **stated}

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> DiscreteLaplacePair:
        from cumulant.pairs.discrete_laplace import DiscreteLaplacePair

        return DiscreteLaplacePair.of(1 / Exact(self.scale), math.floor(Exact(self.sensitivity)))
