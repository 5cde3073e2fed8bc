"""Poisson sampling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.bound import Bound
from cumulant.bounds.poisson_table import POISSON
from cumulant.domains import RATE, Domain, Exact, Number, spelling
from cumulant.lattice.neighbours import Neighbours, proposition11
from cumulant.relation import Relation
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import Scheme, known

if TYPE_CHECKING:
    from cumulant.pairs.pair import Pair
    from cumulant.pairs.step import Step


@known
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Poisson(Rated):
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
    sharpened: ClassVar[str] = "poisson"
    assumed: ClassVar[str] = "every record enters each Poisson sample independently of the others"

    def __init__(self, rate: Number) -> None:
        object.__setattr__(self, "rate", RATE.check("rate", rate))

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"rate": RATE}

    def steps(self, pair: Pair) -> tuple[Step, ...] | None:
        """The record is there in one of the data sets, and the run sees it removed or added throughout."""
        directions = ("remove", "add") if self.rate < 1 else ("symmetric",)
        found = [step for direction in directions if (step := pair.above(self.rate, direction)) is not None]
        return tuple(found) or None

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        return proposition11(pair, self.rate)

    def share(self) -> Fraction:
        return self.rate

    def cone(self, pair: Pair) -> Fraction | None:
        return self.rate if self.rate == 1 else None

    def of(self, inner: Scheme) -> Scheme | None:
        return Poisson(rate=spelling(self.rate * inner.rate)) if isinstance(inner, Poisson) else None

    def __str__(self) -> str:
        return f"Poisson(rate={self.rate.notation})"

    def __repr__(self) -> str:
        return str(self)
