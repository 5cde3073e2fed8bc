"""Bounds on a run that need no composition.

They are the total variation distance, the largest loss, and basic composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from cumulant.conversion.query import Query
from cumulant.exact import closed_form as closed
from cumulant.exact.rounds import Round, Rounds
from cumulant.numerics.rounding import MANY, raised, rounded_up

_RARELY = Fraction(1, 100)
"""Expected number of rounds that see the record, below which basic composition is tried; chosen by hand, always valid."""

_UNDERFLOW = 1e-322
"""Amount that keeps a positive product positive; derived: floats end at 5e-324."""

_LARGEST_EXPONENT = 700.0
"""Loss beyond which e^x is taken as infinite; derived: e^700 is near the largest float."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that hold at every delta.

    They are distance, largest finite loss, and probability of an infinite loss.
    """

    distance: float
    largest: float
    leak: float

    def chord(self, delta: float, start: float, epsilon: float) -> float:
        """Return the bound `delta` at `start` carried to a larger epsilon.

        As a function of e^epsilon delta is convex, and it is the leak at the largest loss L.

        With x = e^epsilon, delta(x) <= leak + (delta(x1) - leak) (e^L - x) / (e^L - x1).
        """
        if not 0 <= start < epsilon < self.largest < math.inf:
            return delta
        part = math.expm1(epsilon - self.largest) / math.expm1(start - self.largest)
        return min(float(raised(self.leak + raised(part, MANY) * max(delta - self.leak, 0.0), MANY)), delta)


def limits_of(rounds: Rounds) -> Limits:
    """Return distance, largest finite loss and leak of a run, each rounded up.

    The distance is 1 - PROD (1-d)^k, d the total variation distance of a round, because rounds are coupled in turn.
    """
    kept = largest = leak = 0.0
    for one, times in rounds.parts:
        loss = None if one.share is None else one.pair.loss()  # a sample scales its tails by the share
        if loss is None:
            return Limits(1.0, math.inf, 1.0)
        d, x = _scaled_up(one, loss.distance + loss.leak), loss.reach(-math.inf)
        kept += times * math.log1p(-d) if d < 1 else -math.inf
        if x > 0:
            largest += times * math.log1p(_scaled_up(one, math.expm1(x))) if x < _LARGEST_EXPONENT else math.inf
        leak += times * _scaled_up(one, loss.leak)
    distance = min(float(raised(-math.expm1(kept), MANY)), 1.0)
    return Limits(distance, raised(largest, MANY), raised(leak, MANY))


def basic_composition(rounds: Rounds, query: Query) -> float:
    """Return the sum of the epsilons, or deltas, of n rounds at 1/n of the given number each.

    Returns +inf unless rounds rarely see the record.
    """
    forms, expected = [], Fraction(0)
    for one, times in rounds.parts:
        if one.share is None or not one.pair.has_closed_form:
            return math.inf
        forms.append((one.pair, one.share, times))
        expected += times * one.share
    if expected > _RARELY:
        return math.inf
    if not forms:  # without rounds nothing is lost, and there is nothing to share
        return 0.0
    part = replace(query, value=query.value / sum(times for *_, times in forms))
    ends = [(closed.single_end(pair, share, part), times) for pair, share, times in forms]
    if not all(math.isfinite(each) for each, _ in ends):
        return math.inf
    return min(rounded_up(sum((times * Fraction(each) for each, times in ends), start=Fraction(0))), query.trivial)


def _scaled_up(one: Round, value: float) -> float:
    """Return share times value, rounded up; a positive value stays positive if floats underflow."""
    return float(raised(float(one.share or 1) * value, MANY)) + _UNDERFLOW if value > 0 else 0.0
