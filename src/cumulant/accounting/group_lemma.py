"""The group lemma on the privacy profile of a whole run.

For data sets that differ in k records.

*Lemma.* If a run is (x, d)-differentially private for neighbours, it is (k x, d (e^{kx} - 1) / (e^x - 1))-differentially
private for data sets that differ in k records, one after the other. *Proof.* With D_0, …, D_k between them and any event A,
P_0(A) <= e^x P_1(A) + d <= … <= e^{kx} P_k(A) + d (1 + e^x + … + e^{(k-1) x}). QED

It holds at every x: the least k x whose delta is small enough is an answer, and delta at epsilon is the least over all
x <= epsilon / k. The factor grows with x, so that a smaller x is better where the profile hardly falls.
The profile is that of the composition of all rounds, which the doubling of Rényi orders does not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.accounting.indirect_routes import GROUP_LEMMA, Ask, Deltas
from cumulant.accounting.question import Question
from cumulant.accounting.run import RunRecord
from cumulant.conversion.query import Answer
from cumulant.domains import Exact
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, rounded_up

_BITS = 128
"""Bits of the balls; convention: 75 more than a float has."""

_FACTOR = 1.25
"""By how much epsilon grows until it is enough: the delta of one record falls fast, so that few steps suffice."""

_LONGEST = 80
"""Steps that the search for an epsilon that is enough may take, up to 5e7 times the first one."""

_CLOSE = 1e-6
"""The part of epsilon within which the search ends; grids are not more accurate."""

_HALVINGS = 40
"""Steps of the search between both ends, at most; convention: halvings alone reach `_CLOSE` in 20."""

_PLACES = tuple(4.0**j for j in range(-4, 4))
"""Places x at which delta is compared; convention: below the first one the factor is k, nearly."""

_NEAR_BEST = tuple(2.0 ** (j / 3) for j in (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5))
"""Places around the best one, as parts of it; the same for every epsilon, so that delta falls as epsilon grows."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def one_record(run: RunRecord) -> tuple[RunRecord, int] | None:
    """Return the run for neighbours and the size of the group.

    None unless every part is for groups of one size.
    """
    sizes = {part.group for part in run.parts}
    alone = tuple(part.alone for part in run.parts if part.alone is not None)
    if len(sizes) != 1 or len(alone) != len(run.parts) or not alone:
        return None
    return RunRecord(alone, run.relation, run.source), sizes.pop()


def group_delta(
    run: RunRecord,
    size: int,
    question: Question,
    answer: Ask,
    deltas: Deltas,
    below: float,
) -> Answer | None:
    """Return the delta that the lemma proves at the epsilon that is asked for.

    None where it is not `below` what is known.
    """
    last = answer(run, question.with_value(Exact(Fraction(question.value) / size)))
    if (
        not size * last.value < below
    ):  # delta is not smaller at any place before the last one, and the factor is at least k
        return None
    x, _ = best_place(run, size, question, deltas, last.value)
    found = answer(run, question.with_value(x))
    return _by_lemma(found, grown_delta(found.value, x, size), question)


def least_deltas(
    run: RunRecord, size: int, value: Sequence[Exact], question: Question, deltas: Deltas, known: Floats
) -> Floats:
    """Return the smaller of the delta that is known and that of the lemma, at several epsilons."""
    lasts = [Exact(Fraction(each) / size) for each in value]
    at_last = deltas(run, lasts, question)
    found = known.copy()
    open_at = np.flatnonzero(size * at_last < known).tolist()
    places = _best_places(
        run, size, [lasts[i] for i in open_at], [float(at_last[i]) for i in open_at], question, deltas
    )
    for i, (_, least) in zip(open_at, places, strict=True):
        found[i] = min(known[i], least)
    return found


def best_place(
    run: RunRecord, size: int, question: Question, deltas: Deltas, at_last: float | None = None
) -> tuple[Exact, float]:
    """Return the x <= epsilon / k at which the lemma gives the least delta, and that delta.

    Among places of which the last is epsilon / k, where the delta of one record may be known.
    """
    last, asked = Exact(Fraction(question.value) / size), replace(question, asked="epsilon")
    delta = float(deltas(run, [last], asked)[0]) if at_last is None else at_last
    return _best_places(run, size, [last], [delta], asked, deltas)[0]


def _best_places(
    run: RunRecord, size: int, lasts: Sequence[Exact], at_lasts: Sequence[float], asked: Question, deltas: Deltas
) -> list[tuple[Exact, float]]:
    """Return the x <= epsilon / k at which the lemma gives the least delta, and that delta, for several epsilon / k.

    The places of all epsilons are asked together: one epsilon at a time asked the same places up to 97 times (measured).
    """
    grown = {x: grown_delta(delta, x, size) for x, delta in zip(lasts, at_lasts, strict=True)}

    def ask(places: Sequence[Sequence[Exact]]) -> list[list[Exact]]:
        """Learn delta at the places of each epsilon; return those up to its last place."""
        kept = [[x for x in each if x < last] for each, last in zip(places, lasts, strict=True)]
        if new := sorted({x for each in kept for x in each} - grown.keys()):
            pairs = zip(new, deltas(run, new, asked), strict=True)
            grown.update((x, grown_delta(float(delta), x, size)) for x, delta in pairs)
        return kept

    def best_of(places: Sequence[Exact]) -> Exact:
        return min(places, key=lambda x: (grown[x], -x))

    first = [_exact_places([0.0, *_PLACES])] * len(lasts)
    known = [[last, *each] for last, each in zip(lasts, ask(first), strict=True)]
    bests = list(map(best_of, known))
    near = [
        [] if best in (0, last) else _exact_places(float(best) * part for part in _NEAR_BEST)
        for best, last in zip(bests, lasts, strict=True)
    ]
    bests = [best_of([*one, *two]) for one, two in zip(known, ask(near), strict=True)]
    return [(best, grown[best]) for best in bests]


def _exact_places(places: Iterable[float]) -> list[Exact]:
    """Return the values of floats, not the decimals they print as."""
    return [Exact(Fraction(each)) for each in places]


def group_epsilon(run: RunRecord, size: int, question: Question, answer: Ask, below: float) -> Answer | None:
    """Return the least k x that the lemma proves at the delta that is asked for.

    None where none is found, or none that is `below` what is known.
    """
    delta, asked = Fraction(question.value), replace(question, asked="epsilon")
    known: dict[float, Answer] = {}

    def gap(x: float) -> float:
        """Return log of the lemma's delta over the one that is asked for.

        It is not positive where x is enough.
        """
        known[x] = answer(run, asked.with_value(Exact(Fraction(x))))
        grown = grown_delta(known[x].value, Fraction(x), size)
        if grown <= delta:
            return min(math.log(grown / float(delta)), 0.0) if grown > 0 else -math.inf
        return max(math.log(grown / float(delta)), 5e-324)

    start = answer(run, question.with_value(Exact(delta / size))).value  # the factor is at least k
    if not 0 <= size * start < below or float(delta) == 0:
        return None
    x = _least(gap, start, below / size)
    if x is None:
        return None
    value = rounded_up(size * Fraction(x))
    return _by_lemma(known[x], value, question)


def _by_lemma(found: Answer, value: float, question: Question) -> Answer:
    """Return the number with the rigour of the answer for one record.

    It keeps no trace of how that was evaluated.
    """
    return Answer(value, None, found.rigour, bound=question.row, way=GROUP_LEMMA.name)


def grown_delta(delta: float, x: Fraction, size: int) -> float:
    """d (e^{kx} - 1) / (e^x - 1), or k d at x = 0, rounded up and at most 1."""
    if delta >= 1:
        return 1.0
    with BALLS.at(_BITS):
        one = BALLS.number(x)
        factor = (size * one).expm1() / one.expm1() if x > 0 else BALLS.number(size)
        value = BALLS.number(Fraction(delta)) * factor
        return min(rounded_up(at_least(value.upper())), 1.0) if value.is_finite() else 1.0


def _least(gap: Callable[[float], float], start: float, end: float) -> float | None:
    """The least x from the start on whose gap is not positive, nearly; None if none is found up to the end.

    The gap is about linear in x, so that the secant is tried, and the middle where that has moved one end only. The search
    asks nothing between the end, less the part within which it would stop, and beyond: a positive gap there ends it, where a
    bisection towards the end took 20 grids (measured).
    """
    end *= 1 - _CLOSE
    high, above = start, gap(start)
    low, below = high, above
    for _ in range(_LONGEST):
        if above <= 0 or high >= end:
            break
        low, below = high, above
        high = min(max(high * _FACTOR, 1e-3), end)
        above = gap(high)
    if above > 0:
        return None
    for turn in range(_HALVINGS):
        if high - low <= _CLOSE * high or above == 0:
            break
        straight = math.isfinite(above) and turn % 3 < 2
        part = below / (below - above) if straight else 0.5
        # a little beyond the secant, so that both ends move
        x = low + (high - low) * min(max(part + (0.02 if turn % 3 else -0.02), 0.02), 0.98)
        found = gap(x)
        low, below, high, above = (low, below, x, found) if found <= 0 else (x, found, high, above)
    return high
