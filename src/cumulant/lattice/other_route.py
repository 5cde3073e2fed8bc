"""An answer of the exact layer checked by another route: the closed form at more bits, another line, or the saddle line.

What balls have proved is proved again along a line of another order and period, at twice the bits. The optimum of adaptive
rounds is enclosed again by a recursion from the other end, on another grid, and Theorem W proved again by other laws.

The saddle line shares the description of one round with a lattice, and nothing else: no grid of losses, no cells, no
transform, no window of a wrapped sum. It is self-checked by a line of twice the period.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from cumulant.conversion.verify import Verification, ulps
from cumulant.lattice import adaptive_again, order_again, saddle, single
from cumulant.lattice.choosing import cone_delta
from cumulant.lattice.lattice import Terms, leak_of
from cumulant.lattice.rounds import Rounds
from cumulant.lattice.saddle import Line
from cumulant.lattice.second_line import second_delta
from cumulant.lattice.spectrum import FloatLine
from cumulant.numerics.rounding import rounded_down, rounded_up

_BITS = 4 * single.BITS

_TOLERANCE, _DISAGREEMENT, _LOOSEST = 1e-9, 4.0, 1e-3
"""What is allowed to the line beyond the difference of its two periods, how often that, and when it says too little."""

_SILENT = -32.0
"""log of what a spectrum may return to beyond the last frequency."""


def verify(
    rounds: Rounds, way: str, epsilon: Fraction, delta: Fraction, accuracy: float = 1e-3, proved: bool = False
) -> Verification | None:
    """Whether delta at this epsilon is at most this delta in (0, 1); None where no other route is open.

    What was proved to this accuracy is proved again where that is within reach, and must not contradict the saddle line.
    """
    alone = rounds.single()
    if alone is not None:
        low, high = single.enclosed_delta(*alone, epsilon, _BITS)
        ends = rounded_down(low), rounded_up(high)
        gap = ulps(delta, high)
        return Verification(high <= delta, *_stated(epsilon, delta), *ends, gap, "balls", _BITS)
    if way in ("adaptive", "order"):  # the composition of the pair that dominates in profiles needs more
        optimum = _by_recursion(rounds, epsilon, delta)
        return _by_order(rounds, epsilon, delta) if optimum is None and way == "order" else optimum
    second = second_delta(rounds, way == "cone", epsilon, accuracy) if proved else None
    if second is not None and not second[0] <= delta < second[1]:
        low, high, bits = second
        ends, note = (rounded_down(low), rounded_up(high)), "along a line of another order and period"
        return Verification(high <= delta, *_stated(epsilon, delta), *ends, ulps(delta, high), "balls", bits, note)
    reference = rounds.cone() if way == "cone" else None
    found = [_by_line(terms, float(epsilon), float(delta)) for terms in rounds.upper()] if reference is None else []
    if reference is not None:
        found = [_by_line(reference, float(epsilon), float(delta), _by_cone)]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or not known:
        return None
    value, tolerance, frequencies = max(known)
    ends = value * (1 - tolerance), value * (1 + tolerance)
    note = f"confirmed to {tolerance:.1g} of delta" if ends[0] <= delta else ""
    gap = ulps(delta, Fraction(value))
    return Verification(ends[0] <= delta, *_stated(epsilon, delta), *ends, gap, "saddle line", frequencies, note)


def _by_recursion(rounds: Rounds, epsilon: Fraction, delta: Fraction) -> Verification | None:
    """The optimum of adaptive reports from both sides, where that decides."""
    reports = rounds.reports()
    found = None if reports is None else adaptive_again.enclosed_delta(reports, epsilon, delta)
    if found is None or found[0] <= delta < found[1]:
        return None
    low, high, points = found
    note = "the optimum of an adversary who chooses anew in every round"
    given = *_stated(epsilon, delta), low, high, ulps(delta, Fraction(high))
    return Verification(high <= delta, *given, "recursion", points, note)


def _by_order(rounds: Rounds, epsilon: Fraction, delta: Fraction) -> Verification | None:
    """Theorem W by another reference, at another order n where that is enough, along another line."""
    found = order_again.second_delta(rounds, epsilon, delta)
    if found is None or found[0] > delta:
        return None
    high, bits, how = found
    given = *_stated(epsilon, delta), 0.0, high, ulps(delta, Fraction(high))
    return Verification(True, *given, "balls", bits, f"Theorem W {how}")


def _stated(epsilon: Fraction, delta: Fraction) -> tuple[float, float, str]:
    return rounded_up(epsilon), rounded_up(delta), "delta"


Reading = Callable[[Line, float], float]
"""log delta at an epsilon from a line."""


@np.errstate(all="ignore")
def _by_line(
    terms: Terms, epsilon: float, delta: float, reading: Reading = Line.log_delta
) -> tuple[float, float, int] | None:
    """delta at this epsilon, the tolerance to which it is known, and the number of frequencies; None where it is not."""
    at = saddle.saddle_at(terms, epsilon)
    if at is None or sum(times * step.log_atoms(float(at.lam[0])) for step, times in terms) > _SILENT:
        return None
    finer = saddle.line(terms, at, saddle.spread(terms, at), 2.0)
    if finer is None:
        return None
    values = [leak_of(terms) + math.exp(reading(one, epsilon)) for one in (finer.coarser(), finer)]
    size = max(values[1], delta, 5e-324)
    tolerance = _TOLERANCE + _DISAGREEMENT * abs(values[0] - values[1]) / size
    return (values[1], tolerance, finer.frequencies.size) if tolerance <= _LOOSEST else None


def _by_cone(line: Line, epsilon: float) -> float:
    """Theorem B at this epsilon: the least bound over the gap, of which each holds."""

    z = line.lam + 1j * line.frequencies
    period = 2 * math.pi / (line.frequencies[1] - line.frequencies[0])
    weights = np.exp(line.exponents) / (z * (1 + z)) ** 2
    return cone_delta(FloatLine(line.lam, period, line.cgf, weights, line.frequencies), epsilon)[0]
