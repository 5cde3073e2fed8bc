"""Binomial laws in balls: single masses and upper tails, for large counts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.differences import up_to

MOST_TERMS = 1 << 20
"""Terms of a tail; chosen by hand, a bound of time: beyond it the rest is at most 1."""

MOST_COUNTED = 1000
"""Records of one user or group whose number in a sample is followed; convention: fractions of more are too long."""


def mass(count: int, rate: Fraction, k: int) -> Any:
    """P(Bin(count, rate) = k) as a ball, 0 < rate < 1."""
    n, g = BALLS.number(count), BALLS.number(rate)
    if not 0 <= k <= count:
        return BALLS.number(0)
    choose = (n + 1).lgamma() - BALLS.number(k + 1).lgamma() - BALLS.number(count - k + 1).lgamma()
    return (choose + k * g.log() + (count - k) * BALLS.number(1 - rate).log()).exp()


def upper_tail(count: int, rate: Fraction, least: int) -> Any:
    """Return P(Bin(count, rate) >= least) as a ball.

    Terms away from the mean are added, and a geometric series bounds the rest.

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
    """Return the tail from `start` on, at or above the mean.

    The ratios (n-k)/(k+1) g/(1-g) fall below 1 there.
    """
    odds = BALLS.number(rate / (1 - rate))
    term = total = mass(count, rate, start)
    small = BALLS.number(2) ** (-BALLS.precision())
    for k in range(start, min(count, start + MOST_TERMS)):
        ratio = odds * (count - k) / (k + 1)
        term = term * ratio
        total = total + term
        if term < total * small and ratio < 1:
            return total + up_to(term * ratio / (1 - ratio))
    return total if start + MOST_TERMS >= count else total + up_to(BALLS.number(1))


def binomial_masses(count: int, rate: Fraction) -> tuple[Fraction, ...]:
    """Return the exact probabilities of 0, 1, ..., count successes.

    The trials are independent, and each succeeds with probability `rate`.

    >>> binomial_masses(2, Fraction(1, 3))
    (Fraction(4, 9), Fraction(4, 9), Fraction(1, 9))
    """
    return tuple(math.comb(count, i) * rate**i * (1 - rate) ** (count - i) for i in range(count + 1))


def hypergeometric_masses(population: int, marked: int, sample: int) -> tuple[Fraction, ...]:
    """Return the exact probabilities of 0, 1, ..., `marked` marked records in a sample.

    The sample is drawn without replacement.

    >>> hypergeometric_masses(4, 2, 2)
    (Fraction(1, 6), Fraction(2, 3), Fraction(1, 6))
    """
    found, rest = [], population - marked
    mass = Fraction(1)
    for i in range(sample):  # none of the marked ones
        mass *= Fraction(rest - i, population - i)
    for h in range(marked + 1):
        found.append(mass if h <= sample else Fraction(0))
        if h < sample:
            mass *= Fraction((marked - h) * (sample - h), (h + 1) * (rest - sample + h + 1))
    return tuple(found)
