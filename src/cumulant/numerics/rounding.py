"""Exact numbers to floats, in a chosen direction."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from fractions import Fraction

_AFFORDABLE = 4096
"""Bits of a power that is taken exactly."""

_GOOD_BITS = 64


def rounded_down(value: Fraction) -> float:
    """The largest finite float that is not above the value: the safe side of a delta or epsilon that is asked for.

    >>> rounded_down(Fraction(10) ** 400), rounded_down(1 - Fraction(1, 10**30)) < 1
    (1.7976931348623157e+308, True)
    """
    try:
        nearest = float(value)
    except OverflowError:
        return sys.float_info.max
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def rounded_up(value: Fraction) -> float:
    """The smallest float that is not below the value.

    >>> rounded_up(Fraction(1, 3)) > Fraction(1, 3) > rounded_up(Fraction(1, 3)) - 1e-16
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def at_least_once(events: Iterable[tuple[Fraction, int]]) -> Fraction:
    """The probability 1 - prod (1-p)^k that one of independent events happens, each of probability p and tried k times.

    Exact where the power is not too long, else a binary fraction that is too large by 2^-64 of itself at most.

    >>> at_least_once([(Fraction(1, 10), 2), (Fraction(1, 5), 1)])
    Fraction(44, 125)
    >>> 0 <= at_least_once([(Fraction(1, 10**12), 10**12)]) - (1 - math.exp(-1)) < 1e-12
    True
    """
    events = [(p, times) for p, times in events if p > 0]
    if sum(times * p.denominator.bit_length() for p, times in events) <= _AFFORDABLE:
        return 1 - math.prod(((1 - p) ** times for p, times in events), start=Fraction(1))
    total = sum((p * times for p, times in events), start=Fraction(0))
    if total < Fraction(1, 1 << _GOOD_BITS):  # the union bound, too large by a factor 1 + total / 2
        return total
    # every product is rounded down to a multiple of 2^-bits, so that with k of them what is kept loses 2 k units at most,
    # of at least total / 2 or 1/2
    count = sum(times for _, times in events)
    bits = 2 * _GOOD_BITS + count.bit_length() + 3
    kept = 1 << bits
    for p, times in events:
        power = math.floor((1 - p) * (1 << bits))
        while times:
            if times & 1:
                kept = kept * power >> bits
            power, times = power * power >> bits, times >> 1
    return min(1 - Fraction(kept, 1 << bits), total)
