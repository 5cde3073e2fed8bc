"""The Rényi divergence of two multivariate normal laws (item 44).

In coordinates where the second covariance is the identity and the first is diagonal, 1 + w_i, with shifts z_i of the
mean,

    D_a = sum_i (a/2) z_i^2 / (1 - (a-1) w_i) + [r(-(a-1) w_i) / (a-1) + r(w_i)] / 2,     r(u) = u - log(1+u) >= 0.

It is item 44 with S_a = a S_2 + (1-a) S_1 diagonalised; the linear terms of the logarithms cancel, so every term is
>= 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.domains import orders as read_orders
from cumulant.errors import InputError
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.gaps import EDGE, log_gap


def normal_divergence(mean: Any, covariance: Any, other_mean: Any, other_covariance: Any, orders: Any) -> Any:
    """Compute D_a(N(mean, covariance) || N(other_mean, other_covariance)) at orders in [0, inf].

    Order 0 is 0 (both laws have full support), 1 is KL, inf the largest privacy loss; +inf where S_a is not positive
    definite. Numbers stand for one-dimensional means and variances.

    >>> normal_divergence(1, 1, 0, 1, [0, 1, 2])  # a d^2 / (2 sigma^2)
    array([0. , 0.5, 1. ])
    >>> normal_divergence([0, 0], [[1, 0], [0, 3]], [0, 0], [[1, 0], [0, 2]], 3)  # 3*2 - 2*3 = 0 is not definite
    inf
    """
    shift = np.atleast_1d(np.asarray(mean, np.float64) - np.asarray(other_mean, np.float64))
    first, second = _square(covariance, shift.size), _square(other_covariance, shift.size)
    _inverse_factor(first, "covariance")
    inverse = _inverse_factor(second, "other_covariance")
    gaps, axes = np.linalg.eigh(inverse @ (first - second) @ inverse.T)
    array, scalar = read_orders(orders, low=0.0)
    value = aligned_divergence(gaps, axes.T @ (inverse @ shift), array)
    return float(value[0]) if scalar else value


def aligned_divergence(gaps: Array, shifts: Array, orders: Array) -> Array:
    """Compute the divergence of N(z, 1+w) from N(0, 1), coordinates independent.

    At a flat array of orders in [0, inf].

    >>> aligned_divergence(np.array([1.0]), np.array([0.0]), np.array([1.0, 2.0]))  # (1 - log 2)/2; 1 + (a-1)(-w) = 0
    array([0.15342641,        inf])
    """
    w, z2 = np.asarray(gaps, np.float64), np.asarray(shifts, np.float64) ** 2
    with np.errstate(all="ignore"):
        lam = np.where(np.isfinite(orders) & (orders != 1), orders - 1, 1.0)[:, None]
        kl = (z2 + log_gap(w, FLOATS)) / 2
        spread = log_gap(-lam * w, FLOATS) / lam + log_gap(w, FLOATS)
        terms = np.where(lam * w < 1 - EDGE, (lam + 1) * z2 / (1 - lam * w) / 2 + spread / 2, np.inf)
        # order inf: the log density ratio is bounded only where the first law is the narrower one
        narrower = z2 / (-2 * w) - np.log1p(w) / 2
        largest = np.where(w < 0, narrower, np.where((w == 0) & (z2 == 0), 0.0, np.inf))
        value = np.where(orders == 1, kl.sum(), np.where(orders == np.inf, largest.sum(), terms.sum(axis=-1)))
        return np.where(orders == 0, 0.0, np.where(np.isnan(value), np.inf, value))


def _square(covariance: Any, size: int) -> Array:
    matrix = np.atleast_2d(np.asarray(covariance, np.float64))
    if matrix.shape != (size, size):
        raise InputError(f"covariance of shape {matrix.shape} must be ({size}, {size}), as the mean has {size} entries")
    return matrix


def _inverse_factor(matrix: Array, name: str) -> Array:
    """Compute L^-1 for matrix = L L'."""
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0):
        raise InputError(f"{name} must be symmetric")
    try:
        return np.linalg.inv(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        raise InputError(f"{name} must be positive definite") from None
