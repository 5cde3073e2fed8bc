"""The Gaussian pair: N(t, 1) against N(0, 1), t = sensitivity / sigma."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.closed import Concentrated
from cumulant.curves.pair import Pair
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.differences import escalated, leading_differences
from cumulant.numerics.quadrature import log_concave

_TINY, _HUGE = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class GaussianPair(Pair):
    """P = N(shift, 1), Q = N(0, 1); reflection swaps them, so both directions agree.

    It dominates the Gaussian mechanism in any dimension, by data processing (E-17). `geometry` says what is known about
    the values of the query: their pairwise distances ("diameter") or a ball that holds them ("ball").

    >>> GaussianPair(Fraction(1)).moments([1, 2, 3])
    array([-0.26676915,  0.54132485,  2.66043763])
    >>> GaussianPair(Fraction(1)).profile([0, 1, 10])
    array([3.82924923e-01, 1.26936738e-01, 9.81270583e-23])
    """

    shift: Fraction
    geometry: str = "diameter"

    symmetric = True

    def curve(self) -> Concentrated:
        return Concentrated(rho=self.shift**2 / 2)

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """log E_q |p/q - 1|^l. Floats: two positive integrals. Balls: Delta^(l)[M Phi(x) + (-1)^l M Phi(-x)](0)."""
        if on.exact:
            return self._exact_moments(orders, on, both=True)
        power, t = orders.astype(np.float64), self._scale()
        # E_q (1 - p/q)_+^l = E (1 - e^-y)_+^l, y ~ N(t^2/2, t^2)
        below = _log_shortfall(power, np.full_like(power, t / 2), t)
        return np.logaddexp(self._log_positive_moments(orders, on), below)

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """log E_q (p/q - 1)_+^l. Floats: one positive integral. Balls: Delta^(l)[M Phi(x)](0), x_i = (i - 1/2) t."""
        if on.exact:
            return self._exact_moments(orders, on, both=False)
        power, t = orders.astype(np.float64), self._scale()
        # E_q (p/q - 1)_+^l = M_l E (1 - e^-y)_+^l, y ~ N((l - 1/2) t^2, t^2), M_l = e^{l (l-1) t^2 / 2}
        with np.errstate(over="ignore", invalid="ignore"):
            log_m = np.where(orders == 1, 0.0, power * (power - 1) * (t * t / 2))
            return np.asarray(log_m + _log_shortfall(power, (power - 0.5) * t, t))

    def _exact_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        def evaluate() -> Array:
            i = on.asarray(np.arange(int(orders.max(initial=1)) + 1).astype(object))
            t = on.number(self.shift)
            x, m = (i - on.number(Fraction(1, 2))) * t, on.exp(i * (i - 1) * t * t / 2)
            above = leading_differences(m * _cdf(x, on), on)[orders]
            if not both:
                return np.asarray(above)
            below = leading_differences(m * _cdf(-x, on), on)[orders]
            return np.asarray(above + np.where(orders % 2 == 0, 1, -1) * below)

        return escalated(evaluate, on, on.log)

    def _log_profile(self, epsilons: Array) -> Array:
        """log delta, delta = E (1 - e^{eps-y})_+ with y ~ N(t^2/2, t^2): a positive integral, so nothing cancels."""
        t = self._scale()
        with np.errstate(over="ignore"):
            value = _log_shortfall(np.ones_like(epsilons), t / 2 - np.minimum(epsilons, _HUGE) / t, t)
        return np.where(epsilons == np.inf, -np.inf, value)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        """Phi(t/2 - eps/t) - e^eps Phi(-t/2 - eps/t): exact for the Gaussian (E-23)."""

        def evaluate() -> Array:
            eps, t = on.asarray(epsilons), on.number(self.shift)
            return np.asarray(_cdf(t / 2 - eps / t, on) - on.exp(eps) * _cdf(-t / 2 - eps / t, on))

        return np.asarray(escalated(evaluate, on, np.frompyfunc(lambda v: v.nonnegative_part(), 1, 1), negligible=4096))

    def _scale(self) -> float:
        # every quantity here grows with the shift, so a shift below the smallest float may be replaced by it
        return max(FLOATS.number(self.shift), _TINY)


def _cdf(x: Array, on: Arithmetic) -> Array:
    """Phi(x) = erfc(-x / sqrt 2) / 2 in balls."""
    root = on.number(2).sqrt()
    return np.asarray(np.frompyfunc(lambda v: (-v / root).erfc() / 2, 1, 1)(x))


def _log_shortfall(power: Array, centre: Array, t: float) -> Array:
    """log E (1 - e^{-tz})_+^l, z ~ N(c, 1): the integrand is log-concave, its mode solves l t / (e^{tz} - 1) = z - c.

    Written in w = z - max(c, 0), so that neither a far centre nor a far tail costs digits. It is an expectation
    of something below 1, which is the answer where floats overflow.
    """
    right, left = np.maximum(centre, 0.0), np.minimum(centre, 0.0)
    with np.errstate(all="ignore"):
        # x / (e^x - 1) >= 1 - x/2 puts the root of z^2 - (c - l t/2) z - l = 0 left of the mode. From the left Newton's
        # steps increase to it, because the equation is convex; the rational start makes them few.
        b = centre - power * t / 2
        z = (b + np.sqrt(b * b + 4 * power)) / 2
        z = np.where(b < 0, 2 * power / (np.sqrt(b * b + 4 * power) - b), z)
        w = np.maximum(z - right, 0.0)
        for _ in range(100):
            z = right + w
            pull = power * t / np.expm1(t * z)
            curvature = 1 - pull * t / np.expm1(-t * z)
            step = (pull - w + left) / curvature
            w = np.maximum(w + step, 0.0)
            if not (np.abs(step) > 1e-9 * (w + 1e-300)).any():
                break
        root_two_pi = 0.5 * np.log(2 * np.pi)

        def log_f(points: Array, rows: Any) -> Array:
            shortfall = power[rows, None] * np.log(-np.expm1(-t * (right[rows, None] + points)))
            return shortfall + (left[rows, None] - points / 2) * points

        value = log_concave(log_f, w, 1 / np.sqrt(curvature), -right, np.inf) - left * left / 2 - root_two_pi
    return np.where(np.isnan(value), 0.0, np.minimum(value, 0.0))
