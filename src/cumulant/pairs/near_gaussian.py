"""Gaussian pairs above discrete Gaussian and Skellam noise, and below the first."""

from __future__ import annotations

import math
from fractions import Fraction

from cumulant.pairs.discrete_gaussian import DiscreteGaussianPair
from cumulant.pairs.gaussian import NearGaussianPair
from cumulant.pairs.pair import Pair
from cumulant.pairs.skellam import SkellamPair

VARIANCE_UNIT = Fraction(1, 28)
"""The unit in which variance is given away; derived: e^{-2 pi^2 / 28} < 1/2, because 2 pi^2 / log 2 = 28.4."""

DISCRETE_LOSS = Fraction(1, 8)
"""Variance that discrete Gaussian noise lacks; derived in Theorem S, any number above 1/pi^2 at large variances."""

SKELLAM_LOSS = Fraction(6, 5)
"""Variance that Skellam noise lacks; derived in Theorem S: 1/2 + 0.53 + 1/8, rounded up."""

LEAST_DISCRETE_VARIANCE = 1
"""Least variance parameter of discrete Gaussian noise for Theorem S; its hypothesis."""

LEAST_SKELLAM_VARIANCE = 5
"""Least variance of Skellam noise for Theorem S; its hypothesis."""


def discrete_gaussian_pair(square: int, variance: Fraction, dimension: int | None, size: int = 1) -> Pair | None:
    """Return a pair that dominates noise on integer vectors; None if none is known.

    Neighbours differ by an integer vector whose squared length is at most `square`, groups by `size` of them. Where only one
    coordinate can move it is the pair of the two laws if a grid can hold it, else a Gaussian pair.

    >>> discrete_gaussian_pair(1, Fraction(10**8), 3).gaussian_shift() > Fraction(1, 10**4)
    True
    """
    one = dimension == 1 or square <= 1
    line = DiscreteGaussianPair(math.isqrt(square) * size, variance) if one else None
    if line is not None and line.has_grid:
        return line
    return line if not square else near_gaussian_pair(square, variance, dimension, size) or line


def near_gaussian_pair(
    square: int, variance: Fraction, dimension: int | None = None, size: int = 1
) -> NearGaussianPair | None:
    """Return Gaussian pairs above (Theorem S) and below (Theorem D) discrete Gaussian noise.

    The theorems are in docs/mechanisms/discrete-gaussian.md. Returns None if the variance is below 1. With an unknown
    dimension the lower one moves one coordinate.
    """
    if variance < LEAST_DISCRETE_VARIANCE:
        return None
    above = square * size**2 / (variance - DISCRETE_LOSS)
    coordinates = 1 if dimension is None else min(dimension, square)
    # a group moves a multiple of one attained vector: the square of the whole distance may be out of its reach
    attained = _attained_square(square, coordinates) * size**2
    return NearGaussianPair.of_squares(above, _square_below(attained, variance, coordinates))


def skellam_pair(square: int, variance: Fraction, one: bool, size: int = 1) -> Pair | None:
    """Return a pair that dominates Skellam noise on integer vectors; None if none is known.

    `one` says that only one coordinate can move. Then it is the pair of the two laws if a grid can hold it. A Gaussian pair
    (Theorem S of docs/mechanisms/skellam.md) answers otherwise, without a lower end.

    >>> skellam_pair(4, Fraction(10**8), False).gaussian_shift() > Fraction(2, 10**4)
    True
    """
    line = SkellamPair(math.isqrt(square) * size, variance) if one else None
    if line is not None and (line.has_grid or not square or variance < LEAST_SKELLAM_VARIANCE):
        return line
    if not square or variance < LEAST_SKELLAM_VARIANCE:
        return None
    return NearGaussianPair.of_squares(square * size**2 / (variance - SKELLAM_LOSS), Fraction(0))


def _square_below(square: int, variance: Fraction, dimension: int) -> Fraction:
    """Return the squared shift of a Gaussian pair that two of the laws dominate.

    Returns 0 if the hypotheses of Theorem D fail, as they do for little noise. `square` is the squared length of an integer
    vector by which neighbours differ.
    """
    # c = 5 d 2^-j, w = j / 28: the three hypotheses of the theorem, squared
    needed = max(784 * 140**2 * variance**3, 1650 * square / variance, Fraction(500**2))
    bits = math.ceil(needed * dimension**2).bit_length()
    width = (bits + 1) // 2 * VARIANCE_UNIT
    if variance < 4 * width:
        return Fraction(0)
    return square / (variance + width * variance / (variance - width) + VARIANCE_UNIT)


def _attained_square(square: int, dimension: int) -> int:
    """Return the squared length of an integer vector, at most this; largest coordinates first."""
    rest = square
    for _ in range(dimension):
        if not rest:
            break
        rest -= math.isqrt(rest) ** 2
    return square - rest
