"""One round on a grid of losses: the mass of each cell goes to the two ends of the cell.

The shares are such that P and Q keep their mass. That is the chord of the hockey-stick curve over each cell, so the
pair on the grid dominates ("connect the dots"). The same numbers, sent the other way, give a pair that is dominated
(`exact.grid.dominated`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import U

ON_GRID_DISTANCE = 1e-8
"""Distance from a grid point, in cells, below which an atom counts as on it; chosen by hand. The distance moved is
added to `slip`, so validity does not depend on it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The losses offset + step * (first + i), 0 <= i < count."""

    step: float
    offset: float
    first: int
    count: int

    def points(self) -> Array:
        return self.offset + self.step * (self.first + np.arange(self.count, dtype=np.float64))

    def mirrored(self) -> Grid:
        return Grid(self.step, -self.offset, -(self.first + self.count - 1), self.count)


@dataclass(frozen=True, slots=True)
class Cells:
    """Logarithms of the P-masses that each cell sends to its ends, and those of atoms.

    `left` and `right` are what a cell sends to its left and right end, `atoms` lie on grid points, `below` and `above`
    lie outside of the grid. `slip` bounds by how much rounding misplaced a loss, `error` the relative error of the
    masses of P and of Q.
    """

    grid: Grid
    left: Array
    right: Array
    atoms: Array
    below: float
    above: float
    slip: float
    error: float

    def mirrored(self) -> Cells:
        """Return the pair (Q, P): a point of loss l and mass m gets the loss -l, the mass m e^-l."""
        points = self.grid.points()
        return Cells(
            self.grid.mirrored(),
            (self.right - points[1:])[::-1],
            (self.left - points[:-1])[::-1],
            (self.atoms - points)[::-1],
            -np.inf,
            -np.inf,
            self.slip,
            self.error,
        )


def rounding_slip(low: float, high: float) -> float:
    """Return by how much rounding may misplace a loss in [low, high], in units of the loss."""
    return 8 * U * (1 + max(abs(low), abs(high)))


def place_atoms(L: Array, log_p: Array, grid: Grid, left: Array, right: Array, atoms: Array) -> tuple[float, float]:
    """Add atoms to the cells they fall into, or to the grid points they lie on.

    Returns by how much an atom on a grid point was misplaced, and the relative error of the sums, logarithms apart.
    """
    position = (L - grid.offset) / grid.step - grid.first
    nearest = np.rint(position)
    astray = np.abs(position - nearest)
    on = astray < ON_GRID_DISTANCE
    crowd = _add_masses(atoms, nearest[on].astype(np.int64), log_p[on])
    cell = np.clip(np.floor(position[~on]).astype(np.int64), 0, grid.count - 2)
    to_right, to_left = split_shares(L[~on] - (grid.offset + grid.step * (grid.first + cell)), grid.step)
    with np.errstate(divide="ignore"):
        crowd = max(crowd, _add_masses(right, cell, log_p[~on] + np.log(to_right)))
        crowd = max(crowd, _add_masses(left, cell, log_p[~on] + np.log(to_left)))
    return float(grid.step * np.max(astray[on], initial=0.0)), crowd * U


def _add_masses(total: Array, place: Array, log_mass: Array) -> int:
    """Add masses to their places, and return how many the fullest place received.

    Each sum is taken in units of the largest mass of its place, so that none underflows.

    A sum of n positive floats is wrong by at most n - 1 units, in whichever order they are added.
    """
    place, log_mass = place[log_mass > -np.inf], log_mass[log_mass > -np.inf]
    where, group, count = np.unique(place, return_inverse=True, return_counts=True)
    top = np.full(where.size, -np.inf)
    np.maximum.at(top, group, log_mass)
    mass = np.bincount(group, np.exp(log_mass - top[group]), where.size)
    total[where] = np.logaddexp(total[where], top + np.log(mass))
    return int(np.max(count, initial=0))


def split_shares(gap: Array, step: float) -> tuple[Array, Array]:
    """Return the shares of a loss `gap` above the left end that go right and left.

    With these shares both laws keep their mass.
    """
    gap = np.clip(gap, 0.0, step)
    whole = np.expm1(-step)
    return np.expm1(-gap) / whole, np.exp(-gap) * np.expm1(gap - step) / whole
