"""Search fast, certify once: the returned number is evaluated in balls, rounded outward.

Any order gives a valid bound, so the order is found in floats and only then is everything evaluated with exact inputs; the
upper end of the ball is rounded up to a float. Precision doubles until the ball is narrower than a float can show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.conversion.conversions import Conversion
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS, RATIONALS, Arithmetic, Scalar
from cumulant.numerics.rounding import at_least, rounded_up

FIRST_BITS = 128
"""Bits of the first try; 75 more than a float has."""


@dataclass(frozen=True, slots=True)
class CertifySettings:
    """Precisions of a certificate.

    A ball that is too wide is refused, so validity does not depend on them.
    """

    most_bits: int = 4096
    """Bits of the last try; beyond it the certificate is refused."""

    good_bits: int = 60
    """Relative bits of a ball that is narrow enough; 7 more than a float has."""

    fair_bits: int = 30
    """Relative bits of a ball that is taken if more precision does not help."""

    least_gain: int = 8
    """Bits that doubling the precision must gain to go on."""

    pure_bits: int = 256
    """Bits of the ball with which the pure bound is compared."""


SETTINGS = CertifySettings()
"""The settings in force; a test may replace them."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A float that is proved to be at least the exact value of the bound at the chosen order.

    `bits` is the precision at which the ball was narrow enough, `radius` its radius.
    """

    value: float
    bits: int
    radius: float


def certified_epsilon(curve: Curve, order: Fraction | None, delta: Fraction, conversion: Conversion) -> Certificate:
    """Return epsilon >= 0 at this exact order and delta.

    The order None stands for infinity, the pure bound.
    """
    if order is None:
        return certified_pure(curve)
    return certified(lambda: epsilon_on(BALLS, curve, order, delta, conversion))


def epsilon_on(on: Arithmetic, curve: Curve, order: Fraction | None, delta: Fraction, conversion: Conversion) -> Scalar:
    """Return the epsilon that the curve proves at this order and delta; it may be negative.

    The arithmetic is exact.
    """
    if order is None:
        return curve.pure(on)
    lam = order - 1
    cgf = curve._cgf(np.array([lam], dtype=object), on)[0]
    return conversion.epsilon(on.number(lam), cgf, on.log(on.number(curve.left(delta))), on)


def certified_delta(curve: Curve, order: Fraction | None, epsilon: Fraction, conversion: Conversion) -> Certificate:
    """Return delta in [0, 1] at this exact order and epsilon, the slack included.

    The order None stands for infinity.
    """
    return certified(lambda: delta_on(BALLS, curve, order, epsilon, conversion), most=Fraction(1))


def delta_on(on: Arithmetic, curve: Curve, order: Fraction | None, epsilon: Fraction, conversion: Conversion) -> Scalar:
    """Return the delta that the curve proves at this order and epsilon, in an exact arithmetic.

    At infinity epsilon must be a pure one.
    """
    if order is None:
        return on.number(curve.slack())
    lam = order - 1
    cgf = curve._cgf(np.array([lam], dtype=object), on)[0]
    log_delta = conversion.log_delta(on.number(lam), cgf, on.number(epsilon), on)
    return on.number(curve.slack()) + on.number(1 - curve.slack()) * on.exp(log_delta)


def is_pure(curve: Curve, epsilon: Fraction) -> bool:
    """True if the bound at order infinity is proved to be at most this epsilon.

    The comparison is exact if the bound is rational.
    """
    try:
        return bool(curve.pure(RATIONALS) <= epsilon)
    except CertificateError:
        with BALLS.at(SETTINGS.pure_bits):
            return bool(curve.pure(BALLS) <= BALLS.number(epsilon))


def certified_pure(curve: Curve) -> Certificate:
    """Return the bound at order infinity, whatever the slack.

    A rational bound is exact, so that ten times 1/10 is 1.
    """
    try:
        exact = curve.pure(RATIONALS)
    except CertificateError:
        return certified(lambda: curve.pure(BALLS))
    return Certificate(rounded_up(exact) if math.isfinite(exact) else math.inf, FIRST_BITS, 0.0)


def certified(ball: Callable[[], Scalar], most: Fraction | None = None) -> Certificate:
    """Return the upper end of the ball, rounded up; at least 0 and at most `most`.

    An integral is as narrow as its tolerance, whatever the precision: where doubling that no longer helps, a fair ball
    is taken as it is. It is a bound all the same.
    """
    bits, before = FIRST_BITS, -math.inf
    while bits <= SETTINGS.most_bits:
        with BALLS.at(bits):
            value, accuracy = ball(), -math.inf
            if not value.is_nan():
                if not value.is_finite():
                    return Certificate(math.inf if most is None else float(most), bits, 0.0)
                upper = at_least(value.upper())
                # below 0 a wide ball says enough
                accuracy = value.rel_accuracy_bits() if upper > 0 else math.inf
            if accuracy >= SETTINGS.good_bits or (
                accuracy >= SETTINGS.fair_bits and accuracy < before + SETTINGS.least_gain
            ):
                upper = max(upper, Fraction(0)) if most is None else min(max(upper, Fraction(0)), most)
                return Certificate(rounded_up(upper), bits, float(value.rad()))
            before = accuracy
        bits *= 2
    raise CertificateError(
        f"the bound could not be enclosed to {SETTINGS.fair_bits} bits with {SETTINGS.most_bits} bits of precision"
    )
