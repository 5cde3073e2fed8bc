"""Exact numbers to floats, in a chosen direction."""

from __future__ import annotations

import math
import sys
from fractions import Fraction


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
