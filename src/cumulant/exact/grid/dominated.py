"""Dominated pairs on a grid: convex minorants of a hockey-stick curve.

H(alpha) = E_Q (p/q - alpha)_+ is convex and, once each cell is merged into one output, a polygon with a corner of size q at
each ratio r = p/q. Any convex G <= H whose corners have alpha = e^l, l on the grid, is the curve of a dominated pair. G is
built in one sweep: from a corner the line is taken that stays below H and touches it, and the next corner is the first
grid point after the touch. What G lacks there the following corners make up for, so the cost is of second order in the
step. A sweep to the right ends below 0 where the law ends steeply, and the masses then exceed those of a dominated pair;
a sweep to the left ends at the least losses, where nothing is at stake, but is coarse where most of the mass is there.
"""

from __future__ import annotations

import math

import numpy as np

from cumulant.exact.grid.settings import DOMINATED
from cumulant.losses.cells import Cells
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import DOZENS, next_above

_SCALE = DOMINATED.scale_bits * math.log(2)
"""The scale of masses in nats; derived."""

Law = tuple[Array, float]
"""log P-masses on the grid, and a bound of the P-mass that they have in excess of a dominated pair."""

RIGHT = 1
"""Sign of the sweep towards larger losses; convention."""

LEFT = -1
"""Sign of the sweep towards smaller losses; convention."""


def dominated_law(cells: Cells, log_mass: float) -> Law:
    """Return the dominated law of the sweep to the right, or of the sweep to the left.

    The latter is taken if the former exceeds a dominated pair by much more than e^log_mass.
    """
    right = sweep_law(cells, log_mass, RIGHT)
    return right if right[1] < math.exp(log_mass + DOMINATED.given_away) else sweep_law(cells, log_mass, LEFT)


def sweep_law(cells: Cells, log_mass: float, sign: int) -> Law:
    """Return the dominated law of one sweep.

    Outputs with much less than e^log_mass are left out.
    """
    lowest = max(log_mass - DOMINATED.negligible, DOMINATED.lowest_log_mass)
    result, gap = np.full(cells.grid.count, -np.inf), 0.0
    index, offset, log_size = _corners(cells, lowest, sign)
    if index.size:
        size = np.where(
            log_size > DOMINATED.small_log_mass,
            np.ldexp(np.exp(log_size), DOMINATED.scale_bits),
            np.exp(log_size + _SCALE),
        )
        grid, mass, gap = _sweep(index.tolist(), offset.tolist(), size.tolist(), cells.grid.step, sign)
        where, value = np.array(grid), np.array(mass)
        where, value = where[value > 0], value[value > 0]
        log_value = np.log(value) - _SCALE
        large = log_value > DOMINATED.small_log_mass  # there the scale is taken away before digits are lost
        log_value[large] = np.log(np.ldexp(value[large], -DOMINATED.scale_bits))
        result[where] = log_value
    return result, min(next_above(math.ldexp(gap, -DOMINATED.scale_bits)), 1.0) if gap > 0 else 0.0


def _corners(cells: Cells, lowest: float, sign: int) -> tuple[Array, Array, Array]:
    """Return per output its grid point, |r / e^l - 1| there, and log of q e^l.

    The grid point is the one before the output in the sweep; outputs come in the order of the sweep.
    """
    h, n = cells.grid.step, cells.left.size
    # of a cell that sends a to its left and b to its right end, q e^l is a + b e^-h at the left end, a e^h + b at the
    # right end, and p - q e^l is b (1 - e^-h) and -a (e^h - 1)
    near, away = (cells.left, cells.right) if sign == RIGHT else (cells.right, cells.left)
    log_q = np.logaddexp(near, away - sign * h)
    size = sign * math.expm1(sign * h)
    with np.errstate(invalid="ignore"):
        offset = np.minimum(np.exp(away - sign * h - log_q) * size, size)
    ends = np.arange(n) + (sign == LEFT)
    index = np.concatenate([np.arange(n + 1), ends])
    log_size = np.concatenate([cells.atoms, log_q])
    place = np.concatenate([np.zeros(n + 1), offset])
    order = np.lexsort((place, sign * index))
    order = order[log_size[order] > lowest]
    index, place, log_size = index[order], place[order], log_size[order]
    if sign == RIGHT:
        place[-1:] = 0.0  # nothing lies above the largest ratio to make up for it, so it goes down to its grid point
    return index, place, log_size


def _sweep(
    index: list[int], offset: list[float], size: list[float], h: float, sign: int
) -> tuple[list[int], list[float], float]:
    """Return grid indices and P-masses of the corners of G, and how far G ends below 0.

    alpha = e^{l_i} (1 ± x) after grid point i. `below` = H - G there, `ahead` = slope in x, taken as -G' and -H' to the left
    and G' and H' to the right, of G before i minus that of H. A line that starts `below` H touches it at the first corner x
    at which INT s dmu(s) over s <= x, mu the corners of H, is no longer less than `below`: there
    (below + INT (x - s) dmu(s)) / x is least. Only below - moment is a difference. To the left it is a part of H and rounds
    like it; to the right DOZENS of it is given away, so that rounding cannot lift G above an H that becomes smaller.
    """
    grid, mass = [], []
    i, first, count = index[0], 0, len(index)
    below, ahead = 0.0, 0.0
    exp, expm1 = math.exp, math.expm1
    cell, growth = sign * expm1(sign * h), exp(sign * h)
    while True:
        while first < count and index[first] == i and offset[first] == 0.0:
            ahead -= size[first]  # corners of H at this very point
            first += 1
        weight, moment, touched, far = 0.0, 0.0, first, 0.0
        while touched < count:
            far = (index[touched] - i) * h  # negative to the left
            if abs(far) > DOMINATED.farthest:
                break
            x, m = sign * expm1(far) + offset[touched] * exp(far), size[touched] * exp(-far)
            if moment + m * x >= below:
                break
            weight, moment, touched = weight + m, moment + m * x, touched + 1
        grid.append(i)
        if touched == count:  # flat to the right; to the left down to alpha = 0, where x = 1
            rest = max(below - moment, 0.0)
            mass.append(weight + (rest if sign == LEFT else 0.0) - ahead)
            return grid, mass, rest + DOZENS * below if sign == RIGHT else 0.0
        if abs(far) > DOMINATED.farthest:  # parallel to H as far as the next corner, which is out of sight
            mass.append(weight - ahead)
            below, ahead, i, first = below - moment, 0.0, index[touched], touched
            continue
        # at the last corner on the right G ends with H, and what rounding does to it is small against H before it
        slack = DOZENS * below if sign == RIGHT and touched < count - 1 else 0.0
        steeper = max(below - slack - moment, 0.0) / x
        mass.append(weight + steeper - ahead)
        below = max(min(slack, below - moment), 0.0)
        rest = max(size[touched] - steeper * exp(far), 0.0)
        if offset[touched] > 0:
            below += rest * (cell - offset[touched])
            ahead, i, first = -rest * growth, index[touched] + sign, touched + 1
        else:
            ahead, i, first = steeper * exp(far), index[touched], touched
