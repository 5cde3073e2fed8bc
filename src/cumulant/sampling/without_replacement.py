"""Sampling without replacement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.bound import Bound
from cumulant.bounds.without_replacement_table import WITHOUT_REPLACEMENT
from cumulant.domains import COUNT, RATE, Domain, Exact, Number, spelling
from cumulant.errors import InputError
from cumulant.lattice.neighbours import TRIPLE, Neighbours, proposition11
from cumulant.relation import Relation
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import Scheme, known

if TYPE_CHECKING:
    from cumulant.pairs.pair import Pair
    from cumulant.pairs.step import Step
    from cumulant.pairs.transform import Transform


@known
@dataclass(frozen=True, slots=True, init=False, eq=False)
class WithoutReplacement(Rated):
    """A uniform sample without replacement: every subset of `sample` records of the `population` is equally likely.

    Give the rate, or sample and population. Statements are for replace-one neighbours: data sets of the same, public
    size that differ in one record. The theorems assume that the mechanism ignores the order of its sample, or that the
    sample reaches it shuffled; with a sample in data-set order Theorem 9 and even Lemma 3 fail (E-3). Clipping to norm C
    has replace-one sensitivity 2C.

    >>> WithoutReplacement(sample=256, population=60_000) == WithoutReplacement(rate="256/60000")
    True
    """

    rate: Exact
    sample: Exact | None
    population: Exact | None

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, Bound]] = WITHOUT_REPLACEMENT
    sharpened: ClassVar[str] = "profile"
    assumed: ClassVar[str] = (
        "every sample is uniform, smaller than the data set, and shuffled unless the mechanism ignores its order"
    )

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
            raise InputError("WithoutReplacement takes rate=…, or sample=… and population=…")
        for name, value in (("rate", checked), ("sample", size), ("population", total)):
            object.__setattr__(self, name, value)

    def sizes(self) -> tuple[Exact | None, Exact | None]:
        return self.sample, self.population

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        found = {"rate": RATE}
        if "population" in others:
            found["sample"] = replace(COUNT, high=Exact(others["population"]))
        if "sample" in others:
            found["population"] = replace(COUNT, low=Exact(others["sample"]))
        return found

    def steps(self, pair: Pair) -> tuple[Step, ...] | None:
        """The symmetric pair of the amplified profile: either data set may be the first one in each round."""
        step = pair.above(self.rate, "symmetric")
        return None if step is None else (step,)

    def transforms(self, pair: Pair) -> tuple[Transform, ...] | None:
        found = pair.transform(self.rate, "symmetric")
        return None if found is None else (found,)

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        yield from proposition11(pair, self.rate)
        triple, two = pair.triple(self.rate) if self.rate < 1 else None, pair.below(self.rate, "remove")
        if two is not None:
            yield Neighbours(TRIPLE, triple or two, covered=triple is None)

    def share(self) -> Fraction:
        return self.rate

    def cone(self, pair: Pair) -> Fraction | None:
        """Several queries on one sample may adapt to one another, so the theorem needs a geometry, which they do not have."""
        return self.rate if self.rate == 1 or pair.geometry else None

    def of(self, inner: Scheme) -> Scheme | None:
        if not isinstance(inner, WithoutReplacement):
            return None
        return WithoutReplacement(rate=spelling(self.rate * inner.rate))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WithoutReplacement) and self.rate == other.rate

    def __hash__(self) -> int:
        return hash((WithoutReplacement, self.rate))

    def __str__(self) -> str:
        if self.sample is not None and self.population is not None:
            return f"WithoutReplacement(sample={self.sample.notation}, population={self.population.notation})"
        return f"WithoutReplacement(rate={self.rate.notation})"

    def __repr__(self) -> str:
        return str(self)


WHOLE = WithoutReplacement(rate=1)
"""All the data: how what runs without a sample is drawn."""
