"""What adaptive rounds of bounded range need: of the exponential mechanism on all the data."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from cumulant.lattice.value import Value
from cumulant.numerics.enclosure import FAR, FLOOR, NEAR
from cumulant.numerics.rounding import U

_MOST_ROUNDS = 400
_MOST_CELLS = 6_000
_LARGEST = 600
"""Of (rounds + 2) epsilon, so that e to it is far from the largest float."""


def optimum(epsilon: Fraction, times: int) -> Value | None:
    """The value of so many rounds, from above; None where it takes too long or leaves the range of floats."""
    known = 1 < times <= _MOST_ROUNDS and Fraction(1, 100) <= epsilon <= 50
    return _optimum(epsilon, times) if known and (times + 2) * epsilon <= _LARGEST else None


@lru_cache(maxsize=32)
def _optimum(epsilon: Fraction, times: int) -> Value:
    """delta(x) = e^x W(e^-x), W = W_k: W_0(y) = (y - 1)_+, W_j(y) = sup_r q W_{j-1}(y r e^e) + (1-q) W_{j-1}(y r).

    r runs over [e^-e, 1] and q = (1-r) / (r (e^e - 1)): docs/mechanisms/exponential.md. On a grid of log y, of step e/n, with
    chords in y, the objective is A/r + B + C r on each cell of r: at most the larger end, and where A < 0, so that it is
    concave, that plus |A| (r1 - r0)^2 / (4 r0^3). What floats lose is added: see `rounding` on that page.
    """
    n = max(4, min(128, _MOST_CELLS // times))
    step, reach = epsilon / n, (times + 1) * n
    x = np.array([float(step * i) for i in range(reach + 1)])  # correctly rounded
    # a float x is wrong by u x, which is u x of e^x and at most u (1 + x) of e^x - 1
    excess = np.expm1(x) * (1 + (FAR + (2 + x) * U))
    e, s = float(epsilon), float(step)
    whole, one, near = math.expm1(e), math.expm1(s), x[: n + 1]
    q, rest = np.expm1(near) / whole, np.exp(near) * np.expm1(near[::-1]) / whole
    # q and 1 - q are three functions at most, and then there are sums and products with them
    part = 3 * FAR + NEAR + (3 * e + 12) * U
    # of the sum that is the bend, in the size of its terms
    lost = 2 * FAR + (2 * s + 12) * U
    value = np.concatenate([np.zeros(reach), excess])  # at log y = (i - reach) step
    for j in range(1, times + 1):
        # below the ratio stays at most 1 and W_j is 0; above it stays at least 1 and W_j is y - 1, or is never asked for
        first, last = reach - j * n + 1, reach + min(j, times - j) * n
        best = ends_before = low_before = up_before = np.zeros(last - first + 1)
        for m in range(n + 1):
            up, low = value[first + n - m : last + n - m + 1], value[first - m : last - m + 1]
            ends = q[m] * up + rest[m] * low
            best = np.maximum(best, ends)
            if m:
                # t^2 (A2 - A1), A1 and A2 the intercepts of the chords of W(y r e^e) and W(y r) in r, t = e^step - 1
                bend = one * one * (low - up) + one * ((up_before - up) - (low_before - low))
                size = one * one * (low + up) + one * (up_before + up + low_before + low)
                most = (np.maximum(bend, 0.0) + lost * size) * (math.exp(near[m]) / (4 * whole))
                best = np.maximum(best, np.maximum(ends, ends_before) + most)
            ends_before, low_before, up_before = ends, low, up
        value = value.copy()
        value[first : last + 1] = best * (1 + part) + FLOOR
    return Value(step, -reach, np.maximum.accumulate(value[: reach + 1]))
