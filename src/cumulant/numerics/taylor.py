"""Power series in balls: the Taylor coefficients of logarithms of exponential sums."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from cumulant.numerics.arithmetic import BALLS

Series = Any
"""A truncated power series whose coefficients are balls."""


def line(at: Fraction, count: int) -> Series:
    """The variable itself around `at`: at + h, to `count` coefficients."""
    import flint

    return flint.arb_series([BALLS.number(at), BALLS.number(1)][:count], prec=count)


def exponential_sum(weights: Iterable[Any], exponents: Iterable[Any], x: Series) -> Series:
    """SUM w e^{c x} for balls w and c.

    >>> with BALLS.at(64):
    ...     [
    ...         float(c)
    ...         for c in coefficients(exponential_sum([BALLS.number(2)], [BALLS.number(3)], line(Fraction(0), 3)), 3)
    ...     ]
    [2.0, 6.0, 9.0]
    """
    return sum((w * (c * x).exp() for w, c in zip(weights, exponents, strict=True)), start=x * 0)


def sinh_over(x: Series, t: Any, count: int) -> Series:
    """sinh(t x) / x, also around 0: SUM t^{2k+1} x^{2k} / (2k+1)!."""
    import flint

    if not x[0].contains(0):
        return ((t * x).exp() - (-t * x).exp()) / (2 * x)
    even = [t ** (n + 1) / math.factorial(n + 1) if n % 2 == 0 else BALLS.number(0) for n in range(count)]
    return flint.arb_series(even, prec=count)


def coefficients(series: Series, count: int) -> list[Any]:
    """The first coefficients; a series may know that the last ones are 0."""
    return [series[i] if i < len(series) else BALLS.number(0) for i in range(count)]
