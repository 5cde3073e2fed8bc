"""Sampling applied to a loss, and two moment functions of a sampled pair.

Letters: g = rate, x = log(p/q), w = 1 - g + g e^x = p'/q' for P' = (1-g)Q + gP against Q, L = log w, a = lambda + 1. Both
moments are integrals of positive terms over the law of the loss under Q:

    Proposition 11's pair   M - 1 = E_Q[ w^a - 1 - a (w-1) ] = E_Q[ w { excess(lambda L) + lambda excess(-L) } ]
    the profile             M - 1 = E_Q[ (w^lambda - 1)(w - w^-lambda); x > 0 ]

with excess(y) = e^y - 1 - y >= 0: nothing cancels, however small the rate or close to 1 the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import BALLS, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure

# ---- w and L


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate in floats: g, 1 - g, which a rounded g does not determine, and h0 = log((1-g)/g)."""

    g: float
    kept: float

    @classmethod
    def of(cls, rate: Fraction) -> Rate:
        """Convert a rate, raised to 1e-140: M - 1 is quadratic in it, and floats carry no less."""
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


def sampled_loss(x: Array, rate: float, kept: float) -> Array:
    """Return L = log(1 - g + g e^x) with full relative accuracy.

    `kept` is 1 - g, which a rounded g does not determine.
    """
    if kept == 0:
        return x
    top = np.max(x, initial=0.0)
    near = np.log1p(rate * np.expm1(x if top < 700 else np.minimum(x, 700.0)))
    if rate > 0.5:  # there g e^x - g is close to -1 far to the left
        near = np.where(x < -0.5, np.log(kept + rate * np.exp(np.minimum(x, 0.0))), near)
    return near if top < 700 else np.where(x < 700, near, x + np.log(rate + kept * np.exp(-np.maximum(x, 0.0))))


def unsampled_loss(loss: Array, rate: float, kept: float) -> Array:
    """Return x with log(1 - g + g e^x) = loss; -inf if there is none.

    It is exact for a loss that differs by a few units in the last place.

    Each form is stable where it is used: e^loss - (1-g) below, where g may be close to 1, and nothing that overflows above.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = np.log(np.maximum(np.exp(loss) - kept, 0.0)) - np.log(rate)
        near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 50.0)) / rate, -1.0))
        far = loss - np.log(rate) + np.log1p(-kept * np.exp(-np.maximum(loss, 0.0)))
    return np.where(loss < -0.5, below, np.where(loss < 30, near, far)) if kept > 0 else loss


def enclosed_loss(x: Enclosure, rate: Fraction) -> Enclosure:
    """Return L with a proved error, by the forms of `sampled_loss`."""
    g, kept = BOUNDED.number(rate), BOUNDED.number(1 - rate)
    value: Any = BOUNDED.log1p(g * BOUNDED.expm1(x))
    if rate > Fraction(1, 2):
        near: Any = BOUNDED.log(kept + g * BOUNDED.exp(x))
        value = np.where(x.mid < -0.5, near, value)
    if (x.mid > 700).any():
        far: Any = x + enclosed_rest(x, rate)
        value = np.where(x.mid > 700, far, value)
    return value  # type: ignore[no-any-return]


def enclosed_rest(x: Enclosure, rate: Fraction) -> Enclosure:
    """Return L - x = log(g + (1-g) e^-x) as enclosures, where x is large."""
    return BOUNDED.log(BOUNDED.number(rate) + BOUNDED.number(1 - rate) * BOUNDED.exp(-x))


def mixed_ball(x: Any, g: Scalar) -> Any:
    """Return w = 1 - g + g e^x on real balls."""
    return 1 + g * x.expm1()


def analytic_mixed_ball(x: Any, g: Scalar) -> Any:
    """Return w on complex balls: in an integrand the exponential is asked for once."""
    return 1 + g * (x.exp() - 1)


def analytic_rest(x: Any, g: Scalar, analytic: bool) -> Any:
    """Return L - x on complex balls, where x is large."""
    return (g + (1 - g) * (-x).exp()).log(analytic=analytic)


def unsampled_ball(loss: Scalar, rate: Fraction) -> Scalar:
    """Return x with L = loss on balls, for loss >= 0: log(1 + (e^loss - 1)/g)."""
    return (1 + loss.expm1() / BALLS.number(rate)).log()


def mixed_quotients(quotients: Iterable[tuple[int, int]], rate: Fraction) -> list[tuple[int, int]]:
    """Return w for quotients p/q of integers, again as quotients of integers."""
    g, one = rate.as_integer_ratio()
    return [((one - g) * q + g * p, one * q) for p, q in quotients]


# ---- the kernels, in floats and on balls


@dataclass(frozen=True, slots=True)
class Point:
    """The arguments of a kernel on balls at one loss: w, L = log w, the Q-weight, weight * w^a.

    The last comes ready made because w^a and a Gaussian weight are both huge powers that cancel.
    """

    w: Any
    L: Any
    weight: Any
    power: Any


Term = Callable[[Array], Array]
"""The kernel as a function of L, for a matrix of L with one column per order."""

BallTerm = Callable[[Point], Any]
"""The kernel times the weight, on balls, real or complex."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of (lambda, L) to integrate against Q, its slope at lambda = 0; also on balls.

    In floats `term` is divided by max(w, 1)^a and `slope` by max(w, 1), so that nothing overflows. `whole` kernels are
    integrated over all losses, others over x > 0.
    """

    term: Callable[[Array, Array], Array]
    slope: Callable[[Array], Array]
    ball_term: Callable[[Any, Point], Any]
    ball_slope: Callable[[Point], Any]
    whole: bool


# 1/2!, 1/3!, … 1/15!: for |y| < 1/2 the rest of the series is below 2^-56 of it
_FACTORIALS = [1 / math.factorial(n) for n in range(2, 16)]


def _scaled_excess(y: Array) -> Array:
    """Return e^{-max(y,0)} (e^y - 1 - y); at y = -L it is (w log w - w + 1) / max(w, 1)."""
    size = np.exp(-np.abs(y))
    far = np.where(y > 0, 1 - size - y * size, size - 1 - y)
    near = np.abs(y) < 0.5
    z = y[near]
    series = np.full_like(z, _FACTORIALS[-1])
    for coefficient in _FACTORIALS[-2::-1]:
        series *= z
        series += coefficient
    far[near] = series * z * z * np.where(z > 0, size[near], 1.0)
    return far


def _pair_term(lam: Array, L: Array) -> Array:
    # w { excess(lambda L) + lambda excess(-L) }
    y = lam * L
    first = np.exp(np.minimum(L, 0.0)) * _scaled_excess(y)
    return np.asarray(first + lam * np.exp(-np.maximum(y, 0.0)) * _scaled_excess(-L))


def _profile_term(lam: Array, L: Array) -> Array:
    # (w^lambda - 1)(w - w^-lambda) = w^a (1 - w^-lambda)(1 - w^-a)
    y = lam * L
    return np.asarray(np.expm1(-y) * np.expm1(-(L + y)))


def _profile_slope(L: Array) -> Array:
    # (w - 1) log w
    return np.asarray(-np.expm1(-L) * L)


def _pair_term_ball(lam: Any, point: Point) -> Any:
    return point.power - (1 + (lam + 1) * (point.w - 1)) * point.weight


def _pair_slope_ball(point: Point) -> Any:
    return (point.w * point.L - point.w + 1) * point.weight


def _profile_term_ball(lam: Any, point: Point) -> Any:
    # (w^lambda - 1)(w - w^-lambda) = w^a - 1 - w + w^-lambda
    return point.power - (1 + point.w - (-lam * point.L).exp()) * point.weight


def _profile_slope_ball(point: Point) -> Any:
    return (point.w - 1) * point.L * point.weight


PAIR = Kernel(_pair_term, lambda L: _scaled_excess(-L), _pair_term_ball, _pair_slope_ball, whole=True)
"""The kernel of Proposition 11's pair."""

PROFILE = Kernel(_profile_term, _profile_slope, _profile_term_ball, _profile_slope_ball, whole=False)
"""The kernel of the symmetric pair of the amplified profile."""


# ---- the kernels in enclosures, by their logarithms


def _log_slope(L: Enclosure, whole: bool) -> Enclosure:
    """Return log of the limit of the kernel / lambda at lambda = 0, less the gain.

    The limits are w log w - w + 1 = w excess(-L) for `whole` kernels and (w-1) log w otherwise.
    """
    value: Enclosure = BOUNDED.log_excess(-L) - gain(-L) if whole else BOUNDED.log(-BOUNDED.expm1(-L)) + BOUNDED.log(L)
    return value


def log_kernel(lam: Enclosure, L: Enclosure, whole: bool) -> Enclosure:
    """Return log of f_a, or of f_a + f_{1-a}, less a times the gain, where w = e^L.

    f_a + f_{1-a} = w^a (1 - w^-lambda)(1 - w^-a).

    f_a = w { excess(lambda L) + lambda excess(-L) }, excess(y) = e^y - 1 - y. All lambda are 0 or none is.
    """
    if not lam.mid.all():
        return _log_slope(L, whole)
    y = lam * L
    if not whole:
        return BOUNDED.log(-BOUNDED.expm1(-y)) + BOUNDED.log(-BOUNDED.expm1(-(y + L)))
    bent: Any = BOUNDED.log_excess(y) - gain(y)
    if (y.mid > 30).any():
        large: Any = BOUNDED.log1p(-(1 + y) * BOUNDED.exp(-y))
        bent = np.where(y.mid > 30, large, bent)
    straight = BOUNDED.log(lam) + BOUNDED.log_excess(-L) - gain(y)
    value: Enclosure = BOUNDED.log_add_exp(bent, straight) - gain(-L)
    return value


def gain(L: Any) -> Any:
    """Return L where its midpoint is positive, else 0.

    The gain is taken out of an exponent and put back elsewhere, so it need not be exactly max(L, 0).
    """
    return np.where(L.mid > 0, L, 0.0)
