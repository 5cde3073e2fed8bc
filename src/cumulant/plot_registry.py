"""The registry of functions that draw runs and sweeps.

A drawing module knows the drawn classes, and not the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

D = TypeVar("D", bound=Callable[..., Any])

_DRAWERS: dict[str, Callable[..., Any]] = {}


def drawer(of: str) -> Callable[[D], D]:
    """Make a function the one that draws this kind of thing."""

    def register(function: D) -> D:
        _DRAWERS[of] = function
        return function

    return register


def drawn(of: str, *asked: Any) -> Any:
    """Draw a picture of a thing of this kind."""
    return _DRAWERS[of](*asked)
