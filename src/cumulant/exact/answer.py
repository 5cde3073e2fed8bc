"""Compute epsilon or delta from both sides.

The upper bound suffices for all data sets; some data sets need the lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from cumulant.conversion.certify import Certificate
from cumulant.conversion.failure import Failure, Reason
from cumulant.conversion.renyi_to_dp import Answer
from cumulant.exact import closed_form as closed
from cumulant.exact.adaptive import theorem_w, theorem_w_line, value_iteration
from cumulant.exact.grid import refine as search
from cumulant.exact.grid.fft import Composed, Terms
from cumulant.exact.grid.refine import Bound
from cumulant.exact.inversion import batch, solver
from cumulant.exact.inversion.decay import DecayTooSlow
from cumulant.exact.inversion.solver import Effort, ProvedEnd
from cumulant.exact.limits import Limits, basic_composition_delta, basic_composition_epsilon, limits_of
from cumulant.exact.rounds import Rounds, RoundTypes
from cumulant.exact.witnesses import ADAPTIVE, PAIR
from cumulant.numerics.rounding import MANY, raised, rounded_down, rounded_up
from cumulant.progress import watched

# Names of routes, as answers and guarantees store them; convention.

_LATTICE = "lattice"
"""A grid, or a limit that needs no composition."""

_LINE = "line"
"""The inversion line."""

_CONE = "cone"
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


def epsilon(rounds: Rounds, delta: Fraction, accuracy: float, cone: bool = True, prove: bool = False) -> Answer:
    """Return an upper bound on epsilon at this exact delta in (0, 1), from the best route."""
    if (single := rounds.single()) is not None:
        return closed.single_answer(*single, "delta", delta)
    limits = limits_of(rounds)
    known = _epsilon_without_composition(rounds, delta, limits)
    if known is not None:
        return known
    effort = _effort(prove)
    by_line = solver.line_epsilon(rounds, delta, accuracy, cone, effort)

    def in_floats() -> Answer:
        [found] = batch.float_epsilons(rounds, [(1, delta)], accuracy, cone)
        fine = _float_answer(found) or _grid_epsilon(rounds, delta, accuracy, cone)
        if accuracy < ANSWER.rough_accuracy:
            [found] = batch.float_epsilons(rounds, [(1, delta)], ANSWER.rough_accuracy, cone)
            fine = _smallest_answer(fine, solver.line_epsilon(rounds, delta, ANSWER.rough_accuracy, cone), found)
        return fine

    return _least_epsilon(rounds, delta, limits, cone, _proof_or_grid(by_line, effort, accuracy, in_floats), prove)


def epsilons(
    one: Rounds, asked: Sequence[tuple[Rounds, int, Fraction]], accuracy: float, cone: bool = True
) -> list[Answer]:
    """Return epsilon for many (repetitions, delta) queries about one run.

    They share one spectrum.

    `one` is a single repetition; each query holds the rounds of all its repetitions, their number and a delta. Floats answer
    where they can; the other queries go through `epsilon` one by one.
    """
    limits = {id(rounds): limits_of(rounds) for rounds, _, _ in asked}
    known = [_epsilon_without_composition(rounds, delta, limits[id(rounds)]) for rounds, _, delta in asked]
    unknown = [i for i, each in enumerate(known) if each is None]
    shared = batch.float_epsilons(one, [asked[i][1:] for i in unknown], accuracy, cone)
    for i, found in watched(list(zip(unknown, map(_float_answer, shared), strict=True)), "questions"):
        rounds, _, delta = asked[i]
        known[i] = (
            epsilon(rounds, delta, accuracy, cone)
            if found is None
            else _least_epsilon(rounds, delta, limits[id(rounds)], cone, found)
        )
    return [each for each in known if each is not None]


def pure_epsilon(rounds: Rounds) -> Answer:
    """Return the sum of the largest losses of all rounds.

    Returns +inf if one of them is unbounded or may be infinite.
    """
    limits = limits_of(rounds)
    return _answer(limits.largest if limits.leak == 0 else math.inf, _LATTICE, _rigour(rounds))


def _epsilon_without_composition(rounds: Rounds, delta: Fraction, limits: Limits) -> Answer | None:
    """Return epsilon if no composition is needed for it; None if the rounds have to be composed."""
    if (single := rounds.single()) is not None:
        return closed.single_answer(*single, "delta", delta)
    if rounded_down(delta) == 0:  # no float is as small, so no grid is tilted for it
        return _answer(math.inf, _LATTICE, _rigour(rounds))
    if limits.distance <= rounded_down(delta):
        return _answer(0.0, _LATTICE, _rigour(rounds))
    return None


def _least_epsilon(
    rounds: Rounds, delta: Fraction, limits: Limits, cone: bool, found: Answer, prove: bool = False
) -> Answer:
    """Return the smallest epsilon of a composition and of the bounds that need no composition."""
    if limits.leak <= rounded_down(delta) and limits.largest < found.value:
        found = _answer(limits.largest, _LATTICE, _rigour(rounds))
    if (added := basic_composition_epsilon(rounds, delta)) < found.value:
        found = _answer(added, closed.ROUTE, "proved")
    if not rounds.adaptive:
        return found
    optimum = (
        None
        if _has_wanted_proof(found, prove)
        else value_iteration.optimum(rounds, math.log(rounded_down(delta)), cone)
    )
    if optimum is not None and (enough := optimum.epsilon(rounded_down(delta))) < found.value:
        found = _answer(enough, _ADAPTIVE, _rigour(rounds))
    if not cone or found.way == _ADAPTIVE:  # which is the optimum itself
        return found
    if (by_order := theorem_w_line.epsilon(rounds, delta)) is not None:
        return _theorem_w_line_answer(by_order, found, prove)
    if _has_wanted_proof(found, prove):
        return found
    return _theorem_w_grid_answer(rounds, theorem_w.epsilon(rounds, math.log(rounded_down(delta))), found)


def _grid_epsilon(rounds: Rounds, delta: Fraction, accuracy: float, cone: bool) -> Answer:
    """Return epsilon from grids.

    It is the largest direction of the profile, or Theorem B if that is smaller.
    """
    log_delta, best, accuracy = math.log(rounded_down(delta)), search.NOTHING, max(accuracy, ANSWER.finest_grid)
    for terms in rounds.upper():
        if best.value > 0 and _proved_smaller(terms, best, rounded_down(delta), accuracy):
            continue
        best = max(best, _patient_grid_epsilon(terms, log_delta, accuracy), key=lambda bound: bound.value)
    found = _grid_answer(best, _LATTICE, rounds)
    reference = rounds.cone() if cone else None
    if reference is not None:
        by_cone = _grid_answer(search.cone_epsilon(reference, log_delta, accuracy), _CONE, rounds)
        found = min(found, by_cone, key=lambda one: one.value)
    return found


def delta(rounds: Rounds, epsilon: Fraction, accuracy: float, cone: bool = True, prove: bool = False) -> Answer:
    """Return an upper bound on delta at this exact epsilon, the smallest of all routes.

    `cone` admits Theorem B; `prove` asks for a proof in balls without a work limit.
    """
    if (single := rounds.single()) is not None:
        return closed.single_answer(*single, "epsilon", epsilon)
    return _delta_by_line(rounds, epsilon, accuracy, cone, True, prove)


def deltas(rounds: Rounds, asked: Sequence[Fraction], accuracy: float, cone: bool = True) -> list[Answer]:
    """Return delta for many epsilons. Floats answer all of them in one call.

    Balls or a grid answer the rest.
    """
    single = rounds.single()
    if single is not None:
        return [_answer(value, closed.ROUTE, "proved") for value in closed.single_deltas(*single, asked)]
    shared = map(_float_answer, batch.float_deltas(rounds, [(1, each) for each in asked], accuracy, cone))
    limits, answers, lost = limits_of(rounds), list[Answer](), 0
    for each, found in zip(asked, shared, strict=True):
        if found is None and lost < ANSWER.lost_in_a_row:
            answers.append(_delta_by_line(rounds, each, accuracy, cone, False))
            lost = lost + 1 if answers[-1].rigour != "proved" and accuracy >= ANSWER.rough_accuracy else 0
            continue
        answers.append(_least_delta(rounds, each, limits, cone, found or _grid_delta(rounds, each, accuracy, cone)))
    return answers


def _delta_by_line(
    rounds: Rounds, epsilon: Fraction, accuracy: float, cone: bool, floats: bool, prove: bool = False
) -> Answer:
    """Return delta from the inversion line in balls.

    Floats (unless they were asked before) or a grid answer the rest.
    """
    effort = _effort(prove)
    by_line = solver.line_delta(rounds, epsilon, accuracy, cone, effort)

    def otherwise() -> Answer:
        [found] = batch.float_deltas(rounds, [(1, epsilon)], accuracy, cone) if floats else [None]
        fine = _float_answer(found) or _grid_delta(rounds, epsilon, accuracy, cone)
        if accuracy < ANSWER.rough_accuracy:
            [found] = batch.float_deltas(rounds, [(1, epsilon)], ANSWER.rough_accuracy, cone)
            fine = _smallest_answer(fine, solver.line_delta(rounds, epsilon, ANSWER.rough_accuracy, cone), found)
        return fine

    return _least_delta(
        rounds, epsilon, limits_of(rounds), cone, _proof_or_grid(by_line, effort, accuracy, otherwise), prove
    )


def _least_delta(
    rounds: Rounds, epsilon: Fraction, limits: Limits, cone: bool, found: Answer, prove: bool = False
) -> Answer:
    """Return the smallest delta of a composition and of the bounds that need no composition."""
    if (added := basic_composition_delta(rounds, epsilon)) < found.value:
        found = _answer(added, closed.ROUTE, "proved")
    most = min(limits.distance, limits.leak if limits.largest <= rounded_down(epsilon) else 1.0, 1.0)
    if rounds.adaptive:
        found = _least_adaptive_delta(rounds, epsilon, cone, found, prove)
    return found if found.value <= most else _answer(most, _LATTICE, _rigour(rounds))


def _least_adaptive_delta(rounds: Rounds, epsilon: Fraction, cone: bool, found: Answer, prove: bool) -> Answer:
    """Return the smallest delta of a composition and of the theorems about queries that adapt."""
    log_delta = math.log(max(found.value, ANSWER.underflow))
    optimum = None if _has_wanted_proof(found, prove) else value_iteration.optimum(rounds, log_delta, cone)
    if optimum is not None and (enough := optimum.delta(rounded_down(epsilon))) < found.value:
        found = _answer(enough, _ADAPTIVE, _rigour(rounds))
    if cone and found.way != _ADAPTIVE and found.value > 0:
        log_delta = math.log(min(found.value, 1.0))
        if (by_order := theorem_w_line.delta(rounds, epsilon, log_delta)) is not None:
            found = _theorem_w_line_answer(by_order, found, prove)
        elif not _has_wanted_proof(found, prove):
            found = _theorem_w_grid_answer(rounds, theorem_w.delta(rounds, rounded_down(epsilon), log_delta), found)
    return found


def _grid_delta(rounds: Rounds, epsilon: Fraction, accuracy: float, cone: bool) -> Answer:
    """Return delta from grids.

    It is the largest direction of the profile, or Theorem B if that is smaller.
    """
    asked, best, accuracy = rounded_down(epsilon), search.NOTHING, max(accuracy, ANSWER.finest_grid)
    limits = limits_of(rounds)
    for terms in rounds.upper():
        if best is search.NOTHING:
            best = _patient_grid_delta(terms, asked, accuracy, limits)
            continue
        # an order that is enough for one direction shows that the other is smaller, where its own would be far out
        other = search.grid_delta(terms, asked, accuracy, True, most=best.order - 1)
        if other.value > best.value > 0:
            other = _patient_grid_delta(terms, asked, accuracy, limits)
        best = max(best, other, key=lambda bound: bound.value)
    found = _grid_answer(best, _LATTICE, rounds)
    reference = rounds.cone() if cone else None
    if reference is not None:
        by_cone = _grid_answer(search.cone_delta(reference, asked, accuracy), _CONE, rounds)
        found = min(found, by_cone, key=lambda one: one.value)
    return found


def directed_delta(rounds: Rounds, direction: int, epsilon: Fraction, accuracy: float) -> float:
    """Return an upper bound on delta for one direction of the neighbours.

    Returns 1 if no grid reaches an answer.
    """
    single = rounds.single_directed()
    if single is not None:
        return (closed.single_added_delta if direction else closed.single_delta)(*single, epsilon)
    asked, grid = rounded_down(epsilon), max(accuracy, ANSWER.finest_grid)
    if directed_largest(rounds, direction) <= asked:
        return 0.0
    return min(max(_patient_grid_delta(terms, asked, grid).value for terms in _directed_terms(rounds, direction)), 1.0)


def directed_largest(rounds: Rounds, direction: int) -> float:
    """Return an epsilon that suffices for one direction at delta = 0.

    Returns +inf if the loss is unbounded or may be infinite.
    """
    return max(_largest(terms) for terms in _directed_terms(rounds, direction))


def _largest(terms: Terms) -> float:
    """Return the largest sum of losses, rounded up.

    Returns +inf if one loss is unbounded or may be infinite.
    """
    if any(step.leak > 0 for step, _ in terms):
        return math.inf
    return float(raised(sum(times * step.largest() for step, times in terms), MANY))


def directed_epsilon(rounds: Rounds, direction: int, delta: float, accuracy: float) -> float:
    """Return an upper bound on epsilon for one direction at delta in (0, 1).

    Returns +inf if no grid reaches an answer.
    """
    grid = max(accuracy, ANSWER.finest_grid)
    return max(
        _patient_grid_epsilon(terms, math.log(delta), grid).value for terms in _directed_terms(rounds, direction)
    )


def _directed_terms(rounds: Rounds, direction: int) -> list[Terms]:
    """Return the compositions of one direction.

    If the number of records is stated there are four: the larger data set has that many records, or one more.
    """
    every = list(rounds.upper())
    return every if len(every) == 1 else every[direction::2]


def lower_epsilon(rounds: Rounds, delta: Fraction, accuracy: float, prove: bool = False) -> Answer | None:
    """Return the largest epsilon that explicit neighbours need at this delta.

    Returns None if no data sets are known.
    """
    if rounds.single() is not None and not rounds.named:
        below = rounds.single_below()
        needed = None if below is None else closed.single_lower_epsilon(*below, delta)
        return None if needed is None else _answer(needed, PAIR, "proved")

    def on_line(terms: Terms, round_types: RoundTypes) -> ProvedEnd | None:
        return solver.line_lower_epsilon(rounds, terms, round_types, delta, accuracy, _effort(prove))

    def on_grid(terms: Terms) -> Bound:
        return search.grid_epsilon(
            terms, math.log(rounded_up(delta)), max(accuracy, ANSWER.finest_witness), upper=False
        )

    found = _best_witness(rounds, on_line, on_grid, prove)
    if not rounds.adaptive:
        return found
    optimum = value_iteration.lower_optimum(rounds, math.log(rounded_up(delta)))
    return _larger_bound(found, 0.0 if optimum is None else optimum.needed_epsilon(rounded_up(delta)))


def lower_delta(rounds: Rounds, epsilon: Fraction, accuracy: float, prove: bool = False) -> Answer | None:
    """Return the largest delta that explicit neighbours need at this epsilon.

    Returns None if no data sets are known.
    """
    if rounds.single() is not None and not rounds.named:
        below = rounds.single_below()
        needed = 0.0 if below is None else rounded_down(closed.enclosed_delta(*below, epsilon)[0])
        return _answer(needed, PAIR, "proved") if needed > 0 else None

    def on_line(terms: Terms, round_types: RoundTypes) -> ProvedEnd | None:
        return solver.line_lower_delta(rounds, terms, round_types, epsilon, accuracy, _effort(prove))

    def on_grid(terms: Terms) -> Bound:
        return search.grid_delta(terms, rounded_up(epsilon), max(accuracy, ANSWER.finest_witness), upper=False)

    found = _best_witness(rounds, on_line, on_grid, prove)
    if not rounds.adaptive:
        return found
    optimum = None if found is None else value_iteration.lower_optimum(rounds, math.log(found.value))
    return _larger_bound(found, 0.0 if optimum is None else optimum.needed_delta(rounded_up(epsilon)))


def _larger_bound(found: Answer | None, needed: float) -> Answer | None:
    """Return the lower bound of fixed queries, or that of adaptive queries if it is larger."""
    best = 0.0 if found is None else found.value
    return _answer(needed, ADAPTIVE, "bounded") if needed > best else found


def _best_witness(
    rounds: Rounds,
    on_line: Callable[[Terms, RoundTypes], ProvedEnd | None],
    on_grid: Callable[[Terms], Bound],
    prove: bool,
) -> Answer | None:
    """Return the largest lower bound of all explicit neighbours.

    The line gives it if it answers, else a grid does. Returns None if all are 0.
    """
    best: Answer | None = None
    for name, terms, round_types in rounds.witnesses():
        proved = None if round_types is None else on_line(terms, round_types)
        found = _answer(0.0, name, "proved") if proved is None else _answer(proved.value, name, "proved")
        if proved is None or (proved.smoothed and not prove):
            found = max(found, _answer(on_grid(terms).value, name, "bounded"), key=lambda each: each.value)
        if found.value > (0.0 if best is None else best.value):  # a route that gave up has 0
            best = found
    return best


def _patient_grid_epsilon(terms: Terms, log_delta: float, accuracy: float) -> Bound:
    """Return epsilon from a grid.

    If the grid gives up, a smaller delta is asked for, whose epsilon is an upper bound too.
    """
    for less in ANSWER.log_reductions:
        found = search.grid_epsilon(terms, log_delta - less, accuracy, True)
        if found.value < math.inf:
            return found
    return search.UNKNOWN


def _patient_grid_delta(terms: Terms, epsilon: float, accuracy: float, limits: Limits | None = None) -> Bound:
    """Return delta from a grid.

    If the grid gives up, a smaller epsilon is asked for, whose delta is an upper bound too.

    Next to the largest loss a grid sees only its last cell, and the chord from a smaller epsilon to that loss is lower.
    """
    chorded = search.CERTAIN
    if limits is not None and (1 - ANSWER.near_largest) * limits.largest < epsilon < limits.largest:
        start = epsilon - max(ANSWER.near_largest * epsilon, limits.largest - epsilon)
        chorded = _chord(search.grid_delta(terms, start, accuracy, True), start, epsilon, limits)
    for less in ANSWER.log_reductions:
        found = search.grid_delta(terms, epsilon * math.exp(-less / 4), accuracy, True)
        if found is not search.CERTAIN:
            return min(found, chorded, key=lambda bound: bound.value)
    return chorded


def _chord(found: Bound, start: float, epsilon: float, limits: Limits) -> Bound:
    """Return the bound at `start` carried to a larger epsilon.

    As a function of e^epsilon delta is convex, and it is the leak at the largest loss L.

    With x = e^epsilon, delta(x) <= leak + (delta(x1) - leak) (e^L - x) / (e^L - x1).
    """
    if found is search.CERTAIN or not 0 <= start < epsilon < limits.largest:
        return search.CERTAIN
    part = math.expm1(epsilon - limits.largest) / math.expm1(start - limits.largest)
    value = raised(limits.leak + raised(part, MANY) * max(found.value - limits.leak, 0.0), MANY)
    return replace(found, value=min(value, found.value))


def _proved_smaller(terms: Terms, best: Bound, delta: float, accuracy: float) -> bool:
    """Return True if a coarse grid proves that this direction needs no more than the known one.

    The grid is tilted as for the known direction.
    """
    return search.grid_delta(terms, best.value, ANSWER.coarser * accuracy, True, most=best.order - 1).value <= delta


def _effort(prove: bool) -> Effort:
    """Return the work limits: none of them counts if a proof is wanted."""
    return Effort.unlimited() if prove else Effort()


def _has_wanted_proof(found: Answer, prove: bool) -> bool:
    """Return True if a proof was wanted and found; then no bounded answer replaces it."""
    return prove and found.rigour == "proved"


def _proof_or_grid(
    by_line: tuple[ProvedEnd, bool] | None, effort: Effort, accuracy: float, on_grid: Callable[[], Answer]
) -> Answer:
    """Return the proved answer.

    If balls failed or smoothed and the grid's answer is smaller, that is returned with the reason.

    A caller who wants a proof gets it if it is as accurate as the accuracy asked for.
    """
    found = None if by_line is None else _line_answer(*by_line)
    if found is not None and by_line is not None and not by_line[0].smoothed:
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
    return min([fine, *known], key=lambda each: each.value)


def _line_answer(found: ProvedEnd, cone: bool) -> Answer:
    """Return the answer that balls proved on the inversion line."""
    proof = Certificate(found.value, found.bits, found.radius)
    return Answer(found.value, found.order, "proved", proof, way=_CONE if cone else _LINE, points=found.frequencies)


def _float_answer(found: batch.FloatAnswer | None) -> Answer | None:
    """Return the answer of the inversion line in floats; None if floats had none."""
    if found is None:
        return None
    return Answer(found.value, found.order, "bounded", way=_CONE if found.cone else _LINE, points=found.frequencies)


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


def _theorem_w_grid_answer(rounds: Rounds, by_order: tuple[float, Composed] | None, found: Answer) -> Answer:
    """Return the answer of Theorem W on a grid if it is smaller."""
    if by_order is None or not by_order[0] < found.value:
        return found
    value, sums = by_order
    return Answer(value, sums.lam + 1, _rigour(rounds), way=_ORDER, width=sums.width, points=sums.mass.size)


def _grid_answer(bound: Bound, way: str, rounds: Rounds) -> Answer:
    """Return the answer that a grid gave; NaN for order or width becomes None."""
    order, width = (number if math.isfinite(number) else None for number in (bound.order, bound.width))
    return Answer(bound.value, order, _rigour(rounds), way=way, width=width, points=bound.points)


def _answer(value: float, way: str, rigour: str) -> Answer:
    """Return an answer that no grid gave.

    For a lower bound `way` names the data sets that show it.
    """
    return Answer(value, None, rigour, way=way)


def _rigour(rounds: Rounds) -> str:
    """Return "estimated" if the law of one round was estimated, else "bounded"."""
    return "estimated" if rounds.estimated else "bounded"
