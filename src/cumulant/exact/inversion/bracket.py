"""Move from a guessed epsilon to one that balls prove.

Because delta falls in epsilon, the last ball is the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cumulant.exact.inversion.settings import SEARCH
from cumulant.numerics.arithmetic import BALLS


def refine_root(bound: Callable[[Any], Any], start: float, asked: Any, lam: float) -> float:
    """Return about the epsilon at which the bound on delta equals `asked`, by balls.

    Balls are asked because floats may have no digits left. Nothing is proved here. Returns NaN if none is found.

    Secants run between an epsilon seen too small and one seen too large; if they do not meet, as at the largest loss, halving
    finishes.
    """
    epsilon, before, slope = start, (math.nan, math.nan), -lam
    low, high = 0.0, math.inf
    for tried in range(SEARCH.secants + SEARCH.halvings):
        if not math.isfinite(epsilon):
            return math.nan
        part = bound(BALLS.number(epsilon)) / asked
        if not (part.is_finite() and part > 0):  # from below, images are more than what is left: nothing to follow
            return low or start
        off = float(part.log().mid())
        low, high = (epsilon, high) if off > 0 else (low, epsilon)
        if epsilon != before[0] and math.isfinite(before[1]) and off != before[1]:
            slope = min((off - before[1]) / (epsilon - before[0]), -lam / 16)
        before = epsilon, off
        after = max(epsilon - off / slope, 0.0)
        if abs(after - epsilon) <= 4e-16 * epsilon or high - low <= SEARCH.close * low:
            break
        inside = low < after < high and tried < SEARCH.secants
        epsilon = after if inside or high == math.inf else (low + high) / 2
    return epsilon


def smallest_proved_epsilon(holds: Callable[[Any], bool], start: float, lam: float, accuracy: float) -> float | None:
    """Return the smallest tried float >= start at which `holds` is proved.

    Returns None after 40 tries, or once a relative step exceeds both 1e-3 and the accuracy; the caller then uses the grid.
    """
    if start <= 0:
        return 0.0 if holds(BALLS.number(0)) else smallest_proved_epsilon(holds, 1e-12 / lam, lam, accuracy)
    step = 2.0**-50
    before = epsilon = start
    for _ in range(SEARCH.tries):
        if holds(BALLS.number(epsilon)):
            return _bisect_back(holds, epsilon, before, accuracy)
        before, epsilon, step = epsilon, start + max(step * start, math.ulp(start)), 4 * step
        if step > max(accuracy, 1e-3):
            break
    return None


def largest_refuted_epsilon(holds: Callable[[Any], bool], start: float, accuracy: float) -> float | None:
    """Return the largest tried float <= start at which `holds` is proved.

    Returns 0 if even 0 is reached.

    Returns None after 40 tries.
    """
    step = 2.0**-50
    before = epsilon = start
    for _ in range(SEARCH.tries):
        if epsilon <= 0:
            return 0.0
        if holds(BALLS.number(epsilon)):
            return _bisect_back(holds, epsilon, before, accuracy)
        before, epsilon, step = epsilon, start - max(step * start, math.ulp(start)), 4 * step
        if step > 1:
            break
    return None


def _bisect_back(holds: Callable[[Any], bool], shown: float, other: float, accuracy: float) -> float:
    """Return `shown` moved by halves towards `other` until both are near.

    Growing steps overshoot.
    """
    while abs(shown - other) > SEARCH.near_share * accuracy * shown:
        middle = (shown + other) / 2
        shown, other = (middle, other) if holds(BALLS.number(middle)) else (shown, middle)
    return shown


def locate_minimum(value: Callable[[Any], Any], start: float) -> float:
    """Return about where a unimodal function of a positive number is smallest, by balls.

    Returns the guess if the search leaves [1e-9, 1e9].
    """
    centre, width = start, 0.5
    while width > SEARCH.flat:
        left, middle, right = (value(BALLS.number(centre * math.exp(move * width))).mid() for move in (-1, 0, 1))
        if middle <= left and middle <= right:
            width /= 4
        else:
            centre *= math.exp(width if right < left else -width)
            if not 1e-9 < centre < 1e9:
                return start
    return centre
