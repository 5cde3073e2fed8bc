"""A lock for objects that threads share: check and update are one step."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet


class Lock:
    """A re-entrant lock that a copy, a pickle and a forked process replace by a fresh one.

    A plain lock can be neither copied nor pickled. A child that is forked while another thread holds it would wait for ever.

    >>> import copy
    >>> lock = Lock()
    >>> with lock, lock:
    ...     copy.deepcopy(lock) is lock
    False
    """

    __slots__ = ("__weakref__", "inner")
    inner: Any
    """The plain lock, for who enters it many times in one answer; never kept, because a fork replaces it."""

    def __init__(self) -> None:
        self.inner = threading.RLock()
        _ALIVE.add(self)

    def __enter__(self) -> None:
        self.inner.acquire()

    def __exit__(self, *_: object) -> None:
        self.inner.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()

    def renew(self) -> None:
        """Make it free, in a process that has one thread only."""
        self.inner = threading.RLock()


_ALIVE: WeakSet[Lock] = WeakSet()
"""Every lock of this process."""


def _renew_all() -> None:
    for lock in list(_ALIVE):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
