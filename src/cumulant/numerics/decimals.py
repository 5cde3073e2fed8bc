"""A third arithmetic: intervals with decimal ends, rounded outward, by the standard library.

It serves the formulas that balls serve, so that a certificate can be checked by numbers that python-flint had no part in.
Sums, products and quotients obey the rounding of their context; exp and ln round to nearest whatever it says, so their
ends move one step further. What needs more than that (integrals, gamma functions, tables of differences) raises NotDecimal.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import Balls

_ZERO = Decimal(0)
"""The number 0."""

_ONE = Decimal(1)
"""The number 1."""

_INFINITY = Decimal("Infinity")
"""The upper end of what is not bounded above."""

_BELOW = Decimal("-Infinity")
"""The lower end of what is not bounded below."""

NARROW_DIGITS = 6
"""Digits by which an interval is narrower than its lower end to count as narrow."""

STEEPER = Decimal("1.001")
"""Factor by which a derivative may grow in a narrow interval; derived: e^(1e-6) is far below it."""


Ends = tuple[Decimal, Decimal]
Slope = Callable[[Decimal, Decimal], Decimal]


class NotDecimal(CertificateError):
    """A formula asked decimals for what only balls can do."""


class Interval:
    """All numbers from `low` to `high`; each operation encloses every result.

    An unknown result is the whole line.
    """

    __slots__ = ("high", "low", "on")

    def __init__(self, low: Decimal, high: Decimal, on: Decimals) -> None:
        self.low = _BELOW if low.is_nan() else low
        self.high = _INFINITY if high.is_nan() else high
        self.on = on

    def __repr__(self) -> str:
        return f"[{self.low}, {self.high}]"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what numpy looks for
            raise AttributeError(name)
        raise NotDecimal(f"decimals have no {name}")

    def __float__(self) -> float:
        return float(self.low if self.low == self.high else self.on.up.divide(self.on.up.add(self.low, self.high), 2))

    # ---- what it is

    def lower(self) -> Interval:
        """The lower end, as a point."""
        return Interval(self.low, self.low, self.on)

    def upper(self) -> Interval:
        """The upper end, as a point."""
        return Interval(self.high, self.high, self.on)

    def is_nan(self) -> bool:
        """True if nothing is known."""
        return self.low == _BELOW and self.high == _INFINITY

    def is_finite(self) -> bool:
        """True if both ends are finite."""
        return self.low.is_finite() and self.high.is_finite()

    # ---- comparisons: true only if true of all numbers inside

    def __lt__(self, other: Any) -> bool:
        return self.high < self._read(other).low

    def __le__(self, other: Any) -> bool:
        return self.high <= self._read(other).low

    def __gt__(self, other: Any) -> bool:
        return self.low > self._read(other).high

    def __ge__(self, other: Any) -> bool:
        return self.low >= self._read(other).high

    def __eq__(self, other: object) -> bool:
        read = self._read(other)
        return self.low == self.high == read.low == read.high

    def __ne__(self, other: object) -> bool:
        return self < other or self > other

    __hash__ = None  # type: ignore[assignment]

    # ---- arithmetic

    def _read(self, other: Any) -> Interval:
        return other if isinstance(other, Interval) else self.on.number(other)

    def __neg__(self) -> Interval:
        return Interval(self.high.copy_negate(), self.low.copy_negate(), self.on)

    def __abs__(self) -> Interval:
        if self.low >= 0:
            return self
        return -self if self.high <= 0 else Interval(_ZERO, max(self.low.copy_negate(), self.high), self.on)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = self._read(other)
        return Interval(self.on.down.add(self.low, other.low), self.on.up.add(self.high, other.high), self.on)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self + -self._read(other)

    def __rsub__(self, other: Any) -> Any:
        return self._read(other) + -self

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = self._read(other)
        one, other = (other, self) if self.low >= 0 and other.high <= 0 else (self, other)
        return one._spanned(self.on.down.multiply, self.on.up.multiply, other.low, other.high)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = self._read(other)
        if other.low <= 0 <= other.high:
            return Interval(_BELOW, _INFINITY, self.on)
        return self._spanned(self.on.down.divide, self.on.up.divide, other.high, other.low)

    def __rtruediv__(self, other: Any) -> Any:
        return self._read(other) / self

    def _spanned(self, down: Any, up: Any, least: Decimal, most: Decimal) -> Interval:
        """Return the interval of the four results at the ends; the whole line if one is undefined.

        Positive numbers become larger from `least` to `most`, so where the signs are known two results are enough.
        """
        if least >= 0 and most >= 0 and (self.low >= 0 or self.high <= 0):
            near, far = (least, most) if self.low >= 0 else (most, least)
            return Interval(down(self.low, near), up(self.high, far), self.on)
        pairs = {(self.low, least), (self.low, most), (self.high, least), (self.high, most)}
        lows, highs = [down(x, y) for x, y in pairs], [up(x, y) for x, y in pairs]
        if any(x.is_nan() for x in lows):
            return Interval(_BELOW, _INFINITY, self.on)
        return Interval(min(lows), max(highs), self.on)

    def __pow__(self, power: int) -> Interval:
        result, square = self.on.number(1), self
        while power:
            if power & 1:
                result = result * square
            square, power = (square * square, power >> 1) if power > 1 else (square, 0)
        return result

    def max(self, other: Interval) -> Interval:
        """The larger of two numbers."""
        return Interval(max(self.low, other.low), max(self.high, other.high), self.on)

    # ---- functions that increase, from their values at both ends, or at one and the largest slope between them

    def _increasing(self, function: Callable[[Decimal], Ends], slope: Slope, steep: bool = True) -> Interval:
        """Return the image of an increasing function.

        `slope(x, f)` is at least the derivative in a narrow interval from x on, if f is at least f(x).
        """
        low, high = function(self.low)
        if self.low != self.high:
            width = self._narrow(steep)
            high = function(self.high)[1] if width is None else self.on.up.fma(slope(self.low, high), width, high)
        return Interval(low, high, self.on)

    def _narrow(self, steep: bool) -> Decimal | None:
        """Return the width of the interval if it is small against the lower end, else None.

        Where the function is steep it must be small against 1 too.
        """
        width = self.on.up.subtract(self.high, self.low)
        digits = min(self.low.adjusted(), 0) if steep else self.low.adjusted()
        return width if self.low and width.is_finite() and width.adjusted() < digits - NARROW_DIGITS else None

    def exp(self) -> Interval:
        """e^x."""
        return self._increasing(self.on.exp_at, lambda x, value: self.on.up.multiply(value, STEEPER))

    def log(self) -> Interval:
        """The natural logarithm; unknown where a number inside has none."""
        return self._increasing(self.on.log_at, lambda x, value: self.on.up.divide(_ONE, x), steep=False)

    def expm1(self) -> Interval:
        """e^x - 1."""
        up = self.on.up
        return self._increasing(self.on.expm1_at, lambda x, value: up.multiply(up.add(value, _ONE), STEEPER))

    def log1p(self) -> Interval:
        """log(1 + x)."""
        up, down = self.on.up, self.on.down
        return self._increasing(self.on.log1p_at, lambda x, value: up.divide(_ONE, down.add(_ONE, x)), steep=False)

    def tanh(self) -> Interval:
        """The hyperbolic tangent."""
        return self._increasing(self.on.tanh_at, lambda x, value: _ONE)

    # ---- functions that fall to 0 at 0 and rise from there

    def excess(self) -> Interval:
        """e^x - 1 - x."""
        left = self.on.excess_at(self.low)
        if self.low == self.high:
            return Interval(*left, self.on)
        width = self._narrow(steep=True)
        if width is not None:  # the slope e^x - 1 is the value plus x
            up, down = self.on.up, self.on.down
            if self.low >= 0:
                slope = up.multiply(up.add(left[1], self.low), STEEPER)
                return Interval(left[0], up.fma(slope, width, left[1]), self.on)
            return Interval(down.fma(down.add(left[0], self.low), width, left[0]), left[1], self.on)
        right = self.on.excess_at(self.high)
        if self.low < 0 < self.high:
            return Interval(_ZERO, max(left[1], right[1]), self.on)
        return Interval(min(left[0], right[0]), max(left[1], right[1]), self.on)

    def log_cosh(self) -> Interval:
        """log cosh x."""
        up = self.on.up  # the slope is tanh x, which is less than x and than 1
        return abs(self)._increasing(
            self.on.log_cosh_at, lambda x, value: min(up.multiply(x, STEEPER), _ONE), steep=False
        )


class Decimals(Balls):
    """Object arrays of intervals with this many digits.

    The plumbing is that of balls, the numbers are not.

    >>> decimals(20).number(Fraction(1, 3))
    [0.33333333333333333333, 0.33333333333333333334]
    >>> decimals(10).log1p(decimals(10).number(Fraction(1, 10**30)))
    [9.999999999E-31, 1E-30]
    """

    def __init__(self, digits: int) -> None:
        super().__init__()
        self.digits = digits
        self.down, self.up = (
            Context(
                prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, capitals=1, clamp=0, flags=[], traps=[]
            )
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        )

    def precision(self) -> int:
        """Return the working precision in digits, as a negative number.

        The sign keeps remembered intervals from being taken for balls.
        """
        return -self.digits

    def number(self, value: Any) -> Interval:
        match value:
            case Interval():
                return value
            case float():
                exact = Decimal.from_float(value)
                return Interval(exact, exact, self)
            case int() | np.integer():
                exact = Decimal(int(value))
                return Interval(exact, exact, self)
            case Fraction():
                above, below = Decimal(value.numerator), Decimal(value.denominator)
                return Interval(self.down.divide(above, below), self.up.divide(above, below), self)
        raise NotDecimal(f"decimals cannot take in {type(value).__name__}")

    def excess(self, x: Any) -> Any:
        return self._map(Interval.excess)(x)

    def log_cosh(self, x: Any) -> Any:
        return self._map(Interval.log_cosh)(x)

    def log_gamma(self, x: Any) -> Any:
        raise NotDecimal("decimals have no gamma function")

    def log_sum_exp(self, x: Any) -> Any:
        return self.log(self._summed(x))

    def log1p_sum_exp(self, x: Any) -> Any:
        return self.log1p(self._summed(x))

    def _summed(self, x: Any) -> Any:
        """Return sum exp x; terms too small for these digits count between 0 and their largest."""
        if x.ndim != 1 or not x.size:
            return np.sum(self.exp(x), axis=-1)
        least = self.up.subtract(max(term.low for term in x), Decimal(3 * self.digits))  # e^-3 is less than a tenth
        large, small = [term for term in x if term.high >= least], [term.high for term in x if term.high < least]
        total = sum((term.exp() for term in large), start=self.number(0))
        if not small:
            return total
        return total + Interval(_ZERO, self.up.multiply(Decimal(len(small)), self.exp_at(max(small))[1]), self)

    # ---- values at one exact number: a lower and an upper end

    def _widened(self, nearest: Decimal) -> Ends:
        """Return the interval between the neighbours of a number that was rounded to nearest."""
        return nearest.next_minus(self.down), nearest.next_plus(self.up)

    def _rounded(self, ends: Ends) -> Ends:
        """Return both ends with fewer digits, rounded outward."""
        return self.down.plus(ends[0]), self.up.plus(ends[1])

    def _finer(self, x: Decimal, times: int = 1) -> Decimals:
        """Return an arithmetic in which `times` leading terms of a series in x may cancel."""
        return decimals(self.digits + times * max(0, -x.adjusted()) + 3)

    def exp_at(self, x: Decimal) -> Ends:
        """e^x."""
        if x.is_infinite() or x == 0:
            return (exact := self.up.exp(x)), exact
        low, high = self._widened(self.up.exp(x))
        return max(low, _ZERO), high

    def log_at(self, x: Decimal) -> Ends:
        """The natural logarithm, -inf at 0."""
        if x < 0:
            return _BELOW, _INFINITY
        exact = x.is_infinite() or x in (_ZERO, _ONE)
        nearest = self.up.ln(x)
        return (nearest, nearest) if exact else self._widened(nearest)

    def expm1_at(self, x: Decimal) -> Ends:
        """e^x - 1; between x and x + x^2 where x is tiny."""
        if x == 0:
            return x, x
        if x.adjusted() < -self.digits:
            return self.down.plus(x), self.up.fma(x, x, x)
        finer = self._finer(x)
        low, high = finer.exp_at(x)
        return self._rounded((finer.down.subtract(low, _ONE), finer.up.subtract(high, _ONE)))

    def log1p_at(self, x: Decimal) -> Ends:
        """log(1 + x); between x - x^2 and x where x is tiny."""
        if x == 0:
            return x, x
        if x.adjusted() < -self.digits:
            return self.down.fma(x.copy_negate(), x, x), self.up.plus(x)
        finer = self._finer(x)
        value = Interval(finer.down.add(_ONE, x), finer.up.add(_ONE, x), finer).log()
        return self._rounded((value.low, value.high))

    def excess_at(self, x: Decimal) -> Ends:
        """e^x - 1 - x; x^2/2 up to a part |x| of it where x is tiny."""
        if x.is_infinite():
            return _INFINITY, _INFINITY
        if x == 0:
            return x, x
        if x.adjusted() < -self.digits:
            point = Interval(x, x, self)
            half = point * point / 2
            return (half * (1 - abs(point))).low, (half * (1 + abs(point))).high
        finer = self._finer(x, 2)
        low, high = finer.expm1_at(x)
        return self._rounded((finer.down.subtract(low, x), finer.up.subtract(high, x)))

    def tanh_at(self, x: Decimal) -> Ends:
        """E / (E + 2) with E = e^{2x} - 1; 1 less than 10^-digits far out."""
        if x < 0:
            low, high = self.tanh_at(x.copy_negate())
            return high.copy_negate(), low.copy_negate()
        if x > 2 * self.digits:
            return _ONE.next_minus(self.down), _ONE
        growth = (Interval(x, x, self) * 2).expm1()
        value = growth / (growth + 2)
        return value.low, value.high

    def log_cosh_at(self, x: Decimal) -> Ends:
        """log(1 + (cosh x - 1)), and cosh x - 1 = E^2 / (2 (E + 1)) with E = e^x - 1."""
        growth = Interval(x, x, self).expm1()
        value = (growth / (growth + 1) * growth / 2).log1p()
        return value.low, value.high


@lru_cache(maxsize=256)
def decimals(digits: int) -> Decimals:
    """The arithmetic with this many digits."""
    return Decimals(digits)
