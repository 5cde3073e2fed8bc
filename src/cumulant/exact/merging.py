"""A pair on the grid that is dominated by the one in the cells: a convex minorant of its hockey-stick curve with corners
at grid points only.

H(alpha) = E_Q (p/q - alpha)_+ is convex and, once each cell is merged into one output, a polygon with a corner of size q at
each ratio r = p/q. Any convex G <= H whose corners have alpha = e^l, l on the grid, is the curve of a dominated pair.
From left to right, at each corner the steepest line that stays below H is taken; it touches H at some r, and the next
corner is the first grid point after it. Where the law is smooth every other grid point is used, so that the cost is of
second order in the step.
"""

from __future__ import annotations

import math

import numpy as np

from cumulant.exact.cells import Cells
from cumulant.numerics.arithmetic import Array

_SAFE = 1 - 1e-13
_LOWEST = -600.0
_BULK = 0.25


def merged(cells: Cells) -> tuple[tuple[Array, float], ...]:
    """Dominated pairs: log P-masses on the grid, and a bound of the P-mass that they have in excess of such a pair.

    Where one cell holds much of the mass, what a merge leaves of it may have to be paid by far losses; moving such cells down
    to their grid points instead gives a second pair, which is better where the tail decides.
    """
    index, offset, log_mass = _corners(cells)
    plain = _merged(cells, index, offset, log_mass)
    if not index.size or float(np.exp(log_mass.max())) < _BULK:
        return (plain,)
    return plain, _merged(cells, index, np.where(log_mass > math.log(_BULK / 8), 0.0, offset), log_mass)


def _merged(cells: Cells, index: Array, offset: Array, log_mass: Array) -> tuple[Array, float]:
    points = cells.grid.points()
    result = np.full(points.size, -np.inf)
    if not index.size:
        return result, 0.0
    # masses are scaled by e^{lam l}, so that far ones do not underflow
    last = float(points[index[-1]])
    lam = max(0.0, (_LOWEST - float(log_mass.min())) / last) if last > 0 else 0.0
    top = float(np.max(log_mass + lam * points[index]))
    mass = np.exp(log_mass + lam * points[index] - top)
    grid, size, gap = _minorant(index.tolist(), offset.tolist(), mass.tolist(), cells.grid.step, lam)
    where, value = np.array(grid), np.array(size)
    there = value > 0
    result[where[there]] = np.log(value[there]) - lam * points[where[there]] + top
    return result, math.nextafter(gap * math.exp(top - lam * float(points[where[-1]])), 1.0) if gap > 0 else 0.0


def _corners(cells: Cells) -> tuple[Array, Array, Array]:
    """For each output its grid index, r / e^l - 1 at that grid point, and log of q e^l, by increasing r."""
    h, n = cells.grid.step, cells.left.size
    # q e^l = a + b e^-h and p - q e^l = b (1 - e^-h), a and b being what the cell sends left and right
    log_q = np.logaddexp(cells.left, cells.right - h)
    with np.errstate(invalid="ignore"):
        offset = np.minimum(np.exp(cells.right - log_q) * -math.expm1(-h), math.expm1(h))
    index = np.concatenate([np.arange(n + 1), np.arange(n)])
    log_mass = np.concatenate([cells.atoms, log_q])
    place = np.concatenate([np.zeros(n + 1), offset])
    order = np.lexsort((place, index))
    order = order[log_mass[order] > -np.inf]
    index, place, log_mass = index[order], place[order], log_mass[order]
    if place.size:
        place[-1] = 0.0  # nothing lies above the largest ratio that could pay for it, so it goes down to its grid point
    return index, place, log_mass


def _minorant(
    index: list[int], offset: list[float], mass: list[float], h: float, lam: float
) -> tuple[list[int], list[float], float]:
    """Grid indices and scaled P-masses of the corners of G, and how far G ends below H.

    At grid point i, in units of e^{l_i} for alpha: `below` = H - G, `ahead` = slope of G on the left minus that of H there.
    """
    grid, size = [], []
    i, first, count = index[0], 0, len(index)
    below, ahead = 0.0, 0.0
    exp, expm1 = math.exp, math.expm1
    while first < count or below > 0:
        while first < count and index[first] == i and offset[first] == 0.0:
            ahead -= mass[first]  # corners of H at this very point
            first += 1
        # the steepest line: the least of (below + INT (x - s) dmu(s)) / x over the corners x of H to the right
        weight, moment, steepest, touched = 0.0, 0.0, math.inf, count
        for c in range(first, count):
            far = index[c] - i
            x = offset[c] + (1 + offset[c]) * expm1(far * h)
            slope = (below + weight * x - moment) / x
            if slope >= steepest:
                break
            steepest, touched = slope, c
            m = mass[c] * exp(-(lam + 1) * far * h)
            weight += m
            moment += m * x
        else:
            if weight < steepest:
                steepest, touched = weight, count  # flat beyond the last corner
        steepest *= _SAFE
        grid.append(i)
        size.append(max(steepest - ahead, 0.0))
        if touched == count:
            break
        nxt = index[touched] + (1 if offset[touched] > 0 else 0)
        x = expm1((nxt - i) * h)
        under, passed = below - steepest * x, 0.0
        c = first
        while c < count and index[c] < nxt:
            far = index[c] - i
            m = mass[c] * exp(-(lam + 1) * far * h)
            passed += m
            under += m * (x - offset[c] - (1 + offset[c]) * expm1(far * h))
            c += 1
        first = c
        below = max(under, 0.0) * exp(lam * (nxt - i) * h)
        ahead = (steepest - passed) * exp((lam + 1) * (nxt - i) * h)
        i = nxt
    return grid, size, below
