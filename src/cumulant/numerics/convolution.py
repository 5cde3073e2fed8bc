"""Products of sequences of positive numbers, by direct sums.

Transforms are not used, so that every term keeps its relative accuracy."""

from __future__ import annotations

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import U

_BLOCK = 64
"""Terms of one inner product. Derived: the rounding of a sum grows with block + blocks, least near the root of the length."""

SMALLEST = 1e-290
"""Numbers below it are set to 0, so that no sum is slowed down by denormal floats. Callers count what that loses."""


def convolve_positive(a: Array, b: Array) -> tuple[Array, float]:
    """Return the convolution of two nonnegative sequences and a bound of its relative error.

    The bound holds for every entry. The sum over j of a[j] b[k-j] is a matrix product: blocks of a, times shifted copies of b.
    Every entry is then a sum of inner products, and its error is at most (block + number of blocks + 2) units, in whichever
    order the terms are added.

    >>> convolve_positive(np.array([1.0, 2.0]), np.array([1.0, 3.0, 1.0]))[0]
    array([1., 5., 7., 2.])
    """
    if a.size > b.size:
        a, b = b, a
    blocks, width = -(-a.size // _BLOCK), (-(-b.size // _BLOCK) + 1) * _BLOCK
    rows = np.zeros(blocks * _BLOCK)
    rows[: a.size] = a
    padded = np.zeros(width + _BLOCK - 1)
    padded[_BLOCK - 1 : _BLOCK - 1 + b.size] = b
    shifted = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(padded, width)[::-1])
    products = rows.reshape(blocks, _BLOCK) @ shifted
    total = np.zeros(blocks * _BLOCK + width)
    for i in range(blocks):
        total[i * _BLOCK : i * _BLOCK + width] += products[i]
    return without_dust(total[: a.size + b.size - 1]), (_BLOCK + blocks + 2) * U


def without_dust(values: Array) -> Array:
    """Set numbers below `SMALLEST` to 0."""
    values[values < SMALLEST] = 0.0
    return values
