"""Poisson samples of a limited size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.bound import Bound, proved
from cumulant.bounds.draws import TRUNCATED_POISSON
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, RATE, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.numerics.binomials import upper_tail
from cumulant.pairs.public_choice import Branch, PublicChoicePair, fraction_above
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, register_scheme

if TYPE_CHECKING:
    from cumulant.losses.grid import Step
    from cumulant.pairs.pair import Pair


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class TruncatedPoisson(Scheme):
    """A Poisson sample of this rate, cut to a uniform subset if it is larger than `limit`.

    Statements are for add/remove neighbours of a data set of `population` records: one that has one record more, or one less.
    The bound is not monotone in that number, so it is stated. The mechanism is a sum over the sample, or divides it by a public
    number, not by the size of the sample. Sensitivities are add/remove too; a record that takes the place of another counts
    twice. See docs/bounds/truncated-poisson.md.

    >>> import cumulant as cm
    >>> step = cm.Gaussian(sigma=2) @ TruncatedPoisson(rate="1/4", limit=20, population=100)
    >>> step.delta(epsilon="0.1")
    0.0456532
    """

    rate: Exact
    limit: Exact
    population: Exact

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    bounds: ClassVar[Mapping[str, Bound]] = TRUNCATED_POISSON
    sharpened: ClassVar[str] = "truncated-poisson"
    assumed: ClassVar[str] = (
        "every record enters each Poisson sample independently, samples above the limit are cut to a uniform subset, what runs "
        "is a sum over the sample or divides it by a public number, and the data set has as many records as is stated"
    )
    checked: ClassVar[str] = "each record is sampled independently, in secret, and larger samples are cut at random"

    def __init__(self, rate: Number, limit: Number, population: Number) -> None:
        share, most, total = (
            RATE.check("rate", rate),
            COUNT.check("limit", limit),
            COUNT.check("population", population),
        )
        if most > total:
            raise InputError(
                f"limit={most} must be at most population={total}: nothing is cut off; write Poisson(rate={share.notation})"
            )
        for name, value in (("rate", share), ("limit", most), ("population", total)):
            object.__setattr__(self, name, value)

    @property
    def copies(self) -> int:
        """Return 2: a record that takes the place of another adds one and removes one."""
        return 2

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"rate": RATE}

    def numbers(self) -> Mapping[str, Fraction]:
        return {"rate": self.rate, "limit": self.limit, "population": self.population}

    def sizes(self) -> tuple[Exact | None, Exact | None]:
        return None, self.population

    def case(self, pair: Pair, records: int) -> tuple[Branch, ...] | None:
        """Return the two branches of the coin for a larger data set of so many records.

        Returns None where a pair is not known.
        """
        two = pair.group_pair(2)
        if (
            not pair.symmetric
            or two is None
            or not two.symmetric
            or None in (pair.poisson_curve(), two.poisson_curve())
        ):
            return None
        free, cut, share = shares(Fraction(self.rate), int(self.limit), records)
        branches = (Branch(free, pair, Fraction(self.rate)), Branch(cut, two, share))
        return tuple(branch for branch in branches if branch.weight > 0)

    def _public_choice(self, pair: Pair) -> PublicChoicePair | None:
        cases = [self.case(pair, int(self.population) + more) for more in (0, 1)]
        known_ = tuple(case for case in cases if case is not None)
        return PublicChoicePair(known_, directed=True) if len(known_) == len(cases) else None

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        announced = None if pair is None else self._public_choice(pair)
        return proved(self.bounds, self.theorem(bound), base("best"), announced, Fraction(1), subject)

    def closed_form(self, pair: Pair) -> tuple[Pair, Fraction | None]:
        announced = self._public_choice(pair)
        return (pair, None) if announced is None else (announced, Fraction(1))

    def steps_of(self, pair: Pair) -> tuple[Step, ...] | None:
        announced = self._public_choice(pair)
        return None if announced is None else announced.unsampled_steps()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TruncatedPoisson) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((TruncatedPoisson, self._key()))

    def _key(self) -> tuple[Exact, Exact, Exact]:
        return self.rate, self.limit, self.population

    def __str__(self) -> str:
        sizes = f"limit={self.limit.notation}, population={self.population.notation}"
        return f"TruncatedPoisson(rate={self.rate.notation}, {sizes})"

    def __repr__(self) -> str:
        return str(self)


@lru_cache(maxsize=256)
def shares(rate: Fraction, limit: int, records: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return 1 - t, t and q', all rounded up.

    t = P(Bin(n-1, q) >= B), q' = P(Bin(n, q) > B) B / (n t).

    >>> [round(float(each), 12) for each in shares(Fraction(1, 4), 20, 100)]
    [0.109390538173, 0.890609461827, 0.191143028688]
    """
    if limit >= records:
        return Fraction(1), Fraction(0), rate
    free = fraction_above(lambda: 1 - upper_tail(records - 1, rate, limit)) if rate < 1 else Fraction(0)
    cut = fraction_above(lambda: upper_tail(records - 1, rate, limit))
    share = fraction_above(
        lambda: upper_tail(records, rate, limit + 1) * limit / (records * upper_tail(records - 1, rate, limit))
    )
    # given that it is cut off, a record is displaced no more often than it would have entered
    return min(free, Fraction(1)), min(cut, Fraction(1)), min(share, rate)
