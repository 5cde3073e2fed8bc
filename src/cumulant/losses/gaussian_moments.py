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


@dataclass(frozen=True, slots=True)
class MomentGridSettings:
    """Tuning constants of the grid.

    What is left out is bounded and added to the radius, so validity does not depend on them (docs/rounding.md, Lemmas
    7a to 7c).
    """

    nodes_per_block: int = 8
    """Nodes of a block; trades the number of bounds against nodes that do not matter."""

    end_digits: float = 46.0
    """Nats below the integral of what lies past both ends; e^-46 is 2^-66, below the last bit of a float."""

    block_digits: float = 46.0
    """Nats below the integral of a block that is left out; the same as for the ends."""

    largest_cut: float = 1e-14
    """Part of the integral that may be left out in all; beyond it the panels are asked."""

    widest_radius: float = 1e-7
    """Relative radius beyond which the panels are asked."""

    steps_per_unit: int = 256
    """Steps are multiples of 1/256, so that nodes are exact floats."""

    widest_turn: float = 3.1
    """Largest |Im x| of the strip; below pi, at which w may be 0 (Lemma 7a)."""

    least_step: float = 0.125
    """Smallest step in standard deviations; chosen by hand: finer steps take many nodes."""

    largest_step: float = 0.625
    """Largest step in standard deviations; the rule then errs by e^-50 (Lemma 7a)."""

    largest_shift: float = 2.0
    """Largest shift that is served; beyond it the strip is too narrow for few nodes."""

    farthest: float = 2000.0
    """Order times shift beyond which an order would take too many blocks."""

    smallest: float = 1e-100
    """Rates, shifts and lambda below which terms may underflow."""

    least_lambda: float = 2.0**-40
    """The lambda that the step is chosen for; one step serves all orders."""

    most_pairs: int = 256
    """Shifts and rates that are remembered; chosen by hand, a bound of memory."""

    most_orders: int = 4096
    """Orders that are remembered for each; chosen by hand, a bound of memory."""

    steepest: float = 50.0
    """lambda times rate times shift beyond which `profile_excess` does not answer: the panels would not resolve it."""


SETTINGS = MomentGridSettings()
"""The settings in force; a test may replace them."""

END_TRIALS = np.arange(6)[:, None]
"""Blocks beyond the first possible end that are tried, one in each row."""

SMALL = 0.5
"""|lambda L| up to which e^y - 1 - y is its series; derived: a term is then less than a quarter of the one before
(Lemma 7c)."""

FACTORIALS = (1 / np.cumprod(np.arange(1.0, 16.0))[1:]).tolist()
"""1/2!, 1/3!, … 1/15!: for |y| <= 1/2 the rest of the series is below u/8 of it (Lemma 7c)."""

VANISHING_WEIGHT = 2.0**-900
"""Weights below it are 0; derived: far from underflow (Lemma 7c of docs/rounding.md)."""

FORGOTTEN_WEIGHT = 2.0**-850
"""A bound of what a vanishing weight loses at a node; derived (Lemma 7c of docs/rounding.md)."""

LEAST_INTEGRAL = 2.0**-780
"""Integrals below it are left to the panels; derived: 2^70 times what vanishing weights lose."""

LOG_ROOT = Enclosure(0.5 * math.log(2 * math.pi), 2.0**-52)
"""log sqrt(2 pi) with the rounding of its float."""


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
    s = step * np.arange(SETTINGS.nodes_per_block * first, SETTINGS.nodes_per_block * end)
    t = BOUNDED.number(shift)
    L = enclosed_loss(t * s, rate)
    z = t * 0.5 + s
    log_weight = L - z * z * 0.5 + (BOUNDED.log(step) - LOG_ROOT)
    weight = BOUNDED.exp(log_weight)
    known = weight.mid > VANISHING_WEIGHT
    relative = np.where(known, np.expm1(log_weight.radius) + NEAR, 0.0)
    weight = Enclosure(np.where(known, weight.mid, 0.0), np.where(known, weight.radius, 0.0))
    size = np.abs(L.mid)
    loss_error = raised(np.where(size > 0, L.radius / np.where(size > 0, size, 1.0), 0.0) + 2 * U, ROUGH)
    error = log_weight.radius + relative + 2.5 * loss_error + 20 * U
    bent: Any = BOUNDED.excess(-L) * weight
    total, radius = (
        np.cumsum(np.sum(v.reshape(-1, SETTINGS.nodes_per_block), axis=1)) for v in (bent.mid, bent.radius)
    )
    linear_part = Enclosure(
        total, raised(radius + (SETTINGS.nodes_per_block + np.arange(total.size)) * U * total, ROUGH)
    )
    shape = -1, SETTINGS.nodes_per_block
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
    widest = SETTINGS.widest_turn / t
    step = (
        math.floor(min(strip_step(widest, need), SETTINGS.largest_step) * SETTINGS.steps_per_unit)
        / SETTINGS.steps_per_unit
    )
    if step < SETTINGS.least_step:
        return step, math.inf
    c = min(2 * math.pi / step, widest)
    turn = 2 * math.pi * c / step
    return step, math.log(2) + c * c / 2 - turn - math.log1p(-math.exp(-turn)) + 1e-6


_latest: dict[Hashable, Array] = {}
"""Rows of lambda, increasing, midpoint and radius, for the latest shifts and rates. What is said of an order does not depend
on the orders that were asked with it."""


def log_excess(shift: Fraction, rate: Fraction, lam: Array) -> Enclosure:
    """Return log E f_a(w) for each lambda, remembered.

    It is NaN where the grid would be too fine or too long; the caller then asks the panels.
    """
    key, nothing = (shift, rate), np.zeros((3, 0))
    known = _latest.get(key, nothing)
    if known.shape[1] + lam.size > SETTINGS.most_orders:
        known = nothing
    place = np.searchsorted(known[0], lam)
    new = np.append(known[0], np.nan)[place] != lam
    if new.any():
        asked = np.unique(lam[new])
        found = _evaluate(shift, rate, asked)
        known = np.concatenate([known, [asked, found.mid, found.radius]], axis=1)
        known = known[:, np.argsort(known[0], kind="stable")]
        if len(_latest) >= SETTINGS.most_pairs:
            _latest.clear()
        _latest[key] = known
        place = np.searchsorted(known[0], lam)
    return Enclosure(known[1][place], known[2][place])


def _evaluate(shift: Fraction, rate: Fraction, lam: Array) -> Enclosure:
    """Evaluate log E f_a(w) on the grid; NaN for orders, shifts and rates that are out of reach."""
    value = Enclosure(np.full(lam.shape, np.nan), np.full(lam.shape, np.nan))
    t, g = float(shift), Rate.of(rate)
    near = ((lam + 1) * t <= SETTINGS.farthest) & (lam > SETTINGS.smallest)
    if near.any() and min(g.g, g.kept, t) >= SETTINGS.smallest and t <= SETTINGS.largest_shift:
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
    step, log_error = _trapezoid_step(
        t, SETTINGS.end_digits - min(math.log(SETTINGS.least_lambda) + 2 * log_g + shape, 0.0)
    )
    if log_error == math.inf:
        return Enclosure(np.full(lam.shape, np.nan))
    # E (g e^x)^a, where that is most of M
    far = order * (lam * (t * t / 2) + log_g)
    size = np.where(far > 1, np.maximum(size, far), size)
    width, beyond_two = SETTINGS.nodes_per_block * step, np.maximum(order - 2, 0.0)

    def log_heights(s: Array) -> tuple[Array, Array]:
        """Return the logarithms of both bounds of f_a, which are convex functions of s."""
        up = np.maximum(t * s, 0.0)
        gain = np.maximum(g.loss(up), 0.0)
        return log_order + order * gain, math.log(2) + log_curvature + 2 * up + beyond_two * gain

    # past both ends
    steepest = np.maximum(order, 2.0) * t
    ends = np.ceil((steepest - t / 2) / width) + 1 + END_TRIALS
    s = ends * width
    density = (s + t / 2) ** 2 / 2
    tail = np.log(step + 1 / (s + t / 2 - steepest)) - density
    heights = log_heights(s)
    right = np.minimum(*heights) + tail + rounding_slack(heights[0] + heights[1] + density)
    chosen = np.argmax(
        np.concatenate([right[:-1] <= size - SETTINGS.end_digits, np.ones((1, lam.size), dtype=bool)]), axis=0
    )
    each = np.arange(lam.size)
    end, right = ends[chosen, each].astype(np.int64), right[chosen, each]
    first = -math.ceil((math.sqrt(2 * (SETTINGS.end_digits - shape)) + t / 2) / width)
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
    kept = held > size[row] - SETTINGS.block_digits
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
    small = size <= SMALL
    value, bound = np.empty_like(y), np.empty_like(y)
    if small.any():
        near = y[small]
        series = np.full_like(near, FACTORIALS[-1])
        for coefficient in FACTORIALS[-2::-1]:
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
    rounding = over_rows(error) + U * (top + blocks + SETTINGS.nodes_per_block + 8) * over_rows(bound)
    rounding = (
        rounding
        + times * (linear_part.radius + 8 * U * linear_part.mid)
        + FORGOTTEN_WEIGHT * SETTINGS.nodes_per_block * (end + 1)
    )
    left_out = np.bincount(dropped[0], np.exp(dropped[1] - top[dropped[0]]), rows) + sum(
        np.exp(end - top) for end in beyond
    )
    # |T - I| <= e (I + 2 + 2 a g)
    rule = math.exp(log_error)
    missed = rule * (2 + 2 * (lam + 1) * g.g) * scale
    cut = (left_out + missed) / total + 2 * rule
    part = raised(rounding / total + cut, ROUGH)
    part = np.where(
        (part < SETTINGS.widest_radius) & (cut < SETTINGS.largest_cut) & (total > LEAST_INTEGRAL), part, np.nan
    )
    log_total = np.log(total)
    mid = top + log_total
    return Enclosure(mid, part / (1 - part) + NEAR * np.abs(log_total) + U * np.abs(mid))


# ---- what the profile has beyond the pair, in floats

FOLDED_PANELS = np.array([[0.0, 1.0], [1.0, 2.5], [2.5, 5.0], [5.0, 10.0]])
"""Panels of s in standard deviations, on each side of 0, for `profile_excess`; beyond 10 there is no mass."""

POWERS = np.arange(2.0, 16.0)
"""The exponents of the series of e^y - 1 - y."""


def profile_excess(shift: Fraction, rate: Fraction, lam: Array) -> Array:
    """Return E[f_{1-a}(w); x > 0] - E[f_a(w); x < 0] in floats: profile's moment less pair's.

    It is NaN where the integrand is too steep for these panels; the caller then asks the nodes.

    f_{1-a} = excess(-lambda L) + lambda excess(L) and f_a = w {excess(lambda L) + lambda excess(-L)}: where the signs are
    these, all of it is bounded, and what is far out does not matter at any order.
    """
    t, g = float(shift), Rate.of(rate)
    if min(rate, 1 - rate, shift) < SETTINGS.smallest or t > 1:
        return np.full(lam.shape, np.nan)
    loss, weight, linear_part = _folded_nodes(t, g)
    largest = np.max(loss, axis=1)
    small = lam[:, None] * largest <= SMALL
    powers = np.multiply.accumulate(
        np.concatenate([lam[:, None] ** 2, np.broadcast_to(lam[:, None], (lam.size, 13))], 1), 1
    )
    signs = np.where(POWERS % 2 == 0, 1.0, -1.0) * FACTORIALS
    moments = signs[:, None] * np.einsum("pkn,pn->kp", loss[:, None, :] ** POWERS[:, None], weight)
    value = np.sum(np.where(small, powers @ moments, 0.0), axis=1) + lam * linear_part
    row, panel = np.nonzero(~small)
    if row.size:
        y = lam[row, None] * loss[panel]
        value += np.bincount(row, np.sum((np.expm1(-y) + y) * weight[panel], axis=1), lam.size)
    return np.where(lam * (g.g * t) <= SETTINGS.steepest, value, np.nan)


@lru_cache(maxsize=64)
def _folded_nodes(t: float, g: Rate) -> tuple[Array, Array, float]:
    """Return |L| and weights at nodes on both sides of x = 0, and the part linear in lambda."""
    x, w = legendre(12)
    width = FOLDED_PANELS[:, 1:] - FOLDED_PANELS[:, :1]
    s = FOLDED_PANELS[:, :1] + width * x
    above, below = g.loss(t * s), g.loss(-t * s)
    share = width * w / math.sqrt(2 * math.pi)
    up, down = share * np.exp(-((s + t / 2) ** 2) / 2), share * np.exp(below - (s - t / 2) ** 2 / 2)
    linear_part = float(np.sum(up * FLOATS.excess(above)) - np.sum(down * FLOATS.excess(-below)))
    return np.concatenate([above, -below]), np.concatenate([up, -down]), linear_part
