"""Where to put the nodes: quadrature of a kernel against the law of the loss under Q, all orders of a batch at once.

The windows follow the integrand: it is at most e^phi, phi = a L + log(density of the loss), and what lies e^-42 below
its largest sampled value is left out. phi has at most two humps, whose places come out of its convexity:
the Gaussian phi'' = -1/s + a * (logistic density), the Laplace phi'' >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.quadrature import legendre
from cumulant.pairs.mixing import sampled_loss

DROP = 42.0
"""Nodes whose term is below e^-42 of the largest are left out."""

_STEP = 0.45
"""Trapezoid step where the nearest singularity is pi away: the relative error is e^{-2 pi^2 / 0.45} = e^-44."""

_SMOOTH_STEP = 0.62
"""In standard deviations, where no singularity is near: e^{-2 pi^2 / 0.62^2} = e^-51."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """One run of nodes per order, laid end to end: L, and log(weight * max(w, 1)^a) less the offset of the order."""

    L: Array
    log_power: Array
    counts: Array
    offset: Array


@dataclass(frozen=True, slots=True)
class Rate:
    """g, 1 - g, which cannot be recovered from a rounded g, and h0 = log((1-g)/g)."""

    g: float
    kept: float

    @classmethod
    def of(cls, rate: Fraction) -> Rate:
        """M - 1 is quadratic in the rate, so 1e-140 is as small as floats can carry."""
        return cls(max(float(rate), 1e-140), max(float(1 - rate), 1e-140))

    @property
    def h0(self) -> float:
        return math.log(self.kept) - math.log(self.g)

    def loss(self, x: Array) -> Array:
        """L = log(1 - g + g e^x)."""
        return sampled_loss(x, self.g, self.kept)

    def rest(self, x: Array) -> Array:
        """L - x = log(g + (1-g) e^-x) for x >= 0."""
        if self.g > 0.5:
            return np.asarray(np.log1p(self.kept * np.expm1(-x)))
        return np.asarray(np.log(self.g + self.kept * np.exp(-x)))


def atoms(log_mass: Array, loss: Array, lam: Array, rate: Rate) -> Nodes:
    """The same finitely many losses x for every order."""
    L = rate.loss(loss)
    gain = np.maximum(L, 0.0)
    log_power = log_mass + gain + lam[:, None] * gain
    return Nodes(np.tile(L, lam.size), log_power.ravel(), np.full(lam.size, L.size), np.zeros(lam.size))


def log_integral(nodes: Nodes, term: Callable[..., Array], *lam: Array) -> Array:
    """log E_Q[term(lambda, L)] for each order; no lambda where the term is a slope."""
    mantissa = term(*(np.repeat(x, nodes.counts) for x in lam), nodes.L)
    starts = np.cumsum(nodes.counts) - nodes.counts
    top = np.maximum.reduceat(nodes.log_power, starts)
    total = np.add.reduceat(mantissa * np.exp(nodes.log_power - np.repeat(top, nodes.counts)), starts)
    return np.asarray(nodes.offset + (top + np.log(total)))


# --- Gaussian: x = shift z - s/2 with z standard normal under Q -------------------------------------------------------


def _logistic(x: Array) -> Array:
    return np.asarray(0.5 + 0.5 * np.tanh(x / 2))


def _bisect(above: Callable[[Array], Array], inner: Array, outer: Array, width: float) -> tuple[Array, Array]:
    """Shrink [inner, outer] around the last point where `above` holds, to this width or to neighbouring floats."""
    for _ in range(64):
        if not (np.abs(outer - inner) > width).any():
            break
        middle = (inner + outer) / 2
        holds = above(middle)
        inner, outer = np.where(holds, middle, inner), np.where(holds, outer, middle)
    return inner, outer


@dataclass(frozen=True, slots=True)
class GaussianWindows:
    """Per order up to two intervals of z that hold the integral of a kernel, and the step that resolves each."""

    low: Array
    high: Array
    step: Array
    row: Array
    offset: Array


def _gaussian_power(z: Array, lam: Array, shift: float, rate: Rate, offset: Array) -> tuple[Array, Array]:
    """L and a L - z^2/2 - offset, a = 1 + lambda; the offset is 0 or the height a(a-1)s/2 = log E_Q e^{ax}.

    Past h0 it is a (L - x) - (z - a shift)^2/2 + height - offset, where the large parts have cancelled on paper.
    """
    x = shift * z - shift * shift / 2
    L = rate.loss(x)
    rest = rate.rest(np.maximum(x, 0.0))
    far = rest + lam * rest - ((z - shift) - lam * shift) ** 2 / 2 + (_height(lam, shift) - offset)
    return L, np.where(x > max(rate.h0, 0.0) + 1, far, (L + lam * L - z * z / 2) - offset)


def _height(lam: Array, shift: float) -> Array:
    return np.asarray(lam * (lam + 1) * (shift * shift / 2))


def gaussian_windows(
    shift: float, rate: Rate, lam: Array, term: Callable[[Array], Array], floor: float
) -> GaussianWindows:
    """The parts of {z >= floor} where e^{-z^2/2} term matters; `term` takes a matrix of L, one column per order."""
    h0, order = rate.h0, lam + 1
    offset = np.zeros_like(lam)

    def loss(z: Array) -> Array:
        return shift * z - shift * shift / 2

    def phi(z: Array) -> Array:
        return _gaussian_power(z, lam, shift, rate, offset)[1]

    def rises(z: Array) -> Array:
        return order * shift * _logistic(loss(z) - h0) > z

    # phi is concave, then convex between the two points where a s * logistic density = 1, then concave again
    top = order * shift
    turn = 2 * np.arccosh(np.maximum(shift * np.sqrt(order) / 2, 1.0)) / shift
    centre = h0 / shift + shift / 2
    twice = shift * shift * order > 4
    c1 = np.where(twice, np.clip(centre - turn, 0.0, top), top)
    c2 = np.where(twice, np.clip(centre + turn, 0.0, top), top)
    two = ~rises(c1) & rises(c2)
    zero = np.zeros_like(order)
    # first mode in [0, c1], second in [c2, top], valley between (falling, then rising)
    only_first = ~rises(c2)
    sign = np.array([[False], [False], [True]])
    inner, _ = _bisect(lambda z: rises(z) != sign, np.stack([zero, c2, c1]), np.stack([c1, top, c2]), 0.05)
    first = np.where(two | only_first, inner[0], inner[1])
    second = np.where(two | ~only_first, inner[1], inner[0])
    valley = np.where(two, inner[2], first)

    # exponents are measured from the height where the far hump is the higher one
    offset = np.where(phi(second) > phi(first), _height(lam, shift), 0.0)
    offset = np.where(~two & (loss(second) > max(h0, 0.0) + 1), _height(lam, shift), offset)

    # the level: e^-42 of the largest value of the integrand among points near the modes
    spread = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 4.0])[:, None]
    sample = np.concatenate([np.maximum(first, floor) + spread, np.maximum(second, floor) + spread])
    sample = np.maximum(sample, floor + 1e-3)
    level = np.max(phi(sample) + np.log(term(rate.loss(loss(sample)))), axis=0) - DROP

    # the edges: beyond [0, top] phi falls at least as fast as a Gaussian
    reach = np.sqrt(2 * np.maximum(np.maximum(phi(first), phi(second)) - level, 1.0)) + 1
    inner, edge = _bisect(
        lambda z: phi(z) >= level,
        np.stack([first, first, second, second]),
        np.stack([-reach, valley, valley, top + reach]),
        0.5,
    )
    left, right = edge[0], edge[1]
    first_alive = ~two | (phi(first) >= level)
    # where x < 0 the integrand is at most e^{-z^2/2} a g instead
    radius = np.sqrt(2 * np.maximum(np.log1p(rate.g * order) - offset - level, 0.0))
    matters = (radius > 0) & (floor < 0)
    left = np.where(matters, np.minimum(np.where(first_alive, left, np.inf), -radius), left)
    right = np.where(matters, np.maximum(np.where(first_alive, right, -np.inf), np.minimum(radius, shift / 2)), right)
    first_alive |= matters
    joined = ~two | ((phi(valley) >= level) | (right >= edge[2])) & first_alive
    low = np.stack([left, edge[2]])
    high = np.stack([np.where(joined, edge[3], right), edge[3]])
    alive = np.stack([first_alive, ~joined & (phi(second) >= level)])
    alive &= high > floor
    row = np.broadcast_to(np.arange(order.size), alive.shape)[alive]
    low, high = np.maximum(low[alive], floor), high[alive]
    # (1 + e^{-|x - h0|})^a is 1 to double precision beyond this distance from the singularities at h0 +- i pi
    clear = 40 + np.log1p(order[row])
    near = (loss(high) > h0 - clear) & (loss(low) < h0 + clear)
    step = np.where(near, min(_SMOOTH_STEP, _STEP / shift), _SMOOTH_STEP)
    by_row = np.argsort(row, kind="stable")
    return GaussianWindows(low[by_row], high[by_row], step[by_row], row[by_row], offset)


def _laid_out(low: Array, high: Array, step: Array, row: Array, rows: int) -> tuple[Array, Array, Array]:
    """Points low, low + step, … of every window, the step of each point, and how many belong to each row."""
    counts = np.ceil((high - low) / step).astype(np.int64) + 1
    starts = np.cumsum(counts) - counts
    index = np.arange(counts.sum()) - np.repeat(starts, counts)
    per_row = np.bincount(row, weights=counts, minlength=rows).astype(np.int64)
    return np.repeat(low, counts) + index * np.repeat(step, counts), np.repeat(step, counts), per_row


_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


def gaussian_line(windows: GaussianWindows, shift: float, rate: Rate, lam: Array) -> Nodes:
    """The trapezoid rule in z."""
    z, step, counts = _laid_out(windows.low, windows.high, windows.step, windows.row, lam.size)
    return _gaussian_nodes(z, np.log(step), counts, shift, rate, lam, windows.offset)


def gaussian_half_line(windows: GaussianWindows, shift: float, rate: Rate, lam: Array) -> Nodes:
    """The trapezoid rule in t, z - shift/2 = c log(1 + e^t): x > 0 only, and e^{3t} damps the end x = 0."""
    c = windows.step / _SMOOTH_STEP
    start, end = (windows.low - shift / 2) / c, (windows.high - shift / 2) / c
    t0 = np.where(start > 30, start, np.maximum(np.log(np.expm1(np.clip(start, 1e-300, 30.0))), -(DROP / 3 + 3)))
    t1 = np.where(end > 30, end, np.log(np.expm1(np.clip(end, 1e-3, 30.0))) + 1)
    t, step, counts = _laid_out(t0, t1, np.full_like(t0, _STEP), windows.row, lam.size)
    c = np.repeat(c, np.ceil((t1 - t0) / _STEP).astype(np.int64) + 1)
    z = c * np.logaddexp(0.0, t) + shift / 2
    return _gaussian_nodes(z, np.log(step * c) - np.logaddexp(0.0, -t), counts, shift, rate, lam, windows.offset)


def _gaussian_nodes(
    z: Array, log_weight: Array, counts: Array, shift: float, rate: Rate, lam: Array, offset: Array
) -> Nodes:
    each_offset = np.repeat(offset, counts)
    L, power = _gaussian_power(z, np.repeat(lam, counts), shift, rate, each_offset)
    power = np.where(L > 0, power, -z * z / 2 - each_offset)
    return Nodes(L, power + log_weight - _LOG_ROOT_TWO_PI, counts, offset)


# --- Laplace: atoms at both ends of [-t, t], density e^{-(x+t)/2} / 4 between -----------------------------------------


def laplace_nodes(shift: float, rate: Rate, lam: Array, term: Callable[[Array], Array], low: float) -> Nodes:
    """The atoms in [low, t] and Gauss-Legendre panels from both ends of that interval to the valley of the convex phi.

    A panel is at most 4 long (the singularities are pi away) and phi changes by at most 10 on it.
    """
    rows, order, h0 = lam.size, lam + 1, rate.h0
    atom_loss = np.array([-shift, shift]) if low < 0 else np.array([shift])
    atom_mass = -math.log(2) - (atom_loss + shift) / 2
    L = rate.loss(np.repeat(atom_loss[:, None], rows, axis=1))
    level = np.max(order * np.maximum(L, 0.0) + np.log(term(L)) + atom_mass[:, None], axis=0) - DROP

    def phi(x: Array) -> Array:
        # where x < 0 the integrand is at most a g instead of w^a
        return order * np.maximum(rate.loss(x), 0.0) + np.log1p(rate.g * order) - (x + shift) / 2

    valley = np.clip(h0 - np.log(2 * order - 1), low, shift)
    unit, share = legendre(20)
    points, weights = 2 * unit - 1, 2 * share
    lefts, widths, panel_rows = [], [], []
    for start, sign in ((np.full(rows, low), 1.0), (np.full(rows, shift), -1.0)):
        x, active = start, sign * (valley - start) > 0
        while active.any():
            speed = np.abs(order * _logistic(x - h0) - 0.5)
            width = np.minimum(np.minimum(4.0, 10 / np.maximum(speed, 0.5)), np.abs(valley - x))
            width = np.where(np.abs(valley - x) < 1.5 * width, np.abs(valley - x), width)
            following = x + sign * width
            lefts.append(np.minimum(x, following)[active])
            widths.append(width[active])
            panel_rows.append(np.flatnonzero(active))
            x = np.where(active, following, x)
            active = active & (sign * (valley - x) > 0) & (np.maximum(phi(x), phi(valley)) >= level)
    left, width, row = np.concatenate(lefts), np.concatenate(widths), np.concatenate(panel_rows)
    by_row = np.argsort(row, kind="stable")
    left, width, row = left[by_row, None], width[by_row, None], row[by_row]
    loss = left + width * (points + 1) / 2
    log_mass = np.log(width * weights / 2) - (loss + shift) / 2 - math.log(4)
    atom_rows = np.tile(np.arange(rows), atom_loss.size)
    row = np.concatenate([np.repeat(row, points.size), atom_rows])
    by_row = np.argsort(row, kind="stable")
    L = rate.loss(np.concatenate([loss.ravel(), np.repeat(atom_loss, rows)])[by_row])
    log_mass = np.concatenate([log_mass.ravel(), np.repeat(atom_mass, rows)])[by_row]
    gain = np.maximum(L, 0.0)
    return Nodes(L, log_mass + gain + lam[row[by_row]] * gain, np.bincount(row, minlength=rows), np.zeros(rows))
