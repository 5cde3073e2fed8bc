"""A picture of a sweep.

A line where one setting varies, a heat map where two do, panels where more do.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant.accounting.numbers import brief, rounded_up
from cumulant.domains import Exact
from cumulant.errors import InputError, shown
from cumulant.plotting.drawing import Look, canvas, grid, save, style
from cumulant.plotting.sheet import check_writable, label_ticks
from cumulant.sweep import Row, Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("lines", "heat")

_LOOKS = tuple(
    Look("", "", colour, dashes, marker)
    for colour, dashes, marker in (
        ("#101010", "-", "o"),
        ("#0050a0", (0, (5, 2)), "s"),
        ("#c03010", (0, (2, 1)), "^"),
        ("#208030", (0, (6, 2, 1, 2)), "D"),
        ("#a05080", (0, (1, 1)), "v"),
        ("#707070", (0, (3, 1, 1, 1, 1, 1)), "x"),
    )
)
"""Dashes and markers tell lines apart where colours do not."""

_MOST_PANELS = 9
"""Panels of a picture, at most; convention."""

_MOST_LINES = 12
"""Lines of a panel, at most; convention."""

_MOST_WRITTEN = 400
"""Cells of a heat map up to which each has its number written into it; convention."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """A setting that varies, with its values in the order of the sweep.

    The values are kept as they were spelled, and as numbers if they are.
    """

    name: str
    texts: tuple[str, ...]

    @property
    def numbers(self) -> list[float] | None:
        """Return the positions of the values on an axis; None for words."""
        try:
            found = [float(Fraction(Exact(text))) for text in self.texts]
        except InputError:
            return None
        return found if all(map(math.isfinite, found)) else None


def picture(table: Sweep, out: str | Path | None = None, kind: str | None = None) -> Figure:
    """Draw a sweep; write it to a file, with the table beside it, if one is named."""
    axes = [_Axis(name, tuple(dict.fromkeys(row[name] for row in table))) for name in table.parameters]
    axes = [axis for axis in axes if len(axis.texts) > 1]
    if not axes:
        raise InputError("nothing varies in this sweep; give one of its names at least two values to draw it")
    drawn = kind or ("lines" if len(axes) == 1 else "heat")
    if drawn not in KINDS:
        raise InputError(f"kind={shown(kind)} is unknown; choose one of {', '.join(KINDS)}")
    if drawn == "heat" and len(axes) == 1:
        raise InputError(f"a heat map needs two settings that vary; only {axes[0].name} does")
    if not isinstance(out, str | Path | None):
        raise InputError(f"out={shown(out)} must be the name of a file")
    path = None if out is None else check_writable(Path(out))
    first, second, rest = axes[0], (axes[1] if len(axes) > 1 else None), axes[2:]
    panels = [dict(zip((axis.name for axis in rest), point, strict=True)) for point in _points(rest)]
    if len(panels) > _MOST_PANELS:
        raise InputError(f"{len(panels)} panels are more than {_MOST_PANELS}; let fewer settings vary")
    if drawn == "lines" and second is not None and len(second.texts) > _MOST_LINES:
        raise InputError(f"{len(second.texts)} lines are more than {_MOST_LINES}; draw a heat map")
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = canvas((5.8 * columns + 0.4, 4.0 * rows + 0.6))
    figure.set_layout_engine("constrained")
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    for place, fixed in zip(places, panels, strict=False):
        chosen = [row for row in table if all(row[name] == text for name, text in fixed.items())]
        if drawn == "heat" and second is not None:
            _heat(place, chosen, table.found, first, second)
        else:
            _lines(place, chosen, table.found, first, second)
        place.set_title(", ".join(f"{name} = {text}" for name, text in fixed.items()), fontsize=10)
    for spare in places[len(panels) :]:
        spare.axis("off")
    figure.suptitle(textwrap.fill(_title(table), 66 * columns, break_long_words=False), fontsize=10)
    if path is not None:
        try:
            save(figure, path)
            table.to_csv(path.with_suffix(".csv"))
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
    return figure


def _points(axes: Sequence[_Axis]) -> list[tuple[str, ...]]:
    return list(product(*(axis.texts for axis in axes)))


def _title(table: Sweep) -> str:
    given = "delta" if table.found == "epsilon" else "epsilon"
    row = table.rows[0]
    return f"{brief(table.expression or str(row['run']), 200)}: {table.found} at {given} = {row[given]:g}"


def _lines(axes: Any, rows: Sequence[Row], found: str, across: _Axis, several: _Axis | None) -> None:
    numbers = across.numbers
    places = list(range(len(across.texts))) if numbers is None else numbers
    at = dict(zip(across.texts, places, strict=True))
    for name, look in zip(several.texts if several else ("",), cycle(_LOOKS)):
        points = sorted(
            (at[row[across.name]], _value(row, found)) for row in rows if several is None or row[several.name] == name
        )
        x, y = np.array(points).T
        label = f"{several.name} = {name}" if several else found
        axes.plot(x, np.where(np.isfinite(y), y, np.nan), label=label, **style(look))
    if numbers is None:
        axes.set_xticks(places, across.texts)
    elif min(numbers) > 0 and max(numbers) > 10 * min(numbers):
        axes.set_xscale("log")
    drawn = [_value(row, found) for row in rows]
    drawn = [value for value in drawn if math.isfinite(value)]
    if drawn and min(drawn) > 0 and max(drawn) > 10 * min(drawn):
        axes.set_yscale("log")
    axes.set(xlabel=across.name, ylabel=found)
    if several is not None:
        axes.legend(frameon=False, fontsize=8, handlelength=3.2)
    grid(axes)
    label_ticks(axes)


def _heat(axes: Any, rows: Sequence[Row], found: str, across: _Axis, up: _Axis) -> None:
    from matplotlib.colors import LogNorm, Normalize

    value: Mapping[tuple[str, str], float] = {(row[across.name], row[up.name]): _value(row, found) for row in rows}
    cells = np.array([[value.get((x, y), math.nan) for x in across.texts] for y in up.texts])
    known = cells[np.isfinite(cells)]
    low, high = (known.min(), known.max()) if known.size else (1.0, 1.0)
    norm: Normalize = LogNorm(low, high) if low > 0 and high > 10 * low else Normalize(low, high)
    axes.patch.set(hatch="//", edgecolor="#bbbbbb")  # what has no number is not the same as what is small
    # From white to black, so that a print in grey says the same.
    image = axes.imshow(
        np.where(np.isfinite(cells), cells, np.nan), cmap="Greys", norm=norm, origin="lower", aspect="auto"
    )
    axes.set_xticks(range(len(across.texts)), across.texts, rotation=45 if len(across.texts) > 8 else 0)
    axes.set_yticks(range(len(up.texts)), up.texts)
    axes.set(xlabel=across.name, ylabel=up.name)
    axes.tick_params(labelsize=8)
    if cells.size <= _MOST_WRITTEN:
        small = 8 if max(cells.shape) <= 10 else 5
        for (y, x), number in np.ndenumerate(cells):
            dark = math.isfinite(number) and norm(number) > 0.5
            text = "∞" if math.isinf(number) else "–" if math.isnan(number) else rounded_up(float(number), 3)
            axes.text(x, y, text, ha="center", va="center", fontsize=small, color="white" if dark else "black")
    axes.figure.colorbar(image, ax=axes, label=found)


def _value(row: Row, found: str) -> float:
    """Return the number of a row; NaN where there is none."""
    return math.nan if row[found] is None else float(row[found])
