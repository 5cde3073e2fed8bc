"""Gaussian noise."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.curves.closed import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import POSITIVE, Domain, Exact, Number, Several
from cumulant.errors import InputError
from cumulant.mechanisms.base import Mechanism, register
from cumulant.mechanisms.relation import Relation


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gaussian(Mechanism):
    """f(X) + N(0, sigma^2 I) for a query f, scalar or vector, of this L2 sensitivity: rdp(a) = a S^2 / (2 sigma^2).

    sigma is the standard deviation of the noise, in the units of the sensitivity. The sensitivity is that of the relation
    the run is stated under: replace-one for sampling without replacement. For sums of clipped vectors use `from_clipping`.

    >>> Gaussian(sigma=10, sensitivity=2) == Gaussian(sigma=5)
    True
    >>> Gaussian(sigma=5).rdp(2)
    0.04
    """

    sigma: Number
    sensitivity: Number = 1
    relation: Relation = Relation.ANY

    domains: ClassVar[Mapping[str, Domain | Several]] = {"sigma": POSITIVE, "sensitivity": POSITIVE}
    defaults: ClassVar[Mapping[str, Number]] = {"sensitivity": 1}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        object.__setattr__(self, "relation", Relation.read(self.relation))

    @classmethod
    def from_clipping(cls, norm: Number, noise: Number, relation: Relation | str) -> Gaussian:
        """The noisy sum of vectors clipped to an L2 norm, `noise` being the standard deviation added to the sum.

        Replacing one record moves the sum by up to 2 * norm, adding or removing one by up to norm (E-2).

        >>> Gaussian.from_clipping(norm=1, noise=2, relation="replace-one").sensitivity
        Exact('2')
        """
        clip = POSITIVE.check("norm", norm)
        match Relation.read(relation):
            case Relation.REPLACE_ONE:
                # A replace-one sensitivity also bounds add/remove, so nothing needs to be remembered.
                return cls(sigma=noise, sensitivity=Exact(2 * clip))
            case Relation.ADD_REMOVE:
                return cls(sigma=noise, sensitivity=clip, relation=Relation.ADD_REMOVE)
        raise InputError(
            "relation='any' does not fix the sensitivity of a clipped sum; choose 'replace-one' or 'add-remove'"
        )

    def key(self) -> Hashable:
        return self._shift(), self.relation

    def _shift(self) -> Fraction:
        return Exact(self.sensitivity) / Exact(self.sigma)

    def own_curve(self, bound: str) -> Curve:
        return Concentrated(rho=self._shift() ** 2 / 2)

    def arguments(self) -> Mapping[str, str]:
        relation = {} if self.relation is Relation.ANY else {"relation": f'"{self.relation}"'}
        return {**Mechanism.arguments(self), **relation}
