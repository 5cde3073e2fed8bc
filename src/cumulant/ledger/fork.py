"""Forks of a process that has SQLite files open.

SQLite keeps its locks in the memory of the process, and the system gives a child none of them. A child that opens the file
again finds them there and takes none, so that others delete what it has written when they close the file. So every connection
is closed before a fork, and both sides open the file anew.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cumulant.errors import LedgerError

_PATIENCE = 5.0
"""Seconds that a fork waits for other threads; convention: far above the 0.01 s of a spend, and nobody takes it for a hang."""


class SQLiteConnection(sqlite3.Connection):
    """A connection that the thread which opened it uses, and any thread may close before a fork."""

    thread: int = 0
    was_closed: bool = False


class ForkGate:
    """Lets operations on SQLite pass, and closes all connections before a fork."""

    def __init__(self) -> None:
        # Ctrl-C never breaks off the `with` of a lock of the interpreter half-way, but it may break off that of a Condition
        self._guard = threading.RLock()
        self._changed = threading.Condition(self._guard)
        self._inside: dict[object, int] = {}  # the thread of each block; to end one twice does no harm
        self._forks = 0
        self._open: weakref.WeakSet[SQLiteConnection] = weakref.WeakSet()
        self._left_open = False
        self._inherited = False

    @contextmanager
    def operation(self) -> Iterator[None]:
        """Keep connections open through the block; wait while another thread forks.

        LedgerError in a child whose parent had a SQLite file in use when it forked.
        """
        if self._inherited:
            raise LedgerError(
                "this process was forked while a ledger was read or written; fork outside of such blocks, or start the process "
                "by the method spawn or forkserver; nothing was written"
            )
        block, me = object(), threading.get_ident()
        try:
            with self._guard:
                while self._forks and me not in self._inside.values():
                    self._changed.wait()
                self._inside[block] = me
            yield
        finally:
            with self._guard:
                self._inside.pop(block, None)  # a child that was forked within the block begins with none
                self._changed.notify_all()

    def _threads(self) -> set[int]:
        """Return the threads that are in operations."""
        return set(self._inside.values())

    def leave(self) -> None:
        """Forget the operations of this thread, which an exception from a signal has broken off."""
        me = threading.get_ident()
        with self._guard:
            for block in [each for each, thread in self._inside.items() if thread == me]:
                self._inside.pop(block, None)
            self._changed.notify_all()

    def add(self, connection: SQLiteConnection) -> None:
        """Remember a connection of this thread."""
        connection.thread = threading.get_ident()
        with self._guard:
            self._open.add(connection)

    def before_fork(self) -> None:
        """Wait until no other thread is in an operation, then close every connection."""
        me = threading.get_ident()
        with self._guard:
            self._forks += 1
            self._left_open = True  # also if an exception from a signal ends this method early
            self._changed.wait_for(lambda: not self._threads() - {me}, _PATIENCE)
            inside = self._threads()
            for connection in list(self._open):
                if connection.thread in inside:
                    continue
                connection.was_closed = True
                with suppress(sqlite3.Error):
                    connection.close()
                self._open.discard(connection)
            # (a thread inside may also be opening a connection that is not remembered yet)
            self._left_open = bool(inside)

    def after_fork_in_parent(self) -> None:
        """Let operations pass again."""
        with self._guard:
            self._forks -= 1
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Begin anew: the other threads are gone, whatever they held."""
        inherited = self._inherited or self._left_open
        self.__init__()  # type: ignore[misc]
        self._inherited = inherited


GATE = ForkGate()
"""The gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GATE.before_fork,
        after_in_parent=GATE.after_fork_in_parent,
        after_in_child=GATE.after_fork_in_child,
    )
