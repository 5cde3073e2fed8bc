"""Gaps of convex functions, f(x+h) - f(x) - h f'(x), without cancellation."""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array  # noqa: F401  (doctest)
from cumulant.numerics.lazy_scipy import special

EDGE = 2.0**-46
"""Relatively closer than this to the edge of the parameter space counts as outside: rounding may have moved it in."""


def log_gap(u: Any, on: Arithmetic) -> Any:
    """u - log(1+u) for u > -1, the gap of -log, without cancellation at small u.

    >>> float(log_gap(1e-8, FLOATS))
    4.9999999666666e-17
    """
    if on.exact:
        return u - on.log1p(u)
    u = np.asarray(u, dtype=np.float64)
    # log(1+u) = 2 artanh(s), s = u/(2+u), and u - 2s = u s: the gap is u s - 2 (s^3/3 + s^5/5 + ...)
    s = np.where(np.abs(u) < 0.5, u / (2 + u), 0.0)
    series = np.zeros_like(s)
    for n in range(41, 1, -2):  # |s| <= 1/3, so the rest is below 2^-60 of it
        series = (series * s * s) + 1.0 / n
    return np.where(np.abs(u) < 0.5, u * s - 2 * s**3 * series, u - np.log1p(u))


def log_gamma_gap(x: Any, step: Any, on: Arithmetic) -> Any:
    """log Gamma(x+h) - log Gamma(x) - h digamma(x) for x > 0; +inf unless x + h > 0.

    Small steps by the series sum_{n>=2} (-h)^n zeta(n, x) / n, whose first term is h^2/(2x) and not a difference of
    logs.

    >>> float(log_gamma_gap(1e6, 1.0, FLOATS))
    5.000000833333e-07
    """
    if on.exact:
        return np.frompyfunc(lambda v, h: _ball_log_gamma_gap(v, h, on), 2, 1)(x, step)
    x, step = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(step, dtype=np.float64))
    small = np.abs(step) < x / 4
    ratio = np.where(small, -step / x, 0.0)
    series = np.zeros_like(ratio)
    for n in range(32, 1, -1):  # 4^-32 is below the spacing of the first term
        series = series * ratio + _scaled_zeta(n, x) / n
    inside = x + step > 0
    far = special.gammaln(np.where(inside, x + step, 1.0)) - special.gammaln(x) - step * special.digamma(x)
    return np.where(inside, np.where(small, ratio * ratio * series, far), np.inf)


def _scaled_zeta(n: int, x: Array) -> Array:
    """Return x^n zeta(n, x) for x > 0.

    x^-n may underflow, so far out the first terms of Euler and Maclaurin replace zeta.
    """
    near = special.zeta(n, np.minimum(x, 1e4)) * np.minimum(x, 1e4) ** n
    far = x / (n - 1) + 0.5 + n / (12 * x) - n * (n + 1) * (n + 2) / (720 * x**3)
    return np.where(x < 1e4, near, far)


def _ball_log_gamma_gap(x: Any, step: Any, on: Arithmetic) -> Any:
    return (x + step).lgamma() - x.lgamma() - step * x.digamma() if x + step > 0 else on.number(np.inf)
