"""The transform of the Gaussian pair: v = x/t has the density of N(-t/2, 1) under Q0.

Without a sample M is a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.losses.subsampled import sampled_loss
from cumulant.losses.transform import ON_BALLS, Base, Transform
from cumulant.numerics.arithmetic import BALLS, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import U

LOG_ROOT = math.log(2 * math.pi) / 2
"""log sqrt(2 pi), the logarithm of the normal density's constant."""

FARTHEST = 80.0
"""Standard deviations beyond the mode up to which the span is looked for; e^-3200 is below all errors that are asked
for."""

SPAN_STEP = 0.25
"""Standard deviations between the ends that are tried for the span; floats choose, balls bound what lies beyond."""


@dataclass(frozen=True, slots=True)
class UnsampledGaussian(Transform):
    """N(t, 1) against N(0, 1): the loss is N(t^2/2, t^2) under P."""

    shift: Fraction

    @property
    def square(self) -> Fraction:  # type: ignore[override]
        return self.shift**2


@dataclass(frozen=True, slots=True)
class GaussianBase(Base):
    """x = t v, y = v + t/2 standard normal under Q0."""

    shift: Fraction

    def distance(self) -> Scalar:
        # TV = erf(t / sqrt 8)
        return (BALLS.number(self.shift) / BALLS.number(8).sqrt()).erf()

    def density(self, on: Any) -> Callable[[Any], Any]:
        half, log_root = _constants(self.shift, on)

        def log_density(v: Any) -> Any:
            y = v + half
            return -(y * y) / 2 - log_root

        return log_density

    def log_top(self, centre: Any, half: Any, height: Any, on: Any) -> Any:
        # |phi(y)| = e^{(Im^2 - Re^2)/2} / sqrt(2 pi), largest where Re y is nearest to 0
        shift, log_root = _constants(self.shift, on)
        near = abs(centre + shift) - half
        return (height * height - on.where(near > 0, near * near, 0 * near)) / 2 - log_root

    def growth(self, height: Any, on: Any) -> Any:
        return height * height / 2

    def span(self, lam: float, rate: float, kept: float, whole: bool, log_error: float) -> tuple[float, float]:
        t = float(self.shift)
        beyond = np.arange(SPAN_STEP, FARTHEST, SPAN_STEP)
        y = (lam + 1) * t + beyond
        log_w = sampled_loss(t * (y - t / 2), rate, kept)
        right = -(y**2) / 2 - LOG_ROOT + (lam + 1) * log_w - np.log(beyond)
        fits = (right <= log_error) & (y > t)
        if not fits.any():
            raise OverflowError("the law of one round is too wide for the line")
        high = float(y[np.argmax(fits)]) - t / 2
        if not whole:
            return 0.0, high
        z = beyond
        left = -(z**2) / 2 - LOG_ROOT
        if kept > 0:
            left = left - lam * math.log(kept)
        else:
            left = np.where(z > lam * t, left - lam * math.log(rate) + lam * (t * z + t * t / 2), np.inf)
        fits = left <= log_error
        if not fits.any():
            raise OverflowError("the law of one round is too wide for the line")
        return -float(z[np.argmax(fits)]) - t / 2, high

    def ends(self, lam: Scalar, rate: Fraction, span: tuple[float, float], whole: bool, sign: int) -> Scalar:
        from flint import arb

        # each bound is the integral of a function that falls outward, so a sum of equidistant values is no more
        t, g, kept = BALLS.number(self.shift), BALLS.number(rate), BALLS.number(1 - rate)
        y = arb(span[1]) + t / 2
        gap = y - (lam + 1) * t
        if sign > 0:  # (log)' = -y + (lam+1) t s <= -(Y - (lam+1) t)
            if not gap > 0:
                return arb("inf")
            w = kept + g * (t * span[1]).exp()
            right = (-y * y / 2 + (lam + 1) * w.log()).exp() / (2 * arb.pi()).sqrt() / gap
        else:  # w >= 1 where x >= 0
            right = normal_tail(y) if span[1] >= 0 else arb("inf")
        if not whole:
            return right
        z = -(arb(span[0]) + t / 2)
        if not (z > 0 and span[0] <= 0):
            return arb("inf")
        left = normal_tail(z)  # w <= 1 where x <= 0
        if sign < 0:  # w >= 1 - g, and w >= g e^x
            found = [kept ** (-lam) * left] if rate < 1 else []
            if z > lam * t:
                lifted = (lam * (t * z + t * t / 2 - g.log()) - z * z / 2).exp()
                found.append(lifted / (2 * arb.pi()).sqrt() / (z - lam * t))
            if not found:
                return arb("inf")
            left = found[0] if len(found) == 1 else arb.min(*found)
        return left + right

    def peaks(self, power: float) -> int:
        # (log f)' = -x/t^2 + (p+1) s(x) + const: one zero while (p+1) t^2 < 4, at most three else
        return 1 if (power + 1) * float(self.shift) ** 2 < 3.99 else 2


def normal_tail(z: Any) -> Any:
    """Return P(N(0, 1) > z) = erfc(z / sqrt 2) / 2 as a ball; z is a ball."""
    return (z / type(z)(2).sqrt()).erfc() / 2


def _constants(t: Fraction, on: Any) -> tuple[Any, Any]:
    """Return t/2 and log sqrt(2 pi) in the arithmetic `on`."""
    if on is BOUNDED:
        return BOUNDED.number(t) / 2, Enclosure(LOG_ROOT, 2 * U)
    # by its two integers: a fraction takes long to hash
    return (
        _ball_constants(t.numerator, t.denominator, BALLS.precision()) if on is ON_BALLS else (float(t) / 2, LOG_ROOT)
    )


@lru_cache(maxsize=256)
def _ball_constants(numerator: int, denominator: int, bits: int) -> tuple[Any, Any]:
    """Return t/2 and log sqrt(2 pi) as balls of this precision, which is the working one."""
    from flint import arb

    return BALLS.number(Fraction(numerator, denominator)) / 2, (2 * arb.pi()).log() / 2
