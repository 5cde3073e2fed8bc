"""The Laplace pair: unit noise shifted by t = sensitivity / scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.closed_form import LaplaceShift
from cumulant.losses.grid import LARGEST_LOSS, SMALLEST_LOSS, Loss, Step
from cumulant.losses.integrals import DROP, Nodes, logistic
from cumulant.losses.laplace_transform import LaplaceBase
from cumulant.losses.law import Law, ball_exp, point
from cumulant.losses.panels import Line, Orders
from cumulant.losses.sampled_curve import LARGEST_SHIFT
from cumulant.losses.subsampled import BallTerm, Rate, Term, analytic_mixed_ball, enclosed_loss, gain, mixed_ball
from cumulant.losses.transform import SLIGHTEST, STRONGEST, Mixed, Transform
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.differences import escalated, up_to
from cumulant.numerics.enclosure import BOUNDED, LOG_TWO, Enclosure
from cumulant.numerics.quadrature import LogFunctions, ball_integral, legendre, log_concave
from cumulant.numerics.rounding import ENVELOPE
from cumulant.numerics.taylor import coefficients, exponential_sum, line, sinh_over
from cumulant.pairs.laplace_replacement import LaplaceReplacementPair
from cumulant.pairs.pair import Pair
from cumulant.pairs.worst_triples import LaplaceCorner, LaplaceTriple

CORNER_SHIFT = 3
"""Shift above which a corner of three values is asked too; below it three values at equal distances need more."""

TINY = float(np.finfo(np.float64).tiny)
"""The least normal float; it replaces smaller shifts, and every quantity grows with the shift."""


@dataclass(frozen=True, slots=True)
class LaplacePair(Pair):
    """Laplace noise of scale 1 around t in P and around 0 in Q; reflection swaps them.

    It dominates the Laplace mechanism in any dimension with L1 sensitivity, because the noise is log-concave (E-17).
    Under q, log(p/q) has an atom e^-t / 2 at t, an atom 1/2 at -t, and the density e^{-(y+t)/2} / 4 between them.

    >>> LaplacePair(Fraction(1, 2)).moments([2, 4])
    array([-1.50609646, -2.67763731])
    >>> LaplacePair(Fraction(1, 2)).profile([0, 0.25, 0.5])
    array([0.22119922, 0.1175031 , 0.        ])
    """

    shift: Fraction
    attained: bool = True
    query: str = ""

    symmetric = True
    chained = True

    def curve(self) -> LaplaceShift:
        return LaplaceShift(self.shift)

    def laws(self) -> tuple[Law, ...]:
        return (LaplaceLaw(self.shift),)

    def triple(self, rate: Fraction) -> Step | None:
        """Return three values for a vector query; None for a scalar, which moves in one direction."""
        if not self.attained or self.query == "scalar":
            return None
        return LaplaceTriple(float(self.shift), float(rate), float(1 - rate))

    def corners(self, rate: Fraction) -> tuple[Step, Step] | None:
        if not self.attained or self.query == "scalar" or self.shift <= CORNER_SHIFT:
            return None
        shift, g, kept = float(self.shift), float(rate), float(1 - rate)
        return LaplaceCorner(shift, g, kept), LaplaceCorner(shift, g, kept, swapped=True)

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        return Mixed(LaplaceBase(self.shift), rate, direction) if SLIGHTEST <= self.shift <= STRONGEST else None

    def replacement(self, rate: Fraction) -> Pair:
        return self.group_pair(2) if rate == 1 else LaplaceReplacementPair(self.shift, rate, self.attained)

    def group_pair(self, size: int) -> Pair:
        return LaplacePair(self.shift * size, self.attained, self.query)

    @property
    def integrable(self) -> bool:
        return self.shift <= LARGEST_SHIFT

    def taylor(self, at: Fraction, count: int) -> list[Any] | None:
        # e^K = e^{lambda t} / 2 + e^{-(lambda+1) t} / 2 + e^{-t/2} sinh(u t) / (2 u), u = lambda + 1/2
        t, half, x = BALLS.number(self.shift), BALLS.number(Fraction(1, 2)), line(at, count)
        atoms = exponential_sum([half, half * (-t).exp()], [t, -t], x)
        between = half * (-t / 2).exp() * sinh_over(line(at + Fraction(1, 2), count), t, count)
        return coefficients((atoms + between).log(), count)

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return log E_q |p/q - 1|^l.

        Floats: atoms plus two positive integrals. Balls: the same integrals by recurrence.
        """
        if on.exact or on.enclosing:
            return self._proved_moments(orders, on, both=True)
        power, t = orders.astype(np.float64), self._scale()

        def log_f(s: Array, rows: Any) -> Array:
            # e^{-s/2} ((1 - e^{s-t}) / (1 - e^-t))^l, the second factor as 1 - (e^s - 1) / (e^t - 1)
            return np.asarray(power[rows, None] * np.log1p(-np.exp(s - t) * np.expm1(-s) / np.expm1(-t)) - s / 2)

        with np.errstate(all="ignore"):
            # E_q (1 - p/q)_+^l = (1 - e^-t)^l (1/2 + I/4)
            below = power * np.log(-np.expm1(-t)) + _log_half_and_quarter(log_f, np.full_like(power, 0.5), t)
        return np.logaddexp(self._log_positive_moments(orders, on), np.where(np.isnan(below), 0.0, below))

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return log E_q (p/q - 1)_+^l.

        Floats: an atom plus a positive integral. Balls: the same integral by recurrence.
        """
        if on.exact or on.enclosing:
            return self._proved_moments(orders, on, both=False)
        power, t = orders.astype(np.float64), self._scale()

        def log_f(s: Array, rows: Any) -> Array:
            # e^{s/2} r^l, r = (e^-s - e^-t) / (1 - e^-t): as 1 - (1 - e^-s) / (1 - e^-t) near 0, else as a product
            near = np.log1p(-np.expm1(-s) / np.expm1(-t))
            far = np.log(-np.expm1(s - t)) - np.log(-np.expm1(-t)) - s
            return np.asarray(power[rows, None] * np.where(s < 1, near, far) + s / 2)

        with np.errstate(all="ignore"):
            # E_q (p/q - 1)_+^l = e^{(l-1) t} (1 - e^-t)^l (1/2 + I/4)
            value = (power - 1) * t + power * np.log(-np.expm1(-t))
            value = value + _log_half_and_quarter(log_f, power - 0.5, t)
        return np.where(np.isnan(value), np.inf, value)

    def _exact_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        """Return log of e^{(l-1) t} D^l [1/2 + D G_l/4 + ...], D = 1 - e^-t, as balls.

        For both sides the last summand is e^{-(l-1) t} (1/2 + D Q_l/4) (Lemma 9 of docs/rounding.md).
        """
        power, half = on.asarray(orders.astype(object)), on.number(1) / 2

        def evaluate() -> Array:
            t = on.number(self.shift)
            quarter = -on.expm1(-t) / 4
            above, below = _integrals(orders.tolist(), t, on)
            size = half + quarter * above
            return size + on.exp((1 - power) * t) * (half + quarter * below) if both else size

        def logs(size: Array) -> Array:
            t = on.number(self.shift)
            return on.log(size) + (power - 1) * t + power * on.log(-on.expm1(-t))

        return escalated(evaluate, on, logs)

    def _log_envelope(self, orders: Array, both: bool) -> Array:
        """Return a bound above the log moment in closed form.

        G_l <= 1/(l - 1/2), because 1 - Dw >= 1 - w, and D Q_l <= 2.
        """
        power, t = orders.astype(np.float64), self._scale()
        with np.errstate(all="ignore"):
            D, growth = -np.expm1(-t), (power - 1) * t
            size = 0.5 + D / (4 * power - 2) + (np.exp(-growth) if both else 0.0)
            value = np.log(size) + growth + power * np.log(D)
            value += ENVELOPE * (1 + growth + power * (1 - np.log(D)))
            return np.where(np.isnan(value), np.inf, value)

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log delta, delta = (1 - e^{(eps-t)/2})_+."""
        with np.errstate(divide="ignore"):
            return np.log(-np.expm1(np.minimum(epsilons - self._scale(), 0.0) / 2))

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        gap = (on.asarray(epsilons) - on.number(self.shift)) / 2
        return np.asarray(np.frompyfunc(lambda v: (-v.expm1()).nonnegative_part(), 1, 1)(gap))

    def _scale(self) -> float:
        # every quantity here grows with the shift, so a shift below the smallest float may be replaced by it
        return max(FLOATS.number(self.shift), TINY)


def _log_half_and_quarter(log_f: LogFunctions, slope: Array, t: float) -> Array:
    """Return log(1/2 + I/4), I the integral of e^f over (0, t).

    e^f is log-concave and falls from f(0) = 0 with this slope.
    """
    zero = np.zeros_like(slope)
    return np.asarray(np.log(0.5 + np.exp(log_concave(log_f, zero, 1 / slope, 0.0, t)) / 4))


def _integrals(orders: list[int], t: Any, on: Arithmetic) -> tuple[Array, Array]:
    """Return the balls of G_l and Q_l of Lemma 9 at each order l, D = 1 - e^-t.

    G_l = INT_0^1 (1-Dw)^{-3/2} (1-w)^l dw and Q_l = e^{-t/2} INT_0^1 (1-Dw)^{-3/2} w^l dw.

    By parts (l - 1/2) D G_l = 1 - l e^-t G_{l-1} and (l - 1/2) D Q_l = l Q_{l-1} - 1. For D > 1/2 that is taken upward:
    errors of G shrink, and those of Q, which grow by 1/D < e^t, meet the factor e^{-(l-1) t}. Otherwise downward, where both
    shrink, from G_l = 2F1(3/2, 1; l+2; D)/(l+1) and Q_l = 2F1(l+1/2, 1; l+2; D)/(l+1), which also serve far out.
    """
    half, growth, D, dense = on.number(1) / 2, on.exp(t), -on.expm1(-t), 2 * on.precision()
    top = max((order for order in orders if order <= dense), default=0)
    if half < D:
        chain = [(2 / D * on.expm1(t / 2), -2 / D * on.expm1(-t / 2))]
        far = _far_up
        for order in range(1, top + 1):
            (above, below), step = chain[-1], (order - half) * D
            chain.append(((1 - order * above / growth) / step, (order * below - 1) / step))
    else:
        chain, far = [_far_down(top, D, on)], _far_down
        for order in range(top, 0, -1):
            (above, below), step = chain[-1], (order - half) * D
            chain.append(((1 - step * above) * growth / order, (1 + step * below) / order))
        chain.reverse()
    found = [chain[order] if order <= dense else far(order, D, on) for order in orders]
    above, below = zip(*found, strict=True)
    return np.array(above, dtype=object), np.array(below, dtype=object)


def _far_down(order: int, D: Any, on: Arithmetic) -> tuple[Any, Any]:
    """Return G and Q at one order for D <= 1/2, where flint's series converges fast."""
    one, above = on.number(1), on.number(order + 1)
    first, second = (D.hypgeom_2f1(a, one, above + 1) for a in (3 * one / 2, above - one / 2))
    return first / above, second / above


def _far_up(order: int, D: Any, on: Arithmetic) -> tuple[Any, Any]:
    """Return G and Q at one order for D > 1/2, if the order is above twice the bits.

    A few terms of the series give G, and 0 <= D Q <= 2 is far below e^{(l-1) t}.

    What follows the term with index k is at most (k + 3/2)/(l - 1/2) <= 1 times that, by Gauss's sum 2F1(a, 1; c; 1).
    """
    half = on.number(1) / 2
    term = total = on.number(1) / (order + 1)
    negligible = term * half ** on.precision()
    for k in range(on.precision()):  # each ratio is below 1/2
        term = term * D * (k + 3 * half) / (order + 2 + k)
        total = total + term
        if term < negligible:
            break
    return total + up_to(term), up_to(2 / D)


# ---- the law of its loss


@dataclass(frozen=True, slots=True)
class LaplaceLaw(Law, Line, Loss):
    """The loss under Q: atoms 1/2 at -t and e^-t/2 at t, density e^{-(x+t)/2}/4 between them.

    t = shift; panels are 1 / order wide.
    """

    shift: Fraction

    farthest = 2.0**38
    farthest_ball = 2**24

    @property
    def scale(self) -> Fraction:
        return self.shift

    # ---- nodes, and a ball

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        shift = max(float(FLOATS.number(self.shift)), 1e-150)
        return _nodes(shift, rate, lam, term, -shift if whole else 0.0)

    def log_top_mass(self, on: Arithmetic) -> Any:
        return -on.number(self.shift) - on.log(on.number(2))

    def enclosed_atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure]:
        t = BOUNDED.asarray([self.shift, -self.shift] if whole else [self.shift])
        return (t + BOUNDED.number(self.shift)) / -2 - LOG_TWO, enclosed_loss(t, rate)

    def enclosure(
        self, term: BallTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        from flint import arb

        t, g = BALLS.number(self.shift), BALLS.number(rate)

        def integrand(x: Any, analytic: bool) -> Any:
            w = analytic_mixed_ball(x, g)
            return term(point(w, w.log(analytic=analytic), (-(x + t) / 2).exp() / 4, order))

        def atom(x: Any) -> Any:
            w = mixed_ball(x, g)
            return term(point(w, w.log(), (-(x + t) / 2).exp() / 2, order))

        error = ball_exp(log_size) * arb(2) ** -bits
        total = ball_integral(integrand, arb(0), t, bits, error) + atom(t)
        if whole:
            total += ball_integral(integrand, -t, arb(0), bits, error) + atom(-t)
        return total

    # ---- panels

    def line(self) -> Line:
        return self

    def ends(self, orders: Orders, size: Array) -> tuple[Array, Array, Array]:
        one = np.ones_like(size)
        return (-1 if orders.whole else 0) * one, one, -np.inf * one

    def peak(self, low: Array, high: Array, at_low: Array, at_high: Array) -> Array:
        scale = math.log(self.t / 4)
        return np.maximum(at_low - self.t * (low + 1) / 2, at_high - self.t * (high + 1) / 2) + scale

    def growth(self, y: Array) -> Array:
        return np.zeros_like(y)

    def log_power(self, s: Enclosure, lam: Enclosure, L: Enclosure, rate: Fraction) -> Enclosure:
        power: Enclosure = (lam + 1) * gain(L) - BOUNDED.number(self.shift / 2) * (s + 1)
        return power + BOUNDED.log(BOUNDED.number(self.shift / 4))

    # ---- the grid

    def on_grid(self) -> Loss | None:
        return self if SMALLEST_LOSS < self.shift <= LARGEST_LOSS else None

    def loss(self, y: Array) -> Array:
        return y

    def place(self, x: Array) -> Array:
        return np.clip(x, -self.t, self.t)

    def log_density(self, y: Array) -> Array:
        return -(y + self.t) / 2 - math.log(4)

    def roughness(self, y: Array) -> Array:
        return np.full_like(y, 0.5)

    def reach(self, log_mass: float) -> float:
        return self.t

    def atoms(self) -> tuple[Array, Array]:
        return np.array([-self.t, self.t]), np.array([0.0, -self.t]) - math.log(2)

    @property
    def distance(self) -> float:
        return -math.expm1(-self.t / 2)


def _nodes(shift: float, rate: Rate, lam: Array, term: Callable[[Array], Array], low: float) -> Nodes:
    """Return the atoms in [low, t] and Gauss panels towards the valley of the convex phi.

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
            speed = np.abs(order * logistic(x - h0) - 0.5)
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
