"""Answer many questions about one composition and its repetitions from few lines in float64.

Its answers are bounded, not proved.

A question is a number of repetitions and a delta, or an epsilon. Nearby questions share a line: the order of the middle one,
the period that the widest needs, and the decay for the fewest repetitions. A question that such a line answers less accurately
than one of its own would is asked a second time in a smaller group. If no line answers, the caller uses balls or a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cumulant.conversion.query import Query
from cumulant.exact.inversion import choose, saddle
from cumulant.exact.inversion.choose import Side, sides
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.float_line import FloatSpectrum, float_spectrum
from cumulant.exact.inversion.line import Choice
from cumulant.exact.inversion.settings import BATCH, LINE
from cumulant.exact.rounds import Rounds
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import U, rounded_down


@dataclass(frozen=True, slots=True)
class Questions:
    """Numbers of repetitions, and for each log delta (`delta_given`) or an epsilon."""

    times: Array
    given: Array
    delta_given: bool

    def subset(self, which: Array) -> Questions:
        """Return the selected questions."""
        return Questions(self.times[which], self.given[which], self.delta_given)

    @property
    def size(self) -> int:
        """Return the number of questions."""
        return int(self.times.size)


@dataclass(frozen=True, slots=True)
class FloatAnswer:
    """An answer of a line in floats.

    `order` is lam + 1 of the line; `theorem_b` is True if Theorem B gave the answer.
    """

    value: float
    order: float
    frequencies: int
    theorem_b: bool


def float_ends(
    rounds: Rounds, asked: Sequence[tuple[int, Query]], accuracy: float, theorem_b: bool = True
) -> list[FloatAnswer | None]:
    """Return epsilon, or delta, for each number of repetitions and query, rounded up.

    All queries give the same kind of number. Returns None where floats have no answer.
    """
    if not asked:
        return []
    wants_epsilon, times = asked[0][1].wants_epsilon, np.array([float(k) for k, _ in asked])
    given = np.array([rounded_down(query.value) for _, query in asked])
    if wants_epsilon:
        logs = [math.log(down) if down > 0 else -math.inf for down in given.tolist()]
        given = np.array([value - 4 * U * (abs(value) + 1) for value in logs])
    found = _answers(rounds, Questions(times, given, wants_epsilon), accuracy, theorem_b)
    if wants_epsilon:
        return found.to_list()
    with np.errstate(all="ignore"):
        value = np.exp(found.value) * (1 + 64 * U * (1 + np.abs(found.value)))
        value = np.where(value > 0, np.minimum(value, 1.0), np.nan)
    return replace(found, value=value).to_list()


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers in arrays: epsilons or logs of deltas; NaN where a question has no answer."""

    value: Array
    order: Array
    frequencies: Array
    theorem_b: Array

    @classmethod
    def unanswered(cls, size: int) -> _Answers:
        """Return this many answers that are all NaN."""
        nothing = np.full(size, np.nan)
        return cls(nothing, nothing.copy(), np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool))

    def replaced_where(self, condition: Array, other: _Answers) -> _Answers:
        """Return these answers, with those of `other` where the condition holds."""
        pairs = ((getattr(other, name), getattr(self, name)) for name in ("value", "order", "frequencies", "theorem_b"))
        return _Answers(*(np.where(condition, new, old) for new, old in pairs))

    def store(self, places: Array, other: _Answers) -> None:
        """Store the answers of `other` at these places."""
        for name in ("value", "order", "frequencies", "theorem_b"):
            getattr(self, name)[places] = getattr(other, name)

    def to_list(self) -> list[FloatAnswer | None]:
        """Return the answers as a list; None where a question has no answer."""
        rows = zip(
            self.value.tolist(), self.order.tolist(), self.frequencies.tolist(), self.theorem_b.tolist(), strict=True
        )
        return [FloatAnswer(*row) if math.isfinite(row[0]) else None for row in rows]


@np.errstate(all="ignore")
def _answers(rounds: Rounds, asked: Questions, accuracy: float, theorem_b: bool) -> _Answers:
    """Return epsilons or logs of deltas.

    They are the largest direction of the profile, or Theorem B if that is smaller.
    """
    best = _Answers.unanswered(asked.size)
    found = sides(rounds, theorem_b)
    if rounds.estimated or found is None or not asked.size:
        return best
    profile, by_theorem_b = found
    lines: list[AnsweredLine] = []
    for i, side in enumerate(profile):
        if not i:
            best = _solve_side(side, asked, accuracy, lines)
            continue
        # without an answer of every direction there is none
        open_ = np.flatnonzero(np.isfinite(best.value) & ~_proved_smaller(side, asked, best.value, lines))
        other = best.replaced_where(np.zeros(asked.size, dtype=bool), best)
        other.store(open_, _solve_side(side, asked.subset(open_), accuracy, lines))
        best = best.replaced_where(~(other.value <= best.value), other)  # NaN too
    if by_theorem_b is not None:
        # If only one of the two has an answer, a grid of the other may be smaller, so that neither is returned. No grid
        # evaluates Theorem B of a mixture.
        other = _solve_side(by_theorem_b, asked, accuracy, [])
        if rounds.theorem_b_on_grid is None:
            return best.replaced_where(other.value < best.value, other)
        best = best.replaced_where(~(best.value <= other.value), other).replaced_where(
            np.isnan(best.value), _Answers.unanswered(asked.size)
        )
    return best


@dataclass(frozen=True, slots=True)
class AnsweredLine:
    """A spectrum in floats, and the questions that it answers."""

    spectrum: FloatSpectrum
    most: int
    asked: Questions


def _proved_smaller(side: Side, asked: Questions, best: Array, lines: list[AnsweredLine]) -> Array:
    """Return which questions provably need no more in this direction.

    The lines of the direction before it are reused.
    """
    known = np.zeros(asked.size, dtype=bool)
    for line in lines:
        choice = line.spectrum.choice
        try:
            other = float_spectrum(side.round_types, choice, int(line.spectrum.fewest), line.most, side.extra)
        except (DecayNotProved, OverflowError, ZeroDivisionError):
            continue
        epsilons, limits = (best, asked.given) if asked.delta_given else (asked.given, best)
        known |= other.log_upper(np.where(np.isfinite(epsilons), epsilons, 0.0), asked.times) <= limits
    return known


def _solve_side(side: Side, asked: Questions, accuracy: float, lines: list[AnsweredLine]) -> _Answers:
    """Return the answers of one side, from as few lines as possible."""
    found = _Answers.unanswered(asked.size)
    groups = [np.lexsort((asked.given, asked.times))]
    while groups:
        group = groups.pop()
        if not group.size:
            continue
        those = asked.subset(group)
        line = _build_line(side, those, accuracy)
        if line is not None:
            value, served = _line_answers(side, line.spectrum, those, accuracy)
            count, order = int(served.sum()), line.spectrum.choice.lam + 1
            frequencies = np.full(count, line.spectrum.frequencies.size - 1)
            answers = _Answers(value[served], np.full(count, order), frequencies, np.full(count, side.is_theorem_b))
            found.store(group[served], answers)
            lines.append(line)
            group = group[~served]
        elif those.size == asked.size > 3 and not _is_solvable(side, asked.subset(group), accuracy):
            return found
        if group.size > 1:
            groups += [group[: group.size // 2], group[group.size // 2 :]]
        elif group.size < those.size:
            groups.append(group)
    return found


def _is_solvable(side: Side, asked: Questions, accuracy: float) -> bool:
    """Return True if the first, the middle or the last question alone has a line."""
    places = (asked.size // 2, 0, asked.size - 1)
    return any(_build_line(side, asked.subset(np.array([place])), accuracy) is not None for place in places)


# ---- one line for a group


def _build_line(side: Side, asked: Questions, accuracy: float) -> AnsweredLine | None:
    """Return a line for these questions; None if floats find none for all of them."""
    for part in BATCH.order_factors:
        choice = _choose_line(side, asked, accuracy, part)
        if choice is None:
            return None
        fewest, most = int(asked.times.min()), int(asked.times.max())
        try:
            return AnsweredLine(float_spectrum(side.round_types, choice, fewest, most, side.extra), most, asked)
        except (DecayNotProved, OverflowError, ZeroDivisionError):
            continue
    return None


def _choose_line(side: Side, asked: Questions, accuracy: float, part: float) -> Choice | None:
    """Return order, period and decay exponent for a group of questions.

    Returns None if floats find none.

    The order is that of the middle question; period and exponent are the largest of the first, middle and last one.
    """
    places = list(dict.fromkeys((asked.size // 2, 0, asked.size - 1)))
    lam = math.nan
    found: list[tuple[Choice, int]] = []
    fewest = float(asked.times.min())
    for place in places:
        times, given = int(asked.times[place]), float(asked.given[place])
        repeated = _repeat_side(side, times)
        at = saddle.saddle_point(
            repeated.terms,
            log_delta=given if asked.delta_given else None,
            epsilon=max(given, LINE.smallest_epsilon),
        )
        if at is None:
            return None
        guess = max(float(saddle.epsilon_of(at)[0]), 0.0) if asked.delta_given else given
        size = given if asked.delta_given else float(saddle.approximation(at)[0])
        if not found:
            lam = 2.0 ** (round(BATCH.octave_parts * math.log2(float(at.lam[0]) * part)) / BATCH.octave_parts)
        choice = choose.choose_at_order(repeated, lam, guess, size, accuracy)
        if choice is None or (found and choice.decay_exponent - choice.image_exponent > BATCH.most_cancelled):
            return None
        found.append((choice, times))
    return replace(
        found[0][0],
        period=2.0
        ** (math.ceil(BATCH.octave_parts * math.log2(max(choice.period for choice, _ in found))) / BATCH.octave_parts),
        decay_exponent=float(math.ceil(max(choice.decay_exponent * fewest / times for choice, times in found))),
    )


def _repeat_side(side: Side, times: int) -> Side:
    """Return the side of this many repetitions."""
    if times == 1:
        return side
    terms = tuple((step, times * each) for step, each in side.terms)
    return replace(side, terms=terms, round_types=tuple((one, times * each) for one, each in side.round_types))


# ---- what a line answers


def _line_answers(side: Side, spectrum: FloatSpectrum, asked: Questions, accuracy: float) -> tuple[Array, Array]:
    """Return the answers of a line, and which of them are as accurate as on a line of their own."""
    value = np.full(asked.size, np.nan)
    served = np.zeros(asked.size, dtype=bool)
    for times in np.unique(asked.times):
        here = np.flatnonzero(asked.times == times)
        line, given = spectrum.line(float(times), side.test), asked.given[here]
        leak = spectrum.log_leaks(np.array([times]))[0]
        repeats = np.full(here.size, times)
        if asked.delta_given:
            targets = given + np.log1p(-np.exp(np.minimum(leak - given, 0.0)))
            start, gaps = choose.best_values(line, targets, True, side.test)
            above = partial(_log_bounds, side, spectrum, repeats, gaps)
            found = _bounded_epsilons(above, start, given, line.lam)
            epsilons, sizes = found, targets
            wrong = np.abs(found - start) <= BATCH.rounding_share * accuracy * np.maximum(found, 0.0)
            wrong |= found == 0
        else:
            start, gaps = choose.best_values(line, given, False, side.test)
            found = _log_bounds(side, spectrum, repeats, gaps, given)
            epsilons, sizes = given, start
            wrong = found - np.logaddexp(start, leak) <= BATCH.rounding_share * accuracy
        value[here] = found
        served[here] = (
            wrong & np.isfinite(found) & _images_are_small(side, spectrum, float(times), epsilons, sizes, accuracy)
        )
    return value, served


def _log_bounds(side: Side, spectrum: FloatSpectrum, times: Array, gaps: Array, epsilons: Array) -> Array:
    """Return log of upper bounds on delta: by Theorem B at these gaps, or by the profile."""
    return spectrum.log_theorem_b(epsilons, times, gaps) if side.is_theorem_b else spectrum.log_upper(epsilons, times)


def _bounded_epsilons(above: Callable[[Array], Array], start: Array, given: Array, lam: float) -> Array:
    """Return epsilons from `start` on at which the bound is at most the given delta.

    Returns NaN where no step reaches one.
    """
    epsilons, found = np.maximum(start, 0.0), np.full(start.shape, np.nan)
    step = 4 * U * (1 / lam + epsilons)
    for _ in range(BATCH.moves):
        excess = above(epsilons) - given
        found = np.where(np.isnan(found) & (excess <= 0), epsilons, found)
        if np.isfinite(found).all():
            break
        # the line falls at least by about lam where it is followed
        epsilons = np.where(excess > 0, epsilons + step + np.minimum(excess, 1.0) / lam, epsilons)
        step = 4 * step
    return found


def _images_are_small(
    side: Side, spectrum: FloatSpectrum, times: float, epsilons: Array, sizes: Array, accuracy: float
) -> Array:
    """Return where the images are as small as on a line of the question's own.

    Images only add to the line, so that they cost accuracy and not validity.
    """
    wanted, choice = LINE.margin_exponent / 2 - math.log(accuracy), spectrum.choice  # half of the margin is for guesses
    t = choice.image_order
    outer = times * float(saddle.moments(side.terms, np.array([t])).cgf[0])
    right = outer + t * math.log(t) - (1 + t) * math.log1p(t) - t * epsilons - sizes
    left = choice.lam * choice.period >= wanted - sizes
    return np.asarray(left & ((t - choice.lam) * choice.period >= wanted + right))
