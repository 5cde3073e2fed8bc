"""A one-round pair put on a grid of losses: each cell's mass sent to its two ends so that P and Q keep their masses.

That is the chord of the hockey-stick curve over each cell, so the pair on the grid dominates ("connect the dots"); the
same numbers, sent the other way, give a pair that is dominated (`lattice.merged`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cumulant.lattice.losses import Loss
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.quadrature import legendre
from cumulant.pairs.mixing import sampled_loss

UNIT = 2.0**-53
QUADRATURE = 2e-15
"""Relative error of a cell's mass by four Gauss-Legendre points on panels of width at most 0.2 / roughness:
(4!)^4 / (9 (8!)^3) < 5.7e-10, times 0.2^8, times e^0.2 for the largest density on the panel, is below it."""
_PANEL = 0.2
_BLOCK = 1 << 15
_MOST_PANELS = 1 << 22
_ON_GRID = 1e-8


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
    """log of the P-masses: of each cell to its left and right end, of atoms on grid points; below and above the grid.

    `slip` bounds by how much a loss was misplaced by rounding, `error` the relative error of the masses of P and of Q.
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
        """The pair (Q, P): the loss changes sign, and a point of loss l and mass m has the mass m e^-l."""
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


def unsampled_loss(loss: Array, rate: float, kept: float) -> Array:
    """x with log(1 - g + g e^x) = loss, exactly for a loss that differs by a few units; -inf where there is none.

    Each form is stable where it is used: e^loss - (1-g) below, where g may be close to 1, and nothing that overflows above.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = np.log(np.maximum(np.exp(loss) - kept, 0.0)) - np.log(rate)
        near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 50.0)) / rate, -1.0))
        far = loss - np.log(rate) + np.log1p(-kept * np.exp(-np.maximum(loss, 0.0)))
    return np.where(loss < -0.5, below, np.where(loss < 30, near, far)) if kept > 0 else loss


def mixture_cells(law: Loss, rate: float, kept: float, grid: Grid, low: float, high: float) -> Cells:
    """(1-g)Q + gP against Q for base losses in [low, high], on a grid that covers them."""
    points = grid.points()
    left, right = np.full(grid.count - 1, -np.inf), np.full(grid.count - 1, -np.inf)
    if law.smooth:
        edges = law.place(np.clip(unsampled_loss(points, rate, kept), low, high))
        _spread(law, rate, kept, grid.step, points, edges, left, right)
    atoms = np.full(grid.count, -np.inf)
    x, log_q = law.atoms()
    inside = (x >= low) & (x <= high)
    L = sampled_loss(x[inside], rate, kept)
    slip, error = place_atoms(L, log_q[inside] + L, grid, left, right, atoms)
    return Cells(grid, left, right, atoms, -np.inf, -np.inf, slip + misplaced(low, high), error + QUADRATURE)


def misplaced(low: float, high: float) -> float:
    """By how much rounding may misplace a loss in [low, high]."""
    return 8 * UNIT * (1 + max(abs(low), abs(high)))


def place_atoms(L: Array, log_p: Array, grid: Grid, left: Array, right: Array, atoms: Array) -> tuple[float, float]:
    """Add atoms to the cells they fall into, or to the grid points they are.

    By how much the latter were misplaced, and by which part of themselves the sums may be wrong, logarithms apart.
    """
    position = (L - grid.offset) / grid.step - grid.first
    nearest = np.rint(position)
    astray = np.abs(position - nearest)
    on = astray < _ON_GRID
    crowd = _add(atoms, nearest[on].astype(np.int64), log_p[on])
    cell = np.clip(np.floor(position[~on]).astype(np.int64), 0, grid.count - 2)
    to_right, to_left = split(L[~on] - (grid.offset + grid.step * (grid.first + cell)), grid.step)
    with np.errstate(divide="ignore"):
        crowd = max(crowd, _add(right, cell, log_p[~on] + np.log(to_right)))
        crowd = max(crowd, _add(left, cell, log_p[~on] + np.log(to_left)))
    return float(grid.step * np.max(astray[on], initial=0.0)), crowd * UNIT


def _add(total: Array, place: Array, log_mass: Array) -> int:
    """Add masses where they belong, in units of the largest of each place, so that none underflows; the most in a place.

    A sum of n positive floats is wrong by at most n - 1 units, in whichever order they are added.
    """
    place, log_mass = place[log_mass > -np.inf], log_mass[log_mass > -np.inf]
    where, group, count = np.unique(place, return_inverse=True, return_counts=True)
    top = np.full(where.size, -np.inf)
    np.maximum.at(top, group, log_mass)
    mass = np.bincount(group, np.exp(log_mass - top[group]), where.size)
    total[where] = np.logaddexp(total[where], top + np.log(mass))
    return int(np.max(count, initial=0))


def split(gap: Array, step: float) -> tuple[Array, Array]:
    """The shares of a loss `gap` above the left end that go right and left, so that both laws keep their mass."""
    gap = np.clip(gap, 0.0, step)
    whole = np.expm1(-step)
    return np.expm1(-gap) / whole, np.exp(-gap) * np.expm1(gap - step) / whole


def _spread(
    law: Loss, rate: float, kept: float, step: float, points: Array, edges: Array, left: Array, right: Array
) -> None:
    """Integrate the density over each cell, panels narrow enough for QUADRATURE, and split it between the ends."""
    widths = np.diff(edges)
    rough = np.maximum(law.roughness(edges[1:]), law.roughness(edges[:-1]))
    panels = np.ceil(widths * rough / _PANEL).astype(np.int64)
    if panels.sum() > _MOST_PANELS:
        raise OverflowError
    nodes, weights = legendre(4)
    filled = np.flatnonzero(panels)
    for start in range(0, filled.size, _BLOCK):
        cells = filled[start : start + _BLOCK]
        many = panels[cells]
        last = np.cumsum(many)
        starts = last - many
        cell = np.repeat(np.arange(cells.size), many)
        width = (widths[cells] / many)[cell]
        y = edges[cells][cell] + width * (np.arange(last[-1]) - starts[cell])
        y = y[:, None] + width[:, None] * nodes
        L = sampled_loss(law.loss(y), rate, kept)
        log_p = law.log_density(y) + L + np.log(width[:, None] * weights)
        top = np.maximum.reduceat(log_p.max(axis=1), starts)
        mass = np.exp(log_p - top[cell][:, None])
        to_right, to_left = split(L - points[cells][cell][:, None], step)
        with np.errstate(divide="ignore"):
            right[cells] = top + np.log(np.add.reduceat((mass * to_right).sum(axis=1), starts))
            left[cells] = top + np.log(np.add.reduceat((mass * to_left).sum(axis=1), starts))
