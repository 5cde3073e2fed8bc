"""What adaptive rounds need, by their value: the best that an adversary reaches who chooses anew in every round.

V_0(y) = (y - 1)_+,  V_{j+1}(y) = sup over what a round may be of E_b V_j(y t),  delta(eps) = e^eps V_k(e^-eps), t the ratio
of the round. V is convex, V(0) = 0 and V(y) - y does not rise, so that on a grid of log y chords in y bound it from above, also
below the grid and beyond it (docs/adaptive-rounds.md). Every delta comes from one recursion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.lattice import ranged
from cumulant.lattice.rounds import Rounds
from cumulant.lattice.value import Value
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.rounding import MANY, U, at_least, rounded_down, rounded_up
from cumulant.pairs.extremes import Extremes

_BITS = 192
_FEWEST, _FINEST = 8, 256
"""Cells between 1 and the largest ratio of a round."""

_WORK, _MOST_WORK = 2e7, 1.2e8
"""Rounds times points: what is spent anyway, and what is affordable; a second is about the latter."""

_WORK_BELOW = 4e7
"""From below, where every ratio has to lie on the grid."""

_DEEPER, _BUCKET = 1.5, 24.0
"""The grid reaches as far as a delta whose logarithm is larger by this factor and a little, in round numbers."""

_ABOVE = 0.5
_FARTHEST = 400.0
"""Of epsilons; beyond it powers leave the range of floats, and nothing is protected."""

_SLIGHTEST = 1e-8
"""Of the largest loss of a round; below it floats do not tell its ratios apart."""

_ASTRAY = Fraction(1, 10**6)
"""What misplaced ratios may cost, of one cell."""

Shifted = Callable[[int], Array]
"""The values at y e^{s h}, for all y of the grid together."""


def _recursion(
    step: float, below: int, above: int, reach: int, times: int, best: Callable[[Shifted], Array], upper: bool = True
) -> Array:
    """V after so many rounds where y <= 1, on a grid of this step; `best` is one round, which moves by at most `reach` cells.

    Functions and the rounded step lose far less than MANY, by which they are raised, or lowered from below.
    """
    log_y = step * np.arange(-below, above + 1)
    padded = np.empty(log_y.size + 2 * reach)
    inside = padded[reach : reach + log_y.size]
    inside[:] = np.maximum(np.expm1(log_y), 0.0) * (1 + (MANY if upper else -MANY))
    downward = np.exp(-step * np.arange(reach, 0, -1)) * (1 + MANY)
    beyond = math.exp(log_y[-1]) * np.expm1(step * np.arange(1, reach + 1))
    largest = np.expm1(log_y[-1] + step * np.arange(1, reach + 1)) * (1 - MANY)

    def shifted(cells: int) -> Array:
        return padded[reach + cells : reach + cells + log_y.size]

    for _ in range(times):
        # V(0) = 0 and V(y) - y does not rise; from below V >= 0 and V >= y - 1
        padded[:reach] = inside[0] * downward if upper else 0.0
        padded[reach + log_y.size :] = inside[-1] + beyond * (1 + MANY) if upper else largest
        inside[:] = best(shifted)
    return inside[: below + 1].copy()


def optimum(rounds: Rounds, log_delta: float, triples: bool) -> Value | None:
    """What all rounds need, from above, if they are of one kind of which more is known than a pair that dominates it.

    `triples` admits what is known of samples. None where nothing is, or where it takes too long.
    """
    alike = rounds.alike()
    if alike is None:
        return None
    one, times = alike
    length, extremes = one.pair.bounded_range() if one.whole else None, one.pair.extremes()
    if length is not None:
        return ranged.optimum(length, times)
    if extremes is None or one.triples is None or not triples:
        return None
    return from_above(extremes, one.triples, times, log_delta)


def witnessed(rounds: Rounds, log_delta: float) -> Value | None:
    """What queries that adapt need, from below, on data sets that have what the pair says."""
    alike = rounds.alike()
    if alike is None:
        return None
    one, times = alike
    extremes = one.pair.extremes() if one.pair.attained else None
    if extremes is None or one.triples is None:
        return None
    return from_below(extremes, one.triples, times, log_delta)


# ---- triples of a few atoms


def from_above(extremes: Extremes, rate: Fraction, times: int, log_delta: float) -> Value | None:
    """The exact optimum over the extreme triples, from above, for deltas down to this one; None where it takes too long."""
    return _above(extremes, rate, times, _depth(log_delta))


def from_below(extremes: Extremes, rate: Fraction, times: int, log_delta: float) -> Value | None:
    """The same from below: data sets with one record that counts, and queries that adapt."""
    return _below(extremes, rate, times, _depth(log_delta))


def _depth(log_delta: float) -> float:
    return _BUCKET * math.ceil((_DEEPER * max(-log_delta, 0.0) + 8) / _BUCKET)


@lru_cache(maxsize=64)
def _above(extremes: Extremes, rate: Fraction, times: int, depth: float) -> Value | None:
    with BALLS.at(_BITS):
        odds, g = extremes.odds_ball(), BALLS.number(rate)
        if not odds > 1:
            return None
        top = (g * (odds - 1)).log1p()
        low = -(-g * (1 - 1 / odds)).log1p()
        if not (float(top.mid()) > _SLIGHTEST and float(odds.mid()) < math.inf):
            return None
        reach = _farthest(extremes, float(odds.mid()), float(g.mid()), times, depth)
        cells = _cells(float(top.mid()), float(low.mid()), reach, times)
        if cells is None:
            return None
        h = top / cells
        triples = [_chords(atoms, h, cells, extremes.exhausted) for atoms in extremes.triples(odds, g)]
        step, longer = float(h.mid()), at_least(h.upper())
    below, above = math.ceil(reach / step) + 1, math.ceil(_ABOVE * reach / step) + 1
    values = _recursion(step, below, above, cells + 1, times, _largest(triples))
    # coefficients are rounded up; a round adds and multiplies some eight times. V grows: at a smaller y it is not larger
    return Value(longer, -below, np.maximum.accumulate(values * (1 + times * 16 * U)))


def _largest(triples: list[dict[int, float]]) -> Callable[[Shifted], Array]:
    """One round: the largest of the weighted sums, in memory that is kept from round to round."""
    kept: list[Array] = []

    def best(shifted: Shifted) -> Array:
        if not kept:
            kept.extend(np.empty((3, shifted(0).size)))
        found, total, term = kept
        for number, coefficients in enumerate(triples):
            into = total if number else found
            for order, (cells, coefficient) in enumerate(coefficients.items()):
                np.multiply(shifted(cells), coefficient, out=term if order else into)
                if order:
                    np.add(into, term, out=into)
            if number:
                np.maximum(found, total, out=found)
        return found

    return best


def _chords(atoms: Any, h: Any, cells: int, exhausted: bool) -> dict[int, float]:
    """The weight of V at y e^{s h} by s, rounded up: A and 1/A lie on the grid, other ratios between two of its points."""
    from flint import arb

    found: dict[int, Any] = {}
    rest = arb(1)
    for name, ratio, mass in atoms:
        rest = rest - mass
        if name in ("A", "1/A"):
            place = cells if name == "A" else -cells
            found[place] = found.get(place, arb(0)) + mass
            continue
        loss = ratio.log()
        place = math.floor(float((loss / h).mid()))
        # (t - e^{s h}) / (e^{(s+1) h} - e^{s h})
        upward = (loss - place * h).expm1() / h.expm1()
        if not (upward >= 0 and upward <= 1):  # a grid point to all digits: V grows, and one cell more is enough
            place, upward = math.floor(float((loss / h).mid()) + 0.5), arb(1)
        found[place] = found.get(place, arb(0)) + mass * (1 - upward)
        found[place + 1] = found.get(place + 1, arb(0)) + mass * upward
    if not (exhausted and {name for name, _, _ in atoms} in ({"A", "B"}, {"1/A", "1/B"})):
        found[0] = found.get(0, arb(0)) + rest
    return {
        place: rounded_up(max(at_least(value.upper()), Fraction(0)))
        for place, value in found.items()
        if value.upper() > 0
    }


def _farthest(extremes: Extremes, odds: float, rate: float, times: int, depth: float) -> float:
    """Where delta is about e^-depth, by Chernoff bounds of the worst triple."""
    up, down = 1 + rate * (odds - 1), 1 - rate * (1 - 1 / odds)
    mass = float(extremes.two.of(BALLS.number(odds)).mid())
    lam, loss = np.geomspace(1e-3, 1e6, 200), math.log(up)
    # M - 1 = mass (A^lambda - 1)(A - A^-lambda): the profile
    excess = lam * loss + np.log(-np.expm1(-lam * loss)) + math.log(mass) + np.log(up - np.exp(-lam * loss))
    found = np.min((times * np.logaddexp(0.0, excess) + depth) / lam)
    return float(min(found, times * math.log(up))) + 2 * max(math.log(up), -math.log(down))


def _cells(top: float, low: float, reach: float, times: int) -> int | None:
    """Cells between 1 and A: as many as are affordable, so that B lies close to a grid point; None where too few are."""
    each = (1 + _ABOVE) * reach / top * times
    if _FEWEST * each > _MOST_WORK or reach > _FARTHEST:
        return None
    most = int(min(max(_WORK / each, _FEWEST), _FINEST))
    tried = np.arange(max(_FEWEST, most // 2), most + 1)
    share = (low / top * tried) % 1.0
    # chords cost about w (1 - w) h^2
    return int(tried[np.argmin((share * (1 - share) + 0.02) / tried.astype(float) ** 2)])


@lru_cache(maxsize=64)
def _below(extremes: Extremes, rate: Fraction, times: int, depth: float) -> Value | None:
    """The optimum at slightly smaller odds at which A and B both lie on a grid.

    Reports with smaller odds are a post-processing of those with larger ones, input by input, so the class holds them.
    """
    with BALLS.at(_BITS):
        odds, g = float(extremes.odds_ball().lower()), float(rate)
        if not (odds < math.inf and g * (odds - 1) > _SLIGHTEST):
            return None
        reach = _farthest(extremes, odds, g, times, depth)
        found = _on_grid(odds, g, reach, times)
        if found is None:
            return None
        up, down, smaller = found
        exact = BALLS.number(Fraction(smaller))
        ball = BALLS.number(rate)
        if not exact <= extremes.odds_ball():
            return None
        top, low = (ball * (exact - 1)).log1p(), -(-ball * (1 - 1 / exact)).log1p()
        h = top / up
        # every ratio may be misplaced by so much, so that all together need an epsilon that is smaller by as much
        slip = times * at_least(abs(low - down * h).upper())
        shorter = -at_least((-h).upper()) - slip
        if not slip <= shorter * _ASTRAY:
            return None
        place = {"A": up, "1/A": -up, "B": -down, "1/B": down}
        triples = []
        for atoms in extremes.triples(exact, ball):
            weights: dict[int, Fraction] = {}
            for name, _, mass in atoms:
                weights[place[name]] = weights.get(place[name], Fraction(0)) - at_least((-mass).upper())
            rest = 1 - sum((mass for _, _, mass in atoms), start=BALLS.number(0))
            weights[0] = weights.get(0, Fraction(0)) + max(-at_least((-rest).upper()), Fraction(0))
            triples.append({cells: rounded_down(weight) for cells, weight in weights.items() if weight > 0})
        step = float(h.mid())
    below, above = math.ceil(reach / step) + 1, math.ceil(_ABOVE * reach / step) + 1
    values = _recursion(step, below, above, max(up, down) + 1, times, _largest(triples), upper=False)
    values[-1] = values[-2]  # at epsilon = 0 nothing can be taken off
    return Value(shorter, -below, values * max(1 - times * 16 * U - 2 * float(slip), 0.0))


def _on_grid(odds: float, rate: float, reach: float, times: int) -> tuple[int, int, float] | None:
    """Cells of log A and -log B and the odds c' < c at which both fit, the closest ones that are affordable."""

    def quotient(c: float) -> float:
        return math.log1p(rate * (c - 1)) / -math.log1p(-rate * (1 - 1 / c))

    target, top = quotient(odds), math.log1p(rate * (odds - 1))
    most = int(min(_WORK_BELOW / ((1 + _ABOVE) * reach / top * times), 4 * _FINEST))
    if most < _FEWEST or reach > _FARTHEST:
        return None
    steps = np.arange(1, int(most / target) + 1)
    if not steps.size:
        return None
    ups = np.floor(target * steps * (1 - 1e-12)).astype(int)
    gaps = target - ups / steps
    best = int(np.argmin(np.where(ups > 0, gaps, np.inf)))
    up, down = int(ups[best]), int(steps[best])
    low, high = 1.0 + 1e-12, odds
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if quotient(middle) < up / down else (low, middle)
    return up, down, low
