"""Poisson sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cumulant.bounds.bound import Bound
from cumulant.bounds.poisson_table import POISSON
from cumulant.domains import RATE, Exact, Number, spelling
from cumulant.lattice import sampling as laws
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, known


@known
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Poisson(Scheme):
    """A Poisson sample: every record is in it independently with probability `rate`, so that its size is random.

    Statements are for add/remove neighbours: data sets of which one has one record more. Sensitivities are add/remove
    too, C for sums of vectors clipped to norm C, and hold for samples of every size, the empty one included.

    >>> import cumulant as cm
    >>> step = cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove") @ cm.Poisson(rate=0.01)
    >>> step.rdp([2, 2.5])
    array([0.00017181, 0.00021758])
    >>> cm.Gaussian(sigma=1) @ Poisson(rate=0.1) @ Poisson(rate=0.1) == cm.Gaussian(sigma=1) @ Poisson(rate=0.01)
    True
    """

    rate: Exact

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    bounds: ClassVar[Mapping[str, Bound]] = POISSON
    sampling: ClassVar[laws.Sampling] = laws.POISSON
    assumed: ClassVar[str] = "every record enters each Poisson sample independently of the others"

    def __init__(self, rate: Number) -> None:
        object.__setattr__(self, "rate", RATE.check("rate", rate))

    def of(self, inner: Scheme) -> Scheme | None:
        return Poisson(rate=spelling(self.rate * inner.rate)) if isinstance(inner, Poisson) else None

    def __str__(self) -> str:
        return f"Poisson(rate={self.rate.notation})"

    def __repr__(self) -> str:
        return str(self)
