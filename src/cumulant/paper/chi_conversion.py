"""From |chi|^a privacy to (epsilon, delta): Lemma 31, corrected (E-4).

    delta(eps) = E_q (p/q - e^eps)_+ <= xi(a)^a (a-1)^{a-1} / (a^a t^{a-1}),     t = e^eps - 1,  a > 1,

because (x - t)_+ <= c |x|^a with the best c where the two touch, x = a t/(a-1). It is tight for a two-point law.
Order 1 says delta <= xi(1)/2 at every epsilon, order inf says delta = 0 from log(1 + xi(inf)) on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.rounding import FEW, LONG
from cumulant.paper.chi import Binary, Ternary

ORDERS = np.concatenate([np.arange(1.0, 33.0), np.floor(np.geomspace(36.0, 4096.0, 40)), [np.inf]])
"""The orders tried when none are given; every order is valid."""

_UP = 1 + LONG


def chi_delta(chi: Binary | Ternary, epsilon: float, orders: Any = ORDERS) -> float:
    """Return the least delta in [0, 1] that these orders prove at epsilon >= 0.

    The orders are those of xi, or of zeta, which is at least xi.

    >>> chi_delta(Binary(lambda order: 0.145718**0.5), 3, orders=[2])  # E-4: the printed formula says 4.0e-4
    0.00190874...
    """
    array = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    with np.errstate(all="ignore"):
        log_root, log_t = np.log(chi(array)), FLOATS.log_expm1(np.float64(epsilon))
        log_delta = _sum(array * log_root, _log_constant(array), -(array - 1) * log_t)
        log_delta = np.where(array == 1, log_root - np.log(2), log_delta)
        log_delta = np.where(array == np.inf, np.where(log_t >= log_root, -np.inf, 0.0), log_delta)
        log_delta = np.where(log_root == -np.inf, -np.inf, log_delta)
    return float(min(1.0, np.exp(np.nanmin(np.append(log_delta, 0.0))) * _UP))


def chi_epsilon(chi: Binary | Ternary, delta: float, orders: Any = ORDERS) -> float:
    """Return the least epsilon >= 0 that these orders prove at delta; +inf if none does.

    The orders are those of xi or zeta.

    log(1 + (xi(a)^a (a-1)^{a-1} / (a^a delta))^{1/(a-1)}).

    >>> chi_epsilon(Binary(lambda order: 0.145718**0.5), 0.001908749025, orders=[2])
    3.00000...
    """
    if delta >= 1:
        return 0.0
    array = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    with np.errstate(all="ignore"):
        root = chi(array)
        log_root = np.log(root)
        log_t = _sum(array * log_root, _log_constant(array), -np.log(np.float64(delta))) / (array - 1)
        log_t = np.where(array == 1, np.where(root * _UP <= 2 * delta, -np.inf, np.inf), log_t)
        log_t = np.where(array == np.inf, log_root, log_t)
        log_t = np.where(log_root == -np.inf, -np.inf, log_t)
        least = np.nanmin(np.append(log_t, np.inf))
        return float(FLOATS.log1p_exp(least) * _UP) if least < np.inf else np.inf


def _sum(*parts: Array) -> Array:
    """Return the sum plus more than its error.

    Each part is known to a few units in its last place.
    """
    return np.asarray(sum(parts) + FEW * sum(np.abs(part) for part in parts))


def _log_constant(order: Array) -> Array:
    """Compute log((a-1)^{a-1} / a^a)."""
    return (order - 1) * np.log1p(-1 / order) - np.log(order)
