"""One epoch of random allocation on a grid of losses.

Under Q the ratio of the two laws is S/t, S the sum of t independent ratios W = p/q. W is split onto a grid of *ratios*, which
keeps mass and mean of every cell and so puts it above in convex order; the sum inherits that, and both directions are read off
one law: the loss log(S/t) with P-mass (S/t) q, or -log(S/t) with mass q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cumulant.exact.grid.fft import Tilted, convolved, escaping
from cumulant.losses.cells import Cells, Grid, misplaced, place_atoms
from cumulant.losses.grid import Loss, Step
from cumulant.losses.ratio_law import ratios
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.logspace import log_sum
from cumulant.numerics.rounding import MANY, U, raised

_POINTS = 1 << 14
_FINEST, _FINE, _COARSEST = 256.0, 64.0, 8.0
"""Cells in a standard deviation of W: of few steps single ratios are seen, of many only their sum."""
_LONGEST = 1 << 20
_MORE = (0.0, 4.0, 8.0, 12.0)
"""By how much more may be left out where a grid would be too long."""
_FEWER = 1 << 16
_SOME = 1 << 13
_NOTHING = 1e-150
_ROUND_CUT = 8.0
_NODES, _NODES_CUT = 2000, -40.0
_USUAL_CUT = -36.0
_TILTS = (0.0, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0)
_NEGLIGIBLE = 30.0


@dataclass(frozen=True, slots=True)
class Allocated(Step):
    """An epoch of so many steps, each with this loss; "remove" or "add" the record."""

    law: Loss
    count: int
    direction: str

    @property
    def leak(self) -> float:
        return self.law.leak if self.direction == "remove" else 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return _thinned(self)

    def span(self, log_mass: float) -> tuple[float, float]:
        found = _summed(self, _round(log_mass))
        mass = np.exp(found.log_mass)
        low, high = np.cumsum(mass), np.cumsum(mass[::-1])
        cut = math.exp(max(log_mass, -700.0))
        first = min(int(np.searchsorted(low, cut)), mass.size - 1)
        last = max(mass.size - 1 - int(np.searchsorted(high, cut)), 0)
        return float(found.loss[min(first, last)]), float(found.loss[max(first, last)])

    def cells(self, step: float, log_mass: float) -> Cells:
        found = _summed(self, _round(log_mass))
        if found.loss.size > _FEWER and step >= 4 * (fewer := _fewer(self, _round(log_mass))).step:
            found = fewer
        low, high = float(found.loss[0]), float(found.loss[-1])
        first, last = math.floor(low / step) - 2, math.ceil(high / step) + 2
        grid = Grid(step, 0.0, first, last - first + 1)
        left, right, atoms = (np.full(count, -np.inf) for count in (grid.count - 1, grid.count - 1, grid.count))
        slip, error = place_atoms(found.loss, found.log_mass, grid, left, right, atoms)
        above = math.log(found.lost) if found.lost > 0 else -math.inf
        slip += found.slip + misplaced(low, high)
        return Cells(grid, left, right, atoms, -np.inf, above, slip, error + found.error)


def in_reach(law: Loss, count: int) -> bool:
    """Whether a grid of ratios is at all long enough for usual deltas."""
    try:
        return _grid(law, count, _USUAL_CUT) is not None
    except (ArithmeticError, MemoryError, ValueError):
        return False


def _round(log_mass: float) -> float:
    """A cut nearby that other questions share."""
    return _ROUND_CUT * math.floor(max(log_mass, -640.0) / _ROUND_CUT)


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """W on a grid of this step from its least value on: masses, how they may be wrong, and the window that its sum needs.

    `ratio` and `share` are the points and masses before they were split, of which there are fewer.
    """

    least: float
    step: float
    mass: Array
    error: float
    slip: float
    out: float
    first: int
    size: int
    ratio: Array
    share: Array


@lru_cache(maxsize=8)
def _grid(law: Loss, count: int, cut: float) -> _Split | None:
    """The finest grid that is not too long, and that leaves out no more than it must; None if there is none."""
    return next((found for more in _MORE if (found := _split(law, count, cut + more)) is not None), None)


def _split(law: Loss, count: int, cut: float) -> _Split | None:
    with np.errstate(over="ignore", under="ignore"):
        one = ratios(law, _POINTS, cut - math.log(2 * count))
        w, q = np.exp(one.log_ratio), np.exp(one.log_mass)
    if one.alone:
        w, q = np.append(0.0, w), np.append(one.alone, q)
    if not w.size or not np.isfinite(w[-1]):
        return None
    variance, second = float(np.sum(q * (w - 1) ** 2)), float(np.sum(q * w**2))
    if not variance > 0:
        return None
    # S is nowhere far below t, because W >= 0, and above it hardly more than by one large ratio
    spread = math.sqrt(2 * count * second * (abs(cut) + 1))
    least, width = float(w[0]), float(w[-1] - w[0])
    low, high = max(count - spread, count * least), min(count + spread + width, count * float(w[-1]))
    wanted = max(_FINE, min(_FINEST, 2 * _FINEST / math.sqrt(count)))
    fineness = min(wanted, 2.0 ** math.floor(math.log2(_LONGEST * math.sqrt(variance) / (high - low))))
    if fineness < _COARSEST:
        return None
    # both ends are points of the grid, and so is everything where there are two ratios
    step = width / (1 if w.size == 2 else math.ceil(width * fineness / math.sqrt(variance)))
    size = 1 << max(8, math.ceil(math.log2((high - low) / step + 8)))
    place = (w - least) / step
    cell = np.minimum(np.floor(place).astype(np.int64), math.ceil(float(place[-1])) - 1)
    share = np.clip(place - cell, 0.0, 1.0)
    mass = np.bincount(cell, q * (1 - share), cell[-1] + 2) + np.bincount(cell + 1, q * share, cell[-1] + 2)
    crowd, first = int(np.max(np.bincount(cell))) + 8, math.floor((low - count * least) / step) - 2
    return _Split(least, step, mass, one.error + crowd * U, one.slip + 16 * U, one.out, first, size, w, q)


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """Losses in increasing order with log of their masses, how wrong these may be, and what was lost of the law."""

    loss: Array
    log_mass: Array
    lost: float
    error: float
    slip: float
    step: float = 0.0


@lru_cache(maxsize=16)
def _summed(epoch: Allocated, cut: float) -> _Sum:
    """The law of the loss of an epoch; OverflowError where no grid is long enough."""
    split = _grid(epoch.law, epoch.count, cut)
    if split is None:
        raise OverflowError("no grid holds so large ratios")
    with np.errstate(all="ignore"):
        return _read(epoch, split, cut)


def _read(epoch: Allocated, split: _Split, cut: float) -> _Sum:
    h, t, remove = split.step, epoch.count, epoch.direction == "remove"
    w = split.least + h * np.arange(split.mass.size)
    s = t * split.least + h * (split.first + np.arange(split.size, dtype=np.float64))
    seen = s / t if remove else np.ones(split.size)
    seen[s < 0] = 0.0

    every = max(1, split.size // _SOME)

    def tilted(theta: float) -> Tilted:
        weights = split.mass * np.exp(theta * (w - 1))
        total = float(weights.sum())
        weights[weights < _NOTHING * total] = 0.0  # which the window does not see, and floats take long for
        return Tilted(weights / total, math.log(total), 0, 0.0, 0.0, 0.0, 0.0)

    def noisy(theta: float) -> float:
        """log of what the noise adds up to, but for a factor."""
        cgf = float(np.log(np.sum(split.share * np.exp(theta * (split.ratio - 1)))))
        value = float(log_sum(2 * (np.log(seen[::every]) - theta * (s[::every] - t)))) / 2 + t * cgf
        return value if math.isfinite(value) else math.inf

    reach = (
        min(float(w[-1]), split.size * h / 2)
        if remove
        else -math.sqrt(t * float(np.sum(split.mass * (w - 1) ** 2))) * 4
    )
    tilts = [sign / reach for sign in _TILTS]
    theta = min(tilts, key=noisy)
    one = tilted(theta)
    found, noise = convolved([(one, t)], split.size, split.first)
    lift = t * one.cgf - theta * (s - t)
    back = seen * np.exp(lift)
    mass = np.maximum(found, 0.0) * back
    mass[mass < 1e-300] = 0.0
    silent = found <= 4 * max(-float(found.min()), 0.0)  # where masses are negative there is nothing but noise
    lost = noise * math.sqrt(float(np.sum(back * back))) + t * split.out + _outside(split, t, remove)
    kept = (s > 0) & ~silent & (np.log(mass) >= cut - _NEGLIGIBLE)
    lost += float(mass[~kept].sum())
    loss, log_mass = np.log(s[kept] / t), np.log(mass[kept])
    if not remove:
        loss, log_mass = -loss[::-1], log_mass[::-1]
    each = split.error + U * (8 + 4 * (abs(theta) * float(w[-1]) + abs(one.cgf)))  # of the weights of one step
    error = t * each + U * (64 + 8 * (float(np.max(np.abs(lift[kept]), initial=0.0)) + abs(t * one.cgf)))
    if not loss.size or not math.isfinite(lost):
        raise OverflowError("nothing is left of the law")
    return _Sum(loss, log_mass, min(float(raised(lost, MANY)), 1.0), error, split.slip + 8 * U)


def _outside(split: _Split, count: int, remove: bool) -> float:
    """A bound of the mass whose sum lies outside of the window, t times the least ratio taken away."""
    low, high = split.step * split.first, split.step * (split.first + split.size - 1)
    total = float(split.mass.sum())
    plain = Tilted(split.mass / total, math.log(total), 0, 0.0, 0.0, 0.0, 0.0)
    if not remove:
        return escaping([(plain, count)], split.step, low, high, both=low > 0)
    biased = split.mass * (split.least + split.step * np.arange(split.mass.size))
    there = Tilted(biased / biased.sum(), 0.0, 0, 0.0, 0.0, 0.0, 0.0)
    rounds = [(there, 1), (plain, count - 1)] if count > 1 else [(there, 1)]
    return escaping(rounds, split.step, low, high, both=low > 0)


@lru_cache(maxsize=16)
def _fewer(epoch: Allocated, cut: float) -> _Sum:
    """The law on a fine grid of losses, on which it is split once more."""
    found = _summed(epoch, cut)
    low, high = float(found.loss[0]), float(found.loss[-1])
    step = 2.0 ** math.ceil(math.log2(max(high - low, 1e-300) / _FEWER))
    first, last = math.floor(low / step) - 2, math.ceil(high / step) + 2
    grid = Grid(step, 0.0, first, last - first + 1)
    left, right, atoms = (np.full(count, -np.inf) for count in (grid.count - 1, grid.count - 1, grid.count))
    slip, error = place_atoms(found.loss, found.log_mass, grid, left, right, atoms)
    log_mass = np.logaddexp(atoms, np.logaddexp(np.append(left, -np.inf), np.append(-np.inf, right)))
    there = log_mass > -np.inf
    slip += found.slip + misplaced(low, high) + 2 * error
    return _Sum(grid.points()[there], log_mass[there], found.lost, found.error + error, slip, step)


@lru_cache(maxsize=16)
def _thinned(epoch: Allocated) -> tuple[Array, Array]:
    """Losses and log masses of fewer points, by which a grid is chosen."""
    found = _summed(epoch, _round(_NODES_CUT))
    low, high = float(found.loss[0]), float(found.loss[-1])
    place = np.floor((found.loss - low) / max(high - low, 1e-300) * (_NODES - 1)).astype(np.int64)
    mass = np.exp(found.log_mass)
    total = np.bincount(place, mass, _NODES)
    mean = np.bincount(place, mass * found.loss, _NODES)
    there = total > 0
    return mean[there] / total[there], np.log(total[there])
