"""Neighbouring relations as values: the meaning of "one person" in a guarantee."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from cumulant.domains import Exact
from cumulant.errors import InputError, RelationError, shown


class Relation(StrEnum):
    """The pairs of data sets that a statement compares.

    >>> Relation.read("replace_one") is Relation.REPLACE_ONE
    True
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    REPLACE_SPECIAL = "replace-special"  # by one record that every mechanism ignores, so that the size is public
    ANY = "any"  # holds for whichever relation the sensitivities are stated under

    @classmethod
    def read(cls, value: object) -> Relation:
        """Return the relation of this name; underscores and slashes count as hyphens."""
        try:
            if not isinstance(value, str):
                raise ValueError
            return cls(value.lower().replace("_", "-").replace("/", "-"))
        except ValueError:
            raise InputError(f"relation={shown(value)} is unknown; choose {cls.choices()}") from None

    @classmethod
    def choices(cls) -> str:
        """Return the names of all relations that say something about people, for an error.

        >>> Relation.choices()
        "'replace-one', 'add-remove' or 'replace-special'"
        """
        *names, last = (repr(str(each)) for each in cls if each.clipping is not None)
        return f"{', '.join(names)} or {last}"

    @property
    def meaning(self) -> str:
        """Return the relation in words."""
        return self.meaning_for(1)

    def meaning_for(self, records: int, user: bool = False) -> str:
        """Return the relation in words, for data sets that are so many neighbours apart.

        `user` if these are the records of one user, who joins or leaves.

        >>> Relation.REPLACE_ONE.meaning_for(5)
        'data sets of the same size that differ in at most 5 records'
        >>> Relation.ADD_REMOVE.meaning_for(5, user=True)
        'data sets of which one has one user more, with at most 5 records'
        """
        facts = _FACTS[self]
        if records > 1 and user:
            return f"data sets of which one has one user more, with at most {records} records"
        return facts.meaning if records == 1 else facts.group.format(records)

    def neighbours_for(self, records: int, user: bool = False) -> str:
        """Return the people for whom a statement about so many records holds."""
        meaning = self.meaning_for(records, user)
        return f"for {self} neighbours: {meaning}" if self.clipping else f"for neighbours under {meaning}"

    def guessed_for(self, records: int) -> str:
        """Return a phrase for the fact about the data that an attacker guesses."""
        facts = _FACTS[self]
        return facts.guessed if records == 1 else facts.guessed_group.format(records)

    def protected_for(self, records: int, user: bool = False) -> str:
        """Return in a few words what a statement about so many records protects.

        >>> Relation.ADD_REMOVE.protected_for(1), Relation.REPLACE_ONE.protected_for(3)
        ('one record added or removed', 'up to 3 records replaced by others')
        """
        facts = _FACTS[self]
        if records > 1 and user:
            return f"one user with at most {records} records, who joins or leaves"
        return facts.protected if records == 1 else facts.protected_group.format(records)

    @property
    def change(self) -> str:
        """Return what happens to one record between two neighbours, in the fewest words; empty where that is not fixed.

        >>> Relation.ADD_REMOVE.change, Relation.REPLACE_ONE.change
        ('added or removed', 'replaced')
        """
        return _FACTS[self].change

    @property
    def checked(self) -> str:
        """Return in a few words what to check about the sensitivities of a run that is stated for it."""
        if self.clipping is None:
            return "sensitivities are stated for the neighbours you mean"
        return f"one record moves a sum clipped to norm C by at most {_times(self.clipping)}C"

    @property
    def clipping(self) -> int | None:
        """Return how many times C one record moves a sum of vectors clipped to norm C (E-2).

        None where that is not fixed.
        """
        return _FACTS[self].clipping

    @property
    def assumed_unclipped(self) -> str:
        """Return the assumption about the sensitivities of a run that clips nothing.

        >>> Relation.ANY.assumed_unclipped, Relation.ADD_REMOVE.assumed_unclipped
        ('sensitivities are stated for the neighbours you mean', 'sensitivities are for one record added or removed')
        """
        return self.checked if self.clipping is None else f"sensitivities are for {_FACTS[self].protected}"

    @property
    def assumed(self) -> str:
        """Return the assumption about the sensitivities of a run that is stated for it, where vectors may be clipped."""
        if self.clipping is None:
            return "clipping to norm C has sensitivity 2C under replace-one and C under add-remove"
        return f"sensitivities are {self}, so clipping to norm C counts as {_times(self.clipping)}C"

    def clipped(self, norm: Exact) -> Exact:
        """Return the sensitivity of a sum of vectors clipped to this norm.

        >>> Relation.REPLACE_ONE.clipped(Exact(1)), Relation.ADD_REMOVE.clipped(Exact(1))
        (Exact('2'), Exact('1'))
        """
        if self.clipping is None:
            raise InputError(
                f"relation={str(self)!r} does not fix the sensitivity of a clipped sum; choose {Relation.choices()}"
            )
        return norm if self.clipping == 1 else Exact(self.clipping * norm)

    def of_mean(self, records: int) -> Relation:
        """Return the relation of a mean of so many records: their number must not change (E-20).

        A special record counts as one of them, and adds nothing.

        >>> Relation.ANY.of_mean(256), Relation.ANY.of_mean(1)
        (<Relation.REPLACE_ONE: 'replace-one'>, <Relation.ANY: 'any'>)
        """
        if records == 1 or self is Relation.REPLACE_SPECIAL:
            return self
        if self is Relation.ADD_REMOVE:
            raise RelationError(
                f"averaged_over={records} is a number of records, which changes when one is added or removed; use "
                "replace-one neighbours. If the divisor is a constant, state the sum, with its noise times that constant"
            )
        return Relation.REPLACE_ONE


@dataclass(frozen=True, slots=True)
class AnyRelation:
    """The parameter `relation` of a mechanism: any relation, or its name.

    >>> AnyRelation().check("relation", "replace-one")
    <Relation.REPLACE_ONE: 'replace-one'>
    """

    accepted: ClassVar[str] = "Relation | str"

    def check(self, name: str, value: object) -> Relation:
        """Return the relation, or raise an InputError of one sentence."""
        return Relation.read(value)


RELATION = AnyRelation()

Stated = tuple[Relation, object]
"""A relation, and what is stated for it."""

UNSTATED: Stated = (Relation.ANY, "")


@dataclass(frozen=True, slots=True)
class _Facts:
    meaning: str
    clipping: int | None
    guessed: str
    group: str
    guessed_group: str
    protected: str
    protected_group: str
    change: str


_FACTS = {
    Relation.REPLACE_ONE: _Facts(
        "data sets of the same size that differ in one record",
        2,
        "one record or another in its place",
        "data sets of the same size that differ in at most {} records",
        "the {} records of a group, or others in their place,",
        "one record replaced by another",
        "up to {} records replaced by others",
        "replaced",
    ),
    Relation.ADD_REMOVE: _Facts(
        "data sets of which one has one record more",
        1,
        "one record",
        "data sets that differ by adding or removing at most {} records",
        "the group of {} records",
        "one record added or removed",
        "up to {} records added or removed",
        "added or removed",
    ),
    Relation.REPLACE_SPECIAL: _Facts(
        "data sets of the same size of which one has a special record, which adds nothing, in place of one record",
        1,
        "one record, or that nothing stands in its place",
        "data sets of the same size that differ in at most {} records, each of which is special in one of them",
        "the group of {} records, or that nothing stands in their places,",
        "one record replaced by an empty one",
        "up to {} records replaced by empty ones",
        "made empty",
    ),
    Relation.ANY: _Facts(
        "the relation under which the sensitivities are stated",
        None,
        "one record",
        "{} steps of the relation under which the sensitivities are stated",
        "the group of {} records",
        "one record, as the sensitivities are stated",
        "up to {} records, as the sensitivities are stated",
        "",
    ),
}


def _times(factor: int) -> str:
    return "" if factor == 1 else str(factor)


def _as_replaced(*parts: Stated) -> str:
    """Return how Poisson samples are stated under replace-one, if they meet it; else nothing."""
    named = {relation: str(part) for relation, part in parts}
    if Relation.REPLACE_ONE not in named or "Poisson(" not in named.get(Relation.ADD_REMOVE, ""):
        return ""
    noise, drawn = "Gaussian(noise_multiplier=…, relation='replace-one')", "Poisson(rate=…, relation='replace-one')"
    return f": for Poisson samples, {noise} @ {drawn}"


class Related(Protocol):
    """Anything that is stated for one relation."""

    @property
    def relation(self) -> Relation:
        """Return the relation that it is stated for."""


def agreed(parts: Iterable[Related], stated: Stated = UNSTATED) -> Stated:
    """Return the one relation all parts are stated for, with a part of it; RelationError when there are two.

    A caller that keeps the result gives it as `stated`, and need not look at old parts again.
    """
    for part in parts:
        relation = part.relation
        if relation is Relation.ANY:
            continue
        if stated[0] not in (Relation.ANY, relation):
            raise RelationError(
                f"{stated[1]} is stated for {stated[0]} neighbours and {part} for {relation} neighbours; "
                f"a run has one relation, so restate one of them{_as_replaced(stated, (relation, part))}"
            )
        stated = (relation, part)
    return stated
