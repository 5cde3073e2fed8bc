"""The loss law of one epoch of random allocation, from above and from below, by sums of positive terms only.

Letters: (P0, Q0) the pair of one step, W = p0/q0 under Q0, S = W_1 + ... + W_t. The ratio of the epoch is S/t under Q.
From above every cell of W, and of every partial sum, is split to its two ends, mass and mean kept: E f(S) grows for convex f
(Lemma 1). From below outputs are rounded to the numbers of their cells, which post-processing may do (Lemma 2); a label then
has the mass m under Q and the mass p under P, the record being in a uniform place. The proofs are in
docs/mechanisms/random-allocation.md. No transform is taken, so that a delta has no noise floor; what is trimmed is a leak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cumulant.exact.grid.allocation_types import type_law
from cumulant.exact.grid.ratio_sums import PRODUCT_SLIP, GeometricGrid, LinearGrid, Masses, SumGrid, Trimmer, power
from cumulant.losses.cells import Cells, Grid, place_atoms, rounding_slip
from cumulant.losses.grid import Loss, Outputs, Step
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.convolution import without_dust
from cumulant.numerics.rounding import MANY, U, raised

if TYPE_CHECKING:
    from cumulant.pairs.pair import Pair


@dataclass(frozen=True, slots=True)
class _Settings:
    """Constants by which floats choose the grids, and the mass that they leave out."""

    cells: int = 8192
    """Cells of a linear or geometric grid. Measured: 4 digits of epsilon, and 5 ms for a product of two laws."""
    fine: int = 1 << 16
    """Cells of the law of one ratio before it is put on a grid of sums; four times finer changes no digit shown."""
    fewest: int = 2048
    """Cells of the coarsest geometric grid that is tried."""
    added_variance: float = 2e-5
    """The part of the variance of S that a geometric grid may add; above it a finer or the linear grid is taken."""
    most_added: float = 2e-4
    """The part that the finest geometric grid may add where its products are cheap. Measured with benchmarks/allocation.py."""
    most_slices: int = 2500
    """Slices of a product on a geometric grid that count as cheap: about 30 ms."""
    few_steps: int = 8
    """Steps up to which a geometric grid is taken: sums far below the mean count there. Derived: three products at most."""
    close: float = 16.0
    """Largest over least ratio up to which a linear grid is taken. Measured: 1e-6 of the width, and 0.1 s in place of 4."""
    tail_rate: float = 0.3
    """Expected number of ratios above the linear grid in one epoch: few enough that their number J stays below 30."""
    spread: float = 64.0
    """The linear grid reaches at least so many standard deviations of one ratio."""
    single_cells: int = 1024
    """Cells of one large ratio, and of the sum of the others beside it."""
    several_cells: int = 512
    """Cells of the sum of several large ratios, and of the others beside two of them: such sums are rarer."""
    beside_many: int = 128
    """Cells of the sum of the others beside three large ratios or more, which are far larger."""
    most_large: int = 64
    """Number J of large ratios at which the sum over J is given up."""
    trim: float = 1 / 256
    """The part of the allowed loss that one trimming may take: there are fewer than 256."""
    loss_cells: float = 512.0
    """Cells of one deviation of the loss, and of each factor e above it, where sums with large ratios are gathered."""
    block: int = 128
    """Terms that are added before their sums are: the rounding of a sum then grows with the block and the number of blocks."""
    least_log: float = -48.0
    """Log of the mass that is always cut at: questions with delta above 1e-13 then share one law."""
    round_log: float = 16.0
    """Smaller cuts are multiples of this, in nats."""
    negligible: float = 10.0
    """Labels with less than e^-10 of what may be left out are dropped from below."""
    nodes: int = 2000
    """Points by which a grid of epochs chooses its order."""


_SET = _Settings()
"""The settings in force."""

_TWICE = 2.0
"""Trimmed sums are counted so often: SUM_J C(t,J) q^J <= e^(tq) < 1.4 numbers J of large ratios share one trimmed law."""
_LEAST_MASS = 1e-295
"""Smaller outputs with large ratios are left out; there are fewer than 1e7 of them."""
_LEAST_LOG = -690.0
"""Types with smaller log masses are left out; e^-690 is a normal float."""
_DUST = 1e-278
"""More than all Q-masses below the smallest one kept, for one step; under P each is at most the largest ratio times it."""


# ---- the law of one ratio


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """One ratio on a fine grid: points with Q-masses that are above it in convex order, and cells with both masses.

    `width` is the step of log W where the points are equidistant in it. `out` bounds what each law has left out.
    """

    w: Array
    q: Array
    cell: Array
    cell_q: Array
    cell_p: Array
    width: float
    error: float
    label_error: float
    slip: float
    out: float
    leak: float


@lru_cache(maxsize=8)
def ratio_law(loss: Loss, points: int, log_mass: float) -> Ratio:
    """The law of W, e^log_mass of each law left out at either end; atoms stay where they are."""
    if not loss.smooth:
        return _atoms(loss)
    step = loss.mixture(Fraction(1), "remove")
    low, high = step.span(log_mass)
    width = max(high - low, 1e-300) / points
    if anchor := step.anchor():
        width = anchor * 2.0 ** min(np.floor(np.log2(width / anchor)), 0.0)
    cells = step.cells(float(width), log_mass)
    x = cells.grid.points()
    ends = np.logaddexp(cells.atoms, np.logaddexp(np.append(cells.left, -np.inf), np.append(-np.inf, cells.right)))
    with np.errstate(under="ignore"):
        w, q = np.exp(x), np.exp(ends - x)
        inner = np.exp(np.logaddexp(cells.left - x[:-1], cells.right - x[1:]))
        inner_p = np.exp(np.logaddexp(cells.left, cells.right))
        atom_q, atom_p = np.exp(cells.atoms - x), np.exp(cells.atoms)
    # labels in order: an atom of a grid point comes before the cell that begins there
    label_w = np.concatenate([x[:-1] + width / 2, x])
    label_q, label_p = np.concatenate([inner, atom_q]), np.concatenate([inner_p, atom_p])
    # labels may be dropped from below; those far out would only have logarithms with larger errors
    there = np.maximum(label_q, label_p) > math.exp(max(log_mass - _SET.negligible, -700.0))
    q *= 1 + U * (64 + 8 * (np.abs(x) + np.where(q > 0, np.abs(ends), 0.0)))  # each point its own error, from above
    out = float(np.exp(cells.above) + np.exp(max(cells.below, cells.above)))
    size = float(np.max(np.abs(label_w[there])) + 2 * (abs(log_mass) + _SET.negligible))
    error, slip = cells.error + U * (64 + 8 * size), cells.slip + 2 * cells.error + 4 * U * (1 + float(np.abs(x).max()))
    if loss.leak > 0:  # where Q alone has mass W is 0
        w, q = np.append(0.0, w), np.append(loss.leak, q)
        there, label_w = np.append(True, there), np.append(-np.inf, label_w)
        label_q, label_p = np.append(loss.leak, label_q), np.append(0.0, label_p)
    labels = label_w[there], label_q[there], label_p[there]
    return Ratio(w, q, *labels, float(width), cells.error + 4 * U, error, slip, 1.001 * out, loss.leak)


def _atoms(loss: Loss) -> Ratio:
    """Return the law of the ratio of one step with finitely many losses; a leak is a ratio of 0."""
    x, log_q = loss.atoms()
    if loss.equal > 0:
        x, log_q = np.append(x, 0.0), np.append(log_q, math.log(loss.equal))
    order = np.argsort(x)
    x, log_q = x[order], log_q[order]
    size = float(np.max(np.abs(x), initial=0.0) + np.max(np.abs(log_q), initial=0.0))
    w, q = np.exp(x), np.exp(log_q)
    p = np.exp(log_q + x)
    if loss.leak > 0:
        x, w, q, p = (
            np.append(first, v) for first, v in zip((-np.inf, 0.0, loss.leak, 0.0), (x, w, q, p), strict=True)
        )
    error = U * (64 + 8 * size)
    return Ratio(w, q, x, q, p, 0.0, error, error, error, 0.0, loss.leak)


# ---- one epoch


@dataclass(frozen=True, slots=True, eq=False)
class EpochLaw:
    """Log ratios x = log(S/t) in increasing order with Q-masses m and P-masses p of an epoch.

    From above p = e^x m, from below p and m are the masses of labels and x = log(p/m). `error` bounds the relative error of
    the masses, `slip` the misplacement of x, `leak_q` and `leak_p` what the law lacks.
    """

    x: Array
    m: Array
    p: Array
    leak_q: float
    leak_p: float
    error: float
    slip: float


@lru_cache(maxsize=32)
def epoch_law(loss: Loss, steps: int, cut: float, upper: bool) -> EpochLaw:
    """Return the law of one epoch, e^cut of its mass left out or a little more; OverflowError if no grid holds it."""
    with np.errstate(over="raise", invalid="raise", divide="ignore", under="ignore"):
        try:
            return _epoch_law(loss, steps, cut, upper)
        except FloatingPointError as error:
            raise OverflowError("no grid holds so large ratios") from error


def _epoch_law(loss: Loss, steps: int, cut: float, upper: bool) -> EpochLaw:
    """Return the law of an epoch, from above or from below, with its leaks, errors and slip.

    Raises OverflowError if no grid holds the ratios.
    """
    trimmer = Trimmer(steps, _SET.trim * math.exp(cut))
    one = ratio_law(loss, _SET.fine, 16.0 * math.floor((cut - math.log(8 * steps)) / 16))
    total = float(one.q.sum())
    if not one.w.size or not np.isfinite(one.w[-1]) or not 0.5 < total < 1.5:
        raise OverflowError("no grid holds so large ratios")
    top = _reach(one, steps)
    below = one.w <= top
    mean = float(np.sum(one.q[below] * one.w[below]))
    variance = float(np.sum(one.q[below] * (one.w[below] - mean) ** 2))
    cells = None if one.leak > 0 or not loss.smooth else _geometric_cells(one, steps, variance)
    if cells is not None:
        parts = [_geometric(one, steps, cells, upper, trimmer)]
    else:
        parts = _linear(one, steps, top, math.exp(cut), upper, trimmer)
    x, m, p = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.argsort(x, kind="stable")
    error = max(part[3] for part in parts)
    # what was left out of one ratio: the record's own with p, each of the others with q
    dust = _DUST * steps
    leak_q = raised(_TWICE * trimmer.leak_q + (steps + 1) * one.out + dust, MANY)
    leak_p = raised(_TWICE * trimmer.leak_p + (steps + 1) * one.out + dust * (1 + float(one.w[-1])), MANY)
    slip = one.slip + 2 * PRODUCT_SLIP * (math.log2(steps) + 8)
    error += steps * (one.error if upper else one.label_error)
    return EpochLaw(x[order], m[order], p[order], min(leak_q, 1.0), min(leak_p, 1.0), error, slip)


def _reach(one: Ratio, steps: int) -> float:
    """Return K, above which ratios count one by one: few of them in an epoch, or 64 deviations of the others."""
    tail = np.cumsum(one.q[::-1])[::-1]
    rare = np.flatnonzero(tail <= min(_SET.tail_rate / steps, 1e-3))
    k = float(one.w[rare[0] - 1]) if rare.size and rare[0] > 0 else float(one.w[-1])
    below = one.w <= k
    mean = float(np.sum(one.q[below] * one.w[below]))
    deviation = math.sqrt(float(np.sum(one.q[below] * (one.w[below] - mean) ** 2)))
    k = max(k, _SET.spread * deviation)
    return float(one.w[-1]) if 4 * k >= one.w[-1] else k


def _geometric_cells(one: Ratio, steps: int, variance: float) -> int | None:
    """Return the number of cells of a geometric grid that adds little variance; None where the linear grid adds less."""
    if _close(one):
        return None  # sums of ratios near 1 would lie log(2)/width cells above them: any number of cells
    if steps <= _SET.few_steps:
        return 2 * _SET.cells  # few products, so that twice the cells are cheap and add a quarter of the variance
    span = math.log(float(one.w[-1] / one.w[one.w > 0][0]))
    cells = _SET.fewest
    while cells <= _SET.cells:
        width = span / cells
        added = width**2 / 3 * steps / max(variance, 1e-300)
        cheap = -math.log(math.expm1(width)) < _SET.most_slices * width
        most = _SET.added_variance if cells < _SET.cells else _SET.most_added
        if cheap and added < most:
            return cells
        cells *= 2
    return None


def _close(one: Ratio) -> bool:
    """Return True if all ratios lie within a small factor; a linear grid then begins at the least one, and is as fine."""
    return one.leak == 0 and 0 < float(one.w[-1]) < _SET.close * float(one.w[0])


_Part = tuple[Array, Array, Array, float]
"""Log ratios, Q-masses, P-masses and the relative error of some of the outputs of an epoch."""


def _geometric(one: Ratio, steps: int, cells: int, upper: bool, trimmer: Trimmer) -> _Part:
    """Return the whole law of an epoch from a geometric grid of ratios."""
    stride = max(1, round(one.w.size / cells))
    line = GeometricGrid(float(one.w[0]), stride * one.width)
    place = np.log(np.maximum(one.w, 1e-320) / line.start) / line.width
    single = _split(place, one, line) if upper else _labels(one, line)
    found, law, _ = power(line, single, steps, trimmer, _SET.cells)
    return _read(found, law, steps, upper)


def binned(place: Array, weights: Array, size: int) -> Array:
    """Add weights to places that do not decrease, in blocks, so that few roundings meet in one sum."""
    starts = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (np.arange(place.size) % _SET.block == 0))
    return np.bincount(place[starts], np.add.reduceat(weights, starts), size)


def rounding_of(points: int) -> float:
    """Bound the relative error of `binned` sums of so many points, split in two."""
    return (2 * _SET.block + 2 * points / _SET.block + 32) * U


def _split(place: Array, one: Ratio, line: GeometricGrid) -> Masses:
    """Split the points of the fine grid to those of a coarser geometric one, mass and mean kept."""
    cell = np.floor(place + 1e-9).astype(np.int64)
    share = np.clip(np.expm1(line.width * (place - cell)) / math.expm1(line.width), 0.0, 1.0)
    size = int(cell[-1]) + 2
    m = binned(cell, one.q * (1 - share), size) + binned(cell + 1, one.q * share, size)
    return Masses(0, without_dust(m), None, 1, rounding_of(cell.size))


def _labels(one: Ratio, line: SumGrid) -> Masses:
    """Round outputs to the cells of a grid; cells that straddle a point go to the side of their middle."""
    if isinstance(line, GeometricGrid):
        cell = np.floor((one.cell - math.log(line.start)) / line.width).astype(np.int64)
    else:
        assert isinstance(line, LinearGrid)
        cell = np.floor((np.exp(one.cell) - line.base) / line.step + 1e-9).astype(np.int64)
    first, order = int(cell.min()), np.argsort(cell, kind="stable")
    place = cell[order] - first
    m, p = (binned(place, v[order], int(place[-1]) + 1) for v in (one.cell_q, one.cell_p))
    return Masses(first, without_dust(m), without_dust(p), 1, rounding_of(cell.size))


def _read(line: SumGrid, law: Masses, steps: int, upper: bool) -> _Part:
    """Return what a law of the whole sum says of the losses; from above a sum of 0 is no finite loss and is left out."""
    if not upper:
        assert law.p is not None
        there = (law.p > 0) & (law.m > 0)
        return np.log(law.p[there] / law.m[there]), law.m[there], law.p[there], law.error
    s = line.values(law) / steps
    there = (law.m > 0) & (s > 0)
    return np.log(s[there]), law.m[there], law.m[there] * s[there], law.error + 4 * U


def _linear(one: Ratio, steps: int, top: float, cut: float, upper: bool, trimmer: Trimmer) -> list[_Part]:
    """Return the law of an epoch by the number J of ratios above `top`: the others on a linear grid, these beside it."""
    if one.w.size == 2:
        base, step = float(one.w[0]), float(one.w[1] - one.w[0])
    else:
        base = float(one.w[0]) if _close(one) else 0.0
        step = (top - base) / _SET.cells
    finest = LinearGrid(base, step)
    line: SumGrid = finest
    small, large = _split_ratios(one, top)
    single = _split_to_multiples(small, finest) if upper else _labels(small, finest)
    q, p = float(large.cell_q.sum()), float(large.cell_p.sum())
    q, p = max(q, float(large.q.sum())), max(p, float(np.sum(large.q * large.w)))
    most = 0 if q == 0 and p == 0 else _largest_number(steps, q, p, cut)
    if most:
        rest = math.comb(steps, most + 1) * q ** (most + 1) if most < steps else 0.0
        trimmer.leak_q += rest
        trimmer.leak_p += rest + p * math.comb(steps - 1, most) * q**most
    if steps > most:
        line, law, single = power(line, single, steps - most, trimmer, _SET.cells)
    else:
        law = Masses(0, np.ones(1), None if upper else np.zeros(1), 0)
    laws = {most: (line, law)}
    for number in range(most - 1, -1, -1):
        if law.count:
            line, law, single = trimmer.fitted(line, line.product(law, single), single, _SET.cells)
        else:
            law = single
        laws[number] = (line, law)
    found = [_read(*laws[0], steps, upper)]
    if upper:
        trimmer.leak_q += float(np.sum(laws[0][1].m[laws[0][0].values(laws[0][1]) <= 0]))
    if not most:
        return found
    x, m, _, _ = found[0]
    mean = float(np.sum(m * x) / np.sum(m))
    scale = max(math.sqrt(float(np.sum(m * (x - mean) ** 2) / np.sum(m))), 1e-9)
    return [*found, _with_large(laws, large, one, steps, upper, scale)]


def _split_ratios(one: Ratio, top: float) -> tuple[Ratio, Ratio]:
    """Return the ratios up to K and those above it; points and cells are parted alike."""
    below, inside = one.w <= top, np.exp(one.cell) <= top
    small = replace(one, w=one.w[below], q=one.q[below], cell=one.cell[inside], cell_q=one.cell_q[inside])
    large = replace(one, w=one.w[~below], q=one.q[~below], cell=one.cell[~inside], cell_q=one.cell_q[~inside])
    return replace(small, cell_p=one.cell_p[inside]), replace(large, cell_p=one.cell_p[~inside])


def _split_to_multiples(one: Ratio, line: LinearGrid) -> Masses:
    """Split points to the multiples of a step: y = w/h lies between two integers, and its share is exact."""
    y = (one.w - line.base) / line.step
    cell = np.floor(y).astype(np.int64)
    share = y - cell
    size = int(cell[-1]) + 2
    m = binned(cell, one.q * (1 - share), size) + binned(cell + 1, one.q * share, size)
    return Masses(0, without_dust(m), None, 1, rounding_of(cell.size))


def _largest_number(steps: int, q: float, p: float, cut: float) -> int:
    """Return the J after which the sum over the number of large ratios is below what may be left out."""
    for number in range(1, min(steps, _SET.most_large) + 1):
        if number == steps:
            return number
        rest = math.comb(steps, number + 1) * q ** (number + 1) + p * math.comb(steps - 1, number) * q**number
        if rest < _SET.trim * cut:
            return number
    raise OverflowError("too many ratios are large")


def _with_large(
    laws: dict[int, tuple[SumGrid, Masses]], large: Ratio, one: Ratio, steps: int, upper: bool, scale: float
) -> _Part:
    """Return the outputs with J >= 1 large ratios, gathered on a grid of losses."""
    first = _large_ratios(large, one, upper, _SET.single_cells)
    several = _large_ratios(large, one, upper, _SET.several_cells)
    beside, error = first, 0.0
    farthest = math.log(1 + max(laws) * float(one.w[-1])) + math.log(steps) + 1
    gatherer = Gatherer.of_scale(scale, farthest, upper)
    for number in range(1, max(laws) + 1):
        if number > 1:
            line = several[0]
            beside = line, line.product(several[1] if number == 2 else beside[1], several[1])
        small: tuple[SumGrid, Masses] | None = laws[number]
        assert small is not None
        cells = (_SET.single_cells, _SET.several_cells, _SET.beside_many)[min(number, 3) - 1]
        while small[1].m.size > cells:
            small = small[0].coarser(small[1])
        error = max(error, small[1].error + beside[1].error)
        s, m, p = _label_sums(number, steps, small if small[1].count else None, beside)
        there = (m > _LEAST_MASS) & (p > _LEAST_MASS)
        s, m, p = s[there], m[there], p[there]
        gatherer.add(np.log(s / steps) if upper else np.log(p / m), m, p)
    return gatherer.part(error)


def _label_sums(
    number: int, steps: int, small: tuple[SumGrid, Masses] | None, large: tuple[SumGrid, Masses]
) -> tuple[Array, Array, Array]:
    """Return sums, Q-masses and P-masses of C(t,J) m^(t-J) b^J; from below P counts the record in either part."""
    many = float(math.comb(steps, number))
    b = large[1]
    if small is None:
        s, m = large[0].values(b), many * b.m
        return s, m, m * s / steps if b.p is None else many * b.p
    law = small[1]
    s = (small[0].values(law)[:, None] + large[0].values(b)).ravel()
    m = many * np.outer(law.m, b.m).ravel()
    if law.p is None or b.p is None:
        return s, m, m * s / steps
    inside, outside = np.outer(law.m, b.p).ravel(), np.outer(law.p, b.m).ravel()
    return s, m, many * (number / steps * inside + (steps - number) / steps * outside)


def _large_ratios(large: Ratio, one: Ratio, upper: bool, cells: int) -> tuple[SumGrid, Masses]:
    """Return the law of one large ratio on a geometric grid of so many cells."""
    start, end = float(large.w[0]), float(large.w[-1])
    span = max(math.log(end / start), 1e-9)
    width = span / cells if one.width == 0 else one.width * max(1, math.ceil(span / cells / one.width))
    line = GeometricGrid(start, width)
    if not upper:
        return line, _labels(large, line)
    return line, _split(np.log(large.w / start) / width, large, line)


@dataclass(slots=True)
class Gatherer:
    """Outputs with large ratios on one grid of log ratios: points +-c (e^(k/n) - 1), fine near 0.

    From above an output is split between two points so that both laws keep their masses, from below it is merged.
    """

    scale: float
    upper: bool
    size: int
    m: Array
    p: Array
    crowd: float = 0.0

    @classmethod
    def of_scale(cls, scale: float, farthest: float, upper: bool) -> Gatherer:
        size = math.ceil(_SET.loss_cells * math.log1p(farthest / scale)) + 2
        return cls(scale, upper, size, np.zeros(2 * size + 2), np.zeros(2 * size + 2))

    def points(self) -> Array:
        k = np.arange(-self.size, self.size + 2) / _SET.loss_cells
        return np.asarray(self.scale * np.sign(k) * np.expm1(np.abs(k)))

    def add(self, x: Array, m: Array, p: Array) -> None:
        points = self.points()
        k = np.floor(_SET.loss_cells * np.sign(x) * np.log1p(np.abs(x) / self.scale)).astype(np.int64) + self.size
        k = np.clip(k, 0, points.size - 2)
        k += x >= points[k + 1]  # the floor of a rounded number may be the cell beside it
        k -= x < points[k]
        k = np.clip(k, 0, points.size - 2)
        self.crowd += float(np.max(np.bincount(k), initial=0))
        if not self.upper:
            self.m += np.bincount(k, m, self.m.size)
            self.p += np.bincount(k, p, self.m.size)
            return
        share = np.clip(np.expm1(x - points[k]) / np.expm1(points[k + 1] - points[k]), 0.0, 1.0)
        self.m += np.bincount(k, m * (1 - share), self.m.size) + np.bincount(k + 1, m * share, self.m.size)

    def part(self, error: float) -> _Part:
        error += (2 * self.crowd + 32) * U
        if self.upper:
            some = self.m > 0
            points = self.points()[some]
            return points, self.m[some], self.m[some] * np.exp(points), error
        some = (self.m > 0) & (self.p > 0)
        m, p = self.m[some], self.p[some]
        return np.log(p / m), m, p, error


# ---- an epoch as one round on a grid


@dataclass(frozen=True, slots=True)
class Allocated(Step):
    """An epoch of so many steps, each with this loss, from above; "remove" or "add" the record.

    >>> from cumulant.pairs.gaussian import GaussianPair
    >>> law = GaussianPair(Fraction(1)).loss()
    >>> round(Allocated(law, 2, "remove").own_delta(0.5, -40.0), 5)
    0.14918
    """

    law: Loss
    count: int
    direction: str
    picks: int = 1
    """Steps that have the record; several only where `type_work` is small."""

    @property
    def leak(self) -> float:
        """Return the mass that the other law lacks, from above: each of the picked steps may show the record."""
        if self.direction == "add" or self.picks == 1 or not 0 < self.law.leak < 1:
            return self.law.leak if self.direction == "remove" else 0.0
        return min(float(raised(-math.expm1(self.picks * math.log1p(-self.law.leak)), MANY)), 1.0)

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return thinned(*_losses(self, _SET.least_log)[:2])

    def span(self, log_mass: float) -> tuple[float, float]:
        return span_of(*_losses(self, log_mass)[:2], log_mass)

    def cells(self, step: float, log_mass: float) -> Cells:
        loss, log_mass_p, leak, slip = _losses(self, log_mass)
        return on_grid(loss, log_mass_p, step, leak, slip, 8 * U)

    def own_delta(self, epsilon: float, log_mass: float) -> float:
        loss, log_p, leak, slip = _losses(self, log_mass)
        return min(_hockey_stick(loss, log_p, epsilon - slip) * (1 + MANY) + leak + self.leak, 1.0)


@dataclass(frozen=True, slots=True)
class AllocatedBelow(Outputs):
    """An epoch of so many steps, each with this loss, from below: labels of outputs with the masses that they have."""

    law: Loss
    count: int
    direction: str
    dropped: float = 0.0
    """The probability that the record is in no step at all."""
    picks: int = 1
    """Steps that have the record; several only where `type_work` is small."""

    @property
    def leak(self) -> float:
        return 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return thinned(*self.outputs(_SET.least_log))

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        return _losses_below(self, log_mass)[:2]

    def cells(self, step: float, log_mass: float) -> Cells:
        loss, log_p, error = _losses_below(self, log_mass)
        return on_grid(loss, log_p, step, 0.0, 0.0, error)

    def own_delta(self, epsilon: float, log_mass: float) -> float:
        """Return delta at epsilon, rounded down; 0 if the masses are too inaccurate.

        P-masses are divided by 1 + e and Q-masses by 1 - e, e their relative error: losses fall by at most 3 e.
        """
        loss, log_p, error = _losses_below(self, log_mass)
        if not error < 0.1:
            return 0.0
        moved = epsilon + 3 * error + rounding_slip(float(loss[0]), float(loss[-1]))
        return max(_hockey_stick(loss, log_p, moved) / (1 + error) * (1 - MANY), 0.0)


def _hockey_stick(loss: Array, log_p: Array, epsilon: float) -> float:
    """Return SUM p (1 - e^(epsilon - loss))_+ over the outputs."""
    gap = loss - epsilon
    above = gap > 0
    return float(np.sum(np.exp(log_p[above]) * -np.expm1(-gap[above])))


def attained_loss(pair: Pair) -> Loss | None:
    """Return the loss of a pair that fixed steps attain; None where the pair only dominates, as for PureDP and profiles."""
    lower = pair.lower_pair
    known = lower.symmetric and lower.attained and not lower.estimated and not lower.promise
    return lower.loss() if known else None


def fits(law: Loss, count: int, *, upper: bool = True) -> bool:
    """Return True if some grid holds the ratios of such an epoch, from above or from below."""
    try:
        epoch_law(law, count, _rounded(0.0), upper)
    except (ArithmeticError, MemoryError, ValueError):
        return False
    return True


def _rounded(log_mass: float) -> float:
    """Return a smaller cut that other questions share."""
    return min(_SET.least_log, _SET.round_log * math.floor(max(log_mass, -640.0) / _SET.round_log))


def _law_of(epoch: Allocated | AllocatedBelow, log_mass: float, upper: bool) -> EpochLaw:
    """Return the law of an epoch; with several picks it is that of all types, which serves both ends."""
    if epoch.picks == 1:
        return epoch_law(epoch.law, epoch.count, _rounded(log_mass), upper)
    x, log_m, none, error = type_law(epoch.law, epoch.count, epoch.picks)
    there = log_m + np.minimum(x, 0.0) > _LEAST_LOG  # a float holds both masses
    # of a type that is left out one mass is below e^-690, and the other is that times a ratio
    dust = 0.0 if there.all() else math.exp(_LEAST_LOG) * log_m.size
    leak_p, leak_q = dust * math.exp(max(float(x[-1]), 0.0)), none + dust * math.exp(max(-float(x[0]), 0.0))
    x, log_m = x[there], log_m[there]
    leaks = raised(leak_q, MANY), raised(leak_p, MANY)
    return EpochLaw(x, np.exp(log_m), np.exp(log_m + x), *leaks, 4 * error, 4 * error)


@lru_cache(maxsize=32)
def _losses(epoch: Allocated, log_mass: float) -> tuple[Array, Array, float, float]:
    """Return the rising losses of an epoch from above, their log P-masses, the leak, and the slip of a loss.

    The masses contain their errors.
    """
    law = _law_of(epoch, log_mass, True)
    more = math.log1p(law.error / (1 - law.error)) if law.error < 1 else math.inf
    if epoch.direction == "remove":
        return law.x, np.log(law.p) + more, law.leak_p, law.slip
    return -law.x[::-1], np.log(law.m[::-1]) + more, law.leak_q, law.slip


@lru_cache(maxsize=32)
def _losses_below(epoch: AllocatedBelow, log_mass: float) -> tuple[Array, Array, float]:
    """Return the rising losses of an epoch from below, log P-masses of their labels, and the relative error of both masses."""
    law = _law_of(epoch, log_mass, False)
    error = law.error / (1 - law.error) if law.error < 1 else math.inf
    there = (1 - epoch.dropped) * law.p + epoch.dropped * law.m
    # far out the ratio is nearly the share that is dropped, and rounding must not change the order of the losses
    x = np.maximum.accumulate(np.log(there / law.m)) if epoch.dropped else law.x
    if epoch.direction == "remove":
        return x, np.log(there), error + 8 * U
    return -x[::-1], np.log(law.m[::-1]), error + 8 * U


def on_grid(loss: Array, log_p: Array, step: float, lost: float, slip: float, error: float) -> Cells:
    """Put outputs on a grid of losses: each is split between two points, so that both laws keep their masses."""
    low, high = float(loss[0]), float(loss[-1])
    first, last = math.floor(low / step) - 2, math.ceil(high / step) + 2
    grid = Grid(step, 0.0, first, last - first + 1)
    left, right, atoms = (np.full(count, -np.inf) for count in (grid.count - 1, grid.count - 1, grid.count))
    moved, summed = place_atoms(loss, log_p, grid, left, right, atoms)
    above = math.log(lost) if lost > 0 else -math.inf
    return Cells(grid, left, right, atoms, -np.inf, above, slip + moved + rounding_slip(low, high), error + summed)


def span_of(loss: Array, log_p: Array, log_mass: float) -> tuple[float, float]:
    """Return losses between which all but e^log_mass of the mass lies."""
    mass = np.exp(log_p)
    cut = math.exp(max(log_mass, -700.0))
    first = min(int(np.searchsorted(np.cumsum(mass), cut)), mass.size - 1)
    last = max(mass.size - 1 - int(np.searchsorted(np.cumsum(mass[::-1]), cut)), 0)
    return float(loss[min(first, last)]), float(loss[max(first, last)])


def thinned(loss: Array, log_p: Array) -> tuple[Array, Array]:
    """Return losses and log masses of fewer points, by which a grid chooses its order."""
    low, high = float(loss[0]), float(loss[-1])
    place = np.floor((loss - low) / max(high - low, 1e-300) * (_SET.nodes - 1)).astype(np.int64)
    top = float(log_p.max())
    mass = np.exp(log_p - top)
    total = np.bincount(place, mass, _SET.nodes)
    mean = np.bincount(place, mass * loss, _SET.nodes)
    there = total > 0
    return mean[there] / total[there], np.log(total[there]) + top
