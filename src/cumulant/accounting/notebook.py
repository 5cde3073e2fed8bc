"""Runs and guarantees as a notebook shows them.

Plain HTML without scripts, in the colours of the page around it.
"""

from __future__ import annotations

import math
from html import escape

from cumulant.accounting import text
from cumulant.accounting.numbers import rounded_down, rounded_up
from cumulant.accounting.plan import Plan
from cumulant.accounting.run import RunRecord
from cumulant.html_box import BOX_STYLE

_ROOM = 1.25
"""End of the axis of a bar, as a multiple of the upper end; convention."""


def guarantee(plan: Plan) -> str:
    """The answer, the bar of its interval, what ran, and the assumptions folded.

    >>> from cumulant.mechanisms.pure_dp import PureDP
    >>> "<b>epsilon = 1</b>" in guarantee(PureDP(1).guarantee(delta=0).plan)
    True
    """
    question, value = plan.question, plan.answer.value
    number = f"<b>{question.wanted} = {rounded_up(value)}</b> at {question.asked} = {escape(str(question.value))}"
    sentences = [text.interval(plan), text.doubled(plan.run), text.what_ran(plan.run), text.proof(plan)]
    if not text.says_something(plan):
        sentences = [text.headline(plan), text.what_ran(plan.run)]
    listed = "".join(f"<li>{escape(each)}</li>" for each in text.assumptions(plan.run))
    return (
        f"<div {BOX_STYLE}><div style='font-size:1.15em'>{number}</div>"
        f"<div style='opacity:0.8'>{escape(text.relation(plan.run))}; {escape(plan.answer.rigour)}</div>"
        f"{interval_bar(plan.lower, value, question.wanted)}"
        + "".join(f"<div>{escape(each)}</div>" for each in sentences if each)
        + f"<details><summary>What is assumed</summary><ul>{listed}</ul></details></div>"
    )


def run(ran: RunRecord) -> str:
    """Return a run as a table, the relation, and the assumptions folded.

    >>> from cumulant.mechanisms.pure_dp import PureDP
    >>> "<td>PureDP(epsilon=1)</td><td style='text-align:right'>3</td>" in run((PureDP(1) * 3).record())
    True
    """
    rows = "".join(
        f"<tr><td>{escape(text.short_name(part))}</td><td style='text-align:right'>{part.times:,}</td></tr>"
        for part in ran.parts[: text.MOST_TERMS]
    )
    if (more := len(ran.parts) - text.MOST_TERMS) > 0:
        rows += f"<tr><td>and {more:,} further mechanisms</td><td></td></tr>"
    listed = "".join(f"<li>{escape(each)}</li>" for each in text.assumptions(ran))
    return (
        f"<div {BOX_STYLE}><table><thead><tr><th style='text-align:left'>mechanism</th><th>times</th></tr></thead>"
        f"<tbody>{rows}</tbody></table><div style='opacity:0.8'>{escape(text.relation(ran))}</div>"
        f"<details><summary>What is assumed</summary><ul>{listed}</ul></details></div>"
    )


def interval_bar(lower: float | None, upper: float, name: str) -> str:
    """Draw the interval on an axis from 0; empty where an end is unknown or infinite."""
    if lower is None or not 0 < upper < math.inf:
        return ""
    left, right = 100 * lower / (_ROOM * upper), 100 / _ROOM
    said = f"the true {name} lies between {rounded_down(lower)} and {rounded_up(upper)}"
    return (
        f"<svg role='img' aria-label='{said}' width='100%' height='34' style='display:block;margin:0.3em 0'>"
        "<line x1='0' x2='100%' y1='11' y2='11' stroke='currentColor' stroke-opacity='0.35'/>"
        f"<rect x='0' width='{left:.3f}%' y='6' height='10' fill='currentColor' fill-opacity='0.18'/>"
        f"<rect x='{left:.3f}%' width='{max(right - left, 0.4):.3f}%' y='3' height='16' fill='#c05010'/>"
        f"<text x='{right:.3f}%' y='31' text-anchor='end' font-size='11' fill='currentColor'>"
        f"{rounded_down(lower)} … {rounded_up(upper)}</text>"
        "<text x='0' y='31' font-size='11' fill='currentColor'>0</text></svg>"
    )
