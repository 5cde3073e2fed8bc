"""Neighbouring relations as values: what "one person" means in a guarantee."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from cumulant.errors import InputError, RelationError, shown


class Relation(StrEnum):
    """Which pairs of data sets a statement compares.

    >>> Relation.read("replace_one") is Relation.REPLACE_ONE
    True
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    ANY = "any"  # holds for whichever relation the sensitivities are stated under

    @classmethod
    def read(cls, value: object) -> Relation:
        """The relation of this name; underscores and slashes count as hyphens."""
        try:
            if not isinstance(value, str):
                raise ValueError
            return cls(value.lower().replace("_", "-").replace("/", "-"))
        except ValueError:
            names = " or ".join(repr(str(member)) for member in (cls.REPLACE_ONE, cls.ADD_REMOVE))
            raise InputError(f"relation={shown(value)} is unknown; choose {names}") from None

    @property
    def meaning(self) -> str:
        """The relation in words."""
        return {
            Relation.REPLACE_ONE: "data sets of the same size that differ in one record",
            Relation.ADD_REMOVE: "data sets of which one has one record more",
            Relation.ANY: "the relation under which the sensitivities are stated",
        }[self]

    @property
    def clipping(self) -> int | None:
        """By how many times C one record moves a sum of vectors clipped to norm C (E-2); None where that is not said."""
        return {Relation.REPLACE_ONE: 2, Relation.ADD_REMOVE: 1, Relation.ANY: None}[self]

    @property
    def assumed(self) -> str:
        """What is assumed of the sensitivities of a run that is stated for it."""
        if self.clipping is None:
            return "clipping to norm C has sensitivity 2C under replace-one and C under add-remove"
        return f"sensitivities are {self}, so clipping to norm C counts as {'2C' if self.clipping == 2 else 'C'}"

    def of_mean(self, records: int) -> Relation:
        """The relation of a mean of so many records: replace-one, because with another number it is another mean (E-20).

        >>> Relation.ANY.of_mean(256), Relation.ANY.of_mean(1)
        (<Relation.REPLACE_ONE: 'replace-one'>, <Relation.ANY: 'any'>)
        """
        if records == 1:
            return self
        if self is Relation.ADD_REMOVE:
            raise RelationError(
                f"averaged_over={records} is a number of records, which changes when one is added or removed; if what is "
                "divided by is a constant, state the sum with its noise times that constant, else use replace-one neighbours"
            )
        return Relation.REPLACE_ONE


Stated = tuple[Relation, object]
"""A relation, and what is stated for it."""

UNSTATED: Stated = (Relation.ANY, "")


def common(relations: Iterable[Stated]) -> Relation:
    """The one relation all parts are stated for; RelationError when there are two."""
    return agreed(UNSTATED, relations)[0]


def agreed(stated: Stated, relations: Iterable[Stated]) -> Stated:
    """The same, starting from what is stated already: who keeps it need not look at old parts again."""
    for relation, part in relations:
        if relation is Relation.ANY:
            continue
        if stated[0] not in (Relation.ANY, relation):
            raise RelationError(
                f"{stated[1]} is stated for {stated[0]} neighbours and {part} for {relation} neighbours; "
                "a run has one relation, so restate one of them"
            )
        stated = (relation, part)
    return stated
