"""Boxes of plain HTML for notebooks: a headline, facts in two columns, and tables; no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

BOX_STYLE = 'style="border:1px solid #8886;border-radius:6px;padding:0.7em 1em;max-width:46em;line-height:1.45"'
"""The frame of a box; its colours are those of the page around it."""

_CELL = "style='text-align:left;vertical-align:top;padding:0.1em 1em 0.1em 0;overflow-wrap:anywhere'"
_NAME = "style='text-align:left;vertical-align:top;padding:0.1em 1em 0.1em 0;white-space:nowrap;opacity:0.75'"


def facts_box(headline: str, facts: Mapping[str, str], *, picture: str = "", note: str = "") -> str:
    """Return a box with a headline, one row per fact, and a note; `picture` is HTML between them.

    >>> "<b>holds</b>" in facts_box("holds", {"claimed": "epsilon < 2"})
    True
    >>> "epsilon &lt; 2" in facts_box("holds", {"claimed": "epsilon < 2"})
    True
    """
    rows = "".join(
        f"<tr><td {_NAME}>{escape(name)}</td><td {_CELL}>{escape(text)}</td></tr>"
        for name, text in facts.items()
        if text
    )
    remark = f"<div style='opacity:0.8'>{escape(note)}</div>" if note else ""
    return (
        f"<div {BOX_STYLE}><div style='font-size:1.15em'><b>{escape(headline)}</b></div>"
        f"{picture}<table><tbody>{rows}</tbody></table>{remark}</div>"
    )


def table_box(headline: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a box with a headline and a table.

    >>> table_box("bounds", ["name"], [["theorem9"]]).count("<td")
    1
    """
    head = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td {_CELL}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f"<div {BOX_STYLE}><div style='font-size:1.15em'><b>{escape(headline)}</b></div>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def spent_bar(share: float) -> str:
    """Draw the used part of a budget, a number from 0 to 1, as a bar.

    >>> "width='55.000%'" in spent_bar(0.55)
    True
    """
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f"<svg role='img' aria-label='{width:.0f} % of the budget is used' width='100%' height='14' "
        "style='display:block;margin:0.3em 0'>"
        "<rect x='0' width='100%' y='2' height='10' fill='currentColor' fill-opacity='0.15'/>"
        f"<rect x='0' width='{width:.3f}%' y='2' height='10' fill='#c05010'/></svg>"
    )
