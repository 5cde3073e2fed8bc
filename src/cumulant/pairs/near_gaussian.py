"""Gaussian pairs above and below discrete Gaussian noise, in every dimension."""

from __future__ import annotations

import math
from fractions import Fraction

from cumulant.pairs.discrete_gaussian import DiscreteGaussianPair
from cumulant.pairs.gaussian import NearGaussianPair
from cumulant.pairs.pair import Pair

VARIANCE_UNIT = Fraction(1, 28)
"""The unit in which variance is given away; derived: e^{-2 pi^2 / 28} < 1/2, because 2 pi^2 / log 2 = 28.4."""


def discrete_gaussian_pair(square: int, variance: Fraction, dimension: int) -> Pair | None:
    """Return a pair that dominates noise on integer vectors; None if none is known.

    Neighbours differ by an integer vector whose squared length is at most `square`. In dimension 1 it is the pair of the two
    laws where a grid can hold it, else a Gaussian pair.

    >>> discrete_gaussian_pair(1, Fraction(10**8), 3).gaussian_shift() > Fraction(1, 10**4)
    True
    """
    line = DiscreteGaussianPair(math.isqrt(square), variance) if dimension == 1 else None
    if line is not None and line.has_grid:
        return line
    return line if not square else near_gaussian_pair(square, variance, dimension) or line


def near_gaussian_pair(square: int, variance: Fraction, dimension: int) -> NearGaussianPair | None:
    """Return Gaussian pairs above and below (Theorem D of docs/mechanisms/discrete-gaussian.md).

    Returns None if its hypotheses fail, as they do for little noise.
    """
    # c = 5 d 2^-j, w = j / 28: the three hypotheses of the theorem, squared
    needed = max(784 * 140**2 * variance**3, 1650 * square / variance, Fraction(500**2))
    bits = math.ceil(needed * dimension**2).bit_length()
    width = (bits + 1) // 2 * VARIANCE_UNIT
    if variance < 4 * width:
        return None
    above = square / (variance - width - VARIANCE_UNIT)
    below = _attained_square(square, dimension) / (variance + width * variance / (variance - width) + VARIANCE_UNIT)
    return NearGaussianPair.of_squares(above, below)


def _attained_square(square: int, dimension: int) -> int:
    """Return the squared length of an integer vector, at most this; largest coordinates first."""
    rest = square
    for _ in range(dimension):
        if not rest:
            break
        rest -= math.isqrt(rest) ** 2
    return square - rest
