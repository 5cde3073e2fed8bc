"""Charts of one run to one picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from cumulant.errors import InputError
from cumulant.figures.charts import Chart, Curve
from cumulant.figures.drawing import Look, canvas, grid, save, style

SUFFIXES = (".png", ".svg")

LOOKS = {
    look.column: look
    for look in (
        Look("rdp", "Rényi divergences", "#0050a0", (0, (5, 2)), ""),
        Look("upper", "upper bound", "#101010", "-", "v"),
        Look("lower", "lower bound", "#c03010", "-", "^"),
        Look("best", "best", "#101010", "-", ""),
        Look("attack", "no attack is above", "#101010", "-", ""),
        Look("guess", "blind guessing", "#808080", (0, (1, 1)), ""),
        Look("claimed", "claimed", "#101010", "-", ""),
        Look("measured", "measured", "#c03010", (0, (5, 2)), "o"),
    )
}
"""Curves that are not rows of the table of bounds, which take what comes next."""

_COLOURS = ("#0050a0", "#208030", "#a05080", "#b08a00", "#30a0c8", "#70c080", "#d07030", "#6050c0")
_DASHES = ((0, (6, 2, 1, 2)), (0, (2, 1)), (0, (5, 2)), (0, (1, 1)), (0, (3, 1, 1, 1, 1, 1)))


_MARKERS, _INSIDE = 9, 5
"""Markers on a curve, about, and curves whose names fit into a panel."""


def checked(path: Path) -> Path:
    """A file that can be written, or an InputError that says why not."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"--out {path} must end in {' or '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no directory {path.parent}")
    return path


def draw(charts: Sequence[Chart], title: str, path: Path) -> None:
    """One panel per chart, side by side and at most two in a row."""
    columns = min(len(charts), 2)
    rows = -(-len(charts) // 2)
    figure = canvas((6.2 * columns, 4.2 * rows + 0.4))
    figure.set_layout_engine("constrained")
    for axes, chart in zip(figure.subplots(rows, columns, squeeze=False).flat, charts, strict=True):
        _panel(axes, chart)
    figure.suptitle(title, fontsize=11)
    try:
        save(figure, path)
    except OSError as error:
        raise InputError(f"--out {path} cannot be written: {error.strerror}") from None


def _panel(axes: Any, chart: Chart) -> None:
    spare = zip(cycle(_COLOURS), cycle(_DASHES))
    for name, curve in chart.curves.items():
        look = LOOKS.get(name) or Look(name, name, *next(spare), "")
        shown = np.isfinite(curve.y) & ((curve.y > 0) | (not chart.logarithmic))
        axes.plot(curve.x[shown], curve.y[shown], label=look.label, markevery=_every(curve), **style(look))
    if {"upper", "lower"} <= chart.curves.keys():
        upper, lower = chart.curves["upper"], chart.curves["lower"]
        low = np.interp(np.log(upper.x), np.log(lower.x), lower.y)
        axes.fill_between(upper.x, low, upper.y, where=np.isfinite(upper.y), color="#101010", alpha=0.12, linewidth=0)
    axes.set(xscale="log", yscale="log" if chart.logarithmic else "linear", xlabel=chart.across, ylabel=chart.up)
    axes.set_title(chart.title, fontsize=10)
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if len(chart.curves) > _INSIDE else {}
    axes.legend(frameon=False, fontsize=8, handlelength=3.2, **beside)
    grid(axes)


def _every(curve: Curve) -> int:
    """The distance of markers: each point has one where points are few."""
    return max(1, len(curve.x) // _MARKERS)
