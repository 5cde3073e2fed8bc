"""Sums of independent nonnegative ratios on grids, from above by splitting, from below by labels.

From above a point between two grid points is split to both, mass and mean kept (Lemma 1); from below outputs get the label of
their cell, with the masses m under Q and p under P (Lemma 2). The proofs are in docs/mechanisms/random-allocation.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeVar

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.convolution import convolve_positive, without_dust
from cumulant.numerics.rounding import U

PRODUCT_SLIP = 256 * U
"""Relative misplacement of a sum by one product. Derived: cumulative sums of 8192 terms, times the width of a cell."""


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """A law on the points of a grid from `first` on: Q-masses m and, from below, P-masses p of labels.

    `count` ratios were added. `error` bounds the relative error of all masses.
    """

    first: int
    m: Array
    p: Array | None
    count: int
    error: float = 0.0


class SumGrid(ABC):
    """A grid on which sums of ratios are taken; `slip` bounds the relative misplacement of a point by one product."""

    slip: ClassVar[float] = PRODUCT_SLIP
    halved: ClassVar[bool] = False
    """True if the grid has coarser ones."""

    @abstractmethod
    def values(self, law: Masses) -> Array:
        """Return the sums of ratios that the points stand for."""

    @abstractmethod
    def product(self, a: Masses, b: Masses) -> Masses:
        """Return the law of the sum of two independent partial sums."""

    @abstractmethod
    def coarser(self, law: Masses) -> tuple[Self, Masses]:
        """Return a grid with half as many points, and the law on it; the grid itself where it has no coarser one."""


_Product = Callable[[Array, Array], tuple[Array, float]]
"""A function that multiplies two laws, and returns the product with its relative error."""


def _combined(multiply: _Product, a: Masses, b: Masses) -> tuple[Array, Array | None, float]:
    """Return m m' and (n p m' + n' m p')/(n + n') of a sum, and the relative error of the product.

    The second is None if one law has no p of its own.
    """
    m, error = multiply(a.m, b.m)
    if a.p is None or b.p is None:
        return m, None, error
    if a is b:
        return m, multiply(a.p, a.m)[0], error
    n, more = a.count, b.count
    p = (n * multiply(a.p, b.m)[0] + more * multiply(a.m, b.p)[0]) / (n + more)
    return m, p, error + 4 * U


@dataclass(frozen=True, slots=True)
class LinearGrid(SumGrid):
    """Points n * base + step * i of sums of n ratios."""

    base: float
    step: float

    halved: ClassVar[bool] = True

    def values(self, law: Masses) -> Array:
        return law.count * self.base + self.step * (law.first + np.arange(law.m.size, dtype=np.float64))

    def product(self, a: Masses, b: Masses) -> Masses:
        m, p, error = _combined(convolve_positive, a, b)
        return Masses(a.first + b.first, m, p, a.count + b.count, a.error + b.error + error)

    def coarser(self, law: Masses) -> tuple[Self, Masses]:
        """An odd point goes half to each neighbour (Lemma 1); labels 2i and 2i + 1 become one (Lemma 2)."""
        odd, size = law.first % 2, law.m.size
        first = (law.first - odd) // 2
        padded = [None if v is None else np.pad(v, (odd, (size + odd) % 2)) for v in (law.m, law.p)]
        m = padded[0]
        assert m is not None
        if padded[1] is not None:
            return replace(self, step=2 * self.step), replace(
                law, first=first, m=m[::2] + m[1::2], p=padded[1][::2] + padded[1][1::2], error=law.error + U
            )
        half = np.append(m[1::2], 0.0) / 2
        there = np.append(m[::2], 0.0) + half
        there[1:] += half[:-1]
        return replace(self, step=2 * self.step), replace(law, first=first, m=there, error=law.error + 2 * U)


@dataclass(frozen=True, slots=True)
class GeometricGrid(SumGrid):
    """Points start * e^(width i); labels stand for the cells from one point to the next."""

    start: float
    width: float

    def values(self, law: Masses) -> Array:
        return np.asarray(self.start * np.exp(self.width * (law.first + np.arange(law.m.size, dtype=np.float64))))

    def coarser(self, law: Masses) -> tuple[Self, Masses]:
        return self, law

    def product(self, a: Masses, b: Masses) -> Masses:
        first, last = min(a.first, b.first), max(a.first + a.m.size, b.first + b.m.size)

        def widened(law: Masses) -> Masses:
            ends = law.first - first, last - law.first - law.m.size
            return replace(law, m=np.pad(law.m, ends), p=None if law.p is None else np.pad(law.p, ends))

        x = widened(a)
        y = x if a is b else widened(b)
        upper = a.p is None
        m, p, error = _combined(lambda u, v: _geometric_product(u, v, self.width, upper), x, y)
        return Masses(first, m, p, a.count + b.count, a.error + b.error + error)


def _geometric_product(a: Array, b: Array, width: float, upper: bool) -> tuple[Array, float]:
    """Add points i and j = i - d of one geometric grid: the sum lies at i + G(d), G(d) = log(1 + e^(-d width))/width.

    Shift and shares depend on d only, so that sums over windows of j serve all d of one shift. From some d on the sum stays
    within the cell above i, and one cumulative sum serves all such j. From below a pair of labels gets the label
    i + round(G(d)).
    """
    size, growth = a.size, math.expm1(width)
    out = np.zeros(size + math.ceil(math.log(2) / width) + 2)
    ratio = np.log1p(np.exp(-np.arange(size, dtype=np.float64) * width)) / width
    near = min(int(np.searchsorted(-ratio, -1.0 if upper else -0.5, side="right")) + 1, size)
    shift = (np.floor(ratio[:near]) if upper else np.rint(ratio[:near])).astype(np.int64)
    starts = np.flatnonzero(np.diff(shift, prepend=-1))
    starts = np.unique(
        np.append(starts, [0, min(1, near - 1)])
    )  # d = 0 is a window of its own: it is one pair, not two
    lengths = np.diff(np.append(starts, near))
    for x, y, pairs in ((a, b, 2.0),) if a is b else ((a, b, 1.0), (b, a, 1.0)):
        windows = _Windows(y, (0.0, width) if upper else (0.0,))
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            moved_by = int(shift[start])
            times = pairs if start else pairs / 2
            first = start + moved_by
            found = windows.sums(start, length)
            left = times * x[start:]
            if not upper:
                out[first : first + left.size] += left * found[0]
                continue
            # the share of d at the upper point is (e^(-s width) (1 + e^(-d width)) - 1) / (e^width - 1), s its shift
            moved = math.exp(-width * first) * found[1] + math.expm1(-width * moved_by) * found[0]
            moved = np.clip(moved / growth, 0.0, found[0])
            out[first : first + left.size] += left * (found[0] - moved)
            out[first + 1 : first + 1 + left.size] += left * moved
        if near == size:
            continue
        far = slice(near, size)
        below = np.cumsum(y)[: size - near]
        if not upper:
            out[far] += pairs * x[far] * below
            continue
        # in units of the point i: the sum of w_j / w_i over j <= i - near, as one recursion of positive terms
        moved = _scaled_sums(y, width, near)[: size - near] / growth
        moved = np.minimum(moved, below)
        out[far] += pairs * x[far] * (below - moved)
        out[near + 1 : size + 1] += pairs * x[far] * moved
    return without_dust(out), (4 * near + 2 * size + 32) * U


class _Windows:
    """Sums SUM_k y_(i - k) e^(-rate k) over windows of k, for several rates, from tables of windows of 2^j values.

    Differences of cumulative sums would be faster, and lose the digits of small masses; here no term is subtracted.
    """

    def __init__(self, y: Array, rates: tuple[float, ...]) -> None:
        self._rates = np.array(rates)[:, None]
        self._tables = [np.tile(y, (len(rates), 1))]

    def sums(self, start: int, length: int) -> Array:
        """Return the sums over start <= k < start + length for i >= start, one row per rate, e^(-rate start) left out."""
        size = self._tables[0].shape[1] - start
        found, offset = np.zeros((len(self._rates), size)), 0
        for j in range(length.bit_length()):
            if length >> j & 1:
                if offset:
                    found[:, offset:] += self._decay(offset) * self._table(j)[:, : size - offset]
                else:
                    found += self._table(j)[:, :size]
                offset += 1 << j
        return found

    def _table(self, j: int) -> Array:
        while len(self._tables) <= j:
            half, last = 1 << len(self._tables) - 1, self._tables[-1]
            wider = last.copy()
            wider[:, half:] += self._decay(half) * last[:, :-half]
            self._tables.append(wider)
        return self._tables[j]

    def _decay(self, offset: int) -> Array:
        return np.asarray(np.exp(-self._rates * offset))


def _scaled_sums(y: Array, width: float, near: int) -> Array:
    """Return SUM_{j <= i} y_j e^(width (j - i - near)), for each i, by blocks in which no exponent overflows."""
    block = max(1, int(500 / width))
    out, carried = np.empty(y.size), 0.0
    for start in range(0, y.size, block):
        part = y[start : start + block]
        k = np.arange(part.size, dtype=np.float64)
        out[start : start + block] = (carried + np.cumsum(part * np.exp(width * k))) * np.exp(-width * k)
        carried = float(out[min(start + block, y.size) - 1]) * math.exp(-width)
    return out * math.exp(-width * near)


G = TypeVar("G", bound=SumGrid)
"""The type of a grid of sums, linear or geometric."""


@dataclass(slots=True)
class Trimmer:
    """The mass that may be cut off the ends of partial sums, and bounds of the mass lost under Q and under P."""

    steps: int
    allowed: float
    leak_q: float = 0.0
    leak_p: float = 0.0

    def trimmed(self, line: SumGrid, law: Masses) -> Masses:
        """Cut both ends where max(m t/n, p) sums to less than is allowed; t/n copies of the law make up the epoch."""
        copies = self.steps / law.count
        p = law.p if law.p is not None else law.m * np.maximum(line.values(law), 0.0) / law.count
        size = np.maximum(law.m * copies, p)
        low = int(np.searchsorted(np.cumsum(size), self.allowed))
        high = int(np.searchsorted(np.cumsum(size[::-1]), self.allowed))
        low, high = min(low, law.m.size - 1), min(high, law.m.size - 1)
        if low + high >= law.m.size:
            return law
        kept = slice(low, law.m.size - high)
        for end in (slice(0, low), slice(law.m.size - high, law.m.size)):
            q_lost, p_lost = float(law.m[end].sum()) * copies, float(p[end].sum())
            self.leak_q += q_lost
            self.leak_p += p_lost + q_lost
        return replace(law, first=law.first + low, m=law.m[kept], p=None if law.p is None else law.p[kept])

    def fitted(self, line: G, law: Masses, other: Masses, cells: int) -> tuple[G, Masses, Masses]:
        """Trim a law and halve its resolution until it has no more than so many cells; `other` stays on the same grid."""
        law = self.trimmed(line, law)
        while law.m.size > cells and line.halved:
            _, other = line.coarser(other)
            line, law = line.coarser(law)
        return line, law, other


def power(line: G, one: Masses, count: int, trimmer: Trimmer, cells: int) -> tuple[G, Masses, Masses]:
    """Return the law of the sum of `count` copies, its grid, and one copy on that grid: binary powers from the left."""
    law = one
    for bit in bin(count)[3:]:
        line, law, one = trimmer.fitted(line, line.product(law, law), one, cells)
        if bit == "1":
            line, law, one = trimmer.fitted(line, line.product(law, one), one, cells)
    return line, law, one
