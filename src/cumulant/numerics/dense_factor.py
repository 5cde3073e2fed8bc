"""Squared sensitivities and Gram matrices of a lower triangular matrix.

The matrix C is given by its rows. Letters: X = C^T C, n = steps, S = the steps of one record. A record moves C x by at most
SUM_{s,t in S} |X_st|, and for secret steps the modes of |C| count. Small matrices are evaluated in integers, larger ones in
floats that are rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import root
from cumulant.numerics.matrices import read_columns, short_above, short_below
from cumulant.numerics.toeplitz import BinGram, Range, levelled

Entries = np.ndarray[Any, Any]
"""Integers of any length, or floats."""

_LARGEST_EXACT = 96
"""Rows up to which products are integers; measured: a quarter of a second for X. Larger matrices are rounded outward."""

_UNDERFLOW = Fraction(1, 2**900)
"""More than products of floats lose by underflow; derived: fewer than 2^100 of them, each below 2^-1022."""


@dataclass(frozen=True, slots=True, eq=False)
class DenseFactor:
    """A lower triangular matrix by its entries, which are multiples of `unit`.

    A small matrix has integers, a larger one floats.

    >>> factor = DenseFactor.from_rows(((1, 0), (1, 1)))
    >>> factor.column_square().upper, factor.periodic_square(1).upper, factor.bands
    (Fraction(2, 1), Fraction(5, 1), 2)
    """

    entries: Entries
    unit: Fraction
    slack: Fraction
    """The part by which sums of products of floats may be wrong; 0 for integers."""

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[Any]]) -> DenseFactor:
        """Return the factor with these rows; InputError unless they are square and lower triangular."""
        columns, unit = read_columns(rows)
        entries = np.empty((len(columns), len(columns)), dtype=object)
        for i, column in enumerate(columns):
            entries[:, i] = column
        if len(columns) <= _LARGEST_EXACT:
            return cls(entries, unit, Fraction(0))
        largest = max(abs(each) for column in columns for each in column) or 1
        scaled = (entries / largest).astype(np.float64)
        return cls(scaled, unit * largest, Fraction(len(columns) + 16, 2**50))

    @property
    def steps(self) -> int:
        """The number of rows."""
        return len(self.entries)

    @property
    def nonnegative(self) -> bool:
        """Return True if no entry is negative."""
        return bool((self.entries >= 0).all())

    @property
    def bands(self) -> int:
        """Return the number of bands, from the diagonal down to the last one that is not all 0."""
        rows, columns = np.nonzero(self.entries)
        return int((rows - columns).max(initial=0)) + 1

    def absolute(self) -> DenseFactor:
        """Return |C|."""
        return replace(self, entries=np.abs(self.entries))

    # ---- sensitivities

    def column_square(self) -> Range:
        """Return the largest squared norm of a column."""
        return self._range((self.entries * self.entries).sum(axis=0).max(), True)

    def periodic_square(self, gap: int) -> Range:
        """Return the largest SUM |X_st| over the steps j, j + gap, ..., j < gap."""
        products = self._products()
        largest = max(products[j::gap, j::gap].sum() for j in range(min(gap, self.steps)))
        return self._range(largest, self.nonnegative or gap >= self.bands)

    def separated_square(self, gap: int, most: int) -> Range:
        """Return a bound of SUM |X_st| over at most `most` steps that are at least `gap` apart.

        Exact for a matrix of at most `gap` bands, where it is a sum of diagonal entries; else the two-stage programme of
        Choquette-Choo et al. 2023, a bound: the best steps for each row of |X|, then the best steps for these sums.
        """
        products = self._products()
        banded = gap >= self.bands
        weights = products.diagonal() if banded else _best_steps(products, gap, most)
        found = _best_steps(weights[None, :], gap, most)[0]
        return self._range(found, banded)

    def full_columns(self, gap: int) -> int:
        """Return how many columns are known to have the largest norm: none."""
        return 0

    def least_column_sum(self) -> Fraction:
        """Return the least sum of a column that has all bands, rounded down."""
        least = np.abs(self.entries)[:, : self.steps - self.bands + 1].sum(axis=0).min()
        return max(short_below(Fraction(least) * self.unit * (1 - self.slack)), Fraction(0))

    def _products(self) -> Entries:
        """Return |X_st| of all columns s and t, rounded up."""
        found = np.abs(self.entries.T.dot(self.entries))
        if not self.slack:
            return np.asarray(found)
        size = np.abs(self.entries)
        return np.asarray(found + float(self.slack) * (size.T @ size))

    # ---- bins

    def bins(self, count: int) -> BinGram:
        """Return the Gram matrix of `count` bins, each of which takes every count-th step, of |C|."""
        size = np.abs(self.entries)
        used = min(count, self.steps)
        modes = np.stack([size[:, j::count].sum(axis=1) for j in range(used)], axis=1)
        gram = modes.T.dot(modes)
        up = 1 + self.slack
        by_distance = {e: self._scaled(gram.diagonal(e).max(), up) for e in range(1, used)}
        others = gram[~np.eye(used, dtype=bool)]
        least = self._scaled(others.min(), 1 - self.slack, below=True) if used > 1 else Fraction(0)
        projections = []
        for vector in (modes[:, int(np.argmax(gram.diagonal()))], modes.sum(axis=1)):
            norm = root(self._scaled((vector * vector).sum(), up))[1]
            shifts = [self._scaled(each, 1 - self.slack, below=True) / norm for each in modes.T.dot(vector)]
            projections.append(levelled([short_below(each) for each in shifts]))
        return BinGram(
            count,
            self._scaled(gram.diagonal().max(), up),
            {e: each for e, each in by_distance.items() if each},
            self._scaled(gram.diagonal().min(), 1 - self.slack, below=True),
            least,
            tuple(projections),
        )

    def _scaled(self, value: Any, factor: Fraction, below: bool = False) -> Fraction:
        lost = _UNDERFLOW if self.slack and not below else 0
        exact = (Fraction(value) + lost) * self.unit**2 * factor
        return short_below(exact) if below else short_above(exact)

    def _range(self, value: Any, attained: bool) -> Range:
        upper = self._scaled(value, 1 + self.slack)
        lower = self._scaled(value, 1 - 4 * self.slack, below=True) if attained else Fraction(0)
        return Range(upper if attained and not self.slack else max(lower, Fraction(0)), upper)


def _best_steps(weights: Entries, gap: int, most: int) -> Entries:
    """The largest sum of at most `most` entries of each row that are at least `gap` apart."""
    rows, steps = weights.shape
    zero = np.zeros(rows, dtype=weights.dtype)
    before = [zero] * (steps + 1)
    for _ in range(min(most, -(-steps // gap))):
        found = [zero]
        for t in range(steps):
            found.append(np.maximum(found[t], before[max(t + 1 - gap, 0)] + weights[:, t]))
        if all(bool((a == b).all()) for a, b in zip(found, before, strict=True)):
            break
        before = found
    return before[-1]


@lru_cache(maxsize=16)
def dense_factor(rows: tuple[tuple[Fraction, ...], ...]) -> DenseFactor:
    """Return the factor of these rows, which is remembered."""
    return DenseFactor.from_rows(rows)
