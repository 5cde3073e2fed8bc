"""One scalar question: floats find the order, balls prove the number, which is rounded up.

Where balls give out, the enclosure in floats is the answer; where that says nothing either, nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from cumulant.conversion import array_answers, certify, order_search
from cumulant.conversion.certify import Certificate
from cumulant.conversion.conversions import Conversion
from cumulant.conversion.order_search import Minimum
from cumulant.conversion.query import Answer
from cumulant.curves.curve import Curve
from cumulant.curves.user_function import NotABall
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import outward


def proved_epsilon(
    curve: Curve, delta: Fraction, conversion: Conversion, estimated: bool = False, below: float = math.inf
) -> Answer:
    """Return the least epsilon that the curve proves at this exact delta.

    It is infinite if floats say that it is not `below` this.
    """

    def at(value: float, order: float) -> Answer:
        if value >= below:
            return Answer(math.inf, order, "estimated" if estimated else "proved")
        if delta >= 1 or math.isinf(value):
            return Answer(value, order, "estimated" if estimated else "proved")
        return _answered(
            value,
            order,
            estimated,
            lambda exact: certify.certified_epsilon(curve, exact, delta, conversion),
            lambda lam: (
                array_answers.enclosed_epsilon(curve, lam, [delta], conversion)
                if lam[0] < math.inf
                else _enclosed_pure(curve)
            ),
        )

    found = _searched(curve, lambda searched: order_search.best_epsilon(searched, [delta], conversion), below, at)
    pure = float(curve.pure())
    if pure < min(found.value, below) and curve.slack() <= delta:  # what no finite order proved, order infinity may
        return at(pure, math.inf)
    return found


def proved_delta(
    curve: Curve, epsilon: Fraction, conversion: Conversion, estimated: bool = False, below: float = math.inf
) -> Answer:
    """Return the least delta that the curve proves at this exact epsilon.

    It is 1 if floats say that it is not `below` this.
    """

    def at(value: float, order: float) -> Answer:
        if value >= min(below, 1.0):
            return Answer(1.0, order, "estimated" if estimated else "proved")
        return _answered(
            value,
            order,
            estimated,
            lambda exact: certify.certified_delta(curve, exact, epsilon, conversion),
            lambda lam: array_answers.enclosed_delta(curve, lam, [epsilon], conversion),
            most=1.0,
        )

    return _searched(
        curve, lambda searched: order_search.best_delta(searched, [epsilon], conversion, estimated), below, at
    )


def _searched(
    curve: Curve, search: Callable[[Curve], Minimum], below: float, answer: Callable[[float, float], Answer]
) -> Answer:
    """Return the answer at the best order.

    If a search between remembered orders promised more than the curve keeps, it searches once more.
    """

    def first(found: Minimum) -> tuple[float, float]:
        return float(found.value[0]), float(found.order[0])

    value, order = first(order_search.located(curve, search))
    found = answer(value, order)
    kept = found.value <= value * (1 + order_search.EXPECTED) or not value < below
    return found if kept else answer(*first(search(curve)))


def proved_pure(curve: Curve, estimated: bool = False) -> float:
    """Return the bound at order infinity; infinite if it may fail with positive probability."""
    value = float(curve.pure())
    if math.isinf(value) or curve.slack() > 0:
        return math.inf
    return _answered(
        value, math.inf, estimated, lambda _: certify.certified_pure(curve), lambda _: _enclosed_pure(curve)
    ).value


def _enclosed_pure(curve: Curve) -> Enclosure:
    return BOUNDED.asarray([curve.at_infinity(BOUNDED)])


def _answered(
    value: float,
    order: float,
    estimated: bool,
    prove: Callable[[Fraction | None], Certificate],
    enclose: Callable[[Array], Enclosure],
    most: float = math.inf,
) -> Answer:
    """Return the certified number, else the upper end of its enclosure, else `most`.

    `most` always holds.

    A float that a user's function had a part in is moved up by far more than its rounding, which proves nothing.
    """
    if not estimated:
        try:
            proof = prove(None if math.isinf(order) else rational_order(order))
        except NotABall:
            estimated = True
        except CertificateError:
            pass
        else:
            if proof.value < most:
                return Answer(proof.value, order, "proved", proof)
    if estimated:
        return Answer(min(float(outward(np.array([value]))[0]), most), order, "estimated")
    found = max(float(enclose(np.array([order - 1])).upper()[0]), 0.0)
    return Answer(found, order, "bounded") if found < most else Answer(most, order, "proved")


def rational_order(order: float) -> Fraction:
    """Return an order found in floats as the exact number at which it is certified.

    That is the decimal it prints as.
    """
    return Fraction(repr(order))
