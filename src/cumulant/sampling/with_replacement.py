"""Sampling with replacement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.bound import Bound, proved
from cumulant.bounds.draws import WITH_REPLACEMENT
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.binomials import mass, upper_tail
from cumulant.pairs.public_choice import Branch, PublicChoicePair, branches_of_copies, fraction_above
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, register_scheme

if TYPE_CHECKING:
    from cumulant.losses.grid import Step
    from cumulant.pairs.pair import Pair

_FEW = 12
"""Copies of one record that are always counted, where a sample has as many."""

_MOST = 96
"""Copies of one record that are counted, at most; more are a failure."""

_MOST_OFTEN = 32
"""Times that a sample may draw every record on average, at most."""

_CURVE_TAIL = Fraction(1, 2**64)
"""The probability of more copies that a curve may count as slack: divergences of many copies are large."""

_GRID_TAIL = Fraction(1, 2**200)
"""The probability of more copies that a grid may count as a leak."""


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class WithReplacement(Scheme):
    """Independent uniform draws: `sample` of them, each from all `population` records.

    A record may be drawn several times.

    Statements are for replace-one neighbours: data sets of the same, public size that differ in one record. The mechanism
    ignores the order of its sample. Sensitivities are per copy: a record that was drawn k times counts k times, as a group of k
    records. torch's RandomSampler(replacement=True) draws so; Opacus' UniformWithReplacementSampler, in spite of its name,
    draws Poisson samples. See docs/bounds/with-replacement.md.

    >>> import cumulant as cm
    >>> step = cm.Gaussian(sigma=2) @ WithReplacement(sample=100, population=1000)
    >>> step.delta(epsilon="0.1")
    0.00279359
    """

    sample: Exact
    population: Exact

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    fixed: ClassVar[bool] = True
    bounds: ClassVar[Mapping[str, Bound]] = WITH_REPLACEMENT
    sharpened: ClassVar[str] = "with-replacement"
    assumed: ClassVar[str] = (
        "every draw is uniform over all records and independent of the others, the order of the draws is ignored, and "
        "sensitivities are per copy of a record"
    )
    checked: ClassVar[str] = "every draw is uniform and independent, and its order is ignored"

    def __init__(self, sample: Number, population: Number) -> None:
        object.__setattr__(self, "sample", COUNT.check("sample", sample))
        object.__setattr__(self, "population", COUNT.check("population", population))
        if self.sample > _MOST_OFTEN * self.population:
            raise InputError(
                f"sample={self.sample} of population={self.population} draws every record more than {_MOST_OFTEN} times on "
                "average, which hides nothing; state the mechanism without a sample, for a Group(size=...) of as many copies"
            )

    @property
    def copies(self) -> int:
        """Return the sample size: every draw may be of one record."""
        return int(self.sample)

    def refuses(self, pair: Pair | None, stated: Relation) -> str:
        if pair is not None and self._public_choice(pair, _CURVE_TAIL) is not None:
            return ""
        return (
            "copies of a record may be drawn, so this takes one mechanism with a pair that is also known for several records "
            "at once; give each mechanism a sample of its own"
        )

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"sample": COUNT, "population": COUNT}

    def numbers(self) -> Mapping[str, Fraction]:
        return {"sample": self.sample, "population": self.population}

    def sizes(self) -> tuple[Exact | None, Exact | None]:
        return self.sample, self.population

    def _public_choice(self, pair: Pair, tail: Fraction) -> PublicChoicePair | None:
        """Return the pair that reveals how often the record was drawn, given that it was; None if it is not known."""
        if not pair.symmetric:
            return None
        rate, weights, leak = copies(int(self.sample), int(self.population), tail)
        branches = branches_of_copies(pair, rate, weights)
        if branches is None:
            return None
        return PublicChoicePair((branches,), False, leak, self._beyond(pair, len(weights), rate) if leak else ())

    def _beyond(self, pair: Pair, last: int, rate: Fraction) -> tuple[Branch, ...]:
        """Return the branches for more copies than the last, in steps of a quarter.

        Each has the probability of more than before, with the most copies of the step.
        """
        branches, sample = [], int(self.sample)
        while last < sample and rate:
            most = min(last + max(last // 4, 1), sample)
            many = pair.group_pair(most)
            if many is None or not many.symmetric or many.amplified_curve() is None:
                return ()
            once = Fraction(1, int(self.population))
            weight = fraction_above(lambda: upper_tail(sample, once, last + 1) / BALLS.number(rate))  # noqa: B023
            branches.append(Branch(min(weight, Fraction(1)), many, rate))
            last = most
        return tuple(branches)

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        announced = None if pair is None else self._public_choice(pair, _CURVE_TAIL)
        return proved(self.bounds, self.theorem(bound), base("best"), announced, Fraction(1), subject)

    def closed_form(self, pair: Pair) -> tuple[Pair, Fraction | None]:
        announced = self._public_choice(pair, _GRID_TAIL)
        return (pair, None) if announced is None else (announced, Fraction(1))

    def steps_of(self, pair: Pair) -> tuple[Step, ...] | None:
        announced = self._public_choice(pair, _GRID_TAIL)
        return None if announced is None else announced.unsampled_steps()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WithReplacement) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((WithReplacement, self._key()))

    def _key(self) -> tuple[Exact, Exact]:
        return self.sample, self.population

    def __str__(self) -> str:
        return f"WithReplacement(sample={self.sample.notation}, population={self.population.notation})"

    def __repr__(self) -> str:
        return str(self)


@lru_cache(maxsize=256)
def copies(sample: int, population: int, tail: Fraction) -> tuple[Fraction, tuple[Fraction, ...], Fraction]:
    """Return g, the probabilities of 1, 2, … copies over g, and the tail, rounded up.

    g = 1 - (1 - 1/n)^m; the tail is the probability of more copies than those.

    >>> rate, weights, leak = copies(2, 10, Fraction(0))
    >>> [round(float(each), 6) for each in (rate, *weights, leak)]
    [0.19, 0.947368, 0.052632, 0.0]
    """
    if population == 1:  # the record is there throughout
        return (
            Fraction(1),
            (Fraction(0),) * (min(sample, _MOST) - 1) + (Fraction(int(sample <= _MOST)),),
            Fraction(int(sample > _MOST)),
        )
    once = Fraction(1, population)
    if sample == 1:
        return once, (Fraction(1),), Fraction(0)
    last, leak = min(sample, _FEW), Fraction(0)
    while last < sample:
        leak = fraction_above(lambda: upper_tail(sample, once, last + 1))  # noqa: B023
        if leak <= tail or last >= _MOST:
            break
        last += 1
    else:
        leak = Fraction(0)
    rate = min(fraction_above(lambda: upper_tail(sample, once, 1)), Fraction(1))
    weights = [fraction_above(lambda: mass(sample, once, k) / BALLS.number(rate)) for k in range(1, last + 1)]  # noqa: B023
    return rate, tuple(min(weight, Fraction(1)) for weight in weights), min(leak, Fraction(1))
