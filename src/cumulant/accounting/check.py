"""A claim of somebody else, judged: it holds, it is false, or neither can be shown."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from cumulant.accounting import answer
from cumulant.accounting.numbers import brief
from cumulant.accounting.numbers import rounded_down as printed_down
from cumulant.accounting.numbers import rounded_up as printed_up
from cumulant.accounting.question import DEFAULT_METHOD, Question
from cumulant.accounting.run import RunRecord
from cumulant.accounting.serialization import plain
from cumulant.domains import DELTA, EPSILON, Exact, Number
from cumulant.html_box import facts_box
from cumulant.numerics.rounding import as_printed, rounded_down, rounded_up, stated

_NEXT_TO_PURE = (Exact("1e-6"), Exact("1e-100"))
"""Deltas beside 0: a claim that holds at delta = 0 holds at these, so data sets that refute it here refute the pure one."""


@dataclass(frozen=True, slots=True)
class Check:
    """The verdict about the claim that a run is (claimed, delta)-differentially private.

    `verdict` is "holds" where that is proved, "false" where it lies below the lower end, shown by the neighbouring data sets
    that `witness` names, and "open" where it lies between: raise `accuracy`. `epsilon` is what is proved at this delta, `lower`
    what no claim can undercut, None where nothing is known; `slack` is how much more the claim grants than is proved to be
    enough, negative where it grants less. A check is true where the claim holds.

    >>> import cumulant as cm
    >>> found = cm.Gaussian(sigma=1).check(epsilon=4, delta=1e-5)
    >>> found.verdict, found.lower > 4, bool(found), round(found.slack, 3)
    ('false', True, False, -0.377)
    """

    verdict: str
    claimed: float
    delta: float
    epsilon: float
    lower: float | None
    slack: float
    witness: str
    rigour: str
    relation: str
    run: str

    def __bool__(self) -> bool:
        return self.verdict == "holds"

    def __repr__(self) -> str:
        return (
            f"Check(verdict={self.verdict!r}, claimed={self.claimed!r}, delta={self.delta!r}, epsilon={self.epsilon!r}, "
            f"lower={self.lower!r}, run={brief(self.run)!r})"
        )

    def _repr_html_(self) -> str:
        from cumulant.accounting.notebook import interval_bar

        headlines = {"holds": "The claim holds", "false": "The claim is false", "open": "The claim is open"}
        known = "unknown" if self.lower is None else printed_down(self.lower)
        return facts_box(
            headlines[self.verdict],
            {
                "claimed": f"epsilon = {printed_up(self.claimed, 15)} at delta = {printed_up(self.delta, 15)}",
                "proved to be enough": f"epsilon = {printed_up(self.epsilon)} ({self.rigour})",
                "no claim can be below": known,
                "shown by": self.witness,
                "neighbours": self.relation,
                "run": brief(self.run),
            },
            picture=interval_bar(self.lower, self.epsilon, "epsilon"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values; infinity is the text "inf"."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    def to_json(self) -> str:
        """Return the fields as one JSON object."""
        return json.dumps(self.to_dict())


def _plain(value: Any) -> Any:
    return "-inf" if value == -math.inf else plain(value)


def check_claim(run: RunRecord, epsilon: Number, delta: Number, accuracy: Number) -> Check:
    """Judge this claim by the epsilon at its delta.

    Where that leaves it open, by the delta at its epsilon.
    """
    claimed, given = EPSILON.check("epsilon", epsilon), DELTA.check("delta", delta)
    by_delta = Question.parse_query(DEFAULT_METHOD, None, None, accuracy, "delta").with_value(given)
    found = answer.answer(run, by_delta)
    lower, witness = _lower(run, by_delta, found.value)
    value, rigour, verdict = found.value, found.rigour, "open"
    if _reached(value, claimed) and rigour != "estimated":
        verdict = "holds"
    elif lower is not None and not _reached(lower, claimed):
        verdict = "false"
    elif 0 < given < 1:
        by_epsilon = Question.parse_query(DEFAULT_METHOD, None, None, accuracy, "epsilon").with_value(claimed)
        enough = answer.answer(run, by_epsilon)
        needed, name, _ = answer.lower(run, by_epsilon, enough.value)
        if _reached(enough.value, given) and enough.rigour != "estimated":
            verdict, value, rigour = "holds", min(value, rounded_up(claimed)), enough.rigour
        elif needed is not None and not _reached(needed, given):
            verdict, lower, witness = "false", max(lower or 0.0, rounded_down(claimed)), name
    slack = rounded_down(claimed - as_printed(value)) if math.isfinite(value) else -math.inf
    return Check(verdict, stated(claimed), stated(given), value, lower, slack, witness, rigour, run.relation, run.text)


def _reached(bound: float, claimed: Fraction) -> bool:
    """Return True if a bound, read as it prints, is at most the claim.

    A printed bound holds too.
    """
    return math.isfinite(bound) and as_printed(bound) <= claimed


def _lower(run: RunRecord, question: Question, found: float) -> tuple[float | None, str]:
    """Return a number that no claim can undercut at this delta, and the data sets that show it; None if none is known."""
    if question.value > 0:
        return answer.lower(run, question, found)[:2]
    known = [answer.lower(run, question.with_value(delta), math.inf)[:2] for delta in _NEXT_TO_PURE]
    shown = [(low, name) for low, name in known if low is not None]
    return max(shown, default=(None, ""), key=lambda one: one[0])
