"""Calls of a user's Python functions: what they raise is chained, and what they return must be a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from cumulant.curves.memory import user_code
from cumulant.errors import CumulantError, InputError, shown

_NO_NUMBERS = (str, bytes, bool, np.bool_, complex, np.complexfloating)
"""What float() would turn into a number, or warn about, although nobody meant one."""


def number(function: Callable[[Any], Any], at: float, subject: str) -> float:
    """What the function says here; an overflow is +inf, and whatever it raises comes out as an InputError with its cause.

    >>> number(lambda x: x**2, 3.0, "the rdp function at order 3")
    9.0
    """
    try:
        with user_code():
            said = function(at)
    except OverflowError:
        return math.inf
    except CumulantError:
        raise
    except Exception as error:
        raise failed(subject, error) from error
    return read(said, subject)


def numbers(function: Callable[[Any], Any], points: Sequence[float], subject: str) -> list[float]:
    """The same at many points, which are named x in what is said."""
    try:
        with user_code():
            said = [function(point) for point in points]
    except Exception:  # which point was it?
        return [number(function, point, f"{subject} at x={point!r}") for point in points]
    plain = all(type(value) is float for value in said)
    return said if plain else [read(v, f"{subject} at x={x!r}") for x, v in zip(points, said, strict=True)]


def read(said: Any, subject: str) -> float:
    """The one number that was returned, as a float; NaN is none."""
    try:
        if isinstance(said, _NO_NUMBERS) or np.ndim(said):
            raise TypeError(f"{type(said).__name__} is not one real number")
        value = float(said)
    except OverflowError:
        return math.inf
    except Exception as error:  # __float__ is the user's too
        raise InputError(f"{subject} returned {shown(said)}, which is not a number: {error}") from error
    if math.isnan(value):
        raise InputError(f"{subject} returned nan; return math.inf where nothing is known")
    return value


def identity(function: Callable[..., Any]) -> Hashable:
    """A key that is the object itself, whatever it says of its equality and hash; for as long as somebody holds it.

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
    """What is said of a function that raised."""
    return InputError(f"{subject} raised {type(error).__name__}: {error}; mend it, or return math.inf there")
