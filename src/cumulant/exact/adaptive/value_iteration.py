"""Value of adaptive rounds.

It is the delta of an adversary who chooses each round from earlier answers.

V_0(y) = (y - 1)_+,  V_{j+1}(y) = sup over the laws of a round of E_b V_j(y t),  delta(eps) = e^eps V_k(e^-eps), t the ratio
of the round. V is convex, V(0) = 0 and V(y) - y does not rise, so that on a grid of log y chords in y bound it from above, also
below the grid and beyond it (docs/adaptive-rounds.md). Every delta comes from one recursion. If rounds are of several types
nothing is known of their order: the adversary chooses it from above, and the defender chooses it from below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from cumulant.conversion.query import Query
from cumulant.exact.adaptive.settings import RECURSION
from cumulant.exact.rounds import Reports, Rounds
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.enclosure import FAR, FLOOR, NEAR
from cumulant.numerics.rounding import MANY, U, at_least, rounded_down, rounded_up
from cumulant.numerics.search import bisect
from cumulant.pairs.worst_triples import Atoms

# The value of an adversary who chooses anew in every round, read as delta and as epsilon.


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A profile through W(y) = sup E_Q (y p/q - 1)_+, by increasing values not below W.

    The values belong to log y = step * (first + i), the last to 0. delta(x) = e^x W(e^-x); W is convex in y, so that it lies
    below the chord between two points.
    """

    step: Fraction
    first: int
    values: Array

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta; 1 outside of the grid."""
        place, above = divmod(-Fraction(epsilon), self.step)
        i = int(place) - self.first
        if i < 0 or not 0 <= epsilon <= RECURSION.largest_exponent:
            return 1.0
        low, high = (float(self.values[min(j, self.values.size - 1)]) for j in (i, i + 1))
        # a float is wrong by u of itself, which is at most u (1 + x) of e^x - 1; then two functions and their quotient
        share = math.expm1(float(above)) / math.expm1(float(self.step)) * (1 + 2 * FAR + (2 * float(self.step) + 4) * U)
        found = (low + min(share, 1.0) * (high - low)) * math.exp(epsilon)
        return min(found * (1 + NEAR + 6 * U) + 5e-324, 1.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon found to suffice; +inf if none does."""
        low, high = 0.0, min(rounded_down(-self.first * self.step), RECURSION.largest_exponent)
        if self.delta(high) > delta:
            return math.inf
        return bisect(lambda epsilon: self.delta(epsilon) <= delta, low, high, part=RECURSION.narrow)[1]

    def upper_end(self, query: Query) -> float:
        """Return an upper bound on epsilon, or delta, from upper values of W."""
        given = rounded_down(query.value)
        return self.epsilon(given) if query.wants_epsilon else self.delta(given)

    def lower_end(self, query: Query) -> float:
        """Return a lower bound on epsilon, or delta, from lower values of W."""
        given = rounded_up(query.value)
        return self.needed_epsilon(given) if query.wants_epsilon else self.needed_delta(given)

    def needed_epsilon(self, delta: float) -> float:
        """Return the largest grid epsilon at which lower values of W exceed this delta.

        Returns 0 if none does.
        """
        enough = np.flatnonzero(self._lower_deltas() > delta)
        return rounded_down(-(self.first + int(enough[0])) * self.step) if enough.size else 0.0

    def needed_delta(self, epsilon: float) -> float:
        """Return a lower bound on delta from lower values of W.

        It is read at the next grid epsilon, because delta falls. Returns 0 outside of the grid.
        """
        i = math.floor(-Fraction(epsilon) / self.step) - self.first
        return float(self._lower_deltas()[i]) if 0 <= i < self.values.size else 0.0

    def _lower_deltas(self) -> Array:
        """Return lower bounds on delta at the grid points.

        W grows, so a slightly larger epsilon gives less.
        """
        x = float(self.step) * -(self.first + np.arange(self.values.size))
        return np.maximum(self.values * np.exp(x) * (1 - NEAR - (8 + 2 * np.abs(x)) * U) - 5e-324, 0.0)


# What adaptive rounds of bounded range need: of the exponential mechanism on all the data.


def bounded_range_optimum(epsilon: Fraction, times: int) -> Value | None:
    """Return the value of adaptive rounds of bounded range, from above.

    Returns None if too slow or outside the range of floats.
    """
    known = 1 < times <= RECURSION.range_most_rounds and Fraction(1, 100) <= epsilon <= 50
    return _optimum(epsilon, times) if known and (times + 2) * epsilon <= RECURSION.range_largest else None


@lru_cache(maxsize=32)
def _optimum(epsilon: Fraction, times: int) -> Value:
    """Return the value of `times` rounds of bounded range.

    delta(x) = e^x W(e^-x), W = W_k: W_0(y) = (y - 1)_+, W_j(y) = sup_r q W_{j-1}(y r e^e) + (1-q) W_{j-1}(y r).

    r runs over [e^-e, 1] and q = (1-r) / (r (e^e - 1)): docs/mechanisms/exponential.md. On a grid of log y, of step e/n, with
    chords in y, the objective is A/r + B + C r on each cell of r: at most the larger end, and where A < 0, so that it is
    concave, that plus |A| (r1 - r0)^2 / (4 r0^3). What floats lose is added: see `rounding` on that page.
    """
    n = max(RECURSION.range_fewest_cells, min(RECURSION.range_most_round_cells, RECURSION.range_most_cells // times))
    step, reach = epsilon / n, (times + 1) * n
    x = np.array([float(step * i) for i in range(reach + 1)])  # correctly rounded
    # a float x is wrong by u x, which is u x of e^x and at most u (1 + x) of e^x - 1
    excess = np.expm1(x) * (1 + (FAR + (2 + x) * U))
    e, s = float(epsilon), float(step)
    whole, one, near = math.expm1(e), math.expm1(s), x[: n + 1]
    q, rest = np.expm1(near) / whole, np.exp(near) * np.expm1(near[::-1]) / whole
    # q and 1 - q are three functions at most, and then there are sums and products with them
    part = 3 * FAR + NEAR + (3 * e + 12) * U
    # of the sum that is the bend, in the size of its terms
    lost = 2 * FAR + (2 * s + 12) * U
    value = np.concatenate([np.zeros(reach), excess])  # at log y = (i - reach) step
    for j in range(1, times + 1):
        # below the ratio stays at most 1 and W_j is 0; above it stays at least 1 and W_j is y - 1, or is never asked for
        first, last = reach - j * n + 1, reach + min(j, times - j) * n
        best = ends_before = low_before = up_before = np.zeros(last - first + 1)
        for m in range(n + 1):
            up, low = value[first + n - m : last + n - m + 1], value[first - m : last - m + 1]
            ends = q[m] * up + rest[m] * low
            best = np.maximum(best, ends)
            if m:
                # t^2 (A2 - A1), A1 and A2 the intercepts of the chords of W(y r e^e) and W(y r) in r, t = e^step - 1
                bend = one * one * (low - up) + one * ((up_before - up) - (low_before - low))
                size = one * one * (low + up) + one * (up_before + up + low_before + low)
                most = (np.maximum(bend, 0.0) + lost * size) * (math.exp(near[m]) / (4 * whole))
                best = np.maximum(best, np.maximum(ends, ends_before) + most)
            ends_before, low_before, up_before = ends, low, up
        value = value.copy()
        value[first : last + 1] = best * (1 + part) + FLOOR
    return Value(step, -reach, np.maximum.accumulate(value[: reach + 1]))


_UNDERFLOW = 2.0**-1066
"""Amount that exceeds what a round loses to underflow; derived: 2^-1074 per operation, some hundred operations."""

Weights = dict[int, float]
"""The weight of V at y e^{s h} by s."""

Steps = Sequence[tuple[list[Weights], int]]
"""The laws that one round of each type may have, and how many rounds there are."""


def optimum(rounds: Rounds, log_delta: float, triples: bool) -> Value | None:
    """Return the value of all rounds from above; None if nothing is gained or it takes too long.

    It helps if more is known of each round type than a dominating pair. `triples` admits what is known of samples.
    """
    repeated = rounds.repeated_round()
    length = repeated[0].pair.bounded_range() if repeated is not None and repeated[0].whole else None
    if repeated is not None and length is not None:
        return bounded_range_optimum(length, repeated[1])
    reports = rounds.reports() if triples else None
    return None if reports is None else optimum_from_above(reports, log_delta)


def lower_optimum(rounds: Rounds, log_delta: float) -> Value | None:
    """Return the value that adaptive queries reach, from below; None if it is unknown.

    Data sets must attain every pair.
    """
    reports = rounds.reports() if all(one.pair.attained for one, _ in rounds.parts) else None
    return None if reports is None else optimum_from_below(reports, log_delta)


def optimum_from_above(reports: Reports, log_delta: float) -> Value | None:
    """Return the optimum over the extreme triples from above, for deltas down to this one.

    Returns None if it takes too long.
    """
    return _value(_sorted_reports(reports), _depth(log_delta), upper=True)


def optimum_from_below(reports: Reports, log_delta: float) -> Value | None:
    """Return the optimum over the extreme triples from below, for deltas down to this one.

    Returns None if it takes too long.
    """
    return _value(_sorted_reports(reports), _depth(log_delta), upper=False)


def _sorted_reports(reports: Reports) -> Reports:
    """Return the round types with the most frequent first, whose grid is used.

    The input order does not matter.
    """
    return tuple(
        sorted(reports, key=lambda each: (-each[2], -each[1], -each[0].epsilon, each[0].odds or 0, str(each[0])))
    )


def _depth(log_delta: float) -> float:
    """Return the depth of the grid in nats, rounded so that nearby deltas share a recursion."""
    return RECURSION.depth_multiple * math.ceil(
        (RECURSION.deeper * max(-log_delta, 0.0) + 8) / RECURSION.depth_multiple
    )


# ---- the grid and its recursion


@lru_cache(maxsize=64)
def _value(reports: Reports, depth: float, upper: bool) -> Value | None:
    """Return the value of all rounds on a grid of this depth, from above or from below.

    Returns None if it is not affordable.
    """
    with BALLS.at(RECURSION.bits):
        every = [_atoms(extremes, rate) for extremes, rate, _ in reports]
        if not all(
            extremes.odds_ball() > 1 and extremes.odds_ball() < RECURSION.most_odds for extremes, _, _ in reports
        ):
            return None
        losses = [_largest_loss(triples) for triples in every]
        sizes = [float(loss.mid()) for loss in losses]
        if not (min(sizes) > RECURSION.smallest_loss and max(sizes) < min(sizes[0] * RECURSION.most_unlike, math.inf)):
            return None
        reach = _grid_reach(reports, depth)
        cells = _cells(every, sizes[0], reach, [times for _, _, times in reports], upper)
        if cells is None:
            return None
        h = losses[0] / cells
        steps = []
        for (extremes, rate, times), triples in zip(reports, every, strict=True):
            own = (extremes.epsilon, extremes.odds, rate) == (reports[0][0].epsilon, reports[0][0].odds, reports[0][1])
            replaced = [
                (_split_to_grid if upper else _merge_to_grid)(atoms, h, cells if own else None) for atoms in triples
            ]
            steps.append(([weights for weights in replaced if weights], times))
            if len(steps[-1][0]) < len(triples):
                return None
        step, length = float(h.mid()), at_least(h.upper()) if upper else -at_least((-h).upper())
    below, above = math.ceil(reach / step) + 1, math.ceil(RECURSION.above_share * reach / step) + 1
    values = _recursion(step, below, above, steps, upper)
    # weights are rounded outward; a round adds and multiplies some eight times
    count = sum(times for _, _, times in reports)
    if upper:  # V grows: at a smaller y it is not larger
        return Value(length, -below, np.maximum.accumulate(values * (1 + count * 16 * U) + count * _UNDERFLOW))
    values[-1] = values[-2]  # at epsilon = 0 nothing can be taken off
    return Value(length, -below, np.maximum(values * max(1 - count * 16 * U, 0.0) - count * _UNDERFLOW, 0.0))


def _recursion(step: float, below: int, above: int, steps: Steps, upper: bool) -> Array:
    """Return V after all rounds for y <= 1, on a grid of this step.

    Functions and the rounded step lose far less than MANY, by which values are raised, or from below lowered. V is kept for all
    counts of the later types; the next round is of the worst type, or from below of the best.
    """
    reach = 1 + max(abs(cells) for triples, _ in steps for weights in triples for cells in weights)
    log_y = step * np.arange(-below, above + 1)
    inside = slice(reach, reach + log_y.size)
    start = np.maximum(np.expm1(log_y), 0.0) * (1 + (MANY if upper else -MANY))
    downward = np.exp(-step * np.arange(reach, 0, -1)) * (1 + MANY)
    beyond = math.exp(log_y[-1]) * np.expm1(step * np.arange(1, reach + 1)) * (1 + MANY)
    largest = np.expm1(log_y[-1] + step * np.arange(1, reach + 1)) * (1 - MANY)
    rounds = [_round_operator(triples, reach, log_y.size) for triples, _ in steps]
    counts = list(product(*(range(times + 1) for _, times in steps[1:])))
    known = {count: np.empty(log_y.size + 2 * reach) for count in counts}
    for number in range(steps[0][1] + 1):
        for count in counts:
            values, found = known[count], None
            for best, before in _possible_rounds(rounds, known, number, count):
                one = best(before)
                found = one if found is None else (np.maximum if upper else np.minimum)(found, one)
            values[inside] = start if found is None else found
            # V(0) = 0 and V(y) - y does not rise; from below V >= 0 and V >= y - 1
            values[:reach] = values[reach] * downward if upper else 0.0
            values[inside.stop :] = values[inside.stop - 1] + beyond if upper else largest
    return known[counts[-1]][inside][: below + 1].copy()


def _possible_rounds(
    rounds: Sequence[Callable[[Array], Array]],
    known: dict[tuple[int, ...], Array],
    number: int,
    count: tuple[int, ...],
) -> Iterator[tuple[Callable[[Array], Array], Array]]:
    """Yield the possible next rounds and the values after them, for every type with rounds left."""
    if number:
        yield rounds[0], known[count]
    for i, left in enumerate(count):
        if left:
            yield rounds[i + 1], known[*count[:i], left - 1, *count[i + 1 :]]


def _round_operator(triples: list[Weights], reach: int, size: int) -> Callable[[Array], Array]:
    """Return the operator of one round: the largest of the weighted sums, in reused memory."""
    found, total, term = np.empty((3, size))

    def best(values: Array) -> Array:
        for number, weights in enumerate(triples):
            into = total if number else found
            for order, (cells, weight) in enumerate(weights.items()):
                np.multiply(values[reach + cells : reach + cells + size], weight, out=term if order else into)
                if order:
                    np.add(into, term, out=into)
            if number:
                np.maximum(found, total, out=found)
        return found

    return best


# ---- laws on the grid


def _atoms(extremes: Any, rate: Fraction) -> list[Atoms]:
    """Return the extreme triples of a round type as balls."""
    return list(extremes.triples(extremes.odds_ball(), BALLS.number(rate)))


def _largest_loss(triples: list[Atoms]) -> Any:
    """Return log A, the largest loss."""
    return next(ratio for name, ratio, _ in triples[0] if name == "A").log()


def _mass_at_one(atoms: Atoms) -> Any:
    """Return the mass that the atoms leave at ratio 1."""
    return 1 - sum((mass for _, _, mass in atoms), start=BALLS.number(0))


def _split_to_grid(atoms: Atoms, h: Any, cells: int | None) -> Weights:
    """Return weights on the grid, rounded up: V between two points is below its chord.

    A and 1/A lie on the grid, `cells` cells from 1.
    """
    from flint import arb

    found: dict[int, Any] = {}
    for name, ratio, mass in atoms:
        loss = ratio.log()
        place, upward = math.floor(float((loss / h).mid())), arb(0)
        if cells is not None and name in ("A", "1/A"):
            place = cells if name == "A" else -cells
        else:
            # (t - e^{s h}) / (e^{(s+1) h} - e^{s h})
            upward = (loss - place * h).expm1() / h.expm1()
            if not (upward >= 0 and upward <= 1):  # a grid point to all digits: V grows, and one cell more is enough
                place, upward = math.floor(float((loss / h).mid()) + 0.5), arb(1)
        for at, weight in ((place, mass * (1 - upward)), (place + 1, mass * upward)):
            found[at] = found.get(at, arb(0)) + weight
    rest = _mass_at_one(atoms)
    at = 0 if rest > RECURSION.rounding_mass else max(found)  # V grows
    found[at] = found.get(at, arb(0)) + rest
    return {
        at: rounded_up(max(at_least(weight.upper()), Fraction(0))) for at, weight in found.items() if weight.upper() > 0
    }


def _merge_to_grid(atoms: Atoms, h: Any, cells: int | None) -> Weights:
    """Return weights on the grid, rounded down, after merging outputs towards ratio 1.

    Returns empty if a ratio is within a cell of 1.

    A ratio t of mass m becomes the grid point t' before it towards 1, of mass m (t - 1)/(t' - 1): calls and puts, of which the
    time value is made up, are not larger anywhere. If the masses exceed 1 all of them are made smaller.
    """
    found: dict[int, Any] = {}
    for name, ratio, mass in atoms:
        place, share = int(float((ratio.log() / h).mid())), BALLS.number(1)
        if cells is not None and name in ("A", "1/A"):
            place = cells if name == "A" else -cells
        elif not place:
            return {}
        else:
            share = (ratio - 1) / (place * h).expm1()
            if not share >= 1:
                place -= 1 if place > 0 else -1
                if not place:
                    return {}
                share = (ratio - 1) / (place * h).expm1()
        found[place] = found.get(place, BALLS.number(0)) + mass * share
    total = sum(found.values(), start=BALLS.number(0))
    if not total <= 1:
        found = {at: weight / total for at, weight in found.items()}
    found[0] = 1 - sum(found.values(), start=BALLS.number(0))
    return {at: rounded_down(-at_least((-weight).upper())) for at, weight in found.items() if weight.lower() > 0}


# ---- which grid


def _grid_reach(reports: Reports, depth: float) -> float:
    """Return about the epsilon of the delta e^-depth, by Chernoff bounds of the worst triples."""
    lam = np.geomspace(1e-3, 1e6, 200)
    total, most, largest = np.zeros(lam.shape), 0.0, 0.0
    for extremes, rate, times in reports:
        odds, g = float(extremes.odds_ball().mid()), float(rate)
        up, down = 1 + g * (odds - 1), 1 - g * (1 - 1 / odds)
        mass, loss = float(extremes.two.of(BALLS.number(odds)).mid()), math.log(up)
        # M - 1 = mass (A^lambda - 1)(A - A^-lambda): the profile
        excess = lam * loss + np.log(-np.expm1(-lam * loss)) + math.log(mass) + np.log(up - np.exp(-lam * loss))
        total += times * np.logaddexp(0.0, excess)
        most, largest = most + times * loss, max(largest, loss, -math.log(down))
    return float(min(np.min((total + depth) / lam), most)) + 2 * largest


def _cells(every: list[list[Atoms]], top: float, reach: float, times: list[int], upper: bool) -> int | None:
    """Return the number of cells between 1 and A; None if too few are affordable.

    Other ratios then lie close to grid points, or just beyond one.
    """
    states = math.prod(each + 1 for each in times)
    each = (1 + RECURSION.above_share) * reach / top
    overhead = 0 if len(times) == 1 else RECURSION.overhead
    if states * (RECURSION.fewest_cells * each + overhead) > RECURSION.most_work or reach > RECURSION.farthest:
        return None
    work, finest = (
        (RECURSION.work_above, RECURSION.finest_above) if upper else (RECURSION.work_below, RECURSION.finest_below)
    )
    most = int(min(max((work / states - overhead) / each, RECURSION.fewest_cells), finest))
    tried = np.arange(max(RECURSION.fewest_cells, most // 2), most + 1).astype(float)
    lost = 0.02 / tried**2 if upper else 1e-9 / tried
    for triples in every:
        for atoms in triples:
            for _, ratio, mass in atoms:
                size = abs(float(ratio.log().mid())) / top
                whole, share = np.divmod(size * tried * (1 + 1e-12), 1.0)
                # chords cost about w (1 - w) h^2, merging about w / n of the size
                lost = lost + float(mass.mid()) * (
                    share * (1 - share) / tried**2 if upper else np.where(whole > 0, share, np.inf) * size**2 / tried
                )
    return int(tried[np.argmin(lost)])
