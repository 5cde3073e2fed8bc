"""Bounds of attacks from a Rényi curve, at the order that gives most.

An attack turns the output into one bit, which is post-processing. So the bits of false positive rate x and true positive rate
y >= x satisfy D_a(y || x) <= eps(a) and D_a(x || y) <= eps(a) at every order a in [1, inf), where D_a is the Rényi divergence
of two coins: a curve covers both orders of the pair. Both divergences grow with y, so a y at which one of them exceeds eps(a)
is more than any attack reaches, whatever the order; orders are searched in floats, and the excess is shown in enclosures.

Exchanging the outcomes of both coins gives D_a(x || y) = D_a(1-x || 1-y), so the second divergence at (x, y) is the first one
at the reflected point (1-y, 1-x).

With slack s the pair is a mixture: x = (1-s) x' + s x'', and y alike, where only (x', y') obey the curve. As x' <= x / (1-s),
y is at most s + (1-s) times the bound at x / (1-s).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from cumulant.conversion import tradeoff
from cumulant.curves.closed_form import response_cgf, response_kl
from cumulant.curves.curve import Curve
from cumulant.curves.interpolation import chebyshev_curve
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import rounded_up
from cumulant.numerics.search import SCAN, bisect_rows

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class AttackSettings:
    """Tuning constants of the search for the best order.

    The number is shown in balls, so validity does not depend on them.
    """

    last_order: float = 2.0**50
    """Largest order that is tried; order - 1 is exact up to it."""

    coarse_halvings: int = 24
    """Halvings of the bracket of a root to choose among orders."""

    close_halvings: int = 32
    """Halvings of the bracket of a root among orders close to the best."""

    fine_halvings: int = 64
    """Halvings of the bracket of a root to settle on a number."""

    smallest: float = 1e-300
    """Lower end of the bracket of a root; near the least float."""

    largest_loss: float = 1e6
    """Upper end of the bracket of the log-odds (nats)."""

    rounds: int = 12
    """Divisions of the orders around the best."""

    reach: float = 0.1
    """Lower end of the bracket of a root beside the best one, as a part of it."""

    narrow: float = 1e-3
    """Width of an interval of log orders from which on a division has to pay."""

    paid: float = 1e-9
    """Relative gain of a division that pays."""

    worth: float = 1e-6
    """Relative gain for which orders further out are tried; infinity is a candidate anyway."""


SETTINGS = AttackSettings()
"""The settings in force; a test may replace them."""

PARTS = np.arange(9) / 8
"""The points at which an interval of orders is divided."""

_OVERFLOW = 600.0
"""Past it e^x is left to logarithms."""

_STEPS = (1e-13, 1e-12, 1e-11, 1e-9, 1e-6, 1e-3, 0.1)
"""Relative amounts by which a root in floats is moved up until the divergence there is shown to be too large."""

_FLOORS = (0.0, 1e-140)
"""From where on it is moved: the divergence of smaller ones is below all floats."""


def curve_true_positive_rate(curve: Curve, fpr: Sequence[Fraction]) -> Floats:
    """Return the true positive rate that no attack exceeds at each false positive rate.

    False positive rates lie in [0, 1]; the result is rounded up.

    >>> from cumulant.curves.closed_form import Concentrated
    >>> curve_true_positive_rate(
    ...     Concentrated(Fraction(1, 2)), [Fraction(0), Fraction(1, 100)]
    ... )  # of Gaussian noise 0.0924
    array([0.        , 0.12458915])
    """
    slack = curve.slack()
    if slack >= 1:
        return np.ones(len(fpr))
    # the bound grows with the rate, so a larger one will do
    inner = np.array([rounded_up(min(rate / (1 - slack), Fraction(1))) for rate in fpr])
    bound = np.ones(inner.shape)
    asked, pure = (inner > 0) & (inner < 1), _pure(curve)
    if asked.any():
        bound[asked] = _true_positive_rate(curve, inner[asked])
    if pure < np.inf:
        bound = np.minimum(bound, tradeoff.true_positive_rate(map(Fraction, inner), [Fraction(pure)], [0]))
    if (inner == 0).any() and np.isfinite(curve.rdp(np.append(1.0, 1 + SCAN))).any():
        bound[inner == 0] = 0.0  # what never happens to one never happens to the other
    whole = BOUNDED.number(slack) + BOUNDED.number(1 - slack) * bound if slack else Enclosure(bound)
    return np.asarray(np.minimum(whole.upper(), 1.0), dtype=np.float64)


def curve_advantage(curve: Curve) -> float:
    """The largest difference of true and false positive rate, rounded up.

    Both conditions together are symmetric under the reflection, and at each order they describe a convex set: KL and, for
    a > 1, e^{(a-1) D_a} are jointly convex. Halfway between a point and its reflection y - x is the same and x + y = 1. So
    the largest advantage is that of randomized response: tanh(e0/2), at the log-odds e0 whose divergence is eps(a).

    >>> from cumulant.curves.closed_form import Concentrated
    >>> round(curve_advantage(Concentrated(Fraction(1, 2))), 4)  # of Gaussian noise 0.3829
    0.4791
    """
    slack, (loss, _) = curve.slack(), _log_odds(curve)
    if slack >= 1 or not loss < np.inf:
        return 1.0
    advantage = BOUNDED.number(slack) + BOUNDED.number(1 - slack) * BOUNDED.tanh(BOUNDED.asarray([loss]) / 2)
    return min(float(advantage.upper()[0]), 1.0)


def _log_odds(curve: Curve) -> tuple[float, float]:
    """Return the least log-odds whose divergence exceeds the curve, and the order.

    They are at most the pure bound, whose order is infinity.
    """

    def divergence(loss: Any, order: Array, on: Arithmetic) -> Any:
        lam = np.where(order > 1, order - 1, 1.0)
        return np.where(order > 1, response_cgf(loss, lam, on) / lam, response_kl(loss, on))

    def above(loss: Array, order: Array, most: Array) -> Array:
        return divergence(loss, order, FLOATS) > most

    ends = np.array([SETTINGS.largest_loss])
    order = _best_orders(curve, ends, above)
    most = curve.rdp(order, BOUNDED).upper()
    start = _root(ends, order, most, above, SETTINGS.fine_halvings)
    loss = float(_shown(start, most, lambda x: divergence(BOUNDED.asarray(x), order, BOUNDED))[0])
    pure = _pure(curve)
    return (pure, math.inf) if pure <= loss else (loss, float(order[0]))


def distance_is_at_most(curve: Curve, delta: Fraction, bits: int) -> bool:
    """True if the curve is shown, in balls at one order, to leave no more than this distance.

    See `advantage`.
    """
    left, order = curve.left(delta), _log_odds(curve)[1]
    if left <= 0:
        return False
    with BALLS.at(bits):
        loss = 2 * BALLS.number(left).atanh()
        if math.isinf(order):
            return bool(curve.pure(BALLS) <= loss)
        if order == 1:
            return bool(curve.kl(BALLS) <= response_kl(loss, BALLS))
        lam = np.array([Fraction(order) - 1], dtype=object)
        return bool(curve._cgf(lam, BALLS)[0] <= response_cgf(loss, lam, BALLS)[0])


def total_variation(curve: Curve, below: float) -> float:
    """Return the advantage if it can be less than `below`; else 1.

    The advantage bounds delta at every epsilon.

    The divergence of randomized response with log-odds e0 is at most min(e0, a e0^2 / 2), so that no order a says less than
    tanh(e0/2) at the larger of eps(a) and sqrt(2 eps(a) / a).

    >>> from cumulant.curves.closed_form import Concentrated
    >>> total_variation(Concentrated(Fraction(1, 10**13)), 1e-6), total_variation(Concentrated(Fraction(1)), 0.01)
    (2.2361e-07, 1.0)
    """
    orders = np.append(1.0, 1 + SCAN)
    with np.errstate(all="ignore"):
        divergence = curve.rdp(orders)
        loss = np.append(np.maximum(divergence, np.sqrt(2 * divergence / orders)), curve.pure())
    return curve_advantage(curve) if np.nanmin(np.tanh(loss / 2)) < below else 1.0


def _true_positive_rate(curve: Curve, rates: Array) -> Array:
    """Return the true positive rate without slack, at exact floats in (0, 1)."""

    def above(more: Array, order: Array, most: Array) -> Array:
        return ~(divergence(rates[:, None] if more.ndim > 1 else rates, more, order, FLOATS) <= most)

    order = _best_orders(curve, 1 - rates, above)
    most = curve.rdp(order, BOUNDED).upper()
    start = _root(1 - rates, order, most, above, SETTINGS.fine_halvings)
    more = _shown(start, most, lambda h: divergence(BOUNDED.asarray(rates), BOUNDED.asarray(h), order, BOUNDED))
    whole = (BOUNDED.asarray(rates) + BOUNDED.asarray(np.minimum(more, 1.0))).upper()
    return np.minimum(np.where(more == 0, rates, whole), 1.0)


def _pure(curve: Curve) -> float:
    with np.errstate(all="ignore"):
        return float(curve.at_infinity(BOUNDED).upper())


def divergence(x: Any, more: Any, order: Array, on: Arithmetic) -> Any:
    """Return the Rényi divergence of a coin of probability x + more against one of x.

    Orders are finite, from 1 on. The pair after reflection counts if its divergence is larger; NaN past 1.

    With u = log(p/q), E_p[e^-u] = 1 makes it log(1 + lambda E_p[excess(lambda u) / lambda + excess(-u)]) / lambda: all terms
    are positive, and lambda = 0 is the KL divergence.
    """
    rest = (1 - x) - more
    low = np.where(x < rest, x, rest)  # the larger divergence is that with the smaller denominator
    high, other = low + more, 1 - low
    left = other - more
    lam = np.where(order > 1, order - 1, 1.0)
    with np.errstate(all="ignore"):
        up = np.where(more < low, on.log1p(more / low), on.log(high) - on.log(low))
        down = on.log1p(-more / other)
        steps = lam * up, lam * down, -up, -down
        # the search asks for a few numbers thousands of times: one call for all four costs as much as for one
        bent = on.excess(np.array(np.broadcast_arrays(*steps))) if on is FLOATS else [on.excess(each) for each in steps]
        tilted = high * bent[0] + left * bent[1]
        drift = high * bent[2] + left * bent[3]
        near = on.log1p(tilted + lam * drift) / lam
        top = on.log(high) + lam * up
        far = (top + on.log1p_exp(on.log(left) + lam * down - top)) / lam
        found = np.where(lam * up < _OVERFLOW, near, far)
        return np.where(order > 1, found, drift)


def _best_orders(curve: Curve, ends: Array, above: Callable[..., Array]) -> Array:
    """Return for each row the order in [1, 2^50] whose root is least; floats search.

    above(x, order, most) says whether the divergence at x is more than `most`; roots lie between 0 and the row's end.
    """
    if curve.estimated:  # integrals of a user's densities cost most; any order that the search proposes gives a bound
        curve = chebyshev_curve(curve) or curve
    orders, value, before = np.append(1.0, 1 + SCAN), np.empty((ends.size, 0)), np.inf
    while True:
        new = orders[value.shape[1] :]
        value = np.append(
            value, _root(ends[:, None], new[None, :], curve.rdp(new)[None, :], above, SETTINGS.coarse_halvings), axis=1
        )
        best, least = np.argmin(value, axis=1), np.min(value, axis=1)
        if (
            orders[-1] >= SETTINGS.last_order
            or ((best < orders.size - 3) | (least > (1 - SETTINGS.worth) * before)).all()
        ):
            break
        orders, before = np.append(orders, 1 + (orders[-1] - 1) * np.array([2.0, 4.0, 8.0, 16.0])), least
    left, right = (np.log(np.maximum(orders[np.clip(best + i, 0, orders.size - 1)] - 1, SCAN[0])) for i in (-1, 1))
    found = orders[best]
    for _ in range(SETTINGS.rounds):
        lam = left[:, None] + (right - left)[:, None] * PARTS
        tried = np.append(found[:, None], 1 + np.exp(lam), axis=1)  # of equal ones the first stays
        most = curve.rdp(tried.ravel()).reshape(tried.shape)
        ceiling = np.broadcast_to(least[:, None] * (1 + SETTINGS.paid), tried.shape)  # what lies above does not matter
        value = bisect_rows(
            partial(above, order=tried, most=most), ceiling * SETTINGS.reach, ceiling, SETTINGS.close_halvings
        )
        here, before = np.argmin(value, axis=1)[:, None], least
        found, least = (np.take_along_axis(each, here, axis=1)[:, 0] for each in (tried, value))
        step, centre = (right - left) / 8, np.log(np.maximum(found - 1, SCAN[0]))
        left, right = np.maximum(centre - step, left), np.minimum(centre + step, right)
        if (least >= (1 - SETTINGS.paid) * before).all() and (right - left < SETTINGS.narrow).all():
            break
    return found


def _root(ends: Array, order: Array, most: Array, above: Callable[..., Array], halvings: int) -> Array:
    """Return where the divergence at these orders reaches `most`; the end where it does not.

    The precision is relative.
    """
    high = np.log(np.broadcast_to(ends, np.broadcast_shapes(ends.shape, most.shape)))
    low = np.full(high.shape, np.log(SETTINGS.smallest))
    return np.exp(bisect_rows(lambda x: above(np.exp(x), order, most), low, high, halvings))


def _shown(start: Array, most: Array, divergence: Callable[[Array], Enclosure]) -> Array:
    """Return the least number from the start on whose divergence is shown to be too large.

    A few numbers are tried; otherwise it is +inf.
    """
    found = np.full(start.shape, np.inf)
    for least, step in product(_FLOORS, _STEPS):
        moved = np.maximum(start, least) * (1 + step)
        with np.errstate(all="ignore"):
            lower = divergence(moved).lower()
        found = np.where(np.isinf(found) & np.isfinite(lower) & (lower > most), moved, found)
    return np.where(most == 0, 0.0, found)
