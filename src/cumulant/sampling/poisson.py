"""Poisson sampling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.bound import Bound
from cumulant.bounds.poisson_table import POISSON
from cumulant.domains import COUNT, RATE, Domain, Exact, Number, spelling
from cumulant.errors import InputError
from cumulant.lattice.neighbours import Neighbours, proposition11
from cumulant.relation import Relation
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import Scheme, known

if TYPE_CHECKING:
    from cumulant.pairs.pair import Pair
    from cumulant.pairs.step import Step
    from cumulant.pairs.transform import Transform


@known
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Poisson(Rated):
    """A Poisson sample: every record is in it independently with probability `rate`, so that its size is random.

    Give the rate, or by `sample` and `population` the quotient of the size that is expected and the number of records.

    Statements are for add/remove neighbours: data sets of which one has one record more. Sensitivities are add/remove
    too, C for sums of vectors clipped to norm C, and hold for samples of every size, the empty one included.

    >>> import cumulant as cm
    >>> step = cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove") @ cm.Poisson(rate=0.01)
    >>> step.rdp([2, 2.5])
    array([0.00017181, 0.00021758])
    >>> cm.Gaussian(sigma=1) @ Poisson(rate=0.1) @ Poisson(rate=0.1) == cm.Gaussian(sigma=1) @ Poisson(rate=0.01)
    True
    >>> Poisson(sample=256, population=60_000) == Poisson(rate="256/60000")
    True
    """

    rate: Exact
    sample: Exact | None
    population: Exact | None

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    bounds: ClassVar[Mapping[str, Bound]] = POISSON
    sharpened: ClassVar[str] = "poisson"
    assumed: ClassVar[str] = "every record enters each Poisson sample independently of the others"

    def __init__(
        self, rate: Number | None = None, *, sample: Number | None = None, population: Number | None = None
    ) -> None:
        if rate is not None and sample is None and population is None:
            checked, size, total = RATE.check("rate", rate), None, None
        elif rate is None and sample is not None and population is not None:
            size, total = COUNT.check("sample", sample), COUNT.check("population", population)
            if size > total:
                raise InputError(f"sample={size} must be at most population={total}")
            checked = Exact(Fraction(size) / total)
        else:
            raise InputError(
                "Poisson takes rate=…, or sample=… and population=…, the size that is expected and all records"
            )
        for name, value in (("rate", checked), ("sample", size), ("population", total)):
            object.__setattr__(self, name, value)

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        found = {"rate": RATE}
        if "population" in others:
            found["sample"] = replace(COUNT, high=Exact(others["population"]))
        if "sample" in others:
            found["population"] = replace(COUNT, low=Exact(others["sample"]))
        return found

    def steps(self, pair: Pair) -> tuple[Step, ...] | None:
        """The record is there in one of the data sets, and the run sees it removed or added throughout."""
        found = [pair.above(self.rate, direction) for direction in self._directions()]
        steps = tuple(step for step in found if step is not None)
        return steps if len(steps) == len(found) else None  # one direction alone bounds nothing

    def transforms(self, pair: Pair) -> tuple[Transform, ...] | None:
        found = [pair.transform(self.rate, direction) for direction in self._directions()]
        transforms = tuple(each for each in found if each is not None)
        return transforms if len(transforms) == len(found) else None

    def _directions(self) -> tuple[str, ...]:
        return ("remove", "add") if self.rate < 1 else ("symmetric",)

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        return proposition11(pair, self.rate)

    def share(self) -> Fraction:
        return self.rate

    def cone(self, pair: Pair) -> Fraction | None:
        return self.rate if self.rate == 1 else None

    def of(self, inner: Scheme) -> Scheme | None:
        return Poisson(rate=spelling(self.rate * inner.rate)) if isinstance(inner, Poisson) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poisson) and self.rate == other.rate

    def __hash__(self) -> int:
        return hash((Poisson, self.rate))

    def __str__(self) -> str:
        if self.sample is not None and self.population is not None:
            return f"Poisson(sample={self.sample.notation}, population={self.population.notation})"
        return f"Poisson(rate={self.rate.notation})"

    def __repr__(self) -> str:
        return str(self)
