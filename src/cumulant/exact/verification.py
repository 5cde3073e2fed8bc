"""Check an answer by a second route.

That is the closed form at more bits, another inversion line, or the saddle line.

A proved answer is proved a second time on a line of another order and period, at twice the bits. The optimum of adaptive
rounds is enclosed by a second recursion on another grid, and Theorem W is proved a second time with other reference laws.

The saddle line shares the description of one round with a grid, and nothing else: no grid of losses, no cells, no
transform, no window of a wrapped sum. It checks itself by a line of twice the period.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.conversion.query import Query
from cumulant.conversion.verify import Verification, ulps
from cumulant.exact import closed_form
from cumulant.exact.adaptive import second_recursion, theorem_w
from cumulant.exact.adaptive.theorem_w import ReferenceChoice
from cumulant.exact.adaptive.theorem_w_line import build_reference_line, end_along
from cumulant.exact.inversion import saddle
from cumulant.exact.inversion.choose import Side, best_value, choose_second_line, sides
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.lattice_line import build_lattice_line
from cumulant.exact.inversion.line import Choice, build_line, spacing_of
from cumulant.exact.inversion.line import Line as InversionLine
from cumulant.exact.inversion.saddle import Line
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.rounds import Rounds
from cumulant.exact.test_functions import THEOREM_B, TestFunction
from cumulant.losses.grid import Terms, leak_of
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, rounded_down, rounded_up


@dataclass(frozen=True, slots=True)
class VerificationSettings:
    """Constants of second evaluations.

    A worse value confirms fewer answers and refutes none that hold.
    """

    order_factors: tuple[float, ...] = (0.8, 0.65)
    """Parts of the saddle point's order for a second line; convention: any other number than 1 (docs/line.md)."""

    accuracy: float = 1e-18
    """Accuracy of a second line; derived: far below a float's last digit, so that its error terms do not count."""

    smoothing_share: float = 0.005
    """Part of the accuracy that smoothing may cost here; derived: less than the 0.01 of the first line."""

    parabola_widths: tuple[float, ...] = (1e-3, 1e-6)
    """Widths of the parabolas that find the gap of Theorem B, as parts of the gap; chosen by hand."""

    test_order_factors: tuple[float, ...] = (1.25, 0.8, 1.1, 0.9, 1.0)
    """Parts of the order n of Theorem W: first others, then the same; chosen by hand."""

    hopeless: float = 1.1
    """Factor of the stated delta beyond which no other order is tried; chosen by hand."""

    closed_form_bits: int = 4 * closed_form.BITS
    """Precision of a second closed form, in bits; convention: four times the first."""

    tolerance: float = 1e-9
    """Relative tolerance of the saddle line beyond the difference of its two periods; chosen by hand (docs/exact.md)."""

    disagreement: float = 4.0
    """Factor of the difference of the two periods in the tolerance; chosen by hand."""

    loosest: float = 1e-3
    """Tolerance beyond which the saddle line confirms nothing; chosen by hand."""

    most_log_atoms: float = -32.0
    """Log of the size that a spectrum may return to beyond the last frequency; chosen by hand: e^-32 is below the tolerance."""


VERIFICATION = VerificationSettings()
"""Settings of second evaluations."""


# A proved answer is evaluated a second time on a line of another order and period, with other nodes and twice the bits.
#
# The second line shares the lemmas with the first and no number: the losses are tilted by another order, so that every weight,
# every panel, every check point of the decay and every frequency differs.


def second_delta(
    rounds: Rounds, theorem_b: bool, epsilon: Fraction, accuracy: float
) -> tuple[Fraction, Fraction, int] | None:
    """Return delta from below and above on a second line, and its bits.

    Returns None if no second line answers.
    """
    known = sides(rounds, theorem_b)
    if known is None or rounds.estimated:
        return None
    profile, by_theorem_b = known
    listed = profile if not theorem_b else [] if by_theorem_b is None else [by_theorem_b]
    found = [_side_enclosure(side, epsilon, accuracy) for side in listed]
    ends = [each for each in found if each is not None]
    if not ends or len(ends) < len(found):
        return None
    return max(low for low, _, _ in ends), max(high for _, high, _ in ends), max(bits for _, _, bits in ends)


def _side_enclosure(side: Side, epsilon: Fraction, accuracy: float) -> tuple[Fraction, Fraction, int] | None:
    """Return both ends of delta of one side on a second line, and the bits; None if balls fail."""
    found = _second_line(side, float(epsilon), accuracy)
    if found is None:
        return None
    with BALLS.at(found.choice.bits):
        at = BALLS.number(epsilon)
        try:
            if side.test.constants is not None:
                start = best_value(found.floats(side.test), float(epsilon), False, side.test)[1]
                low, high = Fraction(0), at_least(found.upper(at, side.test, _best_gap(found, side.test, at, start)))
            else:
                high, low = at_least(found.upper(at)), max(-at_least(-found.lower(at)), Fraction(0))
        except (DecayNotProved, ArithmeticError, ValueError):
            return None
    return min(low, high), high, found.choice.bits


def _best_gap(found: InversionLine, test: TestFunction, at: Any, start: float) -> Any:
    """Return the best gap of Theorem B by parabolas in balls.

    Floats know it only to half of their digits.
    """
    gap = BALLS.number(start)
    for width in VERIFICATION.parabola_widths:
        step = gap * width
        left, middle, right = (found.upper(at, test, gap + move * step).mid() for move in (-1, 0, 1))
        bend = left - 2 * middle + right
        if not bend > 0:
            break
        gap = (gap + step * (left - right) / (2 * bend)).mid()
    return gap


def _second_line(side: Side, epsilon: float, accuracy: float) -> InversionLine | None:
    """Return a line at another order, with a longer period and twice the bits.

    Returns None if no order works.
    """
    spacing = spacing_of(side.round_types)
    for part in VERIFICATION.order_factors:
        choice = choose_second_line(side, epsilon, VERIFICATION.accuracy, spacing, part)
        if choice is None:
            continue
        choice = replace(choice, period=LINE.second_period * choice.period, bits=2 * choice.bits)
        found = _build_second_line(side, choice, spacing, accuracy)
        if found is not None:
            return found
    return None


def _build_second_line(side: Side, choice: Choice, spacing: float, accuracy: float) -> InversionLine | None:
    """Return the line of this choice, smoothed only if needed; None if no decay is proved."""
    with BALLS.at(choice.bits):
        # an answer that was smoothed is smoothed less, so that it can be confirmed
        cost = (choice.lam + 1) * max(choice.lam, 1 / max(choice.epsilon, 1e-9))
        for smooth in (Fraction(0), Fraction(2 * VERIFICATION.smoothing_share * accuracy / cost)):
            try:
                if spacing:
                    return build_lattice_line(side.round_types, choice, 4 * LINE.most_work)
                return build_line(
                    side.round_types, choice, side.extra, smooth, LINE.most_work if smooth else 4 * LINE.most_work
                )
            except (DecayNotProved, ArithmeticError):
                continue
    return None


# Theorem W is evaluated a second time by laws on another lattice, checked at other rows, mostly at another order n.


def theorem_w_second_delta(rounds: Rounds, epsilon: Fraction, delta: Fraction) -> tuple[float, int, str] | None:
    """Return delta by Theorem W with other laws, its bits and its origin.

    It is the first that is at most `delta`, else the smallest.

    If other laws are worse than the first, the first laws are composed on another line. Returns None if no laws are proved to
    dominate, or no line answers.
    """
    best: tuple[float, int, str] | None = None
    for at, laws in _candidates(rounds, math.log(rounded_down(delta))):
        line = build_reference_line(at, again=True) if at.proved else None
        found = None if line is None else end_along(line, at, Query("epsilon", epsilon))
        if found is not None and (best is None or found.value < best[0]):
            best = found.value, found.bits, f"at the order n = {at.order:g}, by {laws} and along another line"
            if not delta < found.value <= VERIFICATION.hopeless * delta:
                break
    return best


def _candidates(rounds: Rounds, log_delta: float) -> Iterator[tuple[ReferenceChoice, str]]:
    """Yield reference laws for the second evaluation, and their name.

    Other laws first, then the same.
    """
    first = theorem_w.choose_reference(rounds, log_delta)
    if first is None:
        return
    for part in VERIFICATION.test_order_factors:
        other = theorem_w.choose_second_reference(rounds, log_delta, part)
        if other is not None and other.laws != first.laws:
            yield other, "laws on another lattice"
    yield first, "the same laws"


def verify(
    rounds: Rounds, way: str, epsilon: Fraction, delta: Fraction, accuracy: float = 1e-3, proved: bool = False
) -> Verification | None:
    """Return a check that delta at this epsilon is at most this delta in (0, 1).

    Returns None if no second route exists.

    An answer proved to this accuracy is proved a second time if that is affordable, and must not contradict the saddle line.
    """
    alone = rounds.single()
    if alone is not None:
        low, high = closed_form.enclosed_delta(*alone, epsilon, VERIFICATION.closed_form_bits)
        ends = rounded_down(low), rounded_up(high)
        gap = ulps(delta, high)
        return Verification(
            high <= delta, *_checked_numbers(epsilon, delta), *ends, gap, "balls", VERIFICATION.closed_form_bits
        )
    if way in ("adaptive", "order"):  # the composition of the pair that dominates in profiles needs more
        optimum = _check_by_recursion(rounds, epsilon, delta)
        return _check_theorem_w(rounds, epsilon, delta) if optimum is None and way == "order" else optimum
    second = second_delta(rounds, way == "cone", epsilon, accuracy) if proved else None
    if second is not None and not second[0] <= delta < second[1]:
        low, high, bits = second
        ends, note = (rounded_down(low), rounded_up(high)), "along a line of another order and period"
        return Verification(
            high <= delta, *_checked_numbers(epsilon, delta), *ends, ulps(delta, high), "balls", bits, note
        )
    reference = rounds.theorem_b if way == "cone" else None
    found = (
        [_saddle_line_delta(terms, float(epsilon), float(delta)) for terms in rounds.upper()]
        if reference is None
        else []
    )
    if reference is not None:
        found = [_saddle_line_delta(reference.terms, float(epsilon), float(delta), _saddle_line_theorem_b)]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or not known:
        return None
    value, tolerance, frequencies = max(known)
    ends = value * (1 - tolerance), value * (1 + tolerance)
    note = f"confirmed to {tolerance:.1g} of delta" if ends[0] <= delta else ""
    gap = ulps(delta, Fraction(value))
    return Verification(
        ends[0] <= delta, *_checked_numbers(epsilon, delta), *ends, gap, "saddle line", frequencies, note
    )


def _check_by_recursion(rounds: Rounds, epsilon: Fraction, delta: Fraction) -> Verification | None:
    """Return the check by a second recursion for adaptive reports; None if it does not decide."""
    reports = rounds.reports()
    found = None if reports is None else second_recursion.enclosed_delta(reports, epsilon, delta)
    if found is None or found[0] <= delta < found[1]:
        return None
    low, high, points = found
    note = "the optimum of an adversary who chooses anew in every round"
    given = *_checked_numbers(epsilon, delta), low, high, ulps(delta, Fraction(high))
    return Verification(high <= delta, *given, "recursion", points, note)


def _check_theorem_w(rounds: Rounds, epsilon: Fraction, delta: Fraction) -> Verification | None:
    """Return the check of Theorem W by other reference laws; None if they do not confirm."""
    found = theorem_w_second_delta(rounds, epsilon, delta)
    if found is None or found[0] > delta:
        return None
    high, bits, how = found
    given = *_checked_numbers(epsilon, delta), 0.0, high, ulps(delta, Fraction(high))
    return Verification(True, *given, "balls", bits, f"Theorem W {how}")


def _checked_numbers(epsilon: Fraction, delta: Fraction) -> tuple[float, float, str]:
    """Return epsilon and delta rounded up, and the name of the checked number."""
    return rounded_up(epsilon), rounded_up(delta), "delta"


Reading = Callable[[Line, float], float]
"""log delta at an epsilon from a line."""


@np.errstate(all="ignore")
def _saddle_line_delta(
    terms: Terms, epsilon: float, delta: float, reading: Reading = Line.log_delta
) -> tuple[float, float, int] | None:
    """Return delta on the saddle line, its tolerance and the number of frequencies.

    Returns None if the line is not accurate.
    """
    at = saddle.saddle_point(terms, epsilon=epsilon)
    if (
        at is None
        or sum(times * step.log_atoms(float(at.lam[0])) for step, times in terms) > VERIFICATION.most_log_atoms
    ):
        return None
    finer = saddle.line(terms, at, saddle.spread(terms, at), 2.0)
    if finer is None:
        return None
    values = [leak_of(terms) + math.exp(reading(one, epsilon)) for one in (finer.coarser(), finer)]
    size = max(values[1], delta, 5e-324)
    tolerance = VERIFICATION.tolerance + VERIFICATION.disagreement * abs(values[0] - values[1]) / size
    return (values[1], tolerance, finer.frequencies.size) if tolerance <= VERIFICATION.loosest else None


def _saddle_line_theorem_b(line: Line, epsilon: float) -> float:
    """Return log delta by Theorem B at this epsilon.

    It is the smallest bound over the gap, each of which is valid.
    """
    return best_value(line.floats(THEOREM_B), epsilon, False, THEOREM_B)[0]
