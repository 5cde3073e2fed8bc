"""Draw the charts of one run as one picture."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant.accounting.numbers import brief, rounded_up
from cumulant.curves.cache import question
from cumulant.domains import EPSILON, Domain, Number
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Expression
from cumulant.output import check_target, open_output
from cumulant.plotting.charts import CHARTS, CLAIM, Chart, Curve, with_claim
from cumulant.plotting.curve_labels import CHARACTER, LABEL_BOX, LETTERS, LINE, Area, label_area, label_curves
from cumulant.plotting.drawing import Look, canvas, grid, save, style
from cumulant.progress import step_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROPER = Domain(Fraction(0), Fraction(1), hint="delta is a probability", extreme=True)

SUFFIXES = (".png", ".svg", ".pdf")

LOOKS = {
    look.column: look
    for look in (
        Look("rdp", "Rényi divergences", "#0050a0", (0, (5, 2)), ""),
        Look("upper", "upper bound", "#101010", "-", ""),
        Look("lower", "lower bound", "#c03010", (0, (4, 2)), ""),
        Look("best", "best", "#101010", "-", ""),
        Look("attack", "no attack is above", "#101010", "-", ""),
        Look("guess", "blind guessing", "#808080", (0, (1, 1)), ""),
        Look(CLAIM, "claimed", "#7030a0", (0, (6, 2, 1, 2)), ""),
        Look("claimed", "claimed", "#101010", "-", ""),
        Look("measured", "measured", "#c03010", (0, (5, 2)), "o"),
    )
}
"""Curves that are not rows of the table of bounds, which take what comes next."""

_COLOURS = ("#0050a0", "#208030", "#a05080", "#b08a00", "#30a0c8", "#70c080", "#d07030", "#6050c0")
_DASHES = ((0, (6, 2, 1, 2)), (0, (2, 1)), (0, (5, 2)), (0, (1, 1)), (0, (3, 1, 1, 1, 1, 1)))
_MARKS = ("", "o", "s", "D", "x", "P", "<")
"""Dashes and markers together repeat after thirty-five curves, so that none is told from another by its colour alone."""


_MARKERS = 9
"""Markers on a curve, about; convention."""

_INSIDE = 5
"""Curves of a panel whose names fit onto them; more get a legend beside the panel. Convention."""

_NEAR_TITLE = 0.88
"""The part of a panel's height above which no label stands over its point; measured: a label and its gap take 0.1."""

BAND = "#e07000"
"""The colour of the band between the ends of an interval; the page and the notebook use the same."""

_BAND_NAME = "the true ε"
"""The name of that band; a run whose ends coincide has a band as thin as its line."""


def check_writable(path: Path, option: str = "--out") -> Path:
    """Return a file that can be written, or raise an InputError that says why not."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{option} {path} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if not path.parent.is_dir():
        raise InputError(f"{option} {path}: there is no directory {path.parent}")
    return path


def picture(
    run: Expression,
    delta: Number,
    kind: str,
    out: str | Path | None = None,
    bounds: str = "best",
    title: str | None = None,
    claim: Number | None = None,
) -> Figure:
    """Draw one picture of a run; `title` stands above it instead of the run, and `claim` is a claimed epsilon.

    It is written to a file, with its numbers in a table beside it, if one is named.
    """
    words: tuple[object, ...] = (kind, bounds)
    if not all(type(word) is str for word in words):
        raise InputError(f"kind={shown(kind)} and bounds={shown(bounds)} must be names, such as 'all' and 'best'")
    if kind not in ["all", *CHARTS]:
        raise InputError(f"kind={shown(kind)} is unknown; choose one of all, {', '.join(CHARTS)}")
    if bounds not in ("best", "all"):
        raise InputError(f"bounds={shown(bounds)} is unknown; choose best or all")
    if not isinstance(title, str | None):
        raise InputError(f"title={shown(title)} must be a text")
    asked = PROPER.check("delta", delta)
    claimed = None if claim is None else EPSILON.check("claim", claim)
    if not isinstance(out, str | Path | None):
        raise InputError(f"out={shown(out)} must be the name of a file")
    path = None if out is None else check_writable(Path(out))
    canvas()  # what is missing is said before the work, not after it
    names = list(CHARTS) if kind == "all" else [kind]
    charts = []
    with (
        question(),
        step_progress(len(names) + 1) as tell,
    ):  # all charts are one question: a user's densities are integrated once
        for name in names:
            tell(name)
            charts.append(with_claim(name, CHARTS[name](run, asked, bounds), claimed))
        tell("drawing")
        figure = draw_charts(charts, str(run) if title is None else title)
    if path is not None:
        write(figure, charts, path)
    return figure


def draw_charts(charts: Sequence[Chart], title: str) -> Figure:
    """Draw one panel per chart, side by side and at most two in a row."""
    columns = min(len(charts), 2)
    rows = -(-len(charts) // 2)
    figure = canvas((6.2 * columns, 4.2 * rows + 0.4))
    figure.set_layout_engine("constrained")
    for axes, chart in zip(figure.subplots(rows, columns, squeeze=False).flat, charts, strict=True):
        _panel(axes, chart)
    figure.suptitle(textwrap.fill(brief(title, 240), 62 * columns, break_long_words=False), fontsize=11)
    return figure


def write(figure: Figure, charts: Sequence[Chart], path: Path, inputs: Sequence[Path] = ()) -> None:
    """Write the picture and, under the same name with .csv, its numbers.

    Never onto one of the inputs.
    """
    numbers = path.with_suffix(".csv")
    check_target(numbers, inputs)
    try:
        save(figure, path)
        with open_output(numbers, inputs) as file:
            table = csv.writer(file)
            table.writerow(["chart", "curve", "x", "y"])
            for chart in charts:
                for name, curve in chart.curves.items():
                    table.writerows([chart.title, name, x, y] for x, y in zip(curve.x, curve.y, strict=True))
    except OSError as error:
        raise InputError(f"--out {path} cannot be written: {error.strerror}") from None


def _panel(axes: Any, chart: Chart) -> None:
    spare = zip(cycle(_COLOURS), cycle(_DASHES), cycle(_MARKS))
    lines = {}
    for name, curve in chart.curves.items():
        look = LOOKS.get(name) or Look(name, name, *next(spare))
        shown = np.isfinite(curve.y) & ((curve.y > 0) | (not chart.logarithmic))
        (lines[name],) = axes.plot(
            curve.x[shown], curve.y[shown], label=look.label, markevery=_every(curve), **style(look)
        )
    banded = {"upper", "lower"} <= chart.curves.keys()
    if banded:
        upper, lower = chart.curves["upper"], chart.curves["lower"]
        low = np.interp(np.log(upper.x), np.log(lower.x), lower.y)
        known = np.isin(upper.x, lower.x) & np.isfinite(upper.y)  # elsewhere there is no lower end, and so no band
        axes.fill_between(upper.x, low, upper.y, where=known, color=BAND, alpha=0.3, linewidth=5)
    axes.set(xscale="log", yscale="log" if chart.logarithmic else "linear", xlabel=chart.across, ylabel=chart.up)
    axes.set_title("\n".join(textwrap.wrap(chart.title, 60)), fontsize=10)
    axes.set_xlabel("\n".join(textwrap.wrap(chart.across, 60)))
    if chart.ceiling is not None:
        axes.set_ylim(top=chart.ceiling)
    grid(axes)
    label_ticks(axes)
    taken = [] if chart.marked is None else [_mark(axes, chart, *chart.marked)]
    if len(chart.curves) > _INSIDE:
        axes.legend(frameon=False, fontsize=8, handlelength=3.2, loc="upper left", bbox_to_anchor=(1, 1))
        return
    named = [
        (line, _BAND_NAME if banded and name == "upper" else line.get_label())
        for name, line in lines.items()
        if not (banded and name == "lower")
    ]
    label_curves(axes, named, taken)


def _mark(axes: Any, chart: Chart, x: float, y: float) -> Area:
    """Mark the point that was asked about, and return the rectangle of its label."""
    axes.axvline(x, color="#606060", linewidth=0.8, linestyle=(0, (1, 2)))
    axes.plot([x], [y], "o", color="#101010", markersize=4, label="_marked", zorder=4)
    label = chart.mark_text or f"ε = {rounded_up(y)}"
    across, up = axes.transAxes.inverted().transform(axes.transData.transform((x, y)))
    falls = _falls(chart)
    left = across > 0.7 or falls
    # There is room on the left below a falling curve and above a rising one.
    # Above a point near the top the label would cover the title.
    side, below = (-1 if left else 1), (-1 if up > _NEAR_TITLE or (up > 0.15 and (falls or not left)) else 1)
    axes.annotate(
        label,
        (x, y),
        xytext=(9 * side, 14 * below),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=LETTERS,
        bbox={**LABEL_BOX, "edgecolor": "#606060", "linewidth": 0.6},
        gid="marked",
        zorder=6,
    )
    middle = across + side * (0.03 + CHARACTER * len(label) / 2)
    return label_area(middle, up + below * LINE, label)


def _falls(chart: Chart) -> bool:
    """Return True if the curves of a panel fall from left to right."""
    return all(bool(curve.y[-1] < curve.y[0]) for name, curve in chart.curves.items() if name != CLAIM)


def label_ticks(axes: Any) -> None:
    """Label an axis over less than two decades with round numbers.

    Two powers of ten may be missing there.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log" and high < 100 * low:
            axis.set_major_locator(
                LogLocator(subs=(1.0, 2.0, 5.0) if high > 4 * low else tuple(np.arange(1.0, 10.0, 0.5)))
            )
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def _every(curve: Curve) -> int:
    """Return the distance of markers: each point has one where points are few."""
    return max(1, len(curve.x) // _MARKERS)
