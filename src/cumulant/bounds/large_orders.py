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


def log_block_largest(
    order: int, rate: Fraction, coefficients: Coefficients, on: Arithmetic = FLOATS, estimated: bool = False
) -> Scalar:
    """Return an upper bound of log max_j C(order, j) g^j min_i c_i(j).

    Every term is looked at, if only as one of a block.
    """
    return _log_whole(_LARGEST, order, rate, coefficients, on, estimated)


def _log_whole(
    whole: _Whole, order: int, rate: Fraction, coefficients: Coefficients, on: Arithmetic, estimated: bool
) -> Scalar:
    plan = _planned(whole, order, float(rate), coefficients)
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


def _planned(whole: _Whole, order: int, rate: float, coefficients: Coefficients) -> _Plan:
    log_rate = math.log(rate)
    tolerance = 1e-13 if order <= SHARP_UP_TO else 1e-7
    nodes = np.unique(
        np.concatenate(
            [np.arange(2.0, SETTINGS.head + 1), np.floor(np.geomspace(SETTINGS.head, order, SETTINGS.first_blocks))]
        )
    )
    with np.errstate(all="ignore"):
        log_c = np.array([coefficient(nodes, FLOATS) for coefficient in coefficients])
        plan = _choose_blocks(nodes, log_c, order, log_rate, whole)
        while nodes.size < SETTINGS.most_nodes:
            matter = (np.diff(nodes) > 1) & (plan.log_share[:-1] > plan.log_total + math.log(tolerance / nodes.size))
            start, width = nodes[:-1][matter, None], np.diff(nodes)[matter, None]
            new = np.setdiff1d(np.floor(start + width * np.arange(1, SETTINGS.parts) / SETTINGS.parts), nodes)
            if not new.size:
                break
            place = np.argsort(np.concatenate([nodes, new]), kind="stable")
            new_c = np.array([coefficient(new, FLOATS) for coefficient in coefficients])
            nodes, log_c = np.concatenate([nodes, new])[place], np.concatenate([log_c, new_c], axis=1)[:, place]
            before, plan = plan.log_total, _choose_blocks(nodes, log_c, order, log_rate, whole)
            # K = log(1 + e^total): what counts is the error of total, relative to K once K is large
            if before - plan.log_total < tolerance * max(1.0, plan.log_total):
                break
    return plan


def _choose_blocks(nodes: Array, log_c: Array, order: int, log_rate: float, whole: _Whole) -> _Plan:
    """The best coefficient and direction for each block between these nodes."""
    ends = _blocks(nodes), _ends(log_c)
    upward, downward = (_log_shares(*ends, order, log_rate, up, FLOATS, whole) for up in (True, False))
    shares = FLOATS.known(np.concatenate([upward, downward]))
    best = np.argmin(shares, axis=0)
    least = np.min(shares, axis=0)
    return _Plan(nodes, best % len(log_c), best < len(log_c), least, float(whole.of_blocks(least, FLOATS)))


def _log_shares(
    blocks: Array, log_c: Array, order: int, log_rate: Scalar, upward: bool, on: Arithmetic, whole: _Whole
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


def _blocks(nodes: Array) -> Array:
    """Return the starts and the ends of the blocks."""
    return np.array([nodes, np.append(nodes[1:], nodes[-1] + 1)])


def _ends(values: Array) -> Array:
    """Return the values at the start and the end of each block, from values at nodes."""
    return np.array([values, np.concatenate([values[..., 1:], values[..., -1:]], axis=-1)])


def _at_ends(blocks: Array) -> Array:
    """Return which nodes are an end of one of these blocks."""
    return blocks | np.append(False, blocks[:-1])
