"""A sentence of the paper about its figures, the finding here, and the verdict (item 50)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cumulant.paper.figures.series import Table
from cumulant.paper.figures.settings import Panel


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, the finding, the criterion, and the panels that meet it.

    The criterion is given in words and numbers.
    """

    statement: str
    found: str
    criterion: str
    holds: Mapping[str, bool]

    @property
    def verdict(self) -> str:
        """Return yes, no, or for what it holds and for what it does not."""
        if len(set(self.holds.values())) == 1:
            return "yes" if all(self.holds.values()) else "no"
        true, false = ([name for name, value in self.holds.items() if value is wanted] for wanted in (True, False))
        return f"yes: {', '.join(true)}; no: {', '.join(false)}"


def split(tables: Sequence[Table]) -> tuple[list[Table], list[Table]]:
    """Return the tables with Gaussian noise, and the others."""
    return [t for t in tables if t.panel.sigma is not None], [t for t in tables if t.panel.sigma is None]


def label(panel: Panel) -> str:
    """Return the letter of a panel, with its sigma where there are two of them."""
    return f"d (σ = {panel.sigma:g})" if panel.letter == "d" else panel.letter


def each(tables: Sequence[Table], values: Sequence[float]) -> str:
    """Return a number for each panel."""
    return ", ".join(f"{label(table.panel)} {value:.4g}" for table, value in zip(tables, values, strict=True))


def judged(tables: Sequence[Table], verdicts: Sequence[bool]) -> dict[str, bool]:
    """Return a verdict for each panel."""
    return {label(table.panel): bool(verdict) for table, verdict in zip(tables, verdicts, strict=True)}


def slope(table: Table, column: str, low: float, high: float) -> float:
    """Compute the log-log slope of a column between two places of the axis."""
    return math.log(table.at(column, high) / table.at(column, low)) / math.log(high / low)
