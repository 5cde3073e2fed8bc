"""Clipping in integers and Gaussian noise that is rounded exactly: a noisy sum to which the theorems apply as they stand.

A float sum with float noise reveals by its last bits which sum the noise was added to. Here the sum is one of integers, whose
sensitivity is checked in integer arithmetic, and the noise is that of the ideal mechanism: the result is the nearest integer to
(sum + sigma Z), a function of what the ideal Gaussian mechanism would release. Timing is outside of the guarantee.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.domains import POSITIVE, Exact, Number
from cumulant.errors import CertificateError, InputError, shown
from cumulant.numerics.arithmetic import BALLS
from cumulant.training.quantile import LEAST, quantile, table

UNITS = 2**20
"""Steps of the grid from 0 to the clipping norm, unless another grid is given."""

MOST_UNITS = 2**24
MARGIN = 2.0**-30
"""The part of the norm by which vectors are clipped shorter than allowed, so that rounding does not make them offenders."""

BLOCK = 2**62
"""A sum of squares of so much fits into 64 bits."""

LARGEST_SIGMA = Fraction(2**40)
LARGEST_SUM = 2**61
MOST_BITS = 4096

Integers = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Words = np.ndarray[Any, np.dtype[np.uint64]]


def clipped(gradients: Any, norm: Number, grid: Number | None = None) -> Integers:
    """Each row clipped to an L2 norm and cut to whole multiples of `grid`, as integers; sum them, add noise, times the grid.

    The grid is norm / 2^20 unless given. Rows are scaled in float64 to a little less than the norm and cut towards zero; then
    the sum of squares of every row is compared with (norm / grid)^2 in integers, and an offender is set to 0. So is a row
    with an entry that is not finite: a number or an error would tell of that one record. The L2 sensitivity of the sum of
    rows is exactly norm / grid under add/remove and twice that under replace-one, whatever the gradients are.

    >>> rows = clipped([[3.0, 4.0], [0.1, 0.0], [float("nan"), 1.0]], norm=1, grid="1/1000")
    >>> rows
    array([[599, 799],
           [100,   0],
           [  0,   0]])
    """
    clip = POSITIVE.check("norm", norm)
    step = Exact(clip / UNITS) if grid is None else POSITIVE.check("grid", grid)
    units = clip / step
    if not 1 <= units <= MOST_UNITS:
        raise InputError(f"grid={step} must be at most norm={clip} and at least 2^-24 of it")
    rows = _rows(gradients)
    with np.errstate(all="ignore"):
        # scaled by the largest entry first, so that no square overflows or vanishes
        largest = np.max(np.abs(rows), axis=1, initial=0.0)
        scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        lengths = scale * np.sqrt(
            np.array([float(np.sum((row / each) ** 2)) for row, each in zip(rows, scale, strict=True)])
        )
        allowed = float(units) * (1 - MARGIN)
        # a row that is short enough keeps its length: it is only put into units
        unit = float(step)
        factors = np.where(lengths > allowed * unit, allowed / np.where(lengths > 0, lengths, 1.0), 1 / unit)
        result = np.empty(rows.shape, dtype=np.int64)
        for i, row in enumerate(rows):
            result[i] = _truncated(row * factors[i], float(units))
    for i in range(len(result)):
        if not _within(result[i], units):
            result[i] = 0
    return result


def _rows(gradients: Any) -> Floats:
    try:
        rows = np.asarray(gradients, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"gradients must be numbers, one row per record: {error}") from error
    if rows.ndim != 2:
        raise InputError(f"gradients of shape {rows.shape} must have two axes: one row per record, flattened")
    return rows


def _truncated(row: Floats, units: float) -> Integers:
    """Towards zero; what is no number, or too large for an integer, is put beyond the norm, so that the check sees it."""
    return np.trunc(np.clip(np.nan_to_num(row, nan=2 * units), -2 * units, 2 * units)).astype(np.int64)


def _within(row: Integers, units: Fraction) -> bool:
    """Whether the L2 norm of integers is at most this, in integers: entries first, then squares in blocks that cannot wrap."""
    most = int(units)  # entries are whole, so they are below the norm if they are below its whole part
    if row.size and not -most <= int(row.min()) <= int(row.max()) <= most:  # no abs: of -2^63 it is -2^63
        return False
    block = BLOCK // (most * most)
    total = sum(int(np.sum(part * part)) for part in np.split(row, range(block, row.size, block)))
    return total <= units * units


def rounded_gaussian(integers: Any, sigma: Number, *, source: Callable[[int], bytes] = secrets.token_bytes) -> Integers:
    """round(S + sigma Z) for integers S, each with its own ideal standard normal Z: exactly, not up to a float.

    Z = Phi^-1(U) for a uniform U of which as many secret bits are taken as the rounding needs: 64 and a polynomial with a
    proved error decide nearly all, balls and further bits of the same U the rest. So the result is a function of what the
    ideal Gaussian mechanism releases, and every theorem about that holds for it. `sigma` is in units of the integers: with
    noise multiplier z and `clipped(…, norm, grid)`, sigma = z * norm / grid.

    `source` returns so many random bytes, the operating system's by default. Noise must never be derived from a stored key.

    >>> noisy = rounded_gaussian([[0, 1_000_000]], sigma=1000)
    >>> noisy.dtype, noisy.shape, abs(int(noisy[0, 1]) - 1_000_000) < 10_000
    (dtype('int64'), (1, 2), True)
    """
    scale = POSITIVE.check("sigma", sigma)
    if scale > LARGEST_SIGMA:
        raise InputError(f"sigma={scale} must be at most 2^40 units of the integers; use a coarser grid")
    sums = np.asarray(integers)
    if sums.dtype.kind not in "iu":
        raise InputError(f"integers={shown(integers)} must be integers, such as sums of rows of clipped(…)")
    if sums.size and not -LARGEST_SUM <= int(sums.min()) <= int(sums.max()) <= LARGEST_SUM:
        raise InputError("integers must lie between -2^61 and 2^61, so that noise cannot wrap them; use a coarser grid")
    words = np.frombuffer(_bytes(source, 8 * sums.size), dtype="<u8").astype(np.uint64, copy=False)
    noise, undecided = fast_noise(words, scale)
    for i in np.flatnonzero(undecided):
        noise[i] = exact_noise(int(words[i]), scale, source)
    return sums.astype(np.int64) + noise.reshape(sums.shape)


def _bytes(source: Callable[[int], bytes], size: int) -> bytes:
    found = source(size)
    if not isinstance(found, bytes | bytearray) or len(found) != size:  # type: ignore[redundant-expr]
        raise InputError(f"source({size}) must return {size} random bytes")
    return bytes(found)


def fast_noise(words: Words, sigma: Fraction) -> tuple[Integers, np.ndarray[Any, np.dtype[np.bool_]]]:
    """The nearest integers to sigma Z, and where 64 bits and floats do not decide them.

    The top bit of a word is the sign of Z; the others, w, say that P[|normal| > |Z|] / 2 lies in [w, w + 1] / 2^64.
    """
    magnitude = words & np.uint64(2**63 - 1)
    deep = magnitude < np.uint64(2**LEAST)
    value, error = table()(np.where(deep, np.uint64(2**LEAST), magnitude))
    scale = float(sigma)
    # y = sigma Q: sigma and the product are each rounded by 2^-53 of themselves, and everything here is far from subnormal
    y = scale * value
    off = (scale * error + np.abs(y) * 2.0**-51) * (1 + 2.0**-40)
    nearest = np.rint(y)
    undecided = deep | ~(np.abs(y - nearest) + off < 0.5)
    noise = np.where(undecided, 0.0, nearest).astype(np.int64)
    return np.where(words >> np.uint64(63) == 1, -noise, noise), undecided


def exact_noise(word: int, sigma: Fraction, source: Callable[[int], bytes]) -> int:
    """The nearest integer to sigma Z in balls, with further bits of the same U as long as its cell holds a boundary."""
    from flint import arb

    sign, low, bits = word >> 63, word & (2**63 - 1), 64
    while bits <= MOST_BITS:
        with BALLS.at(bits + 128):
            scale = BALLS.number(sigma)
            ends = [scale * quantile(arb(end) / arb(2) ** bits) for end in (low + 1, low)] if low else []
            nearest = {(end + arb(0.5)).floor().unique_fmpz() for end in ends}
        if len(nearest) == 1 and None not in nearest:
            return -int(nearest.pop()) if sign else int(nearest.pop())
        low = (low << 64) | int.from_bytes(_bytes(source, 8), "little")
        bits += 64
    raise CertificateError(f"{MOST_BITS} random bits did not decide one rounding; the source of randomness is broken")
