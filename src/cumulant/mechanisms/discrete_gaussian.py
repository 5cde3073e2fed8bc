"""Discrete Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, POSITIVE, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DiscreteGaussian(Mechanism):
    """Integers f(X) + independent noise on the integers, of mass ~ e^(-x^2 / 2 sigma^2).

    f has this L2 sensitivity.

    Which integer vector is the worst shift for delta is known in dimension 1 only. With `dimension=1` the pair is used, and
    the sensitivity is rounded down to an integer; otherwise the mechanism is known by its curve a S^2 / (2 sigma^2), and the
    square of the sensitivity is rounded down. Unknown dimension is safe. Proof: docs/mechanisms/discrete-gaussian.md.

    >>> DiscreteGaussian(sigma=2).rdp(2), DiscreteGaussian(sigma="1/2", dimension=1).rdp("1.5") < 3
    (0.25, True)
    """

    sigma: Number
    sensitivity: Number = 1
    dimension: Number | None = None
    relation: Relation = Relation.ANY

    domains: ClassVar[Mapping[str, Domain | Several]] = {"sigma": POSITIVE, "sensitivity": POSITIVE}
    defaults: ClassVar[Mapping[str, Number]] = {"sensitivity": 1}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        object.__setattr__(self, "relation", Relation.read(self.relation))
        if self.dimension is not None:
            object.__setattr__(self, "dimension", COUNT.check("dimension", self.dimension))

    def _line(self) -> bool:
        return self.dimension == 1

    def _squared_shift(self) -> int:
        sensitivity = Exact(self.sensitivity)
        return math.floor(sensitivity) ** 2 if self._line() else math.floor(sensitivity**2)

    def key(self) -> Hashable:
        return Fraction(Exact(self.sigma)), self._squared_shift(), self._line(), self.relation

    def arguments(self) -> Mapping[str, str]:
        dimension = {} if self.dimension is None else {"dimension": Exact(self.dimension).notation}
        stated = {} if self.relation is Relation.ANY else {"relation": f'"{self.relation}"'}
        return {**Mechanism.arguments(self), **dimension, **stated}

    def own_curve(self, bound: str) -> Curve:
        pair = self.pair()
        return Concentrated(self._squared_shift() / (2 * Exact(self.sigma) ** 2)) if pair is None else pair.curve()

    def pair(self) -> Pair | None:
        if not self._line():
            return None
        from cumulant.pairs.discrete_gaussian import DiscreteGaussianPair

        return DiscreteGaussianPair(math.isqrt(self._squared_shift()), Fraction(Exact(self.sigma) ** 2))
