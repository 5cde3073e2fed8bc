"""Correlated Gaussian noise for training: step t adds row t of sigma C^-1 z to the sum of clipped gradients.

x + sigma C^-1 z is computed from C x + sigma z, so that its privacy is that of `MatrixMechanism`. With a Toeplitz column c of
p bands and w = C^-1 z the rows follow from one another,

    w_t = (z_t - SUM_{i=1..p-1} c_i w_{t-i}) / c_0,

which needs the last p - 1 rows and no matrix. Of a BLT the sum is one buffer for each decay. Noise is float: its last bits may
tell of the sum it was added to. For integer bands that begin with 1 `CorrelatedIntegers` rounds C x + sigma z exactly instead.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.domains import COUNT, POSITIVE, Exact, Number, listed
from cumulant.errors import InputError
from cumulant.lock import Lock
from cumulant.training.noise import rounded_gaussian, secret_bytes

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


class _OneRun:
    """Noise of one run: threads get different rows, and neither a copy nor a forked process gets a row again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process = os.getpid()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise InputError("this noise belongs to the process that made it; make new noise after a fork")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise InputError("noise must not be used twice, so it cannot be copied; make new noise")


class CorrelatedNoise(_OneRun):
    """Rows of sigma C^-1 z for a Toeplitz matrix: `bands` is its first column, or `blt` its weights and decays.

    Each call of `next_row` returns the noise of the next step, to be added to the sum of gradients clipped to norm 1. It keeps
    bands x size numbers. Every run needs a new object: noise must not be used twice. `seed` is for tests
    and makes the noise public; without it the operating system is asked.

    >>> noise = CorrelatedNoise(size=3, sigma=2, bands=[1, "1/2"], seed=1)
    >>> first, second = noise.next_row(), noise.next_row()
    >>> first.shape, noise.step
    ((3,), 2)
    """

    def __init__(
        self,
        size: int,
        sigma: Number,
        bands: Sequence[Number] | None = None,
        blt: Sequence[Sequence[Number]] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if (bands is None) == (blt is None):
            raise InputError("CorrelatedNoise takes bands=… or blt=…, one of them")
        self._size, self._sigma = int(COUNT.check("size", size)), float(POSITIVE.check("sigma", sigma))
        key = int.from_bytes(secret_bytes(32), "big") if seed is None else seed
        self._random = np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))
        self.step = 0
        self._first, self._rest = 1.0, []
        self._decays: Floats = np.zeros(0)
        if bands is not None:
            column = [float(Exact(each)) for each in listed("bands", bands)]
            if not column or not column[0]:
                raise InputError("bands[0] must not be 0: it is the diagonal of the matrix")
            self._first, self._rest = column[0], column[1:]
        elif blt is not None:
            weights, decays = (np.array([float(Exact(each)) for each in listed("blt", part)]) for part in blt)
            if weights.shape != decays.shape or not (np.abs(decays) < 1).all():
                raise InputError("blt needs as many weights as decays, and every decay below 1 in absolute value")
            self._weights, self._decays = weights, decays
        # rows of the past: of bands the last p - 1, of a BLT one buffer for each decay
        self._past = np.zeros((len(self._rest) or len(self._decays), self._size))

    def next_row(self) -> Floats:
        """Return the noise of the next step."""
        with self._lock:
            self._check_process()
            return self._row()

    def _row(self) -> Floats:
        row = self._random.standard_normal(self._size)
        if self._decays.size:
            row -= self._weights @ self._past
            self._past *= self._decays[:, None]
            self._past += row
        elif self._rest:
            # place i holds the row of so many steps ago, less 1; rows before the first step are 0
            places = (self.step - 1 - np.arange(len(self._rest))) % len(self._rest)
            row -= np.asarray(self._rest)[places] @ self._past
            row /= self._first
            self._past[self.step % len(self._rest)] = row
        else:
            row /= self._first
        self.step += 1
        return self._sigma * row


class CorrelatedIntegers(_OneRun):
    """Integer sums with correlated noise for a column of integers that begins with 1: nothing is told by last bits.

    C x + z is rounded exactly to integers, row by row, and C^-1 has integer entries then, so that what is returned is a
    function of the ideal release. `release(total)` takes the integer sum of the step, as `clipped` makes it.

    >>> noisy = CorrelatedIntegers(size=2, sigma=50, bands=[1, 1])
    >>> noisy.release([10, -10]).dtype
    dtype('int64')
    """

    def __init__(self, size: int, sigma: Number, bands: Sequence[int]) -> None:
        super().__init__()
        column = [Exact(each) for each in listed("bands", bands)]
        if not column or column[0] != 1 or any(each.denominator != 1 for each in column):
            raise InputError("bands must be whole numbers that begin with 1; for others use CorrelatedNoise")
        self._size, self._sigma = int(COUNT.check("size", size)), POSITIVE.check("sigma", sigma)
        self._rest = [int(each) for each in column[1:]]
        self._sums: deque[Integers] = deque(maxlen=max(len(self._rest), 1))
        self._rows: deque[Integers] = deque(maxlen=max(len(self._rest), 1))

    def release(self, total: Any) -> Integers:
        """Return the sum of this step with its noise: row t of C^-1 round(C x + sigma z)."""
        x = np.asarray(total)
        if x.dtype.kind not in "iu" or x.shape != (self._size,):
            raise InputError(f"total must be {self._size} integers, the sum of clipped rows")
        with self._lock:
            self._check_process()
            return self._released(x.astype(np.int64))

    def _released(self, x: Integers) -> Integers:
        image = x.copy()
        for band, past in zip(self._rest, self._sums, strict=False):
            image += band * past
        noisy = rounded_gaussian(image, Fraction(self._sigma))
        row = np.asarray(noisy, dtype=np.int64)
        for band, past in zip(self._rest, self._rows, strict=False):
            row = row - band * past
        self._sums.appendleft(x)
        self._rows.appendleft(row)
        return row
