"""Eq. (3) and (4): search for the best order of a curve for a delta or epsilon (E-14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.conversion.certify import is_pure
from cumulant.conversion.conversions import Conversion
from cumulant.curves.curve import Curve
from cumulant.curves.interpolation import chebyshev_curve
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.rounding import FEW, rounded_down, rounded_up
from cumulant.numerics.search import least

EXPECTED = 1e-10
"""Relative amount by which a number may be above what a search between remembered orders has promised."""

LEAST_FLOAT = 5e-324
"""The least positive float: a delta that underflows is not pure DP."""

_UNSEEN = -760.0
"""log of a delta far below the smallest float: orders that go lower need not be looked for, and cost minutes to certify."""

_LARGEST_EPSILON = 2.0**512
"""Epsilon beyond which a search asks no farther; derived: times an order of its scan it stays a float, and delta falls."""

_AT_ONCE = 64
"""Questions of one search: its memory grows with their square; measured: fewer make the search slower, more do not help."""

_GAIN_BEYOND = 1e-10
"""Relative gain for which a search is widened; measured: with 1e-6 a delta alone got 3e-8 more than among others."""

_FARTHEST_FUNCTION = 2.0**52
"""A user's function is not asked farther out: order + 1 is order there, and its squares may be no floats."""


@dataclass(frozen=True, slots=True)
class Minimum:
    """One value for each question and the order that gave it; order inf is the pure bound."""

    value: Array
    order: Array


def located(curve: Curve, search: Callable[[Curve], Minimum]) -> Minimum:
    """Return what the search finds, between remembered orders if the curve has them.

    The table of remembered values is refined where the search ends, until nothing is open there.
    """
    table = chebyshev_curve(curve)
    if table is None:
        return search(curve)
    while True:
        found = search(table)
        settled = [table.settled(order - 1) for order in found.order.tolist()]
        if all(settled):
            return found


def _in_blocks(search: Callable[[Sequence[Fraction]], Minimum], asked: Sequence[Fraction]) -> Minimum:
    """Search for few questions at a time.

    All questions of a block look at the orders that any of them refines.
    """
    found = [search(asked[i : i + _AT_ONCE]) for i in range(0, len(asked), _AT_ONCE)]
    return Minimum(np.concatenate([each.value for each in found]), np.concatenate([each.order for each in found]))


def best_epsilon(curve: Curve, deltas: Sequence[Fraction], conversion: Conversion) -> Minimum:
    """Return the least epsilon >= 0 that the curve proves at each delta in [0, 1].

    It is +inf where the slack is too much.
    """
    if len(deltas) > _AT_ONCE:
        return _in_blocks(lambda some: best_epsilon(curve, some, conversion), deltas)
    pure = float(curve.pure())
    certain = np.array([delta >= 1 for delta in deltas], dtype=bool)
    left = np.array([rounded_down(curve.left(delta)) for delta in deltas])  # the sign is that of the exact number
    value = np.where(left >= 0, pure, np.inf)
    order = np.full(left.shape, np.inf)
    asked = (left > 0) & ~certain & (value > 0)  # nothing is less than none
    if asked.any():
        log_delta = np.log(left[asked])[:, None]

        def objective(lam: Array) -> Array:
            return conversion.epsilon(lam, curve.cgf(lam), log_delta, FLOATS)

        with np.errstate(all="ignore"):
            found = least(objective, curve.integral, nothing_beyond(curve, conversion, log_delta[:, 0]))
        wins = found.value < value[asked]
        value[asked] = np.where(wins, np.maximum(found.value, 0.0), value[asked])
        order[asked] = np.where(wins, found.where + 1, np.inf)
    value[certain] = 0.0
    return Minimum(value, order)


def nothing_beyond(
    curve: Curve, conversion: Conversion, log_delta: Array, times: Array | float = 1.0
) -> Callable[[float, Array], bool]:
    """Return a test that says when to stop widening a search for epsilon.

    Infinity is a candidate anyway.

    The Rényi divergence grows with the order. What a conversion adds to it is least at order 1/delta and grows beyond, where
    it is negative at all: with (a - 1) log(1 - 1/a) >= -1 that of CKS is at least -(1 + log(a delta)) / (a - 1).
    """

    def enough(lam: float, best: Array) -> bool:
        if curve.estimated and lam >= _FARTHEST_FUNCTION:
            return True
        reached = times * curve.cgf(np.array([lam])) / lam
        added = np.minimum(conversion.epsilon(np.maximum(lam, np.exp(-log_delta)), 0.0, log_delta, FLOATS), 0.0)
        return bool((np.fmin(best, times * curve.pure()) <= (1 + _GAIN_BEYOND) * (reached + added)).all())

    return enough


def best_delta(curve: Curve, epsilons: Sequence[Fraction], conversion: Conversion, estimated: bool = False) -> Minimum:
    """The least delta in [0, 1] that the curve proves at each epsilon >= 0, its slack included."""
    if len(epsilons) > _AT_ONCE:
        return _in_blocks(lambda some: best_delta(curve, some, conversion, estimated), epsilons)
    slack, epsilon = rounded_up(curve.slack()), np.array([rounded_down(each) for each in epsilons])
    near = epsilon >= float(curve.pure()) * (1 - 1e-9)
    value = np.where(near, 0.0, 1.0)
    if not estimated:  # delta = 0 is claimed of no epsilon below the pure one, however close
        value[near] = [0.0 if is_pure(curve, epsilons[i]) else 1.0 for i in np.flatnonzero(near).tolist()]
    order = np.full(epsilon.shape, np.inf)
    asked = value > 0
    if asked.any():
        column = np.minimum(epsilon[asked], _LARGEST_EPSILON)[:, None]

        def objective(lam: Array) -> Array:
            # a difference of far larger numbers must exceed their rounding
            cgf = curve.cgf(lam)
            rounding = FEW * (np.abs(cgf) + lam * column)
            return np.maximum(conversion.log_delta(lam, cgf, column, FLOATS) + rounding, _UNSEEN)

        def underflows(lam: float, best: Array) -> bool:
            return (curve.estimated and lam >= _FARTHEST_FUNCTION) or bool((best <= _UNSEEN).all())

        with np.errstate(all="ignore"):
            found = least(objective, curve.integral, underflows, _UNSEEN)
        value[asked] = np.maximum(np.exp(np.minimum(found.value, 0.0)), LEAST_FLOAT)  # an underflow is not pure DP
        order[asked] = found.where + 1
    return Minimum(np.where(value < 1, np.minimum(slack + (1 - slack) * value, 1.0), 1.0), order)
