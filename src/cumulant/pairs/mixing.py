"""Two moment functions of a sampled pair, each as an integral of positive terms over the law of the loss under Q.

Letters: g = rate, x = log(p/q), w = 1 - g + g e^x = p'/q' for P' = (1-g)Q + gP against Q, L = log w, a = lambda + 1.

    Proposition 11's pair   M - 1 = E_Q[ w^a - 1 - a (w-1) ] = E_Q[ w { excess(lambda L) + lambda excess(-L) } ]
    the profile             M - 1 = E_Q[ (w^lambda - 1)(w - w^-lambda); x > 0 ]

with excess(y) = e^y - 1 - y >= 0: nothing cancels, however small the rate or close to 1 the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import Array


@dataclass(frozen=True, slots=True)
class Point:
    """What an exact kernel sees of one loss, on balls, real or complex: w, L = log w, the Q-weight, and weight * w^a.

    The last comes ready made because w^a and a Gaussian weight are both huge powers that cancel.
    """

    w: Any
    L: Any
    weight: Any
    power: Any


Term = Callable[[Array], Array]
"""The kernel as a function of L, for a matrix of L with one column per order."""

ExactTerm = Callable[[Point], Any]
"""The kernel times the weight, on balls, real or complex."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of (lambda, L) to integrate against Q, the limit of term / lambda at lambda -> 0, and both on balls.

    In floats `term` is divided by max(w, 1)^a and `slope` by max(w, 1), so that nothing overflows. `whole` kernels are
    integrated over all losses, others over x > 0.
    """

    term: Callable[[Array, Array], Array]
    slope: Callable[[Array], Array]
    exact_term: Callable[[Any, Point], Any]
    exact_slope: Callable[[Point], Any]
    whole: bool


# 1/2!, 1/3!, … 1/15!: for |y| < 1/2 the rest of the series is below 2^-56 of it
_FACTORIALS = [1 / math.factorial(n) for n in range(2, 16)]


def _scaled_excess(y: Array) -> Array:
    """e^{-max(y,0)} (e^y - 1 - y); at y = -L it is w log w - w + 1, divided by max(w, 1)."""
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


def _exact_pair_term(lam: Any, point: Point) -> Any:
    return point.power - (1 + (lam + 1) * (point.w - 1)) * point.weight


def _exact_pair_slope(point: Point) -> Any:
    return (point.w * point.L - point.w + 1) * point.weight


def _exact_profile_term(lam: Any, point: Point) -> Any:
    # (w^lambda - 1)(w - w^-lambda) = w^a - 1 - w + w^-lambda
    return point.power - (1 + point.w - (-lam * point.L).exp()) * point.weight


def _exact_profile_slope(point: Point) -> Any:
    return (point.w - 1) * point.L * point.weight


PAIR = Kernel(_pair_term, lambda L: _scaled_excess(-L), _exact_pair_term, _exact_pair_slope, whole=True)
PROFILE = Kernel(_profile_term, _profile_slope, _exact_profile_term, _exact_profile_slope, whole=False)


def sampled_loss(x: Array, rate: float, kept: float) -> Array:
    """L = log(1 - g + g e^x), with full relative accuracy; `kept` is 1 - g, which a rounded g does not tell."""
    if kept == 0:
        return x
    top = np.max(x, initial=0.0)
    near = np.log1p(rate * np.expm1(x if top < 700 else np.minimum(x, 700.0)))
    if rate > 0.5:  # there g e^x - g is close to -1 far to the left
        near = np.where(x < -0.5, np.log(kept + rate * np.exp(np.minimum(x, 0.0))), near)
    return near if top < 700 else np.where(x < 700, near, x + np.log(rate + kept * np.exp(-np.maximum(x, 0.0))))


def unsampled_loss(loss: Array, rate: float, kept: float) -> Array:
    """x with log(1 - g + g e^x) = loss, exactly for a loss that differs by a few units; -inf where there is none.

    Each form is stable where it is used: e^loss - (1-g) below, where g may be close to 1, and nothing that overflows above.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = np.log(np.maximum(np.exp(loss) - kept, 0.0)) - np.log(rate)
        near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 50.0)) / rate, -1.0))
        far = loss - np.log(rate) + np.log1p(-kept * np.exp(-np.maximum(loss, 0.0)))
    return np.where(loss < -0.5, below, np.where(loss < 30, near, far)) if kept > 0 else loss
