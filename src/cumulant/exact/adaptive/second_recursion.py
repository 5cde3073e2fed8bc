"""Second evaluation of adaptive rounds at one epsilon.

It runs under the other law, on another grid, from both sides.

Z_0(s) = (1 - s)_+,  Z_{j+1}(s) = sup over the laws of a round of E_a Z_j(s b/a),  delta(eps) = Z_k(e^eps). Rounds are built
output by output from the laws R, P, Q of their inputs. On a grid of log s through eps every law is replaced by one on the grid
that is larger in the convex order, its outputs split in two, or smaller, its outputs merged (docs/adaptive-rounds.md): no
value is ever read between grid points. Nothing of the first evaluation is used except the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from cumulant.exact.adaptive.settings import SECOND_RECURSION
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.rounding import DOZENS, U, at_least, rounded_down, rounded_up
from cumulant.pairs.worst_triples import Extremes

Reports = Sequence[tuple[Extremes, Fraction, int]]
"""Inputs, rate and number of the rounds of each type."""

Law = list[tuple[Any, Any]]
"""The ratio b/a of each output and its mass under a, as balls; outputs of ratio 1 are left out."""

Weights = dict[int, float]
"""The weight of Z at s e^{i h} by i."""

_UNDERFLOW = 2.0**-1060
"""Amount that exceeds what a round loses to underflow; derived: 2^-1074 per operation, some thousand operations."""


# ---- laws of one round


def laws(extremes: Extremes, rate: Fraction) -> Iterator[Law]:
    """Yield the laws of rounds with inputs r, p, q: a = (1-g) R + g P against b = (1-g) R + g Q.

    An output favours some inputs, and is c times as likely under those that it favours.
    """
    c, g = extremes.odds_ball(), BALLS.number(rate)
    alone = extremes.two.of(c)
    # an output that speaks for p and not for q, and one for q and not for p: their probabilities under R, P, Q
    yield _law([(alone, c * alone, alone), (c * alone, alone, c * alone)], g)  # r = q
    yield _law([(c * alone, c * alone, alone), (alone, alone, c * alone)], g)  # r = p
    three = []
    if extremes.against is not None:
        low = extremes.against.of(c)
        three += [(low, c * low, low), (low, low, c * low)]
    if extremes.for_it is not None:
        low = extremes.for_it.of(c)
        three += [(c * low, c * low, low), (c * low, low, c * low)]
    if three:
        yield _law(three, g)


def _law(outputs: list[tuple[Any, Any, Any]], g: Any) -> Law:
    """Return ratio and mass of each output."""
    found = []
    for r, p, q in outputs:
        a, b = (1 - g) * r + g * p, (1 - g) * r + g * q
        found.append((b / a, a))
    return found


def split_to_grid(law: Law, step: Fraction) -> Weights | None:
    """Return a law on the grid that is larger in the convex order.

    Each output splits between two points, mean kept.

    Returns None if balls cannot place an output.
    """
    found: dict[int, Any] = {}
    h, rest = BALLS.number(step), BALLS.number(1)
    for ratio, mass in law:
        rest = rest - mass
        nearest = round(float((ratio.log() / h).mid()))
        place = nearest if ratio >= (nearest * h).exp() else nearest - 1
        low, high = (place * h).exp(), ((place + 1) * h).exp()
        upward = (ratio - low) / (high - low)
        if not (upward >= 0 and upward <= 1):
            return None
        if upward < SECOND_RECURSION.on_grid:  # Z falls
            upward = BALLS.number(0)
        for at, weight in ((place, mass * (1 - upward)), (place + 1, mass * upward)):
            found[at] = found.get(at, BALLS.number(0)) + weight
    at = 0 if rest > SECOND_RECURSION.on_grid**2 else min(found)  # what is all rounding is no round of its own
    found[at] = found.get(at, BALLS.number(0)) + rest
    return {at: rounded_up(max(at_least(w.upper()), Fraction(0))) for at, w in found.items() if w.upper() > 0}


def merge_to_grid(law: Law, step: Fraction) -> Weights | None:
    """Return a law on the grid that is smaller in the convex order.

    Outputs are merged with less informative ones.

    A ratio S of mass m becomes the next point G towards 1 of mass m (S-1)/(G-1), so that its part of the time value is equal at
    1 and nowhere larger; if that is too much mass, all masses shrink. Returns None if there is no such point.
    """
    h = BALLS.number(step)
    found: dict[int, Any] = {}
    for ratio, mass in law:
        place = int(float((ratio.log() / h).mid()))  # towards 0
        target = (place * h).exp()
        share = (ratio - 1) / (target - 1) if place else BALLS.number(0)
        if not share >= 1:
            return None
        found[place] = found.get(place, BALLS.number(0)) + mass * share
    total = sum(found.values(), start=BALLS.number(0))
    if not total <= 1:
        found = {at: weight / total for at, weight in found.items()}
        total = sum(found.values(), start=BALLS.number(0))
    found[0] = 1 - total
    return {at: rounded_down(-at_least(-weight.lower())) for at, weight in found.items() if weight.lower() > 0}


# ---- the recursion


@dataclass(frozen=True, slots=True)
class Window:
    """The points log s = epsilon + i step for i from -below to above.

    On either side there are as many more as a round may reach.
    """

    epsilon: Fraction
    step: Fraction
    below: int
    above: int
    reach: int

    @property
    def size(self) -> int:
        """Return the number of points."""
        return self.below + self.above + 1

    def least(self, upper: bool) -> Array:
        """Return (1 - s)_+ rounded outward, also below the points."""
        places = np.arange(-self.below - self.reach, self.above + 1)
        x = float(self.epsilon) + places * float(self.step)
        slack = 4 * U * (float(self.epsilon) + np.abs(places) * float(self.step))
        found = np.maximum(-np.expm1(x - slack if upper else x + slack), 0.0)
        return np.asarray(found * (1 + (DOZENS if upper else -DOZENS)))


def recursion(window: Window, round_types: Sequence[tuple[list[Weights], int]], upper: bool) -> float:
    """Return Z at epsilon after all rounds of all types.

    From above the types come in the worst order, from below in the best; values are kept for all counts of the later types.
    Above the points Z falls, or is at least 0; below them it lies under the chord from Z(0) = 1, or above 1 - s.
    """
    size, reach = window.size, window.reach
    least = window.least(upper)
    share = np.exp(-float(window.step) * np.arange(reach, 0, -1)) * (1 + DOZENS)
    chord = -np.expm1(-float(window.step) * np.arange(reach, 0, -1)) * (1 + DOZENS)
    better = np.maximum if upper else np.minimum
    found, total, term = np.empty((3, size))

    def one(values: Array, rounds: list[Weights]) -> Array:
        for number, weights in enumerate(rounds):
            into = total if number else found
            for order, (cells, weight) in enumerate(weights.items()):
                np.multiply(values[reach + cells : reach + cells + size], weight, out=term if order else into)
                if order:
                    np.add(into, term, out=into)
            if number:
                np.maximum(found, total, out=found)
        return found

    def extended(inside: Array, values: Array) -> None:
        values[reach : reach + size] = inside
        values[:reach] = chord + share * inside[0] if upper else least[:reach]
        values[reach + size :] = inside[-1] if upper else 0.0

    (first, times), *others = round_types
    states = list(product(*(range(count + 1) for _, count in others)))
    known = {state: np.empty(size + 2 * reach) for state in states}
    best = np.empty(size)
    for count in range(times + 1):
        for state in states:
            options = [(known[state], first)] if count else []
            for i, (rounds, _) in enumerate(others):
                if state[i]:
                    options.append((known[*state[:i], state[i] - 1, *state[i + 1 :]], rounds))
            if not options:
                best[:] = least[reach:]
            for number, (values, rounds) in enumerate(options):
                inside = one(values, rounds)
                if number:
                    better(best, inside, out=best)
                else:
                    best[:] = inside
            extended(best, known[state])
    found_at, rounds_in_all = float(known[states[-1]][reach + window.below]), 2 + sum(count for _, count in round_types)
    lost = rounds_in_all * (16 * U * found_at + _UNDERFLOW)
    return found_at + lost if upper else max(found_at - lost, 0.0)


# ---- from both sides


def enclosed_delta(reports: Reports, epsilon: Fraction, delta: Fraction) -> tuple[float, float, int] | None:
    """Return delta from below, delta from above, and the number of points.

    The grid is refined once if the first one does not tell delta from the given one. Returns None
    if it would take too long, or floats do not reach so far.
    """
    low, high, points = 0.0, math.inf, 0
    with BALLS.at(SECOND_RECURSION.bits):
        every = [ReportType(tuple(laws(extremes, rate)), times) for extremes, rate, times in reports]
    round_types = sorted(every, key=lambda round_type: -round_type.times)
    for work in SECOND_RECURSION.work:
        for upper in (True, False):
            found = _one_side(round_types, epsilon, work, upper)
            if found is not None:
                low, high = (low, min(high, found[0])) if upper else (max(low, found[0]), high)
                points = max(points, found[1])
        if high <= delta or low > delta:
            break
    return (min(low, high), high, points) if high < math.inf else None


@dataclass(frozen=True, slots=True)
class ReportType:
    """The laws that a round of one type may have, and how often it runs."""

    rounds: tuple[Law, ...]
    times: int

    def sizes(self) -> list[tuple[float, float]]:
        """Return size of the loss and mass of every output, in floats, to choose a grid by."""
        return [(abs(float(ratio.log().mid())), float(mass.mid())) for law in self.rounds for ratio, mass in law]

    @property
    def variance(self) -> float:
        """Return about the largest variance of the loss of one round."""
        return max(sum(float(ratio.log().mid()) ** 2 * float(mass.mid()) for ratio, mass in law) for law in self.rounds)


def _one_side(
    round_types: Sequence[ReportType], epsilon: Fraction, work: float, upper: bool
) -> tuple[float, int] | None:
    """Return Z at this epsilon from one side, and the number of points.

    Returns None if that is not affordable.
    """
    sizes = [round_type.sizes() for round_type in round_types]
    largest = [max(size for size, _ in each) for each in sizes]
    if not all(0 < size < SECOND_RECURSION.largest for each in sizes for size, _ in each):
        return None
    margin = _window_margin(round_types, largest, float(epsilon))
    span, states = float(epsilon) + 2 * margin, math.prod(round_type.times + 1 for round_type in round_types)
    most = int(min((work / states - SECOND_RECURSION.overhead) * largest[0] / span, SECOND_RECURSION.finest))
    if (
        most < SECOND_RECURSION.fewest_cells
        or span > SECOND_RECURSION.largest
        or max(largest) > SECOND_RECURSION.most_unlike * largest[0]
    ):
        return None
    cells = _cells([part for each in sizes for part in each], largest[0], most, upper)
    with BALLS.at(SECOND_RECURSION.bits):
        top = max(
            (abs(ratio.log()) for law in round_types[0].rounds for ratio, _ in law), key=lambda size: float(size.mid())
        )
        step = Fraction(rounded_down(-at_least(-(top / cells).lower())))
        found = [
            ([(split_to_grid if upper else merge_to_grid)(law, step) for law in round_type.rounds], round_type.times)
            for round_type in round_types
        ]
    replaced = [([weights for weights in rounds if weights is not None], times) for rounds, times in found]
    if any(len(rounds) < len(round_type.rounds) for (rounds, _), round_type in zip(replaced, round_types, strict=True)):
        return None
    reach = max(abs(at) for rounds, _ in replaced for weights in rounds for at in weights)
    above, below = (math.ceil(far / float(step)) for far in (margin, float(epsilon) + margin))
    value = recursion(Window(epsilon, step, below, above, reach), replaced, upper)
    return (value, below + above + 1) if math.isfinite(value) else None


def _window_margin(round_types: Sequence[ReportType], largest: Sequence[float], epsilon: float) -> float:
    """Return how far beyond epsilon and below 0 relevant paths go.

    The margin m is chosen so that m (m + eps) is some times the variance of the sum.
    """
    variance = sum(round_type.times * round_type.variance for round_type in round_types)
    farthest = sum(round_type.times * size for round_type, size in zip(round_types, largest, strict=True))
    margin = (math.sqrt(epsilon**2 + 4 * SECOND_RECURSION.margin_variances * variance) - epsilon) / 2 + 6 * max(largest)
    return min(margin, farthest) + max(largest)


def _cells(sizes: list[tuple[float, float]], largest: float, most: int, upper: bool) -> int:
    """Return the number of cells of the largest loss that suits the other losses best.

    It is affordable, and other losses lie close to grid points, or just beyond one.
    """
    tried = np.arange(max(SECOND_RECURSION.fewest_cells, most // 3), most + 1).astype(float)
    lost = SECOND_RECURSION.on_grid / tried
    for size, mass in sizes:
        whole, share = np.divmod(size / largest * tried + SECOND_RECURSION.near_grid, 1.0)
        # splitting adds w (1 - w) h^2 to the variance, merging takes about w / n of it
        less = np.where(whole > 0, share / np.maximum(whole, 1.0), np.inf)
        lost = lost + mass * (share * (1 - share) / tried**2 if upper else size**2 * less)
    return int(tried[np.argmin(lost)])
