"""Proposition 11's moment under Gaussian noise with a proved error: one grid, all orders.

The integrand is analytic in a strip, where the trapezoid rule errs by less than floats show with a step of half a
standard deviation, so that nodes are few and what depends on them alone is evaluated once for all orders. Nodes come
in blocks; an order takes the blocks that may matter to it, and what the others hold is bounded. The lemmas are in
docs/rounding.md.

Letters: t = shift, g = rate, x = t s, w = 1 - g + g e^x, L = log w, a = lambda + 1, and s + t/2 ~ N(0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.losses.panels import rounding_slack
from cumulant.losses.subsampled import Rate, enclosed_loss
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.enclosure import BOUNDED, NEAR, Enclosure
from cumulant.numerics.quadrature import legendre, strip_step
from cumulant.numerics.rounding import ROUGH, U, raised

_NODES = 8
"""Nodes of a block."""

_DROP, _HELD = 46.0, 46.0
"""What lies past the ends is below e^-46 of the integral, roughly, and so is what a block holds that is left out."""

_CUT, _WIDEST = 1e-14, 1e-7
"""Where more than the first part was left out after all, or an error is above the second, nothing is claimed."""

_FINENESS = 256
"""Steps are multiples of 1/256, so that nodes are exact."""

_WIDEST_TURN = 3.1
_LEAST_STEP, _LARGEST_STEP = 0.125, 0.625
_LARGEST_SHIFT = 2.0
_FARTHEST = 2000.0
"""Order times shift beyond which an order would take too many blocks."""

_ENDS = np.arange(6)[:, None]
_SMALL = 0.5
"""|lambda L| up to which e^y - 1 - y is its series, in which a term is less than a quarter of the one before."""

_FACTORIALS = [1 / math.factorial(n) for n in range(2, 16)]
_VANISHING, _FORGOTTEN, _LEAST = 2.0**-900, 2.0**-850, 2.0**-780
"""Weights below the first are 0, which loses less than the second at every node; integrals below the third are left alone."""

_LOG_ROOT = Enclosure(0.5 * math.log(2 * math.pi), 2.0**-52)
_LEAST_LAMBDA = 2.0**-40
"""What the step is chosen for."""

_SMALLEST = 1e-100
"""Rates, shifts and lambda below which terms may underflow."""


@dataclass(frozen=True, slots=True)
class _NodeGrid:
    """Quantities that depend on the node alone; each row is one block of nodes.

    `loss` is L, `log_weight` is log(h q w), `weight` is h q w, `loss_error` is the relative error of lambda L, `error`
    bounds the other relative errors. `linear_part` is h q w (e^-L - 1 + L), which every order takes lambda times,
    summed up to each block.
    """

    loss: Array
    log_weight: Array
    weight: Array
    loss_error: Array
    error: Array
    linear_part: Enclosure


@lru_cache(maxsize=64)
def _node_grid(shift: Fraction, rate: Fraction, step: float, first: int, end: int) -> _NodeGrid:
    """Return the blocks first <= b < end of the nodes i step, each of NODES_PER_BLOCK nodes."""
    s = step * np.arange(_NODES * first, _NODES * end)
    t = BOUNDED.number(shift)
    L = enclosed_loss(t * s, rate)
    z = t * 0.5 + s
    log_weight = L - z * z * 0.5 + (BOUNDED.log(step) - _LOG_ROOT)
    weight = BOUNDED.exp(log_weight)
    known = weight.mid > _VANISHING
    relative = np.where(known, np.expm1(log_weight.radius) + NEAR, 0.0)
    weight = Enclosure(np.where(known, weight.mid, 0.0), np.where(known, weight.radius, 0.0))
    size = np.abs(L.mid)
    loss_error = raised(np.where(size > 0, L.radius / np.where(size > 0, size, 1.0), 0.0) + 2 * U, ROUGH)
    error = log_weight.radius + relative + 2.5 * loss_error + 20 * U
    bent: Any = BOUNDED.excess(-L) * weight
    total, radius = (np.cumsum(np.sum(v.reshape(-1, _NODES), axis=1)) for v in (bent.mid, bent.radius))
    linear_part = Enclosure(total, raised(radius + (_NODES + np.arange(total.size)) * U * total, ROUGH))
    shape = -1, _NODES
    return _NodeGrid(
        L.mid.reshape(shape),
        log_weight.mid.reshape(shape),
        weight.mid.reshape(shape),
        loss_error.reshape(shape),
        error.reshape(shape),
        linear_part,
    )


def _trapezoid_step(t: float, need: float) -> tuple[float, float]:
    """Return a step with which the rule errs by less than e^-need, and log of that error.

    The error is a part of M + 1 + 2 a g: on the line Im s = c, c t < pi, the integral of |f_a q| is at most e^{c^2/2}
    (M + 1 + 2 a g). It is +inf if the step would be too fine; nothing is then claimed.
    """
    widest = _WIDEST_TURN / t
    step = math.floor(min(strip_step(widest, need), _LARGEST_STEP) * _FINENESS) / _FINENESS
    if step < _LEAST_STEP:
        return step, math.inf
    c = min(2 * math.pi / step, widest)
    turn = 2 * math.pi * c / step
    return step, math.log(2) + c * c / 2 - turn - math.log1p(-math.exp(-turn)) + 1e-6


_latest: dict[Hashable, Array] = {}
"""Rows of lambda, increasing, midpoint and radius, for the latest shifts and rates. What is said of an order does not depend
on the orders that were asked with it."""

_PAIRS, _ORDERS = 256, 4096


def log_excess(shift: Fraction, rate: Fraction, lam: Array) -> Enclosure:
    """Return log E f_a(w) for each lambda, remembered.

    It is NaN where the grid would be too fine or too long; the caller then asks the panels.
    """
    key, nothing = (shift, rate), np.zeros((3, 0))
    known = _latest.get(key, nothing)
    if known.shape[1] + lam.size > _ORDERS:
        known = nothing
    place = np.searchsorted(known[0], lam)
    new = np.append(known[0], np.nan)[place] != lam
    if new.any():
        asked = np.unique(lam[new])
        found = _evaluate(shift, rate, asked)
        known = np.concatenate([known, [asked, found.mid, found.radius]], axis=1)
        known = known[:, np.argsort(known[0], kind="stable")]
        if len(_latest) >= _PAIRS:
            _latest.clear()
        _latest[key] = known
        place = np.searchsorted(known[0], lam)
    return Enclosure(known[1][place], known[2][place])


def _evaluate(shift: Fraction, rate: Fraction, lam: Array) -> Enclosure:
    """Evaluate log E f_a(w) on the grid; NaN for orders, shifts and rates that are out of reach."""
    value = Enclosure(np.full(lam.shape, np.nan), np.full(lam.shape, np.nan))
    t, g = float(shift), Rate.of(rate)
    near = ((lam + 1) * t <= _FARTHEST) & (lam > _SMALLEST)
    if near.any() and min(g.g, g.kept, t) >= _SMALLEST and t <= _LARGEST_SHIFT:
        with np.errstate(all="ignore"):
            value[near] = _on_grid(shift, rate, g, lam[near])
    return value


def _on_grid(shift: Fraction, rate: Fraction, g: Rate, lam: Array) -> Enclosure:
    """Choose the step and the blocks of each order, and sum them."""
    t, order, log_g = float(shift), lam + 1, math.log(g.g)
    log_curvature, log_order = np.log(order) + np.log(lam) + 2 * log_g, np.log(order)
    shape = math.log(math.expm1(t * t) / 2)
    size = log_curvature + shape
    # one step for all orders: what is said of an order must not depend on those that are asked with it
    step, log_error = _trapezoid_step(t, _DROP - min(math.log(_LEAST_LAMBDA) + 2 * log_g + shape, 0.0))
    if log_error == math.inf:
        return Enclosure(np.full(lam.shape, np.nan))
    # E (g e^x)^a, where that is most of M
    far = order * (lam * (t * t / 2) + log_g)
    size = np.where(far > 1, np.maximum(size, far), size)
    width, beyond_two = _NODES * step, np.maximum(order - 2, 0.0)

    def log_heights(s: Array) -> tuple[Array, Array]:
        """Return the logarithms of both bounds of f_a, which are convex functions of s."""
        up = np.maximum(t * s, 0.0)
        gain = np.maximum(g.loss(up), 0.0)
        return log_order + order * gain, math.log(2) + log_curvature + 2 * up + beyond_two * gain

    # past both ends
    steepest = np.maximum(order, 2.0) * t
    ends = np.ceil((steepest - t / 2) / width) + 1 + _ENDS
    s = ends * width
    density = (s + t / 2) ** 2 / 2
    tail = np.log(step + 1 / (s + t / 2 - steepest)) - density
    heights = log_heights(s)
    right = np.minimum(*heights) + tail + rounding_slack(heights[0] + heights[1] + density)
    chosen = np.argmax(np.concatenate([right[:-1] <= size - _DROP, np.ones((1, lam.size), dtype=bool)]), axis=0)
    each = np.arange(lam.size)
    end, right = ends[chosen, each].astype(np.int64), right[chosen, each]
    first = -math.ceil((math.sqrt(2 * (_DROP - shape)) + t / 2) / width)
    z = -first * width - t / 2
    left = log_curvature + math.log(step + 1 / z) - z * z / 2 + 1e-6

    # the blocks of every order, those that matter and what the others hold
    counts = end - first
    row = np.repeat(each, counts)
    block = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    edges = width * np.arange(first, int(end.max()) + 1)
    up = np.maximum(t * edges, 0.0)
    gain = np.maximum(g.loss(up), 0.0)
    low, rise = edges[block], gain[block + 1] - gain[block]

    def largest(at_low: Array, slope: Array) -> Array:
        # a chord lies above what is convex, and a chord plus the log density has its largest value in closed form
        s = np.clip(slope - t / 2, low, low + width)
        return at_low + slope * (s - low) - (s + t / 2) ** 2 / 2

    a, b = order[row], beyond_two[row]
    power = log_order[row] + largest(a * gain[block], a * rise / width)
    up_low, up_rise = up[block], up[block + 1] - up[block]
    curved = (math.log(2) + log_curvature)[row] + largest(
        b * gain[block] + 2 * up_low, (b * rise + 2 * up_rise) / width
    )
    held = (
        np.minimum(power, curved)
        + math.log(width)
        + rounding_slack(a * gain[block + 1] + 2 * up[block + 1] + low * low)
    )
    kept = held > size[row] - _HELD
    kept[np.cumsum(counts) - 1] |= ~np.logical_or.reduceat(kept, np.cumsum(counts) - counts)
    grid = _node_grid(shift, rate, step, first, int(end.max()))
    dropped, beyond = (row[~kept], held[~kept]), (left, right)
    return _sum_blocks(grid, lam, end - first - 1, row[kept], block[kept], dropped, beyond, log_error, g)


def _sum_blocks(
    grid: _NodeGrid,
    lam: Array,
    end: Array,
    row: Array,
    block: Array,
    dropped: tuple[Array, Array],
    beyond: tuple[Array, Array],
    log_error: float,
    g: Rate,
) -> Enclosure:
    """Sum the rule over the blocks that are kept, with all errors.

    f_a = w {excess(lambda L) + lambda excess(-L)}; the second part is taken on all blocks up to the end of the order.
    """
    rows = lam.size
    y = lam[row, None] * grid.loss[block]
    power = y + grid.log_weight[block]
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    top = np.maximum(np.ceil(np.maximum.reduceat(np.max(power, axis=1), starts)), 0.0)
    scale = np.exp(-top)
    weight = grid.weight[block]
    if top.any():
        power -= top[row, None]
        weight = weight * scale[row, None]
    size = np.abs(y)
    small = size <= _SMALL
    value, bound = np.empty_like(y), np.empty_like(y)
    if small.any():
        near = y[small]
        series = np.full_like(near, _FACTORIALS[-1])
        for coefficient in _FACTORIALS[-2::-1]:
            series *= near
            series += coefficient
        value[small] = bound[small] = weight[small] * (near * near * series)
    if not small.all():
        far = ~small
        z, c = y[far], weight[far]
        larger = np.where(z > 0, np.exp(power[far]) * -np.expm1(-np.maximum(z, 0.0)), c * -z)
        bound[far] = larger
        value[far] = larger - np.where(z > 0, z * c, -c * np.expm1(np.minimum(z, 0.0)))
    error = bound * (grid.loss_error[block] * size + 2 * U * np.abs(power) + grid.error[block])

    def over_rows(each: Array) -> Array:
        return np.bincount(row, np.einsum("ij->i", each), rows)

    blocks = np.bincount(row, minlength=rows)
    linear_part, times = grid.linear_part[end], lam * scale
    total = over_rows(value) + times * linear_part.mid
    rounding = over_rows(error) + U * (top + blocks + _NODES + 8) * over_rows(bound)
    rounding = rounding + times * (linear_part.radius + 8 * U * linear_part.mid) + _FORGOTTEN * _NODES * (end + 1)
    left_out = np.bincount(dropped[0], np.exp(dropped[1] - top[dropped[0]]), rows) + sum(
        np.exp(end - top) for end in beyond
    )
    # |T - I| <= e (I + 2 + 2 a g)
    rule = math.exp(log_error)
    missed = rule * (2 + 2 * (lam + 1) * g.g) * scale
    cut = (left_out + missed) / total + 2 * rule
    part = raised(rounding / total + cut, ROUGH)
    part = np.where((part < _WIDEST) & (cut < _CUT) & (total > _LEAST), part, np.nan)
    log_total = np.log(total)
    mid = top + log_total
    return Enclosure(mid, part / (1 - part) + NEAR * np.abs(log_total) + U * np.abs(mid))


# ---- what the profile has beyond the pair, in floats

_PANELS = np.array([[0.0, 1.0], [1.0, 2.5], [2.5, 5.0], [5.0, 10.0]])
_POWERS = np.arange(2.0, 16.0)
_STEEPEST = 50.0


def profile_excess(shift: Fraction, rate: Fraction, lam: Array) -> Array:
    """Return E[f_{1-a}(w); x > 0] - E[f_a(w); x < 0] in floats: profile's moment less pair's.

    It is NaN where the integrand is too steep for these panels; the caller then asks the nodes.

    f_{1-a} = excess(-lambda L) + lambda excess(L) and f_a = w {excess(lambda L) + lambda excess(-L)}: where the signs are
    these, all of it is bounded, and what is far out does not matter at any order.
    """
    t, g = float(shift), Rate.of(rate)
    if min(rate, 1 - rate, shift) < _SMALLEST or t > 1:
        return np.full(lam.shape, np.nan)
    loss, weight, linear_part = _folded_nodes(t, g)
    largest = np.max(loss, axis=1)
    small = lam[:, None] * largest <= _SMALL
    powers = np.multiply.accumulate(
        np.concatenate([lam[:, None] ** 2, np.broadcast_to(lam[:, None], (lam.size, 13))], 1), 1
    )
    signs = np.where(_POWERS % 2 == 0, 1.0, -1.0) * _FACTORIALS
    moments = signs[:, None] * np.einsum("pkn,pn->kp", loss[:, None, :] ** _POWERS[:, None], weight)
    value = np.sum(np.where(small, powers @ moments, 0.0), axis=1) + lam * linear_part
    row, panel = np.nonzero(~small)
    if row.size:
        y = lam[row, None] * loss[panel]
        value += np.bincount(row, np.sum((np.expm1(-y) + y) * weight[panel], axis=1), lam.size)
    return np.where(lam * (g.g * t) <= _STEEPEST, value, np.nan)


@lru_cache(maxsize=64)
def _folded_nodes(t: float, g: Rate) -> tuple[Array, Array, float]:
    """Return |L| and weights at nodes on both sides of x = 0, and the part linear in lambda."""
    x, w = legendre(12)
    width = _PANELS[:, 1:] - _PANELS[:, :1]
    s = _PANELS[:, :1] + width * x
    above, below = g.loss(t * s), g.loss(-t * s)
    share = width * w / math.sqrt(2 * math.pi)
    up, down = share * np.exp(-((s + t / 2) ** 2) / 2), share * np.exp(below - (s - t / 2) ** 2 / 2)
    linear_part = float(np.sum(up * FLOATS.excess(above)) - np.sum(down * FLOATS.excess(-below)))
    return np.concatenate([above, -below]), np.concatenate([up, -down]), linear_part
