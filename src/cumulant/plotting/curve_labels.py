"""Names of curves, written onto the curves themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import Array

CHARACTER = 0.0125
"""Width of a character in widths of a panel; measured on a panel of 6.2 inches with letters of 8 points."""

LINE = 0.055
"""Height of a label with its box in heights of a panel; measured on a panel of 4.2 inches."""

PLACES = np.linspace(0.1, 0.9, 33)
"""Horizontal positions that are tried for the middle of a label; convention."""

LETTERS = 8.0
"""Size of the letters in points; convention."""

LABEL_BOX = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
"""The box behind a label; without it the curve would cross the letters."""


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of a panel, in parts of its width and height."""

    left: float
    right: float
    low: float
    high: float

    def grown(self, by: float) -> Area:
        """Return the rectangle with so much more room above and below."""
        return Area(self.left, self.right, self.low - by, self.high + by)

    def meets(self, other: Area) -> bool:
        """Return True if the two rectangles have a point in common."""
        return self.left < other.right and other.left < self.right and self.low < other.high and other.low < self.high


def label_area(x: float, y: float, text: str) -> Area:
    """Return the rectangle of a label whose middle is at (x, y)."""
    half = CHARACTER * max(map(len, text.splitlines())) / 2 + 0.01
    tall = LINE * len(text.splitlines()) / 2
    return Area(x - half, x + half, y - tall, y + tall)


def label_curves(axes: Any, lines: Sequence[tuple[Any, str]], taken: Sequence[Area] = ()) -> None:
    """Write each name onto its line, as far from other lines and labels as possible.

    `taken` are rectangles that must stay free.
    """
    axes.get_xlim(), axes.get_ylim()  # matplotlib sets the limits only now; older ones would misplace every label
    paths = [_in_panel(axes, line) for line, _ in lines]
    used = list(taken)
    for (line, name), own in zip(lines, paths, strict=True):
        others = [path for path in paths if path is not own]
        x, y = _best_place(own, others, used, name)
        used.append(label_area(x, y, name))
        axes.text(
            x,
            y,
            name,
            transform=axes.transAxes,
            ha="center",
            va="center",
            fontsize=LETTERS,
            color=line.get_color(),
            bbox=LABEL_BOX,
            gid="label",
            zorder=5,
        )


def _in_panel(axes: Any, line: Any) -> tuple[Array, Array]:
    """Return the points of a line in parts of the panel."""
    points = axes.transAxes.inverted().transform(axes.transData.transform(np.column_stack(line.get_data())))
    seen = np.isfinite(points).all(axis=1)
    return points[seen, 0], points[seen, 1]


def _best_place(
    own: tuple[Array, Array], others: Sequence[tuple[Array, Array]], used: Sequence[Area], name: str
) -> tuple[float, float]:
    """Return the middle of the label: beside its curve where no other curve passes, or else upon it."""
    best, found = -np.inf, (0.5, 0.5)
    for x in PLACES.tolist():
        if not own[0].size or not own[0].min() <= x <= own[0].max():
            continue
        y = float(np.interp(x, *own))
        around = label_area(x, y, name)
        rise = abs(float(np.interp(around.right, *own) - np.interp(around.left, *own))) / 2
        for side in (1, -1, 0):
            middle = y + side * (rise + LINE / 2 + 0.01)
            area = label_area(x, middle, name)
            inside = area.left >= 0.0 and area.right <= 1.0 and area.low >= 0.02 and area.high <= 0.98
            crossed = sum(_crosses(other, area) for other in others)
            near = sum(
                _crosses(other, area.grown(LINE)) for other in others
            )  # a label close to two curves names neither
            blocked = any(area.meets(each) for each in used) + (not inside)
            score = (
                -10.0 * blocked - 3.0 * crossed - 0.2 * near - rise - (0.5 if side == 0 else 0.0) - 0.1 * abs(x - 0.5)
            )
            if score > best:
                best, found = score, (x, middle)
    return found


def _crosses(curve: tuple[Array, Array], area: Area) -> bool:
    """Return True if a curve passes through a rectangle."""
    if not curve[0].size:
        return False
    heights = np.interp(np.linspace(area.left, area.right, 9), *curve)
    return bool(heights.min() < area.high and heights.max() > area.low)
