"""Integrals of positive functions, in log space, many at once.

Every function here integrates e^f and is given f, so that nothing overflows and nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import Array

Rows = Any
LogFunctions = Callable[[Array, Rows], Array]
"""(x, rows) -> f: x has one row of points for each function named in `rows`, an index array or a slice."""


@dataclass(frozen=True, slots=True)
class QuadratureSettings:
    """Tuning constants of the self-checked quadrature.

    Its answers are estimated, so none affects a proof.
    """

    fall: float = 40.0
    """Nats below the largest value at which a log-concave integral is cut; at most e^-40 of it is left out."""

    rows_at_once: int = 2048
    """Log-concave functions that are integrated at once; a bound of memory."""

    panel_nodes: int = 16
    """Gauss nodes of a panel."""

    most_modes: int = 16
    """Local maxima that are refined; the highest count."""

    coarse_stride: int = 40
    """Points of the scan in one first panel."""

    tolerance: float = 1e-12
    """Error of a panel as a part of the whole integral."""

    noise: float = 2.0**-47
    """Error of f as a part of it: halving a panel does not help against the rounding of an exponent."""

    negligible: float = 1e-15
    """Part of the whole integral below which a panel is not looked into."""

    trust: float = 1e-6
    """Estimated relative error beyond which an integral is not returned."""

    most_halvings: int = 60
    """Halvings of a panel; a float has 52 bits."""

    most_panels: int = 1000
    """Panels at one level of one integral; only noise asks for more."""


SETTINGS = QuadratureSettings()
"""The settings in force; a test may replace them."""

PANEL_POINTS = SETTINGS.panel_nodes + 2
"""Points of a panel: its nodes, then its two ends."""


@lru_cache(maxsize=8)
def legendre(nodes: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, w / 2


@lru_cache(maxsize=8)
def legendre_balls(nodes: int, bits: int) -> list[tuple[Any, Any]]:
    """Return Gauss-Legendre nodes and weights on [-1, 1] as balls of this precision.

    `bits` must be the precision in force; it is an argument only because the cache needs it.
    """
    from flint import arb

    found = []
    for k in range(nodes):
        found.append(arb.legendre_p_root(nodes, k, weight=True))
    return found


def ball_integral(integrand: Callable[[Any, bool], Any], low: Any, high: Any, bits: int, error: Any) -> Any:
    """Return the ball of an integral between two balls, to 2^-bits of itself or to this error.

    `integrand(x, analytic)` takes complex balls and is not finite where `analytic` is True and it has no analytic
    continuation, as Arb wants it. A ball that is wider than asked for is valid too.
    """
    from flint import acb, arb

    return acb.integral(integrand, low, high, rel_tol=arb(2) ** -bits, abs_tol=error).real


def log_concave(
    log_f: LogFunctions, mode: Array, scale: Array, low: Array | float, high: Array | float, nodes: int = 64
) -> Array:
    """Return log of the integral of e^f over (low, high), for log-concave f with known modes.

    `scale` is a distance over which f falls by about 1. The integral is cut where f has fallen by 40 (by log-concavity
    what is cut off is below e^-40 of the rest per unit of scale) and split at the mode; each half gets one Gauss rule,
    which converges faster than any power because the functions are analytic there.

    >>> import numpy as np
    >>> mean = np.array([0.0, 100.0])
    >>> gauss = lambda x, rows: -((x - mean[rows, None]) ** 2) / 2
    >>> np.exp(2 * log_concave(gauss, mean, np.ones(2), -np.inf, np.inf))
    array([6.28318531, 6.28318531])
    """
    low, high = np.broadcast_to(low, mode.shape), np.broadcast_to(high, mode.shape)
    value = np.empty(mode.shape)
    with np.errstate(all="ignore"):
        for start in range(0, len(mode), SETTINGS.rows_at_once):
            rows = slice(start, start + SETTINGS.rows_at_once)
            value[rows] = _log_concave_block(log_f, rows, mode[rows], scale[rows], low[rows], high[rows], nodes)
    return value


def _log_concave_block(
    log_f: LogFunctions, rows: Rows, mode: Array, scale: Array, low: Array, high: Array, nodes: int
) -> Array:
    """Return log of the integrals of these rows, from the mode to either end."""

    def f(x: Array) -> Array:
        return log_f(x[:, None], rows)[:, 0]

    x, w = legendre(nodes)
    top = f(mode)
    total = np.zeros_like(mode)
    for bound in (low, high):
        if np.array_equal(bound, mode):
            continue  # the mode is an end
        length = _reach(f, mode, top, scale, bound)
        points = mode[:, None] + np.sign(bound - mode)[:, None] * length[:, None] * x
        total += (np.exp(log_f(points, rows) - top[:, None]) @ w) * length
    return np.asarray(top + np.log(total))


def _reach(f: Callable[[Array], Array], mode: Array, top: Array, scale: Array, bound: Array) -> Array:
    """Return how far from the mode towards the bound f has fallen by 40.

    The distance is doubled, then bisected six times from the far side.
    """
    direction, limit = np.sign(bound - mode), np.abs(bound - mode)
    far = np.minimum(scale, limit)
    for _ in range(1100):
        grow = (far < limit) & (f(mode + direction * far) > top - SETTINGS.fall)
        if not grow.any():
            break
        far = np.where(grow, np.minimum(2 * far, limit), far)
    near = np.zeros_like(far)
    for _ in range(6):
        middle = (near + far) / 2
        fallen = f(mode + direction * middle) <= top - SETTINGS.fall
        near, far = np.where(fallen, near, middle), np.where(fallen, middle, far)
    return np.asarray(far)


def log_integrals(log_f: LogFunctions, count: int, grid: Array) -> Array:
    """Return log of the integrals of e^f over the line, each with its estimated error added.

    f is scanned on the grid, its modes are refined, and panels between them are halved until both halves agree with the
    whole. Tails past the grid must fall exponentially and are added. Self-checked, not proved: +inf where that fails.
    `log_f` also takes a single row of points shared by all functions.

    >>> import numpy as np
    >>> mean = np.array([0.0, 30.0])
    >>> gauss = lambda x, rows: -((x - mean[rows, None]) ** 2) / 2
    >>> np.exp(2 * log_integrals(gauss, 2, np.linspace(-50, 50, 401)))
    array([6.28318531, 6.28318531])
    """
    value = np.empty(count)
    with np.errstate(all="ignore"):
        for start in range(0, count, 128):
            rows = np.arange(start, min(start + 128, count))
            value[rows] = _log_integral_block(log_f, rows, grid)
    return value


def _log_integral_block(log_f: LogFunctions, rows: Array, grid: Array) -> Array:
    """Return log of the integrals of these rows, error added; +inf where the error is too large."""
    scan = np.broadcast_to(log_f(grid[None, :], rows), (len(rows), len(grid)))
    scan = np.where(np.isnan(scan), np.inf, scan)
    modes, heights = maxima(log_f, rows, grid, scan)
    top = np.maximum(np.max(scan, axis=1), np.max(heights, axis=1))
    # what lies past the grid: e^f falls there at the slope of the last cell, or the integral is not to be trusted
    beyond = np.zeros(len(rows))
    for end, inner in ((0, 1), (-1, -2)):
        slope = (scan[:, inner] - scan[:, end]) / abs(grid[inner] - grid[end])
        tail = np.where(slope > 0.01, np.exp(scan[:, end] - top) / slope, np.inf)
        beyond += np.where(scan[:, end] == -np.inf, 0.0, tail)
    total, error = _panels(log_f, rows, top, *_first_panels(grid, scan, modes, heights, top))
    trusted = (error + beyond <= SETTINGS.trust * total) & np.isfinite(top)
    value = np.where(trusted, top + np.log(total + error + beyond), np.inf)
    return np.where((top == -np.inf) & (beyond == 0), -np.inf, value)


def strip_step(widest: float, need: float) -> float:
    """Return a step with which the trapezoid rule of a normal density errs by e^-need.

    Everything must be analytic in a strip of this width. The rule errs by about e^{d^2/2 - 2 pi d/h} for every d: d =
    2 pi / h is the best line, if the strip is that wide.
    """
    best = math.pi * math.sqrt(2 / need)
    return best if 2 * math.pi / best <= widest else 2 * math.pi * widest / (need + widest * widest / 2)


def maxima(log_f: LogFunctions, rows: Array, grid: Array, scan: Array) -> tuple[Array, Array]:
    """Return the places and heights of the 16 highest local maxima of each row.

    `scan` holds the rows on the grid; between the neighbours of a scanned maximum golden sections refine it. Points of
    the grid fill up a row that has fewer maxima.
    """
    inside = scan[:, 1:-1]
    peak = (inside >= scan[:, :-2]) & (inside > scan[:, 2:]) | (inside > scan[:, :-2]) & (inside >= scan[:, 2:])
    height = np.where(peak, inside, -np.inf)
    chosen = np.argsort(-height, axis=1)[:, : SETTINGS.most_modes] + 1
    modes, heights = grid[chosen], np.take_along_axis(scan, chosen, axis=1)
    # a row with few peaks fills up with points that are none: only peaks are refined
    real = np.take_along_axis(peak, chosen - 1, axis=1)
    place, owner = chosen[real], np.repeat(rows, real.sum(axis=1))
    if not place.size:
        return modes, heights
    low, high = grid[place - 1], grid[place + 1]
    golden = (np.sqrt(5) - 1) / 2
    for _ in range(45):
        left, right = high - golden * (high - low), low + golden * (high - low)
        f = log_f(np.stack([left, right], axis=1), owner)
        keep = f[:, 0] >= f[:, 1]
        low, high = np.where(keep, low, left), np.where(keep, right, high)
    found = log_f(((low + high) / 2)[:, None], owner)[:, 0]
    found = np.where(np.isnan(found), np.inf, found)
    # a peak narrower than the sections see is kept where it was scanned
    scanned = heights[real]
    modes[real] = np.where(found >= scanned, (low + high) / 2, grid[place])
    heights[real] = np.maximum(found, scanned)
    return modes, heights


def _first_panels(grid: Array, scan: Array, modes: Array, heights: Array, top: Array) -> tuple[Array, Array, Array]:
    """Return owner, low end and width of panels between modes and every 40th point.

    Panels are left out where the scan saw less than e^-60 of the top.
    """
    count, cells = len(top), np.arange(0, len(grid) - 1, SETTINGS.coarse_stride)
    coarse = np.append(grid[cells], grid[-1])
    seen = np.maximum(np.maximum.reduceat(scan[:, :-1], cells, axis=1), scan[:, np.append(cells[1:], len(grid) - 1)])
    place = np.searchsorted(coarse, modes, side="right") - 1
    for beside in (place, np.maximum(place - 1, 0)):  # a mode on the border belongs to both sides
        np.maximum.at(seen, (np.arange(count)[:, None], np.minimum(beside, len(cells) - 1)), heights)
    breaks = np.sort(np.concatenate([np.broadcast_to(coarse, (count, len(coarse))), modes], axis=1), axis=1)
    low, width = breaks[:, :-1], np.diff(breaks, axis=1)
    cell = np.minimum(np.searchsorted(coarse, low, side="right") - 1, len(cells) - 1)
    keep = (width > 0) & (np.take_along_axis(seen, cell, axis=1) > top[:, None] - 60)
    return np.nonzero(keep)[0], low[keep], width[keep]


@lru_cache(maxsize=1)
def _ends() -> Array:
    """Return the weights that extrapolate values at a panel's nodes to its two ends (Lagrange)."""
    x, _ = legendre(SETTINGS.panel_nodes)
    others = x[None, :] + np.where(np.eye(len(x)) > 0, np.nan, 0.0)
    return np.array([np.nanprod((end - others) / (x[:, None] - others), axis=1) for end in (0.0, 1.0)])


def _panels(
    log_f: LogFunctions, rows: Array, top: Array, owner: Array, low: Array, width: Array
) -> tuple[Array, Array]:
    """Return integral and error estimate of e^{f - top} for each row, by halving its panels."""
    x, w = legendre(SETTINGS.panel_nodes)
    outside, ends = x[0], _ends()
    points = np.concatenate([x, [0.0, 1.0]])
    count = len(rows)
    reference = np.where(np.isfinite(top), top, 0.0)
    tolerance = np.maximum(SETTINGS.tolerance, SETTINGS.noise * np.abs(reference))

    def rule(owner: Array, low: Array, width: Array) -> tuple[Array, Array, Array]:
        """Return the rule on each panel, a bound of its mass, and what may hide beside its nodes.

        A kink or a peak there is missed by a panel and by its halves alike, so that their agreement says nothing; but
        the values at the ends then differ from what the nodes extrapolate to.
        """
        f = np.exp(log_f(low[:, None] + width[:, None] * points, rows[owner]) - reference[owner, None])
        nodes = f[:, :-2]
        hidden = np.sum(np.abs(nodes @ ends.T - f[:, -2:]), axis=1) * outside * width
        return (nodes @ w) * width, np.max(f, axis=1) * width, hidden

    parent = rule(owner, low, width)[0]
    total, error = np.zeros(count), np.zeros(count)
    for depth in range(SETTINGS.most_halvings):
        half = width / 2
        left, right = rule(owner, low, half), rule(owner, low + half, half)
        whole = left[0] + right[0]
        gap = np.maximum(np.abs(whole - parent), left[2] + right[2])
        gap = np.where(np.isnan(gap), np.inf, gap)
        scale = (total + np.bincount(owner, whole, count))[owner]
        # a panel is done when its halves agree and hide nothing, or when it cannot hold anything that matters
        done = (np.maximum(left[1], right[1]) <= SETTINGS.negligible * scale) | (gap <= tolerance[owner] * scale)
        done |= (np.bincount(owner, ~done, count) > SETTINGS.most_panels)[owner] | (depth == SETTINGS.most_halvings - 1)
        total += np.bincount(owner[done], whole[done], count)
        error += np.bincount(owner[done], gap[done], count)
        todo = ~done
        if not todo.any():
            break
        parent = np.concatenate([left[0][todo], right[0][todo]])
        low = np.concatenate([low[todo], low[todo] + half[todo]])
        width, owner = np.tile(half[todo], 2), np.tile(owner[todo], 2)
    return total, error
