"""A lock for objects that threads share: check and update are one step."""

from __future__ import annotations

import os
import threading
import time
from importlib import _bootstrap
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


_PATIENCE = 5.0
"""Seconds that a fork waits for imports of other threads; convention, as for ledgers: an import takes a second."""
_PAUSE = 0.001
"""Seconds between two looks; convention: far below the time of an import."""


_OUTLASTED: set[tuple[str, int]] = set()
"""Modules, with the thread that imports them, for which a fork has waited in vain: programs may run inside of an import."""


def _wait_for_imports() -> None:
    """Wait until no other thread imports a module: a child would wait for the lock of that module for ever.

    Modules are loaded when they are needed first, so that a thread with its first question imports for a second.
    """
    end = time.monotonic() + _PATIENCE
    while not (held := _imported_elsewhere()) <= _OUTLASTED and time.monotonic() < end:
        time.sleep(_PAUSE)
    _OUTLASTED.clear()
    _OUTLASTED.update(held)


def _imported_elsewhere() -> set[tuple[str, int]]:
    """Return the modules whose locks other threads hold, with those threads; nothing where Python does not say."""
    me = threading.get_ident()
    locks = (reference() for reference in list(getattr(_bootstrap, "_module_locks", {}).values()))
    owned = {(lock.name, lock.owner) for lock in locks if getattr(lock, "owner", None) is not None}
    return {(name, owner) for name, owner in owned if owner != me}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_child=_renew_all)
