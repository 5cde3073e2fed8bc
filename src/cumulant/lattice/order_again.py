"""Theorem W a second time: by laws on another lattice, checked at other rows, mostly at another order n, along another line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from cumulant.lattice import theorem_w
from cumulant.lattice.order_line import along_line, delta_along
from cumulant.lattice.rounds import Rounds
from cumulant.lattice.theorem_w import Chosen
from cumulant.numerics.rounding import rounded_down

_BESIDE = (1.25, 0.8, 1.1, 0.9, 1.0)
"""Parts of the order n: first others, then the same."""

_HOPELESS = 1.1
"""Of the stated delta: no other order makes up for so much."""


def second_delta(rounds: Rounds, epsilon: Fraction, delta: Fraction) -> tuple[float, int, str] | None:
    """A delta at this epsilon, its bits and what it comes from: the first that is at most `delta`, else the least.

    If other laws are not as good as the first, these are composed along another line. None where no laws are proved to
    dominate, or no line has an answer.
    """
    best: tuple[float, int, str] | None = None
    for at, laws in _candidates(rounds, math.log(rounded_down(delta))):
        line = along_line(at, again=True) if at.proved else None
        found = None if line is None else delta_along(line, at, epsilon)
        if found is not None and (best is None or found.value < best[0]):
            best = found.value, found.bits, f"at the order n = {at.order:g}, by {laws} and along another line"
            if not delta < found.value <= _HOPELESS * delta:
                break
    return best


def _candidates(rounds: Rounds, log_delta: float) -> Iterator[tuple[Chosen, str]]:
    first = theorem_w.chosen(rounds, log_delta)
    if first is None:
        return
    for part in _BESIDE:
        other = theorem_w.beside(rounds, log_delta, part)
        if other is not None and other.laws != first.laws:
            yield other, "laws on another lattice"
    yield first, "the same laws"
