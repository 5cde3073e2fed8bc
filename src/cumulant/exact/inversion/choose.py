"""Choose a line in floats: its order, period, exponents, and guesses to compare by.

Nothing is claimed from a choice.

Every choice is valid; a bad one makes balls wide, or the proof of decay fail (docs/line.md).
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter

import numpy as np

from cumulant.conversion.query import Query
from cumulant.exact.inversion import saddle
from cumulant.exact.inversion.line import Choice, FloatLine, Line, SearchLine
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.rounds import Rounds, RoundTypes
from cumulant.exact.test_functions import HOCKEY_STICK, THEOREM_B, Constants, TestFunction
from cumulant.losses.grid import Terms, leak_of
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import rounded_down
from cumulant.numerics.search import minimise_rows, newton_roots


@dataclass(frozen=True, slots=True)
class Side:
    """One composition to evaluate: steps for floats, transforms for balls.

    `test` is the test function whose expectation bounds delta.
    """

    terms: Terms
    round_types: RoundTypes
    extra: Fraction = Fraction(0)
    test: TestFunction = HOCKEY_STICK

    @property
    def is_theorem_b(self) -> bool:
        """Return True if Theorem B is applied."""
        return self.test is THEOREM_B

    def same_law(self, other: Side) -> bool:
        """Return True if both have one law in balls, which see transforms and no steps.

        They can share a line.
        """
        return (self.round_types, self.extra, self.test) == (other.round_types, other.extra, other.test)


def sides(rounds: Rounds, theorem_b: bool) -> tuple[list[Side], Side | None] | None:
    """Return the profile in all directions, and Theorem B if it applies.

    Returns None if a round offers no transform.
    """
    profile: list[Side] = []
    for terms, round_types in rounds.lines():
        if round_types is None:
            return None
        profile.append(Side(terms, round_types))
    found = rounds.theorem_b if theorem_b else None
    if found is None or found.round_types is None:
        return profile, None
    return profile, Side(found.terms, found.round_types, found.extra, THEOREM_B)


GUESS_LINES: ContextVar[list[tuple[Side, FloatLine]] | None] = ContextVar("guess_lines", default=None)
"""Lines in floats that the guesses of several questions share; None if questions share nothing."""


# ---- order, period, exponents


@np.errstate(all="ignore")
def choose_line(
    side: Side, log_delta: float | None, epsilon: float | None, accuracy: float, spacing: float = 0.0
) -> Choice | None:
    """Return order, period and exponents for a question; None if floats find no line.

    `spacing` is that of the losses' lattice, 0 if there is none: near the largest loss the saddle point runs away.
    """
    at = saddle.saddle_point(side.terms, log_delta=log_delta, epsilon=max(epsilon or 0.0, LINE.smallest_epsilon))
    if at is None:
        return None
    guess = max(float(saddle.epsilon_of(at)[0]), 0.0) if epsilon is None else epsilon
    size = float(saddle.approximation(at)[0]) if log_delta is None else log_delta
    if not math.isfinite(size):
        return None
    return choose_best_order(side, float(at.lam[0]), guess, size, accuracy, spacing)


@np.errstate(all="ignore")
def choose_best_order(
    side: Side, most: float, guess: float, size: float, accuracy: float, spacing: float
) -> Choice | None:
    """Return the choice with the fewest frequencies at this order and some below it.

    Returns None if floats find no line. Every order is valid; below a jump of K' the law is narrower, and few frequencies
    suffice.
    """
    order = min(most, LINE.most_order_spacing / spacing) if spacing else most
    known = _choices_at_orders(side, order * np.array(LINE.order_factors), guess, size, accuracy, spacing)
    return min(known, key=attrgetter("cost"), default=None)


@np.errstate(all="ignore")
def choose_second_line(side: Side, epsilon: float, accuracy: float, spacing: float, part: float) -> Choice | None:
    """Return the choice at this part of the saddle point's order, for a second evaluation.

    Returns None if floats find no line.
    """
    at = saddle.saddle_point(side.terms, epsilon=max(epsilon, LINE.smallest_epsilon))
    if at is None:
        return None
    order, size = float(at.lam[0]), float(saddle.approximation(at)[0])
    order = min(order, LINE.most_order_spacing / spacing) if spacing else order
    return choose_at_order(side, part * order, epsilon, size, accuracy, spacing) if math.isfinite(size) else None


@np.errstate(all="ignore")
def choose_at_order(
    side: Side, lam: float, guess: float, size: float, accuracy: float, spacing: float = 0.0
) -> Choice | None:
    """Return the choice at this order, for a guessed epsilon and log delta.

    Returns None if floats find no line.
    """
    return next(iter(_choices_at_orders(side, np.array([lam]), guess, size, accuracy, spacing)), None)


def _choices_at_orders(
    side: Side, orders: Array, guess: float, size: float, accuracy: float, spacing: float
) -> list[Choice]:
    """Return one choice per order, without the orders at which floats find no line."""
    at = saddle.moments(side.terms, orders)
    narrow = np.maximum(_deviations(side.terms, orders), spacing / LINE.most_order_spacing)
    spread = np.maximum(np.sqrt(at.variance), spacing / LINE.most_order_spacing)
    wanted = LINE.margin_exponent - math.log(accuracy)
    gaps = np.maximum(at.cgf - orders * guess - size, 0.0)
    reach = np.max(np.sqrt(2 * (wanted + gaps)) / spread)
    if not math.isfinite(reach):
        return []
    # images: 1/(e^{lam T} - 1) and c(t) e^{K(t) - t eps}/(e^{(t-lam)T} - 1) below e^-B delta
    outer, right = _image_periods(side, orders, reach * LINE.image_orders, guess, size - wanted)
    if (np.argmin(right, axis=1) == outer.size - 1).any():
        outer, right = _image_periods(
            side, orders, reach * np.append(LINE.image_orders, LINE.far_image_orders), guess, size - wanted
        )
    found = []
    for i, (lam, gap) in enumerate(zip(orders.tolist(), gaps.tolist(), strict=True)):
        least, left = float(right[i].min()), (wanted - size) / lam
        if not (math.isfinite(at.cgf[i]) and narrow[i] > 0 and least < math.inf):
            continue
        # The smallest image order that suffices is taken, because balls must compute M there; a share of the left images'
        # period is left for a poor guess. Every order t > lam is valid.
        best = int(np.argmax(right[i] <= max(1.01 * least, LINE.image_period_share * left)))
        period = max(left, float(right[i, best]))
        last = math.sqrt(2 * (wanted + gap)) / float(narrow[i])
        exponent, bits = _decay_exponent_and_bits(side, wanted, gap, last)
        if 0 < period < math.inf and math.isfinite(exponent) and bits < LINE.most_bits:
            found.append(Choice(lam, period, exponent, wanted, guess, size, float(outer[best]), bits, last * period))
    return found


def _image_periods(side: Side, orders: Array, beyond: Array, guess: float, size: float) -> tuple[Array, Array]:
    """Return orders t, and per order the period at which images bounded by t are small enough."""
    outer = orders.min() + beyond
    log_c = outer * np.log(outer) - (1 + outer) * np.log1p(outer)
    above = saddle.cgf_values(side.terms, outer) + log_c - outer * guess - size
    apart = outer - orders[:, None]
    right = above / np.where(apart > 0, apart, np.nan)
    return outer, np.where(np.isfinite(right), right, np.inf)


def _decay_exponent_and_bits(side: Side, wanted: float, gap: float, last: float) -> tuple[float, int]:
    """Return the exponent b for which e^{K - lam eps - b} / (pi u_N) is below e^-B delta, and the bits of the balls.

    The bits are for the wanted digits, the digits that cancel, and a guard.
    """
    exponent = wanted + gap + 2 + max(0.0, -math.log(math.pi * last))
    rounds = 0
    for _, times in side.round_types:
        rounds += times
    bits = math.ceil((wanted + 2 * gap + math.log(rounds)) / math.log(2)) + LINE.guard_bits
    return exponent, max(bits, LINE.fewest_bits)


def _deviations(terms: Terms, orders: Array) -> Array:
    """Return the standard deviation of the tilted sum without the rarest 4/k of each law.

    There is one number per order.
    """
    total = np.zeros(orders.size)
    for step, times in terms:
        loss, weight = saddle.tilted_law(step, orders)[:2]
        downward = np.argsort(-loss)
        loss, weight = loss[downward], weight[:, downward]
        weight = np.where(np.cumsum(weight, axis=1) > min(LINE.omitted_rounds / times, LINE.most_omitted), weight, 0.0)
        mass = weight.sum(axis=1)
        apart = loss - float(weight[0] @ loss) / mass[0]
        mean = weight @ apart / mass
        total += times * np.where(mass > 0, np.maximum(weight @ apart**2 - mass * mean**2, 0.0), 0.0)
    return np.sqrt(total)


@np.errstate(all="ignore")
def line_suffices(side: Side, built: Line, log_delta: float | None, epsilon: float | None, accuracy: float) -> bool:
    """Return True if a line is as accurate for this question as a line of its own would be."""
    line, choice = built.floats(side.test), built.choice
    at = epsilon
    if log_delta is not None:
        at = best_value(line, log_delta, True, side.test)[0]
    if at is None or not math.isfinite(at):
        return False
    size = line.log_value(at)[0] if log_delta is None else log_delta
    if not math.isfinite(size):
        return False
    wanted, gap, t = LINE.margin_exponent - math.log(accuracy), line.cgf - line.lam * at - size, choice.image_order
    last = 2 * math.pi / choice.period * built.frequencies
    outer = float(saddle.moments(side.terms, np.array([t])).cgf[0])
    right = outer + t * math.log(t) - (1 + t) * math.log1p(t) - t * at - size
    exponent, bits = _decay_exponent_and_bits(side, wanted, gap, last)
    return bool(
        choice.decay_exponent >= exponent
        and choice.lam * choice.period >= wanted - size
        and (t - choice.lam) * choice.period >= wanted + right
        and choice.bits >= bits
    )


@np.errstate(all="ignore")
def tightest_order(side: Side, epsilon: float, lam: float) -> tuple[float, float]:
    """Return about the order t near lam that minimises c(t) M(t) e^{-t eps}, and log of that."""
    orders = lam * LINE.nearby_orders
    value = saddle.cgf_values(side.terms, orders) + orders * np.log(orders) - (1 + orders) * np.log1p(orders)
    value = value - orders * epsilon
    best = int(np.argmin(np.where(np.isnan(value), np.inf, value)))
    return float(orders[best]), float(value[best])


# ---- guesses


def search_target(side: Side, query: Query) -> float | None:
    """Return log of the given delta without the leak, or the given epsilon, as a float.

    Returns None if the leak reaches delta.
    """
    if not query.wants_epsilon:
        return float(query.value)
    left = rounded_down(query.value) - leak_of(side.terms)
    return math.log(left) if left > 0 else None


def guess(side: Side, query: Query) -> float | None:
    """Return epsilon at the given delta, or log delta at the given epsilon, by floats.

    Returns None if their spectrum does not decay. Returns NaN if Theorem B finds no epsilon; it then loses every comparison.
    """
    target = search_target(side, query)
    if target is None:
        return None
    line = _guess_line(side, *((target, None) if query.wants_epsilon else (None, target)))
    if line is None:
        return None
    value = best_value(line, target, query.wants_epsilon, side.test)[0]
    return value if math.isfinite(value) or (side.is_theorem_b and query.wants_epsilon) else None


@np.errstate(all="ignore")
def _guess_line(side: Side, log_delta: float | None, epsilon: float | None) -> FloatLine | None:
    """Return the line in floats, to compare sides by; None if it does not decay."""
    known = GUESS_LINES.get()
    for where, line in known or ():
        if where == side and _is_followable(line, log_delta, epsilon):
            return line
    at = saddle.saddle_point(side.terms, log_delta=log_delta, epsilon=max(epsilon or 0.0, LINE.smallest_epsilon))
    found = None if at is None else saddle.line(side.terms, at, saddle.spread(side.terms, at))
    if found is None:
        return None
    line = found.floats(side.test)
    if known is not None:
        known.append((side, line))
    return line


def _is_followable(line: FloatLine, log_delta: float | None, epsilon: float | None) -> bool:
    """Return True if so little cancels on this line that a search in floats may follow it."""
    if log_delta is None:
        at = 0.0 if epsilon is None else epsilon
        size = line.log_value(at)[0]
    else:
        at, size = best_value(line, log_delta, True, HOCKEY_STICK)[0], log_delta
    return math.isfinite(at + size) and line.cgf - line.lam * at - size <= LINE.most_cancelled_search


def find_roots(line: SearchLine, asked: Array) -> Array:
    """Return where the line has each of these logarithms; NaN where none is found."""
    return newton_roots(line.log_values, asked, (line.cgf - asked) / line.lam, line.lam)


def best_value(line: SearchLine, target: float, wants_epsilon: bool, test: TestFunction) -> tuple[float, float]:
    """Return the smallest epsilon, or log delta, over the gap d at one target, and d.

    Returns NaN for the value if there is none.
    """
    value, gap = best_values(line, np.array([target]), wants_epsilon, test)
    return float(value[0]), float(gap[0])


def best_values(line: SearchLine, targets: Array, wants_epsilon: bool, test: TestFunction) -> tuple[Array, Array]:
    """Return the smallest epsilon, or log delta, over the gap d at each target, and d.

    Returns NaN for d if the test function has no gap.
    """
    if test.constants is None:
        found = find_roots(line, targets) if wants_epsilon else line.log_values(targets)[0]
        return found, np.full(targets.shape, np.nan)
    constants: Constants = test.constants

    def value(gaps: Array) -> Array:
        # delta(eps) <= C E g(S - eps + log R): log R moves epsilon, log C moves log delta
        log_ratio, log_constant = constants(gaps)
        if wants_epsilon:
            return find_roots(line, (targets[:, None] - log_constant).ravel()).reshape(gaps.shape) + log_ratio
        found = line.log_values((targets[:, None] - log_ratio).ravel())[0].reshape(gaps.shape)
        return np.where(np.isfinite(found), log_constant + found, np.inf)

    return minimise_rows(value, np.tile(LINE.gap_grid / line.lam, (targets.size, 1)), LINE.gap_points)
