"""Many questions at once: floats search, enclosures answer.

The ends of an enclosure hold whatever the rounding was.

Where an enclosure is wider than 1e-12 of its value (numbers that cancel, such as an epsilon close to 0) a few points are
evaluated in balls instead; the others keep their wider enclosure, which holds as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.conversion import certify, envelope
from cumulant.conversion import order_search as orders
from cumulant.conversion.certify import Certificate
from cumulant.conversion.conversions import Conversion
from cumulant.conversion.order_search import Minimum
from cumulant.curves.curve import Curve, compose
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import at_least, rounded_down

Floats = np.ndarray[Any, np.dtype[np.float64]]

WIDTH = 1e-12
"""Relative excess of an array's number over its formula's value beyond which balls are asked."""

MOST_BALLS = 16
"""Points of an array that are evaluated in balls if their enclosures are wide; a bound of time (docs/rounding.md)."""


def rdp(curve: Curve, orders: Array, upper: bool = True) -> Floats:
    """Return the Rényi divergence bound at orders in [1, inf].

    These are upper ends, or lower ends of a lower bound.

    What may fail with a positive probability, whatever its curve says of the rest, has no finite divergence.
    """
    curve = curve.strict() if upper else curve
    if upper and curve.slack() > 0:
        return np.full(orders.shape, np.inf)
    found = curve.rdp(orders, BOUNDED)
    if not upper:
        return _least(found, lambda i: _rdp_ball(curve, orders[i]))
    value = _sharpened(found, lambda i: certify.certified(lambda: _rdp_ball(curve, orders[i])))
    if np.isfinite(value).all():
        return value
    with np.errstate(all="ignore"):
        # the divergence grows with the order
        return np.where(np.isinf(value), curve.at_infinity(BOUNDED).upper(), value)


def cgf(curve: Curve, lam: Array, upper: bool = True) -> Floats:
    """Return K at finite lam > 0: upper ends, or lower ends of a lower bound."""
    curve = curve.strict() if upper else curve
    if upper and curve.slack() > 0:
        return np.full(lam.shape, np.inf)
    found = curve.cgf(lam, BOUNDED)
    if not upper:
        return _least(found, lambda i: _cgf_ball(curve, Fraction(lam[i])))
    value = _sharpened(found, lambda i: certify.certified(lambda: _cgf_ball(curve, Fraction(lam[i]))))
    with np.errstate(all="ignore"):
        return np.where(np.isinf(value), (BOUNDED.asarray(lam) * curve.at_infinity(BOUNDED)).upper(), value)


def least_epsilons(curve: Curve, deltas: Sequence[Fraction], conversion: Conversion) -> Floats:
    """The least epsilon that the curve proves at each delta."""
    return _searched(
        curve,
        lambda searched: orders.best_epsilon(searched, deltas, conversion),
        lambda found: _epsilons(curve, deltas, conversion, found),
    )


def _searched(curve: Curve, search: Callable[[Curve], Minimum], answer: Callable[[Minimum], Floats]) -> Floats:
    """Return the answers at the best orders.

    If a search between remembered orders promised more than the curve keeps, it searches once more.
    """
    found = orders.located(curve, search)
    value = answer(found)
    return value if (value <= found.value * (1 + orders.EXPECTED)).all() else answer(search(curve))


def _epsilons(curve: Curve, deltas: Sequence[Fraction], conversion: Conversion, found: Minimum) -> Floats:
    value: Floats = found.value.copy()
    pure, asked = np.isinf(found.order), np.isfinite(found.order)
    with np.errstate(all="ignore"):
        value[pure & np.isfinite(value) & (value > 0)] = curve.at_infinity(BOUNDED).upper()
        if asked.any():
            lam, exact = found.order[asked] - 1, [deltas[i] for i in np.flatnonzero(asked).tolist()]

            def proved(i: int) -> Certificate:
                return certify.certified_epsilon(curve, Fraction(lam[i]) + 1, exact[i], conversion)

            value[asked] = _sharpened(enclosed_epsilon(curve, lam, exact, conversion), proved)
    return value


def enclosed_epsilon(curve: Curve, lam: Array, deltas: Sequence[Fraction], conversion: Conversion) -> Enclosure:
    """epsilon at each of these finite lam and its delta; it may be negative."""
    with np.errstate(all="ignore"):
        log_delta = BOUNDED.log(BOUNDED.asarray([curve.left(delta) for delta in deltas]))
        found: Enclosure = conversion.epsilon(BOUNDED.asarray(lam), curve.cgf(lam, BOUNDED), log_delta, BOUNDED)
        return found


def least_deltas(curve: Curve, epsilons: Sequence[Fraction], conversion: Conversion) -> Floats:
    """The least delta in [0, 1] that the curve proves at each epsilon, its slack included."""
    return _searched(
        curve,
        lambda searched: orders.best_delta(searched, epsilons, conversion, curve.estimated),
        lambda found: _deltas(curve, epsilons, conversion, found),
    )


def _deltas(curve: Curve, epsilons: Sequence[Fraction], conversion: Conversion, found: Minimum) -> Floats:
    value, asked = found.value.copy(), np.isfinite(found.order)
    if asked.any():
        lam, exact = found.order[asked] - 1, [epsilons[i] for i in np.flatnonzero(asked).tolist()]

        def proved(i: int) -> Certificate:
            return certify.certified_delta(curve, Fraction(lam[i]) + 1, exact[i], conversion)

        value[asked] = _sharpened(enclosed_delta(curve, lam, exact, conversion), proved)
    return np.asarray(np.minimum(value, 1.0))


def enclosed_delta(curve: Curve, lam: Array, epsilons: Sequence[Fraction], conversion: Conversion) -> Enclosure:
    """Return delta at each of these finite lam and its epsilon, the slack included.

    It may exceed 1.
    """
    with np.errstate(all="ignore"):
        asked = BOUNDED.asarray(epsilons)
        log_delta = conversion.log_delta(BOUNDED.asarray(lam), curve.cgf(lam, BOUNDED), asked, BOUNDED)
        slack = curve.slack()
        return BOUNDED.number(slack) + BOUNDED.number(1 - slack) * BOUNDED.exp(log_delta)


def epsilon_over(curve: Curve, counts: Sequence[int], asked: Fraction, conversion: Conversion) -> Floats:
    """The least epsilon proved for each number of repetitions of the curve, at one delta."""
    if curve.slack() > 0 and asked < 1:  # what is left of delta differs from count to count, so there are no lines
        return np.array([least_epsilons(compose([(curve, k)]), [asked], conversion)[0] for k in counts])
    if not counts or asked >= 1:
        return np.zeros(len(counts))
    times = BOUNDED.asarray(np.array(counts, dtype=np.float64 if max(counts) <= 2**53 else object))
    with np.errstate(all="ignore"):
        pure = times * curve.at_infinity(BOUNDED)
        if asked == 0:
            return _positive(pure.upper())
        lam, line = np.unique(envelope.orders(curve, times.mid, asked, conversion), return_inverse=True)
        exact_lam, log_delta = BOUNDED.asarray(lam), BOUNDED.log(BOUNDED.number(asked))
        slope = curve.cgf(lam, BOUNDED) / exact_lam
        height = conversion.epsilon(exact_lam, BOUNDED.number(0), log_delta, BOUNDED)
        value = BOUNDED.minimum(pure, slope[line] * times + height[line])

    def proved(i: int) -> Certificate:
        return certify.certified_epsilon(compose([(curve, counts[i])]), Fraction(lam[line[i]]) + 1, asked, conversion)

    return _sharpened(value, proved)


def _cgf_ball(curve: Curve, lam: Fraction) -> Scalar:
    return curve.cgf(np.array([lam], dtype=object), BALLS)[0]


def _rdp_ball(curve: Curve, order: float) -> Scalar:
    """K / lambda; at order 1 the KL divergence, at infinity the pure bound."""
    if order in (1.0, np.inf):
        return curve.kl(BALLS) if order == 1 else curve.pure(BALLS)
    lam = Fraction(order) - 1
    return _cgf_ball(curve, lam) / BALLS.number(lam)


def _least(found: Enclosure, ball: Callable[[int], Scalar]) -> Floats:
    """Return lower ends; an infinite enclosure may have overflowed, and a ball then answers."""
    lower = found.lower()
    for i in np.flatnonzero(lower == np.inf).tolist():
        try:
            with BALLS.at(certify.FIRST_BITS):
                value = ball(i)
                end = value.lower() if value.is_finite() else value
                lower[i] = np.inf if end == np.inf else rounded_down(-at_least(-end)) if end.is_finite() else 0.0
        except CertificateError:
            lower[i] = 0.0
    return _positive(lower)


def _sharpened(found: Enclosure, prove: Callable[[int], Certificate]) -> Floats:
    """Upper ends, from balls where the enclosure is wide and those are few."""
    upper = found.upper()
    with np.errstate(invalid="ignore"):
        narrow = upper - found.mid <= WIDTH * np.abs(found.mid)
        wide = np.flatnonzero(~narrow & (upper > 0) & (found.mid != np.inf))
    for i in wide[:MOST_BALLS] if wide.size <= MOST_BALLS else ():
        try:
            upper[i] = min(upper[i], prove(int(i)).value)
        except CertificateError:
            continue
    return _positive(upper)


def _positive(value: Array) -> Floats:
    """Return 0 for what is below 0: no divergence is."""
    return np.asarray(np.maximum(value, 0.0), dtype=np.float64)
