"""Sampling without replacement."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from fractions import Fraction
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.poisson import POISSON
from cumulant.bounds.without_replacement import WITHOUT_REPLACEMENT
from cumulant.domains import Exact, Number, spelling
from cumulant.errors import InputError
from cumulant.exact.witnesses import CORNER, TRIPLE, TURNED, Neighbours
from cumulant.numerics.binomials import MOST_COUNTED, hypergeometric_masses
from cumulant.relation import Relation
from cumulant.sampling.rated import Directions, Sized, Statement, proposition11
from cumulant.sampling.scheme import Scheme, register_scheme

if TYPE_CHECKING:
    from cumulant.pairs.pair import Pair


@register_scheme
class WithoutReplacement(Sized):
    """A uniform sample without replacement: every subset of that size is equally likely.

    The subsets have `sample` records of the `population`.

    Give the rate, or sample and population. Statements are for replace-one neighbours: data sets of the same, public
    size that differ in one record. The theorems assume that the mechanism ignores the order of its sample, or that the
    sample reaches it shuffled; with a sample in data-set order Theorem 9 and even Lemma 3 fail (E-3). Clipping to norm C
    has replace-one sensitivity 2C. With `relation="add-remove"` statements are for data sets of which the larger has
    `population` records; what runs is still stated for replace-one neighbours (docs/samples.md).

    Samples of one rate and other sizes are not equal, because several records are in them with other probabilities.

    >>> WithoutReplacement(sample=256, population=60_000).rate == WithoutReplacement(rate="256/60000").rate
    True
    """

    __slots__ = ()

    word: ClassVar[str] = "WithoutReplacement"
    fixed: ClassVar[bool] = True
    law: ClassVar[attrgetter[tuple[Hashable, ...]]] = attrgetter("rate", "stated", "sample", "population")
    checked: ClassVar[str] = "every sample is drawn uniformly, afresh and in secret"
    statements: ClassVar[Mapping[Relation, Statement]] = {
        Relation.REPLACE_ONE: Statement(
            WITHOUT_REPLACEMENT,
            "profile",
            "every sample is uniform, smaller than the data set, and shuffled unless the mechanism ignores its order",
        ),
        # With probability g = sample / population the record is in the sample of the larger data set, beside m - 1 others;
        # else the sample is one of the smaller. Given these m - 1 and one more, the two laws are (1-g) Q + g P and Q, (P, Q) a
        # replace-one pair of what runs, so that the bounds of Poisson samples hold with that pair (docs/samples.md).
        Relation.ADD_REMOVE: Statement(
            POISSON,
            "poisson",
            "every sample is uniform, of one public size that is below that of both data sets, and shuffled unless the "
            "mechanism ignores its order; what runs on it is stated for replace-one neighbours",
            "a fixed-size sample displaces a record, so give the mechanism for replace-one neighbours, where a clipped sum has "
            'twice the clipping norm: Gaussian(noise_multiplier=…, relation="replace-one")',
        ),
    }

    def __init__(
        self,
        rate: Number | None = None,
        *,
        sample: Number | None = None,
        population: Number | None = None,
        relation: Relation | str | None = None,
    ) -> None:
        super().__init__(rate, sample=sample, population=population, relation=relation)
        if self.displaces and self.rate == 1:
            raise InputError(
                "sample must be below population: the smaller data set has one record less, and too few for this sample"
            )

    @property
    def takes(self) -> Relation:
        return Relation.REPLACE_ONE

    @property
    def sized(self) -> bool:
        """Return True for a record added or removed: the rate is that of the larger data set, whatever its size."""
        return bool(self.displaces) or super().sized

    def sizes(self) -> tuple[Exact | None, Exact | None]:
        return self.sample, self.population

    def merge(self, inner: Scheme) -> Scheme | None:
        if self.displaces or not isinstance(inner, WithoutReplacement) or inner.displaces:
            return None
        return WithoutReplacement(rate=spelling(self.rate * inner.rate))

    # ---- loss distributions

    def drawn(self, pair: Pair) -> tuple[Pair, Fraction, Directions]:
        """Return the pair itself: either data set may be the first one in each round, unless one is larger."""
        return pair, self.rate, ("remove", "add") if self.displaces else ("symmetric",)

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        yield from proposition11(pair, self.rate)
        if self.displaces:
            return
        triple, two = pair.triple(self.rate) if self.rate < 1 else None, pair.lower_step(self.rate, "remove")
        if two is not None:
            transform = None if triple is None else pair.triple_transform(self.rate)
            yield Neighbours(TRIPLE, triple or two, covered=triple is None, transform=transform)
            corners = pair.corners(self.rate) if self.rate < 1 else None
            for name, step in zip((CORNER, TURNED), corners or (triple or two,) * 2, strict=True):
                yield Neighbours(name, step, covered=corners is None)

    def closed_form(self, pair: Pair) -> tuple[Pair, Fraction | None]:
        return pair, self.rate

    def triples(self) -> Fraction | None:
        return self.rate if self.rate < 1 and not self.displaces else None

    def theorem_b_rate(self, pair: Pair) -> Fraction | None:
        """Return the rate if it is 1 or the pair has a geometry, else None; None too for a record added or removed.

        Several queries on one sample have none. Such queries may adapt to one another, so the theorem needs a geometry,
        which they do not have.
        """
        return self.rate if (self.rate == 1 or pair.geometry) and not self.displaces else None

    # ---- several records

    def _counts(self, size: int) -> tuple[Fraction, ...] | None:
        """Return the law of how many of so many records are in the sample, where enough others take their places."""
        sample, population = self.sample, self.population
        if sample is None or population is None or population - size < sample or size > MOST_COUNTED:
            return None
        return hypergeometric_masses(int(population), size, int(sample))

    def user_counts(self, records: int) -> tuple[Fraction, ...] | None:
        """Return the law of the user's records in the sample of the larger data set; None for replace-one neighbours.

        Each of them takes the place of another record.
        """
        return self._counts(records) if self.displaces else None

    def group_counts(self, size: int) -> tuple[Fraction, ...] | None:
        """Return the law of the group's records in the sample; None for add-remove neighbours.

        In the sample without the group others take their places, so that enough others must be there; else it is None too.
        """
        return None if self.displaces else self._counts(size)


WHOLE = WithoutReplacement(rate=1)
"""All the data: how what runs without a sample is drawn."""
