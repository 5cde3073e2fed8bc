"""The Laplace pair: unit noise shifted by t = sensitivity / scale."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.closed import LaplaceShift
from cumulant.curves.pair import Pair
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.differences import escalated, leading_differences
from cumulant.numerics.quadrature import LogFunctions, log_concave

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
        """log E_q |p/q - 1|^l. Floats: atoms plus two positive integrals. Balls: alternating sums."""
        if on.exact:
            return self._exact_moments(orders, on, both=True)
        power, t = orders.astype(np.float64), self._scale()

        def log_f(s: Array, rows: Any) -> Array:
            # e^{-s/2} ((1 - e^{s-t}) / (1 - e^-t))^l, the second factor as 1 - (e^s - 1) / (e^t - 1)
            return np.asarray(power[rows, None] * np.log1p(-np.exp(s - t) * np.expm1(-s) / np.expm1(-t)) - s / 2)

        with np.errstate(all="ignore"):
            # E_q (1 - p/q)_+^l = (1 - e^-t)^l (1/2 + I/4)
            below = power * np.log(-np.expm1(-t)) + _log_half_and_quarter(log_f, np.full_like(power, 0.5), t)
        return np.logaddexp(self._log_positive_moments(orders, on), np.where(np.isnan(below), 0.0, below))

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """log E_q (p/q - 1)_+^l. Floats: an atom plus a positive integral. Balls: an alternating sum."""
        if on.exact:
            return self._exact_moments(orders, on, both=False)
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
        def evaluate() -> Array:
            i = on.asarray(np.arange(int(orders.max(initial=1)) + 1).astype(object))
            t, half = on.number(self.shift), on.number(Fraction(1, 2))
            edge, x = on.exp(-t * half) / 4, i - half
            # E_q[(p/q)^i; p > q] = e^{(i-1) t} / 2 + e^{-t/2} (e^{(i-1/2) t} - 1) / (4 (i-1/2)), and likewise for p < q
            above = leading_differences(on.exp((i - 1) * t) / 2 + edge * on.expm1(x * t) / x, on)[orders]
            if not both:
                return np.asarray(above)
            below = leading_differences(on.exp(-i * t) / 2 - edge * on.expm1(-x * t) / x, on)[orders]
            return np.asarray(above + np.where(orders % 2 == 0, 1, -1) * below)

        return escalated(evaluate, on, on.log)

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
