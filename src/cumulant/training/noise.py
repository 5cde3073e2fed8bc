"""Clipping in integers and Gaussian noise that is rounded exactly.

The theorems apply to this noisy sum as they stand.

A float sum with float noise reveals by its last bits which sum the noise was added to. Here the sum is one of integers, whose
sensitivity is checked in integer arithmetic, and the noise is that of the ideal mechanism: the result is the nearest integer to
(sum + sigma Z), a function of what the ideal Gaussian mechanism would release. Timing is outside of the guarantee.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.domains import POSITIVE, Exact, Number
from cumulant.errors import CertificateError, InputError, shown
from cumulant.numerics.arithmetic import BALLS
from cumulant.training.quantile import LEAST, Parabolas, quantile, table

UNITS = 2**20
"""Steps of the grid from 0 to the clipping norm, unless another grid is given."""

MOST_UNITS = 2**24
MARGIN = 2.0**-30
"""The part of the norm by which vectors are clipped shorter than allowed, so that rounding does not make them offenders."""

LARGEST_SQUARES = 2**62
"""A sum of squares up to this, plus a number up to this, fits into 64 bits."""

BLOCK_ENTRIES = 2**18
"""Entries that are clipped together, so that intermediate arrays stay in the cache; measured: 2^16 to 2^20 are as fast."""

LARGEST_QUICK_SIGMA = Fraction(2**25)
"""Above it 32 bits leave more than a tenth of all draws undecided."""

LEAST_QUICK_SIZE = 2**13
"""Below it making the parabolas takes longer than they save."""

MOST_THREADS = 8
THREAD_ENTRIES = 2**17
"""Draws that are worth a thread: about 3 milliseconds of work."""

LARGEST_SIGMA = Fraction(2**40)
LARGEST_SUM = 2**61
MOST_BITS = 4096

Integers = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Words = np.ndarray[Any, np.dtype[np.uint64]]
Words32 = np.ndarray[Any, np.dtype[np.int32]]


def clipped(gradients: Any, norm: Number, grid: Number | None = None) -> Integers:
    """Clip each row to an L2 norm and cut it to whole multiples of `grid`, as integers.

    Sum them, add noise, times the grid.

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
    result = np.empty(rows.shape, dtype=np.int64)
    together = max(1, BLOCK_ENTRIES // max(1, rows.shape[1]))
    for start in range(0, len(rows), together):
        result[start : start + together] = _clipped_block(rows[start : start + together], units, float(step))
    return result


def _clipped_block(rows: Floats, units: Fraction, unit: float) -> Integers:
    """Return rows in units of the grid, clipped to so many units; offenders are 0."""
    with np.errstate(all="ignore"):
        # scaled by the largest entry first, so that no square overflows or vanishes
        largest = np.max(np.abs(rows), axis=1, initial=0.0)
        scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        scaled = rows / scale[:, None]
        lengths = scale * np.sqrt(np.sum(np.square(scaled, out=scaled), axis=1))
        allowed = float(units) * (1 - MARGIN)
        # a row that is short enough keeps its length: it is only put into units
        factors = np.where(lengths > allowed * unit, allowed / np.where(lengths > 0, lengths, 1.0), 1 / unit)
        result = _truncate(np.multiply(rows, factors[:, None], out=scaled), float(units))
    result[~_within(result, units)] = 0
    return result


def _rows(gradients: Any) -> Floats:
    try:
        rows = np.asarray(gradients, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"gradients must be numbers, one row per record: {error}") from error
    if rows.ndim != 2:
        raise InputError(f"gradients of shape {rows.shape} must have two axes: one row per record, flattened")
    return rows


def _truncate(rows: Floats, units: float) -> Integers:
    """Round towards zero; NaN and too large numbers are put beyond the norm.

    So the check sees them.
    """
    return np.trunc(np.clip(np.nan_to_num(rows, nan=2 * units), -2 * units, 2 * units)).astype(np.int64)


def _within(rows: Integers, units: Fraction) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return True for each row with an L2 norm of at most this, in integers.

    Entries are checked first, then squares that cannot wrap.
    """
    most = int(units)  # entries are whole, so they are below the norm if they are below its whole part
    inside = (rows.min(axis=1, initial=0) >= -most) & (
        rows.max(axis=1, initial=0) <= most
    )  # no abs: of -2^63 it is -2^63
    beyond = int(units * units) + 1
    total = np.zeros(len(rows), dtype=np.int64)
    block = LARGEST_SQUARES // (most * most)
    for start in range(0, rows.shape[1], block):
        part = np.where(inside[:, None], rows[:, start : start + block], 0)
        # both terms are at most 2^62; a total that is too large stays so
        total = np.minimum(total + np.sum(part * part, axis=1), beyond)
    return np.asarray(inside & (total < beyond))


def secret_bytes(size: int) -> bytes:
    """Return random bytes of a generator for secrets.

    It is that of OpenSSL if Python has it, else of the operating system.

    Both are seeded by the operating system. OpenSSL's takes less than a millisecond for 4 MB.
    """
    try:
        from ssl import RAND_bytes
    except ImportError:  # pragma: no cover
        return secrets.token_bytes(size)
    return RAND_bytes(size)


def rounded_gaussian(integers: Any, sigma: Number, *, source: Callable[[int], bytes] = secret_bytes) -> Integers:
    """Return round(S + sigma Z) for integers S, each with its own ideal standard normal Z.

    The result is exact, not up to a float.

    Z = Phi^-1(U) for a uniform U of which as many secret bits are taken as the rounding needs. 32 bits and a parabola with a
    bounded error decide most, 64 bits and a polynomial with a proved error nearly all others, balls and further bits of the
    same U the rest. So the result is a function of what the ideal Gaussian mechanism releases, and every theorem about that
    holds for it. `sigma` is in units of the integers: with noise multiplier z and `clipped(…, norm, grid)`,
    sigma = z * norm / grid.

    `source` returns so many random bytes; the default is a generator for secrets. Noise must never be derived from a stored
    key. Many numbers are made in several threads.

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
    noise = _noise(sums.size, scale, source)
    noise += sums.astype(np.int64, copy=False).ravel()
    return noise.reshape(sums.shape)


def _noise(size: int, sigma: Fraction, source: Callable[[int], bytes]) -> Integers:
    """Return the nearest integers to independent draws of sigma Z."""
    if sigma > LARGEST_QUICK_SIGMA or size < LEAST_QUICK_SIZE:
        words = np.frombuffer(_bytes(source, 8 * size), dtype="<u8").astype(np.uint64, copy=False)
        return _finish_noise(words, sigma, source)
    words32 = np.frombuffer(_bytes(source, 4 * size), dtype="<i4").astype(np.int32, copy=False)
    noise, undecided = quick_noise(words32, sigma)
    # the same U, of which 32 bits more are taken
    low = np.frombuffer(_bytes(source, 4 * len(undecided)), dtype="<u4").astype(np.uint64)
    high = words32[undecided].view(np.uint32).astype(np.uint64)
    noise[undecided] = _finish_noise((high << np.uint64(32)) | low, sigma, source)
    return noise


def _finish_noise(words: Words, sigma: Fraction, source: Callable[[int], bytes]) -> Integers:
    """Return the nearest integers to sigma Z from 64 bits.

    Further bits are drawn where these do not decide.
    """
    noise, undecided = fast_noise(words, sigma)
    for i in np.flatnonzero(undecided):
        noise[i] = exact_noise(int(words[i]), sigma, source)
    return noise


def quick_noise(words: Words32, sigma: Fraction) -> tuple[Integers, Integers]:
    """Return the nearest integers to sigma Z, and the undecided places.

    There 32 bits and parabolas do not decide them.

    Words are those of `fast_noise`, of which the first 32 bits are known. Threads share the work if it is long.
    """
    parabolas = Parabolas.scaled(float(sigma))
    noise = np.empty(len(words), dtype=np.int64)
    threads = min(MOST_THREADS, _processors(), 1 + len(words) // THREAD_ENTRIES)
    ends = [len(words) * i // threads for i in range(threads + 1)]
    if threads == 1:
        return noise, parabolas.round_into(words, noise, 0, len(words))
    with ThreadPoolExecutor(threads) as pool:
        parts = pool.map(lambda i: parabolas.round_into(words, noise, ends[i], ends[i + 1]), range(threads))
    return noise, np.concatenate(list(parts))


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _bytes(source: Callable[[int], bytes], size: int) -> bytes:
    found = source(size)
    if not isinstance(found, bytes | bytearray) or len(found) != size:  # type: ignore[redundant-expr]
        raise InputError(f"source({size}) must return {size} random bytes")
    return bytes(found)


def fast_noise(words: Words, sigma: Fraction) -> tuple[Integers, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return the nearest integers to sigma Z, and where 64 bits do not decide them.

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
    """Return the nearest integer to sigma Z in balls.

    It draws further bits of the same U as long as its cell holds a boundary.
    """
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
