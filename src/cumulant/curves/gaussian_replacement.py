"""The curve of Gaussian noise on a Poisson sample in which one record is replaced.

The record is replaced by its opposite.

Letters: c = distance of a record from an absent one over sigma, g = rate, z ~ N(0, 1), R(z) = 1 - g + g e^{cz - c^2/2},
w = R(z) / R(-z), L = log w, a = lambda + 1. P has the density R(z), Q the density R(-z) with respect to N(0, 1).

    M - 1 = E [ R(-z) { w^a - 1 - a (w - 1) } ] = E [ R(z) { excess(lambda L) + lambda excess(-L) } ]

by the trapezoid rule of `MixtureCurve`. In the strip |Im z| <= b, cb < pi/2: |R(z)| <= R(Re z), |R(-z)| >= cos(cb) R(-Re z).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.gaussian_mixture import ANGLE, MARGIN, WIDEST, MixtureCurve, Plan, Shifts, log_tail, rounded_plan
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar

_LARGEST_SHIFT = 1e4
"""Distance over sigma beyond which closed forms answer; convention, as for mixtures."""
_SMALLEST_SHIFT = 1e-100
"""Distance over sigma below which closed forms answer; its square is still a float."""
_LARGEST_ORDER = 1e9
"""Order beyond which closed forms answer; convention, as for mixtures."""


@dataclass(frozen=True, slots=True)
class ReplacementCurve(MixtureCurve):
    """K of (1-g)N(0) + gN(c) against (1-g)N(0) + gN(-c), which reflection swaps.

    >>> curve = ReplacementCurve.of(Fraction(1), Fraction(1, 10))
    >>> round(float(curve.rdp(2)), 6)
    0.040827
    """

    @classmethod
    def of(cls, distance: Fraction, rate: Fraction) -> ReplacementCurve:
        """The curve at this distance over sigma and this rate, both positive."""
        return cls(Shifts.of((Fraction(0), distance), (1 - rate, rate)), "remove")

    @property
    def _rate(self) -> Fraction:
        return self.law.weights[-1]

    def _plan(self, lam: Array, digits: float) -> Plan | None:
        c, top = FLOATS.number(self.law.largest), float(lam.max())
        if not _SMALLEST_SHIFT < c < _LARGEST_SHIFT or not top < _LARGEST_ORDER:
            return None
        # the integral is at least about the variance of w
        size = 2 * math.log(min(c, 1.0)) + 2 * math.log(float(self._rate))
        size += math.log(min(float(lam.min()), 1.0) + 1e-300)
        need = digits - size + math.log(2 * top + 4)
        strip = min(min(ANGLE, math.sqrt(30 / max(top, 1e-300))) / c, WIDEST)
        step = 2 * math.pi * strip / (need + strip * strip / 2 + 20)
        own = max((top + 1) * (math.log(float(self._rate)) + top * c * c / 2), size)
        low = -c - math.sqrt(2 * need)
        high = min(
            float(centre[0]) + math.sqrt(2 * max(float(height[0]) - own + digits + 5, need))
            for centre, height in self._right(np.array([top]))
        )
        return rounded_plan(low, high, step, 0.0, strip)

    def _right(self, lam: Array) -> list[tuple[Array, Array]]:
        """Centre m and log height h of bounds e^h N(m, 1) of the integrand at z >= c/2.

        R(z) <= e^{cz - c^2/2} there, and R(-z) >= 1 - g, R(-z) >= g e^{-cz - c^2/2}.
        """
        c, g, kept = float(self.law.largest), float(self._rate), float(1 - self._rate)
        found = [((2 * lam + 1) * c, 2 * lam * (lam + 1) * c * c - lam * math.log(g))]
        if kept > 0:
            found.append(((lam + 1) * c, lam * (lam + 1) * c * c / 2 - lam * math.log(kept)))
        return found

    def _nodes(self, plan: Plan, on: Arithmetic) -> tuple[Array, Array]:
        """log of the weights of the nodes under Q, and L there."""
        log_weight, forward = MixtureCurve._nodes(self, plan, on)
        z = on.asarray(plan.start + (np.arange(plan.count) + 0.5) * plan.step)
        backward = self.law.log_ratio(-z, on)
        return log_weight + backward, forward - backward

    def _log_error(self, lam: Array, size: Array, plan: Plan) -> Array:
        """Return log of a bound of the error: the rule and both tails of the nodes.

        The rule errs by 2 e^{b^2/2} cos(cb)^-lambda (I + 2a + 2) / (e^{2 pi b/h} - 1).
        """
        c, a, b = float(self.law.largest), lam + 1, plan.strip
        low, high = plan.start + plan.step, plan.start + (plan.count - 1) * plan.step
        turned = -lam * math.log(math.cos(c * b))
        rule = (
            math.log(2) + b * b / 2 + turned - 2 * math.pi * b / plan.step + np.logaddexp(size, np.log(2 * a + 2)) + 1
        )
        with np.errstate(divide="ignore"):
            # at z <= -c/2 the integrand is at most lambda R(-z) <= lambda e^{-cz - c^2/2}
            left = np.log(lam) + log_tail(np.full(lam.shape, -low - c))
            right = np.minimum.reduce([height + log_tail(high - centre) for centre, height in self._right(lam)])
        return np.logaddexp(rule, np.logaddexp(left, right)) + MARGIN

    def _convexity_bound(self, lam: Array, on: Arithmetic) -> Array:
        """Joint convexity: log(1 + g (e^{2 lambda a c^2} - 1))."""
        x = on.asarray(lam)
        square = on.number(2 * self.law.largest**2)
        whole: Any = x * ((x + 1) * square)
        return on.minimum(on.log1p_exp(on.log_expm1(whole) + on.log(on.number(self._rate))), whole)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        if self._plan(np.ones(1), 45.0) is None:
            return on.number(2 * self._rate * self.law.largest**2)
        return MixtureCurve.kl(self, on)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf)
