"""The embedded store: one SQLite file on a local disk, for all processes of one host."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cumulant.errors import InputError, LedgerBroken, LedgerError
from cumulant.ledger.store import Interrupted, Statement, Store, Taken

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: writers poll, and the unique keys keep them safe all the same
    fcntl = None

_REMOTE = (
    "nfs",
    "cifs",
    "smb",
    "fuse",
    "9p",
    "afs",
    "ceph",
    "gluster",
    "lustre",
    "beegfs",
    "davfs",
    "sshfs",
    "virtiofs",
)
_PATIENCE = 60

_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE note (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE entry (account TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, "
    "request TEXT NOT NULL, hold INTEGER, body TEXT NOT NULL, state TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL, "
    "signature TEXT NOT NULL, PRIMARY KEY (account, seq), UNIQUE (account, key))",
    "CREATE UNIQUE INDEX ended ON entry (account, hold) WHERE hold IS NOT NULL",  # a hold ends once
    "CREATE INDEX held ON entry (account, seq) WHERE kind = 'hold'",
    "CREATE TRIGGER entries_stay BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END",
    "CREATE TRIGGER entries_remain BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END",
)

_FOLLOWING = (
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entry WHEN NEW.seq <> "
    "COALESCE((SELECT MAX(seq) FROM entry WHERE account = NEW.account), -1) + 1 OR (NEW.seq = 0) <> (NEW.kind = 'open') "
    "BEGIN SELECT RAISE(ABORT, 'an entry follows the newest one, and the first one opens the account'); END",
)
_OBJECT = re.compile(r"CREATE (?:UNIQUE )?(TABLE|INDEX|TRIGGER) (\w+)")


class SQLite(Store):
    """SQLite in WAL mode with synchronous=FULL: what was answered survives a crash and a power cut.

    The unique keys of the table are the safety. The file lock is only the order: whoever waits for it is woken when it is
    free, where SQLite itself would poll.
    """

    migrations = (_TABLES, _FOLLOWING)
    snapshot = "BEGIN"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        text = url.removeprefix("sqlite:///")
        if not text or "\0" in text or text.startswith(":"):
            raise InputError(
                f"url={url!r} names no file; a ledger in memory would forget: use sqlite:///relative or sqlite:////absolute"
            )
        self.path = Path(text).absolute()

    def _connect(self, create: bool) -> sqlite3.Connection:
        try:
            return self._opened(create)
        except PermissionError as error:
            raise LedgerError(f"{self.path} cannot be opened: {error}; nothing was written") from error

    def _opened(self, create: bool) -> sqlite3.Connection:
        if not create and not self.path.exists():
            raise LedgerError(
                f"there is no ledger in {self.path}; make one by: cumulant ledger create sqlite:///{self.path} NAME …"
            )
        folder = self.path.parent
        if not folder.is_dir():
            raise LedgerError(f"there is no directory {folder} for the ledger")
        kind = file_system(folder.resolve())
        if kind.startswith(_REMOTE):
            raise LedgerError(
                f"{self.path} is on a file system of type {kind}, where locks and shared memory cannot be relied upon; "
                "keep the ledger on a local disk, or use PostgreSQL"
            )
        with self._queue() if create else nullcontext():  # of parallel first opens one makes the file
            return self._ready(create)

    def _ready(self, create: bool) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                f"file:{quote(str(self.path))}?mode={'rwc' if create else 'rw'}",
                uri=True,
                isolation_level=None,
                timeout=_PATIENCE,
            )
        except sqlite3.Error as error:
            raise LedgerError(f"{self.path} cannot be opened: {error}") from error
        try:
            for setting in ("journal_mode=WAL", "synchronous=FULL", "trusted_schema=OFF"):
                found = self._run(connection, f"PRAGMA {setting}", ())
                if setting.startswith("journal") and found != [("wal",)]:
                    raise LedgerError(f"{self.path} cannot be put into WAL mode; keep the ledger on a local disk")
        except BaseException:
            connection.close()
            raise
        self._local.file = self._file()
        return connection

    def files(self) -> list[Path]:
        return [Path(f"{self.path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal", ".lock")]

    def _file(self) -> tuple[int, int] | None:
        """Which file the path names."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _outdated(self, connection: sqlite3.Connection) -> bool:
        # what is written to a file that was put away is lost: a backup that is put in its place has a new number
        return not connection.in_transaction and self._file() != self._local.file

    def _run_all(self, connection: Any, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        with self._translated():
            return [connection.execute(statement, values).fetchall() for statement, values in statements]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of the database as ours."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise Taken(f"another writer was first: {error}") from error
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise Interrupted(f"{self.path} stayed locked for {_PATIENCE} s: {error}") from error
            raise LedgerError(f"{self.path} refuses: {error}; nothing was written") from error
        except sqlite3.DatabaseError as error:
            raise LedgerBroken(
                f"{self.path} is not a ledger, or damaged: {error}; restore it and freeze its accounts"
            ) from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise InputError(f"a value cannot be stored: {error}") from error

    def _insert(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._translated():
            connection.executemany(statement, rows)

    def _has_table(self, name: str) -> bool:
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name))

    def damage(self) -> str | None:
        rows = self.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        found = {(kind.upper(), name): text for kind, name, text in rows}
        for statement in (statement for some in self.migrations[: self.schema()] for statement in some):
            made = _OBJECT.match(statement)
            assert made is not None
            kind, name = made[1], made[2]
            if found.pop((kind, name), None) != statement:
                return f"the {kind.lower()} {name} was dropped or changed"
        added = sorted(name for kind, name in found if kind == "TRIGGER")
        return f"somebody has added the trigger {added[0]}" if added else None

    @contextmanager
    def _transaction(self, accounts: Sequence[str]) -> Iterator[None]:
        connection = self.connection(create=not accounts)
        with self._queue():
            self._run(connection, "BEGIN IMMEDIATE", ())
            try:
                yield
            except BaseException:
                self._rollback(connection)
                raise
            try:
                self._run(connection, "COMMIT", ())
            except BaseException:
                self._rollback(connection)
                raise
            if self._outdated(connection):
                raise Interrupted(f"{self.path} was replaced by another file")

    def _rollback(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")

    @contextmanager
    def _queue(self) -> Iterator[None]:
        """The lock file next to the ledger; the kernel frees it when its owner dies."""
        try:
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise LedgerError(f"{self.path}.lock cannot be opened: {error}; nothing was written") from error
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_UN)  # a child that another thread forked meanwhile has a copy
            os.close(lock)


def file_system(folder: Path, table: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that a directory is on; empty where the system does not say."""
    try:
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        place = fields[4].encode().decode("unicode_escape", errors="replace")
        if (place == "/" or folder == Path(place) or Path(place) in folder.parents) and len(place) >= len(best):
            best, kind = place, after.split()[0]
    return kind
