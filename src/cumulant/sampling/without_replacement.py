"""Sampling without replacement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.bound import Bound
from cumulant.bounds.without_replacement_table import WITHOUT_REPLACEMENT
from cumulant.domains import Exact, spelling
from cumulant.lattice.neighbours import CORNER, TRIPLE, TURNED, Neighbours, proposition11
from cumulant.relation import Relation
from cumulant.sampling.rated import Sized
from cumulant.sampling.scheme import Scheme, known

if TYPE_CHECKING:
    from cumulant.pairs.pair import Pair
    from cumulant.pairs.step import Step
    from cumulant.pairs.transform import Transform


@known
class WithoutReplacement(Sized):
    """A uniform sample without replacement: every subset of `sample` records of the `population` is equally likely.

    Give the rate, or sample and population. Statements are for replace-one neighbours: data sets of the same, public
    size that differ in one record. The theorems assume that the mechanism ignores the order of its sample, or that the
    sample reaches it shuffled; with a sample in data-set order Theorem 9 and even Lemma 3 fail (E-3). Clipping to norm C
    has replace-one sensitivity 2C.

    >>> WithoutReplacement(sample=256, population=60_000) == WithoutReplacement(rate="256/60000")
    True
    """

    __slots__ = ()

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, Bound]] = WITHOUT_REPLACEMENT
    sharpened: ClassVar[str] = "profile"
    assumed: ClassVar[str] = (
        "every sample is uniform, smaller than the data set, and shuffled unless the mechanism ignores its order"
    )

    def sizes(self) -> tuple[Exact | None, Exact | None]:
        return self.sample, self.population

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
            corners = pair.corners(self.rate) if self.rate < 1 else None
            for name, step in zip((CORNER, TURNED), corners or (triple or two,) * 2, strict=True):
                yield Neighbours(name, step, covered=corners is None)

    def share(self) -> Fraction:
        return self.rate

    def triples(self) -> Fraction | None:
        return self.rate if self.rate < 1 else None

    def cone(self, pair: Pair) -> Fraction | None:
        """Several queries on one sample may adapt to one another, so the theorem needs a geometry, which they do not have."""
        return self.rate if self.rate == 1 or pair.geometry else None

    def of(self, inner: Scheme) -> Scheme | None:
        if not isinstance(inner, WithoutReplacement):
            return None
        return WithoutReplacement(rate=spelling(self.rate * inner.rate))


WHOLE = WithoutReplacement(rate=1)
"""All the data: how what runs without a sample is drawn."""
