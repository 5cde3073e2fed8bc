"""Exact answers along a vertical line, proved: floats search and choose, one evaluation in balls answers (docs/line.md).

None means that the line has no answer, or none in reasonable time, and that another way must give it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.lattice import saddle
from cumulant.lattice.cone import best_gap, constants
from cumulant.lattice.lattice import Terms, leak_of
from cumulant.lattice.rounds import Rounds
from cumulant.lattice.silence import Loud
from cumulant.lattice.spectrum import Choice, FloatLine, Kinds, Spectrum, spectrum
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, rounded_down, rounded_up

_BASE = 12.0
"""b = 12 - log(accuracy): what the exponent must be beyond what cancels."""

_FEWEST_BITS, _GUARD_BITS, _MOST_BITS = 128, 48, 2048
_ORDERS = (1.0, 0.85, 0.7, 0.55)
_RARE, _RARELY = 4.0, 0.1
_TRIES = 40
_OUTWARD = np.geomspace(0.02, 8.0, 32)


@dataclass(frozen=True, slots=True)
class Proved:
    """A proved end, the order lam + 1 of the line, the number of its frequencies and the bits of its balls."""

    value: float
    order: float
    frequencies: int
    bits: int


@dataclass(frozen=True, slots=True)
class _Side:
    """One composition to evaluate: its steps for floats, its transforms for balls; `cone` for Theorem B."""

    terms: Terms
    kinds: Kinds
    extra: Fraction = Fraction(0)
    cone: bool = False


def line_epsilon(rounds: Rounds, delta: Fraction, accuracy: float, cone: bool = True) -> tuple[Proved, bool] | None:
    """The least epsilon at this delta in (0, 1), proved from above, and whether Theorem B gave it."""
    return _least(rounds, cone, lambda side: _epsilon_guess(side, delta), lambda side: _epsilon(side, delta, accuracy))


def line_delta(rounds: Rounds, epsilon: Fraction, accuracy: float, cone: bool = True) -> tuple[Proved, bool] | None:
    """The least delta at this epsilon, proved from above, and whether Theorem B gave it."""
    return _least(rounds, cone, lambda side: _delta_guess(side, epsilon), lambda side: _delta(side, epsilon, accuracy))


def line_lower_epsilon(rounds: Rounds, terms: Terms, kinds: Kinds, delta: Fraction, accuracy: float) -> Proved | None:
    """The epsilon that these neighbours need at this delta, proved from below; None where the line has no answer."""
    side = _Side(terms, kinds)
    if rounds.estimated or _epsilon_guess(side, delta) is None:
        return None
    return _epsilon(side, delta, accuracy, upper=False)


def line_lower_delta(rounds: Rounds, terms: Terms, kinds: Kinds, epsilon: Fraction, accuracy: float) -> Proved | None:
    """The delta that these neighbours need at this epsilon, proved from below."""
    side = _Side(terms, kinds)
    if rounds.estimated or _delta_guess(side, epsilon) is None:
        return None
    return _delta(side, epsilon, accuracy, upper=False)


def _least(
    rounds: Rounds,
    cone: bool,
    guess: Callable[[_Side], float | None],
    proved: Callable[[_Side], Proved | None],
) -> tuple[Proved, bool] | None:
    """Of the profile, in all its directions, and Theorem B the one that floats say to be less, in balls."""
    profile, by_cone = _profile(rounds), _by_cone(rounds) if cone else None
    if profile is None or rounds.estimated:
        return None
    guesses = [guess(side) for side in profile]
    if any(each is None for each in guesses):
        return None
    at_cone = None if by_cone is None else guess(by_cone)
    if by_cone is not None and at_cone is None:
        return None
    if by_cone is not None and at_cone is not None and at_cone < max(each for each in guesses if each is not None):
        found = proved(by_cone)
        return None if found is None else (found, True)
    results = [proved(side) for side in profile]
    known = [each for each in results if each is not None]
    return (max(known, key=lambda each: each.value), False) if known and len(known) == len(results) else None


def _profile(rounds: Rounds) -> list[_Side] | None:
    found = [(terms, kinds) for terms, kinds in rounds.lines()]
    return None if any(kinds is None for _, kinds in found) else [_Side(terms, kinds or ()) for terms, kinds in found]


def _by_cone(rounds: Rounds) -> _Side | None:
    terms, reference = rounds.cone(), rounds.cone_transforms()
    return None if terms is None or reference is None else _Side(terms, *reference, cone=True)


# ---- what floats choose


@np.errstate(all="ignore")
def _choice(side: _Side, log_delta: float | None, epsilon: float | None, accuracy: float) -> Choice | None:
    """Order, period and exponents for a question; None where floats find nothing to choose."""
    at = _saddle(side.terms, log_delta, epsilon)
    if at is None:
        return None
    guess = max(float(saddle.epsilon_of(at)[0]), 0.0) if epsilon is None else epsilon
    size = float(saddle.approximation(at)[0]) if log_delta is None else log_delta
    if not math.isfinite(size):
        return None
    # every order is valid; below a jump of K' the law is narrower, and far fewer frequencies are enough
    tried = [_chosen(side, float(at.lam[0]) * part, guess, size, accuracy) for part in _ORDERS]
    known = [each for each in tried if each is not None]
    return min(known, key=lambda each: each[0])[1] if known else None


def _chosen(side: _Side, lam: float, guess: float, size: float, accuracy: float) -> tuple[float, Choice] | None:
    """The number of frequencies at this order, roughly, and the choice."""
    at = saddle.moments(side.terms, np.array([lam]))
    cgf, deviation = float(at.cgf[0]), _deviation(side.terms, lam)
    if not (math.isfinite(cgf) and deviation > 0):
        return None
    wanted = _BASE - math.log(accuracy)
    gap = max(cgf - lam * guess - size, 0.0)
    # images: 1/(e^{lam T} - 1) and c(t) e^{K(t) - t eps}/(e^{(t-lam)T} - 1) below e^-B delta
    orders = lam + math.sqrt(2 * (wanted + gap)) / math.sqrt(float(at.variance[0])) * _OUTWARD
    log_c = orders * np.log(orders) - (1 + orders) * np.log1p(orders)
    right = (saddle.moments(side.terms, orders).cgf + log_c - orders * guess - size + wanted) / (orders - lam)
    if not np.isfinite(right).any():
        return None
    best = int(np.nanargmin(np.where(np.isfinite(right), right, np.inf)))
    period = max((wanted - size) / lam, float(right[best]))
    last = math.sqrt(2 * (wanted + gap)) / deviation
    silence = wanted + gap + 2 + max(0.0, -math.log(math.pi * last))
    rounds = sum(times for _, times in side.kinds)
    bits = math.ceil((wanted + 2 * gap + math.log(rounds)) / math.log(2)) + _GUARD_BITS
    if not (0 < period < math.inf and math.isfinite(silence) and bits < _MOST_BITS):
        return None
    choice = Choice(lam, period, silence, wanted, guess, size, float(orders[best]), max(bits, _FEWEST_BITS))
    return last * period, choice


def _deviation(terms: Terms, lam: float) -> float:
    """The standard deviation of the tilted sum without the rarest 4/k of each law."""
    total = 0.0
    for step, times in terms:
        loss, log_p = step.nodes(lam)
        weight = np.exp(log_p + lam * loss - np.max(log_p + lam * loss))
        order = np.argsort(loss)
        loss, weight = loss[order], weight[order] / weight.sum()
        kept = np.cumsum(weight[::-1])[::-1] > min(_RARE / times, _RARELY)
        weight = np.where(kept, weight, 0.0)
        mass = weight.sum()
        if mass > 0:
            mean = float(weight @ loss) / mass
            total += times * float(weight @ (loss - mean) ** 2)
    return math.sqrt(total)


def _saddle(terms: Terms, log_delta: float | None, epsilon: float | None) -> saddle.Moments | None:
    if log_delta is not None:
        return saddle.saddle(terms, log_delta)
    return saddle.saddle_at(terms, max(epsilon or 0.0, 1e-9))


@np.errstate(all="ignore")
def _guess_line(side: _Side, log_delta: float | None, epsilon: float | None) -> FloatLine | None:
    """The line in floats alone, to compare sides by."""
    at = _saddle(side.terms, log_delta, epsilon)
    found = None if at is None else saddle.line(side.terms, at, saddle.spread(side.terms, at))
    if found is None:
        return None
    z = found.lam + 1j * found.frequencies
    weights = np.exp(found.exponents) / (z * (1 + z)) ** (2 if side.cone else 1)
    period = 2 * math.pi / (found.frequencies[1] - found.frequencies[0])
    return FloatLine(found.lam, period, found.cgf, weights, leak_of(side.terms))


def _epsilon_guess(side: _Side, delta: Fraction) -> float | None:
    leak = leak_of(side.terms)
    if not rounded_down(delta) > leak:
        return None
    line = _guess_line(side, math.log(rounded_down(delta) - leak), None)
    if line is None:
        return None
    asked = math.log(rounded_down(delta) - leak)
    return _cone_epsilon(line, asked)[0] if side.cone else _root(line, asked)


def _delta_guess(side: _Side, epsilon: Fraction) -> float | None:
    line = _guess_line(side, None, float(epsilon))
    if line is None:
        return None
    if side.cone:
        return _cone_delta(line, float(epsilon))[0]
    value = line.log_value(float(epsilon))[0]
    return value if math.isfinite(value) else None


def _root(line: FloatLine, asked: float, start: float = math.nan) -> float | None:
    """Where the line has this logarithm, by Newton's steps from the saddle, safeguarded."""
    epsilon = (line.cgf - asked) / line.lam if math.isnan(start) else start
    low, high = -math.inf, math.inf
    for _ in range(80):
        value, slope = line.log_value(epsilon)
        if not math.isfinite(value):  # a sum that is not positive: too far out
            high = min(high, epsilon)
            epsilon = epsilon - 1 / line.lam if low == -math.inf else (low + high) / 2
            continue
        low, high = (epsilon, high) if value > asked else (low, epsilon)
        move = (asked - value) / slope if slope < 0 else (1 if value > asked else -1) / line.lam
        after = epsilon + min(max(move, -4 / line.lam), 4 / line.lam)
        if not low < after < high:
            after = (low + high) / 2 if math.isfinite(low) and math.isfinite(high) else after
        if abs(after - epsilon) <= 1e-15 * max(abs(epsilon), 1e-300):
            return after
        epsilon = after
    return epsilon if high - low < 1e-6 * max(abs(epsilon), 1e-12) else None


def _cone_epsilon(line: FloatLine, asked: float) -> tuple[float, float]:
    """The least epsilon over the gap d at which C(d) E[g] is this delta, and d."""

    def at(gap: float) -> float:
        log_ratio, log_constant = constants(gap)
        root = _root(line, asked - log_constant)
        return math.inf if root is None else root + log_ratio

    return best_gap(at, line.lam)


def _cone_delta(line: FloatLine, epsilon: float) -> tuple[float, float]:
    """The least log delta over the gap d, and d."""

    def at(gap: float) -> float:
        log_ratio, log_constant = constants(gap)
        value = line.log_value(epsilon - log_ratio)[0]
        return log_constant + value if math.isfinite(value) else math.inf

    return best_gap(at, line.lam)


# ---- what balls prove


def _built(side: _Side, choice: Choice) -> Spectrum | None:
    try:
        return spectrum(side.kinds, choice, side.extra)
    except (Loud, OverflowError, ZeroDivisionError):
        return None


def _epsilon(side: _Side, delta: Fraction, accuracy: float, upper: bool = True) -> Proved | None:
    leak = leak_of(side.terms)
    target = rounded_down(delta) - leak
    if not target > 0:
        return None
    choice = _choice(side, math.log(target), None, accuracy)
    if choice is None:
        return None
    with BALLS.at(choice.bits):
        found = _built(side, choice)
        if found is None:
            return None
        asked = BALLS.number(delta)
        if side.cone:
            best, gap = _cone_epsilon(found.floats(2), math.log(target))
            exact = BALLS.number(gap)
            value = _enough(lambda e: found.cone(e, exact) <= asked, best, found.floats(2).lam, accuracy)
        else:
            root = _root(found.floats(), math.log(target), choice.epsilon)
            if root is None:
                return None
            lam = found.floats().lam
            if upper:
                value = _enough(lambda e: found.upper(e) <= asked, root, lam, accuracy)
            else:
                value = _needed(lambda e: found.lower(e) > asked, root, lam, accuracy)
    return None if value is None else Proved(value, choice.lam + 1, found.frequencies, choice.bits)


def _enough(holds: Callable[[Any], bool], start: float, lam: float, accuracy: float) -> float | None:
    """The least of some epsilons from a guess on of which balls say that it is enough, as a float."""
    if start <= 0:
        return 0.0 if holds(BALLS.number(0)) else _enough(holds, 1e-12 / lam, lam, accuracy)
    step = 2.0**-50
    epsilon = start
    for _ in range(_TRIES):
        if holds(BALLS.number(epsilon)):
            return epsilon
        epsilon, step = start + max(step * start, math.ulp(start)), 4 * step
        if step > max(accuracy, 1e-3):
            break
    return None


def _needed(holds: Callable[[Any], bool], start: float, lam: float, accuracy: float) -> float | None:
    """The largest of some epsilons from a guess down of which balls say that it is not enough; 0 where none is needed."""
    step = 2.0**-50
    epsilon = start
    for _ in range(_TRIES):
        if epsilon <= 0:
            return 0.0
        if holds(BALLS.number(epsilon)):
            return epsilon
        epsilon, step = start - max(step * start, math.ulp(start)), 4 * step
        if step > 1:
            break
    return None


def _delta(side: _Side, epsilon: Fraction, accuracy: float, upper: bool = True) -> Proved | None:
    choice = _choice(side, None, float(epsilon), accuracy)
    if choice is None:
        return None
    with BALLS.at(choice.bits):
        found = _built(side, choice)
        if found is None:
            return None
        exact = BALLS.number(epsilon)
        if side.cone:
            _, gap = _cone_delta(found.floats(2), float(epsilon))
            end = found.cone(exact, BALLS.number(gap))
        else:
            end = found.upper(exact) if upper else found.lower(exact)
        if not end.is_finite():
            return None
        value = rounded_up(at_least(end)) if upper else rounded_down(max(-at_least(-end), Fraction(0)))
    if upper and not value > 0:
        return None
    return Proved(min(value, 1.0), choice.lam + 1, found.frequencies, choice.bits)
