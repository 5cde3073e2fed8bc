"""The curve of Skellam noise on vectors of integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar


@dataclass(frozen=True, slots=True)
class SkellamVector(Curve):
    """D_a <= a S2^2 / 2v + min(((2a-1) S2^2 + 6 S1) / 4v^2, 3 S1 / 2v) at integers a.

    Between integers K is its chord.

    Agarwal, Kairouz, Liu 2021; S1 and S2 the L1 and L2 sensitivities, v the variance (docs/mechanisms/skellam.md).
    """

    squared: int
    total: int
    variance: Fraction

    enclosed = True
    integral = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        low = np.array([x // 1 for x in lam], dtype=object) if on.exact else np.floor(lam)
        rest = on.asarray(lam) - on.asarray(low)
        below, above = self._at(on.asarray(low), on), self._at(on.asarray(low) + 1, on)
        return below + rest * (above - below)

    def _at(self, lam: Array, on: Arithmetic) -> Array:
        """lambda D_{lambda + 1} at integers."""
        v = self.variance
        shared = (lam + 1) * on.number(Fraction(self.squared) / (2 * v))
        one = (2 * lam + 1) * on.number(Fraction(self.squared) / (4 * v * v)) + on.number(
            Fraction(6 * self.total) / (4 * v * v)
        )
        return lam * (shared + on.minimum(one, one * 0 + on.number(Fraction(3 * self.total) / (2 * v))))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """At most the divergence of order 2."""
        return self._at(on.asarray([Fraction(1)]), on)[0]

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf if self.squared else 0)
