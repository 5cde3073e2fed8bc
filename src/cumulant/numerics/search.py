"""Minima of functions that need not be unimodal, and roots of falling functions.

Arguments are all real or all integer numbers, and many functions are searched at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import Array

FIRST_REACH = 4096.0
"""Largest argument of the first scan; it is widened while the minimum is at the end."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Tuning constants of the searches.

    A search only chooses; what is chosen is certified, so validity does not depend on them.
    """

    last_reach: float = 2.0**1000
    """Largest argument that is tried; near the end of floats."""

    divisions: int = 16
    """Parts into which a cell beside a minimum is divided."""

    minima: int = 3
    """Local minima of a function that are refined."""

    narrow: float = 1e-9
    """Relative width of a cell that is not divided any more."""

    still: float = 1e-13
    """Relative gain of a round below which it did not pay; a little above float rounding."""

    steep: float = 1e-8
    """Relative rise from the least value to a neighbour from which on a round need not pay: at a kink the minimum may lie
    beside the divisions, and the search ended 1e-5 above it (measured)."""

    close: float = 1e-3
    """Relative distance of the neighbours from which on a round must pay."""

    nested: int = 4
    """Nested subdivisions of a root."""

    subdivision: int = 128
    """Points of one subdivision; 128^-4 of the first interval's logarithm is left."""

    first_step: float = 7.0
    """Relative distance of the first argument beside a guess of which nothing is known; later ones grow like squares."""

    growth: float = 256.0
    """Factor by which small distances from a guess grow."""

    largest_step: float = 2.0**64
    """Relative distance of the last arguments away from a guess."""

    flat: float = 1e-5
    """Relative width at which the search for a minimum in balls ends; derived: below it they change by 1e-10 only."""

    neighbour: float = 2.0**-52
    """Relative width of a bracket whose ends are neighbouring floats, or nearly so."""


SETTINGS = SearchSettings()
"""The settings in force; a test may replace them."""

SCANNED_INTEGERS = np.concatenate([np.arange(1.0, 33.0), np.floor(np.geomspace(32.0, FIRST_REACH, 36)[1:])])
"""Integers of the first scan: all up to 32, then geometric."""

SCAN = np.concatenate([2.0 ** np.arange(-40.0, 0.0, 2.0), [0.5], SCANNED_INTEGERS])
"""The arguments at which the scan of the reals starts."""


@dataclass(frozen=True, slots=True)
class Minima:
    """For each function (row) where its least value was found, and that value."""

    where: Array
    value: Array


def least(
    objective: Callable[[Array], Array],
    integral: bool,
    enough: Callable[[float, Array], bool] = lambda at, best: False,
    floor: float = -np.inf,
) -> Minima:
    """Return the minimum of each row of objective(x) over x > 0, or over integers x >= 1.

    objective(x) is a matrix (functions, len(x)).

    Eq. (3) is quasi-convex for true cumulant generating functions (Corollary 37, E-26); bounds are none, so the scan is wide.
    A coarse scan, widened while the best argument is near its end, unless enough(end, least values) says that nothing
    can be gained beyond it; then the cells around the three lowest local minima of each function are divided,
    at integers as long as there are any, until that no longer lowers its least value. No function is below `floor`, so that
    one which the scan finds there is not refined.
    """
    nodes = SCANNED_INTEGERS if integral else SCAN
    values = objective(nodes)
    while nodes[-1] < SETTINGS.last_reach and (np.nanargmin(values, axis=1) >= nodes.size - 3).any():
        if enough(float(nodes[-1]), np.min(values, axis=1)):
            break
        more = nodes[-1] * np.array([2.0, 4.0, 8.0, 16.0])
        nodes, values = np.append(nodes, more), np.append(values, objective(more), axis=1)
    # on a plateau every node is a minimum: each round would divide all of its cells
    active = ~(values.min(axis=1) <= floor)
    while active.any():
        new = _divide(nodes, values[active], integral)
        if not new.size:
            break
        before = values.min(axis=1)
        place = np.argsort(np.concatenate([nodes, new]), kind="stable")
        values = np.append(values, objective(new), axis=1)[:, place]
        nodes = np.concatenate([nodes, new])[place]
        best = np.clip(np.argmin(values, axis=1), 1, nodes.size - 2)
        settled = nodes[best + 1] - nodes[best - 1] <= SETTINGS.close * nodes[best]  # from here on a round must pay
        least_value = values.min(axis=1)
        paid = before - least_value > SETTINGS.still * np.abs(before)
        row = np.arange(len(values))
        rise = np.fmax(values[row, best - 1], values[row, best + 1]) - least_value
        steep = (rise > SETTINGS.steep * np.abs(least_value)) & np.isfinite(rise)
        # beside a wall a neighbour stays high: vertices would creep towards it for thousands of rounds
        wide = np.fmax(nodes[best + 1] - nodes[best], nodes[best] - nodes[best - 1]) > SETTINGS.narrow * nodes[best]
        active &= ~settled | (paid | steep) & wide
    best = np.argmin(values, axis=1)
    return Minima(nodes[best], values[np.arange(len(values)), best])


def _divide(nodes: Array, values: Array, integral: bool) -> Array:
    """Return new arguments inside the cells that touch a low local minimum and are still wide."""
    padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.inf)
    minimum = (values <= padded[:, :-2]) & (values <= padded[:, 2:]) & np.isfinite(values)
    ranked = np.where(minimum, values, np.inf)
    lowest = np.argpartition(ranked, SETTINGS.minima, axis=1)[
        :, : SETTINGS.minima
    ]  # exactly so many: a plateau is all minima
    centre = np.zeros(nodes.size, dtype=bool)
    centre[lowest[np.isfinite(np.take_along_axis(ranked, lowest, axis=1))]] = True
    left, right = nodes[:-1], nodes[1:]
    wide = (centre[:-1] | centre[1:]) & (right - left > (_width(right) if integral else SETTINGS.narrow * right))
    left, right = left[wide, None], right[wide, None]
    inner = left + (right - left) * (np.arange(1, SETTINGS.divisions) / SETTINGS.divisions)
    inner = np.where(right - left > _width(right), np.floor(inner), inner)
    new = inner.ravel() if integral else np.append(inner.ravel(), _vertices(nodes, values))
    return np.setdiff1d(new, nodes)


def _vertices(nodes: Array, values: Array) -> Array:
    """Return the lowest point of the parabola, in log x, through each row's lowest three values.

    These are the lowest value and its two neighbours.
    """
    middle = np.clip(np.argmin(values, axis=1), 1, nodes.size - 2)
    row = np.arange(len(values))
    x0, x1, x2 = np.log(nodes[middle - 1]), np.log(nodes[middle]), np.log(nodes[middle + 1])
    fall, rise = values[row, middle - 1] - values[row, middle], values[row, middle + 1] - values[row, middle]
    top = fall * (x2 - x1) ** 2 - rise * (x1 - x0) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):  # a row without a parabola has no vertex
        vertex = x1 + top / (2 * (fall * (x2 - x1) + rise * (x1 - x0)))
    return np.exp(vertex[(vertex > x0) & (vertex < x2)])


def _width(x: Array) -> Array:
    """Return the width below which a cell counts as one integer: 1, or 1e-6 of the argument."""
    return np.maximum(1.0, 1e-6 * x)


def falling_root(function: Callable[[Array], Array], value: float, low: float, high: float) -> float:
    """Return where a falling function of a positive argument reaches this value.

    Nested subdivision gives it to about 3e-6 of itself.

    >>> round(falling_root(lambda x: -np.log(x), -3.0, 1e-300, 1e18), 3)
    20.086
    """
    for _ in range(SETTINGS.nested):
        nodes = np.geomspace(low, high, SETTINGS.subdivision)
        right = int(np.argmax(np.append(function(nodes) <= value, True)))
        low, high = float(nodes[max(right - 1, 0)]), float(nodes[min(right, nodes.size - 1)])
    return math.sqrt(low) * math.sqrt(high)


Excess = Callable[[float], tuple[bool | None, float]]
"""Says if a function is proved positive (True) or not positive (False), and about its value; None if neither is proved."""


def invert_falling(
    excess: Excess, start: float, smallest: float, largest: float, step: float = SETTINGS.first_step
) -> tuple[float | None, float | None]:
    """Return neighbouring floats between which a falling function changes its sign.

    Its argument is positive. The function is proved positive at the first and not positive at the second; if they are no
    neighbours, nothing is proved between them. Returns None for an end that is not proved. `step` is the relative distance of
    the first argument that is tried beside the start.

    >>> invert_falling(lambda x: (x < 3, 3 - x), 1.0, 1e-300, 1e300)
    (2.9999999999999996, 3.0)
    """
    low: float | None
    high: float | None
    ends: dict[bool, tuple[float, float]] = {}
    undecided: list[float] = []
    x = start
    while len(ends) < 2:
        positive, value = excess(x)
        if positive is None:
            undecided.append(x)
        else:
            ends[positive] = x, value
        if x in (smallest, largest):
            break
        x = min(max(x / (1 + step) if False in ends else x * (1 + step), smallest), largest)
        step = min(step * SETTINGS.growth if step < 1 else (1 + step) ** 2, SETTINGS.largest_step)
    if len(ends) == 2 and not undecided:
        low, high, between = _secants(excess, ends[True], ends[False])
        undecided = [] if between is None else [between]
    else:
        low, high = (ends[side][0] if side in ends else None for side in (True, False))
    if undecided and low is not None:
        low, _ = bisect(lambda x: not excess(x)[0], low, min(undecided), part=SETTINGS.neighbour)
    if undecided and high is not None:
        _, high = bisect(lambda x: excess(x)[0] is False, max(undecided), high, part=SETTINGS.neighbour)
    return low, high


def _secants(
    excess: Excess, left: tuple[float, float], right: tuple[float, float]
) -> tuple[float, float, float | None]:
    """Return neighbouring floats around the root between two points, by the Illinois rule.

    The points are given with their values. The third number is a point between them at which nothing is proved, so that the
    search ended there; None if there is none.
    """
    (low, at_low), (high, at_high) = left, right
    same = tried = 0
    width = high - low
    while math.nextafter(low, high) < high:
        fall, tried = at_low - at_high, tried + 1
        slow = tried % 3 == 0 and high - low > width / 2  # secants did not halve the bracket
        width = high - low if tried % 3 == 0 else width
        if slow or not 0 < fall < math.inf:
            x = math.sqrt(low) * math.sqrt(high) if high > 2 * low else (low + high) / 2
        else:
            x = low + (high - low) * (at_low / fall)
        x = min(max(x, math.nextafter(low, high)), math.nextafter(high, low))
        positive, value = excess(x)
        if positive is None:
            return low, high, x
        # Without halving the value of an end that stays, secants would close in from one side only.
        if positive:
            low, at_low, same = x, value, max(same, 0) + 1
            at_high = at_high / 2 if same > 1 else at_high
        else:
            high, at_high, same = x, value, min(same, 0) - 1
            at_low = at_low / 2 if same < -1 else at_low
    return low, high, None


def bracket_falling(
    function: Callable[[float], float], slope: float, value: float, start: float, tolerance: float = 4e-14
) -> tuple[float, float]:
    """Return a narrow bracket of the number >= 0 at which a falling function has this value.

    Secants find it, from a guess and the slope there. At its upper end the function is at most the value, at its lower end, if
    that is positive, above it.

    >>> low, high = bracket_falling(lambda x: -x * x, -2.0, -2.0, 1.0)
    >>> low <= 2**0.5 <= high, high - low < 1e-13
    (True, True)
    """
    low, high = -math.inf, math.inf
    x, before = max(start, 0.0), (math.nan, math.nan)
    for _ in range(200):
        found = function(x)
        low, high = (low, x) if found <= value else (x, high)
        if high == 0 or (high < math.inf and high - low <= tolerance * high):
            break
        if math.isfinite(found) and math.isfinite(before[1]) and found != before[1]:
            slope = min((found - before[1]) / (x - before[0]), slope / 4)
        before = (x, found)
        # a little too far, so that both ends close in
        side = tolerance / 4 * x * (1 if found > value else -1)
        after = x + (value - found) / slope + side if math.isfinite(found) else math.nan
        if not max(low, 0.0) < after < high:
            after = max(2 * x, 1e-9) if high == math.inf else (max(low, 0.0) + high) / 2
            if low < 0 and high < 1e-9:
                after = 0.0
        if after in (low, high, math.inf):
            break
        x = after
    return max(low, 0.0), high


def falling_threshold(function: Callable[[float], float], target: float) -> float:
    """Return the smallest number, up to 0.1 %, at which a falling function meets the target.

    Returns inf if it would exceed 1e15.
    """
    low, high = 1e-12, 1e-12
    while not function(high) <= target:
        low, high = high, 8 * high
        if high > 1e15:
            return math.inf
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if function(middle) <= target else (middle, high)
    return high


@np.errstate(all="ignore")
def newton_roots(
    function: Callable[[Array], tuple[Array, Array]], asked: Array, start: Array, steepness: float
) -> Array:
    """Return where a falling function has each of these values, by safeguarded Newton steps.

    `function` gives values and slopes; a step changes them by about four at most, for a function that is about so
    steep. Returns NaN where none is found.
    """
    at = start
    low, high = np.full(at.shape, -np.inf), np.full(at.shape, np.inf)
    for _ in range(80):
        value, slope = function(at)
        known = np.isfinite(value)
        above = known & (value > asked)
        low, high = np.where(above, at, low), np.where(above, high, at)  # a sum that is not positive: too far out
        move = np.where(known & (slope < 0), (asked - value) / slope, np.where(above, 1.0, -1.0) / steepness)
        after = at + np.clip(move, -4 / steepness, 4 / steepness)
        outside = ~((after > low) & (after < high))
        middle = np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, after)
        after = np.where(outside, middle, after)
        done = known & (np.abs(after - at) <= 4e-16 * np.maximum(np.abs(at), 1e-300))
        at = after
        if done.all():
            return at
    return np.where(high - low < 1e-6 * np.maximum(np.abs(at), 1e-12), at, np.nan)


def bisect_rows(holds: Callable[[Array], Array], low: Array, high: Array, halvings: int) -> Array:
    """Return where a condition that stays true begins, from the side on which it holds.

    Each row is bisected by itself. It is the upper end if the condition never holds.

    >>> bisect_rows(lambda x: x > 0.3, np.zeros(1), np.ones(1), 30).round(6)
    array([0.3])
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        there = holds(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return high


def shrink_bracket(
    holds: Callable[[Array], Array], inner: Array, outer: Array, width: float, halvings: int = 64
) -> tuple[Array, Array]:
    """Shrink [inner, outer] around the last point where the condition holds, to this width.

    Either end may be the larger one. It stops earlier at neighbouring floats.
    """
    for _ in range(halvings):
        if not (np.abs(outer - inner) > width).any():
            break
        middle = (inner + outer) / 2
        there = holds(middle)
        inner, outer = np.where(there, middle, inner), np.where(there, outer, middle)
    return inner, outer


def bisect(
    holds: Callable[[float], object],
    low: float,
    high: float,
    *,
    part: float = 0.0,
    width: float = 0.0,
    halvings: int = 2_000,
) -> tuple[float, float]:
    """Return the ends of a narrow interval in which a condition that stays true begins.

    The condition fails at `low` and holds at `high`, or is taken to do so. It ends at this part of the upper end, at this width
    or after so many halvings.

    >>> low, high = bisect(lambda x: x * x >= 2, 0.0, 2.0, part=1e-9)
    >>> low < 2**0.5 <= high, high - low < 2e-9
    (True, True)
    """
    for _ in range(halvings):
        if not high - low > max(part * high, width):
            break
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def bisect_integers(holds: Callable[[int], object], low: int, high: int) -> int:
    """Return the smallest integer at which a condition that stays true holds.

    It fails at `low` and holds at `high`, or is taken to do so.

    >>> bisect_integers(lambda n: n * n > 1000, 0, 1000)
    32
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_integer(holds: Callable[[int], object], start: int) -> int:
    """Return the smallest positive integer at which a condition that stays true holds.

    It is doubled from `start` on until it holds, then bisected.

    >>> smallest_integer(lambda n: n * n > 1000, 16)
    32
    """
    low, high = 0, start
    while not holds(high):
        low, high = high, 2 * high
    return bisect_integers(holds, low, high)


def largest_integer(fits: Callable[[int], object], most: int = 2**40) -> int:
    """Return the largest count up to `most` that fits, if all smaller ones do; else 0.

    >>> largest_integer(lambda steps: steps <= 141), largest_integer(lambda steps: True, most=1000)
    (141, 1000)
    """
    low, high = 0, 1
    while high < most and fits(high):
        low, high = high, 2 * high
    high = min(high, most)
    if fits(high):
        return high
    return bisect_integers(lambda count: not fits(count), low, high) - 1


@np.errstate(all="ignore")
def minimise_rows(function: Callable[[Array], Array], nodes: Array, points: int) -> tuple[Array, Array]:
    """Return the smallest values of unimodal functions, and where.

    Each row of nodes is the first grid of one function. Grids of so many points close in on the minimum, and a parabola
    finishes.
    """
    rows = np.arange(len(nodes))
    for _ in range(4):
        found = function(nodes)
        found = np.where(np.isnan(found), np.inf, found)
        best = np.argmin(found, axis=1)
        low, high = np.maximum(best - 1, 0), np.minimum(best + 1, nodes.shape[1] - 1)
        least, where = found[rows, best], nodes[rows, best]
        bend = found[rows, low] - 2 * least + found[rows, high]
        apart = np.log(where / nodes[rows, low])
        vertex = where * np.exp(0.5 * apart * (found[rows, low] - found[rows, high]) / bend)
        vertex = np.where((high - low == 2) & (bend > 0) & np.isfinite(vertex), vertex, where)
        nodes = np.geomspace(nodes[rows, low], nodes[rows, high], points, axis=1)
    after = function(vertex[:, None])[:, 0]
    better = after < least
    return np.where(better, after, least), np.where(better, vertex, where)


def locate_minimum(function: Callable[[float], Any], start: float) -> float:
    """Return about where a unimodal function of a positive number is smallest.

    Its values may be balls' midpoints, where floats have no digits left. Returns the guess if the search leaves [1e-9, 1e9].
    """
    centre, width = start, 0.5
    while width > SETTINGS.flat:
        left, middle, right = (function(centre * math.exp(move * width)) for move in (-1, 0, 1))
        if middle <= left and middle <= right:
            width /= 4
        else:
            centre *= math.exp(width if right < left else -width)
            if not 1e-9 < centre < 1e9:
                return start
    return centre
