"""From a question to a lattice: which order, grid and window answer it, and the number that the lattice then bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cumulant.exact import cone, saddle
from cumulant.exact.lattice import Composed, Terms, compose, leak_of
from cumulant.exact.saddle import Moments
from cumulant.exact.steps import Step

_MOST_POINTS = 1 << 20  # unless more accuracy is asked for than usual
_MOST_POINTS_EVER = 1 << 23
_USUAL_ACCURACY = 1e-4
_MOST_CELLS = 1 << 17  # from below each cell is a step of a sequential construction
_ROUNDS = 4
_WIDEST = 100.0
_CLOSE = 0.05
_SOLVED = 1e-9
_CUT = 16.0  # k rounds may lose e^-16 of delta to infinity


@dataclass(frozen=True, slots=True)
class Bound:
    """A number, the order of the tilting and the lattice that gave it."""

    value: float
    order: float
    width: float
    points: int


UNKNOWN = Bound(math.inf, math.nan, math.nan, 0)
NOTHING = Bound(0.0, math.nan, math.nan, 0)


def epsilon(terms: Terms, log_delta: float, accuracy: float, upper: bool) -> Bound:
    """An epsilon that is at least (at most, from below) the one of these terms at this delta.

    The first grid follows the saddle point; where few rounds make that a poor guide, the answer it gives is the next guess.
    """
    best = UNKNOWN if upper else NOTHING
    asked = _without_leak(terms, log_delta)
    at = saddle.saddle(terms, asked) if asked > -math.inf else None
    if at is None:
        return best
    if all(step.span(log_delta) == (0.0, 0.0) for step, _ in terms):
        return NOTHING
    guess, slope = max(_first_guess(terms, at, asked), 0.0), float(at.lam[0])
    for _ in range(_ROUNDS):
        width = grid_width(terms, at, guess, slope, accuracy, upper)
        sums = _composed(terms, at, log_delta, width, upper)
        if sums is None:
            break
        found = _epsilon(sums, log_delta, guess)
        best = min(best, found, key=_value) if upper else max(best, found, key=_value)
        if not math.isfinite(found.value) or found.value == 0:
            break
        slope = max(_slope(sums, found.value), sums.lam)
        after = saddle.saddle_at(terms, found.value)
        close = abs(found.value - guess) <= _CLOSE * found.value
        guess, at = found.value, after or at
        if close and grid_width(terms, at, guess, slope, accuracy, upper) >= 0.6 * width:
            break
    return best


def _value(bound: Bound) -> float:
    return bound.value


def _slope(sums: Composed, epsilon: float) -> float:
    """-d log delta / d epsilon of a lattice, roughly."""
    step = max(2 * sums.width, 1e-3 * epsilon)
    fall = sums.log_delta(epsilon) - sums.log_delta(epsilon + step)
    return fall / step if math.isfinite(fall) else 0.0


def _first_guess(terms: Terms, at: Moments, log_delta: float) -> float:
    start = float(saddle.epsilon_of(at)[0])
    along = saddle.line(terms, at, saddle.spread(terms, at))
    found = saddle.solve(along.log_delta, -along.lam, log_delta, start)[1] if along is not None else start
    return found if math.isfinite(found) else start


def delta(terms: Terms, epsilon: float, accuracy: float, upper: bool) -> Bound:
    """A delta that is at least (at most, from below) the one of these terms at this epsilon."""
    unknown = Bound(1.0 if upper else leak_of(terms) * (1 - 1e-14), math.nan, math.nan, 0)
    at = saddle.saddle_at(terms, epsilon) if leak_of(terms) < 1 else None
    if at is None:
        return unknown
    log_delta, slope = min(float(saddle.approximation(at)[0]), -1e-9), float(at.lam[0])
    for _ in range(2):
        width = grid_width(terms, at, epsilon, slope, accuracy, upper)
        found = _composed(terms, at, log_delta, width, upper)
        if found is None:
            return unknown
        sums = found
        value = sums.log_delta(epsilon - sums.slip if upper else epsilon + sums.slip)
        if not math.isfinite(value) or abs(value - log_delta) < 1:
            break
        log_delta, slope = min(value, -1e-9), max(_slope(sums, epsilon), sums.lam)
    size = math.exp(min(value, 0.0))
    bound = min(size * (1 + 1e-14) + 5e-324, 1.0) if upper else size * (1 - 1e-14)
    return Bound(bound, sums.lam + 1, sums.width, sums.mass.size)


def cone_epsilon(terms: Terms, log_delta: float, accuracy: float) -> Bound:
    """Theorem B at this delta; the terms are the reference: the pairs, and the Gaussian of the diameter."""
    at = saddle.saddle(terms, log_delta - 0.5)  # the constant of the cone costs about that much
    if at is None:
        return UNKNOWN
    guess = max(float(saddle.epsilon_of(at)[0]), 1e-12)
    sums, tail = _cone(terms, at, log_delta, guess, accuracy)
    if sums is None:
        return UNKNOWN
    better = _epsilon(sums, log_delta - 0.5, guess).value  # few rounds make the saddle point a poor guide
    guess = better if 0 < better < math.inf else guess
    found = cone.epsilon(lambda eps0: cone.log_expectation(sums, eps0, tail), log_delta, sums.lam, guess)
    return Bound(math.nextafter(max(found, 0.0) + sums.slip, math.inf), sums.lam + 1, sums.width, sums.mass.size)


def cone_delta(terms: Terms, epsilon: float, accuracy: float) -> Bound:
    """Theorem B at this epsilon."""
    at = saddle.saddle_at(terms, epsilon)
    if at is None or epsilon <= 0:
        return Bound(1.0, math.nan, math.nan, 0)
    sums, tail = _cone(terms, at, min(float(saddle.approximation(at)[0]), -1e-9), epsilon, accuracy)
    if sums is None:
        return Bound(1.0, math.nan, math.nan, 0)
    value = cone.log_delta(lambda eps0: cone.log_expectation(sums, eps0, tail), epsilon - sums.slip, sums.lam)
    return Bound(min(math.exp(min(value, 0.0)) * (1 + 1e-14) + 5e-324, 1.0), sums.lam + 1, sums.width, sums.mass.size)


def _cone(
    terms: Terms, at: Moments, log_delta: float, epsilon: float, accuracy: float
) -> tuple[Composed | None, float]:
    """The lattice of the reference, and log of what losses beyond its grid contribute: their mass times the largest gap.

    E[(S - eps0)+; some loss is beyond] <= mass (reach + 2) + mass max(-eps0, 0), because g(d) <= d.
    """
    rounds = sum(times for _, times in terms)
    reach = sum(times * max(map(abs, step.span(2 * log_delta - 60))) for step, times in terms)
    cut = log_delta - math.log(rounds) - _CUT - math.log1p(reach)
    width = grid_width(terms, at, epsilon, float(at.lam[0]), accuracy, upper=True)
    sums = _composed(terms, at, log_delta, width, upper=True, cut=cut)
    return sums, cut + math.log(rounds) + math.log(2 + reach)


def _without_leak(terms: Terms, log_delta: float) -> float:
    """log of what infinite losses leave of delta."""
    leak = leak_of(terms)
    left = -math.expm1(math.log(leak) - log_delta) if leak > 0 else 1.0
    return log_delta + math.log(left) if left > 0 else -math.inf


def _epsilon(sums: Composed, log_delta: float, guess: float) -> Bound:
    """The epsilon of a lattice, on the safe side of a root, and every misplacement of a loss added."""
    low, high = saddle.solve(sums.log_delta, -sums.lam, log_delta, max(guess, sums.start), _SOLVED)
    if sums.upper:
        none = high == 0 and sums.log_delta(-sums.slip) <= log_delta
        value = 0.0 if none else math.nextafter(high + sums.slip, math.inf)
    else:
        value = max(math.nextafter(low - sums.slip, -math.inf), 0.0)
    return Bound(value, sums.lam + 1, sums.width, sums.mass.size)


def _composed(
    terms: Terms, at: Moments, log_delta: float, width: float, upper: bool, cut: float | None = None
) -> Composed | None:
    """All rounds on a grid of about this step, tilted to the order of `at`; None where no such lattice is in reach."""
    rounds = sum(times for _, times in terms)
    cut = log_delta - math.log(rounds) - _CUT if cut is None else cut
    spans = [step.span(cut) for step, _ in terms]
    longest = max(high - low for low, high in spans)
    least = longest / (2 * _MOST_POINTS if upper else _MOST_CELLS)
    width = max(width, least) or 1.0
    if not 1e-300 < width < _WIDEST:
        return None
    try:
        return compose(terms, _anchored(terms, width), cut, float(at.lam[0]), upper)
    except (OverflowError, MemoryError):
        return None


def grid_width(terms: Terms, at: Moments, epsilon: float, slope: float, accuracy: float, upper: bool) -> float:
    """The step at which the grid costs this part of epsilon: k rounds raise it by about k (slope + 1) h^2 / 12, at most k h."""
    rounds, deviation = sum(times for _, times in terms), math.sqrt(float(at.variance[0]))
    size = max(epsilon, 0.02 * deviation)
    cost = 0.4 * accuracy * size / rounds
    width = max(math.sqrt(12 * cost / (slope + 1)), cost)
    if not upper:  # every round must be resolved, the bulk of its law by several cells
        width = min(width / 3, deviation / math.sqrt(rounds) / 8, *(_bulk(step) / 3 for step, _ in terms))
    return max(width, 24 * deviation / (_MOST_POINTS if accuracy >= _USUAL_ACCURACY else _MOST_POINTS_EVER))


def _bulk(step: Step) -> float:
    """The scale of the losses that are neither 0 nor rare."""
    loss, log_p = step.nodes(0.0)
    size, mass = np.abs(loss), np.exp(log_p)
    order = np.argsort(size)
    share = np.cumsum(mass[order] * (size[order] > 0))
    return float(size[order][np.searchsorted(share, 0.5 * share[-1])])


def _anchored(terms: Terms, width: float) -> float:
    """A step that is a power of two, or an anchor of one of the terms divided by one."""
    anchors = [anchor for step, _ in terms if (anchor := step.anchor())]
    if len(terms) == 1 and terms[0][0].exact_lattice:
        return anchors[0]
    unit = anchors[0] if anchors else 1.0
    return float(unit * 2.0 ** math.floor(math.log2(width / unit)))
