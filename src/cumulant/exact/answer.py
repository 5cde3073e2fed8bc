"""Compute epsilon or delta from both sides.

The upper bound suffices for all data sets; some data sets need the lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from cumulant.conversion.certify import Certificate
from cumulant.conversion.failure import Failure, Reason
from cumulant.conversion.query import Answer, Query
from cumulant.exact import closed_form as closed
from cumulant.exact.adaptive import theorem_w, theorem_w_line, value_iteration
from cumulant.exact.grid import refine as search
from cumulant.exact.grid.fft import ComposedLaw
from cumulant.exact.grid.refine import Bound
from cumulant.exact.inversion import batch, solver
from cumulant.exact.inversion.decay import DecayTooSlow
from cumulant.exact.inversion.solver import Effort, ProvedEnd
from cumulant.exact.limits import Limits, basic_composition, limits_of
from cumulant.exact.rounds import Rounds
from cumulant.exact.witnesses import ADAPTIVE
from cumulant.losses.grid import Terms
from cumulant.numerics.rounding import MANY, raised, rounded_down, rounded_up
from cumulant.progress import watched

# Names of routes, as answers and guarantees store them; convention.

_GRID = "lattice"
"""A grid, or a limit that needs no composition; stored guarantees call it lattice."""

_LINE = "line"
"""The inversion line."""

_THEOREM_B = "cone"
"""Theorem B."""

_ADAPTIVE = "adaptive"
"""The value recursion of adaptive rounds."""

_ORDER = "order"
"""Theorem W."""


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """Constants by which the routes are tried.

    Every route is valid, so they only cost time or accuracy.
    """

    finest_grid: float = 1e-6
    """Accuracy of the finest grid; measured: finer grids do not fit into memory."""

    finest_witness: float = 1e-4
    """Accuracy of the finest grid for a lower bound; chosen by hand: a finer one is not worth its time."""

    rough_accuracy: float = 1e-3
    """Accuracy if the caller does not ask for one; convention."""

    lost_in_a_row: int = 3
    """Answers of balls in a row that a grid beats before the next questions go to grids; chosen by hand."""

    near_largest: float = 0.01
    """Part of the largest loss within which the chord to it is tried; measured: grids see their last cell only."""

    coarser: int = 16
    """Factor of the accuracy of a grid that only compares two directions; chosen by hand."""

    log_reductions: tuple[float, ...] = (0.0, 0.02, 0.3, 2.0)
    """Nats by which log delta is lowered if a grid gives up near the largest loss or its window is too long; by hand."""

    underflow: float = 1e-322
    """Smallest delta whose logarithm is taken; derived: floats end at 5e-324."""


ANSWER = AnswerSettings()
"""Settings of the order in which routes are tried."""


def upper_end(rounds: Rounds, query: Query, accuracy: float, theorem_b: bool = True, prove: bool = False) -> Answer:
    """Return an upper bound on epsilon, or delta, the smallest of all routes.

    The given delta is in (0, 1). `theorem_b` admits Theorem B; `prove` asks for a proof in balls without a work limit.
    """
    limits = limits_of(rounds) if rounds.single() is None else Limits(1.0, math.inf, 1.0)
    known = _end_without_composition(rounds, query, limits)
    return known if known is not None else _composed_end(rounds, query, accuracy, limits, theorem_b, prove)


def upper_ends(
    one: Rounds, asked: Sequence[tuple[Rounds, int, Query]], accuracy: float, theorem_b: bool = True
) -> list[Answer]:
    """Return epsilon, or delta, for many (repetitions, query) pairs about one run.

    They share one spectrum.

    `one` is a single repetition; each pair comes with the rounds of all its repetitions. All queries give the same kind of
    number. Floats answer where they can in one call; balls or a grid answer the rest.
    """
    if (many := _single_deltas(asked)) is not None:
        return many
    limits = {id(rounds): limits_of(rounds) for rounds, _, _ in asked}
    known = [_end_without_composition(rounds, query, limits[id(rounds)]) for rounds, _, query in asked]
    unknown = [i for i, each in enumerate(known) if each is None]
    shared = batch.float_ends(one, [asked[i][1:] for i in unknown], accuracy, theorem_b)
    lost = 0
    for i, found in watched(list(zip(unknown, map(_float_answer, shared), strict=True)), "questions"):
        rounds, _, query = asked[i]
        bounds = limits[id(rounds)]
        if found is not None or lost >= ANSWER.lost_in_a_row:
            found = found or _grid_end(rounds, query, accuracy, bounds, theorem_b)
            known[i] = _least_end(rounds, query, bounds, theorem_b, found)
            continue
        known[i] = answer = _composed_end(rounds, query, accuracy, bounds, theorem_b, floats=query.wants_epsilon)
        by_grid = not query.wants_epsilon and answer.rigour != "proved" and accuracy >= ANSWER.rough_accuracy
        lost = lost + 1 if by_grid else 0
    return [each for each in known if each is not None]


def pure_epsilon(rounds: Rounds) -> Answer:
    """Return the sum of the largest losses of all rounds.

    Returns +inf if one of them is unbounded or may be infinite.
    """
    limits = limits_of(rounds)
    return Answer(limits.largest if limits.leak == 0 else math.inf, None, _rigour(rounds), way=_GRID)


def _single_deltas(asked: Sequence[tuple[Rounds, int, Query]]) -> list[Answer] | None:
    """Return delta of one round at all given epsilons by one call of its profile.

    Returns None if delta is given, or the rounds have no closed form.
    """
    if not asked or asked[0][2].wants_epsilon or (single := asked[0][0].single()) is None:
        return None
    return closed.single_answers(*single, [query for _, _, query in asked])


def _end_without_composition(rounds: Rounds, query: Query, limits: Limits) -> Answer | None:
    """Return epsilon, or delta, without a composition; None if the rounds have to be composed."""
    if (single := rounds.single()) is not None:
        return closed.single_answer(*single, query)
    if not query.wants_epsilon:
        if limits.leak > 0 or limits.largest > rounded_down(query.value):
            return None
        proved = basic_composition(rounds, query) == 0
        return Answer(0.0, None, "proved" if proved else _rigour(rounds), way=closed.ROUTE if proved else _GRID)
    if rounded_down(query.value) == 0:  # no float is as small, so no grid is tilted for it
        return Answer(math.inf, None, _rigour(rounds), way=_GRID)
    if limits.distance <= rounded_down(query.value):
        return Answer(0.0, None, _rigour(rounds), way=_GRID)
    return None


def _composed_end(
    rounds: Rounds,
    query: Query,
    accuracy: float,
    limits: Limits,
    theorem_b: bool,
    prove: bool = False,
    floats: bool = True,
) -> Answer:
    """Return epsilon, or delta, from the inversion line in balls, or a smaller bound.

    Floats (unless they were asked before) or a grid answer where balls do not.
    """
    effort = Effort.unlimited() if prove else Effort()
    by_line = solver.upper_end(rounds, query, accuracy, theorem_b, effort)

    def otherwise() -> Answer:
        [found] = batch.float_ends(rounds, [(1, query)], accuracy, theorem_b) if floats else [None]
        fine = _float_answer(found) or _grid_end(rounds, query, accuracy, limits, theorem_b)
        if accuracy < ANSWER.rough_accuracy:
            [found] = batch.float_ends(rounds, [(1, query)], ANSWER.rough_accuracy, theorem_b)
            fine = _smallest_answer(fine, solver.upper_end(rounds, query, ANSWER.rough_accuracy, theorem_b), found)
        return fine

    return _least_end(rounds, query, limits, theorem_b, _proof_or_grid(by_line, effort, accuracy, otherwise), prove)


def _least_end(
    rounds: Rounds, query: Query, limits: Limits, theorem_b: bool, found: Answer, prove: bool = False
) -> Answer:
    """Return the smallest epsilon, or delta, of a composition and of bounds without one."""
    if query.wants_epsilon and limits.leak <= rounded_down(query.value) and limits.largest < found.value:
        found = Answer(limits.largest, None, _rigour(rounds), way=_GRID)
    if (added := basic_composition(rounds, query)) < found.value:
        found = Answer(added, None, "proved", way=closed.ROUTE)
    if rounds.adaptive:
        found = _least_adaptive_end(rounds, query, theorem_b, found, prove)
    if query.wants_epsilon:
        return found
    most = min(limits.distance, limits.leak if limits.largest <= rounded_down(query.value) else 1.0, 1.0)
    return found if found.value <= most else Answer(most, None, _rigour(rounds), way=_GRID)


def _least_adaptive_end(rounds: Rounds, query: Query, theorem_b: bool, found: Answer, prove: bool) -> Answer:
    """Return the smallest epsilon, or delta, of a composition and of adaptive theorems."""
    log_delta = query.log_delta
    if log_delta is None:
        log_delta = math.log(max(found.value, ANSWER.underflow))
    optimum = None if _has_wanted_proof(found, prove) else value_iteration.optimum(rounds, log_delta, theorem_b)
    if optimum is not None and (enough := optimum.upper_end(query)) < found.value:
        found = Answer(enough, None, _rigour(rounds), way=_ADAPTIVE)
    if not theorem_b or found.way == _ADAPTIVE:  # which is the optimum itself
        return found
    if not query.wants_epsilon:
        if not found.value > 0:
            return found
        log_delta = math.log(min(found.value, 1.0))
    if (by_order := theorem_w_line.upper_end(rounds, query, log_delta)) is not None:
        return _theorem_w_line_answer(by_order, found, prove)
    if _has_wanted_proof(found, prove):
        return found
    return _theorem_w_grid_answer(rounds, theorem_w.upper_end(rounds, query, log_delta), found)


def _grid_end(rounds: Rounds, query: Query, accuracy: float, limits: Limits, theorem_b: bool) -> Answer:
    """Return epsilon, or delta, from grids.

    It is the largest direction of the profile, or Theorem B if that is smaller. A direction whose delta is not below the
    distance ends the loop: the distance bounds every direction and is the answer then.
    """
    best, accuracy = search.NOTHING, max(accuracy, ANSWER.finest_grid)
    enough = math.inf if query.wants_epsilon else limits.distance
    for terms in rounds.upper():
        if best.value >= enough:
            break
        if best is search.NOTHING or not _proved_smaller(terms, query, best, accuracy):
            best = max(best, _patient_grid_end(terms, query, accuracy, limits), key=attrgetter("value"))
    found = _grid_answer(best, _GRID, rounds)
    reference = rounds.theorem_b_on_grid if theorem_b else None
    if reference is not None:
        by_theorem_b = _grid_answer(search.theorem_b_end(reference, query, accuracy), _THEOREM_B, rounds)
        found = min(found, by_theorem_b, key=attrgetter("value"))
    return found


def directed_end(rounds: Rounds, direction: int, query: Query, accuracy: float) -> float:
    """Return an upper bound on epsilon, or delta, for one direction of the neighbours.

    Returns +inf, or 1 for delta, if no grid reaches an answer.
    """
    if not query.wants_epsilon:
        if (single := rounds.single_directed()) is not None:
            return (closed.single_added_delta if direction else closed.single_delta)(*single, query.value)
        if directed_largest(rounds, direction) <= rounded_down(query.value):
            return 0.0
    grid = max(accuracy, ANSWER.finest_grid)
    found = [_patient_grid_end(terms, query, grid).value for terms in _directed_terms(rounds, direction)]
    return min(max(found, default=query.trivial), query.trivial)


def directed_largest(rounds: Rounds, direction: int) -> float:
    """Return an epsilon that suffices for one direction at delta = 0.

    Returns +inf if the loss is unbounded or may be infinite.
    """
    return max((_largest(terms) for terms in _directed_terms(rounds, direction)), default=math.inf)


def _largest(terms: Terms) -> float:
    """Return the largest sum of losses, rounded up.

    Returns +inf if one loss is unbounded or may be infinite.
    """
    if any(step.leak > 0 for step, _ in terms):
        return math.inf
    return float(raised(sum(times * step.largest() for step, times in terms), MANY))


def _directed_terms(rounds: Rounds, direction: int) -> list[Terms]:
    """Return the compositions of one direction.

    If the number of records is stated there are four: the larger data set has that many records, or one more.
    """
    every = list(rounds.upper())
    return every if len(every) == 1 else every[direction::2]


def lower_end(rounds: Rounds, query: Query, accuracy: float, prove: bool = False) -> Answer | None:
    """Return the largest epsilon, or delta, that explicit neighbours need.

    Returns None if no data sets are known.
    """
    if rounds.single() is not None and not rounds.has_only_named_witnesses:
        return closed.single_lower_answer(rounds.single_below(), query)
    found = _best_witness(rounds, query, accuracy, prove)
    if not rounds.adaptive or (found is None and not query.wants_epsilon):
        return found
    log_delta = math.log(rounded_up(query.value) if query.wants_epsilon or found is None else found.value)
    optimum = value_iteration.lower_optimum(rounds, log_delta)
    return _larger_bound(found, 0.0 if optimum is None else optimum.lower_end(query))


def _larger_bound(found: Answer | None, needed: float) -> Answer | None:
    """Return the lower bound of fixed queries, or that of adaptive queries if it is larger."""
    best = 0.0 if found is None else found.value
    return Answer(needed, None, "bounded", way=ADAPTIVE) if needed > best else found


def _best_witness(rounds: Rounds, query: Query, accuracy: float, prove: bool) -> Answer | None:
    """Return the largest lower bound of all explicit neighbours.

    The line gives it if it answers, else a grid does. Returns None if all are 0. Neighbours that clearly need less by floats
    are left out: every one of them is valid, so a wrong guess costs accuracy only.
    """
    listed = list(rounds.witnesses())
    guesses = [math.inf] * len(listed)
    if len(listed) > 1:
        guesses = [solver.guessed_end(terms, round_types, query) for _, terms, round_types in listed]
    ends, most = [Answer(0.0, None, "proved")] * len(listed), 0.0
    for i in np.argsort(-np.array(guesses), kind="stable").tolist():
        if guesses[i] * (1 + accuracy) < most:
            break
        name, terms, round_types = listed[i]
        proved = None
        if round_types is not None:
            effort = Effort.unlimited() if prove else Effort()
            proved = solver.lower_end(rounds, terms, round_types, query, accuracy, effort)
        ends[i] = Answer(0.0 if proved is None else proved.value, None, "proved", way=name)
        if proved is None or (proved.smoothed and not prove):
            on_grid = search.grid_end(terms, query, max(accuracy, ANSWER.finest_witness), upper=False)
            ends[i] = max(ends[i], Answer(on_grid.value, None, "bounded", way=name), key=attrgetter("value"))
        most = max(most, ends[i].value)
    return max(ends, key=attrgetter("value")) if most > 0 else None


def _patient_grid_end(terms: Terms, query: Query, accuracy: float, limits: Limits | None = None) -> Bound:
    """Return epsilon, or delta, from a grid.

    If the grid gives up, a smaller delta, or epsilon, is asked for, whose answer is an upper bound too.

    Next to the largest loss a grid sees only its last cell, and the chord from a smaller epsilon to that loss is lower.
    """
    otherwise, epsilon = search.UNKNOWN, rounded_down(query.value)
    if not query.wants_epsilon:
        otherwise = search.CERTAIN
        if limits is not None and (1 - ANSWER.near_largest) * limits.largest < epsilon < limits.largest:
            start = epsilon - max(ANSWER.near_largest * epsilon, limits.largest - epsilon)
            otherwise = _chord(search.grid_delta(terms, start, accuracy, True), start, epsilon, limits)
    for less in ANSWER.log_reductions:
        if (log_delta := query.log_delta) is not None:
            found = search.grid_epsilon(terms, log_delta - less, accuracy, True)
        else:
            found = search.grid_delta(terms, epsilon * math.exp(-less / 4), accuracy, True)
        if found.value < query.trivial:
            return min(found, otherwise, key=attrgetter("value"))
    return otherwise


def _chord(found: Bound, start: float, epsilon: float, limits: Limits) -> Bound:
    """Return the bound at `start` carried to a larger epsilon; the trivial one if it cannot be carried."""
    if found is search.CERTAIN or not 0 <= start < epsilon < limits.largest:
        return search.CERTAIN
    return replace(found, value=limits.chord(found.value, start, epsilon))


def _proved_smaller(terms: Terms, query: Query, best: Bound, accuracy: float) -> bool:
    """Return True if a grid proves that this direction needs no more than the known one.

    The grid is tilted as for the known direction: an order that is enough there shows that this delta is smaller, where its own
    order would be far out. It is coarser if epsilon is wanted.
    """
    if not best.value > 0:
        return False
    given = rounded_down(query.value)
    epsilon, delta = (best.value, given) if query.wants_epsilon else (given, best.value)
    coarser, order = ANSWER.coarser if query.wants_epsilon else 1, best.order - 1
    return search.grid_delta(terms, epsilon, coarser * accuracy, True, most=order, enough=delta).value <= delta


def _has_wanted_proof(found: Answer, prove: bool) -> bool:
    """Return True if a proof was wanted and found; then no bounded answer replaces it."""
    return prove and found.rigour == "proved"


def _proof_or_grid(
    by_line: tuple[ProvedEnd, bool] | None, effort: Effort, accuracy: float, on_grid: Callable[[], Answer]
) -> Answer:
    """Return the proved answer.

    If balls failed, smoothed or were rough, and the grid's answer is smaller, that is returned with the reason.

    A caller who wants a proof gets it if it is as accurate as the accuracy asked for.
    """
    found = None if by_line is None else _line_answer(*by_line)
    if found is not None and by_line is not None and not (by_line[0].smoothed or by_line[0].rough):
        return found
    other = on_grid()
    if found is not None and found.value <= other.value * (1 + accuracy if effort.wants_proof else 1):
        return found
    slow = [str(reason) for reason in effort.reasons if isinstance(reason, DecayTooSlow)]
    if effort.wants_proof:
        reason = "nothing is known of these losses along the line"
        if found is not None:
            reason = f"balls show {found.value} only"
        elif effort.reasons:
            reason = str(effort.reasons[-1])
        return replace(other, failure=Failure(Reason.NO_PROOF, reason))
    if not slow or other.rigour == "proved":
        return other
    return replace(other, failure=Failure(Reason.SLOW_PROOF, slow[-1]))


def _smallest_answer(fine: Answer, rough: tuple[ProvedEnd, bool] | None, in_floats: batch.FloatAnswer | None) -> Answer:
    """Return the smallest of the fine answer and two rough ones.

    Without this a caller who asks for more accuracy than a line affords could get a larger number than with less accuracy.
    """
    known = [each for each in (rough and _line_answer(*rough), _float_answer(in_floats)) if each is not None]
    return min([fine, *known], key=attrgetter("value"))


def _line_answer(found: ProvedEnd, theorem_b: bool) -> Answer:
    """Return the answer that balls proved on the inversion line."""
    proof = Certificate(found.value, found.bits, found.radius)
    return Answer(
        found.value, found.order, "proved", proof, way=_THEOREM_B if theorem_b else _LINE, points=found.frequencies
    )


def _float_answer(found: batch.FloatAnswer | None) -> Answer | None:
    """Return the answer of the inversion line in floats; None if floats had none."""
    if found is None:
        return None
    return Answer(
        found.value, found.order, "bounded", way=_THEOREM_B if found.theorem_b else _LINE, points=found.frequencies
    )


def _theorem_w_line_answer(by_order: ProvedEnd, found: Answer, prove: bool) -> Answer:
    """Return the answer of Theorem W on the line if it is smaller.

    It is proved if its reference is proved.
    """
    value = by_order.value
    if not value < found.value or (_has_wanted_proof(found, prove) and not by_order.holds):
        return found
    proof = Certificate(value, by_order.bits, by_order.radius) if by_order.holds else None
    rigour = "proved" if by_order.holds else "bounded"
    return Answer(value, by_order.order, rigour, proof, way=_ORDER, points=by_order.frequencies)


def _theorem_w_grid_answer(rounds: Rounds, by_order: tuple[float, ComposedLaw] | None, found: Answer) -> Answer:
    """Return the answer of Theorem W on a grid if it is smaller."""
    if by_order is None or not by_order[0] < found.value:
        return found
    value, sums = by_order
    return Answer(value, sums.lam + 1, _rigour(rounds), way=_ORDER, width=sums.width, points=sums.mass.size)


def _grid_answer(bound: Bound, way: str, rounds: Rounds) -> Answer:
    """Return the answer that a grid gave; NaN for order or width becomes None."""
    order, width = (number if math.isfinite(number) else None for number in (bound.order, bound.width))
    return Answer(bound.value, order, _rigour(rounds), way=way, width=width, points=bound.points)


def _rigour(rounds: Rounds) -> str:
    """Return "estimated" if the law of one round was estimated, else "bounded"."""
    return "estimated" if rounds.estimated else "bounded"
