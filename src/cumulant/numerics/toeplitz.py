"""Squared sensitivities and Gram matrices of a lower triangular Toeplitz matrix.

The first column of the matrix C is all that is needed. Letters: c = first column of |C|, n = steps, S_j = {j, j+b, j+2b, ...},
m_j = SUM of the columns in S_j (the mode of bin j).

For a Toeplitz matrix m_j is m_0 shifted by j rows and cut at row n. So with A_e(L) = SUM_{i < L} m_0[i] m_0[i+e]

    <m_j, m_k> = A_{k-j}(n - k)   for j <= k,

which grows with L: the largest product at distance e is that of bins 0 and e, the least one that of the last two such bins.

Entries are integers over one denominator. Where a column is no short list of fractions, two integers enclose each entry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import root
from cumulant.numerics.matrices import short_above, short_below

Integers = np.ndarray[Any, np.dtype[np.object_]]
"""Whole numbers of any length."""

Floats = np.ndarray[Any, np.dtype[np.float64]]

FRACTION_BITS = 192
"""Bits behind the point of entries that are enclosed; convention: 1e5 entries then lose 2^-175, below all printed digits."""

_LONGEST_DENOMINATOR = 256
"""Bits of a common denominator up to which a column is kept exactly; measured: longer integers cost more than they tell."""

_MOST_PRODUCTS = 3_000_000
"""Products of integers in one Gram matrix; measured: half a second. More are evaluated in floats, rounded outward."""

_MOST_FLOAT_PRODUCTS = 2_000_000_000
"""Products of floats in one Gram matrix; measured: two seconds. Beyond it small distances are left to the largest class."""

_LONGEST_PROJECTION = 10**6
"""Steps up to which modes are projected on their sum; measured: a tenth of a second."""

_LEVELS = 12
"""Distinct shifts of a projection; measured: a mixture of more of them composes no better and takes longer."""


@dataclass(frozen=True, slots=True)
class Range:
    """Two fractions that enclose a number; they are equal where it is known exactly."""

    lower: Fraction
    upper: Fraction

    @property
    def exact(self) -> bool:
        """Return True if both ends are one number."""
        return self.lower == self.upper


@dataclass(frozen=True, slots=True)
class BinGram:
    """Inner products of the modes of all bins.

    The largest ones are rounded up, the least ones rounded down. `by_distance` has the largest <m_j, m_k> for every |j - k| at
    which it is not 0. `projections` are lists of (shift, number of bins), rounded down: what the modes are on one line, as
    multiples of the unit vector of that line.
    """

    bins: int
    diagonal: Fraction
    by_distance: Mapping[int, Fraction]
    least_diagonal: Fraction
    least_product: Fraction
    projections: tuple[tuple[tuple[Fraction, int], ...], ...]

    def largest_product(self, classes: int) -> Fraction:
        """Return the largest <m_j, m_k> of two different bins in one class.

        Bins j and k are in one class if j = k modulo the number of classes.
        """
        return max(
            (each for distance, each in self.by_distance.items() if distance % classes == 0), default=Fraction(0)
        )


@dataclass(frozen=True, slots=True, eq=False)
class ToeplitzFactor:
    """A lower triangular Toeplitz matrix of `steps` rows.

    Two integers enclose the absolute value of each entry of its first column.

    >>> factor = ToeplitzFactor.from_bands((Fraction(1), Fraction(1, 2)), steps=4)
    >>> factor.column_square().upper, factor.periodic_square(2).upper, factor.separated_square(2, most=1).upper
    (Fraction(5, 4), Fraction(5, 2), Fraction(5, 4))
    """

    lower: Integers
    upper: Integers
    unit: int
    steps: int
    nonnegative: bool

    @classmethod
    def from_bands(cls, bands: Sequence[Fraction], steps: int) -> ToeplitzFactor:
        """Return the matrix with these numbers in its first column and 0 below them.

        Numbers beyond the last row are cut.
        """
        return _from_bands(tuple(bands[:steps]), steps)

    @classmethod
    def from_blt(cls, weights: Sequence[Fraction], decays: Sequence[Fraction], steps: int) -> ToeplitzFactor:
        """Return the buffered linear Toeplitz matrix of these weights and decays.

        Its first column has c_0 = 1 and c_i = SUM_r w_r th_r^{i-1}.
        """
        return _from_blt(tuple(weights), tuple(decays), steps)

    @property
    def bands(self) -> int:
        """The number of entries of the first column up to the last one that is not 0."""
        return len(self.upper)

    def absolute(self) -> ToeplitzFactor:
        """Return |C|, all that is kept of it."""
        return replace(self, nonnegative=True)

    # ---- sensitivities

    def column_square(self) -> Range:
        """Return the largest squared norm of a column, which is that of the first one."""
        return self._range(int((self.lower * self.lower).sum()), int((self.upper * self.upper).sum()))

    def periodic_square(self, gap: int) -> Range:
        """Return |m_0|^2, the largest squared norm of a sum of every gap-th column."""
        ends = [_products(self._mode(column, gap), gap, 0, self.steps) for column in (self.lower, self.upper)]
        found = self._range(*ends)
        return found if self.nonnegative or gap >= self.bands else Range(Fraction(0), found.upper)

    def separated_square(self, gap: int, most: int) -> Range:
        """Return the largest SUM |X_st| over at most `most` steps, or a bound of it.

        The steps are at least `gap` apart. Exact for a column that does not grow (Kalinin and Lampert 2024) and where no two
        of the steps share a row; else the least majorant of the column that does not grow is used, which is a bound.
        """
        count = min(most, -(-self.steps // gap))
        column = self.upper
        if gap < self.bands:
            column = np.maximum.accumulate(column[::-1])[::-1]
        found = self._range(*(self._together(each, gap, count) for each in (self.lower, column)))
        # the steps 0, gap, 2 gap, ... are allowed, so that what they need is a lower end
        return found if self.nonnegative or gap >= self.bands else Range(Fraction(0), found.upper)

    def _together(self, column: Integers, gap: int, count: int) -> int:
        """The squared norm of the sum of the columns 0, gap, 2 gap, ..., so many of them."""
        head = self._mode(column, gap)
        if count * gap >= self.steps:
            return _products(head, gap, 0, self.steps)
        size = min(self.steps, (count - 1) * gap + len(column))
        whole = _unrolled(head, gap, size)
        mode = whole.copy()
        mode[count * gap :] -= whole[: max(size - count * gap, 0)]
        return int((mode * mode).sum())

    def full_columns(self, gap: int) -> int:
        """Return how many of the columns 0, gap, 2 gap, ... have all bands.

        These columns end before the last row.
        """
        return max(0, (self.steps - self.bands) // gap + 1)

    def least_column_sum(self) -> Fraction:
        """Return the sum of the entries of a column that has all bands, rounded down."""
        return short_below(Fraction(int(self.lower.sum()), self.unit))

    # ---- bins

    def bins(self, count: int) -> BinGram:
        """Return the Gram matrix of `count` bins, each of which takes every count-th step."""
        return _bins(self, count)

    def _mode(self, column: Integers, gap: int) -> Integers:
        """Return the head of `_products`.

        It is m_0 up to where it repeats itself every `gap` rows, and two periods more.
        """
        settled = -(-len(column) // gap) * gap
        rows = min(self.steps, settled + 2 * gap)
        table = np.zeros(-(-rows // gap) * gap, dtype=object)
        filled = min(len(column), rows)
        table[:filled] = column[:filled]
        return np.asarray(np.cumsum(table.reshape(-1, gap), axis=0).ravel()[:rows])

    def _range(self, lower: int, upper: int) -> Range:
        if lower == upper:
            return Range(Fraction(lower, self.unit**2), Fraction(upper, self.unit**2))
        return Range(short_below(Fraction(lower, self.unit**2)), short_above(Fraction(upper, self.unit**2)))


@lru_cache(maxsize=64)
def _from_bands(bands: tuple[Fraction, ...], steps: int) -> ToeplitzFactor:
    """Return the factor with this first column, exact if its denominators are short."""
    while len(bands) > 1 and not bands[-1]:
        bands = bands[:-1]
    unit = math.lcm(*(band.denominator for band in bands))
    positive = all(band >= 0 for band in bands)
    if unit.bit_length() <= _LONGEST_DENOMINATOR:
        exact = _integers([abs(int(band * unit)) for band in bands])
        return ToeplitzFactor(exact, exact, unit, steps, positive)
    scaled = [abs(band) * 2**FRACTION_BITS for band in bands]
    return ToeplitzFactor(
        _integers([math.floor(each) for each in scaled]),
        _integers([math.ceil(each) for each in scaled]),
        2**FRACTION_BITS,
        steps,
        positive,
    )


@lru_cache(maxsize=16)
def _from_blt(weights: tuple[Fraction, ...], decays: tuple[Fraction, ...], steps: int) -> ToeplitzFactor:
    """Each power is rounded down: after i steps it is too small by at most i + 1 units."""
    low, high = [0] * steps, [0] * steps
    unit = 2**FRACTION_BITS
    for weight, decay in zip(weights, decays, strict=True):
        top, bottom = abs(decay).numerator, abs(decay).denominator
        power = math.floor(abs(weight) * unit)
        positive, flips = weight >= 0, decay < 0
        for i in range(1, steps):
            if positive:
                low[i] += power
                high[i] += power + i
            else:
                low[i] -= power + i
                high[i] -= power
            power = power * top // bottom
            positive ^= flips
    low[0] = high[0] = unit
    positive = all(each >= 0 for each in low)
    least = [max(a, -b, 0) for a, b in zip(low, high, strict=True)]
    most = [max(abs(a), abs(b)) for a, b in zip(low, high, strict=True)]
    return ToeplitzFactor(_integers(least), _integers(most), unit, steps, positive)


def _integers(values: Sequence[int]) -> Integers:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _products(head: Integers, period: int, distance: int, length: int) -> int:
    """Return SUM_{i < length} m[i] m[i + distance].

    m is the head, followed by its last `period` rows over and over.
    """
    known = len(head) - distance
    if length <= known:
        return int((head[:length] * head[distance : distance + length]).sum())
    settled = len(head) - 2 * period
    first = head[: settled + period] * head[distance : settled + period + distance]
    start, cycle = first[:settled], first[settled:]
    rounds, rest = divmod(length - settled, period)
    return int(start.sum()) + rounds * int(cycle.sum()) + int(cycle[:rest].sum())


def _unrolled(head: Any, period: int, length: int) -> Any:
    """The first rows of m, of which the head is known and the last period repeats itself."""
    if length <= len(head):
        return head[:length].copy()
    more = np.tile(head[len(head) - period :], -(-(length - len(head)) // period))
    return np.concatenate([head, more])[:length]


@lru_cache(maxsize=64)
def _bins(factor: ToeplitzFactor, count: int) -> BinGram:
    """Return bounds of the inner products of the sums of every `count`-th column."""
    steps, bands, last = factor.steps, factor.bands, min(count, factor.steps)
    near, far = range(1, min(bands, last)), range(max(count - bands + 1, 1), last)
    distances = sorted({*near, *(far if steps > count else ())})
    head = factor._mode(factor.upper, count)
    late = steps - last + 1
    if len(distances) * min(len(head), steps) <= _MOST_PRODUCTS:
        unit = factor.unit**2
        by_distance = {e: _up(_products(head, count, e, steps - e), unit) for e in distances}
        low = factor._mode(factor.lower, count)
        least = min((_products(low, count, e, late) for e in distances), default=0) if len(distances) == last - 1 else 0
        ends = _products(low, count, 0, late), _products(head, count, 0, steps)
        products = {e: _down(_products(low, count, e, steps - e), unit) for e in distances}
        diagonal, least_diagonal, least_product = _up(ends[1], unit), _down(ends[0], unit), _down(least, unit)
    else:
        mode = _unrolled(_above(head, factor.unit), count, steps)
        slack = Fraction(steps + 8, 2**52)
        every = max(1, -(-len(distances) * steps // _MOST_FLOAT_PRODUCTS))
        kept = [e for e in distances if e % every == 0 or every == 1]
        found = {e: Fraction(float(mode[: steps - e] @ mode[e:])) for e in kept}
        by_distance = {e: short_above(value * (1 + slack) + _UNDERFLOW) for e, value in found.items()}
        diagonal = factor.periodic_square(count).upper
        if every > 1:  # distances that were left out have the largest product there may be
            by_distance.update({e: diagonal for e in distances if e not in by_distance})
        products = {}
        least_diagonal = least_product = Fraction(0)
    return BinGram(
        count, diagonal, by_distance, least_diagonal, least_product, _projections(factor, count, products, diagonal)
    )


_UNDERFLOW = Fraction(1, 2**900)
"""More than products of floats may lose by underflow; derived: 1e7 of them, each below 2^-1022."""


def _up(value: int, unit: int) -> Fraction:
    return short_above(Fraction(value, unit))


def _down(value: int, unit: int) -> Fraction:
    return short_below(Fraction(value, unit))


def _above(values: Integers, unit: int) -> Floats:
    """The quotients as floats that are not below them."""
    return np.asarray(np.nextafter((values / unit).astype(np.float64), np.inf))


def _projections(
    factor: ToeplitzFactor, count: int, products: Mapping[int, Fraction], diagonal: Fraction
) -> tuple[tuple[tuple[Fraction, int], ...], ...]:
    """Return the modes on the line of m_0, and on that of their sum.

    The tuple lacks those that are not known from below.
    """
    bins = min(count, factor.steps)
    onto_first = [Fraction(0)] * bins
    norm = root(diagonal)
    onto_first[0] = (
        norm[0] if factor.lower is factor.upper else short_below(factor.periodic_square(count).lower / norm[1])
    )
    for distance, product in products.items():
        onto_first[distance] = short_below(product / norm[1])
    found = [levelled(onto_first)]
    if factor.steps <= _LONGEST_PROJECTION:
        found.append(_onto_sum(factor, count, bins))
    return tuple(each for each in found if each)


def _onto_sum(factor: ToeplitzFactor, count: int, bins: int) -> tuple[tuple[Fraction, int], ...]:
    """Return <m_j, v> / |v| with v = C 1, in floats rounded down.

    The bins come in blocks, each with the least value of its bins.
    """
    steps = factor.steps
    slack = 1 - (steps + 64) * 2.0**-50
    mode = _unrolled(np.nextafter((factor._mode(factor.lower, count) / factor.unit).astype(float), 0), count, steps)
    low, high = (np.cumsum(_filled((each / factor.unit).astype(float), steps)) for each in (factor.lower, factor.upper))
    norm = math.sqrt(float(high @ high)) / slack
    block, found = max(1, -(-bins // _LEVELS)), []
    for start in range(0, bins, block):
        stop = min(start + block, bins)
        rows = steps - (stop - 1)
        shift = float(mode[:rows] @ low[start : start + rows]) * slack * slack / norm
        found.append((Fraction(max(shift, 0.0)), stop - start))
    return tuple(found)


def _filled(values: Floats, length: int) -> Floats:
    found = np.zeros(length)
    found[: len(values)] = values
    return found


def levelled(shifts: Sequence[Fraction]) -> tuple[tuple[Fraction, int], ...]:
    """Return shifts with their numbers, rounded down to at most a dozen values."""
    values = sorted(shifts, reverse=True)
    distinct = sorted(set(values), reverse=True)
    if len(distinct) > _LEVELS:
        kept = [distinct[i * len(distinct) // _LEVELS] for i in range(_LEVELS - 1)] + [distinct[-1]]
        values = [next(level for level in kept if level <= value) for value in values]
    counts: dict[Fraction, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return tuple(counts.items())
