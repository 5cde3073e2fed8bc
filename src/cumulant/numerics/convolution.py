"""Products of sequences of positive numbers, by direct sums.

Transforms are not used, so that every term keeps its relative accuracy."""

from __future__ import annotations

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import U

_BLOCK = 64
"""Terms of one inner product. Derived: the rounding of a sum grows with block + blocks, least near the root of the length."""

_SINGLE_THREAD = 1 << 18
"""Multiplications up to which OpenBLAS multiplies matrices in the calling thread: its 65,536 times 4. Measured: on a busy
machine a product of 8192 cells takes 5 ms of processor time, with threads 16."""

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
    if a.size <= _BLOCK:
        return without_dust(np.convolve(b, a)), (_BLOCK + 3) * U
    blocks = -(-a.size // _BLOCK)
    chunk = 1 << max(_SINGLE_THREAD // (blocks * _BLOCK), 8).bit_length() - 1
    chunks = -(-(b.size + _BLOCK - 1) // chunk)
    width = chunks * chunk
    rows = np.zeros(blocks * _BLOCK)
    rows[: a.size] = a
    padded = np.zeros(width + _BLOCK - 1)
    padded[_BLOCK - 1 : _BLOCK - 1 + b.size] = b
    shifted = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(padded, width)[::-1])
    products = np.empty((blocks, width))
    # one product of all columns would wake every thread of BLAS, which takes four times the processor time (measured)
    parts = products.reshape(blocks, chunks, chunk).transpose(1, 0, 2)
    np.matmul(rows.reshape(blocks, _BLOCK), shifted.reshape(_BLOCK, chunks, chunk).transpose(1, 0, 2), out=parts)
    total = np.zeros(blocks * _BLOCK + width)
    for i in range(blocks):
        total[i * _BLOCK : i * _BLOCK + width] += products[i]
    return without_dust(total[: a.size + b.size - 1]), (_BLOCK + blocks + 2) * U


def without_dust(values: Array) -> Array:
    """Set numbers below `SMALLEST` to 0."""
    values[values < SMALLEST] = 0.0
    return values
