"""Many exact numbers at once: common denominator, order by size, and logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.enclosure import BOUNDED, LOG_TWO, Enclosure
from cumulant.numerics.rounding import U, at_least

Quotient = tuple[int, int]
"""Two integers > 0, of which the first is divided by the second."""

_EXPONENT = 900
"""A quotient of integers whose lengths differ by no more bits than this is far from the ends of the floats."""


def common(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Return the numerators over the least common denominator, and that denominator.

    Integers add much faster than fractions.

    >>> common([Fraction(1, 2), Fraction(1, 3)])
    ([3, 2], 6)
    """
    denominator = math.lcm(*(value.denominator for value in values))
    return [value.numerator * (denominator // value.denominator) for value in values], denominator


def float_log(value: Fraction) -> float:
    """Compute a logarithm in floats, also of a number that no float can hold.

    >>> round(float_log(Fraction(1, 10**400)), 3)
    -921.034
    """
    return math.log(value.numerator) - math.log(value.denominator) if value > 0 else -math.inf


def by_size(quotients: Sequence[Quotient]) -> list[tuple[int, int]]:
    """Return (key, place) of each quotient, sorted by integer keys in the quotients' order.

    Equal quotients have equal keys.

    Different quotients differ by at least 1 over the product of their denominators, so as many bits tell them apart.
    """
    bits = 2 * max((bottom.bit_length() for _, bottom in quotients), default=0)
    return sorted(((top << bits) // bottom, place) for place, (top, bottom) in enumerate(quotients))


def log_quotient(top: int, bottom: int) -> float:
    """Return log(top / bottom); -inf if top is 0.

    It is accurate near 1 and where a float would overflow.

    >>> log_quotient(10**400, 1), log_quotient(10**30 + 1, 10**30)
    (921.034..., 1e-30)
    """
    if top == 0:
        return -math.inf
    if 2 * abs(top - bottom) < bottom:
        return math.log1p((top - bottom) / bottom)
    if abs(top.bit_length() - bottom.bit_length()) <= _EXPONENT:
        return math.log(top / bottom)
    return math.log(top) - math.log(bottom)


def log_quotients(quotients: Iterable[Quotient]) -> Array:
    """Return `log_quotient` of each quotient."""
    return np.array([log_quotient(top, bottom) for top, bottom in quotients], dtype=np.float64)


def log_rational(value: Fraction) -> float:
    """log of an exact number >= 0."""
    return log_quotient(value.numerator, value.denominator)


def quotients(values: Iterable[Fraction]) -> list[Quotient]:
    """Numerators and denominators."""
    return [(value.numerator, value.denominator) for value in values]


def enclosed_logs(quotients: Sequence[Quotient]) -> Enclosure:
    """The logarithms as enclosures; Python divides integers with correct rounding."""
    distance, ratio, shift = np.zeros(len(quotients)), np.ones(len(quotients)), np.zeros(len(quotients))
    near = np.zeros(len(quotients), dtype=bool)
    for i, (top, bottom) in enumerate(quotients):
        if 2 * abs(top - bottom) < bottom:
            near[i], distance[i] = True, (top - bottom) / bottom
            continue
        bits = top.bit_length() - bottom.bit_length()
        if abs(bits) > _EXPONENT:
            top, bottom, shift[i] = top << max(-bits, 0), bottom << max(bits, 0), bits
        ratio[i] = top / bottom
    with np.errstate(all="ignore"):
        found = BOUNDED.log(Enclosure(ratio, U * ratio))
        if shift.any():
            found = found + LOG_TWO * shift
        found[near] = BOUNDED.log1p(Enclosure(distance[near], U * np.abs(distance[near]) + 5e-324))
    return found


def enclosed_exp(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Return fractions below and above e^exponent, |exponent| <= 700, that agree in 40 digits.

    >>> low, high = enclosed_exp(Fraction(1))
    >>> low < high and float(low) == float(high) == math.e
    True
    """
    with BALLS.at(160):
        found = BALLS.number(exponent).exp()
        return at_least(found.lower()), at_least(found.upper())
