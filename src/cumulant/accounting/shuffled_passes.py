"""Runs with passes over shuffled batches: what their secret permutations save, and what they cannot save.

Every pass is replaced by a step that dominates it but for a slack. The steps of all passes and of everything else are composed,
and the slacks, times 1 + e^epsilon, are added once at the end (docs/shuffled-batches.md, several epochs).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from cumulant.accounting.indirect_routes import SHUFFLED
from cumulant.accounting.question import Question
from cumulant.accounting.rounds import rounds as rounds_of
from cumulant.accounting.run import Component, RunRecord
from cumulant.conversion.query import Query
from cumulant.conversion.renyi_to_dp import Answer
from cumulant.exact import answer
from cumulant.exact.rounds import Round, Rounds, StatedSteps
from cumulant.losses.grid import Step
from cumulant.numerics.rounding import MANY, raised, rounded_down, rounded_up
from cumulant.pairs.pair import Pair

_ITERATIONS = 8
"""Tries to find an epsilon whose slack leaves enough of delta; the slack changes little from one to the next."""
_CLOSE = 2e-4
"""The part by which an epsilon is raised before its slack is taken: the next answer is then below it."""
_FIRST_DELTA = 1e-8
"""The delta for which eps0 is chosen first where epsilon is given; the second choice is for what that gave."""


def amplified_answer(run: RunRecord, question: Question, below: float) -> Answer | None:
    """Return what shuffling proves if that is less than `below`; None where it proves no less, or nothing."""
    find = _epsilon if question.asked == "delta" else _delta
    value = find(run, question, below)
    if value is None or not value < below:
        return None
    return Answer(value, None, "estimated" if run.estimated else "bounded", bound=question.row, way=SHUFFLED.name)


def _epsilon(run: RunRecord, question: Question, below: float) -> float | None:
    delta = question.value
    if not 0 < delta < 1:
        return None
    best, given = math.inf, rounded_down(delta)
    for rounds, slack in _options(run, math.log(given)):
        found = _fixed_point(rounds, slack, given, question, min(best, below))
        if best < math.inf and slack > 0 and not found < best:
            break  # eps0 only grows from here on
        best = min(best, found)
    return best if best < math.inf else None


def _fixed_point(rounds: Rounds, slack: float, delta: float, question: Question, most: float) -> float:
    """Return an epsilon with delta(epsilon) + (1 + e^epsilon) slack <= delta; +inf where none is found below `most`.

    The profile falls and the slack grows, so that the least such epsilon is the limit of a sequence that grows from 0.
    """
    guess = 0.0
    for _ in range(_ITERATIONS):
        rest = delta - raised(slack * (1 + math.exp(min(guess, 700.0))), MANY)
        if not rest > 0:
            return math.inf
        exact = Fraction(rest * (1 - MANY))
        found = answer.upper_end(rounds, Query("delta", exact), float(question.accuracy), cone=False).value
        if found <= guess:
            return found
        if slack == 0:
            return found
        guess = found * (1 + _CLOSE) + 1e-12
        if guess > most:
            return math.inf
    return math.inf


def confirmed_delta(run: RunRecord, question: Question, aim: float) -> float:
    """Return a delta at the epsilon of the question, with an eps0 that is chosen for a delta near `aim`."""
    return min([_delta_near(run, question, each) for each in (aim, aim / 2) if 0 < each < 1], default=1.0)


def _delta(run: RunRecord, question: Question, below: float) -> float | None:
    best = _delta_near(run, question, _FIRST_DELTA)
    if 0 < best < 1:
        best = min(best, _delta_near(run, question, best))
    return best if best < 1 else None


def _delta_near(run: RunRecord, question: Question, aim: float) -> float:
    epsilon, best = question.value, 1.0
    grown = 1 + math.exp(min(rounded_up(epsilon), 700.0))
    for rounds, slack in _options(run, math.log(aim)):
        found = answer.upper_end(rounds, question.query, float(question.accuracy), cone=False).value
        found = min(float(raised(found + slack * grown, MANY)), 1.0)
        if slack > 0 and best < 1 and not found < best:
            break  # eps0 only grows from here on
        best = min(best, found)
    return best


def _options(run: RunRecord, log_delta: float) -> Iterator[tuple[Rounds, float]]:
    """Yield the rounds of the run with its passes replaced, and the sum of their slacks divided by 1 + e^epsilon.

    The n-th option of every pass is taken together; a pass that has fewer options takes its last one.
    """
    passes = [part for part in run.sorted if part.batches is not None]
    times = sum(part.times for part in passes)
    listed: dict[int, list[tuple[Step, float]]] = {}
    for part in passes:
        if part.batches is None or part.pair is None:
            return
        listed[id(part)] = []
        iterator = part.batches.options(part.pair, log_delta, times)
        listed[id(part)] = list(iterator)
        if not listed[id(part)]:
            return
    for place in range(max(len(options) for options in listed.values())):
        chosen = {key: options[min(place, len(options) - 1)] for key, options in listed.items()}

        def instead(part: Component, pair: Pair, chosen: dict[int, tuple[Step, float]] = chosen) -> Round | None:
            return Round(pair, StatedSteps((chosen[id(part)][0],))) if id(part) in chosen else None

        found, _ = rounds_of(run, instead)
        if found is not None:
            yield found, sum(part.times * chosen[id(part)][1] for part in passes)


def witnessed_rounds(run: RunRecord) -> Rounds | None:
    """Return the run with data sets that show what it needs; None where a part is not known to need anything."""
    if len(run.groups) > 1 or any(part.surrogate and part.batches is None for part in run.nested()):
        return None
    alone = replace(run, parts=tuple(replace(part, surrogate=False) for part in run.parts))

    def instead(part: Component, pair: Pair) -> Round | None:
        if part.batches is None:
            return None
        return Round(pair, StatedSteps(pair.unsampled(), tuple(part.batches.witnesses(pair))))

    return rounds_of(alone, instead)[0]
