"""Schemes with a rate, the probability with which a record is in the sample.

Their theorems ask for nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from cumulant.bounds.bound import Bound, amplified
from cumulant.bounds.table import BOUNDS, row
from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, RATE, SHARE, Domain, Exact, Number
from cumulant.errors import InputError, shown
from cumulant.exact.witnesses import PAIR, SWAPPED, Neighbours
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation
from cumulant.sampling.scheme import SCHEMES, Scheme

if TYPE_CHECKING:
    from cumulant.losses.grid import Step
    from cumulant.losses.transform import Transform

Directions = tuple[str, ...]
"""The orders of two neighbours that are composed each by itself: of `losses.grid.Mixture`."""

T = TypeVar("T")
"""A step or a transform."""


class Rated(Scheme):
    """A scheme whose theorems take the rate.

    At rate 1 the sample is all the data, and every theorem holds.
    """

    __slots__ = ()

    rate: Exact

    @abstractmethod
    def __init__(self, rate: Number) -> None:
        """Create the scheme from its rate."""

    @property
    def copies(self) -> int:
        return 1

    def numbers(self) -> Mapping[str, Fraction]:
        return {"rate": self.rate}

    def theorem(self, bound: str) -> str:
        return Scheme.theorem(self, bound) if self.rate < 1 else row(bound).name

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        name = self.theorem(bound)
        if not self.rate:
            return Concentrated(rho=Fraction(0))  # whatever runs, it never sees the record
        rows = self.bounds if name in self.bounds else BOUNDS
        return amplified(rows, name, base(name if row(name).upper else "best"), pair, self.rate, subject)

    @property
    def data_independent(self) -> bool:
        return self.rate == 0

    def by_lemma3(self) -> Fraction:
        self.theorem("lemma3")
        return self.rate


@dataclass(frozen=True, slots=True)
class Statement:
    """The theorems and the assumptions about samples, for one neighbouring relation."""

    bounds: Mapping[str, Bound]
    """The table of theorems."""

    sharpened: str
    """The row of the table that loss distributions are the sharp form of."""

    assumed: str
    """The assumption about the samples that no theorem can check."""

    displaces: str = ""
    """Why what runs is stated for other neighbours than the samples, where that is so."""


@dataclass(frozen=True, slots=True)
class ByRelation:
    """An attribute that depends on the relation: a scheme has that of its own, its class that of the usual one."""

    name: str

    def __get__(self, scheme: Sized | None, kind: type[Sized]) -> Any:
        relation = next(iter(kind.statements)) if scheme is None else scheme.stated
        return relation if self.name == "relation" else getattr(kind.statements[relation], self.name)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Sized(Rated):
    """A scheme that is given by its rate, or by the sizes of the sample and of the population.

    Their quotient is the rate.

    Equality means the law of the sample (`law`): the rate and the relation, unless the law depends on the sizes too.
    """

    rate: Exact
    sample: Exact | None
    population: Exact | None
    stated: Relation

    statements: ClassVar[Mapping[Relation, Statement]]
    """The relations for which there are theorems, the usual one first."""

    relation: ClassVar[Relation] = cast("Any", ByRelation("relation"))
    bounds: ClassVar[Mapping[str, Bound]] = cast("Any", ByRelation("bounds"))
    sharpened: ClassVar[str] = cast("Any", ByRelation("sharpened"))
    assumed: ClassVar[str] = cast("Any", ByRelation("assumed"))
    displaces: ClassVar[str] = cast("Any", ByRelation("displaces"))

    law: ClassVar[attrgetter[tuple[Hashable, ...]]] = attrgetter("rate", "stated")
    """Reads all that decides which records are in the sample, for one record and for several."""

    meant: ClassVar[str] = ""
    """The meaning of the two sizes, for an error message."""

    word: ClassVar[str]

    @property
    def called(self) -> str:
        return self.word

    @classmethod
    def tables(cls) -> tuple[Mapping[str, Bound], ...]:
        return tuple(statement.bounds for statement in getattr(cls, "statements", {}).values())

    def __init__(
        self,
        rate: Number | None = None,
        *,
        sample: Number | None = None,
        population: Number | None = None,
        relation: Relation | str | None = None,
    ) -> None:
        stated = next(iter(self.statements)) if relation is None else Relation.read(relation)
        if stated not in self.statements:
            known = " or ".join(repr(str(each)) for each in self.statements)
            raise InputError(f"relation={shown(relation)} must be {known} for samples of {self.word}")
        if rate is not None and sample is None and population is None:
            checked, size, total = SHARE.check("rate", rate), None, None
        elif rate is None and sample is not None and population is not None:
            size, total = COUNT.check("sample", sample), COUNT.check("population", population)
            if size > total:
                raise InputError(f"sample={size} must be at most population={total}")
            checked = Exact(Fraction(size) / total)
        else:
            raise InputError(f"{self.word} takes rate=…, or sample=… and population=…{self.meant}")
        for name, value in (("rate", checked), ("sample", size), ("population", total), ("stated", stated)):
            object.__setattr__(self, name, value)

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        found = {"rate": RATE}
        if "population" in others:
            found["sample"] = replace(COUNT, high=Exact(others["population"]))
        if "sample" in others:
            found["population"] = replace(COUNT, low=Exact(others["sample"]))
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sized) or type(self) is not type(other):
            return False
        return bool(self.law(self) == other.law(other))

    def __hash__(self) -> int:
        return hash((type(self), self.law(self)))

    def __getstate__(self) -> list[Any]:
        usual = self.stated is type(self).relation
        return [self.rate, self.sample, self.population, *(() if usual else (self.stated,))]

    def __setstate__(self, state: list[Any]) -> None:
        """Read what was pickled; without a relation it is the usual one, as in files of older versions."""
        for name, value in zip(("rate", "sample", "population", "stated"), [*state, type(self).relation], strict=False):
            object.__setattr__(self, name, value)

    @property
    def frozen(self) -> bool:
        return SCHEMES.get(self.word) in type(self).__mro__

    # ---- loss distributions

    @abstractmethod
    def drawn(self, pair: Pair) -> tuple[Pair, Fraction, Directions] | None:
        """Return the pair that the samples mix, the rate of the mixture, and the directions of the neighbours.

        Returns None if no pair is known.
        """

    def steps_of(self, pair: Pair) -> tuple[Step, ...] | None:
        found = self.drawn(pair)
        if found is None:
            return None
        mixed, rate, directions = found
        return mixed.unsampled_steps() if rate == 1 else _in_each(mixed.upper_step, rate, directions)

    def transforms_of(self, pair: Pair) -> tuple[Transform, ...] | None:
        found = self.drawn(pair)
        return None if found is None else _in_each(found[0].transform, found[1], found[2])

    def __str__(self) -> str:
        stated = "" if self.stated is type(self).relation else f', relation="{self.stated}"'
        if self.sample is not None and self.population is not None:
            return f"{self.word}(sample={self.sample.notation}, population={self.population.notation}{stated})"
        return f"{self.word}(rate={self.rate.notation}{stated})"

    def __repr__(self) -> str:
        return str(self)


def _in_each(
    offered: Callable[[Fraction, str], T | None], rate: Fraction, directions: Directions
) -> tuple[T, ...] | None:
    """Return what is offered in each direction; None if one is missing, because one direction alone bounds nothing."""
    found: list[T] = []
    for direction in directions:
        each = offered(rate, direction)
        if each is None:
            return None
        found.append(each)
    return tuple(found)


def proposition11(pair: Pair, rate: Fraction) -> Iterator[Neighbours]:
    """Yield (1-g)Q + gP against Q and the reverse; for a symmetric pair the first is the larger."""
    for name, direction in ((PAIR, "remove"), (SWAPPED, "add")):
        step = pair.lower_step(rate, direction)
        if step is not None:
            transform = pair.lower_transform(rate, direction)
            yield Neighbours(name, step, covered=name == SWAPPED and pair.symmetric, transform=transform)
