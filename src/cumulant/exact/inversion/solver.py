"""Solve for epsilon or delta on an inversion line.

Floats search and choose, one evaluation in balls proves (docs/line.md).

Why an upper end is valid:

1. `Rounds.lines` yields the transforms of pairs that dominate every round, one line per direction of the neighbours; the
   largest direction counts. `Rounds.theorem_b` yields those of Theorem B, if every scheme says that its hypotheses hold.
2. `Line.upper` encloses E g(S - eps) in balls. What it adds besides, images and smoothing, is not negative (Theorem L-upper).
3. `decay_frequency` bounds the frequencies that are not summed, or raises `DecayNotProved`.
4. `prove_epsilon` returns an epsilon only if balls prove that this bound is at most delta there.

Floats choose the line, the gap and the start of the search; a bad choice costs accuracy or time.

None means that the line has no answer, or none within the work limit; the caller then uses floats or a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from cumulant.conversion.query import Query
from cumulant.exact.inversion.choose import (
    GUESS_LINES,
    Side,
    best_value,
    choose_at_order,
    choose_line,
    guess,
    line_suffices,
    search_target,
    sides,
    tightest_order,
)
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.lattice_line import build_lattice_line
from cumulant.exact.inversion.line import (
    Choice,
    Line,
    build_line,
    gaussian_square,
    leak_probability,
    moment_ball,
    right_tail_bound,
    spacing_of,
)
from cumulant.exact.inversion.settings import LINE, SEARCH
from cumulant.exact.rounds import Rounds, RoundTypes
from cumulant.exact.test_functions import HOCKEY_STICK, THEOREM_B, TestFunction
from cumulant.losses.grid import Terms
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import as_printed, at_least, rounded_down, rounded_up
from cumulant.numerics.search import invert_falling, locate_minimum


@dataclass(frozen=True, slots=True)
class _SharedLines:
    """Lines that several questions share, and for which questions Theorem B was smaller."""

    spare: float
    spectra: list[tuple[Side, Line]] = field(default_factory=list)
    decisions: list[tuple[list[Side], Side | None, float, bool]] = field(default_factory=list)

    def decision(self, profile: list[Side], by_theorem_b: Side | None, asked: float) -> bool | None:
        """Return the decision of the two nearest questions; None if they were decided differently, or one is missing."""
        below: tuple[float, bool] | None = None
        above: tuple[float, bool] | None = None
        for listed, reference, where, found in self.decisions:
            if listed != profile or reference != by_theorem_b:
                continue
            if where <= asked and (below is None or (where, found) > below):
                below = where, found
            if where >= asked and (above is None or (where, found) < above):
                above = where, found
        return below[1] if below is not None and above is not None and below[1] == above[1] else None


_shared: ContextVar[_SharedLines | None] = ContextVar("shared", default=None)


@contextmanager
def share_lines(spare: float = LINE.spare) -> Iterator[None]:
    """Let the questions asked inside share their lines.

    Each line is built with `spare` nats of extra accuracy.
    """
    token, guesses = _shared.set(_SharedLines(spare)), GUESS_LINES.set([])
    try:
        yield
    finally:
        GUESS_LINES.reset(guesses)
        _shared.reset(token)


@dataclass(frozen=True, slots=True)
class ProvedEnd:
    """A number that balls prove on a line.

    `order` is lam + 1 of the line; `bits` is the precision of its balls.
    """

    value: float
    order: float
    frequencies: int
    bits: int
    radius: float
    """Radius of the proving ball, carried over to the value."""
    smoothed: bool
    """True if a Gaussian was added to prove the decay; then a grid may give a smaller number."""
    choice: Choice
    holds: bool = True
    """False if the reference law of Theorem W was not proved to dominate, so that the number is only bounded."""
    rough: bool = False
    """True if the line is less accurate than was asked for; then a grid may give a smaller number."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Work limits of balls in frequencies times nodes, and the reasons of failures."""

    work: int = LINE.most_work
    smoothing: int = LINE.smoothing_work
    wants_proof: bool = False
    reasons: list[DecayNotProved] = field(default_factory=list, compare=False)

    @classmethod
    def unlimited(cls) -> Effort:
        """Return limits for `prove=True`.

        They allow ten seconds instead of one, and smoothing up to a quarter of the accuracy.
        """
        return cls(LINE.proof_work, LINE.proof_work, True)


def upper_end(
    rounds: Rounds, query: Query, accuracy: float, theorem_b: bool = True, effort: Effort | None = None
) -> tuple[ProvedEnd, bool] | None:
    """Return the smallest epsilon, or delta, proved from above, and if Theorem B gave it.

    It is that of the profile or of Theorem B, whichever floats say is smaller. Returns None if the line has no answer.
    """
    effort = effort or Effort()
    found_sides = sides(rounds, theorem_b)
    if found_sides is None or rounds.estimated or query.value > LINE.largest_epsilon:
        return None
    profile, by_theorem_b = found_sides
    winner = _theorem_b_is_smaller(profile, by_theorem_b, query, effort)
    if winner is None and by_theorem_b is not None and rounds.theorem_b_on_grid is None:
        # No grid evaluates Theorem B of a mixture, so that nothing is lost if the profile answers alone.
        winner, by_theorem_b = _theorem_b_is_smaller(profile, None, query, effort), None
    if winner is None and not effort.wants_proof:
        return None
    best: tuple[ProvedEnd, bool] | None = None
    for which in (True, False) if winner is None else (winner, not winner):
        if winner is not None and which != winner and (best is not None or not effort.wants_proof):
            break
        listed = profile if not which else [] if by_theorem_b is None else [by_theorem_b]
        most = _largest_direction(listed, query, accuracy, effort)
        if most is not None and (best is None or most.value < best[0].value):
            best = most, which
    return best


def lower_end(
    rounds: Rounds, terms: Terms, round_types: RoundTypes, query: Query, accuracy: float, effort: Effort | None = None
) -> ProvedEnd | None:
    """Return the epsilon, or delta, that these neighbours need, proved from below.

    Returns None if the line has no answer.
    """
    side, effort = Side(terms, round_types), effort or Effort()
    if rounds.estimated or query.value > LINE.largest_epsilon:
        return None
    if not _skips_guess(side, effort) and guess(side, query) is None:
        return None
    return side_end(side, query, accuracy, upper=False, effort=effort)


def guessed_end(terms: Terms, round_types: RoundTypes | None, query: Query) -> float:
    """Return the epsilon, or delta, of these rounds by floats; +inf if floats have no guess."""
    found = None if query.value > LINE.largest_epsilon else guess(Side(terms, round_types or ()), query)
    if found is None:
        return math.inf
    return found if query.wants_epsilon else math.exp(min(found, 0.0))


def _largest_direction(sides: list[Side], query: Query, accuracy: float, effort: Effort) -> ProvedEnd | None:
    """Return the largest proved answer of all directions; None if one of them has no answer."""
    best: ProvedEnd | None = None
    for side in sides:
        if best is not None and _proves_no_more(side, best.choice, *query.point(best.value)):
            continue
        other = side_end(side, query, accuracy, effort=effort)
        if other is None:
            return None
        best = other if best is None or other.value > best.value else best
    return best


def _proves_no_more(side: Side, choice: Choice, epsilon: Fraction | float, delta: Fraction | float) -> bool:
    """Return True if balls prove delta(epsilon) <= delta for this side on the other side's line.

    Every line is valid.
    """
    if spacing_of(side.round_types):
        return False
    try:
        with BALLS.at(choice.bits):
            if _proved_by_one_order(side, choice, epsilon, delta):
                return True
            rough = choose_at_order(
                side,
                choice.lam,
                float(epsilon),
                math.log(float(delta)),
                math.exp(LINE.margin_exponent - LINE.rough_exponent),
            )
            if rough is None:
                return False
            found = build_line(side.round_types, rough, side.extra)
            return bool(found.upper(BALLS.number(epsilon)) <= BALLS.number(delta))
    except (DecayNotProved, ArithmeticError):
        return False


def _proved_by_one_order(side: Side, choice: Choice, epsilon: Fraction | float, delta: Fraction | float) -> bool:
    """Return True if one real order t proves it.

    It is delta(eps) <= leak + c(t) M(t) e^{-t eps}, (1 - e^-y)_+ <= c(t) e^{ty}.
    """
    t, log_bound = tightest_order(side, float(epsilon), choice.lam)
    if not log_bound < math.log(float(delta)):
        return False
    mass = moment_ball(side.round_types, replace(choice, image_order=t), side.extra + gaussian_square(side.round_types))
    bound = leak_probability(side.round_types) + right_tail_bound(BALLS.number(t), mass, BALLS.number(epsilon))
    return bool(bound <= BALLS.number(delta))


def _theorem_b_is_smaller(profile: list[Side], by_theorem_b: Side | None, query: Query, effort: Effort) -> bool | None:
    """Return True if floats say that Theorem B is smaller; None if floats find no line.

    Every decision is valid. A shared question between two that were decided alike is decided with them.
    """
    shared, asked = _shared.get(), float(query.value)
    if shared is not None and (known := shared.decision(profile, by_theorem_b, asked)) is not None:
        return known
    if by_theorem_b is None and all(map(partial(_skips_guess, effort=effort, many=LINE.many_rounds), profile)):
        return False
    guesses: list[float] = []
    for side in profile if by_theorem_b is not None else profile[:1]:
        if (value := guess(side, query)) is None:
            return None
        guesses.append(value)
    least = None if by_theorem_b is None else guess(by_theorem_b, query)
    if by_theorem_b is not None and least is None:
        return None
    found = least is not None and least < max(guesses)
    if shared is not None:
        shared.decisions.append((profile, by_theorem_b, asked, found))
    return found


def _skips_guess(side: Side, effort: Effort, many: float = math.inf) -> bool:
    """Return True if balls are asked without a guess.

    That is so if a proof is wanted, for atoms, for unsampled Gaussians, and from so `many` rounds on.
    """
    smooth, rounds = False, 0
    for each, times in side.round_types:
        if each.square:
            return True
        smooth = smooth or each.density_law() is not None
        rounds += times
    return effort.wants_proof or not smooth or rounds >= many


# ---- what balls prove


def _shared_or_new_line(
    side: Side, log_delta: float | None, epsilon: float | None, accuracy: float, effort: Effort
) -> tuple[Line, bool] | None:
    """Return a line for the question, shared or new, and if it is accurate enough.

    Returns None if none is affordable.
    """
    shared = _shared.get()
    loose = accuracy * LINE.looser if shared is not None and not shared.spare else accuracy
    lines: list[Line] = []
    for where, line in () if shared is None else shared.spectra:
        if where.same_law(side) and not line.smooth:
            lines.append(line)
    if len(lines) > LINE.most_candidates:  # the latest questions are near this one, and the first ones in the middle
        del lines[LINE.most_candidates // 2 : -LINE.most_candidates // 2]
    for found in lines:
        if line_suffices(side, found, log_delta, epsilon, loose):
            return found, True
    fine = accuracy if shared is None else accuracy * math.exp(-shared.spare)
    built = _new_line(side, log_delta, epsilon, fine, accuracy, effort)
    if (
        built is not None
        and not built.smooth
        and not line_suffices(side, built, log_delta, epsilon, accuracy * LINE.looser)
    ):
        # The saddle point was a poor guess, as with few rounds or far out: a second line gets a larger margin.
        at = epsilon
        if log_delta is not None and not side.is_theorem_b:
            root = best_value(built.floats(), log_delta, True, HOCKEY_STICK)[0]
            at = root if math.isfinite(root) else None
        finer = _new_line(side, log_delta, at, fine * math.exp(-LINE.spare), accuracy, effort)
        # An inaccurate line is valid; if it costs more than the accuracy the caller's grid may give a smaller number.
        fair = effort.wants_proof or line_suffices(side, built, log_delta, epsilon, accuracy * LINE.loosest)
        if finer is None and not fair:
            return built, False
        built = finer or built
    if built is not None and shared is not None:
        shared.spectra.append((side, built))
    return None if built is None else (built, True)


def _new_line(
    side: Side, log_delta: float | None, epsilon: float | None, fine: float, accuracy: float, effort: Effort
) -> Line | None:
    """Build a line of this accuracy; None if no decay is proved.

    It is smoothed by at most a part of the accuracy if nothing else proves the decay.
    """
    spacing = spacing_of(side.round_types)
    choice = choose_line(side, log_delta, epsilon, min(fine, LINE.lattice_accuracy) if spacing else fine, spacing)
    if choice is None:
        return None
    with BALLS.at(choice.bits):
        try:
            if spacing:
                return build_lattice_line(side.round_types, choice, effort.work)
            return build_line(side.round_types, choice, side.extra, work=effort.work)
        except (DecayNotProved, ArithmeticError) as reason:
            effort.reasons.append(reason if isinstance(reason, DecayNotProved) else DecayNotProved(str(reason)))
        dense = any(each.density_law() is not None for each, _ in side.round_types)
        if spacing or (dense and not effort.wants_proof):
            return None  # few rounds of noise with a density take too many nodes
        # in epsilon it costs (lam + 1) tau^2 / 2, in log delta lam (lam + 1) tau^2 / 2
        cost = (choice.lam + 1) * (choice.lam if log_delta is None else 1 / max(choice.epsilon, LINE.smallest_epsilon))
        for part in LINE.smoothing_shares if effort.wants_proof else LINE.smoothing_shares[:1]:
            try:
                smooth = Fraction(2 * part * accuracy / cost)
                return build_line(side.round_types, choice, side.extra, smooth, effort.smoothing)
            except (DecayNotProved, ArithmeticError):
                continue
    return None


def _has_bounded_images(found: Line) -> bool:
    """Return True if the moment at the image order is finite; lower bounds need it."""
    try:
        with BALLS.at(found.choice.bits):
            return bool(found.images(BALLS.number(0)).is_finite())
    except ArithmeticError:
        return False


def side_end(
    side: Side, query: Query, accuracy: float, upper: bool = True, effort: Effort | None = None
) -> ProvedEnd | None:
    """Return the proved epsilon, or delta, of one side, from above or from below.

    Returns None if the line has no answer.
    """
    target = search_target(side, query)
    if target is None:
        return None
    log_delta, epsilon = (target, None) if query.wants_epsilon else (None, target)
    found = _shared_or_new_line(side, log_delta, epsilon, accuracy, effort or Effort())
    if found is None:
        return None
    line, accurate = found
    if not upper and not (accurate and _has_bounded_images(line)):
        return None
    end = prove_end(line, side.test, query, target, accuracy, upper)
    return end if end is None or accurate else replace(end, rough=True)


def prove_end(
    line: Line, test: TestFunction, query: Query, target: float, accuracy: float, upper: bool = True
) -> ProvedEnd | None:
    """Return an epsilon, or a delta, that balls prove on this line.

    Returns None if balls overflow or prove nothing.

    `target` is log of delta without the leak, or epsilon, in floats, from which the search begins. From below the test function
    must be the hockey stick.
    """
    with BALLS.at(line.choice.bits):
        start, gap = math.nan, None
        if query.wants_epsilon or test.constants is not None:
            start, best_gap = best_value(line.floats(test), target, query.wants_epsilon, test)
            if test.constants is not None:
                if not best_gap > 0:
                    return None
                gap = BALLS.number(best_gap)
        if query.wants_epsilon:
            found = _invert_delta(line, test, gap, query.value, target, start, accuracy, upper)
            if found is None:
                return None
            value, radius = found
        else:
            asked = BALLS.number(query.value)
            end = line.upper(asked, test, gap) if upper else line.lower(asked)
            if not end.is_finite():
                return None
            value = rounded_up(at_least(end)) if upper else rounded_down(max(-at_least(-end), Fraction(0)))
            if not value > 0:
                return None
            value, radius = min(value, 1.0), float(line.bound(asked, test, gap).rad())
        choice = line.choice
        return ProvedEnd(value, choice.lam + 1, line.frequencies, choice.bits, radius, line.smooth > 0, choice)


def prove_epsilon(bound: Callable[[Any], Any], asked: Any, start: float, upper: bool = True) -> float | None:
    """Return the smallest float at which balls prove that a bound on delta is at most `asked`.

    From below it is the largest float at which they prove that the bound is larger. Either holds for the float and for the
    decimal that it prints as. Floats may have no digits left, so that balls are followed too. Returns None if nothing is
    proved.
    """
    weaker = min if upper else max

    def excess(epsilon: float) -> tuple[bool, float]:
        value = bound(BALLS.number(weaker(Fraction(epsilon), as_printed(epsilon))))
        part = value / asked
        followed = part.is_finite() and part > 0  # from below, images may be more than what is left: nothing to follow
        return not value <= asked if upper else bool(value > asked), float(part.log().mid()) if followed else math.nan

    if start <= 0 and upper and not excess(0.0)[0]:
        return 0.0
    guess, step = (start, SEARCH.first_step) if start > 0 else (1.0, 1.0)
    low, high = invert_falling(excess, guess, SEARCH.smallest, SEARCH.largest, step)
    return high if upper else low


def _invert_delta(
    line: Line,
    test: TestFunction,
    gap: Any,
    delta: Fraction,
    log_target: float,
    start: float,
    accuracy: float,
    upper: bool,
) -> tuple[float, float] | None:
    """Return the epsilon at which the line's delta passes the given one, from either side, and its radius.

    Returns None if none is proved.
    """
    if not math.isfinite(start):
        return None
    choice, asked = line.choice, BALLS.number(delta)
    if test is THEOREM_B and choice.decay_exponent - choice.image_exponent > LINE.most_cancelled_gap:
        # Floats lose the digits that cancel, and with them the best gap: any gap is valid, a poor one costs accuracy.
        found = prove_epsilon(partial(line.upper, test=test, gap=gap), asked, start)
        start = start if found is None else found
        near = BALLS.number(start)
        gap = BALLS.number(locate_minimum(lambda d: line.upper(near, test, BALLS.number(d)).mid(), float(gap)))
    value = prove_epsilon(partial(line.upper, test=test, gap=gap) if upper else line.lower, asked, start, upper)
    if value is None:
        return None
    radius = float(line.bound(BALLS.number(value), test, gap).rad())
    slope = abs(line.floats(test).log_value(value)[1]) * math.exp(log_target)
    if slope > 0 and radius / slope > max(accuracy, SEARCH.widest) * value > 0:
        return None
    return value, radius / slope if slope > 0 else math.inf
