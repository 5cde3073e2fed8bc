"""Binomial coefficients and geometric sums in log space."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.lazy_scipy import special
from cumulant.numerics.rounding import U

BINOMIAL = 12 * U
"""The relative error of log_binomials in floats."""


log_sum = FLOATS.log_sum_exp
"""log of the sum of e^x over the last axis, in floats."""


def log_binomials(order: int, on: Arithmetic = FLOATS) -> Array:
    """Return log C(order, j) for j = 2 … order, as cumulative sums of log((order-j+1)/j).

    lgamma would lose 3 digits more.

    >>> import numpy as np
    >>> np.round(np.exp(log_binomials(5)))
    array([10., 10.,  5.,  1.])
    """
    half = order // 2
    j = on.asarray(np.arange(1, half + 1))
    # every term is positive, log1p keeps its digits where the quotient is close to 1
    term = on.log1p((order + 1 - 2 * j) / j)
    rising = np.cumsum(term)
    if not on.exact:  # what each addition lost is known exactly (Knuth's two-sum), and added at the end
        before = np.append(0.0, rising[:-1])
        kept = rising - before
        rising = rising + np.cumsum((before - (rising - kept)) + (term - kept))
    # C(a, j) = C(a, a-j): the second half mirrors the first, so errors do not pile up
    whole = np.concatenate([rising, rising[: (order - 1) // 2][::-1], rising[:1] * 0])
    return whole[1:]


def choose(order: int, some: Iterable[int]) -> Iterator[int]:
    """Return C(order, j) at increasing integers j, each from its neighbour if there is one.

    >>> list(choose(6, [0, 1, 2, 5]))
    [1, 6, 15, 6]
    """
    before, value = -2, 0
    for j in some:
        value = value * (order - before) // j if j == before + 1 else math.comb(order, j)
        before = j
        yield value


@lru_cache(maxsize=32)
def log_binomial_table(orders: tuple[int, ...]) -> tuple[Array, Array]:
    """Return rows of log C(order, j), j = 2 … max(orders), padded with -inf; and padded with 0."""
    table = np.full((len(orders), max(orders) - 1), -np.inf)
    for row, order in zip(table, orders, strict=True):
        row[: order - 1] = log_binomials(order)
    finite = np.maximum(table, 0.0)
    table.flags.writeable = finite.flags.writeable = False
    return table, finite


def log_binomial(order: float | Array, j: Array, on: Arithmetic = FLOATS) -> Array:
    """Return log C(order, j) at scattered integers 0 <= j <= order, for any order.

    An array has one order for each j, from 64 on. The relative error is a few units in the last place.

    >>> float(log_binomial(10, np.array([3.0]))[0]) - math.log(120) < 1e-15
    True
    """
    if on.exact:
        return on.log_gamma(order + 1) - on.log_gamma(j + 1) - on.log_gamma(order - j + 1)
    j = np.minimum(j, order - j)
    if np.ndim(order) == 0 and order < 64:
        return special.gammaln(order + 1) - special.gammaln(j + 1) - special.gammaln(order - j + 1)
    # log n!/m! with m = n - j >= n/2, by Stirling's series; written as a difference because gammaln(n) - gammaln(m)
    # would lose log(n) digits.
    m = order - j
    ratio = j * np.log(order) - (m + 0.5) * np.log1p(-j / order) - j + _stirling_tail(order) - _stirling_tail(m)
    return ratio - special.gammaln(j + 1)


def _stirling_tail(n: Array | float) -> Array | float:
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * n * n)) / (n * n)) / (n * n)) / n


def log_geometric(slope: Array, count: Array, on: Arithmetic = FLOATS) -> Array:
    """log of the sum of e^{slope i} over 0 <= i < count, and never below it.

    >>> float(log_geometric(np.array([0.0]), np.array([8.0]))[0]) == math.log(8)
    True
    """
    if on.exact:
        return np.frompyfunc(lambda b, n: _log_geometric_ball(b, int(n), on), 2, 1)(slope, count)
    decay = -np.abs(slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_sum = np.log(-np.expm1(count * decay)) - np.log(-np.expm1(decay))
    log_sum = np.where(count * decay > -1e-9, np.log(count), log_sum)
    return np.where(count == 1, 0.0, log_sum + np.maximum(slope, 0) * (count - 1))


def _log_geometric_ball(slope: Any, count: int, on: Arithmetic) -> Any:
    """Return log of the sum of e^{slope i} over 0 <= i < count as a ball."""
    if count == 1:
        return on.number(0)
    if slope > 0 or slope < 0:
        # (e^{slope count} - 1) / (e^{slope} - 1), with the larger power taken out
        decay = -abs(slope)
        top = slope * (count - 1) if slope > 0 else slope * 0
        return ((-(decay * count).expm1()) / (-decay.expm1())).log() + top
    # a ball around 0: every term is at most the largest
    return on.log(on.number(count)) + abs(slope) * (count - 1)
