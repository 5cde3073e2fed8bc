"""The embedded store: one SQLite file on a local disk, for all processes of one host."""

from __future__ import annotations

import io
import os
import re
import sqlite3
import stat
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cumulant.errors import InputError, LedgerBroken, LedgerError, shown
from cumulant.ledger.entry import printable
from cumulant.ledger.fork import GATE, SQLiteConnection
from cumulant.ledger.store import LockTimeout, Statement, Store, UnknownOutcome, WriteConflict

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
LOCK_SECONDS = 30.0
"""Seconds that a writer waits for its turn; convention: far above the 0.3 s that eight busy writers wait at worst."""
_LONGEST_NAME = 255 - len("-journal")
"""Bytes of the name of a file, at most; derived: file systems take 255, and SQLite adds the names of files beside it."""
_LONGEST_PATH = 512 - len("-journal")
"""Bytes of the name with its folders, at most; derived: SQLite opens no file with more than 512."""
_WRITE_LOCK = ["120", "120"]
"""The byte of -shm that a writer locks, WAL_WRITE_LOCK of SQLite; a lock for reading on it stops writers too."""
_OWNER = 0o600
"""Mode of new files for their owner alone: whoever may read a lock file may hold the lock."""
_GROUP = 0o660
"""Mode of new files for their owner and its group."""

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
_OCTAL = re.compile(r"\\([0-7]{3})")
"""A space, tab, line end or backslash in the table of mounts, which writes it as an octal number."""
_OBJECT = re.compile(r"CREATE (?:UNIQUE )?(TABLE|INDEX|TRIGGER) (\w+)")


class SQLite(Store):
    """SQLite in WAL mode with synchronous=FULL.

    An entry whose receipt was returned survives a crash and a power cut.

    The unique keys of the table are the safety. The file lock is only the order: whoever waits for it is woken when it is
    free, where SQLite itself would poll.
    """

    migrations = (_TABLES, _FOLLOWING)
    snapshot = "BEGIN"

    def __init__(self, url: str, group: bool = False) -> None:
        super().__init__(url, group)
        self._operation = GATE.operation
        text = url.removeprefix("sqlite:///")
        if not text or "\0" in text or text.startswith(":"):
            raise InputError(
                f"url={url!r} names no file; a ledger in memory would forget: use sqlite:///relative or sqlite:////absolute"
            )
        self.path = Path(text).absolute()
        try:
            str(self.path).encode("utf-8")
        except UnicodeError:
            raise InputError(f"url={shown(url)} has bytes that are not UTF-8; rename the file or its folder") from None
        self._mode = _GROUP if group else _OWNER
        self._lost = False

    def _connect(self, create: bool) -> sqlite3.Connection:
        try:
            return self._open_connection(create)
        except OSError as error:
            raise LedgerError(
                f"{self.path} cannot be opened: {error.strerror or error}; nothing was written; name another file"
            ) from error

    def _open_connection(self, create: bool) -> sqlite3.Connection:
        self._check_whole()
        if not create and not self.path.exists():
            raise LedgerError(
                f"there is no ledger in {self.path}; make one by: cumulant ledger create {self.path} NAME …"
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
        if Path(os.path.realpath(self.path)) in dict(mounts()):
            raise LedgerError(
                f"{self.path} is mounted as a single file, so others write its -wal file somewhere else and two ledgers arise; "
                "mount its directory instead, as in: docker run -v /srv/ledger:/data"
            )
        if create and not self.path.exists():
            place = os.fsencode(os.path.realpath(self.path))
            if len(os.path.basename(place)) > _LONGEST_NAME or len(place) > _LONGEST_PATH:
                raise InputError(
                    f"the name of the file is too long: SQLite takes {_LONGEST_NAME} bytes, and {_LONGEST_PATH} with its "
                    "folders; choose a shorter one"
                )
        self._file()
        with self._queue() if create else nullcontext():  # of parallel first opens one makes the file
            if create:
                self._make_file()
            return self._ready(create)

    def _make_file(self) -> None:
        """Make an empty file for its owner alone, or for its group.

        SQLite gives -wal and -shm the same mode.
        """
        with suppress(FileExistsError):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, self._mode)
            os.chmod(self.path, self._mode)  # whatever the umask is
            os.close(descriptor)

    def _read_only(self) -> bool:
        """Return True if nobody can write here.

        That is a read-only medium, or no right to write and no -wal file that waits.
        """
        with suppress(OSError, AttributeError):
            if os.statvfs(self.path.parent).f_flag & os.ST_RDONLY:
                return True
        allowed = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        return not allowed and not self._side_path("-wal").exists()

    def _ready(self, create: bool) -> sqlite3.Connection:
        # SQLite cannot read a file in WAL mode where it cannot write, unless it is told that nobody else writes either
        sealed = not create and self._read_only()
        mode = "ro&immutable=1" if sealed else "rwc" if create else "rw"
        if sealed and self._has_wal():
            raise LedgerError(
                f"{self.path}-wal holds entries that are not in {self.path.name}, and this medium is read-only; "
                "copy both files to a disk that can be written to, and verify them there"
            )
        try:
            connection = sqlite3.connect(
                f"file:{quote(str(self.path))}?mode={mode}",
                uri=True,
                isolation_level=None,
                timeout=LOCK_SECONDS,
                check_same_thread=False,  # a thread that forks closes the connections of the others
                factory=SQLiteConnection,
            )
        except sqlite3.Error as error:
            raise LedgerError(f"{self.path} cannot be opened: {error}") from error
        try:
            settings = ("journal_mode=WAL", "synchronous=FULL", "trusted_schema=OFF")
            for setting in settings[-1:] if sealed else settings:
                found = self._run(connection, f"PRAGMA {setting}", ())
                if setting.startswith("journal") and found != [("wal",)]:
                    raise LedgerError(f"{self.path} cannot be put into WAL mode; keep the ledger on a local disk")
            self._run(connection, "SELECT 1 FROM sqlite_master", ())  # from now on there are -wal and -shm
            self._local.file, self._local.beside = self._file(), self._side_file_ids()
            self._local.sealed = self._content() if sealed else None
        except BaseException:
            connection.close()
            raise
        GATE.add(connection)
        return connection

    def _has_wal(self) -> bool:
        try:
            return os.stat(self._side_path("-wal")).st_size > 0
        except OSError:
            return False

    def files(self) -> list[Path]:
        return [self._side_path(suffix) for suffix in ("", "-wal", "-shm", "-journal", ".lock")]

    def _side_path(self, suffix: str) -> Path:
        """Return the file with this suffix.

        SQLite keeps it beside the file itself, not beside a link that leads there.
        """
        return Path(os.path.realpath(self.path) + suffix)

    def _file(self) -> tuple[int, int] | None:
        """Return the device and number of the file that the path names now.

        LedgerError if the file has a second name.
        """
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise LedgerError(
                f"{self.path} is a directory, a pipe or a device; name a file, such as sqlite:///budget.db"
            )
        if found.st_nlink > 1:
            raise LedgerError(
                f"{self.path} has {found.st_nlink} names (hard links), and each name would be a ledger of its own; remove the "
                "other names, and copy a ledger by: cumulant ledger export"
            )
        return found.st_dev, found.st_ino

    def _side_file_ids(self) -> list[tuple[int, int] | None]:
        """Return the identities of the files beside it that belong to an open database."""
        found: list[tuple[int, int] | None] = []
        for suffix in ("-wal", "-shm"):
            try:
                status = os.stat(self._side_path(suffix))
                found.append((status.st_dev, status.st_ino))
            except OSError:
                found.append(None)
        return found

    def _content(self) -> tuple[int, int]:
        """Return the size of the file and the time of its last change."""
        found = os.stat(self.path)
        return found.st_size, found.st_mtime_ns

    def _is_outdated(self, connection: SQLiteConnection) -> bool:
        # what is written to a file that was put away is lost: a backup that is put in its place has a new number
        if connection.was_closed:
            return True
        if connection.in_transaction:
            if not getattr(self._local, "within", False):  # a signal came before its block was entered
                self._rollback(connection)
                return True
            if self._local.sealed not in (None, self._content()):
                raise UnknownOutcome(f"{self.path} was written to while it was read; ask again")
            return False
        if self._file() != self._local.file:
            return True
        if self._local.sealed is not None:  # SQLite was told that nobody writes: once somebody has, it must read again
            return bool(self._side_file_ids() != self._local.beside or self._content() != self._local.sealed)
        if self._side_file_ids() != self._local.beside:
            self._lost = True
        self._check_whole()
        return False

    def _check_whole(self) -> None:
        """Raise LedgerBroken in every thread once -wal or -shm was removed.

        A new connection would not see what was lost.
        """
        if self._lost:
            raise LedgerBroken(
                f"{self.path}-wal or -shm was removed while this process had the ledger open, so entries may be lost; "
                "stop every process, freeze the accounts, and run cumulant ledger verify with receipts"
            )

    def _run_all(self, connection: Any, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        with self._translate_errors():
            found = []
            for statement, values in statements:
                try:
                    found.append(connection.execute(statement, values).fetchall())
                except sqlite3.OperationalError as error:
                    if "decode" not in str(error):
                        raise
                    # damaged bytes become characters that no writer writes, so that the hash of their entry contradicts them
                    connection.text_factory = _decode_damaged
                    found.append(connection.execute(statement, values).fetchall())
            return found

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn errors of the database into ours."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise WriteConflict(f"another writer was first: {error}") from error
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise self._busy() from error
            if str(error).startswith("no such "):  # a table or column that every ledger has
                raise LedgerBroken(f"{self.path} is damaged: {error}; restore it and freeze its accounts") from error
            raise LedgerError(f"{self.path} refuses: {error}; nothing was written") from error
        except sqlite3.DatabaseError as error:
            raise LedgerBroken(
                f"{self.path} is not a ledger, or damaged: {error}; restore it and freeze its accounts"
            ) from error
        except UnicodeDecodeError as error:  # SQLite quotes the schema in a message
            raise LedgerBroken(
                f"{self.path} is damaged: its schema is no text; restore it and freeze its accounts"
            ) from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise InputError(f"a value cannot be stored: {error}") from error

    def _insert(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._translate_errors():
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
        added = sorted((kind.lower(), name) for kind, name in found if kind in ("TRIGGER", "INDEX", "VIEW"))
        if added:
            return "somebody has added the {} {}".format(*added[0])
        ((first,),) = self.execute("PRAGMA integrity_check(1)")
        if first != "ok":
            return f"the file is damaged ({printable(str(first))})"
        newer = (
            self.execute("SELECT 1 FROM entry WHERE body LIKE '%\"format\":2%' LIMIT 1") if self.schema() == 1 else []
        )
        return "the version of the tables was set back" if newer else None

    @contextmanager
    def _transaction(self, accounts: Sequence[str]) -> Iterator[None]:
        connection = self.connection(create=not accounts)
        with self._queue():
            block = object()
            try:  # an exception from a signal may come as soon as the transaction has begun
                self._local.block = block
                self._run(connection, "BEGIN IMMEDIATE", ())
                yield
                self._run(connection, "COMMIT", ())
            except BaseException:
                if getattr(self._local, "block", None) is block:  # an abandoned block may end while another one is open
                    self._rollback(connection)
                raise
            if self._is_outdated(connection):
                raise UnknownOutcome(f"{self.path} was replaced by another file")

    def _rollback(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.ProgrammingError):  # it was closed, and with it the transaction
            if connection.in_transaction:  # a full disk has ended it already
                connection.execute("ROLLBACK")

    def abandon(self) -> None:
        super().abandon()
        self._release_abandoned()
        GATE.leave()

    def _release_abandoned(self) -> None:
        """Free the lock of a block that a signal kept from being entered or left."""
        abandoned: weakref.ref[_FileLock] | None = getattr(self._local, "lock", None)
        if abandoned is not None and (old := abandoned()) is not None:
            old.release()

    @contextmanager
    def _queue(self) -> Iterator[None]:
        """Take the lock file next to the ledger; the kernel frees it when its owner dies."""
        self._release_abandoned()
        lock = _FileLock(self._lock_file())
        try:
            self._local.lock = weakref.ref(lock)
            if not lock.take(LOCK_SECONDS):
                raise self._busy()
            yield
        finally:
            try:
                lock.release()
            finally:
                lock.release()  # Ctrl-C may have broken off the first call; a second one does no harm

    @property
    def _lock_path(self) -> Path:
        """Return the lock file; a ledger that is reached by a link has one."""
        return self._side_path(".lock")

    def _lock_file(self) -> int:
        """Open the lock file, or make it for those who may write to the ledger.

        Whoever may read it could hold the lock.
        """
        path, flags = self._lock_path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
        try:
            with suppress(FileNotFoundError):
                return os.open(path, flags)
            mode = stat.S_IMODE(os.stat(self.path).st_mode) & _GROUP if self.path.exists() else self._mode
            lock = os.open(path, flags | os.O_CREAT, mode)
            with suppress(OSError):  # another process has made it meanwhile
                os.chmod(path, mode)
            return lock
        except OSError as error:
            raise LedgerError(f"{path} cannot be opened: {error}; nothing was written") from error

    def _busy(self) -> LockTimeout:
        """Say who has held the lock for too long: the lock file, or that of SQLite itself."""
        files = [self._lock_path, self.path, self._side_path("-shm")]
        found = lock_owners(files)
        if found == [os.getpid()]:
            return LockTimeout(
                f"this process (pid {found[0]}) has held the lock of {self.path} for {LOCK_SECONDS:g} s, in another thread; "
                "nothing was written; wait for that thread, or start the process again"
            )
        owners = ", ".join(map(_describe_process, found)) or "its number cannot be seen from here"
        return LockTimeout(
            f"another process has held the lock of {self.path} for {LOCK_SECONDS:g} s: {owners}; nothing was written; "
            "end that process, or ask again"
        )


def _decode_damaged(text: bytes) -> str:
    """Return a text that may not be UTF-8; its wrong bytes become unpaired surrogates."""
    return text.decode("utf-8", "surrogateescape")


class _FileLock:
    """An open lock file, which is closed once, whoever waits for its lock.

    The system call that waits knows no time-out, so a thread of its own makes it. A thread that waits in the kernel gets its
    turn in order; asking again and again does not.

    Ctrl-C may raise an exception between any two steps. So each step of a release can be repeated, and only locks of the
    interpreter are used, whose `with` is never broken off half-way; those of `threading.Event` may be.
    """

    def __init__(self, descriptor: int) -> None:
        self._guard, self._process = threading.RLock(), os.getpid()
        self._turn = threading.Lock()
        self._turn.acquire()
        self._released = self._waiting = False
        # unlike a number, which may be given again, it knows that it is closed as soon as it is
        self._file = io.FileIO(descriptor, "r+")

    def take(self, seconds: float) -> bool:
        """Take the lock and return True; False if somebody else has it for so many seconds."""
        if fcntl is None:
            return True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            threading.Thread(target=self._wait, daemon=True).start()
            return self._turn.acquire(timeout=seconds)
        except OSError as error:
            raise LedgerError(f"the file system refuses a lock: {error}; nothing was written") from error

    def _wait(self) -> None:
        with self._guard:
            if self._released:
                return
            self._waiting = True
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._give_turn()

    def _give_turn(self) -> None:
        with self._guard:
            self._waiting = False
            self._turn.release()
            if self._released:
                self._close()

    def release(self) -> None:
        """Free the lock and close the file; a thread that still waits closes it when its turn comes.

        A call that was broken off can be repeated.
        """
        with self._guard:
            self._released = True
            if not self._waiting:
                self._close()

    def _close(self) -> None:
        try:
            if not self._file.closed and fcntl is not None and self._process == os.getpid():
                # a child must not free the lock of its parent, and one that another thread forked meanwhile has a copy
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # it was made completely
            self.release()  # a signal may come before its owner can release it


def lock_owners(files: Sequence[Path], table: Path = Path("/proc/locks")) -> list[int]:
    """Return the processes whose lock on one of these files stops writers.

    Empty where the system does not tell.
    """
    numbers = set()
    for file in files:
        with suppress(OSError):
            numbers.add(str(os.stat(file).st_ino))
    try:
        lines = table.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    found = set()
    for line in lines:
        fields = line.split()
        if len(fields) < 8 or fields[1] == "->" or fields[5].rpartition(":")[2] not in numbers:
            continue
        stops = fields[3] == "WRITE" or fields[6:8] == _WRITE_LOCK
        if stops and fields[4].isdigit() and int(fields[4]):
            found.add(int(fields[4]))
    return sorted(found - {os.getpid()}) or sorted(found)


def _describe_process(process: int) -> str:
    """Describe a process: its number, its name and whether it is stopped."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"pid {process}"
    name, _, rest = text.partition("(")[2].rpartition(")")
    return f"pid {process} ({name}{', stopped' if rest.split()[:1] == ['T'] else ''})"


def mounts(table: Path = Path("/proc/self/mountinfo")) -> Iterator[tuple[Path, str]]:
    """Yield every mount point with the type of its file system.

    Yields nothing where the system does not say.
    """
    try:
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) >= 5 and after:
            yield Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[4])), after.split()[0]


def file_system(folder: Path, table: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the type of a directory's file system; empty where the system does not say."""
    best, kind = Path(), ""
    for place, found in mounts(table):
        if (folder == place or place in folder.parents) and len(place.parts) >= len(best.parts):
            best, kind = place, found
    return kind
