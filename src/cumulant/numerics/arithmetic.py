"""The two arithmetics: float64 arrays, and object arrays of balls (python-flint's arb).

A formula takes the arithmetic as its argument `on` and is written once, so that a certificate cannot drift from the
fast path. Inputs are float64 arrays for `FLOATS` and object arrays of exact numbers for `BALLS`; `on.asarray` turns
either into what the formula computes with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property
from operator import methodcaller
from typing import Any, Protocol

import numpy as np

from cumulant.errors import CertificateError
from cumulant.lock import Lock
from cumulant.numerics.lazy_scipy import special

Array = Any
"""A float64 array or an object array of balls: numpy's types cannot say which, so the checker is not asked."""
Scalar = Any

_HUGE = 2**20
"""Past it balls take e^x out of a logarithm: somewhere further out e^x has no ball."""


class Arithmetic(Protocol):
    """The functions that a formula may use besides + - * /."""

    exact: bool
    enclosing: bool

    def precision(self) -> int: ...
    def number(self, value: Fraction | int | float) -> Scalar: ...
    def asarray(self, values: Any) -> Array: ...
    def exp(self, x: Any) -> Any: ...
    def log(self, x: Any) -> Any: ...
    def expm1(self, x: Any) -> Any: ...
    def log1p(self, x: Any) -> Any: ...
    def tanh(self, x: Any) -> Any: ...
    def excess(self, x: Any) -> Any: ...
    def log_expm1(self, x: Any) -> Any: ...
    def log_cosh(self, x: Any) -> Any: ...
    def log1p_exp(self, x: Any) -> Any: ...
    def log1p_sum_exp(self, x: Array) -> Any: ...
    def log_sum_exp(self, x: Array) -> Any: ...
    def log_add_exp(self, x: Any, y: Any) -> Any: ...
    def log_gamma(self, x: Any) -> Any: ...
    def known(self, x: Any) -> Any: ...
    def minimum(self, x: Any, y: Any) -> Any: ...
    def maximum(self, x: Any, y: Any) -> Any: ...


LEAST_SHARE = -700.0
"""Logarithm of the share of a sum that stands for all smaller ones; e^-700 of a sum is far below its last bit.
e^-708 is the last normal float, and e^x beyond it takes numpy seven times as long (measured on a million numbers)."""


class Floats:
    """float64 arrays; each function keeps full relative accuracy over its whole range."""

    exact = False
    enclosing = False

    def precision(self) -> int:
        return 53

    def number(self, value: Fraction | int | float) -> float:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    def asarray(self, values: Any) -> Array:
        return np.asarray(values, dtype=np.float64)

    exp = staticmethod(np.exp)
    log = staticmethod(np.log)
    expm1 = staticmethod(np.expm1)
    log1p = staticmethod(np.log1p)
    tanh = staticmethod(np.tanh)
    log_add_exp = staticmethod(np.logaddexp)
    minimum = staticmethod(np.fmin)  # NaN is unknown, so the other bound stands
    maximum = staticmethod(np.maximum)

    def log_gamma(self, x: Any) -> Any:
        return special.gammaln(x)

    def known(self, x: Any) -> Any:
        """Return x with +inf in the place of NaN, which means unknown."""
        return np.where(np.isnan(x), np.inf, x)

    def log_sum_exp(self, x: Array) -> Any:
        """log sum exp x over the last axis; -inf for an empty or vanishing sum.

        >>> float(np.exp(FLOATS.log_sum_exp(np.log([1.0, 2.0, 3.0]))))
        6.0
        """
        top = np.max(x, axis=-1, keepdims=True, initial=-np.inf)
        finite = np.isfinite(top)
        shift = np.where(finite, top, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            parts = x - shift
            np.maximum(parts, np.where(finite, LEAST_SHARE, -np.inf), out=parts)
            return (shift[..., 0] + np.log(np.sum(np.exp(parts, out=parts), axis=-1)))[()]

    def excess(self, x: Any) -> Any:
        """e^x - 1 - x, without cancellation."""
        x = np.asarray(x, dtype=np.float64)
        near, value = np.abs(x) < 1, np.asarray(np.expm1(x) - x)
        small = x[near]
        series = np.zeros_like(small)
        for n in range(20, 1, -1):  # Horner: x^2/2! + ... + x^20/20!, the rest is below 2^-60 of it
            series *= small
            series += 1.0
            series /= n
        value[near] = small * small * series
        return value

    def log_expm1(self, x: Any) -> Any:
        """log(e^x - 1) for x >= 0; -inf at 0."""
        with np.errstate(divide="ignore"):
            near = np.log(np.expm1(np.minimum(x, 1.0)))
            return np.where(np.less(x, 1.0), near, x + np.log1p(-np.exp(-np.asarray(x))))

    def log_cosh(self, x: Any) -> Any:
        x = np.abs(x)
        small = np.sinh(np.minimum(x, 1.0) / 2)
        return np.where(x < 1, np.log1p(2 * small * small), x + np.log1p(np.exp(-2 * x)) - math.log(2))

    def log1p_exp(self, x: Any) -> Any:
        """log(1 + e^x), also where e^x is below the spacing of 1 or overflows."""
        return np.logaddexp(0.0, x)

    def log1p_sum_exp(self, x: Array) -> Any:
        """Return log(1 + sum exp x) over the last axis.

        The 1 stays outside the sum: inside, small sums would vanish (E-19).
        """
        return np.logaddexp(0.0, self.log_sum_exp(x))


class Balls:
    """Object arrays of arb: every result is an interval that contains the exact value.

    The working precision belongs to the process, so a computation holds the lock: `with BALLS.at(bits): ...`.
    """

    exact = True
    enclosing = False

    def __init__(self) -> None:
        self._lock = Lock()

    @cached_property
    def _flint(self) -> Any:
        import flint

        return flint

    @contextmanager
    def at(self, bits: int) -> Iterator[None]:
        """Hold the lock and compute with this many bits."""
        with self._lock.inner, self._flint.ctx.workprec(bits):
            yield

    def precision(self) -> int:
        """The working precision in bits."""
        return int(self._flint.ctx.prec)

    def number(self, value: Fraction | int | float) -> Any:
        flint = self._flint
        if isinstance(value, flint.arb):
            return value
        if isinstance(value, int | float):
            return flint.arb(value)
        return flint.arb(flint.fmpq(value.numerator, value.denominator))

    def asarray(self, values: Any) -> Array:
        if isinstance(values, np.ndarray):
            return self._map(self.number)(values) if values.size else values.astype(object)
        if isinstance(values, Iterable):
            return self.asarray(np.array(list(values), dtype=object))
        return self.asarray(np.array(values, dtype=object))

    @staticmethod
    def _map(function: Callable[[Any], Any]) -> Any:
        return np.frompyfunc(function, 1, 1)

    def exp(self, x: Any) -> Any:
        return self._map(methodcaller("exp"))(x)

    def log(self, x: Any) -> Any:
        return self._map(methodcaller("log"))(x)

    def expm1(self, x: Any) -> Any:
        return self._map(methodcaller("expm1"))(x)

    def log1p(self, x: Any) -> Any:
        return self._map(methodcaller("log1p"))(x)

    def tanh(self, x: Any) -> Any:
        return self._map(methodcaller("tanh"))(x)

    def excess(self, x: Any) -> Any:
        return self._map(lambda v: v.expm1() - v)(x)

    def log_expm1(self, x: Any) -> Any:
        return self._map(lambda v: v + (-(-v).exp()).log1p() if v > _HUGE else v.expm1().log())(x)

    def log_cosh(self, x: Any) -> Any:
        two = self.number(2)
        return self._map(lambda v: v + (-2 * v).exp().log1p() - two.log() if v > _HUGE else v.cosh().log())(x)

    def log1p_exp(self, x: Any) -> Any:
        return self._map(lambda v: v + (-v).exp().log1p() if v > _HUGE else v.exp().log1p())(x)

    def log1p_sum_exp(self, x: Array) -> Any:
        return self._map(methodcaller("log1p"))(np.sum(self.exp(x), axis=-1))

    def log_sum_exp(self, x: Array) -> Any:
        return self.log(np.sum(self.exp(x), axis=-1))

    def log_add_exp(self, x: Any, y: Any) -> Any:
        return x + np.frompyfunc(lambda u, v: (v - u).exp().log1p(), 2, 1)(x, y)

    def log_gamma(self, x: Any) -> Any:
        return self._map(lambda v: self.number(v).lgamma())(x)

    def known(self, x: Any) -> Any:
        return self._map(lambda v: self.number(math.inf) if v.is_nan() else v)(x)

    def maximum(self, x: Any, y: Any) -> Any:
        """Return the ball that ends higher: an upper bound of the larger value; NaN wins."""
        return np.frompyfunc(lambda u, v: u if u.is_nan() or u.upper() >= v.upper() else v, 2, 1)(x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        """Return the ball that ends lower: of two upper bounds either is one."""
        return np.frompyfunc(_lower_ball, 2, 1)(x, y)


def _lower_ball(u: Any, v: Any) -> Any:
    if u.is_nan():
        return v
    return u if v.is_nan() or u.upper() <= v.upper() else v


class Rationals(Balls):
    """Exact fractions, for numbers that are rational or infinite.

    Every function but minimum and maximum raises.
    """

    def precision(self) -> int:
        return 0

    def number(self, value: Fraction | int | float) -> Any:
        return value if isinstance(value, float) and math.isinf(value) else Fraction(value)

    @staticmethod
    def _map(function: Callable[[Any], Any]) -> Any:
        raise CertificateError("this number is not rational")

    def known(self, x: Any) -> Any:
        return x

    def maximum(self, x: Any, y: Any) -> Any:
        return max(x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        return min(x, y)


FAR = 2.0**16
"""Argument beyond which erfc is taken from its asymptotic series; measured: from 2^18 on the library's ball has no digits."""


def ball_erfc(z: Any) -> Any:
    """Return erfc(z) as a ball, also far out, where z is not exact.

    The terms of the asymptotic series alternate, and the rest is at most the first one left out (DLMF 7.12(i)).
    """
    if not z > FAR:
        return z.erfc()
    from flint import ctx

    ball = type(z)
    number, term, count, least = ball(0), ball(1), 0, ball(2) ** -ctx.prec
    while term.abs_upper() > least:
        number += term
        count += 1
        term *= (1 - 2 * count) / (2 * z * z)
    return (-z * z).exp() / (z * ball.pi().sqrt()) * (number + ball(0, term.abs_upper()))


def root(square: Fraction) -> tuple[Fraction, Fraction]:
    """Return rational numbers just below and just above the root, about 30 digits apart.

    Both are the root itself if the square is a perfect one.

    >>> root(Fraction(9, 4)), [float(each) for each in root(Fraction(2))]
    ((Fraction(3, 2), Fraction(3, 2)), [1.4142135623730951, 1.4142135623730951])
    """
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top * top == square.numerator and bottom * bottom == square.denominator:
        return Fraction(top, bottom), Fraction(top, bottom)
    digits = max(0, 30 - (len(str(square.numerator)) - len(str(square.denominator))) // 2)
    scale = 10**digits
    root = math.isqrt(square.numerator * scale * scale // square.denominator)
    return Fraction(root, scale), Fraction(root + 1, scale)


FLOATS = Floats()
"""The arithmetic of float64 arrays."""

BALLS = Balls()
"""The arithmetic of balls."""

RATIONALS = Rationals()
"""The arithmetic of exact fractions."""
