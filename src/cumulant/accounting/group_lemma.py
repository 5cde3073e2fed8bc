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
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from cumulant.accounting.indirect_routes import GROUP_LEMMA
from cumulant.accounting.question import Question
from cumulant.accounting.run import RunRecord
from cumulant.conversion.query import Answer
from cumulant.domains import Exact
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, rounded_up

_BITS = 128
_FACTOR = 1.25
"""By how much epsilon grows until it is enough: the delta of one record falls fast, so that few steps suffice."""

_LONGEST = 80
"""Steps that the search for an epsilon that is enough may take, up to 5e7 times the first one."""

_CLOSE = 1e-6
"""The part of epsilon within which the search ends; grids are not more accurate."""

_HALVINGS = 40

_PLACES = tuple(4.0**j for j in range(-4, 4))
"""Places x at which delta is compared; convention: below the first one the factor is k, nearly."""

_NEAR_BEST = tuple(2.0 ** (j / 3) for j in (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5))
"""Places around the best one, as parts of it; the same for every epsilon, so that delta falls as epsilon grows."""

Deltas = Callable[[RunRecord, list[Exact], Question], Any]
"""The deltas of a run at several epsilons, which share what is computed."""


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
    run: RunRecord, size: int, question: Question, answer: Callable[[RunRecord, Question], Answer], deltas: Deltas
) -> Answer:
    """delta at the epsilon that is asked for; 1 where the lemma says nothing."""
    x = best_place(run, size, question, deltas)
    found = answer(run, question.at(x))
    return _by_lemma(found, grown_delta(found.value, x, size), question)


def best_place(run: RunRecord, size: int, question: Question, deltas: Deltas) -> Exact:
    """Return the x <= epsilon / k at which the lemma gives the least delta.

    Among places of which the last is epsilon / k.
    """
    last = Exact(Fraction(question.value) / size)
    known: dict[Exact, float] = {}

    def ask(places: Iterable[float]) -> Exact:
        new = [each for each in map(Exact, map(Fraction, places)) if each < last and each not in known]
        asked = [*new, last] if last not in known else new
        if asked:
            found = deltas(run, asked, replace(question, asked="epsilon"))
            known.update((x, grown_delta(float(delta), x, size)) for x, delta in zip(asked, found, strict=True))
        return min(known, key=lambda x: (known[x], -x))

    best = ask([0.0, *_PLACES])
    return best if best in (0, last) else ask(float(best) * part for part in _NEAR_BEST)


def group_epsilon(
    run: RunRecord, size: int, question: Question, answer: Callable[[RunRecord, Question], Answer]
) -> Answer | None:
    """Return the least k x that the lemma proves at the delta that is asked for.

    None where none is found.
    """
    delta, asked = Fraction(question.value), replace(question, asked="epsilon")
    known: dict[float, Answer] = {}

    def gap(x: float) -> float:
        """Return log of the lemma's delta over the one that is asked for.

        It is not positive where x is enough.
        """
        known[x] = answer(run, asked.at(Exact(Fraction(x))))
        grown = grown_delta(known[x].value, Fraction(x), size)
        if grown <= delta:
            return min(math.log(grown / float(delta)), 0.0) if grown > 0 else -math.inf
        return max(math.log(grown / float(delta)), 5e-324)

    start = answer(run, question.at(Exact(delta / size))).value  # the factor is at least k
    if not 0 <= start < math.inf or float(delta) == 0:
        return None
    x = _least(gap, start)
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


def _least(gap: Callable[[float], float], start: float) -> float | None:
    """The least x from the start on whose gap is not positive, nearly; None if none is found.

    The gap is about linear in x, so that the secant is tried, and the middle where that has moved one end only.
    """
    high, above = start, gap(start)
    low, below = high, above
    for _ in range(_LONGEST):
        if above <= 0:
            break
        low, below = high, above
        high = max(high * _FACTOR, 1e-3)
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
