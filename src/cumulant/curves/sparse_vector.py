"""The curve of sparse vectors with Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from cumulant.curves.points import Points, hull_of_points
from cumulant.errors import HypothesisError
from cumulant.numerics.arithmetic import Array

_CELLS = 200_000
_REACH = 9.5
_ROUNDING = 1e-12
_LARGEST = 600
"""Of the square of order times shift; beyond it e^K is no float."""

ORDERS = tuple(Fraction(x) for x in ("1.5", "2", "3", "4", "5", "6", "8", "10", "12", "16", "20", "32", "64", "128"))
"""Where it is evaluated; between them chords of K hold."""


def gaussian_sparse_vector(threshold: Fraction, query: Fraction, hits: int, queries: int) -> Points:
    """log M = a(a-1) t^2/2 + log V, V_{j,h} = sup_x [g(x) V_{j-1,h-1} + F(x) V_{j-1,h}], V_{0,h} = V_{j,0} = 1.

    g(x) = (1-F(x))^a (1-F(x+u))^{1-a}, F the normal distribution function, t = `threshold` and u = `query` the shifts in
    units of the noise (docs/mechanisms/sparse-vector.md). On a cell of x both factors take their larger ends, and
    beyond the cells g is at most e^{a(a-1)u^2/2} (1 - F(x - (a-1)u)).
    """
    values = []
    known = [order for order in ORDERS if order * order * query**2 < _LARGEST] or ORDERS[:1]
    if Fraction(known[0] ** 2 * query**2) >= _LARGEST:
        raise HypothesisError("noise this small against the sensitivity of the queries protects nothing")
    for order in known:
        log_value = _log_value(float(order), float(query), hits, queries)
        noise = float(order) * (float(order) - 1) * float(threshold) ** 2 / 2
        values.append(Fraction((noise + log_value) * (1 + _ROUNDING)) / (order - 1))
    return hull_of_points(known, values)


def _log_value(a: float, u: float, hits: int, queries: int) -> float:
    g, f = _corners(a, u)
    logs = np.zeros(hits + 1)  # log V of the last number of queries, for each number of hits
    for _ in range(queries):
        before = logs.copy()
        for h in range(1, hits + 1):
            ratio = math.exp(before[h - 1] - before[h])
            logs[h] = before[h] + math.log(float(np.max(g * ratio + f)) * (1 + _ROUNDING))
            logs[h] = max(logs[h], before[h])
    return float(logs[hits])


def _corners(a: float, u: float) -> tuple[Array, Array]:
    """(g, F) from above on each cell, those that can be the largest of g r + F for some r."""
    from scipy.special import log_ndtr, ndtr

    x = np.linspace(-_REACH, _REACH + (a - 1) * u, _CELLS + 1)
    log_g = a * log_ndtr(-x[:-1]) + (1 - a) * log_ndtr(-(x[1:] + u))
    first = (1 - a) * log_ndtr(-(x[0] + u))
    last = a * (a - 1) * u * u / 2 + log_ndtr(-(x[-1] - (a - 1) * u))
    with np.errstate(over="ignore"):
        g = np.exp(np.concatenate([[first], log_g, [last]])) * (1 + 1e-9)
    f = np.minimum(np.concatenate([[ndtr(x[0])], ndtr(x[1:]), [1.0]]) * (1 + 1e-13), 1.0)
    order = np.argsort(f)
    g, f = g[order], f[order]
    largest = np.maximum.accumulate(g[::-1])[::-1] == g  # no other has both larger
    return g[largest], f[largest]
