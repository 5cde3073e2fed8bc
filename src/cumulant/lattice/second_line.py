"""A proved answer, evaluated again along another line: another order and period, other nodes, twice the bits.

It shares the lemmas with the first line and no number: the losses are tilted by another order, so that every weight, every
panel, every check point of silence and every frequency differs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from cumulant.lattice.choosing import Side, chosen_beside, cone_delta, sides
from cumulant.lattice.folded import folded, spacing_of
from cumulant.lattice.powers import MOST_WORK, Choice
from cumulant.lattice.rounds import Rounds
from cumulant.lattice.silence import Loud
from cumulant.lattice.spectrum import Enclosing, spectrum
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least

_ORDERS, _LONGER = (0.8, 0.65), 1.37
_FINE = 1e-18
"""Far below the last digit of a float, so that its own error terms do not count."""

_SMOOTHER = 0.005
"""Of the accuracy, what smoothing may cost here."""

_WIDTHS = (1e-3, 1e-6)
"""Of the parabolas, as parts of the gap."""


def second_delta(
    rounds: Rounds, cone: bool, epsilon: Fraction, accuracy: float
) -> tuple[Fraction, Fraction, int] | None:
    """delta at this epsilon by Theorem B or by the profile, from below and above, and the bits; None where it is unknown."""
    known = sides(rounds, cone)
    if known is None or rounds.estimated:
        return None
    profile, by_cone = known
    listed = profile if not cone else [] if by_cone is None else [by_cone]
    found = [_enclosed(side, epsilon, accuracy) for side in listed]
    ends = [each for each in found if each is not None]
    if not ends or len(ends) < len(found):
        return None
    return max(low for low, _, _ in ends), max(high for _, high, _ in ends), max(bits for _, _, bits in ends)


def _enclosed(side: Side, epsilon: Fraction, accuracy: float) -> tuple[Fraction, Fraction, int] | None:
    found = _built(side, float(epsilon), accuracy)
    if found is None:
        return None
    with BALLS.at(found.choice.bits):
        at = BALLS.number(epsilon)
        try:
            if side.cone:
                start = cone_delta(found.floats(2), float(epsilon))[1]
                low, high = Fraction(0), at_least(found.cone(at, _best_gap(found, at, start)))
            else:
                high, low = at_least(found.upper(at)), max(-at_least(-found.lower(at)), Fraction(0))
        except (Loud, ArithmeticError, ValueError):
            return None
    return min(low, high), high, found.choice.bits


def _best_gap(found: Enclosing, at: Any, start: float) -> Any:
    """The gap of Theorem B by parabolas in balls: floats know it to half of their digits, and the last ones would be missed."""
    gap = BALLS.number(start)
    for width in _WIDTHS:
        step = gap * width
        left, middle, right = (found.cone(at, gap + move * step).mid() for move in (-1, 0, 1))
        bend = left - 2 * middle + right
        if not bend > 0:
            break
        gap = (gap + step * (left - right) / (2 * bend)).mid()
    return gap


def _built(side: Side, epsilon: float, accuracy: float) -> Enclosing | None:
    spacing = 0.0 if side.cone else spacing_of(side.kinds)
    for part in _ORDERS:
        choice = chosen_beside(side, epsilon, _FINE, spacing, part)
        if choice is None:
            continue
        choice = replace(choice, period=_LONGER * choice.period, bits=2 * choice.bits)
        found = _line(side, choice, spacing, accuracy)
        if found is not None:
            return found
    return None


def _line(side: Side, choice: Choice, spacing: float, accuracy: float) -> Enclosing | None:
    with BALLS.at(choice.bits):
        # an answer that was smoothed is smoothed less, so that it can be confirmed
        price = (choice.lam + 1) * max(choice.lam, 1 / max(choice.epsilon, 1e-9))
        for smooth in (Fraction(0), Fraction(2 * _SMOOTHER * accuracy / price)):
            try:
                if spacing:
                    return folded(side.kinds, choice, 4 * MOST_WORK)
                return spectrum(side.kinds, choice, side.extra, smooth, MOST_WORK if smooth else 4 * MOST_WORK)
            except (Loud, ArithmeticError):
                continue
    return None
