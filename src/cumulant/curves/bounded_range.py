"""The curve of mechanisms of bounded range, the exponential mechanism first among them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar

FAR = 30.0
"""y beyond which sinh y is e^y / 2 to the last bit; derived: e^-60 is below 2^-53."""

SMALL = 0.25
"""y below which the series is used; above it the closed form keeps its digits."""


@dataclass(frozen=True, slots=True)
class BoundedRange(Curve):
    """K(lambda) = (1+lambda) s(1+lambda) - lambda s(lambda) - s(1).

    s(x) = log(sinh(x e/2) / (x e/2)), e = epsilon.

    The supremum over all laws whose log ratios lie in an interval of this length (docs/mechanisms/exponential.md). With
    log(sinh y / y) = y + log(1 - e^-2y) - log 2y it is lambda e - log(1+lambda) - lambda log(1 + 1/lambda) + the three
    logarithms; for small arguments, in floats, it is written without cancellation.
    """

    epsilon: Fraction

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if not self.epsilon:
            return on.asarray(lam) * 0
        if on.exact:
            return _large_order_cgf(on.asarray(lam), on.number(self.epsilon), on)
        e = np.float64(max(FLOATS.number(self.epsilon), 1e-150))  # numpy overflows to infinity
        with np.errstate(all="ignore"):
            far = (lam * e / 2 > FAR) | (e / 2 > FAR)
            small = (lam + 1) * e / 2 < SMALL
            return np.where(far, _large_order_cgf(lam, e, on), np.where(small, _small(lam, e), _near(lam, e / 2)))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """s(1) + y coth y - 1, y = e/2."""
        if not self.epsilon:
            return on.number(0)
        e = on.number(self.epsilon)
        if on.exact:
            less = -on.expm1(-e)
            return e / 2 + on.log(less / e) + e / 2 * (2 - less) / less - 1
        y = np.float64(max(float(e), 1e-150) / 2)
        if y < SMALL:
            return y * y / 2 - y**4 * (1 / 180 + 1 / 45) + y**6 * (1 / 2835 + 2 / 945) - y**8 * (1 / 37800 + 1 / 4725)
        return y + np.log(-np.expm1(-2 * y) / (2 * y)) + y / np.tanh(y) - 1

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.epsilon)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return Fraction(0), self.epsilon**2 / 8


def _large_order_cgf(lam: Any, e: Any, on: Arithmetic) -> Any:
    def rest(x: Any) -> Any:
        return on.log(-on.expm1(-x * e))

    logs = (1 + lam) * rest(1 + lam) - lam * rest(lam) - on.log(-on.expm1(-e))
    return lam * e - on.log1p(lam) - lam * on.log1p(1 / lam) + logs


def _small(lam: Array, e: float) -> Array:
    """Return K for small arguments by the series s(x) = y^2/6 - y^4/180 + ….

    (1+lam)^n - lam^n - 1 is taken by its factors, with lam (lam+1) times h^2 = (e/2)^2 in each.

    The powers of lam alone would leave the range of floats from orders of 1e40 on, where their products with h are small.
    """
    h = e / 2
    u = (h * lam) * (h * (lam + 1))
    v, square = u + h * h, (h * u) ** 2
    powers = [3 * u, 5 * u * v, 7 * u * v**2, 3 * u * (3 * v**3 + square), 11 * u * v * (v**3 + square)]
    powers.append(13 * u * v**2 * (v**3 + 2 * square))
    shares = [1 / 6, -1 / 180, 1 / 2835, -1 / 37800, 1 / 467775, -691 / 3831077250]
    return np.asarray(sum(share * power for share, power in zip(shares, powers, strict=True)))


def _near(lam: Array, h: float) -> Array:
    """log1p of what both differences of s exceed 0 by, all of it positive."""
    z = lam * h
    cosh = 2 * np.sinh(z / 2) ** 2
    first = cosh + lam * (_coth(h) * (1 + _sinhc(z)) + _sinhc(z))
    second = lam * 2 * np.sinh(h / 2) ** 2 + _coth(z) * (1 + _sinhc(h)) + _sinhc(h)
    return np.asarray(np.log1p(first / (1 + lam)) + lam * np.log1p(second / (1 + lam)))


def _coth(x: Any) -> Any:
    """x coth x - 1."""
    series = x * x / 3 - x**4 / 45 + 2 * x**6 / 945 - x**8 / 4725 + 2 * x**10 / 93555
    return np.where(x < SMALL, series, x / np.tanh(x) - 1)


def _sinhc(x: Any) -> Any:
    """sinh(x) / x - 1."""
    y = x * x
    series = y / 6 * (1 + y / 20 * (1 + y / 42 * (1 + y / 72 * (1 + y / 110 * (1 + y / 156)))))
    return np.where(x < 1, series, np.sinh(x) / np.where(x > 0, x, 1.0) - 1)
