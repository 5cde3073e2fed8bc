"""Closed form of one round: delta = g d(e0) at epsilon = log(1 + g (e^e0 - 1)).

d is the privacy profile of the mechanism. For a sample without replacement that is Lemma 3 at every epsilon. For a Poisson
sample it is the direction in which the record is removed, which is the larger one of a symmetric pair, and d covers both
orders of the pair. Balls find the root and prove both ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from cumulant.conversion.query import Answer, Query
from cumulant.curves.closed_form import lemma3
from cumulant.errors import CertificateError
from cumulant.exact.witnesses import PAIR
from cumulant.losses.subsampled import unsampled_ball
from cumulant.numerics.arithmetic import BALLS, Scalar
from cumulant.numerics.rounding import at_least, rounded_down, rounded_up
from cumulant.numerics.search import invert_falling
from cumulant.pairs.pair import Pair

ROUTE = "closed form"
"""The route of one round in closed form, or of the sum of rounds that rarely see the record; convention."""

BITS = 256
"""Precision of the balls from which both ends of delta are taken, in bits; chosen by hand: profiles need about 128."""


@dataclass(frozen=True, slots=True)
class ClosedFormSettings:
    """Constants of the search for the root of a profile.

    Balls prove both ends for whatever is chosen here.
    """

    comparison_bits: tuple[int, ...] = (128, 512, 2048)
    """Precisions that are tried until a comparison is decided, in bits; profiles raise them if digits cancel; by hand."""

    smallest_loss: float = 1e-310
    """Smallest loss that is tried; derived: near the smallest float."""

    largest_loss: float = 2.0**60
    """Largest loss whose e^e0 is asked for as a ball; chosen by hand."""


CLOSED_FORM = ClosedFormSettings()
"""Settings of closed forms."""


def single_answer(pair: Pair, rate: Fraction, query: Query) -> Answer:
    """Return epsilon at the given delta, or delta at the given epsilon, of the only round."""
    return Answer(single_end(pair, rate, query), None, "proved", way=ROUTE)


def single_end(pair: Pair, rate: Fraction, query: Query) -> float:
    """Return an upper bound on the epsilon, or the delta, of one round."""
    return (single_epsilon if query.wants_epsilon else single_delta)(pair, rate, query.value)


def single_lower_end(pair: Pair, rate: Fraction, query: Query) -> float | None:
    """Return a lower bound on the epsilon, or the delta, of one round; None if none is proved."""
    if query.wants_epsilon:
        return single_lower_epsilon(pair, rate, query.value)
    return rounded_down(enclosed_delta(pair, rate, query.value)[0]) or None


def single_answers(pair: Pair, rate: Fraction, queries: Sequence[Query]) -> list[Answer]:
    """Return the answer of the only round to each query; deltas share one call of the profile.

    All queries give the same kind of number.
    """
    if any(query.wants_epsilon for query in queries):
        return [single_answer(pair, rate, query) for query in queries]
    found = single_deltas(pair, rate, [query.value for query in queries])
    return [Answer(value, None, "proved", way=ROUTE) for value in found]


def single_lower_answer(below: tuple[Pair, Fraction] | None, query: Query) -> Answer | None:
    """Return the number that the data sets of the only round need.

    Returns None if no data sets attain it, or no number is proved.
    """
    needed = None if below is None else single_lower_end(*below, query)
    return None if needed is None else Answer(needed, None, "proved", way=PAIR)


def single_delta(pair: Pair, rate: Fraction, epsilon: Fraction) -> float:
    """Return an upper bound on g d(log(1 + (e^epsilon - 1)/g)), rounded up."""
    return single_deltas(pair, rate, [epsilon])[0]


def single_deltas(pair: Pair, rate: Fraction, epsilons: Sequence[Fraction]) -> list[float]:
    """Return an upper bound on g d(log(1 + (e^epsilon - 1)/g)) for each epsilon, rounded up.

    One call of the profile answers all of them; if a ball stays too wide, each is asked by itself.
    """
    with BALLS.at(BITS):
        asked = [_least_loss(rate, epsilon) for epsilon in epsilons]
        try:
            profiles = pair.profile(asked, BALLS)
        except CertificateError:
            return [rounded_up(enclosed_delta(pair, rate, epsilon)[1]) for epsilon in epsilons]
        factor = BALLS.number(rate)
        return [_probability_above(factor * value) for value in profiles]


def _least_loss(rate: Fraction, epsilon: Fraction) -> Fraction:
    """Return a lower bound on log(1 + (e^epsilon - 1)/g); the profile there is not smaller."""
    least = epsilon
    if rate < 1:
        e0 = unsampled_ball(BALLS.number(epsilon), rate)
        least = -at_least(-e0.lower()) if e0.is_finite() else epsilon  # e0 >= epsilon, and the profile falls
    return min(max(least, Fraction(0)), Fraction(CLOSED_FORM.largest_loss))


def _probability_above(value: Scalar) -> float:
    """Return the upper end of a ball as a probability, rounded up; 1 if the ball has no end."""
    if not value.is_finite() or value.upper() >= 1:
        return 1.0
    above = at_least(value.upper())
    return rounded_up(above) if above > 0 else 0.0


def enclosed_delta(pair: Pair, rate: Fraction, epsilon: Fraction, bits: int = BITS) -> tuple[Fraction, Fraction]:
    """Return both ends of g d(log(1 + (e^epsilon - 1)/g)).

    Returns 0 and 1 if balls of this many bits are too wide.
    """
    with BALLS.at(bits):
        e0 = unsampled_ball(BALLS.number(epsilon), rate)
        least = _least_loss(rate, epsilon)
        most = epsilon if rate == 1 else at_least(e0.upper()) if e0.is_finite() else None
        low, high = Fraction(0), Fraction(1)
        with suppress(CertificateError):
            above = BALLS.number(rate) * pair.profile(least, BALLS)
            if above.is_finite():
                high = min(max(at_least(above.upper()), low), high)
            if most is not None and most <= CLOSED_FORM.largest_loss:
                below = above if most == least else BALLS.number(rate) * pair.profile(most, BALLS)
                low = max(-at_least(-below.lower()), low) if below.is_finite() else low
        return low, high


def single_added_delta(pair: Pair, rate: Fraction, epsilon: Fraction) -> float:
    """Return the delta of a record that is added to a Poisson sample, rounded up.

    H_t(Q || (1-g)Q + gP) = (1 - t(1-g)) H_s(Q || P), t = e^epsilon, s = tg / (1 - t(1-g)), and 0 where t(1-g) >= 1.
    """
    with BALLS.at(BITS):
        t, g = BALLS.number(epsilon).exp(), BALLS.number(rate)
        kept = (1 - t * (1 - g)).nonnegative_part()
        if kept == 0:
            return 0.0
        # s >= 1, and the profile falls: a smaller number will do
        odds = (t * g / kept).lower()
        least = max(-at_least(-odds.log().lower()), Fraction(0)) if odds > 1 else Fraction(0)
        try:
            found = kept * pair.profile(min(least, Fraction(CLOSED_FORM.largest_loss)), BALLS)
        except CertificateError:
            return 1.0
        return rounded_up(min(max(at_least(found.upper()), Fraction(0)), Fraction(1))) if found.is_finite() else 1.0


def single_epsilon(pair: Pair, rate: Fraction, delta: Fraction) -> float:
    """Return the smallest proved epsilon at this delta in (0, 1), rounded up.

    Returns +inf if none is proved.
    """
    _, high = _bracket(pair, rate, delta)
    if high is None:
        return math.inf
    if rate == 1:
        return rounded_up(Fraction(high))
    with BALLS.at(BITS):
        end = _amplified_loss(high, rate)
        return rounded_up(max(at_least(end.upper()), Fraction(0))) if end.is_finite() else math.inf


def single_lower_epsilon(pair: Pair, rate: Fraction, delta: Fraction) -> float | None:
    """Return an epsilon that this delta provably needs, rounded down; None if none is proved."""
    low, _ = _bracket(pair, rate, delta)
    if low is None or rate == 1:
        return None if low is None else rounded_down(Fraction(low))
    with BALLS.at(BITS):
        end = _amplified_loss(low, rate)
        return rounded_down(max(-at_least(-end.lower()), Fraction(0))) if end.is_finite() else None


def _amplified_loss(e0: float, rate: Fraction) -> Scalar:
    """Return the ball of log(1 + g (e^e0 - 1)), Lemma 3."""
    return lemma3(BALLS.number(Fraction(e0)), BALLS.number(rate), BALLS)


def _bracket(pair: Pair, rate: Fraction, delta: Fraction) -> tuple[float | None, float | None]:
    """Return a base loss proved too small and one proved sufficient, neighbouring floats if balls decide.

    Returns None for an end not proved.
    """
    excess = partial(_log_excess, pair, rate, delta)
    at_zero, _ = excess(0.0)
    if at_zero is False:
        return None, 0.0
    low, high = invert_falling(excess, 1.0, CLOSED_FORM.smallest_loss, CLOSED_FORM.largest_loss)
    return (0.0 if low is None and at_zero else low), high


def _log_excess(pair: Pair, rate: Fraction, delta: Fraction, loss: float) -> tuple[bool | None, float]:
    """Return True if g d(e0) > delta is proved, False if g d(e0) <= delta is, and about log(g d(e0) / delta).

    Returns None if no tried precision decides.
    """
    e0 = Fraction(loss)
    if e0 == 0 and (distance := pair.total_variation()) is not None:  # balls never decide that two fractions are equal
        return rate * distance > delta, math.nan
    for bits in CLOSED_FORM.comparison_bits:
        with BALLS.at(bits):
            try:
                value, asked = BALLS.number(rate) * pair.profile(e0, BALLS), BALLS.number(delta)
            except CertificateError:
                return None, math.nan
            if (above := bool(value > asked)) or value <= asked:
                return above, float((value / asked).log().mid())
    return None, math.nan
