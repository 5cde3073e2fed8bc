"""Exact squares of norms |C x|, C lower triangular, x changed by unit vectors in some rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.domains import COUNT, Exact, listed
from cumulant.errors import InputError, shown

Matrix = Any
"""Rows of numbers: lists, or an array."""

Participation = str | tuple[Any, ...]
"""In which rows of x: "once", ("every", b) or ("apart", b, k)."""

MOST_ENTRIES = 4 * 10**6
"""Entries of a matrix; a bound of memory."""

SHORT_DIGITS = 40
"""Significant digits to which a long squared norm is rounded up."""


def largest_square(matrix: Matrix, participation: Participation) -> Fraction:
    """Return the largest |C d|^2, d with unit vectors in the rows that take part, else 0.

    The result is slightly larger if the exact one is no short number.

    That is the largest sum over these rows s, t of X_st <d_s, d_t> <= SUM |X_st|, X = C^T C, which is attained where no X_st is
    negative. Columns of a b-banded C that are at least b apart are orthogonal.

    >>> largest_square([[1, 0], [1, 1]], "once"), largest_square([[1, 0], [1, 1]], ("every", 1))
    (Fraction(2, 1), Fraction(5, 1))
    """
    columns, unit = read_columns(matrix)
    steps, kind, numbers = len(columns), *_participation(participation)
    if kind == "once":
        found = max(sum(each * each for each in column) for column in columns)
    elif kind == "every":
        found = max(_together(columns, range(first, steps, numbers[0])) for first in range(min(numbers[0], steps)))
    else:
        apart, times = numbers
        width = max(row - i for i, column in enumerate(columns) for row, each in _entries(column, i) if each)
        if width >= apart and times > 1:
            raise InputError(
                f'participation=("apart", {apart}, {times}) needs a {apart}-banded matrix, and this one has a number '
                f"{width} rows below the diagonal; state a separation of {width + 1} at least"
            )
        found = min(times, -(-steps // apart)) * max(sum(each * each for each in column) for column in columns)
    if not found:
        raise InputError("the matrix is 0, so that nothing is released")
    return short_above(Fraction(found) * unit**2)


def _together(columns: list[list[int]], pattern: range) -> int:
    """Return SUM |X_st| over all s and t of the pattern."""
    total = 0
    for i, s in enumerate(pattern):
        for t in pattern[i:]:
            # a column is 0 above its own row
            inner = abs(sum(a * b for a, b in zip(columns[s][t:], columns[t][t:], strict=True)))
            total += inner if s == t else 2 * inner
    return total


def _entries(column: list[int], first: int) -> Iterator[tuple[int, int]]:
    return ((row, column[row]) for row in range(first, len(column)))


def read_columns(matrix: Matrix) -> tuple[list[list[int]], Fraction]:
    """Return the columns as multiples of one number, and that number.

    Raises InputError unless the matrix is square and lower triangular.
    """
    rows = [listed(f"matrix[{i}]", row) for i, row in enumerate(listed("matrix", matrix))]
    size = len(rows)
    if not size or any(len(row) != size for row in rows):
        raise InputError(
            f"matrix must be square, and has rows of {', '.join(sorted({str(len(row)) for row in rows}))} numbers"
        )
    if size * size > MOST_ENTRIES:
        raise InputError(
            f"matrix has {size * size} entries; at most {MOST_ENTRIES}: give the squared sensitivity itself"
        )
    if isinstance(matrix, np.ndarray) and matrix.dtype.kind == "f":
        rows = matrix.tolist()
    zero = Exact(0)
    exact = [[zero if each == 0 and not isinstance(each, str) else Exact(each) for each in row] for row in rows]
    for i, row in enumerate(exact):
        if any(row[i + 1 :]):
            raise InputError(f"matrix must be lower triangular, and row {i} has a number right of the diagonal")
    scale = math.lcm(*(each.denominator for row in exact for each in row))
    columns = [[int(exact[row][i] * scale) if row >= i else 0 for row in range(size)] for i in range(size)]
    return columns, Fraction(1, scale)


def _participation(value: Participation) -> tuple[str, tuple[int, ...]]:
    if isinstance(value, str) and value == "once":
        return "once", ()
    if isinstance(value, tuple | list) and value and isinstance(value[0], str) and value[0] in ("every", "apart"):
        names = {"every": ("b",), "apart": ("b", "k")}[str(value[0])]
        if len(value) == 1 + len(names):
            return str(value[0]), tuple(
                int(COUNT.check(name, each)) for name, each in zip(names, value[1:], strict=True)
            )
    raise InputError(
        f'participation={shown(value)} is unknown; write "once", ("every", b) for one of b steps in every epoch, or '
        '("apart", b, k) for at most k steps at least b apart'
    )


def short_above(value: Fraction) -> Fraction:
    """Return the value, or a decimal just above it where it has many digits."""
    scale = _scale(value)
    return value if scale is None else Fraction(math.ceil(value * scale)) / scale


def short_below(value: Fraction) -> Fraction:
    """Return the value, or a decimal just below it where it has many digits."""
    scale = _scale(value)
    return value if scale is None else Fraction(math.floor(value * scale)) / scale


def _scale(value: Fraction) -> Fraction | None:
    """Return the power of ten that keeps 40 digits of the value; None where the value is short."""
    if max(value.numerator, value.denominator) < 10 ** (2 * SHORT_DIGITS):
        return None
    digits = (
        SHORT_DIGITS - math.floor(math.log10(value.numerator) - math.log10(value.denominator))
        if value
        else SHORT_DIGITS
    )
    return Fraction(10) ** digits
