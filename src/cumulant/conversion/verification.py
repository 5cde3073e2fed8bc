"""A proved epsilon, checked again without the search that found it and without the numbers that proved it.

The bound at the stored order is evaluated afresh from the exact inputs: in decimal intervals of the standard library where
its formula is a finite one, elsewhere in balls at four times the precision. The check passes when the upper end of what
comes out is at most the epsilon that was stated.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from cumulant.conversion.certificate import FIRST_BITS, at_least, epsilon_on
from cumulant.conversion.formulas import Conversion
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.decimals import Interval, NotDecimal, decimals
from cumulant.numerics.rounding import rounded_down, rounded_up

_DIGITS = (24, 60, 120, 960)
"""A float shows 17 digits, so 24 are mostly enough; it has at most 767, so the last are enough where the bound is one."""

_MORE_BITS = (1, 4)
_FRESH_BITS = 64
"""More than a multiple of what certificates use, so that nothing they remember answers."""

_LEAST, _MOST = Fraction(1, 2**1080), Fraction(sys.float_info.max)


@dataclass(frozen=True, slots=True)
class Verification:
    """What a second evaluation says about an epsilon: it holds if the whole enclosure lies at or below it.

    `lower` and `upper` enclose the bound at the stored order; `ulps` is how far epsilon lies above the upper end, in units
    of its last place, and negative where it lies below. `arithmetic` is "decimal" (with `precision` digits), "balls" (with
    `precision` bits), "lattice" (with `precision` points, for the exact layer), or "none" where nothing was evaluated.

    >>> import cumulant as cm
    >>> run = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.01)
    >>> check = run.guarantee(delta=1e-6, bound="theorem9").verify()
    >>> isinstance(check, cm.Verification), check.holds, check.arithmetic, 0 <= check.ulps < 4
    (True, True, 'decimal', True)
    """

    holds: bool
    epsilon: float
    lower: float
    upper: float
    ulps: float
    arithmetic: str
    precision: int

    def __str__(self) -> str:
        unit = {
            "decimal": "digits in decimal intervals",
            "balls": "bits in balls",
            "lattice": "points on a finer lattice",
        }.get(self.arithmetic)
        how = f"with {self.precision} {unit}" if unit else "without evaluating anything"
        found = (
            f"epsilon = {self.epsilon!r} {{}}: evaluated again {how}, the bound lies in [{self.lower}, {self.upper}]"
        )
        if self.holds:
            return found.format("holds") + (f", {self.ulps:.2g} ulp below it" if self.ulps else "")
        refuted = self.lower > self.epsilon
        return found.format("does not hold" if refuted else "is not confirmed") + f", {-self.ulps:.2g} ulp above it"


def verify(
    curve: Curve,
    order: Fraction | None,
    delta: Fraction,
    conversion: Conversion,
    epsilon: float,
    bits: int = FIRST_BITS,
) -> Verification:
    """Whether the curve proves this epsilon at this exact order (None is infinity) and delta; `bits` were used before."""
    if delta >= 1 or epsilon == math.inf:  # (0, 1) and (inf, 0) hold for everything
        return Verification(epsilon >= 0, epsilon, 0.0, 0.0 if delta >= 1 else math.inf, 0.0, "none", 0)
    slack = curve.slack()
    if delta < slack or (delta == slack and order is not None):
        return Verification(False, epsilon, math.inf, math.inf, -math.inf, "none", 0)
    result = None
    for arithmetic, precision, low, high in _enclosures(curve, order, delta, conversion, bits):
        low, high = max(low, Fraction(0)), max(high, Fraction(0))
        stated = Fraction(epsilon)
        ends = rounded_down(low), rounded_up(high)
        result = Verification(high <= stated, epsilon, *ends, _ulps(stated, high), arithmetic, precision)
        if high <= stated or low > stated:
            break
    if result is None:
        raise CertificateError("the bound could not be evaluated again at any allowed precision")
    return result


def _enclosures(
    curve: Curve, order: Fraction | None, delta: Fraction, conversion: Conversion, bits: int
) -> Iterator[tuple[str, int, Fraction, Fraction]]:
    """The arithmetic, its precision and both ends, at growing precision; in decimals if that is possible at all."""
    try:
        for digits in _DIGITS:
            value = epsilon_on(decimals(digits), curve, order, delta, conversion)
            if not isinstance(value, Interval):
                raise NotDecimal("the curve answered decimals by a ball")
            yield "decimal", digits, _exact(value.low), _exact(value.high)
    except (CertificateError, TypeError):  # flint raises TypeError where it is handed an interval
        for more in _MORE_BITS:
            precision = 4 * more * bits + _FRESH_BITS
            with BALLS.at(precision):
                ball = epsilon_on(BALLS, curve, order, delta, conversion)
                known = ball.is_finite()
                low, high = (-at_least(-ball.lower()), at_least(ball.upper())) if known else (Fraction(0), 2 * _MOST)
            yield "balls", precision, low, high


def _exact(end: Decimal) -> Fraction:
    """The end as a fraction; instead of one that no float can show, another one."""
    if end.is_finite() and (end == 0 or -400 < end.adjusted() < 400):
        return Fraction(end)
    if end < 0:
        return Fraction(0)
    return _LEAST if end.is_finite() and end.adjusted() < 0 else 2 * _MOST


def _ulps(stated: Fraction, high: Fraction) -> float:
    """How far the stated number lies above the upper end, in units of its last place."""
    try:
        return float((stated - high) / Fraction(math.ulp(float(stated))))
    except OverflowError:
        return -math.inf
