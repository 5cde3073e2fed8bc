"""The Laplace pair: unit noise shifted by t = sensitivity / scale."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.closed import LaplaceShift
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.differences import escalated, up_to
from cumulant.numerics.quadrature import LogFunctions, log_concave
from cumulant.pairs.pair import Pair

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class LaplacePair(Pair):
    """P, Q = Laplace noise of scale 1 around t and 0; reflection swaps them, so both directions agree.

    It dominates the Laplace mechanism in any dimension with L1 sensitivity, because the noise is log-concave (E-17).
    Under q, log(p/q) has an atom e^-t / 2 at t, an atom 1/2 at -t, and the density e^{-(y+t)/2} / 4 between them.

    >>> LaplacePair(Fraction(1, 2)).moments([2, 4])
    array([-1.50609646, -2.67763731])
    >>> LaplacePair(Fraction(1, 2)).profile([0, 0.25, 0.5])
    array([0.22119922, 0.1175031 , 0.        ])
    """

    shift: Fraction

    symmetric = True

    def curve(self) -> LaplaceShift:
        return LaplaceShift(self.shift)

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """log E_q |p/q - 1|^l. Floats: atoms plus two positive integrals. Balls: the same integrals by recurrence."""
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
        """log E_q (p/q - 1)_+^l. Floats: an atom plus a positive integral. Balls: the same integral by recurrence."""
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
        """e^{(l-1) t} D^l [1/2 + D G_l/4 + e^{-(l-1) t} (1/2 + D Q_l/4)], D = 1 - e^-t; the last summand for both sides."""
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
        """Above the log moment in closed form: G_l <= 1/(l - 1/2), because 1 - Dw >= 1 - w, and D Q_l <= 2."""
        power, t = orders.astype(np.float64), self._scale()
        with np.errstate(all="ignore"):
            D, growth = -np.expm1(-t), (power - 1) * t
            size = 0.5 + D / (4 * power - 2) + (np.exp(-growth) if both else 0.0)
            value = np.log(size) + growth + power * np.log(D)
            value += 2.0**-44 * (1 + growth + power * (1 - np.log(D)))  # far more than rounding can have changed
            return np.where(np.isnan(value), np.inf, value)

    def _log_profile(self, epsilons: Array) -> Array:
        """log delta, delta = (1 - e^{(eps-t)/2})_+."""
        with np.errstate(divide="ignore"):
            return np.log(-np.expm1(np.minimum(epsilons - self._scale(), 0.0) / 2))

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        gap = (on.asarray(epsilons) - on.number(self.shift)) / 2
        return np.asarray(np.frompyfunc(lambda v: (-v.expm1()).nonnegative_part(), 1, 1)(gap))

    def _scale(self) -> float:
        # every quantity here grows with the shift, so a shift below the smallest float may be replaced by it
        return max(FLOATS.number(self.shift), _TINY)


def _log_half_and_quarter(log_f: LogFunctions, slope: Array, t: float) -> Array:
    """log(1/2 + I/4), I the integral over (0, t) of e^f, log-concave and falling from f(0) = 0 with this slope."""
    zero = np.zeros_like(slope)
    return np.asarray(np.log(0.5 + np.exp(log_concave(log_f, zero, 1 / slope, 0.0, t)) / 4))


def _integrals(orders: list[int], t: Any, on: Arithmetic) -> tuple[Array, Array]:
    """G_l = INT_0^1 (1-Dw)^{-3/2} (1-w)^l dw and Q_l = e^{-t/2} INT_0^1 (1-Dw)^{-3/2} w^l dw, D = 1 - e^-t, as balls.

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
    """G and Q at one order for D <= 1/2, where flint's series converges fast."""
    one, above = on.number(1), on.number(order + 1)
    first, second = (D.hypgeom_2f1(a, one, above + 1) for a in (3 * one / 2, above - one / 2))
    return first / above, second / above


def _far_up(order: int, D: Any, on: Arithmetic) -> tuple[Any, Any]:
    """For D > 1/2 and orders above twice the bits: few terms of the series of G, and 0 <= D Q <= 2, far below e^{(l-1) t}.

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
