"""The numbers behind the figures: for each panel one table per figure."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cumulant.accounting.choices import Method
from cumulant.conversion import baselines
from cumulant.numerics.arithmetic import Array
from cumulant.output import open_output
from cumulant.paper.approximations import bad_data_approximation, good_data_approximation
from cumulant.paper.figures.settings import DELTA, MOST_ROUNDS, POPULATION, RATE, Panel

COUNTS = np.union1d(np.rint(np.geomspace(1, MOST_ROUNDS, 40)), 10.0 ** np.arange(6)).astype(int)
"""The numbers of rounds of Figure 2."""

INTERVALS = (1, 10, 100, 1000, 10_000, 100_000, MOST_ROUNDS)
"""Those at which the true epsilon is enclosed."""

ACCURACY = 0.005
"""Part of epsilon that the grid of the exact layer may cost there."""

_DENSE = np.arange(2, 1025, dtype=np.float64)
_SPARSE = np.unique(np.floor(np.geomspace(1025, 20_000, 80)))
_INTEGERS = np.concatenate([_DENSE, _SPARSE])
_REALS = 1 + np.geomspace(1e-3, 1e6, 20_000)


@dataclass(frozen=True, slots=True)
class Table:
    """The curves of one panel: columns of equal length, the first is the horizontal axis."""

    panel: Panel
    columns: Mapping[str, Array]

    @property
    def axis(self) -> str:
        """Return the name of the horizontal axis."""
        return next(iter(self.columns))

    def at(self, column: str, place: float) -> float:
        """Return the value of a column where the horizontal axis has this value."""
        return float(self.columns[column][np.flatnonzero(self.columns[self.axis] == place)[0]])

    def write(self, path: Path) -> None:
        """Write a CSV file, every number to 17 digits."""
        with open_output(path) as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows([f"{value:.17g}" for value in row] for row in zip(*self.columns.values(), strict=True))


def divergences(panel: Panel) -> Table:
    """Compute Figure 1: the Rényi divergence of one round against the order, integers only."""
    orders = _DENSE[_DENSE <= 1000] if panel.sigma else np.union1d(_INTEGERS[_INTEGERS <= 10_000], [10_000.0])
    return Table(
        panel,
        {
            "order": orders,
            "upper": panel.once.rdp(orders.tolist(), bound="theorem9"),
            "lower": panel.once.rdp(orders.tolist(), bound="lower"),
            **_approximations(panel, orders),
            "theorem27": panel.once.rdp(orders.tolist(), bound="theorem27-min"),
            "best": panel.once.rdp(orders.tolist(), bound="best"),
        },
    )


def epsilons(panel: Panel) -> Table:
    """Compute Figure 2: epsilon at delta = 1e-8 against the number of rounds."""
    known = _approximations(panel, _REALS)
    lower = panel.once.curve("lower")
    return Table(
        panel,
        {
            "rounds": COUNTS.astype(np.float64),
            "naive": baseline(panel, COUNTS, "naive"),
            "strong": baseline(panel, COUNTS, "strong"),
            "upper": accountant(panel, COUNTS, "paper"),
            "lower": through_eq3(lower.cgf(_INTEGERS - 1), _INTEGERS - 1, COUNTS, float(lower.pure())),
            **{name: through_eq3(rdp * (_REALS - 1), _REALS - 1, COUNTS) for name, rdp in known.items()},
            "optimal": baseline(panel, COUNTS, "optimal"),
            "best": accountant(panel, COUNTS, "rdp"),
            **interval(panel, COUNTS),
        },
    )


def interval(panel: Panel, counts: Array) -> dict[str, Array]:
    """Return the ends of an interval that holds the true epsilon, at counts in INTERVALS.

    At other counts they are NaN.
    """
    ends = np.full((2, counts.size), np.nan)
    for place in np.flatnonzero(np.isin(counts, INTERVALS)):
        found = (panel.once * int(counts[place])).guarantee(delta=DELTA, accuracy=ACCURACY)
        ends[:, place] = found.epsilon, found.lower
    return {"true_upper": ends[0], "true_lower": ends[1]}


def accountant(panel: Panel, counts: Array, method: Method) -> Array:
    """Return epsilon of the accountant for each number of rounds."""
    return np.array([(panel.once * int(k)).epsilon(DELTA, method=method) for k in counts])


def baseline(panel: Panel, counts: Array, method: str) -> Array:
    """Return epsilon of a composition theorem for each number of rounds."""
    curve = panel.mechanism.curve()
    return np.array([baselines.baseline_epsilon([baselines.step(curve, RATE, int(k))], DELTA, method) for k in counts])


def through_eq3(cgf: Array, lam: Array, counts: Array, pure: float = math.inf) -> Array:
    """Compute min over lambda of (k K(lambda) + log(1/delta)) / lambda.

    And k times the value at infinity.

    >>> gaussian = np.arange(1.0, 200.0)
    >>> through_eq3(gaussian * (gaussian + 1) / 50, gaussian, np.array([1, 10]))
    array([1.23402269, 4.04206807])
    """
    with np.errstate(invalid="ignore"):
        lines = (counts[:, None] * cgf - math.log(DELTA)) / lam
        return np.minimum(lines.min(axis=1), counts * pure)


def _approximations(panel: Panel, orders: Array) -> dict[str, Array]:
    if panel.sigma is None:
        return {}
    given = {"sigma": panel.sigma, "rate": float(RATE), "population": POPULATION}
    return {"bad": bad_data_approximation(orders, **given), "good": good_data_approximation(orders, **given)}
