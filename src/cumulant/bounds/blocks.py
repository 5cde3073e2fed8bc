"""The sum of eq. (9) at large orders from few coefficients: certified, unlike the paper's two-ended search (E-15).

In a block s <= j < t: log c_j is convex, so at most its chord from s to t; log C(a, j) is concave, so at most its tangent;
what is left is a geometric sum. Blocks that matter are split until splitting no longer pays, down to single terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.logspace import log_binomial, log_geometric

_HEAD = 16
_FIRST_BLOCKS = 48
_PARTS = 4
_MOST_NODES = 2**14

EXACT_UP_TO = 2**17
"""Up to this order the bound is the sum itself to 13 digits; above, to 7, which takes O(log a) coefficients."""


Coefficients = Sequence[Callable[[Array, Arithmetic], Array]]


def log_block_sum(order: int, rate: Fraction, coefficients: Coefficients, on: Arithmetic = FLOATS) -> Scalar:
    """An upper bound of log sum_{j=2}^{order} C(order, j) g^j min_i c_i(j), each c_i log-convex, order > 64.

    The blocks are a plan found in floats; balls follow it.
    """
    total, nodes = _planned(order, float(rate), coefficients)
    if not on.exact:
        return total
    nodes = np.array([int(node) for node in nodes], dtype=object)
    log_c = np.array([coefficient(nodes, on) for coefficient in coefficients])
    return _bound(nodes, log_c, order, on.log(on.number(rate)), on)[0]


def _planned(order: int, rate: float, coefficients: Coefficients) -> tuple[float, Array]:
    """The bound in floats, and the nodes between which its blocks lie."""
    log_rate = math.log(rate)
    tolerance = 1e-13 if order <= EXACT_UP_TO else 1e-7
    nodes = np.unique(np.concatenate([np.arange(2.0, _HEAD + 1), np.floor(np.geomspace(_HEAD, order, _FIRST_BLOCKS))]))
    with np.errstate(all="ignore"):
        log_c = np.array([coefficient(nodes, FLOATS) for coefficient in coefficients])
        total, shares = _bound(nodes, log_c, order, log_rate, FLOATS)
        while nodes.size < _MOST_NODES:
            matter = (np.diff(nodes) > 1) & (shares[:-1] > total + math.log(tolerance / nodes.size))
            start, width = nodes[:-1][matter, None], np.diff(nodes)[matter, None]
            new = np.setdiff1d(np.floor(start + width * np.arange(1, _PARTS) / _PARTS), nodes)
            if not new.size:
                break
            place = np.argsort(np.concatenate([nodes, new]), kind="stable")
            new_c = np.array([coefficient(new, FLOATS) for coefficient in coefficients])
            nodes, log_c = np.concatenate([nodes, new])[place], np.concatenate([log_c, new_c], axis=1)[:, place]
            before = total
            total, shares = _bound(nodes, log_c, order, log_rate, FLOATS)
            # K = log(1 + e^total): what counts is the error of total, relative to K once K is large
            if before - total < tolerance * max(1.0, total):
                break
    return float(total), nodes


def _bound(nodes: Array, log_c: Array, order: int, log_rate: Scalar, on: Arithmetic) -> tuple[Scalar, Array]:
    """The bound with these nodes, and its share of each block [node, next node) and of the last node."""
    log_choose = log_binomial(order, nodes, on)
    # derivative of log C(a, j) in j
    tangent = on.digamma(order - nodes + 1) - on.digamma(nodes + 1) + log_rate
    term = log_c + nodes * log_rate + log_choose
    count = np.diff(nodes)
    slope = np.where(count > 1, np.diff(log_c) / count, 0)
    from_left = term[:, :-1] + log_geometric(slope + tangent[:-1], count, on)
    from_right = term[:, 1:] + log_geometric(-(slope + tangent[1:]), count + 1, on)  # from t down to s, so t is in it
    share = np.where(count == 1, term[:, :-1], on.minimum(from_left, from_right))
    share = np.append(on.known(share), term[:, -1:], axis=1)
    shares = share[0]
    for other in share[1:]:
        shares = on.minimum(shares, other)
    return on.log_sum_exp(shares), shares
