"""Gaussian sums over the integers: theta(c) = SUM_x e^{-(x-c)^2 / 2v}.

They are evaluated in floats and in balls.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.differences import up_to

_TERMS = 24
"""Terms on each side; derived: for v < 1/4 directly, and for larger v after Poisson's summation, the next one is
below e^-2800."""

_BROAD = Fraction(1, 4)
"""From this variance on the transformed sum converges faster."""


def log_ratio(c: Array, variance: float) -> Array:
    """log(theta(c) / theta(0)) in floats, c in [-1/2, 1/2]: at most 0.

    >>> log_ratio(np.array([0.25, 0.5]), 0.25)
    array([-0.01428..., -0.02876952])
    """
    n = np.arange(1, _TERMS + 1)
    c = np.abs(c)[..., None]
    if variance >= _BROAD:
        weights = np.exp(-2 * math.pi**2 * min(variance, 1e6) * n * n)
        return np.asarray(
            np.log1p(-4 * np.sum(weights * np.sin(math.pi * n * c) ** 2, axis=-1) / (1 + 2 * weights.sum()))
        )
    # e^{-(n^2 - 2nc)/2v} + e^{-(n^2 + 2nc)/2v} - 2 e^{-n^2/2v}, without cancellation
    more = np.exp(-(n * n - 2 * n * c) / (2 * variance)) * np.expm1(-n * c / variance) ** 2
    at_zero = 2 * np.exp(-n * n / (2 * variance)).sum()
    return np.asarray(-(c[..., 0] ** 2) / (2 * variance) + np.log1p(more.sum(axis=-1) / (1 + at_zero)))


def log_ratio_ball(c: Fraction, variance: Fraction) -> Any:
    """Return log(theta(c) / theta(0)) as a ball."""
    if not c:
        return BALLS.number(0)
    v, terms = BALLS.number(variance), range(1, _TERMS + 1)
    at = BALLS.number(abs(c))
    if variance >= _BROAD:
        weights, rest = _transformed(v)
        lost = sum((w * (n * at).sin_pi() ** 2 for n, w in zip(terms, weights, strict=True)), start=up_to(rest))
        whole = 1 + 2 * sum(weights, start=up_to(rest))
        return (-4 * lost / whole).log1p()
    pairs = sum(
        ((-(n * n - 2 * n * at) / (2 * v)).exp() + (-(n * n + 2 * n * at) / (2 * v)).exp() for n in terms),
        BALLS.number(0),
    )
    return -at * at / (2 * v) + (pairs + up_to(_rest(v))).log1p() - _direct(v).log1p()


def log_zero_ball(variance: Fraction) -> Any:
    """log theta(0) as a ball."""
    v = BALLS.number(variance)
    if variance < _BROAD:
        return _direct(v).log1p()
    weights, rest = _transformed(v)
    pi = BALLS.number(1).atan() * 4
    return ((2 * pi * v).log() / 2) + (2 * sum(weights, start=up_to(rest))).log1p()


def log_zero(variance: float) -> float:
    """log theta(0) in floats."""
    n = np.arange(1, _TERMS + 1)
    if variance < _BROAD:
        return math.log1p(2 * float(np.exp(-n * n / (2 * variance)).sum()))
    weights = np.exp(-2 * math.pi**2 * min(variance, 1e6) * n * n)
    return math.log(2 * math.pi * variance) / 2 + math.log1p(2 * float(weights.sum()))


def _transformed(v: Any) -> tuple[list[Any], Any]:
    """Return q^{n^2}, q = e^{-2 pi^2 v}, and a bound of the sum of the later ones.

    Each is less than half of the one before.
    """
    pi = BALLS.number(1).atan() * 4
    log_q = -2 * pi * pi * v
    return [(n * n * log_q).exp() for n in range(1, _TERMS + 1)], 2 * ((_TERMS + 1) ** 2 * log_q).exp()


def _direct(v: Any) -> Any:
    """theta(0) - 1."""
    return sum((2 * (-(n * n) / (2 * v)).exp() for n in range(1, _TERMS + 1)), start=up_to(_rest(v)))


def _rest(v: Any) -> Any:
    """Return a bound of the sum of the terms |x| > 24, |c| <= 1/2.

    Exponents are at most -(x^2 - x) / 2v, and terms fall by 1/4.
    """
    n = _TERMS + 1
    return 4 * (-(n * n - n) / (2 * v)).exp()
