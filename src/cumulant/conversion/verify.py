"""A second evaluation of what was proved, independent of the first one.

It shares neither the search nor any remembered number with it.

The bound at the stored order is evaluated afresh from the exact inputs: in decimal intervals of the standard library where
its formula is a finite one, elsewhere in balls at four times the precision, or with 64 bits more where an integral allows no
more. The check passes when the upper end of what comes out is at most what was stated: the epsilon at the delta that was
asked for, or the delta at the epsilon.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain

from cumulant.conversion.certify import FIRST_BITS, delta_on, epsilon_on
from cumulant.conversion.conversions import Conversion
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.html_box import facts_box
from cumulant.numerics.arithmetic import BALLS, RATIONALS, Arithmetic, Scalar
from cumulant.numerics.decimals import Interval, NotDecimal, decimals
from cumulant.numerics.rounding import at_least, rounded_down, rounded_up

_DIGITS = (24, 60, 120, 960)
"""A float shows 17 digits, so 24 are mostly enough; it has at most 767, so the last are enough where the bound is one."""

MORE_BITS = (1, 4)
"""Multiples of the precision of the certificate with which a bound is evaluated again."""

_FRESH_BITS = 64
"""More than a multiple of what certificates use, so that nothing they remember answers."""

LEAST = Fraction(1, 2**1080)
"""A number below all positive floats."""

MOST = Fraction(sys.float_info.max)
"""The largest float."""

ROUTES = {
    "decimal": "with {precision} digits in decimal intervals",
    "balls": "with {precision} bits in balls",
    "fractions": "in exact fractions",
    "saddle line": "along the saddle line, with {precision} frequencies",
    "recursion": "by the recursion from the other end, on a grid of {precision} points",
    "lattice": "on a lattice of {precision} points, by the same code",
    "sums": "with the same sums, by the same code",
    "none": "without evaluating anything",
}
"""The ways of a second evaluation, as the user reads them."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a second evaluation of an epsilon and its delta.

    It says whether the statement holds, and how that was found.

    `quantity` is which of the two was evaluated again, given the other; `lower` and `upper` enclose it, and `ulps` is how far
    the stated number lies above the upper end, in units of its last place, negative where it lies below.

    `arithmetic` is the route. "decimal" (with `precision` digits), "balls" (with `precision` bits) and "fractions" prove it
    again. "saddle line" (with `precision` frequencies) confirms an answer of the exact layer by another evaluation of the
    same composition, up to the tolerance that `note` states. "recursion" (with `precision` points) encloses the optimum of
    adaptive rounds once more, under the other law and on another grid. "lattice" (with `precision` points) is the same code on
    a finer grid, "sums" the same sums: no independent route was open, and `note` says between what the answer lies. "none":
    nothing had to be evaluated.

    A verification is true where the statement holds.

    >>> import cumulant as cm
    >>> run = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.01)
    >>> check = run.guarantee(delta=1e-6, bound="theorem9").verify()
    >>> isinstance(check, cm.Verification), bool(check), check.arithmetic, 0 <= check.ulps < 4
    (True, True, 'decimal', True)
    """

    holds: bool
    epsilon: float
    delta: float
    quantity: str
    lower: float
    upper: float
    ulps: float
    arithmetic: str
    precision: int
    note: str = ""

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return (
            f"Verification(holds={self.holds!r}, epsilon={self.epsilon!r}, delta={self.delta!r}, "
            f"quantity={self.quantity!r}, upper={self.upper!r}, arithmetic={self.arithmetic!r})"
        )

    def _repr_html_(self) -> str:
        found = "Confirmed by another route" if self.independent else "Found again by the same code"
        headline = found if self.holds else f"The stated {self.quantity} {self._verdict()}"
        return facts_box(
            headline,
            {
                "stated": f"epsilon = {self.epsilon!r} at delta = {self.delta!r}",
                "evaluated again": ROUTES[self.arithmetic].format(precision=self.precision),
                f"{self.quantity} lies in": f"[{self.lower!r}, {self.upper!r}]",
            },
            note=self.note,
        )

    @property
    def independent(self) -> bool:
        """True if another route than that of the answer was taken."""
        return self.arithmetic not in ("lattice", "sums", "none")

    @property
    def stated(self) -> float:
        """The number that was evaluated again."""
        return self.epsilon if self.quantity == "epsilon" else self.delta

    def __str__(self) -> str:
        how = ROUTES[self.arithmetic].format(precision=self.precision)
        given = f" at epsilon = {self.epsilon!r}" if self.quantity == "delta" else ""
        found = (
            f"{self.quantity} = {self.stated!r}{given} {self._verdict()}: evaluated again {how}, "
            f"the bound lies in [{self.lower}, {self.upper}]"
        )
        return found + (f"; {self.note}" if self.note else "")

    def _verdict(self) -> str:
        if self.holds:
            return "holds"
        return "does not hold" if self.lower > self.stated else "is not confirmed"


def verify(
    curve: Curve,
    order: Fraction | None,
    delta: Fraction,
    conversion: Conversion,
    epsilon: float,
    bits: int = FIRST_BITS,
) -> Verification:
    """Return whether the curve proves this epsilon at this exact order and delta.

    The order None is infinity; `bits` were used before.
    """
    given = epsilon, rounded_up(min(delta, Fraction(1))), "epsilon"
    if delta >= 1 or epsilon == math.inf:  # (0, 1) and (inf, 0) hold for everything
        return Verification(epsilon >= 0, *given, 0.0, 0.0 if delta >= 1 else math.inf, 0.0, "none", 0)
    slack = curve.slack()
    if delta < slack or (delta == slack and order is not None):
        return Verification(False, *given, math.inf, math.inf, -math.inf, "none", 0)
    enclosures = _enclosures(lambda on: epsilon_on(on, curve, order, delta, conversion), bits)
    if order is None:  # a rational that is a float, such as three thirds, is decided by no interval around it
        enclosures = chain(enclosures, _exactly(curve))
    return _compared(given, Fraction(epsilon), enclosures)


def verify_delta(
    curve: Curve,
    order: Fraction | None,
    epsilon: Fraction,
    conversion: Conversion,
    delta: float,
    bits: int = FIRST_BITS,
) -> Verification:
    """Return whether the curve proves this delta at this exact order and epsilon.

    The order None is infinity; `bits` were used before.
    """
    given = rounded_up(epsilon), delta, "delta"
    if delta >= 1:
        return Verification(True, *given, 0.0, 1.0, 0.0, "none", 0)
    if order is None:
        return _compared_pure(curve, epsilon, given, bits)
    return _compared(
        given, Fraction(delta), _enclosures(lambda on: delta_on(on, curve, order, epsilon, conversion), bits)
    )


def _compared_pure(curve: Curve, epsilon: Fraction, given: tuple[float, float, str], bits: int) -> Verification:
    """At order infinity delta is the slack, if epsilon is at least the pure one."""
    check = _compared(given, epsilon, iter(list(_exactly(curve)) or _enclosures(curve.pure, bits)))
    low, high = (curve.slack(), curve.slack()) if check.holds else (Fraction(0), Fraction(1))
    stated, ends = Fraction(given[1]), (rounded_down(low), rounded_up(high))
    return Verification(high <= stated, *given, *ends, ulps(stated, high), check.arithmetic, check.precision)


def _exactly(curve: Curve) -> Iterator[tuple[str, int, Fraction, Fraction]]:
    """Return the pure bound as a fraction; None if it is none."""
    with suppress(CertificateError):
        rational = curve.pure(RATIONALS)
        if math.isfinite(rational):
            yield "fractions", 0, rational, rational


def _compared(
    given: tuple[float, float, str], stated: Fraction, enclosures: Iterator[tuple[str, int, Fraction, Fraction]]
) -> Verification:
    """Return the first enclosure that decides the statement, or else the narrowest."""
    result = None
    for arithmetic, precision, low, high in enclosures:
        low, high = max(low, Fraction(0)), max(high, Fraction(0))
        ends = rounded_down(low), rounded_up(high)
        result = Verification(high <= stated, *given, *ends, ulps(stated, high), arithmetic, precision)
        if high <= stated or low > stated:
            break
    if result is None:
        raise CertificateError("the bound could not be evaluated again at any allowed precision")
    return result


def _enclosures(value_on: Callable[[Arithmetic], Scalar], bits: int) -> Iterator[tuple[str, int, Fraction, Fraction]]:
    """Yield the arithmetic, its precision and both ends, at growing precision.

    Decimals are used if that is possible at all.
    """
    try:
        for digits in _DIGITS:
            value = value_on(decimals(digits))
            if not isinstance(value, Interval):
                raise NotDecimal("the curve answered decimals by a ball")
            if not value.high.is_finite():
                raise NotDecimal("an exponential is larger than any decimal")
            yield "decimal", digits, _fraction(value.low), _fraction(value.high)
    except (CertificateError, TypeError):  # flint raises TypeError where it is handed an interval
        try:
            for more in MORE_BITS:
                yield _in_balls(value_on, 4 * more * bits + _FRESH_BITS)
        except CertificateError:  # an integral refuses so many bits; these are still fresh, and more than were used
            yield _in_balls(value_on, bits + _FRESH_BITS)


def _in_balls(value_on: Callable[[Arithmetic], Scalar], precision: int) -> tuple[str, int, Fraction, Fraction]:
    """Return the arithmetic, its precision and both ends of a ball.

    The interval is that of all floats if the ball is infinite.

    The ends are infinite if the ball is.
    """
    with BALLS.at(precision):
        ball = value_on(BALLS)
        known = ball.is_finite()
        low, high = (-at_least(-ball.lower()), at_least(ball.upper())) if known else (Fraction(0), 2 * MOST)
    return "balls", precision, low, high


def _fraction(end: Decimal) -> Fraction:
    """Return the end as a fraction; beyond 400 digits one below or above all floats."""
    if end.is_finite() and (end == 0 or -400 < end.adjusted() < 400):
        return Fraction(end)
    if end < 0:
        return Fraction(0)
    return LEAST if end.is_finite() and end.adjusted() < 0 else 2 * MOST


def ulps(stated: Fraction, high: Fraction) -> float:
    """Return the distance of the stated number above the upper end, in units of its last place."""
    try:
        return float((stated - high) / Fraction(math.ulp(float(stated))))
    except OverflowError:
        return -math.inf
