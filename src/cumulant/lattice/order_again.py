"""Theorem W a second time: by laws on another lattice, checked at other rows, mostly at another order n, along another line."""

from __future__ import annotations

import math
from fractions import Fraction

from cumulant.lattice import theorem_w
from cumulant.lattice.order_line import along_line, delta_along
from cumulant.lattice.rounds import Rounds
from cumulant.numerics.rounding import rounded_down

_BESIDE = (1.25, 0.8, 1.1, 0.9, 1.0)
"""Parts of the order n: first others, then the same."""

_HOPELESS = 1.1
"""Of the stated delta: no other order makes up for so much."""


def second_delta(rounds: Rounds, epsilon: Fraction, delta: Fraction) -> tuple[float, int, float] | None:
    """A delta at this epsilon, its bits and the order n: the first that is at most `delta`, else the least.

    None where no laws are proved to dominate, or no line has an answer.
    """
    best: tuple[float, int, float] | None = None
    for part in _BESIDE:
        at = theorem_w.beside(rounds, math.log(rounded_down(delta)), part)
        tested = along_line(at, again=True) if at is not None and at.proved else None
        found = None if at is None or tested is None else delta_along(tested, at, epsilon)
        if at is not None and found is not None and (best is None or found.value < best[0]):
            best = found.value, found.bits, at.order
            if not delta < found.value <= _HOPELESS * delta:
                break
    return best
