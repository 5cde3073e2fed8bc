"""The paper's data structure: a dictionary from mechanism to count (Section 3.3)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

from cumulant import domains
from cumulant.accounting.numbers import rounded_up
from cumulant.accounting.run import RunRecord
from cumulant.domains import Exact, Number
from cumulant.errors import BudgetRefused, InputError, shown
from cumulant.lock import Lock
from cumulant.mechanisms.mechanism import Expression, Mechanism, Sampled, run
from cumulant.notation import parse
from cumulant.relation import UNSTATED, Relation, agreed
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import Scheme

if TYPE_CHECKING:
    from cumulant.filters.amounts import Amounts
    from cumulant.filters.filter import Tariff


FORMAT = 2
"""The version of the JSON that is written. Format 1 said its number as "cumulant" and had no release."""


class Accountant(Expression):
    """The history of one data set; it answers the questions of any expression about all of it.

    Composing a mechanism takes constant time, whatever `times` is and however many others there are; space and the time of a
    question grow with the number of distinct mechanisms only. `epsilon` and `delta` are about parameters that do not depend on
    earlier outputs (Lemma 5).

    With `limit=(epsilon, delta)` they may: every composition is charged by a rule that stays valid when each mechanism is
    chosen from all earlier answers (Theorem 1 of docs/ledger-proofs.md), and one that does not fit raises BudgetRefused
    before anything runs. `epsilon(delta) <= limit` is no such rule. `odometer` is what the rule answers for so far.

    Threads may share an accountant: a lock makes check and update one step, and each question is about one moment.

    >>> import cumulant as cm
    >>> accountant = Accountant()
    >>> step = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
    >>> accountant.compose(step, times=600_000)
    >>> accountant.epsilon(delta=1e-8) == (step * 600_000).epsilon(delta=1e-8)
    True
    >>> Accountant.from_json(accountant.to_json()) == accountant
    True
    >>> careful = Accountant(limit=(1, 1e-6))
    >>> careful.compose(cm.Gaussian(sigma=7.75))
    >>> careful.compose(cm.Gaussian(sigma=5.06))
    Traceback (most recent call last):
    ...
    cumulant.errors.BudgetRefused: Gaussian(sigma=5.06) does not fit into (1, 1e-6): ...
    """

    __slots__ = ("_limit", "_lock", "_stated", "_tariff", "_terms", "_total")

    def __init__(self, limit: tuple[Number, Number] | None = None) -> None:
        self._lock = Lock()
        self._terms: dict[Mechanism, int] = {}
        self._stated = UNSTATED
        self._limit = None if limit is None else _pair(limit)
        self._tariff = None if self._limit is None else _tariff(*self._limit)
        self._total = None if self._tariff is None else self._tariff.rule.zero()

    @property
    def limit(self) -> tuple[Exact, Exact] | None:
        """Return the (epsilon, delta) that holds whatever is composed, if one was given."""
        return self._limit

    @property
    def odometer(self) -> float:
        """Return an epsilon that holds at the delta of the limit for the history so far.

        It holds however the history was chosen.

        >>> import cumulant as cm
        >>> careful = Accountant(limit=(1, 1e-6))
        >>> careful.compose(cm.Gaussian(sigma=7.75))
        >>> careful.odometer, careful.epsilon(delta=1e-6)
        (0.631, 0.521)
        """
        if self._tariff is None or self._total is None:
            raise InputError(
                "an accountant without a limit has no odometer; make one by Accountant(limit=(epsilon, delta))"
            )
        return self._tariff.rule.odometer(self._total)

    @property
    def terms(self) -> Mapping[Mechanism, int]:
        """Return each distinct mechanism and how often it was composed until now."""
        with self._lock:
            return MappingProxyType(dict(self._terms))

    def record(self) -> RunRecord:
        return run(self.terms).record()

    @property
    def relation(self) -> Relation:
        return self._stated[0]

    def compose(self, expression: Expression, times: int = 1) -> None:
        """Record that the expression ran `times` times; a refused input changes nothing.

        A mechanism that holds a Python object is kept as that object, and asked at every question.
        """
        if not isinstance(expression, Expression):
            raise InputError(f"{shown(expression)} is not a mechanism or a run; for text use parse(text)")
        count = domains.times(times)
        what = run(expression.terms)  # of an accountant what it holds now; its lock is free again before ours is taken
        new = {mechanism: count * each for mechanism, each in what.terms.items()}
        # prices take longer than all the rest, so other threads do not wait for them
        prices = [] if self._tariff is None else [(p.upper, each * count) for p, each in self._tariff.prices(what)]
        with self._lock:
            stated = agreed(new, self._stated)
            totals = {m: domains.times(self._terms.get(m, 0) + each) for m, each in new.items()}
            if prices:
                self._total = self._charged(what, count, prices)
            self._stated = stated
            self._terms.update(totals)

    def _charged(self, what: Expression, count: int, prices: list[tuple[Amounts, int]]) -> Amounts:
        """Add prices to the total; BudgetRefused if the rule does not allow the sum."""
        assert self._tariff is not None and self._limit is not None and self._total is not None  # noqa: PT018
        rule = self._tariff.rule
        total = self._total + rule.charge(prices)
        if rule.certificate(total) is not None:
            return total
        asked = math.gcd(*(times for _, times in prices))
        fits = rule.would_fit(self._total, [(price, times // asked) for price, times in prices], asked)
        spent, text = rule.odometer(self._total), str(what) if count == 1 else f"({what}) * {count}"
        raise BudgetRefused(
            f"{text} does not fit into ({self._limit[0]}, {self._limit[1]}): epsilon {rounded_up(spent)} is spent, and {fits} "
            f"of {asked} would fit; use more noise, or fewer rounds",
            requested=text,
            spent=spent,
            held=spent,
            would_fit=fits,
            asked=asked,
        )

    @overload
    def __matmul__(self, scheme: Rated) -> Sampled: ...
    @overload
    def __matmul__(self, scheme: Scheme) -> Expression: ...
    def __matmul__(self, scheme: Scheme) -> Expression:
        return self.run() @ scheme

    def copy(self) -> Accountant:
        """Return an accountant with the same history, which from now on goes its own way.

        `copy.copy`, `copy.deepcopy` and `pickle` do the same.
        """
        twin = Accountant(self._limit)
        with self._lock:
            twin._terms, twin._total, twin._stated = dict(self._terms), self._total, self._stated
        return twin

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Accountant:
        return self.copy()

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        twin = self.copy()
        return None, {name: getattr(twin, name) for name in self.__slots__}

    def run(self) -> Expression:
        """Return all that was composed, as one frozen expression."""
        terms = self.terms
        if not terms:
            raise InputError("nothing was composed yet; call compose(mechanism) first")
        return run(terms)

    def to_json(self) -> str:
        """Return the history as JSON text: the notation of each mechanism and its count."""
        terms = [[mechanism.notation(), times] for mechanism, times in self.terms.items()]
        state: dict[str, Any] = {"format": FORMAT, "cumulant": version("cumulant"), "terms": terms}
        if self._limit is not None:
            state["limit"] = [str(number) for number in self._limit]
        return json.dumps(state)

    @classmethod
    def from_json(cls, text: str) -> Accountant:
        """Read the accountant that `to_json` wrote, in this release or an earlier one."""
        try:
            state = json.loads(text)
            found, newest = (state["format"], FORMAT) if "format" in state else (state["cumulant"], 1)
            listed, limit = state["terms"], state.get("limit")
            if not isinstance(listed, list):
                raise TypeError("its terms are not a list")
            terms = [(name, times) for name, times in listed if isinstance(name, str)]
            if len(terms) < len(listed):
                raise TypeError("a term is not described by a text")
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(f"this is not the state of an accountant ({error}); give the text of to_json()") from error
        if type(found) is not int or not 1 <= found <= newest:
            raise InputError(f"format {shown(found)} of an accountant is not known; this library reads 1 to {FORMAT}")
        accountant = cls(limit)
        for name, times in terms:
            accountant.compose(parse(name), times)
        return accountant

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accountant) and (self.terms, self._limit) == (other.terms, other._limit)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(run(self.terms))

    def __repr__(self) -> str:
        return f"<Accountant of {self}>"


def _pair(limit: Any) -> tuple[Exact, Exact]:
    """Return the two numbers of a limit."""
    numbers = domains.listed("limit", limit)
    if len(numbers) != 2:
        raise InputError(f"limit={shown(limit)} must be a pair (epsilon, delta)")
    return domains.EPSILON.check("epsilon", numbers[0]), domains.DELTA.check("delta", numbers[1])


def _tariff(epsilon: Exact, delta: Exact) -> Tariff:
    """Return the rule of a limit; its mathematics is loaded by those who have one."""
    from cumulant.filters.filter import Tariff
    from cumulant.filters.mixture import Mixture

    return Tariff(Mixture.for_budget(epsilon, delta))
