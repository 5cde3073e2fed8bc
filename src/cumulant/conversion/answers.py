"""One scalar question, answered: the order found in floats, the number proved in balls and rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.conversion import certificate, queries
from cumulant.conversion.certificate import Certificate
from cumulant.conversion.formulas import Conversion
from cumulant.curves.curve import Curve
from cumulant.curves.function import NotABall
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import outward
from cumulant.numerics.rounding import rounded_down


@dataclass(frozen=True, slots=True)
class Answer:
    """The number, the order that proves it, and how: `proved`, `bounded` or `estimated`."""

    value: float
    order: float | None  # None where no order is involved
    rigour: str
    proof: Certificate | None = None  # None where nothing had to be evaluated, or nothing could be


def epsilon(curve: Curve, delta: Fraction, conversion: Conversion, estimated: bool = False) -> Answer:
    """The least epsilon that the curve proves at this exact delta."""
    found = queries.epsilon(curve, [delta], conversion)
    value, order = float(found.value[0]), float(found.order[0])
    if delta >= 1 or math.isinf(value):
        return Answer(value, order, "estimated" if estimated else "proved")
    return _proved(value, order, estimated, lambda exact: certificate.epsilon(curve, exact, delta, conversion))


def delta(curve: Curve, epsilon: Fraction, conversion: Conversion, estimated: bool = False) -> Answer:
    """The least delta that the curve proves at this exact epsilon."""
    found = queries.delta(curve, np.array([rounded_down(epsilon)]), conversion)
    value, order = float(found.value[0]), float(found.order[0])
    if value >= 1:
        return Answer(1.0, order, "estimated" if estimated else "proved")
    return _proved(value, order, estimated, lambda exact: certificate.delta(curve, exact, epsilon, conversion))


def pure(curve: Curve, estimated: bool = False) -> float:
    """The bound at order infinity."""
    value = float(curve.pure())
    return value if math.isinf(value) else _proved(value, math.inf, estimated, lambda _: certificate.pure(curve)).value


def _proved(value: float, order: float, estimated: bool, prove: Callable[[Fraction | None], Certificate]) -> Answer:
    """The certified number where there is one; a float moved up by far more than its rounding where there is none."""
    if not estimated:
        try:
            proof = prove(None if math.isinf(order) else exact_order(order))
        except NotABall:
            estimated = True
        except CertificateError:
            pass
        else:
            if math.isfinite(proof.value):
                return Answer(proof.value, order, "proved", proof)
    return Answer(float(outward(np.array([value]))[0]), order, "estimated" if estimated else "bounded")


def exact_order(order: float) -> Fraction:
    """An order found in floats as the exact number at which it is certified: the decimal it prints as."""
    return Fraction(repr(order))
