"""Solve for epsilon or delta on an inversion line.

Floats search and choose, one evaluation in balls proves (docs/line.md).

None means that the line has no answer, or none within the work limit; the caller then uses floats or a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from cumulant.exact.grid.fft import Terms, leak_of
from cumulant.exact.inversion.bracket import (
    largest_refuted_epsilon,
    locate_minimum,
    refine_root,
    smallest_proved_epsilon,
)
from cumulant.exact.inversion.choose import (
    Side,
    choose_line,
    delta_guess,
    epsilon_guess,
    find_root,
    least_epsilon,
    least_log_delta,
    line_suffices,
    share_guess_lines,
    sides,
)
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.directions import proves_no_more
from cumulant.exact.inversion.lattice_line import build_lattice_line, spacing_of
from cumulant.exact.inversion.line import Choice, Line, build_line
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.rounds import Rounds, RoundTypes
from cumulant.exact.test_functions import THEOREM_B, TestFunction
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, rounded_down, rounded_up


@dataclass(frozen=True, slots=True)
class _SharedLines:
    """Lines that several questions share, and for which questions Theorem B was smaller."""

    spare: float
    spectra: list[tuple[Side, Line]] = field(default_factory=list)
    decisions: list[tuple[list[Side], Side | None, float, bool]] = field(default_factory=list)


_shared: ContextVar[_SharedLines | None] = ContextVar("shared", default=None)


@contextmanager
def share_lines(spare: float = LINE.spare) -> Iterator[None]:
    """Let the questions asked inside share their lines.

    Each line is built with `spare` nats of extra accuracy.
    """
    token = _shared.set(_SharedLines(spare))
    try:
        with share_guess_lines():
            yield
    finally:
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


def line_epsilon(
    rounds: Rounds, delta: Fraction, accuracy: float, cone: bool = True, effort: Effort | None = None
) -> tuple[ProvedEnd, bool] | None:
    """Return the smallest epsilon proved from above at this delta, and if Theorem B gave it.

    Returns None if the line has no answer. delta is in (0, 1).
    """
    effort = effort or Effort()
    return _smaller_route(
        rounds,
        cone,
        float(delta),
        lambda side: epsilon_guess(side, delta),
        lambda side: _side_epsilon(side, delta, accuracy, effort=effort),
        lambda found: (found.value, delta),
        effort,
    )


def line_delta(
    rounds: Rounds, epsilon: Fraction, accuracy: float, cone: bool = True, effort: Effort | None = None
) -> tuple[ProvedEnd, bool] | None:
    """Return the smallest delta at this epsilon, proved from above, and if Theorem B gave it.

    Returns None if no answer.
    """
    if epsilon > LINE.largest_epsilon:
        return None
    effort = effort or Effort()
    return _smaller_route(
        rounds,
        cone,
        float(epsilon),
        lambda side: delta_guess(side, epsilon),
        lambda side: _side_delta(side, epsilon, accuracy, effort=effort),
        lambda found: (epsilon, found.value),
        effort,
    )


def line_lower_epsilon(
    rounds: Rounds,
    terms: Terms,
    round_types: RoundTypes,
    delta: Fraction,
    accuracy: float,
    effort: Effort | None = None,
) -> ProvedEnd | None:
    """Return the epsilon that these neighbours need at this delta, proved from below.

    Returns None if no answer.
    """
    side, effort = Side(terms, round_types), effort or Effort()
    if rounds.estimated or not (_skips_guess(side, effort) or epsilon_guess(side, delta) is not None):
        return None
    return _side_epsilon(side, delta, accuracy, upper=False, effort=effort)


def line_lower_delta(
    rounds: Rounds,
    terms: Terms,
    round_types: RoundTypes,
    epsilon: Fraction,
    accuracy: float,
    effort: Effort | None = None,
) -> ProvedEnd | None:
    """Return the delta that these neighbours need at this epsilon, proved from below.

    Returns None if no answer.
    """
    side, effort = Side(terms, round_types), effort or Effort()
    if epsilon > LINE.largest_epsilon or rounds.estimated:
        return None
    if not (_skips_guess(side, effort) or delta_guess(side, epsilon) is not None):
        return None
    return _side_delta(side, epsilon, accuracy, upper=False, effort=effort)


def _smaller_route(
    rounds: Rounds,
    cone: bool,
    asked: float,
    guess: Callable[[Side], float | None],
    proved: Callable[[Side], ProvedEnd | None],
    stated: Callable[[ProvedEnd], tuple[Fraction | float, Fraction | float]],
    effort: Effort,
) -> tuple[ProvedEnd, bool] | None:
    """Return the proved answer of the profile or of Theorem B, whichever floats say is smaller.

    Returns None if neither has one.
    """
    found_sides = sides(rounds, cone)
    if found_sides is None or rounds.estimated:
        return None
    profile, by_cone = found_sides
    winner = _theorem_b_is_smaller(profile, by_cone, asked, guess, effort)
    if winner is None and not effort.wants_proof:
        return None
    found: list[tuple[ProvedEnd, bool]] = []
    for which in (True, False) if winner is None else (winner, not winner):
        if winner is not None and which != winner and (found or not effort.wants_proof):
            break
        most = _largest_direction(
            [by_cone] if which and by_cone is not None else [] if which else profile, proved, stated
        )
        if most is not None:
            found.append((most, which))
    return min(found, key=lambda each: each[0].value, default=None)


def _largest_direction(
    sides: list[Side],
    proved: Callable[[Side], ProvedEnd | None],
    stated: Callable[[ProvedEnd], tuple[Fraction | float, Fraction | float]],
) -> ProvedEnd | None:
    """Return the largest proved answer of all directions; None if one of them has no answer."""
    best: ProvedEnd | None = None
    for side in sides:
        if best is not None and proves_no_more(side, best.choice, *stated(best)):
            continue
        other = proved(side)
        if other is None:
            return None
        best = other if best is None or other.value > best.value else best
    return best


def _theorem_b_is_smaller(
    profile: list[Side],
    by_cone: Side | None,
    asked: float,
    guess: Callable[[Side], float | None],
    effort: Effort,
) -> bool | None:
    """Return True if floats say that Theorem B is smaller; None if floats find no line.

    Every decision is valid. A shared question between two that were decided alike is decided with them.
    """
    shared = _shared.get()
    decisions = [] if shared is None else [each[2:] for each in shared.decisions if each[:2] == (profile, by_cone)]
    below = max((each for each in decisions if each[0] <= asked), default=None)
    above = min((each for each in decisions if each[0] >= asked), default=None)
    if below is not None and above is not None and below[1] == above[1]:
        return below[1]
    if by_cone is None and all(_skips_guess(side, effort) for side in profile):
        return False
    if by_cone is None and _has_many_rounds(profile[0]):
        return False
    guesses = [guess(side) for side in (profile if by_cone is not None else profile[:1])]
    least = None if by_cone is None else guess(by_cone)
    if any(each is None for each in guesses) or (by_cone is not None and least is None):
        return None
    found = least is not None and least < max(each for each in guesses if each is not None)
    if shared is not None:
        shared.decisions.append((profile, by_cone, asked, found))
    return found


def _has_many_rounds(side: Side) -> bool:
    """Return True if so many rounds run that a line is worth trying without a guess."""
    return sum(times for _, times in side.round_types) >= LINE.many_rounds


def _skips_guess(side: Side, effort: Effort) -> bool:
    """Return True if balls are asked without a guess.

    That is so for atoms, for unsampled Gaussians, and if a proof is wanted.
    """
    return effort.wants_proof or _has_atoms_only(side) or any(each.square for each, _ in side.round_types)


def _has_atoms_only(side: Side) -> bool:
    """Return True if every round type has atoms only."""
    return all(each.mixture() is None for each, _ in side.round_types)


# ---- what balls prove


def _shared_or_new_line(
    side: Side, log_delta: float | None, epsilon: float | None, accuracy: float, effort: Effort
) -> Line | None:
    """Return a line that is accurate enough for the question, shared or new.

    Returns None if none is affordable.
    """
    shared = _shared.get()
    loose = accuracy * LINE.looser if shared is not None and not shared.spare else accuracy
    for where, found in () if shared is None else shared.spectra:
        if where.same_law(side) and not found.smooth and line_suffices(side, found, log_delta, epsilon, loose):
            return found
    fine = accuracy if shared is None else accuracy * math.exp(-shared.spare)
    built = _new_line(side, log_delta, epsilon, fine, accuracy, effort)
    if (
        built is not None
        and not built.smooth
        and not line_suffices(side, built, log_delta, epsilon, accuracy * LINE.looser)
    ):
        # The saddle point was a poor guess, as with few rounds or far out: a second line gets a larger margin.
        at = epsilon if log_delta is None or side.cone else find_root(built.floats(), log_delta)
        finer = _new_line(side, log_delta, at, fine * math.exp(-LINE.spare), accuracy, effort)
        # An inaccurate line is valid; if it costs more than the accuracy the caller's grid gives a smaller number.
        fair = effort.wants_proof or line_suffices(side, built, log_delta, epsilon, accuracy * LINE.loosest)
        built = finer or (built if fair else None)
    if built is not None and shared is not None:
        shared.spectra.append((side, built))
    return built


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
        if spacing or not (effort.wants_proof or _has_atoms_only(side)):
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


def _side_epsilon(
    side: Side, delta: Fraction, accuracy: float, upper: bool = True, effort: Effort | None = None
) -> ProvedEnd | None:
    """Return the proved epsilon of one side at this delta, from above or from below.

    Returns None if the line has no answer.
    """
    target = rounded_down(delta) - leak_of(side.terms)
    if not target > 0:
        return None
    line = _shared_or_new_line(side, math.log(target), None, accuracy, effort or Effort())
    if line is None or not (upper or _has_bounded_images(line)):
        return None
    return prove_epsilon(line, side.test, delta, math.log(target), accuracy, upper)


def _side_delta(
    side: Side, epsilon: Fraction, accuracy: float, upper: bool = True, effort: Effort | None = None
) -> ProvedEnd | None:
    """Return the proved delta of one side at this epsilon, from above or from below.

    Returns None if the line has no answer.
    """
    line = _shared_or_new_line(side, None, float(epsilon), accuracy, effort or Effort())
    if line is None or not (upper or _has_bounded_images(line)):
        return None
    return prove_delta(line, side.test, epsilon, upper)


def prove_epsilon(
    line: Line, test: TestFunction, delta: Fraction, log_target: float, accuracy: float, upper: bool = True
) -> ProvedEnd | None:
    """Return an epsilon that balls prove on this line at this delta.

    Returns None if no epsilon is proved.

    `log_target` is log of delta without the leak, in floats, from which the search begins. From below the test function must
    be the hockey stick.
    """
    choice, search = line.choice, line.floats(test)
    with BALLS.at(choice.bits):
        asked, gap = BALLS.number(delta), None
        start, best_gap = least_epsilon(search, log_target, test)
        if not math.isfinite(start):
            return None
        if test.constants is not None:
            if not best_gap > 0:
                return None
            gap = BALLS.number(best_gap)
        bound = partial(line.upper, test=test, gap=gap)
        start = refine_root(bound, start, asked, choice.lam)
        if (
            test is THEOREM_B
            and choice.decay_exponent - choice.image_exponent > LINE.most_cancelled_gap
            and math.isfinite(start)
        ):
            # Floats lose the digits that cancel, and with them the best gap: any gap is valid, a poor one costs accuracy.
            gap = BALLS.number(locate_minimum(partial(line.upper, BALLS.number(start), test), best_gap))
            bound = partial(line.upper, test=test, gap=gap)
            start = refine_root(bound, start, asked, choice.lam)
        if not upper:
            bound = partial(line.lower)
            start = refine_root(bound, start, asked, choice.lam)
        if not math.isfinite(start):
            return None
        if upper:
            value = smallest_proved_epsilon(lambda e: bound(e) <= asked, start, choice.lam, accuracy)
        else:
            value = largest_refuted_epsilon(lambda e: bound(e) > asked, start, accuracy)
        if value is None:
            return None
        radius = float(line.bound(BALLS.number(value), test, gap).rad())
        slope = abs(search.log_value(value)[1]) * math.exp(log_target)
    return _proved_end(line, value, radius / slope if slope > 0 else math.inf)


def prove_delta(line: Line, test: TestFunction, epsilon: Fraction, upper: bool = True) -> ProvedEnd | None:
    """Return a delta that balls prove on this line at this epsilon.

    Returns None if balls overflow or prove only 0.

    From below the test function must be the hockey stick.
    """
    with BALLS.at(line.choice.bits):
        asked, gap = BALLS.number(epsilon), None
        if test.constants is not None:
            best_gap = least_log_delta(line.floats(test), float(epsilon), test)[1]
            if not best_gap > 0:
                return None
            gap = BALLS.number(best_gap)
        end = line.upper(asked, test, gap) if upper else line.lower(asked)
        if not end.is_finite():
            return None
        value = rounded_up(at_least(end)) if upper else rounded_down(max(-at_least(-end), Fraction(0)))
        radius = float(line.bound(asked, test, gap).rad())
    return _proved_end(line, min(value, 1.0), radius) if value > 0 else None


def _proved_end(line: Line, value: float, radius: float) -> ProvedEnd:
    """Return the record of a number that was proved on this line."""
    choice = line.choice
    return ProvedEnd(value, choice.lam + 1, line.frequencies, choice.bits, radius, line.smooth > 0, choice)
