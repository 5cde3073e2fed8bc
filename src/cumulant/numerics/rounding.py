"""Rounding outward: numbers to floats in a chosen direction, and margins.

A margin is given away where rounding was not followed.

What is followed operation by operation is an enclosure or a ball. The parts below are for the rest: each is a part of the
number that it is added to, and says of what it is more than the rounding.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

U = 2.0**-53
"""The most that one operation on floats loses, of its result."""

FEW = 8 * U
"""A few operations, or one function."""

FORMULA = 64 * U
"""A formula of a few functions and operations, each wrong by 8 u at most."""

DOZENS = 1e-14
"""Some dozens of operations."""

ENVELOPE = 2.0**-44
"""The logarithm of a bound in closed form, a sum of logarithms that are larger than it."""

MEASURED = 2.0**-42
"""Far more than floats were ever seen to differ from balls where no bound of the difference is proved."""

LONG = 2.0**-40
"""Sums of thousands of terms, logarithms of hundreds, and quadrature to the last digits."""

MANY = 1e-12
"""Thousands of operations on numbers of one sign."""

ROUGH = 2.0**-20
"""Margin for numbers that are small themselves, so that a generous one costs nothing."""

_AFFORDABLE = 4096
"""Bits of a power that is taken exactly."""

UNION_BITS = 64
"""Bits of 1 / probability from which on the union bound is sharp enough; it is then too large by less than 2^-65 of
itself."""

_QUOTIENT_DIGITS = 60
"""Digits of a quotient before it is rounded to fewer; convention: far more than a float has."""

_FLOAT_BITS = 1100
"""No float is smaller than 2 to minus this, or larger than 2 to this."""


def rounded_down(value: Fraction) -> float:
    """Return the largest finite float not above the value, read as binary or as decimal.

    Neither the float nor the decimal that it prints as exceeds the value, so it is a lower bound, read either way.

    >>> rounded_down(Fraction(10) ** 400), rounded_down(1 - Fraction(1, 10**30)) < 1
    (1.7976931348623157e+308, True)
    >>> found = rounded_down(Fraction(1, 7))
    >>> Fraction(found) <= Fraction(1, 7), Fraction(repr(found)) <= Fraction(1, 7)
    (True, True)
    """
    try:
        found = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
    while found > -math.inf and (Fraction(found) > value or as_printed(found) > value):
        found = math.nextafter(found, -math.inf)
    return found


def rounded_up(value: Fraction) -> float:
    """Return the smallest float not below the value, read as binary or as decimal.

    Neither the float nor the decimal that it prints as is below the value, so it is an upper bound, read either way.

    Without the second half a bound that a reader copies from the screen may be too small in its 17th digit.

    >>> rounded_up(Fraction(1, 3)) > Fraction(1, 3) > rounded_up(Fraction(1, 3)) - 1e-16
    True
    >>> found = rounded_up(Fraction(2, 11))
    >>> Fraction(found) >= Fraction(2, 11), Fraction(repr(found)) >= Fraction(2, 11)
    (True, True)
    """
    try:
        found = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    while found < math.inf and (Fraction(found) < value or as_printed(found) < value):
        found = math.nextafter(found, math.inf)
    return found


def as_printed(value: float) -> Fraction:
    """The decimal that a finite float prints as, exactly.

    >>> as_printed(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(value)))


def decimal_above(value: Fraction, digits: int) -> str:
    """Return a decimal of this many significant digits that is not below the value.

    >>> decimal_above(Fraction(2, 3), 4), decimal_above(Fraction(1, 8), 4)
    ('0.6667', '0.125')
    """
    context = Context(prec=_QUOTIENT_DIGITS, rounding=ROUND_CEILING)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return str(Context(prec=digits, rounding=ROUND_CEILING).plus(quotient))


def stated(value: Fraction) -> float:
    """Return the float that states a delta or an epsilon.

    The decimal it prints as is not below the exact one, so no more is claimed.

    >>> (
    ...     stated(Fraction(1, 10**8)),
    ...     Fraction(repr(stated(Fraction(1, 3)))) >= Fraction(1, 3),
    ...     stated(Fraction(10) ** 400),
    ... )
    (1e-08, True, inf)
    """
    above = rounded_up(value)
    below = math.nextafter(above, 0.0)
    return below if as_printed(below) >= value else above


def raised(value: Any, part: float) -> Any:
    """Return a positive value enlarged by this part of itself."""
    return value * (1 + part)


def lowered(value: Any, part: float) -> Any:
    """Return a positive value reduced by this part of itself."""
    return value * (1 - part)


def next_above(value: float) -> float:
    """The next float: above what a correctly rounded operation was asked for."""
    return math.nextafter(value, math.inf)


def outward(values: Any, upper: bool = True) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return floats moved outward by 2^-42 of themselves and one unit in the last place.

    Their rounding was measured and not proved. 0 and infinity stay.

    >>> outward(np.array([0.0, 1.0, np.inf])) - np.array([0.0, 1.0, 0.0]) < 1e-12
    array([ True,  True, False])
    """
    moved = np.nextafter(values * (1 + (MEASURED if upper else -MEASURED)), np.inf if upper else 0.0)
    return np.asarray(np.where((values == 0) | np.isinf(values), values, moved), dtype=np.float64)


def at_least(end: Any) -> Fraction:
    """Return the end of a ball, a binary fraction, as a fraction.

    If no float is that small or large, something above it is returned.
    """
    mantissa, exponent = map(int, end.man_exp())
    size = exponent + mantissa.bit_length()
    if mantissa <= 0 and not -_FLOAT_BITS < size < _FLOAT_BITS:
        return Fraction(0)
    if size < -_FLOAT_BITS:
        return Fraction(1, 2**_FLOAT_BITS)
    return Fraction(mantissa, 1 << -exponent) if exponent < 0 else Fraction(mantissa << min(exponent, 2 * _FLOAT_BITS))


def at_least_once(events: Iterable[tuple[Fraction, int]]) -> Fraction:
    """Return the probability 1 - prod (1-p)^k that one of independent events happens.

    Each event has the probability p and is tried k times.

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
    if total < Fraction(1, 1 << UNION_BITS):  # the union bound, too large by a factor 1 + total / 2
        return total
    # every product is rounded down to a multiple of 2^-bits, so that with k of them what is kept loses 2 k units at most,
    # of at least total / 2 or 1/2
    count = sum(times for _, times in events)
    bits = 2 * UNION_BITS + count.bit_length() + 3
    kept = 1 << bits
    for p, times in events:
        power = math.floor((1 - p) * (1 << bits))
        while times:
            if times & 1:
                kept = kept * power >> bits
            power, times = power * power >> bits, times >> 1
    return min(1 - Fraction(kept, 1 << bits), total)
