"""The law of the privacy loss of Gaussian noise: float nodes, balls, panels and the grid.

The integrand is at most e^phi, phi = a L + log(density of the loss), which has at most two humps, because
phi'' = -1/s + a * (logistic density): their places come out of that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.losses import gaussian_moments, gaussian_sum
from cumulant.losses.grid import SMALLEST_LOSS, Loss
from cumulant.losses.integrals import DROP, Nodes, logistic
from cumulant.losses.law import Law, ball_exp
from cumulant.losses.panels import DEEPEST, LEFT_OUT, Line, Orders, rounding_slack
from cumulant.losses.subsampled import (
    BallTerm,
    Point,
    Rate,
    Term,
    analytic_mixed_ball,
    analytic_rest,
    enclosed_rest,
    gain,
)
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.quadrature import ball_integral
from cumulant.numerics.rationals import log_rational
from cumulant.numerics.search import shrink_bracket

LARGEST_SHIFT = 300.0
"""Sensitivity over noise beyond which no grid spans all scales; chosen by hand, validity does not depend on it."""

STEP = 0.45
"""Trapezoid step in units of x where the nearest singularity is pi away; derived: the relative error is e^{-2 pi^2 /
0.45} = e^-44."""

SMOOTH_STEP = 0.62
"""Trapezoid step in standard deviations where no singularity is near; derived: e^{-2 pi^2 / 0.62^2} = e^-51."""

FAR_ORDERS = 2.0**21
"""Order times shift beyond which the closed form of Lemma 7 takes over from cells (docs/rounding.md)."""

FAR_ERROR = 1e-15
"""Absolute error of the closed form of log M where protection is lost; derived (Lemma 7 of docs/rounding.md)."""

LOG_ROOT = 0.5 * math.log(2 * math.pi)
"""log sqrt(2 pi), the logarithm of the normal density's constant."""

ENCLOSED_LOG_ROOT = Enclosure(0.5 * math.log(2 * math.pi), 2.0**-52)
"""log sqrt(2 pi) with the rounding of its float."""


@dataclass(frozen=True, slots=True)
class GaussianLaw(Law, Line, Loss):
    """x = t z - t^2/2 ~ N(-s/2, s), t = shift, s = t^2; z ~ N(0, 1) under Q, N(t, 1) under P.

    For panels s = z - t/2 is the coordinate and exponents are of the size of (order times shift)^2; on a grid it is z.
    """

    shift: Fraction
    t: float = field(init=False, repr=False, compare=False)
    """The shift as a float, which a grid asks for thousands of times."""

    farthest = 2.0**23
    farthest_ball = 10**6

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", float(self.shift))

    @property
    def scale(self) -> Fraction:
        return self.shift

    # ---- nodes, and a ball

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        # the moment grows with the shift, so one whose square is below the smallest float may be enlarged
        shift = max(float(FLOATS.number(self.shift)), 1e-150)
        windows = _windows(shift, rate, lam, term, -math.inf if whole else shift / 2)
        return (_trapezoid_on_line if whole else _trapezoid_on_half_line)(windows, shift, rate, lam)

    def log_excess(self, rate: Fraction, lam: Array) -> Enclosure:
        return gaussian_moments.log_excess(self.shift, rate, lam)

    def profile_excess(self, rate: Fraction, lam: Array) -> Array:
        return gaussian_moments.profile_excess(self.shift, rate, lam)

    def far_cgf(self, rate: Fraction, lam: Array, on: Arithmetic) -> tuple[Array, Array]:
        value = _log_far_moment(self.shift, rate, on.asarray(lam), on)
        if on.exact:
            from flint import arb

            value = value + arb(0, FAR_ERROR)
        elif on.enclosing:
            value = Enclosure(value.mid, value.radius + FAR_ERROR)
        return _protection_is_lost(self.shift, rate, lam.astype(np.float64)), value

    def enclosure(
        self, term: BallTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        """Integrate in z by acb.integral up to where the tails are proved to be small.

        z > Z: w <= e^x, so the tail is at most E[e^{ax}; z > Z] = e^{a(a-1)s/2} erfc((Z - a shift)/sqrt 2)/2.
        z < -Y: the term is at most a g, so the tail is at most a g erfc(Y/sqrt 2)/2.
        """
        from flint import arb

        a, shift = float(order), float(self.shift)
        need = bits * math.log(2) - log_size
        Z = a * shift + math.ceil(math.sqrt(2 * max(need + a * (a - 1) * shift * shift / 2, 1.0))) + 1
        Y = math.ceil(math.sqrt(2 * max(need + math.log1p(a * float(rate)), 1.0))) + 1
        t, g, a_ball = BALLS.number(self.shift), BALLS.number(rate), BALLS.number(order)
        height, root_two = a_ball * (a_ball - 1) * t * t / 2, arb(2).sqrt()

        def near(z: Any, analytic: bool) -> Any:
            w = analytic_mixed_ball(t * z - t * t / 2, g)
            L, weight = w.log(analytic=analytic), (-z * z / 2).exp()
            return term(Point(w, L, weight, (a_ball * L).exp() * weight))

        def far(z: Any, analytic: bool) -> Any:
            # a L - z^2/2 = a (L - x) - (z - a t)^2/2 + a(a-1)s/2: the large parts cancel before balls see them
            x = t * z - t * t / 2
            rest = analytic_rest(x, g, analytic)
            power = (a_ball * rest - (z - a_ball * t) ** 2 / 2 + height).exp()
            return term(Point((rest + x).exp(), rest + x, (-z * z / 2).exp(), power))

        # split where humps can be, and where w stops being 1 - g and starts being g e^x
        turn = (math.log(float(1 - rate)) - math.log(float(rate))) / shift + shift / 2
        splits = {
            x for x in (0.0, turn, a * shift - 9, a * shift, a * shift + 9) if -Y < x < Z and (whole or x > shift / 2)
        }
        points = [arb(-Y) if whole else t / 2, *(arb(x) for x in sorted(splits)), arb(Z)]
        error, total = ball_exp(log_size) * arb(2) ** -bits, arb(0)
        for start, end in itertools.pairwise(points):
            integrand = far if start.mid() >= turn - 1e-9 * abs(turn) else near
            total += ball_integral(integrand, start, end, bits, error)
        total /= (2 * arb.pi()).sqrt()
        tail = height.exp() * ((Z - a_ball * t) / root_two).erfc() / 2
        if whole:
            tail += a_ball * g * (Y / root_two).erfc() / 2
        return total + tail * arb(0.5, 0.5)

    def excess(self, order: Fraction, rate: Fraction, bits: int) -> Scalar | None:
        return gaussian_sum.excess(self.shift, rate, order, bits)

    # ---- panels

    def line(self) -> Line:
        return self

    def ends(self, orders: Orders, size: Array) -> tuple[Array, Array, Array]:
        """Return the ends of the cells and log of what lies beyond: both tails are Gaussian.

        To the right f_a + f_{1-a} <= min{a w^a, 2 a lambda g^2 e^{2x} max(w, 1)^{a-2}}, whose logarithm rises by at most
        max(a, 2) shift per unit; to the left, where x < 0, f_a <= min(a g, a lambda g^2).
        """
        lam, t, g = orders.lam, self.t, orders.rate.g
        order, log_lam = lam + 1, orders.log_lam
        steepest = np.maximum(order, 2.0) * t
        beyond = np.full_like(lam, np.inf)
        high, extra = np.zeros_like(lam), np.full_like(lam, 8.0)
        for _ in range(DEEPEST):
            open_ = beyond > size + LEFT_OUT
            if not open_.any():
                break
            high = np.where(open_, np.ceil(np.maximum(steepest - t / 2, 0.0) + extra), high)
            x = t * high
            loss = orders.rate.loss(x)
            power = np.where(lam > 0, np.log(order), np.where(loss >= 1, np.log(loss), np.inf)) + order * loss
            curved = np.log(2 * order) + log_lam + 2 * (math.log(g) + x) + np.maximum(order - 2, 0.0) * loss
            fallen = (high + t / 2) ** 2 / 2 + np.log(high + t / 2 - steepest)
            beyond = np.minimum(power, curved) - fallen + rounding_slack(order * loss + 2 * x + fallen)
            extra = extra * 1.4
        if not orders.whole:
            return np.zeros_like(lam), high, beyond
        left = np.minimum(np.where(lam > 0, np.log(order * g), np.inf), np.log(order) + log_lam + 2 * math.log(g))
        low = np.floor(-t / 2 - np.sqrt(2 * np.maximum(left - size - LEFT_OUT, 1.0)))
        return low, high, np.logaddexp(beyond, left - (low + t / 2) ** 2 / 2 + rounding_slack(low * low))

    def peak(self, low: Array, high: Array, at_low: Array, at_high: Array) -> Array:
        slope = np.where(high > low, (at_high - at_low) / (high - low), 0.0)
        s = np.clip(slope - self.t / 2, low, high)
        return np.asarray(at_low + slope * (s - low) - (s + self.t / 2) ** 2 / 2)

    def growth(self, y: Array) -> Array:
        return y * y / 2

    def log_power(self, s: Enclosure, lam: Enclosure, L: Enclosure, rate: Fraction) -> Enclosure:
        """Return a times the gain of L, plus the log density of s.

        Past h0 it is a (L - x) - (z - a shift)^2/2 + a lambda shift^2/2: without this form two terms of the size of (a
        shift)^2 would cancel in floats.
        """
        shift, order = BOUNDED.number(self.shift), lam + 1
        z = s + shift / 2
        power: Any = order * gain(L) - z * z / 2
        past = self.t * s.mid > max(Rate.of(rate).h0, 0.0) + 1
        if not past.any():
            return power - ENCLOSED_LOG_ROOT  # type: ignore[no-any-return]
        rest = enclosed_rest(shift * s, rate)
        away = z - order * shift
        far: Any = order * rest - away * away / 2 + order * lam * BOUNDED.number(self.shift**2 / 2)
        power = np.where(past, far, power)
        return power - ENCLOSED_LOG_ROOT  # type: ignore[no-any-return]

    def far_out(self, rate: Fraction, lam: Array) -> tuple[Array, Enclosure]:
        value = _log_far_moment(self.shift, rate, Enclosure(lam), BOUNDED)
        far = _protection_is_lost(self.shift, rate, lam) & (lam * self.t > FAR_ORDERS)
        return far, Enclosure(value.mid, value.radius + FAR_ERROR)

    # ---- the grid

    def on_grid(self) -> Loss | None:
        return self if SMALLEST_LOSS < self.shift <= LARGEST_SHIFT else None

    def loss(self, y: Array) -> Array:
        return self.t * y - self.t * self.t / 2

    def place(self, x: Array) -> Array:
        return x / self.t + self.t / 2

    def log_density(self, y: Array) -> Array:
        return -y * y / 2 - 0.5 * math.log(2 * math.pi)

    def roughness(self, y: Array) -> Array:
        # |He_8(z)| <= (|z| + 3)^8, coefficient by coefficient
        return np.maximum(np.abs(y), np.abs(y - self.t)) + 3

    def reach(self, log_mass: float) -> float:
        # P(z > t + Z) <= e^{-Z^2/2} / 2
        return self.t * self.t / 2 + self.t * math.sqrt(2 * max(-log_mass, 0.5))

    def lifted_reach(self, log_mass: float, lam: float) -> float:
        return self.reach(log_mass) + lam * self.t * self.t  # z moves to t + lam t

    @property
    def distance(self) -> float:
        return math.erf(self.t / math.sqrt(8))


def _log_far_moment(shift: Fraction, rate: Fraction, lam: Any, on: Arithmetic) -> Any:
    """Return log E (g e^x)^a = a log g + a lambda shift^2/2.

    It differs from log M by at most `FAR_ERROR` if protection is lost (Lemma 7 of docs/rounding.md).
    """
    return (lam + 1) * (on.log(on.number(rate)) + on.number(shift**2 / 2) * lam)


def _protection_is_lost(shift: Fraction, rate: Fraction, lam: Array) -> Array:
    """Return where E w^a lies so far beyond x = h0 that w may be replaced by g e^x (Lemma 7)."""
    h0 = log_rational((1 - rate) / rate)  # of the rate itself, not of one that floats can square
    with np.errstate(over="ignore"):
        return np.asarray(FLOATS.number(shift**2 / 2) * lam > max(h0, 0.0) + np.log(lam + 1) + 42)


@dataclass(frozen=True, slots=True)
class _Windows:
    """For each order up to two intervals of z that hold a kernel's integral, and their steps."""

    low: Array
    high: Array
    step: Array
    row: Array
    offset: Array


def _log_power(z: Array, lam: Array, shift: float, rate: Rate, offset: Array) -> tuple[Array, Array]:
    """Return L and a L - z^2/2 - offset, a = 1 + lambda.

    The offset is 0 or the height a(a-1)s/2 = log E_Q e^{ax}. Past h0 the second one is a (L - x) - (z - a shift)^2/2 +
    height - offset: without this form two terms of the size of the height would cancel in floats.
    """
    x = shift * z - shift * shift / 2
    L = rate.loss(x)
    rest = rate.rest(np.maximum(x, 0.0))
    far = rest + lam * rest - ((z - shift) - lam * shift) ** 2 / 2 + (_height(lam, shift) - offset)
    return L, np.where(x > max(rate.h0, 0.0) + 1, far, (L + lam * L - z * z / 2) - offset)


def _height(lam: Array, shift: float) -> Array:
    return np.asarray(lam * (lam + 1) * (shift * shift / 2))


def _windows(shift: float, rate: Rate, lam: Array, term: Callable[[Array], Array], floor: float) -> _Windows:
    """Return the parts of {z >= floor} where e^{-z^2/2} term matters.

    `term` takes a matrix of L, one column for each order.
    """
    h0, order = rate.h0, lam + 1
    offset = np.zeros_like(lam)

    def loss(z: Array) -> Array:
        return shift * z - shift * shift / 2

    def phi(z: Array) -> Array:
        return _log_power(z, lam, shift, rate, offset)[1]

    def rises(z: Array) -> Array:
        return order * shift * logistic(loss(z) - h0) > z

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
    inner, _ = shrink_bracket(lambda z: rises(z) != sign, np.stack([zero, c2, c1]), np.stack([c1, top, c2]), 0.05)
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
    inner, edge = shrink_bracket(
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
    step = np.where(near, min(SMOOTH_STEP, STEP / shift), SMOOTH_STEP)
    by_row = np.argsort(row, kind="stable")
    return _Windows(low[by_row], high[by_row], step[by_row], row[by_row], offset)


def _window_points(low: Array, high: Array, step: Array, row: Array, rows: int) -> tuple[Array, Array, Array]:
    """Return the points low, low + step, … of all windows, their steps, and counts by row."""
    counts = np.ceil((high - low) / step).astype(np.int64) + 1
    starts = np.cumsum(counts) - counts
    index = np.arange(counts.sum()) - np.repeat(starts, counts)
    per_row = np.bincount(row, weights=counts, minlength=rows).astype(np.int64)
    return np.repeat(low, counts) + index * np.repeat(step, counts), np.repeat(step, counts), per_row


def _trapezoid_on_line(windows: _Windows, shift: float, rate: Rate, lam: Array) -> Nodes:
    """Return the nodes of the trapezoid rule in z."""
    z, step, counts = _window_points(windows.low, windows.high, windows.step, windows.row, lam.size)
    return _window_nodes(z, np.log(step), counts, shift, rate, lam, windows.offset)


def _trapezoid_on_half_line(windows: _Windows, shift: float, rate: Rate, lam: Array) -> Nodes:
    """Return the nodes of the trapezoid rule in t, z - shift/2 = c log(1 + e^t), for x > 0 only.

    In this coordinate e^{3t} damps the end x = 0, where the integrand is not smooth.
    """
    c = windows.step / SMOOTH_STEP
    start, end = (windows.low - shift / 2) / c, (windows.high - shift / 2) / c
    t0 = np.where(start > 30, start, np.maximum(np.log(np.expm1(np.clip(start, 1e-300, 30.0))), -(DROP / 3 + 3)))
    t1 = np.where(end > 30, end, np.log(np.expm1(np.clip(end, 1e-3, 30.0))) + 1)
    t, step, counts = _window_points(t0, t1, np.full_like(t0, STEP), windows.row, lam.size)
    c = np.repeat(c, np.ceil((t1 - t0) / STEP).astype(np.int64) + 1)
    z = c * np.logaddexp(0.0, t) + shift / 2
    return _window_nodes(z, np.log(step * c) - np.logaddexp(0.0, -t), counts, shift, rate, lam, windows.offset)


def _window_nodes(
    z: Array, log_weight: Array, counts: Array, shift: float, rate: Rate, lam: Array, offset: Array
) -> Nodes:
    """Return the points z with their log weights as nodes, one run for each order."""
    each_offset = np.repeat(offset, counts)
    L, power = _log_power(z, np.repeat(lam, counts), shift, rate, each_offset)
    power = np.where(L > 0, power, -z * z / 2 - each_offset)
    return Nodes(L, power + log_weight - LOG_ROOT, counts, offset)
