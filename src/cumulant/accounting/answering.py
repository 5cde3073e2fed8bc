"""epsilon and delta of what ran: by its curve, by the exact layer, or the smaller of the two.

Floats decide which side wins, and only the winner is certified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant import domains
from cumulant.accounting.parts import Ran
from cumulant.accounting.question import DISTANCE, Question, checked, rows
from cumulant.conversion import arrays, scalars
from cumulant.conversion.scalars import Answer
from cumulant.domains import Exact, Number
from cumulant.numerics.rounding import outward, rounded_down
from cumulant.progress import watched

if TYPE_CHECKING:
    from cumulant.lattice.rounds import Rounds

STRAINED = "rounding so many losses costs more than the accuracy that was asked for"
"""The note of an answer that holds and is looser than was asked for."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def epsilon(run: Ran, delta: Number | Iterable[Number], question: Question) -> float | Floats:
    """epsilon at one delta, or at each of several."""
    value, scalar = checked("delta", delta, domains.DELTA)
    if scalar:
        return answer(run, question.at(value[0])).value
    rounds = rounds_of(run)[0] if question.two_sided and len(value) > 1 else None
    alone = question.two_sided and len(value) == 1
    if not question.row or alone or (rounds and question.method == "exact" and not all(map(_between, value))):
        return np.array([answer(run, question.at(each)).value for each in value])
    exact = np.full(len(value), math.inf) if rounds is None else _each(rounds, question, value)
    if rounds is not None and question.method == "exact":
        return exact
    found = np.minimum(exact, arrays.least_epsilons(run.curve(question.row), value, question.formula))
    largest = max((rounded_down(each) for each in value if 0 < each < 1), default=0.0)
    distance = _distance(run, question, largest) if found.max(initial=0.0) > 0 else 1.0
    return np.where([0 < each < 1 and distance <= each for each in value], 0.0, found)


def delta(run: Ran, epsilon: Number | Iterable[Number], question: Question) -> float | Floats:
    """delta at one epsilon, or at each of several."""
    value, scalar = checked("epsilon", epsilon, domains.EPSILON)
    if scalar:
        return answer(run, question.at(value[0])).value
    found = np.ones(len(value))
    rounds = rounds_of(run)[0] if question.two_sided else None
    if rounds is not None:
        found = _each(rounds, question, value)
    if rounds is None or question.method != "exact":
        found = np.minimum(found, arrays.least_deltas(run.curve(question.row), value, question.formula))
    return np.minimum(found, _distance(run, question, found.max(initial=0.0)) if rounds is None else 1.0)


def _between(delta: Exact) -> bool:
    """Whether there is something to compose for: pure privacy and a delta of 1 are known from the curve."""
    return 0 < delta < 1


def _each(rounds: Rounds, question: Question, values: list[Exact]) -> Floats:
    """The answers of the exact layer, which share what they have in common; infinity where it is not asked."""
    from cumulant.lattice.line import shared

    listed = sorted({each for each in values if question.asked == "epsilon" or _between(each)})
    first = [listed[i] for i in (len(listed) // 2, 0, -1) if listed]
    with shared():
        known = {each: by_losses(rounds, question.at(each)).value for each in dict.fromkeys((*first, *listed))}
    return np.array([known.get(each, math.inf) for each in values])


def answer(run: Ran, question: Question) -> Answer:
    """The number that is asked for, by the method that is asked for."""
    if not question.row:
        return _by_composition(run, question)
    rounds, note = rounds_of(run) if question.two_sided and _proper(question) else (None, "")
    exact = None if rounds is None else by_losses(rounds, question)
    if exact is not None and question.method == "exact":
        return exact
    found = _by_curve(run, question, math.inf if exact is None else exact.value)
    if exact is not None and exact.value < found.value:
        return exact
    if exact is not None and math.isinf(exact.value):
        note = "no grid gave a finite answer, so it comes from Renyi divergences"
    return replace(_by_distance(run, question, found) or found, note=note)


def _proper(question: Question) -> bool:
    return question.asked == "epsilon" or _between(question.value)


def _by_curve(run: Ran, question: Question, below: float) -> Answer:
    """From the best order of the curve; only what floats say to be below this is certified."""
    ask = scalars.proved_epsilon if question.asked == "delta" else scalars.proved_delta
    found = ask(run.curve(question.row), question.value, question.formula, run.estimated, below=below)
    return replace(found, bound=question.row, way=question.converted)


def _by_distance(run: Ran, question: Question, found: Answer) -> Answer | None:
    """From the distance that the whole curve leaves, which bounds delta at every epsilon; None where that says no more."""
    rigour = "estimated" if run.estimated else "bounded"
    if question.asked == "epsilon":
        value = _distance(run, question, found.value)
        return Answer(value, None, rigour, bound=question.row, way=DISTANCE) if value < found.value else None
    if not (found.value > 0 and 0 < question.value < 1):
        return None
    small = _distance(run, question, rounded_down(question.value)) <= question.value
    return Answer(0.0, None, rigour, bound=question.row, way=DISTANCE) if small else None


def _distance(run: Ran, question: Question, below: float) -> float:
    """The total variation distance that the whole curve leaves, if it may be asked for and can be below this; else 1."""
    if not question.whole_curve:
        return 1.0
    from cumulant.conversion import attacks

    return attacks.total_variation(run.curve(question.row), below)


def _by_composition(run: Ran, question: Question) -> Answer:
    """A composition theorem on the (epsilon, delta) of each round, amplified by Lemma 3."""
    from cumulant.conversion import baselines

    steps = [
        baselines.step(part.base, Fraction(1) if part.scheme is None else part.scheme.by_lemma3(), part.times)
        for part in run.parts
    ]
    value, stated = baselines.baseline_rounds(steps, rounded_down(question.value), question.method)
    rigour = "estimated" if run.estimated else "bounded"
    rounds = tuple((epsilon, delta) for epsilon, delta, _ in stated)
    return Answer(
        float(outward(np.array([value]))[0]), None, rigour, bound="lemma3", way=question.method, rounds=rounds
    )


# ---- the exact layer


def rounds_of(run: Ran) -> tuple[Rounds | None, str]:
    """What the exact layer composes, or None and the reason."""
    from cumulant.accounting.losses import rounds

    return rounds(run)


def by_losses(rounds: Rounds, question: Question) -> Answer:
    """From the composition of loss distributions."""
    from cumulant.lattice import two_sided

    ask = two_sided.epsilon if question.asked == "delta" else two_sided.delta
    found = ask(rounds, question.value, float(question.accuracy), question.cone, question.prove)
    bound = rounds.named(found.way)
    epsilon = found.value if question.asked == "delta" else rounded_down(question.value)
    strained = found.width is not None and rounds.slip() > float(question.accuracy) * epsilon
    return replace(found, bound=bound, note=STRAINED if strained else found.note)


def lower_end(rounds: Rounds, question: Question) -> Answer | None:
    """The largest epsilon, or delta, that explicit neighbouring data sets need."""
    from cumulant.lattice import two_sided

    ask = two_sided.lower_epsilon if question.asked == "delta" else two_sided.lower_delta
    return ask(rounds, question.value, float(question.accuracy), question.prove)


def lower(run: Ran, question: Question, found: float) -> tuple[float | None, str, str]:
    """What the number that was found cannot be below, the data sets that show it, and how rigorously."""
    if not question.two_sided or not _proper(question):
        return None, "", ""
    if found == 0:
        return 0.0, "any data sets", "proved"
    rounds, _ = rounds_of(run)
    witness = None if rounds is None else lower_end(rounds, question)
    return (None, "", "") if witness is None else (witness.value, witness.way, witness.rigour)


# ---- many counts


def epsilon_over(run: Ran, times: Iterable[int], delta: Number, question: Question) -> Floats:
    """epsilon of so many runs for every count: by the envelope of a curve, and by one lattice per count."""
    if not question.row:
        rows(question.method, None, None)  # says which methods answer this
    counts = [domains.times(k) for k in domains.listed("times", times)]
    question = question.at(domains.DELTA.check("delta", delta))
    by_curve = arrays.epsilon_over(run.curve(question.row), counts, question.value, question.formula)
    if not (question.two_sided and _proper(question)):
        return by_curve
    known = {k: _exact(run.repeated(k), question) for k in watched(list(dict.fromkeys(counts)), "counts")}
    exact = [known[k] for k in counts]
    if question.method == "exact":
        return np.array([curve if each is None else each for each, curve in zip(exact, by_curve, strict=True)])
    return np.minimum([math.inf if each is None else each for each in exact], by_curve)


def _exact(run: Ran, question: Question) -> float | None:
    """epsilon by the exact layer, None where that cannot take the run."""
    rounds, _ = rounds_of(run)
    return None if rounds is None else by_losses(rounds, question).value
