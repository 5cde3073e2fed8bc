"""The paper's data structure: a dictionary from mechanism to count (Section 3.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from cumulant import domains
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.mechanisms.run import run
from cumulant.mechanisms.sampled import Sampled
from cumulant.notation import parse
from cumulant.relation import common
from cumulant.sampling.scheme import Scheme


class Accountant(Expression):
    """Keeps what ran on one data set and answers the questions of any expression about all of it.

    Composing takes constant time whatever `times` is; space and the time of a question grow with the number of distinct
    mechanisms only. The parameters of what is composed must not depend on earlier outputs (Lemma 5).

    >>> import cumulant as cm
    >>> accountant = Accountant()
    >>> step = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
    >>> accountant.compose(step, times=600_000)
    >>> accountant.epsilon(delta=1e-8) == (step * 600_000).epsilon(delta=1e-8)
    True
    >>> Accountant.from_json(accountant.to_json()) == accountant
    True
    """

    __slots__ = ("_terms",)

    def __init__(self) -> None:
        self._terms: dict[Mechanism, int] = {}

    @property
    def terms(self) -> Mapping[Mechanism, int]:
        return MappingProxyType(self._terms)

    def compose(self, expression: Expression, times: int = 1) -> None:
        """Record that the expression ran `times` times; a refused input changes nothing.

        A mechanism that holds a Python object is kept as that object, and asked at every question.
        """
        if not isinstance(expression, Expression):
            raise InputError(f"{shown(expression)} is not a mechanism or a run; for text use parse(text)")
        count = domains.times(times)
        new = {mechanism: count * each for mechanism, each in expression.terms.items()}
        if not new.keys() <= self._terms.keys():
            common((mechanism.relation, mechanism) for mechanism in (*self._terms, *new))
        totals = {m: domains.times(self._terms.get(m, 0) + each) for m, each in new.items()}
        self._terms.update(totals)

    def __matmul__(self, scheme: Scheme) -> Sampled:
        return self.run() @ scheme

    def copy(self) -> Accountant:
        """An accountant with the same history, which from now on goes its own way."""
        twin = Accountant()
        twin._terms = dict(self._terms)
        return twin

    def run(self) -> Expression:
        """All that was composed, as one frozen expression."""
        if not self._terms:
            raise InputError("nothing was composed yet; call compose(mechanism) first")
        return run(self._terms)

    def to_json(self) -> str:
        """The history as JSON text: the notation of each mechanism and its count."""
        return json.dumps({"cumulant": 1, "terms": [[m.notation(), times] for m, times in self._terms.items()]})

    @classmethod
    def from_json(cls, text: str) -> Accountant:
        """The accountant that `to_json` wrote."""
        try:
            state = json.loads(text)
            version, terms = state["cumulant"], [(str(name), times) for name, times in state["terms"]]
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            raise InputError(f"this is not the state of an accountant ({error}); give the text of to_json()") from error
        if version != 1:
            raise InputError(f"accountant state of version {shown(version)} is not known; this library reads version 1")
        accountant = cls()
        for name, times in terms:
            accountant.compose(parse(name), times)
        return accountant

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accountant) and self._terms == other._terms

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(run(self._terms))

    def __repr__(self) -> str:
        return f"<Accountant of {self}>"
