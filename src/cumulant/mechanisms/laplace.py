"""Laplace noise."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.curves.closed import LaplaceShift
from cumulant.curves.curve import Curve
from cumulant.domains import POSITIVE, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Laplace(Mechanism):
    """f(X) + independent Laplace noise of this scale in each coordinate, for a query of this L1 sensitivity.

    >>> Laplace(scale=2).pure
    0.5
    """

    scale: Number
    sensitivity: Number = 1

    domains: ClassVar[Mapping[str, Domain | Several]] = {"scale": POSITIVE, "sensitivity": POSITIVE}
    defaults: ClassVar[Mapping[str, Number]] = {"sensitivity": 1}

    def key(self) -> Hashable:
        return self._shift()

    def _shift(self) -> Fraction:
        return Exact(self.sensitivity) / Exact(self.scale)

    def own_curve(self, bound: str) -> Curve:
        return LaplaceShift(self._shift())

    def pair(self) -> Pair:
        from cumulant.pairs.laplace import LaplacePair

        return LaplacePair(self._shift())
