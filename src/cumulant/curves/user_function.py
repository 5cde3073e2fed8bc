"""A curve given by the user's own function of the order."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from types import MethodType
from typing import Any

import numpy as np

from cumulant.curves.cache import user_code
from cumulant.curves.curve import Curve, Projected
from cumulant.errors import CertificateError, CumulantError, InputError, shown
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.search import SCAN

# Calls of a user's Python functions: what they raise is chained, and what they return must be a number.

_NO_NUMBERS = (str, bytes, bool, np.bool_, complex, np.complexfloating)
"""Types that float() would turn into a number, or warn about, although nobody meant one."""


def number(function: Callable[[Any], Any], at: float, subject: str) -> float:
    """Call the function at one point; an overflow is +inf, an exception becomes an InputError.

    >>> number(lambda x: x**2, 3.0, "the rdp function at order 3")
    9.0
    """
    try:
        with user_code():
            result = function(at)
    except OverflowError:
        return math.inf
    except CumulantError:
        raise
    except Exception as error:
        raise failed(subject, error) from error
    return read(result, subject)


def numbers(function: Callable[[Any], Any], points: Sequence[float], subject: str) -> list[float]:
    """Return the function's value at each point; error messages call the point x."""
    try:
        with user_code():
            result = [function(point) for point in points]
    except Exception:  # which point was it?
        return [number(function, point, f"{subject} at x={point!r}") for point in points]
    plain = all(type(value) is float for value in result)
    return result if plain else [read(v, f"{subject} at x={x!r}") for x, v in zip(points, result, strict=True)]


def read(result: Any, subject: str) -> float:
    """The one number that was returned, as a float; NaN is none."""
    try:
        if isinstance(result, _NO_NUMBERS) or np.ndim(result):
            raise TypeError(f"{type(result).__name__} is not one real number")
        value = float(result)
    except OverflowError:
        return math.inf
    except Exception as error:  # __float__ is the user's too
        raise InputError(f"{subject} returned {shown(result)}, which is not a number: {error}") from error
    if math.isnan(value):
        raise InputError(f"{subject} returned nan; return math.inf where nothing is known")
    return value


def identity(function: Callable[..., Any]) -> Hashable:
    """Return a key that is the object itself, whatever its equality and hash are.

    The key is valid for as long as somebody holds the object.

    >>> class Noise:
    ...     __hash__ = None
    ...
    ...     def rdp(self, order): ...
    >>> first, second = Noise(), Noise()
    >>> identity(first.rdp) == identity(first.rdp), identity(first.rdp) == identity(second.rdp)
    (True, False)
    """
    if isinstance(function, MethodType):  # a new one is made each time that it is looked up
        return id(function.__self__), id(function.__func__)
    return id(function)


def failed(subject: str, error: Exception) -> InputError:
    """Return the error for a function that raised."""
    return InputError(f"{subject} raised {type(error).__name__}: {error}; mend it, or return math.inf there")


SEARCH_BITS = 64
"""Bits of the balls with which a user's function is tried."""

_FIRST_ORDER = math.nextafter(1.0, 2.0)
"""The divergence grows with the order, so that this one stands for those that no float tells from 1."""

NOISE = 1e-9
"""Relative amount by which the rounding of an honest function may make it fall; convention."""

CANCELLED = 1e-14
"""Amount by which rounding may make the logarithm of its moment fall; convention."""


class NotABall(CertificateError):
    """Raised if a user's function does not answer a ball by a ball; answers are then estimated."""


@dataclass(frozen=True, slots=True)
class Function(Curve):
    """rdp(order) by a Python function that is asked one finite order > 1 at a time.

    Its values are believed.

    It must be what it claims to be: a Rényi divergence never falls with the order, so a function that does is an InputError,
    unless it `may_fall` because it only bounds one from above.
    Infinity means unknown, and so does an overflow. KL is at most the divergence at any order, so an unknown one is taken at
    order 3/2. Certificates ask it with balls; where it answers with anything else they raise NotABall.
    """

    function: Callable[[Any], Any]
    known_kl: Fraction | None = None
    known_pure: Fraction | None = None
    may_fall: bool = False
    _values: dict[float, float] = field(default_factory=dict, compare=False, repr=False)
    _orders: list[float] = field(default_factory=list, compare=False, repr=False)

    estimated = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            return np.array([self._enclosed(point, on) for point in lam], dtype=object)
        value = lam * np.array([self._at(x + 1) for x in lam.tolist()])
        return np.minimum(value, lam * self.pure())

    def _enclosed(self, lam: Any, on: Arithmetic) -> Scalar:
        if on is not BALLS:
            raise CertificateError("a Python function is asked with floats and with balls only")
        order = Fraction(lam) + 1
        value = answered(self.function, order)
        if order not in self._values and value.rad() <= NOISE * abs(value.mid()):
            self._keep(max(float(order), _FIRST_ORDER), float(value))
        return on.number(lam) * on.minimum(value, self.pure(on))

    def _at(self, order: float) -> float:
        order = max(order, _FIRST_ORDER)
        if order not in self._values:
            value = self._float(order)
            if value < 0:
                raise InputError(f"the rdp function returned {value} at order {order}; a divergence is never negative")
            self._keep(order, value)
        return self._values[order]

    def _float(self, order: float) -> float:
        try:
            return number(self.function, order, f"the rdp function at order {order}")
        except InputError as error:
            if not isinstance(error.__cause__, AttributeError):
                raise
            with BALLS.at(SEARCH_BITS):  # it may be written for balls alone: x.log() instead of log(x)
                try:
                    return float(answered(self.function, Fraction(order)).upper())
                except NotABall:
                    raise error from error.__cause__

    def _keep(self, order: float, value: float) -> None:
        """Remember a value unless it lies below one at a smaller order by more than rounding."""
        self._values[order] = value
        if self.may_fall or not math.isfinite(value):
            return
        place = bisect_left(self._orders, order)
        self._orders.insert(place, order)
        for low, high in pairwise(self._orders[max(place - 1, 0) : place + 2]):
            before, after = self._values[low], self._values[high]
            # the logarithm of a moment that is nearly 1 cancels, and is then divided by order - 1
            if before - after > NOISE * before + CANCELLED / (low - 1):
                raise InputError(
                    f"the rdp function falls from {before} at order {low} to {after} at order {high}; a Rényi "
                    "divergence never falls with the order. If these are bounds, add upper_bound=True"
                )

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        value = self._order_one(on) if self.known_kl is None else on.number(self.known_kl)
        return on.minimum(value, self.pure(on))

    def _order_one(self, on: Arithmetic) -> Scalar:
        half = Fraction(1, 2)
        return self._enclosed(half, on) / on.number(half) if on.exact else self._at(1.5)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf if self.known_pure is None else self.known_pure)


@dataclass(frozen=True, slots=True)
class ProjectedFunction(Projected):
    """A user's function below its chords (Proposition 35).

    Bounds with kinks are no cumulant generating functions.

    Every order may be the end of a chord, so the function is also asked at orders that nobody asked about. Where it raises it
    is not made for them, and they are left out; what no divergence can be is refused there as everywhere.
    """

    def _corners(self) -> tuple[Array, Array]:
        if not self._hull:
            self._keep_hull(np.array([self._there(lam) for lam in SCAN.tolist()]))
        return self._hull[0]

    def _there(self, lam: float) -> float:
        try:
            return float(self.curve.cgf(np.array([lam]))[0])
        except InputError as error:
            if error.__cause__ is None:  # nobody's exception: the function is not what it claims to be
                raise
            return math.inf

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if lam.size and float(lam.min()) <= SCAN[-1]:
            self._corners()
        return Projected._cgf(self, lam, on)


def accepts_balls(function: Callable[[Any], Any]) -> bool:
    """True if the function answers the ball of order 2 by a ball.

    None of its steps may leave ball arithmetic.

    >>> accepts_balls(lambda order: order / 18), accepts_balls(lambda order: order * math.exp(-order))
    (True, False)
    """
    try:
        with BALLS.at(SEARCH_BITS):
            answered(function, Fraction(2))
    except CertificateError:
        return False
    return True


def answered(function: Callable[[Any], Any], order: Fraction) -> Scalar:
    """Return the function's value at this exact order as a ball; +inf if it returns NaN."""
    import flint

    try:
        with user_code():
            value = function(_strict_ball()(BALLS.number(order)))
    except Exception as error:  # whatever the user's code raises, it is not an answer
        raise NotABall(f"the rdp function did not accept a ball at order {order}: {error}") from error
    if not isinstance(value, flint.arb):
        raise NotABall(f"the rdp function answered a ball at order {order} by {type(value).__name__}")
    if value < 0:
        raise InputError(f"the rdp function returned {value} at order {order}; a divergence is never negative")
    return BALLS.number(math.inf) if value.is_nan() else flint.arb(value)


@lru_cache(maxsize=1)
def _strict_ball() -> Any:
    """Return a ball that cannot be turned into a float.

    Without this `math.log(ball)` would drop the radius silently.
    """
    import flint

    def refused(self: Any) -> float:
        raise TypeError("a ball is not a float; use its own methods, or numpy's functions, instead of math's")

    def strict(name: str) -> Callable[..., Any]:
        method = getattr(flint.arb, name)

        def call(*arguments: Any) -> Any:
            value = method(*arguments)
            return Strict(value) if isinstance(value, flint.arb) else value

        return call

    operations = [f"__{side}{name}__" for side in ("", "r") for name in ("add", "sub", "mul", "truediv", "pow")]
    methods = [name for name in dir(flint.arb) if not name.startswith("_") and callable(getattr(flint.arb, name))]
    names = (*operations, "__neg__", "__pos__", "__abs__", *methods)
    body = {name: strict(name) for name in names}
    Strict: Any = type("Strict", (flint.arb,), {**body, "__float__": refused, "__slots__": ()})
    return Strict
