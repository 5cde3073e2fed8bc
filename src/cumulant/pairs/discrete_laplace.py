"""The discrete Laplace pair: noise on the integers, shifted by one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.numerics.arithmetic import BALLS, Arithmetic, Array, Scalar
from cumulant.pairs.finite_losses import LossPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.laplace_replacement import DiscreteLaplaceReplacementPair
from cumulant.pairs.pair import Pair

MOST_LOSSES = 1024
"""Losses of a pair; a longer shift is rounded up to a multiple of the least number that leaves no more than this.
Chosen by hand: the rounded pair dominates, so validity does not depend on it."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplacePair(LossPair):
    """Noise of mass tanh(t/2) e^{-t |x|} on the integers, around m = shift and around 0.

    t = unit (docs/mechanisms/discrete-laplace.md).

    The loss t (2x - m) has the P-mass tanh(t/2) e^{-t (m-x)} for x = 1 .. m - 1, and t m has all of 1 / (1 + e^-t).

    >>> DiscreteLaplacePair(Fraction(1, 2), 1).profile([0, 0.15])
    array([0.24491866, 0.18381965])
    """

    unit: Fraction
    shift: int
    least: Fraction | None = None
    """The shift of Laplace noise that is a post-processing of what neighbouring data sets have, where this was rounded up."""
    attained: bool = True

    chained = True

    @classmethod
    def of(cls, unit: Fraction, shift: int, least: Fraction | None = None) -> DiscreteLaplacePair:
        """Return the pair; for a shift beyond all grids a coarser pair that dominates it.

        Chords of the same profile between fewer points are larger: every s-th of the points of a shift that s divides.
        """
        stride = -(-shift // MOST_LOSSES) or 1
        if stride == 1:
            return cls(unit, shift)
        return cls(unit * stride, -(-shift // stride), unit * shift if least is None else least, attained=False)

    @property
    def lower_pair(self) -> Pair:
        """The pair itself, or Laplace noise if this pair was rounded up.

        At its vertices the profile is that of Laplace noise, which is convex in e^eps, so chords lie above it.
        """
        return self if self.least is None else LaplacePair(self.least)

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        m = self.shift
        if not m:
            return on.asarray(np.zeros(0)), on.asarray(np.zeros(0))
        t = on.number(self.unit)
        inner = [Fraction(x) for x in range(m // 2 + 1, m)]
        x = on.asarray([*inner, Fraction(m)])
        # tanh(t/2) = (1 - e^-t) / (1 + e^-t), which the last one is without its numerator
        spread = on.log_expm1(t) - t
        log_p = on.asarray([spread] * len(inner) + [on.number(0)]) - t * (m - x) - on.log1p_exp(-t)
        return t * (2 * x - m), log_p

    def group_pair(self, size: int) -> DiscreteLaplacePair:
        return DiscreteLaplacePair.of(self.unit, self.shift * size, None if self.least is None else self.least * size)

    def replacement(self, rate: Fraction) -> Pair | None:
        if not self.shift or rate == 1:
            return self.group_pair(2)
        return DiscreteLaplaceReplacementPair(self.unit, self.shift, rate, self.least, self.attained)

    @property
    def unit_loss(self) -> float | None:
        return float(self.unit) * (1 if self.shift % 2 else 2) if 10**-100 < self.unit < 10**5 else None

    def exact_equal(self) -> Scalar:
        if self.shift % 2:
            return BALLS.number(0)
        t = BALLS.number(self.unit)
        return (t / 2).tanh() * (-t * (self.shift // 2)).exp()

    def exact_unit(self) -> Fraction | None:
        return self.unit * (1 if self.shift % 2 else 2)

    @property
    def equal(self) -> float:
        """The mass where p = q: tanh(t/2) e^{-tm/2} at 2x = m.

        Below the smallest float it may be rounded to 0.
        """
        if not self.shift:
            return 1.0
        if self.shift % 2:
            return 0.0
        t = float(self.unit) if self.unit < 10**9 else 1e9
        return float(np.tanh(t / 2) * np.exp(-t * self.shift / 2))
