"""Modified Bessel functions I_n(v) of integer order, many at once by ratios of neighbours."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.differences import up_to

SPARE_BITS = 20
"""Bits beyond those that are asked for; they cover the roundings of the recurrence. The balls hold them, so validity
does not depend on it."""


@lru_cache(maxsize=32)
def log_scaled(v: Fraction, count: int, bits: int) -> tuple[Any, ...]:
    """log(e^-v I_n(v)) for n = 0, ..., count - 1, v > 0, as balls.

    r_n = I_{n+1}(v) / I_n(v) lies in [0, v / (2n + 2)], term by term of the series, and r_{n-1} = 1 / (2n/v + r_n). Downward
    that is a contraction: what is not known of a ratio far out is multiplied by the squares of all that follow.

    >>> [round(float(each.exp()), 12) for each in log_scaled(Fraction(5), 2, 128)]
    [0.183540812609, 0.163972266945]
    """
    with BALLS.at(bits + SPARE_BITS):
        size = float(v)
        # the product of the squares of the ratios falls like e^{-(N^2 - n^2) / v} and faster
        start = math.ceil(math.sqrt(count * count + size * bits)) + bits // 4 + 2
        twice, ratio = 2 / BALLS.number(v), up_to(BALLS.number(v / (2 * start + 2)))
        ratios = []
        for n in range(start, 0, -1):
            if n < count:
                ratios.append(ratio)
            ratio = 1 / (n * twice + ratio)
        found = [BALLS.number(v).bessel_i(0, scaled=True).log()]
        for each in [ratio, *ratios[::-1]][: count - 1]:
            found.append(found[-1] + each.log())
        return tuple(found)


def log_ratio_bounds(n: float, v: float) -> tuple[float, float]:
    """Return bounds of log r_n from below and above (Amos 1974).

    They are v / (b + sqrt(b^2 + v^2)) with b = n + 1 and b = n + 1/2.
    """
    return -math.asinh((n + 1) / v), -math.asinh((n + 0.5) / v)
