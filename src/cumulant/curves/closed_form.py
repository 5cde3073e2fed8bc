"""Curves in closed form, stable at every real order (items 38 to 40, E-22).

Letters as in the paper: a = lambda + 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve, Wrapped
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import Enclosure
from cumulant.numerics.rounding import rounded_down


@dataclass(frozen=True, slots=True)
class Concentrated(Curve):
    """Remark 8: K(lambda) = lambda xi + lambda (lambda + 1) rho.

    The Gaussian is xi = 0, rho = S^2 / (2 sigma^2).
    """

    rho: Fraction
    xi: Fraction = Fraction(0)

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        lam, rho, xi = on.asarray(lam), on.number(self.rho), on.number(self.xi)
        return lam * (xi + (lam + 1) * rho)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.xi) + on.number(self.rho)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf) if self.rho else on.number(self.xi)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return self.xi, self.rho


@dataclass(frozen=True, slots=True)
class Exposed(Curve):
    """The curve of what is released as it is, without noise: infinite at every order."""

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return on.asarray(lam) * 0 + on.number(np.inf)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf)


@dataclass(frozen=True, slots=True)
class Slackened(Wrapped):
    """Another curve's statements, except with this probability."""

    failure: Fraction = Fraction(0)

    def slack(self) -> Fraction:
        return self.failure

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return None


@dataclass(frozen=True, slots=True)
class Raised(Wrapped):
    """Every divergence larger by the same amount."""

    amount: Fraction = Fraction(0)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return self.curve.cgf(lam, on) + on.asarray(lam) * on.number(self.amount)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.curve.at_one(on) + on.number(self.amount)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.curve.at_infinity(on) + on.number(self.amount)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return None


@dataclass(frozen=True, slots=True)
class Truncated(Wrapped):
    """A curve's values below the order `omega`, and +inf from there on."""

    omega: Fraction = Fraction(2)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        value = self.curve.cgf(lam, on)
        known = (
            np.array([Fraction(x) < self.omega - 1 for x in lam]) if on.exact else lam < rounded_down(self.omega - 1)
        )
        return np.where(known, value, on.asarray(np.zeros(len(lam))) + on.number(np.inf))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return None


@dataclass(frozen=True, slots=True)
class LaplaceShift(Curve):
    """Item 39, b = scale / sensitivity: M = w' e^{w y} + w e^{-w' y}.

    y = (2a-1)/b, w = (a-1)/(2a-1), w' = 1 - w.
    """

    inverse_scale: Fraction

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        lam, t = on.asarray(lam), on.number(self.inverse_scale)
        y, w = (2 * lam + 1) * t, lam / (2 * lam + 1)
        if on.exact:
            return w * y + on.log1p(w * on.expm1(-y))
        value = w * y + on.log1p(w * on.expm1(-y))
        near = y < 1
        if near.any():  # the first-order terms of M - 1 cancel, and what is left is positive
            w, y = w[near], y[near]
            value[near] = on.log1p((1 - w) * on.excess(w * y) + w * on.excess(-(1 - w) * y))
        return value

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.excess(-on.number(self.inverse_scale))  # 1/b + e^{-1/b} - 1

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.inverse_scale)


@dataclass(frozen=True, slots=True)
class Response(Curve):
    """Item 40 with e0 = log(p/(1-p)): K = log cosh x + log1p(t tanh x).

    t = 2p-1 = tanh(e0/2), x = (a-1) e0.

    Given by p, or by e0 = log(1 + rate (e^epsilon - 1)): the worst mechanism of Lemma 3, and of pure DP at rate 1.
    """

    p: Fraction | None = None
    epsilon: Fraction = Fraction(0)
    rate: Fraction = Fraction(1)
    leak: Fraction = Fraction(0)

    enclosed = True

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        if self.p is not None:
            # log(p/(1-p)) = log1p((2p-1)/(1-p)): exact quotient, so nothing cancels at p near 1/2
            return on.log1p(on.number((2 * self.p - 1) / (1 - self.p)))
        if self.rate == 1:
            return on.number(self.epsilon)
        return lemma3(on.number(self.epsilon), on.number(self.rate), on)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return response_cgf(self.pure(on), lam, on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return response_kl(self.pure(on), on)

    def slack(self) -> Fraction:
        return self.rate * self.leak


def response_cgf(e0: Scalar, lam: Array, on: Arithmetic) -> Array:
    """K of randomized response with log-odds e0, the largest of any e0-DP mechanism."""
    x, t = on.asarray(lam) * e0, on.tanh(e0 / 2)
    return on.log_cosh(x) + on.log1p(t * on.tanh(x))


def response_kl(e0: Scalar, on: Arithmetic) -> Scalar:
    """(2p - 1) log(p / (1 - p))."""
    return on.tanh(e0 / 2) * e0


def lemma3(x: Any, rate: Scalar, on: Arithmetic) -> Any:
    """Return log(1 + rate (e^x - 1)), x >= 0.

    It is Lemma 3 for the privacy loss, and joint convexity (E-11 ii) for K.
    """
    far = on.log1p_exp(on.log(rate) + on.log_expm1(x))  # e^x may overflow where the answer does not
    if on.exact:
        return on.minimum(on.log1p(rate * on.expm1(x)), far)
    return _enclosed_from_zero(far, x) if on.enclosing else far


def _enclosed_from_zero(found: Any, x: Any) -> Any:
    """Return what is found, or the interval [0, x] if x is too small for its logarithm.

    The interval holds it as well.
    """
    unknown = np.isnan(found.mid + found.radius)
    if not unknown.any():
        return found
    half = x.upper() / 2
    half = np.where(half < np.inf, half, np.nan)
    whole: Any = Enclosure(half, half)
    return np.where(unknown, whole, found)
