"""The sum of eq. (9) at large orders, or its largest term, from few coefficients.

It is certified, unlike the paper's two-ended search (E-15).

In a block s <= j < t: log c_j is convex, so at most its chord from s to t; log C(a, j) is concave, so at most the line
through two neighbours; what is left is a geometric sum, the largest term of which is at one of its ends. Blocks that matter are
split until splitting no longer pays, down to single terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import UPPER
from cumulant.numerics.logspace import log_binomial, log_geometric


@dataclass(frozen=True, slots=True)
class BlockSettings:
    """Tuning constants of the blocks.

    Every choice of blocks is a bound, so validity does not depend on them.
    """

    head: int = 16
    """Terms up to this j are blocks of their own."""

    first_blocks: int = 48
    """Blocks of the first division."""

    parts: int = 4
    """Parts into which a block that matters is divided."""

    most_nodes: int = 2**14
    """Blocks at most; a bound of time."""

    orders: int = 256
    """Orders that are planned side by side; a bound of memory, about 10 MB."""


SETTINGS = BlockSettings()
"""The settings in force; a test may replace them."""

SHARP_UP_TO = 2**17
"""Up to this order the bound is the sum itself to 13 digits; above, to 7, which takes O(log a) coefficients."""


Coefficient = Callable[[Array, Arithmetic], Array]
Coefficients = Sequence[Coefficient]


@dataclass(frozen=True, slots=True)
class _Whole:
    """The quantity asked for: the sum of terms or their largest.

    It knows how to bound a geometric block, and how blocks are put together.
    """

    of_block: Callable[[Array, Array, Arithmetic], Array]
    of_blocks: Callable[[Array, Arithmetic], Scalar]


def _log_largest(slope: Array, count: Array, on: Arithmetic) -> Array:
    """log of the largest e^{slope i} over 0 <= i < count: the first or the last."""
    return np.where(count == 1, on.number(0), on.maximum(slope, on.number(0)) * (count - 1))


_SUM = _Whole(log_geometric, lambda shares, on: on.log_sum_exp(shares))
"""The sum of all terms."""

_LARGEST = _Whole(_log_largest, lambda shares, on: reduce(on.maximum, shares))
"""The largest term."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Blocks [node, next node), in floats: the best bound of each, and its share of the sum.

    The last block is one node.
    """

    nodes: Array
    coefficient: Array
    upward: Array
    log_share: Array
    log_total: float


def log_block_sum(
    order: int, rate: Fraction, coefficients: Coefficients, on: Arithmetic = FLOATS, estimated: bool = False
) -> Scalar:
    """Return an upper bound of log sum_{j=2}^{order} C(order, j) g^j min_i c_i(j).

    Each c_i is log-convex, and order > 64.

    The blocks are a plan found in floats; balls follow it. Only coefficients that matter become balls, the others are upper
    bounds in floats: a chord of upper bounds lies above the chord. For `estimated` ones there is none that is proved.
    """
    return _log_whole(_SUM, order, rate, coefficients, on, estimated)


def log_block_sums(orders: Sequence[int], rate: Fraction, coefficients: Coefficients) -> list[float]:
    """Return `log_block_sum` of each order in floats; many orders at once take far less time than one by one."""
    return _log_totals(_SUM, orders, rate, coefficients)


def log_block_largest(
    order: int, rate: Fraction, coefficients: Coefficients, on: Arithmetic = FLOATS, estimated: bool = False
) -> Scalar:
    """Return an upper bound of log max_j C(order, j) g^j min_i c_i(j).

    Every term is looked at, if only as one of a block.
    """
    return _log_whole(_LARGEST, order, rate, coefficients, on, estimated)


def log_block_maxima(orders: Sequence[int], rate: Fraction, coefficients: Coefficients) -> list[float]:
    """Return `log_block_largest` of each order in floats."""
    return _log_totals(_LARGEST, orders, rate, coefficients)


def _log_totals(whole: _Whole, orders: Sequence[int], rate: Fraction, coefficients: Coefficients) -> list[float]:
    chunks = [orders[i : i + SETTINGS.orders] for i in range(0, len(orders), SETTINGS.orders)]
    return [plan.log_total for chunk in chunks for plan in _planned(whole, chunk, float(rate), coefficients)]


def _log_whole(
    whole: _Whole, order: int, rate: Fraction, coefficients: Coefficients, on: Arithmetic, estimated: bool
) -> Scalar:
    """Return log of the whole sum at one order, in floats or from blocks in balls."""
    plan = _planned(whole, [order], float(rate), coefficients)[0]
    if not on.exact:
        return plan.log_total
    nodes = np.array([int(node) for node in plan.nodes], dtype=object)
    bits = on.precision() // 2 + 16 if on is BALLS and not estimated else math.inf
    matters = plan.log_share >= plan.log_total - bits * math.log(2)
    log_c = np.empty((2, nodes.size), dtype=object)
    for i, coefficient in enumerate(coefficients):
        mine = plan.coefficient == i
        log_c[:, mine] = _ends(_followed(coefficient, nodes, _at_ends(mine), _at_ends(mine & matters), on))[:, mine]
    shares, log_rate = np.empty(nodes.size, dtype=object), on.log(on.number(rate))
    for upward in (True, False):
        some = plan.upward == upward
        shares[some] = _log_shares(_blocks(nodes)[:, some], log_c[:, some], order, log_rate, upward, on, whole)
    return whole.of_blocks(shares, on)


def _followed(coefficient: Coefficient, nodes: Array, used: Array, near: Array, on: Arithmetic) -> Array:
    """Return log c at the nodes that are used: balls near what matters, floats elsewhere.

    The floats are above it; they also serve where balls are costly.
    """
    value = np.full(nodes.size, on.number(math.nan))
    if near.any():
        value[near] = coefficient(nodes[near], on)
    far = np.array([use and ball.is_nan() for use, ball in zip(used, value, strict=True)], dtype=bool)
    if far.any():
        with np.errstate(all="ignore"):
            upper = coefficient(nodes[far].astype(np.float64), UPPER).upper()
        value[far] = [on.number(each) for each in upper.tolist()]
    return value


def _planned(whole: _Whole, orders: Sequence[int], rate: float, coefficients: Coefficients) -> list[_Plan]:
    """Return the plan of each order.

    Orders are planned side by side: the blocks of one are so few that calls would cost more than what they compute.
    """
    log_rate, plans = math.log(rate), dict[int, _Plan]()
    first, sizes = [_first_nodes(order) for order in orders], np.array(orders, dtype=np.float64)
    nodes, of = np.concatenate(first), np.repeat(np.arange(len(orders)), [each.size for each in first])
    with np.errstate(all="ignore"):
        log_c = _log_coefficients(nodes, coefficients)
        while True:
            last = np.append(np.flatnonzero(np.diff(of)), of.size - 1)
            blocks, ends = _blocks(nodes, last), _ends(log_c, last)
            coefficient, upward, share = _choose_blocks(blocks, ends, sizes[of], log_rate, whole)
            floors = np.full(len(orders), np.inf)
            for i, start, end in zip(of[last].tolist(), [0, *(last + 1).tolist()], (last + 1).tolist(), strict=False):
                total = float(whole.of_blocks(share[start:end], FLOATS))
                before = plans[i].log_total if i in plans else math.inf
                part = nodes[start:end], coefficient[start:end], upward[start:end], share[start:end]
                plans[i] = _Plan(*part, total)
                tolerance = 1e-13 if orders[i] <= SHARP_UP_TO else 1e-7
                # K = log(1 + e^total): what counts is the error of total, relative to K once K is large
                if end - start < SETTINGS.most_nodes and not before - total < tolerance * max(1.0, total):
                    floors[i] = total + math.log(tolerance / (end - start))
            after, new = _splits(blocks, share > floors[of])
            if not new.size:
                return [plans[i] for i in range(len(orders))]
            # an order that is not split any more leaves; new nodes stand behind the start of the block that they split
            going = np.isin(of, of[after])
            place, new_c = np.cumsum(going)[after], _log_coefficients(new, coefficients)
            nodes, of = np.insert(nodes[going], place, new), np.insert(of[going], place, of[after])
            log_c = np.insert(log_c[:, going], place, new_c, axis=1)


def _first_nodes(order: int) -> Array:
    """Return the nodes of the first division: all small ones, then a geometric sequence."""
    far = np.floor(np.geomspace(SETTINGS.head, order, SETTINGS.first_blocks))
    nodes = np.concatenate([np.arange(2.0, SETTINGS.head + 1), far])
    return nodes[np.append(True, nodes[1:] > nodes[:-1])]


def _log_coefficients(nodes: Array, coefficients: Coefficients) -> Array:
    """Return a row of log c at these nodes for each coefficient; a node that several orders share is asked for once."""
    j, place = np.unique(nodes, return_inverse=True)
    return np.array([coefficient(j, FLOATS) for coefficient in coefficients])[:, place]


def _splits(blocks: Array, matters: Array) -> tuple[Array, Array]:
    """Return the nodes that divide each block that matters into parts, and which block each of them divides."""
    which = np.flatnonzero((blocks[1] - blocks[0] > 1) & matters)
    start, end = blocks[:, which, None]
    nodes = np.floor(start + (end - start) * np.arange(1, SETTINGS.parts) / SETTINGS.parts)
    new = nodes > np.concatenate([start, nodes[:, :-1]], axis=1)
    return which[np.nonzero(new)[0]], nodes[new]


def _choose_blocks(
    blocks: Array, ends: Array, order: Array, log_rate: float, whole: _Whole
) -> tuple[Array, Array, Array]:
    """Return the best coefficient and direction for each block, and its share."""
    upward, downward = (_log_shares(blocks, ends, order, log_rate, up, FLOATS, whole) for up in (True, False))
    shares = FLOATS.known(np.concatenate([upward, downward]))
    best, count = np.argmin(shares, axis=0), len(upward)
    return best % count, best < count, np.min(shares, axis=0)


def _log_shares(
    blocks: Array, log_c: Array, order: int | Array, log_rate: Scalar, upward: bool, on: Arithmetic, whole: _Whole
) -> Array:
    """Return a bound of the whole over each block start <= j < end.

    It goes upward from the first term of a block, or downward from its last.
    """
    (start, end), (first, beyond) = blocks, log_c
    count = end - start
    chord = (beyond - first) / count
    slope = chord + log_rate
    # C(a, j+1) / C(a, j) = (a-j) / (j+1) falls with j, so a line through two neighbours lies above
    if upward:
        rise = slope + on.log(on.asarray(order - start) / (start + 1))
        return first + start * log_rate + log_binomial(order, start, on) + whole.of_block(rise, count, on)
    last = end - 1
    fall = -slope - on.log(on.asarray(order - last + 1) / last)
    # the chord at the last term; a block of one term is that term itself
    height = np.where(count == 1, first, beyond - chord)
    return height + last * log_rate + log_binomial(order, last, on) + whole.of_block(fall, count, on)


_LAST = slice(-1, None)
"""The last block of a single order."""


def _blocks(nodes: Array, last: Any = _LAST) -> Array:
    """Return the starts and the ends of the blocks; the last one of each order is a single node."""
    end = np.append(nodes[1:], nodes[-1:])
    end[last] = nodes[last] + 1
    return np.array([nodes, end])


def _ends(values: Array, last: Any = _LAST) -> Array:
    """Return the values at the start and the end of each block, from values at nodes."""
    end = np.concatenate([values[..., 1:], values[..., -1:]], axis=-1)
    end[..., last] = values[..., last]
    return np.array([values, end])


def _at_ends(blocks: Array) -> Array:
    """Return which nodes are an end of one of these blocks."""
    return blocks | np.append(False, blocks[:-1])
