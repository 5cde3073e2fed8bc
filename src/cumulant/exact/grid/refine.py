"""Choose order, grid and window for a question, and bound the answer on that grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter

import numpy as np

from cumulant.conversion.query import Query
from cumulant.exact.grid import theorem_b
from cumulant.exact.grid.fft import ComposedLaw, check_side, compose
from cumulant.exact.grid.settings import GRID
from cumulant.exact.inversion import saddle
from cumulant.exact.inversion.saddle import Moments
from cumulant.losses.grid import Step, Terms, leak_of
from cumulant.numerics.rounding import DOZENS, lowered, next_above, raised, rounded_down, rounded_up
from cumulant.numerics.search import bisect, bracket_falling


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound, with the order of the tilting, the step and the number of points of its grid.

    Order and step are NaN and points is 0 if no grid gave it.
    """

    value: float
    order: float
    width: float
    points: int


UNKNOWN = Bound(math.inf, math.nan, math.nan, 0)
"""Upper bound on epsilon if no grid answers."""

NOTHING = Bound(0.0, math.nan, math.nan, 0)
"""Lower bound if no grid answers."""

CERTAIN = Bound(1.0, math.nan, math.nan, 0)
"""Upper bound on delta if no grid answers."""


def _best_of_grids(
    known: Bound, bounds: Callable[[float], Iterable[Bound]], accuracy: float, upper: bool = True, enough: float = 0.0
) -> Bound:
    """Return the best bound of ever finer grids, and of what is known without a grid; an upper one that is `enough` ends it.

    A finer grid is not always better: rounding grows with its length, and memory may run out. So coarser grids come first, and
    every bound that was reached stays.
    """
    best, finer = known, max(accuracy, GRID.first_accuracy)
    while True:
        found = _before_giving_up(bounds(finer))
        if not found:
            return best
        after = (min if upper else max)([best, *found], key=attrgetter("value"))
        change, best = abs(after.value - best.value), after
        # the cost of a grid falls with the accuracy, so that what is left to gain is about that much
        if finer <= accuracy or change * GRID.finer <= accuracy * abs(after.value) or (upper and best.value <= enough):
            return best
        finer = max(accuracy, finer * GRID.finer)


def _before_giving_up(bounds: Iterable[Bound]) -> list[Bound]:
    """Return the bounds that come before floats or memory give out; NaN is not a bound."""
    found = []
    with suppress(ArithmeticError, MemoryError, ValueError), np.errstate(all="ignore"):
        for bound in bounds:
            if not math.isnan(bound.value):
                found.append(bound)
    return found


def grid_end(terms: Terms, query: Query, accuracy: float, upper: bool) -> Bound:
    """Return a bound from above (or below) on epsilon, or delta, of these terms."""
    given = (rounded_down if upper else rounded_up)(query.value)
    if query.wants_epsilon:
        return grid_epsilon(terms, math.log(given), accuracy, upper)
    return grid_delta(terms, given, accuracy, upper)


def grid_epsilon(terms: Terms, log_delta: float, accuracy: float, upper: bool) -> Bound:
    """Return a bound from above (or below) on epsilon of these terms at this delta.

    The first grid follows the saddle point; with few rounds that is a poor guide, and the first answer is the next guess.
    """
    check_side(terms, upper)
    known = UNKNOWN if upper else NOTHING
    if (alone := _single_round_epsilon(terms, log_delta, upper)) is not None:
        return alone
    return _best_of_grids(known, partial(_epsilons, terms, log_delta, upper=upper), accuracy, upper)


def _single_round_delta(terms: Terms, epsilon: float, log_mass: float) -> float | None:
    """Return delta of a single round that needs no grid.

    Returns None if there are several rounds, or the round needs a grid.
    """
    if len(terms) != 1 or terms[0][1] != 1:
        return None
    with suppress(ArithmeticError, MemoryError, ValueError), np.errstate(all="ignore"):
        found = terms[0][0].own_delta(epsilon, log_mass)
        return None if found is None or math.isnan(found) else found
    return None


def _single_round_epsilon(terms: Terms, log_delta: float, upper: bool) -> Bound | None:
    """Return epsilon of a single round that needs no grid, by bisection.

    Returns None if there are several rounds, or the round needs a grid.

    From above every epsilon whose delta is small enough will do, from below every one whose delta is too large.
    """
    if len(terms) != 1 or terms[0][1] != 1:
        return None
    delta, cut = math.exp(log_delta), log_delta - GRID.cut

    def enough(epsilon: float) -> bool | None:
        found = _single_round_delta(terms, epsilon, cut)
        return None if found is None else found <= delta

    low, high = 0.0, 1.0
    if (there := enough(low)) is None:
        return None
    if there:
        return NOTHING
    while not enough(high):
        low, high = high, 2 * high
        if high > GRID.farthest_epsilon:
            return UNKNOWN if upper else NOTHING
    low, high = bisect(enough, low, high, part=GRID.solved)
    return Bound(high if upper else low, math.nan, math.nan, 0)


def _epsilons(terms: Terms, log_delta: float, accuracy: float, upper: bool) -> Iterator[Bound]:
    """Yield bounds on epsilon from grids that follow the answer, at most four."""
    asked = _log_delta_without_leak(terms, log_delta)
    at = saddle.saddle_point(terms, log_delta=asked) if asked > -math.inf else None
    if at is None:
        return
    # a loss may be rare in one round and add up over many; if none is above 0, delta is the leak, which is less than the given
    if all(step.span(log_delta) == (0.0, 0.0) and step.largest() <= 0 for step, _ in terms):
        yield NOTHING
        return
    guess, slope = max(_first_guess(terms, at, asked), 0.0), float(at.lam[0])
    for _ in range(GRID.corrections):
        width = grid_width(terms, at, guess, slope, accuracy, upper)
        sums = _compose_near(terms, at, log_delta, width, upper)
        found = _epsilon_bound(sums, log_delta, guess)
        yield found
        if not math.isfinite(found.value) or found.value == 0:
            return
        slope = max(_slope(sums, found.value), sums.lam)
        after = saddle.saddle_point(terms, epsilon=found.value)
        close = abs(found.value - guess) <= GRID.close * found.value
        guess, at = found.value, after or at
        if close and grid_width(terms, at, guess, slope, accuracy, upper) >= 0.6 * width:
            return


def _slope(sums: ComposedLaw, epsilon: float) -> float:
    """Return about -d log delta / d epsilon on this grid; 0 if it is not finite."""
    step = max(2 * sums.width, 1e-3 * epsilon)
    fall = sums.log_delta(epsilon) - sums.log_delta(epsilon + step)
    return fall / step if math.isfinite(fall) else 0.0


def _first_guess(terms: Terms, at: Moments, log_delta: float) -> float:
    """Return epsilon by the saddle line; the saddle point itself if the line does not decay."""
    start = float(saddle.epsilon_of(at)[0])
    along = saddle.line(terms, at, saddle.spread(terms, at))
    found = bracket_falling(along.log_delta, -along.lam, log_delta, start)[1] if along is not None else start
    return found if math.isfinite(found) else start


def grid_delta(
    terms: Terms, epsilon: float, accuracy: float, upper: bool, most: float = math.inf, enough: float = 0.0
) -> Bound:
    """Return a bound from above (or below) on delta of these terms at this epsilon.

    Any tilting gives a bound; `most` limits its order, which costs accuracy if this delta is far smaller than others.
    Nothing is refined once delta is at most `enough`.
    """
    check_side(terms, upper)
    for log_mass in GRID.single_round_cuts:
        alone = _single_round_delta(terms, epsilon, log_mass)
        if alone is None:
            break
        if alone <= enough or alone > math.exp(log_mass + GRID.cut) or log_mass == GRID.single_round_cuts[-1]:
            return Bound(alone, math.nan, math.nan, 0)
    known = CERTAIN if upper else Bound(lowered(leak_of(terms), DOZENS), math.nan, math.nan, 0)
    return _best_of_grids(known, lambda finer: _deltas(terms, epsilon, finer, upper, most), accuracy, upper, enough)


def _deltas(terms: Terms, epsilon: float, accuracy: float, upper: bool, most: float) -> Iterator[Bound]:
    """Yield bounds on delta from grids that follow the answer, at most two."""
    at = _representable_saddle(terms, saddle.saddle_point(terms, epsilon=epsilon)) if leak_of(terms) < 1 else None
    if at is None:
        return
    if at.lam[0] > most:
        at = saddle.moments(terms, np.array([most]))
    log_delta, slope = min(float(saddle.approximation(at)[0]), -1e-9), float(at.lam[0])
    for _ in range(2):
        width = grid_width(terms, at, epsilon, slope, accuracy, upper)
        sums = _compose_near(terms, at, log_delta, width, upper, shared=accuracy >= GRID.shared_accuracy)
        value = sums.log_delta(epsilon - sums.slip if upper else epsilon + sums.slip)
        yield _delta_bound(sums, value)
        if not math.isfinite(value) or abs(value - log_delta) < 1:
            return
        log_delta, slope = min(value, -1e-9), max(_slope(sums, epsilon), sums.lam)


def _representable_saddle(terms: Terms, at: Moments | None) -> Moments | None:
    """Return the saddle point, or one at a smaller order if its delta is too small for floats."""
    if at is not None and float(saddle.approximation(at)[0]) < GRID.smallest_log_delta:
        return saddle.saddle_point(terms, log_delta=GRID.smallest_log_delta) or at
    return at


def _delta_bound(sums: ComposedLaw, log_delta: float) -> Bound:
    """Return the bound of a delta given by its logarithm, rounded outward."""
    size = math.exp(min(log_delta, 0.0))
    bound = min(raised(size, DOZENS) + 5e-324, 1.0) if sums.upper else math.nextafter(lowered(size, DOZENS), 0.0)
    return Bound(bound, sums.lam + 1, sums.width, sums.mass.size)


def theorem_b_end(terms: Terms, query: Query, accuracy: float) -> Bound:
    """Return epsilon, or delta, by Theorem B.

    The terms are the pairs and the Gaussian of the diameter.
    """
    given = rounded_down(query.value)
    return (
        theorem_b_epsilon(terms, math.log(given), accuracy)
        if query.wants_epsilon
        else theorem_b_delta(terms, given, accuracy)
    )


def theorem_b_epsilon(terms: Terms, log_delta: float, accuracy: float) -> Bound:
    """Return epsilon by Theorem B at this delta.

    The terms are the pairs and the Gaussian of the diameter.
    """
    check_side(terms, upper=True)
    return _best_of_grids(UNKNOWN, lambda finer: _theorem_b_epsilons(terms, log_delta, finer), accuracy)


def _theorem_b_epsilons(terms: Terms, log_delta: float, accuracy: float) -> Iterator[Bound]:
    """Yield bounds on epsilon by Theorem B from grids that follow the answer."""
    at = saddle.saddle_point(terms, log_delta=log_delta - 0.5)  # the constant of Theorem B costs about that much
    if at is None:
        return
    guess, slope = max(float(saddle.epsilon_of(at)[0]), 1e-12), float(at.lam[0])
    for _ in range(GRID.corrections):
        width = grid_width(terms, at, guess, slope, accuracy, upper=True)
        sums, tail = _compose_theorem_b(terms, at, log_delta, width, accuracy)
        better = _epsilon_bound(sums, log_delta - 0.5, guess).value  # few rounds make the saddle point a poor guide
        start = better if 0 < better < math.inf else guess
        expectation = partial(theorem_b.log_expectation, sums, tail=tail)
        found = theorem_b.least_epsilon(expectation, log_delta, sums.lam, start)
        yield Bound(next_above(max(found, 0.0) + sums.slip), sums.lam + 1, sums.width, sums.mass.size)
        if not 0 < found < math.inf:
            return
        slope, at = max(_slope(sums, found), sums.lam), saddle.saddle_point(terms, epsilon=found) or at
        close, guess = abs(found - guess) <= GRID.close * found, found
        if close and grid_width(terms, at, guess, slope, accuracy, upper=True) >= 0.6 * width:
            return


def theorem_b_delta(terms: Terms, epsilon: float, accuracy: float) -> Bound:
    """Return delta by Theorem B at this epsilon.

    The terms are the pairs and the Gaussian of the diameter.
    """
    check_side(terms, upper=True)
    return _best_of_grids(CERTAIN, lambda finer: _theorem_b_deltas(terms, epsilon, finer), accuracy)


def _theorem_b_deltas(terms: Terms, epsilon: float, accuracy: float) -> Iterator[Bound]:
    """Yield the bound on delta by Theorem B from one grid."""
    at = _representable_saddle(terms, saddle.saddle_point(terms, epsilon=epsilon))
    if at is None or epsilon <= 0:
        return
    lam = float(at.lam[0])
    width = grid_width(terms, at, epsilon, lam, accuracy, upper=True)
    sums, tail = _compose_theorem_b(terms, at, min(float(saddle.approximation(at)[0]), -1e-9), width, accuracy)
    value = theorem_b.log_delta(lambda eps0: theorem_b.log_expectation(sums, eps0, tail), epsilon - sums.slip, lam)
    yield _delta_bound(sums, value)


def _compose_theorem_b(
    terms: Terms, at: Moments, log_delta: float, width: float, accuracy: float
) -> tuple[ComposedLaw, float]:
    """Return the composed reference of Theorem B, and log of the contribution beyond its grid.

    E[(S - eps0)+; some loss is beyond] <= mass (reach + 2) + mass max(-eps0, 0), because g(d) <= d.
    """
    rounds = sum(times for _, times in terms)
    reach = sum(times * max(map(abs, step.span(2 * log_delta - 60))) for step, times in terms)
    cut = log_delta - math.log(rounds) - GRID.cut - math.log1p(reach)
    sums = _compose_near(terms, at, log_delta, width, upper=True, cut=cut, shared=accuracy >= GRID.shared_accuracy)
    return sums, cut + math.log(rounds) + math.log(2 + reach)


def _log_delta_without_leak(terms: Terms, log_delta: float) -> float:
    """Return log of delta without the leak; -inf if the leak is at least delta."""
    leak = leak_of(terms)
    left = -math.expm1(math.log(leak) - log_delta) if leak > 0 else 1.0
    return log_delta + math.log(left) if left > 0 else -math.inf


def _epsilon_bound(sums: ComposedLaw, log_delta: float, guess: float) -> Bound:
    """Return the epsilon of a composed law, on the safe side of the root.

    Every misplacement of a loss is added.
    """
    low, high = bracket_falling(sums.log_delta, -sums.lam, log_delta, max(guess, sums.start), GRID.solved)
    if sums.upper:
        none = high == 0 and sums.log_delta(-sums.slip) <= log_delta
        value = 0.0 if none else next_above(high + sums.slip)
    else:
        value = max(-next_above(sums.slip - low), 0.0)
    return Bound(value, sums.lam + 1, sums.width, sums.mass.size)


def _compose_near(
    terms: Terms,
    at: Moments,
    log_delta: float,
    width: float,
    upper: bool,
    cut: float | None = None,
    shared: bool = False,
) -> ComposedLaw:
    """Compose all rounds on a grid of about this step, tilted to the order of `at`.

    Raises OverflowError if none is in reach.

    A shared grid is tilted to a nearby order and cut farther out, so that it serves other questions too.
    """
    rounds = sum(times for _, times in terms)
    kept = log_delta - math.log(rounds) - GRID.cut if cut is None else cut
    longest = 0.0
    for step, _ in terms:
        low, high = step.span(kept)
        longest = max(longest, high - low)
    least = longest / (2 * GRID.most_points if upper else GRID.most_cells)
    width = max(width, least) or 1.0
    if not 1e-300 < width < GRID.widest_step:
        raise OverflowError(f"a step of {width} is out of reach")
    lam, width = float(at.lam[0]), _anchored_step(terms, width)
    if not shared or GRID.window_deviations * math.sqrt(float(at.variance[0])) > GRID.most_shared_points * width:
        return _compose_within_reach(partial(compose, terms, log_mass=kept, lam=lam, upper=upper), width)
    farther, nearby = (
        GRID.shared_cut_multiple * math.floor(kept / GRID.shared_cut_multiple),
        2.0 ** (round(3 * math.log2(lam)) / 3),
    )
    return _compose_within_reach(partial(_shared_composition, terms, cut=farther, lam=nearby, upper=upper), width)


def _compose_within_reach(composed: Callable[[float], ComposedLaw], width: float) -> ComposedLaw:
    """Return the composed law at this step, or at a wider one if its window is too long."""
    for factor in GRID.wider_steps[:-1]:
        with suppress(OverflowError):
            return composed(factor * width)
    return composed(GRID.wider_steps[-1] * width)


@lru_cache(maxsize=16)
def _shared_composition(terms: Terms, width: float, cut: float, lam: float, upper: bool) -> ComposedLaw:
    """Compose all rounds, remembered for nearby questions."""
    return compose(terms, width, cut, lam, upper)


def grid_width(terms: Terms, at: Moments, epsilon: float, slope: float, accuracy: float, upper: bool) -> float:
    """Return the step at which the grid costs this part of epsilon.

    It costs about k (slope + 1) h^2 / 12, at most k h.
    """
    rounds, deviation = sum(times for _, times in terms), math.sqrt(float(at.variance[0]))
    size = max(epsilon, 0.02 * deviation)
    cost = 0.4 * accuracy * size / rounds
    width = max(math.sqrt(12 * cost / (slope + 1)), cost)
    if not upper:  # every round must be resolved, the bulk of its law by several cells
        width = min(width / 3, deviation / math.sqrt(rounds) / 8, *(_median_loss(step) / 3 for step, _ in terms))
    return max(
        width,
        GRID.window_deviations
        * deviation
        / (GRID.most_points if accuracy >= GRID.usual_accuracy else GRID.most_points_fine),
    )


def _median_loss(step: Step) -> float:
    """Return the median size of the losses that are not 0; inf if there is none, because no cell can be too wide then."""
    loss, log_p = step.nodes(0.0)
    if not loss.any():
        return math.inf
    size, mass = np.abs(loss), np.exp(log_p)
    order = np.argsort(size)
    share = np.cumsum(mass[order] * (size[order] > 0))
    return float(size[order][np.searchsorted(share, 0.5 * share[-1])])


def _anchored_step(terms: Terms, width: float) -> float:
    """Return a step that is an anchor of one of the terms, or 1, divided by a power of two."""
    anchors = [anchor for step, _ in terms if (anchor := step.anchor())]
    if len(terms) == 1 and terms[0][0].exact_lattice:
        return anchors[0]
    unit = anchors[0] if anchors else 1.0
    return float(unit * 2.0 ** math.floor(math.log2(width / unit)))
