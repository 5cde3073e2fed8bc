"""The store of entries: the interface of a database, and the statements that both share."""

from __future__ import annotations

import os
import re
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cumulant.errors import InputError, LedgerBroken, LedgerError, shown
from cumulant.ledger.entry import COLUMNS, Entry
from cumulant.ledger.password import without_password

SCHEMA = 2
"""The version that this library writes; it reads this one and all before it."""

_FIELDS = ", ".join(COLUMNS)
_MARKS = ", ".join("?" for _ in COLUMNS)
_NEWEST = (
    f"SELECT {_FIELDS}, (SELECT 1 FROM meta WHERE name = ?), (SELECT hash FROM entry WHERE account = ? AND seq = ?) "
    "FROM entry WHERE account = ? ORDER BY seq DESC LIMIT 1"
)
_PAGE = 1000
"""Rows that one statement reads; a bound of memory."""

_FEW = 500
"""Keys that one statement looks for; derived: SQLite may allow only 999 parameters."""

_BEYOND = 2**63 - 1
"""The largest number that both databases can hold."""
_LOWEST = -(2**63)
"""The smallest number that both databases can hold; no writer writes one below zero."""
_VERSION = re.compile(r"[1-9][0-9]{0,8}")

Statement = tuple[str, Sequence[Any]]
"""Its text, with ? for each value, and the values."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The newest entry of an account and what a writer needs besides.

    Whether the account was imported and not yet released for use, the hash of an earlier entry, and the keys that are
    taken.
    """

    last: Entry | None
    imported: bool
    earlier: str | None
    taken: dict[str, Entry]


class UnknownOutcome(LedgerError):
    """Raised when the end of a transaction is unknown.

    The caller makes the same request again, with the same key.
    """


class WriteConflict(UnknownOutcome):
    """Raised when a key, a number or a hold is taken: another writer was first."""


class LockTimeout(LedgerError):
    """Raised when somebody else has held the lock for too long; nothing was written."""


class _OwnedConnection:
    """A connection that is closed at the end of its thread, or with its store.

    After a fork the child has a copy, which must not be closed: that would end the connection of the parent.
    """

    def __init__(self, connection: Any) -> None:
        self.connection, self.process = connection, os.getpid()
        weakref.finalize(self, _close, connection, self.process)


_ABANDONED: list[Any] = []
"""Connections of a parent process."""


def _close(connection: Any, process: int) -> None:
    if process != os.getpid():
        _ABANDONED.append(connection)
        return
    with suppress(Exception):  # it may be broken already
        connection.close()


class Store(ABC):
    """One database.

    A connection belongs to one process and one thread; after a fork there is a new one.
    """

    migrations: tuple[tuple[str, ...], ...]
    """The statements that lead from each version of the schema to the next."""
    snapshot: str
    """Begins a transaction that reads one moment."""

    def __init__(self, url: str, group: bool = False) -> None:
        self.url, self.group = url, group
        self._operation: Callable[[], AbstractContextManager[None]] = (
            nullcontext  # opens a block that uses a connection
        )
        self._local = threading.local()

    # ---- what a database does in its own way

    @abstractmethod
    def _connect(self, create: bool) -> Any:
        """Return a connection that is checked and ready; LedgerError where there is none."""

    @abstractmethod
    def _run_all(self, connection: Any, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Run the statements in this order and return the rows of each; errors become ours."""

    @abstractmethod
    def _insert(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of the rows, at the end of the transaction at the latest."""

    @abstractmethod
    def _transaction(self, accounts: Sequence[str]) -> AbstractContextManager[None]:
        """Open a transaction that nobody else has on these accounts.

        All of it is durable when it ends, or none of it.
        """

    @abstractmethod
    def _rollback(self, connection: Any) -> None:
        """Roll back the transaction of a connection, if it has one."""

    @abstractmethod
    def _has_table(self, name: str) -> bool:
        """Check that there is a table of this name."""

    @abstractmethod
    def damage(self) -> str | None:
        """Name the protection of the tables that was dropped, disabled or added; None if intact."""

    def hides_rows(self) -> bool:
        """Check that the database may keep entries from this reader."""
        return False

    def _is_outdated(self, connection: Any) -> bool:
        """Check that the address now leads elsewhere than when this connection was made."""
        return False

    def files(self) -> list[Path]:
        """Return the files of the database, where it has files of its own."""
        return []

    def now(self) -> datetime:
        """Return the time of the database."""
        return datetime.now(UTC)

    def grant(self, kind: str, role: str) -> None:
        """Give a role of the database the rights of a spender or an auditor, where it has roles."""
        raise InputError("roles belong to PostgreSQL; a SQLite file has the rights of its directory")

    # ---- connections

    def connection(self, create: bool = False) -> Any:
        """Return the connection of this process and thread."""
        with self._operation():
            owned: _OwnedConnection | None = getattr(self._local, "owned", None)
            if owned is None or owned.process != os.getpid() or self._is_outdated(owned.connection):
                self._local.owned = owned = _OwnedConnection(self._connect(create))
                try:
                    self._check_schema(create)
                except BaseException:
                    self.forget()
                    raise
            return owned.connection

    def forget(self) -> None:
        """Drop the connection of this thread; the next statement opens another."""
        self._local.owned = None

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, with ? for each value."""
        return self._ask([(statement, values)])[0]

    def _ask(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each statement.

        A question outside of a transaction is asked again if its connection was cut while it was idle.
        """
        with self._operation():
            try:
                return self._run_all(self.connection(), statements)
            except UnknownOutcome:
                if getattr(self._local, "within", False):
                    raise
                self.forget()
                return self._run_all(self.connection(), statements)

    @contextmanager
    def transaction(self, accounts: Sequence[str]) -> Iterator[None]:
        """Open a transaction that nobody else has on these accounts.

        All of it is durable when it ends, or none of it.
        """
        self._local.within = None  # a signal may have kept an earlier block from being entered; blocks are never nested
        if accounts:
            self._check_writable()
        with self._operation(), self._transaction(accounts), self._within():
            if not accounts:
                self._check_writable()
            yield

    @contextmanager
    def _within(self) -> Iterator[None]:
        self._local.within = block = object()
        try:
            yield
        finally:
            if self._local.within is block:  # an abandoned block may end while another one is open
                self._local.within = None

    def _run(self, connection: Any, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._run_all(connection, [(statement, values)])[0]

    def abandon(self) -> None:
        """End what an exception from a signal, such as Ctrl-C, has left open in this thread.

        Blocks end by themselves if it comes within them, but not if it comes as they are entered or left.
        """
        self._local.within = None
        owned: _OwnedConnection | None = getattr(self._local, "owned", None)
        if owned is not None and owned.process == os.getpid():
            self._rollback(owned.connection)

    # ---- schema

    def schema(self) -> int:
        """Return the version of the schema; 0 if there is none."""
        if not self._has_table("meta"):
            return 0
        rows = self.execute("SELECT value FROM meta WHERE name = 'schema'")
        text = str(rows[0][0]) if rows else ""
        if not _VERSION.fullmatch(text):
            raise LedgerBroken(
                f"the table meta of {self.safe_url} names schema {shown(text)}, which is no version; restore that row"
            )
        return int(text)

    def _check_schema(self, create: bool) -> None:
        self._local.schema = found = self.schema()
        if 0 < found <= SCHEMA or (found == 0 and create):
            return
        if found > SCHEMA:
            raise LedgerError(
                f"the ledger has schema {found} and this library knows {SCHEMA}; use the library that wrote it, or a newer one"
            )
        if found == 0:
            raise LedgerError(f"there is no ledger in {self.safe_url}; make one by: cumulant ledger create, or upgrade")

    def _check_writable(self) -> None:
        """Raise LedgerError if the tables are of an older version.

        This library reads an older version and does not write it.
        """
        self.connection()
        if self._local.schema != SCHEMA:
            self._local.schema = self.schema()  # somebody may have upgraded it meanwhile
        if 0 < self._local.schema < SCHEMA:
            raise LedgerError(
                f"the ledger has schema {self._local.schema}, an older one that can be read and verified; "
                f"to write to it, run: cumulant ledger upgrade {self.safe_url}"
            )

    def upgrade(self) -> tuple[int, int]:
        """Bring the schema to the version of this library, under the lock.

        Returns the version before and after.
        """
        self.connection(create=True)
        with self._operation(), self._transaction([]), self._within():
            before = self.schema()
            if before > SCHEMA:
                raise LedgerError(f"the ledger has schema {before} and this library knows {SCHEMA}; use a newer one")
            for number, statements in enumerate(self.migrations[before:], before + 1):
                for statement in statements:
                    self.execute(statement)
                self.execute("DELETE FROM meta WHERE name = 'schema'")
                self.execute("INSERT INTO meta (name, value) VALUES ('schema', ?)", str(number))
        self._local.schema = self.schema()
        return before, self._local.schema

    @property
    def safe_url(self) -> str:
        """Return the address without its password."""
        return without_password(self.url)

    # ---- entries

    def names(self) -> list[str]:
        """Return every account, sorted."""
        return sorted(str(name) for (name,) in self.execute("SELECT account FROM entry WHERE seq = 0"))

    def accounts_with_entries(self) -> list[str]:
        """Return every account that has any entry, also one whose first entry was removed."""
        return sorted(str(name) for (name,) in self.execute("SELECT DISTINCT account FROM entry"))

    def read_standing(self, account: str, earlier: int, keys: Sequence[str] = ()) -> Standing:
        """Return the standing of an account, an earlier hash and the keys that are taken.

        A writer asks for these under its lock, in one journey.
        """
        some = [keys[start : start + _FEW] for start in range(0, len(keys), _FEW)]
        newest, *taken = self._ask(
            [
                (_NEWEST, (import_mark(account), account, earlier, account)),
                *(
                    (
                        f"SELECT {_FIELDS} FROM entry WHERE account = ? AND key IN ({', '.join('?' * len(few))})",
                        (account, *few),
                    )
                    for few in some
                ),
            ],
        )
        found = {entry.key: entry for rows in taken for entry in map(Entry.from_row, rows)}
        if not newest:
            return Standing(None, False, None, found)
        *last, copied, digest = newest[0]
        return Standing(Entry.from_row(last), copied is not None, digest, found)

    def entry_at(self, account: str, seq: int) -> Entry | None:
        """Return one entry."""
        return self._one("account = ? AND seq = ?", account, seq)

    def by_key(self, account: str, key: str) -> Entry | None:
        """Return the entry with this key."""
        return self._one("account = ? AND key = ?", account, key)

    def end_of_hold(self, account: str, hold: int) -> Entry | None:
        """Return the entry that ended a hold."""
        return self._one("account = ? AND hold = ?", account, hold)

    def end_in_rows(self, account: str, hold: int) -> Entry | None:
        """Return the entry that ended a hold, from the rows after it and not from the index of ended holds."""
        return self._one("account = ? AND seq > ? AND coalesce(hold, -1) = ?", account, hold, hold)

    def places(self, account: str, column: str, values: Sequence[Any]) -> dict[Any, int]:
        """Return the numbers of the entries that the database finds by their "key" or their "hold"."""
        found: dict[Any, int] = {}
        for start in range(0, len(values), _FEW):
            few = values[start : start + _FEW]
            marks = ", ".join("?" * len(few))
            rows = self.execute(
                f"SELECT {column}, seq FROM entry WHERE account = ? AND {column} IN ({marks})", account, *few
            )
            found.update(rows)
        return found

    def _one(self, condition: str, *values: Any) -> Entry | None:
        rows = self.execute(f"SELECT {_FIELDS} FROM entry WHERE {condition}", *values)
        return Entry.from_row(rows[0]) if rows else None

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries, within a transaction."""
        statement = f"INSERT INTO entry ({_FIELDS}) VALUES ({_MARKS})"
        rows = [[getattr(entry, column) for column in COLUMNS] for entry in entries]
        if rows:
            self._insert(self.connection(), statement, rows)

    def scan(self, account: str, start: int = _LOWEST) -> Iterator[Entry]:
        """Yield the entries of an account in order, a page at a time, also those with a forged number below zero.

        Entries that are written meanwhile may or may not be there.
        """
        first = start
        while True:
            rows = self.execute(
                f"SELECT {_FIELDS} FROM entry WHERE account = ? AND seq >= ? ORDER BY seq LIMIT {_PAGE}", account, first
            )
            yield from map(Entry.from_row, rows)
            if len(rows) < _PAGE or rows[-1][1] == _BEYOND:
                return
            first = rows[-1][1] + 1

    def scan_back(self, account: str, before: int | None = None) -> Iterator[Entry]:
        """Yield the entries of an account below a number, newest first, a page at a time."""
        last = _BEYOND if before is None else before
        while True:
            rows = self.execute(
                f"SELECT {_FIELDS} FROM entry WHERE account = ? AND seq < ? ORDER BY seq DESC LIMIT {_PAGE}",
                account,
                last,
            )
            yield from map(Entry.from_row, rows)
            if len(rows) < _PAGE:
                return
            last = rows[-1][1]

    def holds(self, account: str) -> list[Entry]:
        """Return the holds that were neither settled nor released."""
        rows = self.execute(
            f"SELECT {_FIELDS} FROM entry AS held WHERE account = ? AND kind = 'hold' AND NOT EXISTS "
            "(SELECT 1 FROM entry AS ended WHERE ended.account = held.account AND ended.hold = held.seq) ORDER BY seq",
            account,
        )
        return [Entry.from_row(row) for row in rows]

    # ---- what is outside of the chain

    def mark(self, name: str, value: str | None) -> None:
        """Set a name in the table `meta`, or remove it."""
        self.execute("DELETE FROM meta WHERE name = ?", name)
        if value is not None:
            self.execute("INSERT INTO meta (name, value) VALUES (?, ?)", name, value)

    def note(self, digest: str) -> str | None:
        """Return the text of a note, unless it was erased."""
        rows = self.execute("SELECT text FROM note WHERE digest = ?", digest)
        return str(rows[0][0]) if rows else None

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield every note that was not erased, a page at a time."""
        last = ""
        while True:
            rows = self.execute(f"SELECT digest, text FROM note WHERE digest > ? ORDER BY digest LIMIT {_PAGE}", last)
            yield from ((str(digest), str(text)) for digest, text in rows)
            if len(rows) < _PAGE:
                return
            last = rows[-1][0]

    def keep_note(self, digest: str, text: str) -> None:
        """Store a note."""
        self.execute("INSERT INTO note (digest, text) VALUES (?, ?)", digest, text)

    def erase_note(self, digest: str) -> None:
        """Delete a note; the chain keeps its salted digest, from which nothing can be learnt."""
        self.execute("DELETE FROM note WHERE digest = ?", digest)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one moment of the ledger throughout the block."""
        self._local.within = None
        with self._operation():
            connection = self.connection()
            try:  # an exception from a signal may come as soon as the transaction has begun
                self.execute(self.snapshot)
                with self._within():
                    connection = self.connection()  # another one, if the first was cut while it was idle
                    yield
            except UnknownOutcome:
                self.forget()
                raise
            finally:
                self._rollback(connection)


def import_mark(account: str) -> str:
    """Return the name in `meta` that marks an account as a copy which nobody may use yet."""
    return f"imported:{account}"
