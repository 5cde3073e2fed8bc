"""Laplace noise."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from cumulant.curves.closed_form import Concentrated, Exposed, LaplaceShift
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, NONNEGATIVE, POSITIVE, Exact, Number
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Neighbours, OptionalReal, Real, parameter
from cumulant.relation import RELATION, Relation


@register
class Laplace(Mechanism):
    """f(X) + independent Laplace noise of this scale in each coordinate.

    f has this L1 sensitivity.

    The sensitivity is that of the relation the run is stated under. `averaged_over=n` says that the noise is added to a
    mean: to the query of this sensitivity divided by the public number n of records, for replace-one neighbours.
    `dimension=1` says that the query is a number, which on samples of fixed size needs less (docs/bounds/laplace-budget.md);
    from two coordinates on nothing more is known than of all dimensions together.

    >>> Laplace(scale=2).pure()
    0.5
    >>> Laplace(scale=2, dimension=1) == Laplace(scale=2), Laplace(scale=2, dimension=3) == Laplace(scale=2)
    (False, True)
    >>> Laplace(scale="0.01", sensitivity=2, averaged_over=1000).pure()
    0.2
    """

    scale: Real = parameter(NONNEGATIVE)
    sensitivity: Real = parameter(NONNEGATIVE, default=1)
    averaged_over: Real = parameter(COUNT, default=1, free=False)
    relation: Neighbours = parameter(RELATION, default=Relation.ANY)
    dimension: OptionalReal = parameter(COUNT, default=None)

    def _validate(self) -> None:
        object.__setattr__(self, "relation", self.relation.of_mean(int(self.averaged_over)))

    def _implied(self) -> Mapping[str, Any]:
        return {"relation": Relation.ANY.of_mean(int(self.averaged_over))}

    @classmethod
    def from_clipping(cls, norm: Number, noise: Number, relation: Relation | str, averaged_over: Number = 1) -> Laplace:
        """Return the noisy sum, or mean, of vectors clipped to an L1 norm.

        `noise` is the scale of what is added to it.

        Replacing one record moves the sum by up to 2 * norm, adding or removing one by up to norm (E-2).

        >>> Laplace.from_clipping(norm=1, noise="0.01", relation="replace-one", averaged_over=1000)
        Laplace(scale=0.01, sensitivity=2, averaged_over=1000)
        """
        stated = Relation.read(relation)
        moved = stated.clipped(POSITIVE.check("norm", norm))
        return cls(scale=noise, sensitivity=moved, averaged_over=averaged_over, relation=stated)

    def key(self) -> Hashable:
        return self._shift(), self.relation, self.data_size(), self.dimension == 1

    def data_size(self) -> Exact | None:
        return None if self.averaged_over == 1 else self.averaged_over

    def _shift(self) -> Fraction | None:
        """Return the shift; None if it is infinite: without noise nothing is private."""
        if self.data_independent:
            return Fraction(0)
        return self.sensitivity / (self.scale * self.averaged_over) if self.scale else None

    @property
    def data_independent(self) -> bool:
        return self.sensitivity == 0

    def own_curve(self, bound: str) -> Curve:
        shift = self._shift()
        return Exposed() if shift is None else LaplaceShift(shift) if shift else Concentrated(rho=shift)

    def pair(self) -> Pair | None:
        shift = self._shift()
        if shift is None:
            from cumulant.pairs.disjoint_laws import DisjointPair

            return DisjointPair()
        if not shift:
            return None
        from cumulant.pairs.laplace import LaplacePair

        return LaplacePair(shift, query="scalar" if self.dimension == 1 else "vector")
