"""Binomial laws in balls: single masses and upper tails, for counts far beyond exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.differences import up_to

_MOST_TERMS = 1 << 20


def mass(count: int, rate: Fraction, k: int) -> Any:
    """P(Bin(count, rate) = k) as a ball, 0 < rate < 1."""
    n, g = BALLS.number(count), BALLS.number(rate)
    if not 0 <= k <= count:
        return BALLS.number(0)
    choose = (n + 1).lgamma() - BALLS.number(k + 1).lgamma() - BALLS.number(count - k + 1).lgamma()
    return (choose + k * g.log() + (count - k) * BALLS.number(1 - rate).log()).exp()


def upper_tail(count: int, rate: Fraction, least: int) -> Any:
    """P(Bin(count, rate) >= least) as a ball: terms away from the mean, and a geometric series for those that are left.

    >>> with BALLS.at(128):
    ...     round(float(upper_tail(99, Fraction(1, 4), 20)), 12)
    0.890609461827
    """
    if least <= 0 or least > count:
        return BALLS.number(int(least <= 0))
    if rate == 1:
        return BALLS.number(1)
    if least > count * rate:
        return _beyond(count, rate, least)
    return 1 - _beyond(count, 1 - rate, count - least + 1)


def _beyond(count: int, rate: Fraction, start: int) -> Any:
    """The tail from `start` on, at or above the mean: the ratios (n-k)/(k+1) g/(1-g) fall below 1."""
    odds = BALLS.number(rate / (1 - rate))
    term = total = mass(count, rate, start)
    small = BALLS.number(2) ** (-BALLS.precision())
    for k in range(start, min(count, start + _MOST_TERMS)):
        ratio = odds * (count - k) / (k + 1)
        term = term * ratio
        total = total + term
        if term < total * small and ratio < 1:
            return total + up_to(term * ratio / (1 - ratio))
    return total if start + _MOST_TERMS >= count else total + up_to(BALLS.number(1))
