"""The memory of values: those of data stay, those of a Python object end with a question.

Such an object may change between two questions, so nothing that was found out about it may answer the second one.
Within a question the same curve is asked many times, and it is built once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

MOST_ENTRIES = 4096
"""Values that a question remembers; a bound of memory."""


_learnt: ContextVar[dict[Hashable, Any] | None] = ContextVar("learnt", default=None)

T = TypeVar("T")
"""The type of a remembered value."""


@contextmanager
def question() -> Iterator[None]:
    """Open one question: at its end, facts about a user's object are forgotten.

    A question within it is part of it. Overflows and the like are unknown values to the library, which says so in its
    answers and not by warnings.
    """
    if _learnt.get() is not None:
        yield
        return
    token = _learnt.set({})
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _learnt.reset(token)


@contextmanager
def user_code() -> Iterator[None]:
    """Mark a call into a user's code: what that asks in turn are questions of their own.

    The code may change something before it asks.
    """
    token = _learnt.set(None)
    try:
        yield
    finally:
        _learnt.reset(token)


def once(key: Hashable, value: Callable[[], T]) -> T:
    """Return the value, computed once in a question; outside of one it is computed each time.

    >>> numbers = iter([1, 2, 3])
    >>> with question():
    ...     once("key", lambda: next(numbers)), once("key", lambda: next(numbers))
    (1, 1)
    >>> once("key", lambda: next(numbers)), once("key", lambda: next(numbers))
    (2, 3)
    """
    memory = _learnt.get()
    return value() if memory is None else recall(memory, key, value, MOST_ENTRIES)


def recall(memory: dict[Hashable, Any], key: Hashable, value: Callable[[], T], most: int) -> T:
    """Return the remembered value, or compute and remember it.

    Another thread may empty the memory at any moment.
    """
    found: T | None = memory.get(key)
    if found is None:
        found = value()
        if len(memory) >= most:
            memory.clear()
        memory[key] = found
    return found
