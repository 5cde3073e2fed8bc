"""A run: several mechanisms, each with the number of times it ran on the same data."""

from __future__ import annotations

from collections.abc import Mapping

from cumulant import domains
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.relation import common


class Run(Expression):
    """A sum of mechanisms, each with the number of times it ran; two runs are equal when their terms are."""

    __slots__ = ("_hash", "_terms")

    def __init__(self, terms: Mapping[Mechanism, int]) -> None:
        self._terms = dict(terms)
        self._hash = hash(frozenset(self._terms.items()))
        common((mechanism.relation, mechanism) for mechanism in self._terms)

    @property
    def terms(self) -> Mapping[Mechanism, int]:
        return dict(self._terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self._terms == other._terms

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Run], tuple[dict[Mechanism, int]]]:
        return Run, (self._terms,)  # hashes of text differ from process to process

    def __str__(self) -> str:
        return " + ".join(f"{m} * {times}" if times > 1 else str(m) for m, times in self._terms.items()) or "nothing"

    def __repr__(self) -> str:
        return str(self)


def run(terms: Mapping[Mechanism, int]) -> Expression:
    """The run with these terms; a single mechanism that ran once is itself."""
    terms = {mechanism: domains.times(times) for mechanism, times in terms.items()}
    if len(terms) == 1:
        ((mechanism, times),) = terms.items()
        if times == 1:
            return mechanism
    return Run(terms)
