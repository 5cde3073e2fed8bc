"""The panels of Figures 1 and 2 as pictures, readable in grey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant.paper.figures.series import Table
from cumulant.plotting.drawing import Look, canvas, grid, save, style

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Picture:
    """One figure: its axes and its curves, of which the last `added` are not in the paper."""

    name: str
    title: str
    across: str
    up: str
    looks: tuple[Look, ...]
    added: int

    def curves(self, extended: bool) -> tuple[Look, ...]:
        """Return the curves of the paper, or all of them."""
        return self.looks if extended else self.looks[: -self.added]


_BAD = Look("bad", "bad data, approximation", "#a05080", ":", "P")


_GOOD = Look("good", "good data, approximation", "#b08a00", (0, (3, 1, 1, 1, 1, 1)), "*")


_BEST = Look("best", "RDP: best bound of cumulant", "#101010", "-", "D")
"""The look of the curve that both figures show."""


FIGURE1 = Picture(
    "figure1",
    "Figure 1: Rényi divergence of one round, rate γ = 0.001",
    "order α",
    "Rényi divergence ε(α), nats",
    (
        Look("upper", "Theorem 9 (upper bound)", "#0050a0", "-", "o"),
        Look("lower", "Proposition 11 (lower bound)", "#c03010", (0, (5, 2)), "s"),
        _BAD,
        _GOOD,
        Look("theorem27", "Theorem 27, term by term", "#30a0c8", (0, (2, 1)), "x"),
        _BEST,
    ),
    added=2,
)


FIGURE2 = Picture(
    "figure2",
    "Figure 2: ε at δ = 1e-8 of k rounds, rate γ = 0.001",
    "rounds k",
    "ε at δ = 1e-8, nats",
    (
        Look("naive", "naive composition", "#808080", (0, (1, 1)), "^"),
        Look("strong", "strong composition (KOV)", "#208030", (0, (6, 2, 1, 2)), "v"),
        Look("upper", "RDP: Theorem 9, eq. (3)\n(Lemma 3 at order infinity)", "#0050a0", "-", "o"),
        Look("lower", "RDP: lower bound, eq. (3)", "#c03010", (0, (5, 2)), "s"),
        _BAD,
        _GOOD,
        Look("optimal", "optimal composition, exact", "#70c080", (0, (2, 1)), "x"),
        _BEST,
        Look("true_upper", "true ε: upper bound", "#e07000", "-", "v"),
        Look("true_lower", "true ε: lower bound", "#e07000", (0, (4, 1)), "^"),
    ),
    added=4,
)


_PLACES = (0, 1, 2, 4, 5, 6, 7)
"""The places of the panels in the order of their letters; the legend stands at place 3, at the end of the first row."""


_MARKERS = 9


def draw(picture: Picture, tables: Sequence[Table], extended: bool, out: Path) -> list[Path]:
    """Draw the figure as PNG and SVG; `extended` adds the curves that the paper did not have."""
    figure = canvas()
    axes = figure.subplots(2, 4)
    looks = picture.curves(extended)
    for table, place in zip(tables, _PLACES, strict=True):
        _panel(axes.flat[place], picture, table, looks)
    for row in axes:
        row[0].set_ylabel(picture.up)
    legend = axes.flat[3]
    legend.axis("off")
    handles = [legend.plot([], [], label=look.label, **style(look))[0] for look in looks]
    legend.legend(handles=handles, loc="center", frameon=False, fontsize=9.5, handlelength=3.6, labelspacing=1)
    figure.suptitle(picture.title + (", with bounds found since" if extended else ""), fontsize=12)
    name = picture.name + ("-extended" if extended else "")
    paths = [out / f"{name}.png", out / f"{name}.svg"]
    for path in paths:
        save(figure, path)
    return paths


def _panel(axes: Any, picture: Picture, table: Table, looks: Sequence[Look]) -> None:
    x = table.columns[table.axis]
    shown = [look for look in looks if look.column in table.columns]
    for number, look in enumerate(shown):
        y = table.columns[look.column]
        known = np.isfinite(y)
        places = _spread(x[known], number / len(shown)) if known.sum() > _MARKERS else None
        axes.plot(x[known], y[known], markevery=places, **style(look))
    axes.set(xscale="log", yscale="log", xlabel=picture.across)
    axes.set_title(table.panel.title, fontsize=10)
    grid(axes)


def _spread(x: np.ndarray[Any, Any], shift: float) -> list[int]:
    """Return the places of markers: evenly along the logarithmic axis.

    Each curve's are a little further right than the last one's.
    """
    marks = np.log(x[0]) + np.log(x[-1] / x[0]) * (np.arange(_MARKERS) + shift) / _MARKERS
    return sorted({int(i) for i in np.searchsorted(np.log(x), marks) if i < x.size})
