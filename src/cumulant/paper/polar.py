"""Numbers as (sign, log of the size), the paper's "polar" representation.

For sums of either sign (Appendix G, item 36).

It keeps numbers far outside the range of floats, and does not save a sum whose terms cancel: logarithms carry 53 bits, so a
difference of two terms of logarithm x is off by |x| 2^-53 of them. The alternating sums of Theorem 27 lose everything from
order 10 to 24 on (E-19), in polar form or not; the library integrates positive functions instead and proves with balls.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cumulant.numerics.logspace import log_sum


@dataclass(frozen=True, slots=True)
class Polar:
    """sign e^log with sign -1, 0 or 1; zero has the logarithm -inf.

    >>> three, five = Polar.of(3), Polar.of(-5)
    >>> float(three + five), float(three * five), (three**1000).sign
    (-2.0..., -15.0..., 1)
    >>> (Polar.of(10) ** 400).log  # 10^400 is no float
    921.034...
    """

    sign: int
    log: float

    @classmethod
    def of(cls, number: float) -> Polar:
        """Convert a float."""
        return cls((number > 0) - (number < 0), math.log(abs(number)) if number else -math.inf)

    def __neg__(self) -> Polar:
        return Polar(-self.sign, self.log)

    def __mul__(self, other: Polar) -> Polar:
        sign = self.sign * other.sign
        return Polar(sign, self.log + other.log if sign else -math.inf)

    def __pow__(self, power: int) -> Polar:
        return Polar(self.sign**power, self.log * power if power else 0.0)

    def __add__(self, other: Polar) -> Polar:
        return polar_sum((self, other))

    def __sub__(self, other: Polar) -> Polar:
        return polar_sum((self, -other))

    def __float__(self) -> float:
        return self.sign * math.exp(self.log) if self.log < 709 else self.sign * math.inf


def polar_sum(terms: Iterable[Polar]) -> Polar:
    """Return the sum: log-sum-exp of positive and of negative terms, then one difference.

    >>> float(polar_sum([Polar.of(7), Polar.of(-4), Polar.of(-3), Polar.of(0.5)]))
    0.49999999999999...
    """
    terms = tuple(terms)
    positive, negative = (
        float(log_sum(np.array([term.log for term in terms if term.sign == sign]))) for sign in (1, -1)
    )
    if positive == negative:
        return Polar(0, -math.inf)
    larger, smaller = max(positive, negative), min(positive, negative)
    size = larger if smaller == -math.inf else larger + math.log(-math.expm1(smaller - larger))
    return Polar(1 if positive > negative else -1, size)


def polar_differences(values: Sequence[Polar]) -> tuple[Polar, ...]:
    """Compute Delta^(l)[f](0) for l = 0, 1, … by the recursion of Appendix D.

    It takes l subtractions for each l.

    >>> cubes = [Polar.of(i**3) for i in range(5)]
    >>> [round(float(each), 9) for each in polar_differences(cubes)]
    [0.0, 1.0, 6.0, 6.0, 0.0]
    """
    leading, row = [], list(values)
    while row:
        leading.append(row[0])
        row = [right - left for left, right in itertools.pairwise(row)]
    return tuple(leading)
