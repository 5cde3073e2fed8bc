"""A picture of a risk without curves: how many of a hundred attackers succeed, without the release and with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cumulant.accounting.numbers import percent
from cumulant.accounting.risk import WORDS, share_text
from cumulant.errors import InputError
from cumulant.plotting.drawing import canvas, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 10
"""Dots in a row; a hundred dots are read as per cent (convention)."""

RIGHT = "#c03010"
"""The colour of a success; the three colours differ in grey too."""

PART = "#e8b0a0"
"""The colour of a part of a success."""

WRONG = "#d8d8d8"
"""The colour of a failure."""


def people(before: float, success: float, kind: str) -> Figure:
    """Draw a hundred attackers without the release and a hundred with it; red ones succeed."""
    figure = canvas((8.6, 5.0))
    figure.subplots_adjust(left=0.04, right=0.96, top=0.74, bottom=0.04, wspace=0.12)
    without, with_it = figure.subplots(1, 2)
    _crowd(without, before, f"without the release: {share_text(before)}")
    _crowd(with_it, success, f"with it: at most {percent(success)}")
    action = WORDS[kind].without if kind in WORDS else "find a member"
    figure.suptitle(f"Of 100 attackers, so many {action}\n(they know everything else; red dots succeed)", fontsize=12)
    return figure


def _crowd(axes: Any, share: float, title: str) -> None:
    whole, rest = divmod(100 * share, 1.0)
    colours = [RIGHT] * int(whole) + ([PART] if rest > 1e-9 else [])
    colours = (colours + [WRONG] * (SIDE * SIDE))[: SIDE * SIDE]
    places = range(SIDE * SIDE)
    axes.scatter(
        [i % SIDE for i in places],
        [-(i // SIDE) for i in places],
        c=colours,
        s=150,
        edgecolors="#606060",
        linewidths=0.5,
    )
    axes.set_title(title, fontsize=12)
    axes.set_aspect("equal")
    axes.axis("off")


def save_people(figure: Figure, path: Path) -> None:
    """Write the picture; InputError where that is not possible."""
    try:
        save(figure, path)
    except OSError as error:
        raise InputError(f"--out {path} cannot be written: {error.strerror}") from None
