"""Compute epsilon and delta of a run.

The curve bounds it, and so does the exact layer; the smaller bound is the answer. Floats decide which of them is certified:
each is valid alone, so a wrong decision costs accuracy and never validity.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant import domains
from cumulant.accounting.dominating_runs import (
    dominated_runs,
    dominating_answer,
    dominating_deltas,
    dominating_runs,
    has_dominating_runs,
)
from cumulant.accounting.group_lemma import group_delta, group_epsilon, least_deltas, one_record
from cumulant.accounting.indirect_routes import DOMINATING_RUN, FEWER_STEPS
from cumulant.accounting.question import DISTANCE, Question, check_values, rows
from cumulant.accounting.rounds import rounds_of
from cumulant.accounting.run import RunRecord
from cumulant.accounting.weaker_run import announced_run, weaker_answer
from cumulant.conversion import array_answers, renyi_to_dp
from cumulant.conversion.failure import Failure, Reason
from cumulant.conversion.query import Answer
from cumulant.domains import Exact, Number
from cumulant.numerics.arithmetic import FLOATS
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.rounding import outward, rounded_down
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.exact.rounds import Rounds
    from cumulant.losses.grid import Step

_PER_OCTAVE = 8
"""Orders per octave at which floats look at divergences."""

_ORDERS = np.geomspace(1 / 8, 8, 6 * _PER_OCTAVE + 1)
"""Multiples of the order of the exact answer at which floats look at divergences."""

_CLEARLY = 0.01
"""The part by which divergences must exceed the exact answer, so that it is not compared with a certified bound."""

_BALLS_LEAVE = 1e-60
"""Far more than the radius of a delta that is 0 in balls of 256 bits."""

_NEAR_END = 1e-6
"""Epsilon below which curves are asked too; convention: they may know a distance as a fraction."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def epsilon(run: RunRecord, delta: Number | Iterable[Number], question: Question) -> float | Floats:
    """Return epsilon at one delta, or at each of several."""
    value, scalar = check_values("delta", delta, domains.DELTA)
    if scalar:
        return answer(run, question.with_value(value[0])).value
    return run.answer((question, tuple(value)), lambda: _epsilons(run, value, question)).copy()


def _epsilons(run: RunRecord, value: Sequence[Exact], question: Question) -> Floats:
    """Return epsilon at each delta: the exact answer, or that of the curve where it may be smaller."""
    rounds = rounds_of(run)[0] if question.two_sided else None
    if has_indirect_answer(run, question):
        return np.array([answer(run, question.with_value(each)).value for each in value])
    if not question.row or (rounds and not all(question.with_value(each).has_composition for each in value)):
        return np.array([answer(run, question.with_value(each)).value for each in value])
    found = _exact_answers(rounds, question, value)
    if rounds is not None and question.method == "exact":
        return found.value
    rest = _values_for_curve(run, rounds, question, value, found)
    best = found.least(
        value, rest, lambda: array_answers.least_epsilons(run.curve(question.row), rest, question.formula)
    )
    largest = max((rounded_down(each) for each in rest if 0 < each < 1), default=0.0)
    distance = _distance(run, question, largest) if largest > 0 and best.max(initial=0.0) > 0 else 1.0
    return np.where([0 < each < 1 and distance <= each for each in value], 0.0, best)


def delta(run: RunRecord, epsilon: Number | Iterable[Number], question: Question) -> float | Floats:
    """Return delta at one epsilon, or at each of several.

    A negative epsilon is answered by the swapped neighbours.
    """
    value, scalar = check_values("epsilon", epsilon, domains.ANY_EPSILON)
    if any(each < 0 for each in value):
        sizes = [Exact(abs(each)) for each in value]
        mirrored = np.atleast_1d(delta(run, sizes[0] if scalar else sizes, question))
        pairs = zip(value, mirrored, strict=True)
        swapped = np.array([below_zero(each, d) if each < 0 else d for each, d in pairs])
        return float(swapped[0]) if scalar else swapped
    if scalar:
        return answer(run, question.with_value(value[0])).value
    return run.answer((question, tuple(value)), lambda: _deltas(run, value, question)).copy()


def _deltas(run: RunRecord, value: Sequence[Exact], question: Question) -> Floats:
    """Return delta at each epsilon, from the run itself or from other runs that bound it."""
    if run.indirect and question.two_sided and (runs := dominating_runs(run)):
        return dominating_deltas(runs, value, question, delta)
    if _has_steps(run, question):
        return np.array([answer(run, question.with_value(each)).value for each in value])
    found = _own_deltas(run, value, question)
    alone = one_record(run) if run.indirect and _has_group_lemma(run, question) else None
    return found if alone is None else least_deltas(*alone, value, question, delta, found)


def _own_deltas(run: RunRecord, value: Sequence[Exact], question: Question) -> Floats:
    """Return the deltas of the run as it is written, without the group lemma."""
    rounds = rounds_of(run)[0] if question.two_sided else None
    found = _exact_answers(rounds, question, value)
    if rounds is not None and question.method == "exact":
        return found.value
    rest = _values_for_curve(run, rounds, question, value, found)
    best = found.least(value, rest, lambda: array_answers.least_deltas(run.curve(question.row), rest, question.formula))
    return np.minimum(best, _distance(run, question, best.max(initial=0.0)) if rest else 1.0)


def below_zero(epsilon: Fraction, delta: float) -> float:
    """Compute H_{e^-x}(P||Q) at epsilon = -x from the swapped pair, rounded up.

    H_{e^-x}(P||Q) = 1 - e^-x + e^-x H_{e^x}(Q||P).
    """
    if delta >= 1:
        return 1.0
    return min(float((1 - BOUNDED.exp(BOUNDED.number(epsilon)) * (1 - BOUNDED.number(delta))).upper()), 1.0)


@dataclass(frozen=True, slots=True)
class _ExactAnswers:
    """The answers of the exact layer to several questions, with the order of each.

    An answer is infinite, or 1 for deltas, if the exact layer was not asked.
    """

    value: Floats
    order: Floats
    times: Floats
    given: Floats

    def least(self, asked: Sequence[Exact], rest: Sequence[Exact], by_curve: Callable[[], Floats]) -> Floats:
        """Return the smaller of the exact answer and of the curve's answer, which only the rest has."""
        if not rest:
            return self.value
        other = dict(zip(rest, by_curve().tolist(), strict=True))
        return np.minimum(self.value, [other.get(each, math.inf) for each in asked])


def _exact_answers(rounds: Rounds | None, question: Question, values: Sequence[Exact]) -> _ExactAnswers:
    """Return the answers of the exact layer to several questions, which share their lines."""
    ones, given = np.ones(len(values)), np.array([rounded_down(each) for each in values])
    nothing = math.inf if question.asked == "delta" else 1.0
    if rounds is None:
        return _ExactAnswers(nothing * ones, np.nan * ones, ones, given)
    listed = sorted({each for each in values if question.with_value(each).has_composition})
    # of those that floats leave to balls the middle comes first, so that its spectrum serves those around it
    listed = list(dict.fromkeys([listed[i] for i in (len(listed) // 2, 0, -1) if listed] + listed))
    found = _answers_by_losses(rounds, question, listed)
    known = {
        each: (one.value, math.nan if one.order is None else one.order) for each, one in zip(listed, found, strict=True)
    }
    value, order = np.array([known.get(each, (nothing, math.nan)) for each in values]).reshape(-1, 2).T
    return _ExactAnswers(value, order, ones, given)


def _answers_by_losses(rounds: Rounds, question: Question, values: Sequence[Exact]) -> Sequence[Answer]:
    """Return answers from compositions that share their lines, or from the closed form of a single round."""
    queries = [question.with_value(each).query for each in values]
    if (single := rounds.single()) is not None:
        from cumulant.exact.closed_form import single_answers

        return single_answers(*single, queries)
    from cumulant.exact import answer as two_sided
    from cumulant.exact.inversion.solver import share_lines

    with share_lines():
        asked = [(rounds, 1, query) for query in queries]
        return two_sided.upper_ends(rounds, asked, float(question.accuracy), question.theorem_b)


def _exact_answers_suffice(
    run: RunRecord, rounds: Rounds | None, question: Question, found: _ExactAnswers
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return True for questions whose exact answer is below every answer from Rényi divergences.

    Floats compare it with the divergences of explicit neighbours. A curve is at least as large as these, so that a curve which
    is not asked would have given a larger bound.
    """
    nothing = np.zeros(found.value.size, dtype=bool)
    if rounds is None or question.method != "best" or run.surrogate:  # whose neighbours bound nothing from below
        return nothing
    if rounds.attained:
        if question.asked == "epsilon" and found.value.size > 1:
            # a curve may know pure privacy as a fraction, where balls leave a little more than nothing
            least = _BALLS_LEAVE if _has_bounded_losses(rounds) else 0.0
            return np.asarray((found.value > least) & (found.value < 1))
        pairs = zip(found.value, found.given, strict=True)
        ends = pairs if question.asked == "delta" else ((given, value) for value, given in pairs)
        return np.array([_closed_form_suffices(rounds, *each) for each in ends], dtype=bool)
    known = (found.order > 1) & np.isfinite(found.order) & np.isfinite(found.value) & (found.value > 0)
    if not known.any():
        return nothing
    from cumulant.losses.grid import leak_of

    witness = next(rounds.witnesses(), None)
    if witness is None or leak_of(witness[1]) > 0:
        return nothing
    centre = round(_PER_OCTAVE * math.log2(np.median(found.order[known]) - 1))
    lam = _orders(centre)
    total = np.zeros(lam.size)
    for step, times in witness[1]:
        total += times * _cgf(step, centre)
    cgf = found.times[:, None] * total
    if question.asked == "delta":
        with np.errstate(divide="ignore"):
            low = question.formula.epsilon(lam, cgf, np.log(found.given)[:, None], FLOATS)
        enough = found.value * (1 + _CLEARLY)
    else:
        with np.errstate(divide="ignore"):  # past the largest loss delta is 0
            low, enough = (
                question.formula.log_delta(lam, cgf, found.given[:, None], FLOATS),
                np.log(found.value) + _CLEARLY,
            )
    least = np.argmin(low, axis=1)
    inside = (least > 0) & (least < lam.size - 1) & np.isfinite(low).all(axis=1)
    return np.asarray(known & inside & (low.min(axis=1) > enough))


def _values_for_curve(
    run: RunRecord, rounds: Rounds | None, question: Question, values: Sequence[Exact], found: _ExactAnswers
) -> list[Exact]:
    """Return the values at which the curve may give a smaller answer than the exact layer."""
    suffices = _exact_answers_suffice(run, rounds, question, found)
    return [each for each, enough in zip(values, suffices, strict=True) if not enough]


def _closed_form_suffices(rounds: Rounds, epsilon: float, delta: float) -> bool:
    """Return True if Rényi divergences are clearly above the closed form of the only round, which neighbours attain.

    They are then not asked. For bounded losses a conversion may be tight (for two outputs it is), and win in the last bit.
    """
    return _NEAR_END < epsilon < math.inf and _BALLS_LEAVE < delta < 1 and not _has_bounded_losses(rounds)


def _has_bounded_losses(rounds: Rounds) -> bool:
    """Return True if every loss of the run is known to be below some number."""
    for one, _ in rounds.parts:
        if one.pair.gaussian_shift() is not None:
            return False
    from cumulant.exact.limits import limits_of

    return limits_of(rounds).largest < math.inf


def _orders(centre: int) -> Floats:
    """Return the lambdas around 2^(centre / `_PER_OCTAVE`) at which floats look at divergences."""
    return np.asarray(_ORDERS * 2 ** (centre / _PER_OCTAVE))


@lru_cache(maxsize=4096)
def _cgf(step: Step, centre: int) -> Floats:
    """Return K of one round at the orders around this centre, in floats; nearby questions share them."""
    from cumulant.exact.inversion import saddle

    return np.asarray(saddle.cgf_values(((step, 1),), _orders(centre)), dtype=np.float64)


def answer(run: RunRecord, question: Question) -> Answer:
    """Return the epsilon or delta that the question asks for, by its method; answers are remembered."""
    return run.answer(question, partial(_answer, run, question))


def _answer(run: RunRecord, question: Question) -> Answer:
    """Return the smallest answer of all methods that may answer, with its rigour."""
    if not question.row:
        return _by_composition(run, question)
    if not run.indirect:
        return _own_answer(run, question)
    found = _indirect_answer(run, question) if question.two_sided else _own_answer(run, question)
    if found.rigour == "proved" and _rests_on_floats(run, found):
        return replace(found, rigour="bounded")
    return found


def _rests_on_floats(run: RunRecord, found: Answer) -> bool:
    """Return True if the answer uses answers in floats about other runs: those of a pair, or of a curve.

    Balls that start from them prove nothing.
    """
    for part in run.parts:
        if part.bounded or (part.alone is not None and part.alone.bounded):
            return True
        if found.exact and part.pair is not None and part.pair.bounded:
            return True
    return False


def _indirect_answer(run: RunRecord, question: Question) -> Answer:
    """Return the least answer about the run and about other runs that bound it."""
    if (best := dominating_answer(run, question, answer)) is not None:
        return Answer(best[1].value, None, best[1].rigour, bound=question.row, way=DOMINATING_RUN.name)
    found = _own_answer(run, question)
    weaker = weaker_answer(run, question, answer, by_losses, found)
    if weaker is not None and weaker[1].value < found.value:
        found = Answer(weaker[1].value, None, weaker[1].rigour, bound=question.row, way=FEWER_STEPS.name)
    if not _has_batches(run):
        return found
    from cumulant.accounting.shuffled_passes import amplified_answer

    return amplified_answer(run, question, found.value) or found


def _has_batches(run: RunRecord) -> bool:
    """Return True if some part is a pass over the batches of a fresh permutation, counted."""
    return run.indirect and any(part.batches is not None for part in run.parts)


def _own_answer(run: RunRecord, question: Question) -> Answer:
    """Return the answer about the run as it is written."""
    rounds, failure = rounds_of(run) if question.two_sided and question.has_composition else (None, None)
    exact = None if rounds is None else by_losses(rounds, question)
    if (
        rounds is not None
        and exact is not None
        and (question.method == "exact" or _exact_answer_suffices(run, rounds, question, exact))
    ):
        return exact
    least = math.inf if exact is None else exact.value
    found = _by_curve(run, question, least)
    grouped = _by_group_lemma(run, question, min(found.value, least)) if run.indirect else None
    if grouped is not None and grouped.value < min(found.value, least):
        return _by_distance(run, question, grouped) or grouped
    if exact is not None and exact.value < found.value:
        return _by_distance(run, question, exact) or exact
    if question.two_sided and (largest := _largest_loss(run, question, found.value)) is not None:
        return largest
    if exact is not None and math.isinf(exact.value):
        failure = Failure(Reason.NO_FINITE_GRID)
    found = _by_distance(run, question, found) or found
    pure = found.order == math.inf and math.isfinite(found.value)
    return replace(found, failure=None if pure else failure)  # pure privacy adds up, and no divergence was converted


def _largest_loss(run: RunRecord, question: Question, below: float) -> Answer | None:
    """Return the largest loss as the epsilon of pure privacy; None where it is not `below`.

    It needs bounded loss distributions.

    Each round's pair dominates, so that its losses are at most the largest one of the pair, and losses add.
    """
    if question.asked != "delta" or question.value != 0 or below == 0:
        return None
    rounds, _ = rounds_of(run)
    if rounds is None:
        return None
    from cumulant.exact.answer import pure_epsilon

    found = pure_epsilon(rounds)
    return replace(found, bound=rounds.bound_name(found.way)) if found.value < below else None


def _has_steps(run: RunRecord, question: Question) -> bool:
    """Return True if the run has epochs for which fewer steps or a permutation may give a smaller bound."""
    if not run.indirect or not question.two_sided:
        return False
    return has_dominating_runs(run) or announced_run(run) is not None or _has_batches(run)


def has_indirect_answer(run: RunRecord, question: Question) -> bool:
    """Return True if other runs may give a smaller bound."""
    return run.indirect and (_has_group_lemma(run, question) or _has_steps(run, question))


def _has_group_lemma(run: RunRecord, question: Question) -> bool:
    """Return True if the run is for groups, so that the group lemma may give a smaller bound."""
    return question.method == "best" and question.two_sided and one_record(run) is not None


def _by_group_lemma(run: RunRecord, question: Question, below: float) -> Answer | None:
    """Return the answer from the profile of the run for one record, or None.

    None where the run is not for a group, another method is asked for, or the lemma says nothing `below` what is known.
    """
    alone = one_record(run) if _has_group_lemma(run, question) and question.has_composition else None
    if alone is None:
        return None
    if question.asked == "epsilon":
        return group_delta(*alone, question, answer, delta, below)
    return group_epsilon(*alone, question, answer, below)


def _exact_answer_suffices(run: RunRecord, rounds: Rounds, question: Question, exact: Answer) -> bool:
    """Return True if this exact answer is below every answer from Rényi divergences."""
    if question.method != "best" or run.surrogate:
        return False
    if rounds.attained:
        given = rounded_down(question.value)
        return _closed_form_suffices(
            rounds, *((exact.value, given) if question.asked == "delta" else (given, exact.value))
        )
    order = math.nan if exact.order is None else exact.order
    numbers = (exact.value, order, 1.0, rounded_down(question.value))
    return bool(_exact_answers_suffice(run, rounds, question, _ExactAnswers(*map(np.atleast_1d, numbers)))[0])


def _by_curve(run: RunRecord, question: Question, below: float) -> Answer:
    """Return the answer from the best order of the curve.

    It is certified only if floats say that it is smaller than `below`.
    """
    ask = renyi_to_dp.proved_epsilon if question.asked == "delta" else renyi_to_dp.proved_delta
    found = ask(run.curve(question.row), question.value, question.formula, run.estimated, below=below)
    return replace(found, bound=question.row, way=question.converted)


def _by_distance(run: RunRecord, question: Question, found: Answer) -> Answer | None:
    """Return the answer from the total variation distance of the whole curve, or None.

    The distance bounds delta at every epsilon. None where that says no more.
    """
    rigour = "estimated" if run.estimated else "bounded"
    if question.asked == "epsilon":
        value = _distance(run, question, found.value)
        return Answer(value, None, rigour, bound=question.row, way=DISTANCE) if value < found.value else None
    if not (found.value > 0 and 0 < question.value < 1):
        return None
    small = _distance(run, question, rounded_down(question.value)) <= question.value
    return Answer(0.0, None, rigour, bound=question.row, way=DISTANCE) if small else None


def _distance(run: RunRecord, question: Question, below: float) -> float:
    """Return the total variation distance that the whole curve leaves, else 1.

    It is 1 if it may not be asked for or cannot be below this.
    """
    if not question.whole_curve:
        return 1.0
    from cumulant.conversion import attacks

    return attacks.total_variation(run.curve(question.row), below)


def _by_composition(run: RunRecord, question: Question) -> Answer:
    """Return the answer of a composition theorem on each round's (epsilon, delta), amplified by Lemma 3."""
    from cumulant.conversion import baselines, composition

    steps = [
        baselines.step(part.base, Fraction(1) if part.scheme is None else part.scheme.by_lemma3(), part.times)
        for part in run.parts
    ]
    delta = rounded_down(question.value)
    value, stated = baselines.baseline_rounds(steps, delta, question.method)
    rigour = "estimated" if run.estimated else "bounded"
    rounds = tuple((epsilon, own) for epsilon, own, _ in stated)
    exact = question.method != "optimal" or composition.is_exact(stated, delta)
    return Answer(
        float(outward(np.array([value]))[0]),
        None,
        rigour,
        bound="lemma3",
        way=question.method,
        rounds=rounds,
        failure=None if exact else Failure(Reason.NO_OPTIMUM),
    )


# ---- the exact layer


def has_closed_form(run: RunRecord) -> bool:
    """Return True if both ends are those of one round with a closed form, so that nothing is composed."""
    rounds = None if run.indirect else rounds_of(run)[0]
    return rounds is not None and rounds.single() is not None and not rounds.has_only_named_witnesses


def by_losses(rounds: Rounds, question: Question) -> Answer:
    """Return the answer from the composed loss distributions, or from the closed form of a single round."""
    if (single := rounds.single()) is not None:
        from cumulant.exact.closed_form import single_answer

        found = single_answer(*single, question.query)
        return replace(found, bound=rounds.bound_name(found.way))
    from cumulant.exact import answer as two_sided

    found = two_sided.upper_end(rounds, question.query, float(question.accuracy), question.theorem_b, question.prove)
    bound = rounds.bound_name(found.way)
    epsilon = found.value if question.asked == "delta" else rounded_down(question.value)
    strained = found.width is not None and rounds.slip() > float(question.accuracy) * epsilon
    return replace(found, bound=bound, failure=Failure(Reason.STRAINED) if strained else found.failure)


def lower_end(rounds: Rounds, question: Question) -> Answer | None:
    """Return the largest epsilon, or delta, that explicit neighbouring data sets need; None if no data sets are known."""
    if rounds.single() is not None and not rounds.has_only_named_witnesses:
        from cumulant.exact.closed_form import single_lower_answer

        return single_lower_answer(rounds.single_below(), question.query)
    from cumulant.exact import answer as two_sided

    return two_sided.lower_end(rounds, question.query, float(question.accuracy), question.prove)


def lower(run: RunRecord, question: Question, found: float) -> tuple[float | None, str, str]:
    """Return the lower end of the number that was found, the data sets that prove it, and its rigour.

    The lower end is None if the exact layer is not asked, or no data sets are known.
    """
    if not question.two_sided or not question.has_composition or (run.surrogate and not _has_batches(run)):
        return None, "", ""
    if found == 0:
        return 0.0, "any data sets", "proved"
    return run.answer((question, "lower"), partial(_lower, run, question))


def _lower(run: RunRecord, question: Question) -> tuple[float | None, str, str]:
    """Return the lower end, the data sets that prove it, and its rigour; None if no data sets are known."""
    if run.indirect and has_dominating_runs(run):
        ends = [found for each in dominated_runs(run) if (found := _lower(each, question))[0] is not None]
        return max(ends, key=lambda end: end[0] or 0.0, default=(None, "", ""))
    if run.indirect and _has_batches(run):
        from cumulant.accounting.shuffled_passes import witnessed_rounds

        rounds = witnessed_rounds(run)
    else:
        rounds, _ = rounds_of(run)
    witness = None if rounds is None else lower_end(rounds, question)
    if witness is None:
        return None, "", ""
    from cumulant.exact.witnesses import REPLACED

    named = REPLACED.get(witness.way, witness.way) if run.relation is Relation.REPLACE_ONE else witness.way
    return witness.value, named, witness.rigour


# ---- many counts


def epsilon_over(run: RunRecord, times: Iterable[int], delta: Number, question: Question) -> Floats:
    """Return epsilon of so many runs for every count.

    By the envelope of a curve, and by one grid per count.
    """
    if not question.row:
        rows(question.method, None, None)  # says which methods answer this
    counts = [domains.times(k) for k in domains.listed("times", times)]
    question = question.with_value(domains.DELTA.check("delta", delta))
    if has_indirect_answer(run, question):
        return np.array([answer(run.repeated(k), question).value for k in counts])
    if not (question.two_sided and question.has_composition):
        by_orders = array_answers.epsilon_over(run.curve(question.row), counts, question.value, question.formula)
        return _over_by_distance(run, counts, question, by_orders)
    found = _exact_over(run, counts, question)
    unknown = ~np.isfinite(found.value)
    rest = unknown if question.method == "exact" else ~_exact_answers_suffice(run, rounds_of(run)[0], question, found)
    if not rest.any():
        return found.value
    asked = [k for k, open_ in zip(counts, rest, strict=True) if open_]
    best = found.value.copy()
    by_curve = array_answers.epsilon_over(run.curve(question.row), asked, question.value, question.formula)
    best[rest] = np.minimum(best[rest], by_curve)
    return best if question.method == "exact" else _over_by_distance(run, counts, question, best)


def _over_by_distance(run: RunRecord, counts: list[int], question: Question, found: Floats) -> Floats:
    """Return 0 for the counts whose total variation distance is at most delta, else what was found.

    The distance grows with the count, so the largest such count is bisected.
    """
    if not 0 < question.value < 1:
        return found
    rising = sorted({k for k, value in zip(counts, found, strict=True) if value > 0})

    def is_large(k: int) -> bool:
        return _distance(run.repeated(k), question, rounded_down(question.value)) > question.value

    first = bisect_left(rising, True, key=is_large)
    near = set(rising[:first])
    return np.where([k in near for k in counts], 0.0, found)


def _exact_over(run: RunRecord, counts: list[int], question: Question) -> _ExactAnswers:
    """Return the epsilon of each number of repetitions by the exact layer.

    It is infinite if the exact layer cannot take the run.
    """
    from cumulant.exact import answer as two_sided

    one, _ = rounds_of(run)
    listed = [(rounds, k) for k in sorted(set(counts)) if (rounds := rounds_of(run.repeated(k))[0]) is not None]
    if one is None:
        found = [by_losses(rounds, question) for rounds, _ in listed]
    else:
        asked = [(rounds, k, question.query) for rounds, k in listed]
        found = two_sided.upper_ends(one, asked, float(question.accuracy), question.theorem_b)
    known = {
        k: (each.value, math.nan if each.order is None else each.order)
        for (_, k), each in zip(listed, found, strict=True)
    }
    value, order = np.array([known.get(k, (math.inf, math.nan)) for k in counts]).reshape(-1, 2).T
    given = np.full(len(counts), rounded_down(question.value))
    return _ExactAnswers(value, order, np.array(counts, dtype=np.float64), given)
