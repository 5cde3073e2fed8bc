"""The curve of Laplace noise that is restricted to an interval."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.rounding import at_least

LEAK_BITS = 256
"""Bits of the ball from which the leak is rounded up."""


@dataclass(frozen=True, slots=True)
class BoundedLaplace(Curve):
    """The curve for t = shift, A = bound, in units of the scale, 0 < t <= A.

    It is given that the output is one that both data sets can have.

    With r = e^-(A-t) and D = 2 - e^-A - r it is
    e^K = ((1-r)(e^{lambda t} + e^{-a t}) + (e^{lambda t} - e^{-a t}) / (2 lambda + 1)) / D
    (docs/mechanisms/bounded-laplace.md).
    """

    shift: Fraction
    bound: Fraction

    enclosed = True

    def _parts(self, on: Arithmetic) -> tuple[Any, Any, Any]:
        """t, 1 - r and D."""
        edge_share = -on.expm1(-on.number(self.bound - self.shift))
        return on.number(self.shift), edge_share, edge_share - on.expm1(-on.number(self.bound))

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        near = np.array([Fraction(x) * self.shift < 1 for x in lam.tolist()], dtype=bool)
        t, edge_share, D = self._parts(on)
        x = on.asarray(lam)
        value = on.asarray(np.zeros(len(lam)))
        if near.any():
            # M - 1 = (2E - r B) / D: E = M - 1 of all Laplace noise, B = (e^{lambda t} - 1)(1 - e^{-at})
            y = x[near]
            whole = 2 * ((y + 1) * on.excess(y * t) + y * on.excess(-(y + 1) * t)) / (2 * y + 1)
            ends = on.expm1(y * t) * -on.expm1(-(y + 1) * t)
            value[near] = on.log1p((whole - ends + edge_share * ends) / D)
        if not near.all():
            y = x[~near]
            fallen = on.expm1(-(2 * y + 1) * t)
            value[~near] = y * t + on.log((edge_share * (2 + fallen) - fallen / (2 * y + 1)) / D)
        return value

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        t, edge_share, D = self._parts(on)
        ends = -t * on.expm1(-t)
        return (2 * on.excess(-t) - ends + edge_share * ends) / D

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.shift)

    def slack(self) -> Fraction:
        return leak(self.shift, self.bound)


@lru_cache(maxsize=256)
def leak(shift: Fraction, bound: Fraction) -> Fraction:
    """Return (1 - e^-t) e^-(A-t) / (2 (1 - e^-A)), rounded up.

    That is the probability of an output that the other data set cannot have.
    """
    with BALLS.at(LEAK_BITS):
        t, A = BALLS.number(shift), BALLS.number(bound)
        return min(at_least(((-t).expm1() * (t - A).exp() / (2 * (-A).expm1())).upper()), Fraction(1))
