"""The third arithmetic: float64 arrays that carry a proved bound of their error.

Answers in arrays use it.

An enclosure is a midpoint and a radius. Formulas written for an arithmetic `on` run on `BOUNDED` unchanged, and the exact
value of the formula lies within the radius of the midpoint; docs/rounding.md has the model and the lemma of each operation.
What is decided (a branch, a candidate of a minimum) is decided by midpoints or upper ends: every choice is valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.rounding import MEASURED, ROUGH, U

FLOOR = 2.0**-1000
"""More than any underflow; added wherever one can happen (docs/rounding.md)."""

TINY = 2.0**-900
"""Results below it may have underflowed (docs/rounding.md)."""

NEAR = 2 * U
"""Relative error of exp and log; an assumption about libm that a test checks (docs/rounding.md)."""

FAR = 8 * U
"""Relative error of expm1, log1p, tanh and sinh; an assumption about libm that a test checks (docs/rounding.md)."""

SUMMED = 12 * U
"""Relative error of log1p of exp; derived (docs/rounding.md)."""

EXCESS = 24 * U
"""Relative error of e^x - 1 - x; derived (Lemma 1 of docs/rounding.md)."""

_ADDITIONS = 28
"""np.sum adds blocks of 128 in eight strands and then pairs of blocks: no term goes through more than 28 + log2(n)."""

SHORT_SUM = 2**13
"""Terms up to which all sums use one constant, so that padding does not change a bound (Lemma 2 of docs/rounding.md)."""

_INFLATION = 1 + 2.0**-30
"""Radii are sums and products of positive floats; what their own rounding loses is given back at the end."""

UNKNOWN = np.nan
"""The midpoint and radius of a number of which nothing is known."""

_NOTHING = -700.0
"""e to this and to anything below is less than FLOOR."""


class Enclosure:
    """An array of intervals mid ± radius; NaN stands for unknown.

    Infinity stands for itself or for an overflow.

    >>> third = BOUNDED.number(Fraction(1, 3)) * 3
    >>> float(third.upper()) >= 1 >= float(third.lower()), bool(third.radius < 1e-15)
    (True, True)
    """

    __slots__ = ("mid", "radius")
    __array_ufunc__ = None

    def __init__(self, mid: Any, radius: Any = None) -> None:
        self.mid = np.asarray(mid, dtype=np.float64)
        self.radius = np.zeros(self.mid.shape) if radius is None else np.asarray(radius, dtype=np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mid.shape

    @property
    def size(self) -> int:
        return self.mid.size

    def __len__(self) -> int:
        return len(self.mid)

    def __repr__(self) -> str:
        return f"Enclosure({self.mid!r}, {self.radius!r})"

    def upper(self) -> Array:
        """At least the exact value; +inf where it is unknown."""
        end = np.nextafter(self.mid + self.radius * _INFLATION, np.inf)
        end = np.where((self.radius == 0) | np.isinf(self.mid), self.mid, end)
        return np.where(np.isnan(end), np.inf, end)

    def lower(self) -> Array:
        """At most the exact value; -inf where it is unknown."""
        return -(-self).upper()

    def __getitem__(self, key: Any) -> Enclosure:
        return Enclosure(self.mid[key], self.radius[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        value = _lift(value)
        self.mid[key], self.radius[key] = value.mid, value.radius

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.mid, self.radius)

    def __abs__(self) -> Enclosure:
        return Enclosure(np.abs(self.mid), self.radius)

    # a float, or an array of floats, is exact: half of the work

    def __add__(self, other: Any) -> Enclosure:
        exact = not isinstance(other, Enclosure)
        mid = self.mid + (np.asarray(other, dtype=np.float64) if exact else other.mid)
        return _made(mid, (self.radius if exact else self.radius + other.radius) + U * np.abs(mid))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Enclosure:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Enclosure:
        return _lift(other) + -self

    def __mul__(self, other: Any) -> Enclosure:
        exact = not isinstance(other, Enclosure)
        factor = np.asarray(other, dtype=np.float64) if exact else other.mid
        mid = self.mid * factor
        size, moved = np.abs(mid), np.abs(factor) * self.radius
        if not exact:
            moved = moved + (np.abs(self.mid) + self.radius) * other.radius
        return _made(mid, moved + U * size + _floor(size, self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Enclosure:
        other = _lift(other)
        mid, distance = self.mid / other.mid, np.abs(other.mid) - other.radius
        size = np.abs(mid)
        moved = _part(self.radius + size * other.radius, distance, other.radius)
        return _made(mid, moved + U * size + _floor(size, self))

    def __rtruediv__(self, other: Any) -> Enclosure:
        return _lift(other) / self

    # comparisons decide which formula is used, so midpoints will do

    def __lt__(self, other: Any) -> Any:
        return self.mid < _lift(other).mid

    def __le__(self, other: Any) -> Any:
        return self.mid <= _lift(other).mid

    def __gt__(self, other: Any) -> Any:
        return self.mid > _lift(other).mid

    def __ge__(self, other: Any) -> Any:
        return self.mid >= _lift(other).mid

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where:
            return _chosen(*args)
        if function is np.concatenate:
            parts = [_lift(each) for each in args[0]]
            mid = np.concatenate([each.mid for each in parts], **kwargs)
            return Enclosure(mid, np.concatenate([each.radius for each in parts], **kwargs))
        return NotImplemented


def middle(x: Any) -> Array:
    """The floats of an enclosure, or the floats themselves."""
    return x.mid if isinstance(x, Enclosure) else x


def _lift(x: Any) -> Enclosure:
    return x if isinstance(x, Enclosure) else Enclosure(x)


def _chosen(condition: Any, x: Any, y: Any) -> Enclosure:
    x, y = _lift(x), _lift(y)
    return Enclosure(np.where(condition, x.mid, y.mid), np.where(condition, x.radius, y.radius))


def _made(mid: Array, radius: Array) -> Enclosure:
    """Return the enclosure, with no radius at infinity.

    Infinity is exact, or an overflow, which is an upper bound of what overflowed.
    """
    infinite = np.isinf(mid)
    return Enclosure(mid, np.where(infinite, 0.0, radius) if infinite.any() else radius)


def _floor(size: Array, *arguments: Any) -> Array | float:
    """Return what an underflow can lose at a result of this size; 0 if an argument is exactly 0."""
    small = size < TINY
    if not small.any():
        return 0.0
    for x in map(_lift, arguments):
        small = small & ((x.mid != 0) | (x.radius > 0))
    return FLOOR * small


def _part(radius: Array, distance: Array, own: Array) -> Array:
    """Return radius / distance if at least half of the number is left of it; otherwise unknown."""
    return np.where(radius == 0, 0.0, radius / np.where(distance >= own, distance, UNKNOWN))


class Bounded:
    """float64 with a radius, with the functions, branches and constants of `FLOATS`."""

    exact = False
    enclosing = True

    def precision(self) -> int:
        return 53

    def number(self, value: Any) -> Enclosure:
        """Return the nearest float, and its distance if it is not the number itself."""
        if isinstance(value, Enclosure):
            return value
        mid = FLOATS.number(value)
        if isinstance(value, float) or math.isinf(mid) or Fraction(mid) == value:
            return Enclosure(mid)
        return Enclosure(mid, U * abs(mid) + 5e-324)

    def asarray(self, values: Any) -> Enclosure:
        if isinstance(values, Enclosure):
            return values
        if isinstance(values, np.ndarray) and values.dtype != object:
            return Enclosure(values)
        if not isinstance(values, Iterable):
            return self.number(values)
        mid, radius = [], []
        for value in values:
            one = self.number(value)
            mid.append(float(one.mid))
            radius.append(float(one.radius))
        return Enclosure(np.array(mid), np.array(radius))

    def measured(self, values: Any) -> Enclosure:
        """A float whose error was measured and not proved: 2^-42 of itself."""
        values = np.asarray(values, dtype=np.float64)
        return _made(values, MEASURED * np.abs(values))

    def of_balls(self, balls: Iterable[Any]) -> Enclosure:
        """Balls as floats: a float beside the middle, the radius and what that float lost."""
        mid, radius = [], []
        for ball in balls:
            middle = float(ball.mid())
            mid.append(middle)
            radius.append(math.nextafter(float(ball.rad()), math.inf) + 2 * U * abs(middle) + 5e-324)
        return _made(np.array(mid), np.array(radius))

    def above(self, upper: Array) -> Enclosure:
        """Return numbers known to lie below these floats, with a radius of 1.

        It is not known how far below; a radius of 1 counts as wide in log space.
        """
        return Enclosure(upper - 1, np.where(np.isinf(upper), 0.0, 1 + 2 * U * np.abs(upper)))

    def exp(self, x: Any) -> Enclosure:
        x = _lift(x)
        mid = np.exp(x.mid)
        moved = np.where(x.radius <= 1, np.expm1(x.radius), np.where(x.mid + x.radius < _NOTHING, 0.0, UNKNOWN))
        return _made(mid, mid * moved + NEAR * mid + FLOOR)

    def log(self, x: Any) -> Enclosure:
        x = _lift(x)
        mid, moved = np.log(x.mid), _part(x.radius, x.mid - x.radius, x.radius)
        return _made(np.where(np.isnan(moved), UNKNOWN, mid), moved + NEAR * np.abs(mid))

    def expm1(self, x: Any) -> Enclosure:
        x = _lift(x)
        mid = np.expm1(x.mid)
        size = np.abs(mid)
        # e^x is below FLOOR where x certainly is below -700, however wide x is
        moved = np.where(x.mid + x.radius < _NOTHING, FLOOR, (mid + 1 + 2 * FAR) * np.expm1(x.radius))
        return _made(mid, moved + FAR * size + _floor(size, x))

    def log1p(self, x: Any) -> Enclosure:
        x = _lift(x)
        mid, moved = np.log1p(x.mid), _part(x.radius, 1 + x.mid - x.radius, x.radius)
        size = np.abs(mid)
        return _made(np.where(np.isnan(moved), UNKNOWN, mid), moved + FAR * size + _floor(size, x))

    def tanh(self, x: Any) -> Enclosure:
        x = _lift(x)
        mid = np.tanh(x.mid)
        size = np.abs(mid)
        return _made(mid, x.radius * ((1 - mid * mid) + 4 * FAR + x.radius) + FAR * size + _floor(size, x))

    def sinh(self, x: Any) -> Enclosure:
        x = _lift(x)
        mid = np.sinh(x.mid)
        size = np.abs(mid)
        # cosh <= 1 + |sinh|, and |sinh(x + h) - sinh x| <= cosh(x) sinh |h| + |sinh x| (cosh h - 1)
        return _made(mid, (1 + size) * np.expm1(x.radius) + FAR * size + _floor(size, x))

    def excess(self, x: Any) -> Enclosure:
        """e^x - 1 - x."""
        x = _lift(x)
        mid = FLOATS.excess(x.mid)
        slope = np.abs(np.expm1(x.mid)) + np.exp(x.mid) * np.expm1(x.radius)
        return _made(mid, slope * x.radius + EXCESS * mid + _floor(mid, x))

    def log_expm1(self, x: Any) -> Enclosure:
        x = _lift(x)
        near = self.log(self.expm1(_chosen(x.mid < 1, x, 1.0)))
        return _chosen(x.mid < 1, near, x + self.log1p(-self.exp(-x)))

    def log_cosh(self, x: Any) -> Enclosure:
        x = abs(_lift(x))
        small = self.sinh(_chosen(x.mid < 1, x, 1.0) / 2)
        return _chosen(x.mid < 1, self.log1p(2 * small * small), x + self.log1p(self.exp(-2 * x)) - LOG_TWO)

    def log_excess(self, x: Any) -> Enclosure:
        """log(e^x - 1 - x)."""
        x = _lift(x)
        large = x.mid > 30
        if not large.any():
            return self.log(self.excess(x))
        near = self.log(self.excess(_chosen(large, 30.0, x)))
        return _chosen(large, x + self.log1p(-(1 + x) * self.exp(-x)), near)

    def log_add_exp(self, x: Any, y: Any) -> Enclosure:
        """log(e^x + e^y)."""
        return self.maximum(x, y) + self.log1p_exp(-abs(_lift(x) - y))

    def log1p_exp(self, x: Any) -> Enclosure:
        """Return log(1 + e^x).

        A factor c >= 1 of e^x is at most a factor c of the result, and x is a summand at most.
        """
        x = _lift(x)
        mid = np.logaddexp(0.0, x.mid)
        # far below 0 it is less than FLOOR, however wide x is; 0 times infinity says nothing, and the other bound holds
        moved = np.where(x.mid + x.radius < _NOTHING, 0.0, np.fmin(mid * np.expm1(x.radius), x.radius))
        return _made(mid, moved + SUMMED * mid + FLOOR * (x.mid > -np.inf))

    def log_sum_exp(self, x: Enclosure) -> Enclosure:
        """Return log sum exp x over the last axis.

        The relative error of the sum is the weighted mean of the radii.
        """
        largest = np.max(x.radius, axis=-1, initial=0.0)
        return self.weighted(x.mid, largest, lambda weights: np.einsum("...j,...j->...", weights, x.radius))

    def log1p_sum_exp(self, x: Enclosure) -> Enclosure:
        return self.log1p_exp(self.log_sum_exp(x))

    def weighted(self, mid: Array, largest: Array, moved: Callable[[Array], Array]) -> Enclosure:
        """Return log sum exp x from midpoints, the largest radius and the sum of weight * radius.

        The weight of a term is e^{mid - largest mid}.
        """
        top = np.max(mid, axis=-1, keepdims=True)
        shift = np.where(np.isfinite(top), top, 0.0)
        weights = np.exp(mid - shift)
        total = np.sum(weights, axis=-1)
        count = max(mid.shape[-1], SHORT_SUM)  # one constant for all short sums: padding must not change a bound
        # the shift rounds the exponents once more, by u times their weighted mean, which is at most the log of the count
        rounding = NEAR + U * (_ADDITIONS + math.log2(count) + math.log(count))
        growth = np.where(largest <= ROUGH, 1 + ROUGH, np.where(largest <= 0.1, 1.1, UNKNOWN))
        relative = moved(weights) / total * growth + rounding
        log_total = np.log(total)
        value = shift[..., 0] + log_total
        radius = relative / (1 - relative) + NEAR * np.abs(log_total) + U * np.abs(value)
        return _made(np.where(top[..., 0] == np.inf, np.inf, value), radius)

    def log_gamma(self, x: Any) -> Enclosure:
        raise CertificateError("enclosures have no gamma functions; use balls")

    def known(self, x: Enclosure) -> Enclosure:
        """Return x with +inf in the place of NaN, which means unknown."""
        missing = np.isnan(x.mid) | np.isnan(x.radius)
        return Enclosure(np.where(missing, np.inf, x.mid), np.where(missing, 0.0, x.radius))

    def minimum(self, x: Any, y: Any) -> Enclosure:
        """Return the upper bound that ends lower."""
        x, y = _lift(x), _lift(y)
        return _chosen(x.upper() <= y.upper(), x, y)

    def maximum(self, x: Any, y: Any) -> Enclosure:
        """Return the larger midpoint with the larger radius; NaN wins."""
        x, y = _lift(x), _lift(y)
        return _made(np.maximum(x.mid, y.mid), np.maximum(x.radius, y.radius))


BOUNDED = Bounded()
"""The arithmetic of enclosures."""

UPPER = Bounded()
"""The arithmetic of enclosures, asked for upper ends only: a closed form `above` a number may replace one that costs
more."""

LOG_TWO = Enclosure(math.log(2), U)
"""log 2 with the rounding of its float."""


def _checked(on: Arithmetic) -> Arithmetic:
    return on


_checked(BOUNDED)  # the type checker compares it with the protocol
