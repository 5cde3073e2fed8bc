"""The embedded store: which files it takes, and what it says of those it does not."""

import fcntl
import gc
import io
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cumulant as cm
from cumulant.cli import app
from cumulant.errors import LedgerBroken, LedgerError
from cumulant.ledger import sqlite as store
from cumulant.ledger.entry import Entry
from cumulant.ledger.store import SCHEMA

STEP = cm.Gaussian(sigma=50)


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://x", "", "budget", "sqlite:///a\0b"]
)
def test_addresses(url: str) -> None:
    with pytest.raises(cm.InputError, match="url="):
        cm.Ledger(url)


def test_relative_and_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cm.Ledger("sqlite:///here.db").create("a", epsilon=1, delta=1e-6)
    assert cm.Ledger(f"sqlite:///{tmp_path}/here.db").accounts() == ["a"]
    assert (tmp_path / "here.db").exists()
    with pytest.raises(LedgerError, match="no directory"):
        cm.Ledger("sqlite:///nowhere/here.db").create("a", epsilon=1, delta=1e-6)


@pytest.mark.parametrize(
    "name",
    ["a" * 248, "a" * 253, "a" * 300, "ä" * 124, f"{'f' * 200}/{'f' * 200}/{'a' * 120}", "\udcff.db"],
)
def test_names_that_no_file_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """They were an unexpected OSError or UnicodeEncodeError, or left an empty file."""
    if "/" in name:
        (tmp_path / name).parent.mkdir(parents=True)
    url = f"sqlite:///{tmp_path}/{name}"
    for words in (["create", url, "a", "--epsilon", "1", "--delta", "0"], ["status", url]):
        assert app.answer(["ledger", *words]) in (1, 2)
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert "unexpected" not in said
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_longest_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/{'a' * 244}.db"
    cm.Ledger(url).create("a", epsilon=1, delta="1e-6").spend(STEP)
    assert cm.Ledger(url).verify()


MOUNTS = """22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:30 / /home rw - nfs4 server:/home rw
31 22 0:31 / /mnt/with\\040space rw - fuse.sshfs host: rw
32 30 0:32 / /home/local rw - xfs /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/x", "nfs4"),
        ("/home/local/x", "xfs"),
        ("/homely", "ext4"),
        ("/mnt/with space/x", "fuse.sshfs"),
    ],
)
def test_file_systems(tmp_path: Path, folder: str, kind: str) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS, encoding="utf-8")
    assert store.file_system(Path(folder), table) == kind
    assert store.file_system(Path(folder), tmp_path / "missing") == ""


def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    for kind in ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p"):
        monkeypatch.setattr(store, "file_system", lambda folder, kind=kind: kind)
        with pytest.raises(LedgerError, match=f"file system of type {kind}"):
            ledger.create("a", epsilon=1, delta=1e-6)
    assert not list(tmp_path.iterdir())


def test_settings(tmp_path: Path) -> None:
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("a", epsilon=1, delta=1e-6)
    assert ledger._store.execute("PRAGMA journal_mode") == [("wal",)]
    assert ledger._store.execute("PRAGMA synchronous") == [(2,)]  # FULL


def test_a_full_disk_writes_nothing(tmp_path: Path) -> None:
    """A database that may not grow is what a full disk looks like to a transaction."""
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("a", epsilon=1, delta=1e-6)
    ((pages,),) = ledger._store.execute("PRAGMA page_count")
    ledger._store.execute(f"PRAGMA max_page_count = {pages + 1}")
    accepted: list[object] = []
    with pytest.raises(LedgerError, match=r"full.*nothing was written"):
        accepted.extend(account.spend(STEP) for _ in range(100))
    assert account.head().seq < 100
    ledger._store.execute("PRAGMA max_page_count = 100000")
    account.spend(STEP)
    assert account.verify()


@pytest.mark.parametrize("mode", [0o555, 0o444], ids=oct)
def test_a_file_that_cannot_be_written(tmp_path: Path, mode: int) -> None:
    """As somebody who may read it, or its directory, and not write it; root may write everything, so it steps down."""
    cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta=1e-6)
    for place in (tmp_path, *tmp_path.parents):
        if os.stat(place).st_uid == os.getuid() and place != Path("/") and place != Path("/tmp"):
            place.chmod(0o755)
    for path in tmp_path.iterdir():
        path.chmod(0o444)
    tmp_path.chmod(mode)
    program = (
        "import os, sys; import cumulant as cm; from cumulant.cli import app\n"
        f"app.answer(['ledger', 'status', 'sqlite:///{tmp_path}/budget.db', 'a', 'PureDP(0.1)'])\n"  # loads what root can read
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        f"sys.exit(app.answer(['ledger', 'spend', 'sqlite:///{tmp_path}/budget.db', 'a', 'PureDP(0.1)']))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd="/")
    tmp_path.chmod(0o755)
    assert found.returncode == 1, found.stderr
    assert found.stderr.startswith("error: ")
    assert any(word in found.stderr for word in ("readonly", "cannot be opened", "unable to open")), found.stderr


def test_a_file_that_is_replaced(tmp_path: Path) -> None:
    """Who has the old one open would write to what nobody reads."""
    url = f"sqlite:///{tmp_path}/budget.db"
    account = cm.Ledger(url).create("a", epsilon=1, delta=1e-6)
    account.spend(STEP)
    other = cm.Ledger(f"sqlite:///{tmp_path}/other.db")
    with io.StringIO() as copy:
        account._ledger.export(copy)
        copy.seek(0)
        other.import_lines(copy)
    other.account("a").thaw(source_closed=True)
    other.close()
    for name in ("budget.db-wal", "budget.db-shm"):
        (tmp_path / name).unlink()
    (tmp_path / "other.db").rename(tmp_path / "budget.db")
    assert account.spend(STEP).seq == 3  # what was seen is there as well
    assert [entry.kind for entry in cm.Ledger(url).account("a").history()] == ["open", "spend", "thaw", "spend"]
    (tmp_path / "budget.db").unlink()
    with pytest.raises(LedgerError, match="there is no ledger"):
        account.spend(STEP)


def test_replaced_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    account = cm.Ledger(url).create("a", epsilon=1, delta=1e-6)
    account._ledger.close()
    gc.collect()
    shutil.copy(tmp_path / "budget.db", tmp_path / "other.db")
    append = account._writer.store.append

    def meanwhile(entries: list[Entry]) -> None:
        append(entries)
        if (tmp_path / "other.db").exists():
            (tmp_path / "other.db").rename(tmp_path / "budget.db")
            for name in ("budget.db-wal", "budget.db-shm"):
                (tmp_path / name).unlink()

    monkeypatch.setattr(account._writer.store, "append", meanwhile)
    assert account.spend(STEP, key="k").seq == 1
    assert cm.Ledger(url).account("a").find("k") is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    """Forked by another thread while the lock was held; the child lives on."""
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("a", epsilon=1, delta=1e-6)
    with ledger._store.transaction(["a"]):
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
    try:
        program = (
            f"import cumulant as cm; print(cm.Ledger({ledger._store.url!r}).account('a').spend('PureDP(0.1)').seq)"
        )
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
        assert found.stdout == "1\n"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert account.spend(STEP).seq == 2


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    """A limit on the size of files is as good as a full disk, and the shell says it in one sentence."""
    url = f"sqlite:///{tmp_path}/budget.db"
    account = cm.Ledger(url).create("a", epsilon=1, delta=1e-6)
    program = (
        "import resource, signal, sys; from cumulant.cli import app\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"sys.exit(app.answer(['ledger', 'spend', {url!r}, 'a', 'PureDP(0.1)']))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 1, found.stderr
    assert found.stderr.startswith("error: ")
    assert len(found.stderr.splitlines()) == 1
    assert account.head().seq == 0
    account.spend(STEP)
    assert account.verify()


def test_a_medium_that_cannot_be_written_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    account = cm.Ledger(url).create("a", epsilon=1, delta=1e-6)
    receipt = account.spend(STEP)
    account._ledger.close()
    with sqlite3.connect(tmp_path / "budget.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    for path in tmp_path.glob("budget.db[-.]*"):
        path.unlink()
    monkeypatch.setattr(store.SQLite, "_read_only", lambda _: True)
    sealed = cm.Ledger(url)
    assert sealed.verify(receipts=[receipt], recompute=True)
    assert sealed.account("a").status().entries == 2
    assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]
    with pytest.raises(LedgerError, match="readonly"):
        sealed.account("a").spend(STEP)
    sealed.close()
    (tmp_path / "budget.db-wal").write_bytes(b"entries")
    with pytest.raises(LedgerError, match="copy both files to a disk that can be written to"):
        cm.Ledger(url).verify()


def test_schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    ledger = cm.Ledger(url)
    assert ledger.upgrade() == (0, SCHEMA)
    assert ledger.upgrade() == (SCHEMA, SCHEMA)
    ledger.create("a", epsilon=1, delta=1e-6).spend(STEP)
    with sqlite3.connect(tmp_path / "budget.db") as database:
        database.execute("UPDATE meta SET value = ? WHERE name = 'schema'", [str(SCHEMA + 1)])
    database.close()
    with pytest.raises(LedgerError, match=f"schema {SCHEMA + 1} and this library knows {SCHEMA}"):
        cm.Ledger(url).accounts()
    with pytest.raises(LedgerError, match=f"schema {SCHEMA + 1}"):
        cm.Ledger(url).upgrade()
    # the library of tomorrow reads the ledger of today, and writes to it only after an upgrade, which it makes under the lock
    with sqlite3.connect(tmp_path / "budget.db") as database:
        database.execute("UPDATE meta SET value = ? WHERE name = 'schema'", [str(SCHEMA)])
    database.close()
    monkeypatch.setattr("cumulant.ledger.store.SCHEMA", SCHEMA + 1)
    monkeypatch.setattr(store.SQLite, "migrations", (*store.SQLite.migrations, ("CREATE TABLE more (x TEXT)",)))
    assert cm.Ledger(url).verify()
    with pytest.raises(LedgerError, match="can be read and verified; to write to it, run: cumulant ledger upgrade"):
        cm.Ledger(url).account("a").spend(STEP)
    tomorrow = cm.Ledger(url)
    assert tomorrow.upgrade() == (SCHEMA, SCHEMA + 1)
    assert tomorrow.verify()


# ---- one file under two names


def test_a_hard_link_is_refused(tmp_path: Path) -> None:
    one = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = one.create("a", epsilon=1, delta=1e-6)
    account.spend(STEP)
    os.link(tmp_path / "budget.db", tmp_path / "twin.db")
    with pytest.raises(LedgerError, match="has 2 names"):
        cm.Ledger(f"sqlite:///{tmp_path}/twin.db").account("a").spend(STEP)
    with pytest.raises(LedgerError, match="has 2 names"):
        account.spend(STEP)  # the process that had it open notices too
    (tmp_path / "twin.db").unlink()
    account.spend(STEP)
    assert [entry.seq for entry in account.history()] == [0, 1, 2]


def test_a_link_by_name_is_the_same_ledger(tmp_path: Path) -> None:
    one = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta=1e-6)
    (tmp_path / "link.db").symlink_to(tmp_path / "budget.db")
    other = cm.Ledger(f"sqlite:///{tmp_path}/link.db").account("a")
    assert [one.spend(STEP).seq, other.spend(STEP).seq, one.spend(STEP).seq] == [1, 2, 3]
    assert not list(tmp_path.glob("link.db?*"))  # one queue, and one -wal


@pytest.mark.parametrize("closed", [False, True])
def test_a_reader_without_rights_sees_what_others_write(tmp_path: Path, closed: bool) -> None:
    """SQLite is told that such a file never changes; when it does, the reader must read it again."""
    url = f"sqlite:///{tmp_path}/budget.db"
    writer = cm.Ledger(url)
    writer.create("a", epsilon=1, delta=1e-6)
    writer.close()
    gc.collect()
    assert not (tmp_path / "budget.db-wal").exists()
    reader = cm.Ledger(url)
    rights = reader._store
    assert isinstance(rights, store.SQLite)
    rights._read_only = lambda: not (tmp_path / "budget.db-wal").exists()  # type: ignore[method-assign]
    assert reader.verify().entries == 1
    for entries in (2, 3):
        writer.account("a").spend(STEP)
        if closed:
            writer.close()
            gc.collect()
        assert reader.account("a").status().entries == entries
        assert (reader.verify().sound, reader.verify().entries) == (True, entries)


def test_a_file_that_changes_under_a_reader_without_rights(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    writer = cm.Ledger(url)
    writer.create("a", epsilon=1, delta=1e-6)
    writer.close()
    gc.collect()
    reader = cm.Ledger(url)
    rights = reader._store
    assert isinstance(rights, store.SQLite)
    rights._read_only = lambda: not (tmp_path / "budget.db-wal").exists()  # type: ignore[method-assign]

    def read_while_it_is_written() -> None:
        with rights.reading():
            rights.names()
            writer.account("a").spend(STEP)
            writer.close()
            gc.collect()
            rights.names()

    with pytest.raises(LedgerError, match="was written to while it was read; ask again"):
        read_while_it_is_written()
    assert reader.verify().entries == 2


def test_a_file_that_is_mounted_alone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, spelled in (("budget.db", "budget.db"), ("tür\u20ac \\.db", "tür\u20ac\\040\\134.db")):
        line = f"40 22 254:0 /x {tmp_path}/{spelled} rw - ext4 /dev/vda rw\n"
        (tmp_path / "table").write_text(f"{MOUNTS}{line}", encoding="utf-8")
        assert (tmp_path / name, "ext4") in list(store.mounts(tmp_path / "table"))
    cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta=1e-6)
    monkeypatch.setattr(store, "mounts", lambda *_: iter([(tmp_path / "budget.db", "ext4")]))
    with pytest.raises(LedgerError, match="mount its directory instead"):
        cm.Ledger(f"sqlite:///{tmp_path}/budget.db").account("a")
    monkeypatch.setattr(store, "mounts", lambda *_: iter([(tmp_path, "ext4")]))
    cm.Ledger(f"sqlite:///{tmp_path}/budget.db").account("a").spend(STEP)


# ---- files that vanish


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("linked", [False, True])
def test_a_removed_wal_is_noticed(tmp_path: Path, suffix: str, replaced: bool, linked: bool) -> None:
    place = tmp_path / "budget.db"
    if linked:  # SQLite keeps -wal beside the file, not beside the link
        (tmp_path / "links").mkdir()
        place = tmp_path / "links" / "link.db"
        place.symlink_to(tmp_path / "budget.db")
    ledger = cm.Ledger(f"sqlite:///{place}")
    account = ledger.create("a", epsilon=1, delta=1e-6)
    account.spend(STEP)
    file = tmp_path / f"budget.db{suffix}"
    content = file.read_bytes()
    file.unlink()
    if replaced:
        file.write_bytes(content)
    for _ in range(2):
        with pytest.raises(LedgerBroken, match="was removed while this process had the ledger open"):
            account.spend(STEP)
    with ThreadPoolExecutor(1) as other, pytest.raises(LedgerBroken, match="was removed"):
        other.submit(account.spend, STEP).result()
    with pytest.raises(LedgerBroken, match="was removed"):
        account.status()


def test_a_wal_that_is_removed_while_an_entry_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("a", epsilon=1, delta=1e-6)
    append = ledger._store.append

    def remove(entries: list[Entry]) -> None:
        append(entries)
        (tmp_path / "budget.db-wal").unlink()

    monkeypatch.setattr(ledger._store, "append", remove)
    with pytest.raises(LedgerBroken, match="was removed"):
        account.spend(STEP)


def test_closing_does_not_look_like_a_removal(tmp_path: Path) -> None:
    """The last connection that is closed takes -wal and -shm along."""
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("a", epsilon=1, delta=1e-6)
    for _ in range(3):
        account.spend(STEP)
        ledger.close()
        gc.collect()
        assert not (tmp_path / "budget.db-wal").exists()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: account.spend(STEP), range(8)))
    assert account.verify()


# ---- rights and patience


def modes(folder: Path) -> dict[str, int]:
    return {path.name.removeprefix("budget.db"): stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize(("group", "mode"), [(False, 0o600), (True, 0o660)])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_are_for_their_owner(tmp_path: Path, group: bool, mode: int, umask: int) -> None:
    before = os.umask(umask)
    try:
        ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db", group=group)
        ledger.create("a", epsilon=1, delta=1e-6).spend(STEP)
        assert modes(tmp_path) == dict.fromkeys(["", "-wal", "-shm", ".lock"], mode)
        (tmp_path / "budget.db.lock").unlink()
        cm.Ledger(f"sqlite:///{tmp_path}/budget.db").account("a").spend(STEP)
        assert modes(tmp_path)[".lock"] == mode  # that of the ledger, whoever makes it
    finally:
        os.umask(before)


HOLD = """
import fcntl, os, signal, sqlite3, sys
if sys.argv[2] == "file":
    lock = os.open(sys.argv[1] + ".lock", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
else:
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.parametrize("kind", ["file", "database"])
def test_a_stopped_writer_is_named(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta=1e-6)
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.5)
    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").account("a")
    said = "has held the lock of .* for 0.5 s: pid {} .*, stopped.*; nothing was written"
    command = [sys.executable, "-c", HOLD, str(tmp_path / "budget.db"), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            while Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                time.sleep(0.01)
            with ThreadPoolExecutor(4) as pool:
                waiting = [pool.submit(account.spend, STEP, key=f"k{n}") for n in range(4)]
                for each in waiting:
                    with pytest.raises(LedgerError, match=said.format(other.pid)):
                        each.result()
        finally:
            other.kill()
    assert account.spend(STEP, key="k0").seq == 1  # nobody who gave up still has a turn
    assert [entry.seq for entry in account.history()] == [0, 1]


def test_whoever_waits_has_a_turn(tmp_path: Path) -> None:
    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta=1e-6)
    lock = os.open(tmp_path / "budget.db.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(account.spend, STEP) for _ in range(4)]
        time.sleep(0.2)
        assert not any(each.done() for each in waiting)
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert sorted(each.result().seq for each in waiting) == [1, 2, 3, 4]
    os.close(lock)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_turn_that_nobody_waits_for_is_given_back(tmp_path: Path) -> None:
    """A child that was forked during the wait has a copy of the file, and would keep the lock."""
    path = tmp_path / "lock"
    path.touch()
    owner, waiting = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    fcntl.flock(owner, fcntl.LOCK_EX)
    turn = store._FileLock(waiting)
    child = os.fork()
    if child == 0:
        os.close(owner)
        signal.pause()
        os._exit(0)
    try:
        assert not turn.take(0.05)
        turn.release()
        fcntl.flock(owner, fcntl.LOCK_UN)
        for _ in range(200):  # until the thread has closed its file
            time.sleep(0.01)
            if not os.path.exists(f"/proc/self/fd/{waiting}"):
                break
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(owner)


def interrupt_after(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    """Raise KeyboardInterrupt once, just after a statement or after the lock of the file was taken."""
    run_all = store.SQLite._run_all
    fired: list[str] = []

    def fire(done: str) -> None:
        if done == wanted and not fired:
            fired.append(done)
            raise KeyboardInterrupt

    def run_and_fire(self: Any, connection: Any, statements: Any) -> Any:
        found = run_all(self, connection, statements)
        fire(statements[0][0])
        return found

    def lock_and_fire(file: int, how: int) -> None:
        fcntl.flock(file, how)
        fire("the lock" if how & fcntl.LOCK_EX else "no lock")

    monkeypatch.setattr(store.SQLite, "_run_all", run_and_fire)
    monkeypatch.setattr(store, "fcntl", SimpleNamespace(**{**vars(fcntl), "flock": lock_and_fire}))


@pytest.mark.parametrize("moment", ["BEGIN IMMEDIATE", "BEGIN", "the lock"])
def test_an_interrupt_leaves_nothing_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Ctrl-C between the system call that locks and the next line, in a process that goes on and keeps the traceback."""
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.5)
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("a", epsilon=1, delta="1e-6")
    other = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").account("a")
    with monkeypatch.context() as patch:
        interrupt_after(patch, moment)
        with pytest.raises(KeyboardInterrupt) as kept:
            ledger.verify() if moment == "BEGIN" else account.spend(STEP)
    assert other.spend(STEP).seq == 1
    assert account.spend(STEP).seq == 2
    assert ledger.verify()
    assert kept.traceback


def test_a_block_that_was_begun_and_not_entered_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in `contextlib`, when the block is open and its body has not begun; a notebook keeps the traceback."""
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.5)
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("a", epsilon=1, delta="1e-6")
    writing, reading = ledger._store.transaction(["a"]), ledger._store.reading()
    next(writing.gen)
    assert account.spend(STEP).seq == 1
    next(reading.gen)
    assert account.spend(STEP).seq == 2
    assert ledger.verify()
    writing.gen.close()
    reading.gen.close()
    assert account.spend(STEP).seq == 3


def damage_index(path: Path, index: str, old: bytes, new: bytes) -> None:
    """Change one record of an index, as a bad disk does."""
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (index,))
        ((size,),) = connection.execute("PRAGMA page_size")
    content = path.read_bytes()
    page = content[(root - 1) * size : root * size]
    assert page.count(old) == 1
    path.write_bytes(content[: (root - 1) * size] + page.replace(old, new) + content[root * size :])


def test_a_hold_does_not_end_twice_where_its_index_is_damaged(tmp_path: Path) -> None:
    """One byte of the index `ended` hid the end of a hold, so that it freed what another job holds."""
    path = tmp_path / "budget.db"
    ledger = cm.Ledger(f"sqlite:///{path}")
    account = ledger.create("a", epsilon=1, delta="1e-6")
    account.hold(STEP * 40, key="one").release(unseen=True)
    account.hold(STEP * 40, key="two")
    ledger.close()
    damage_index(path, "ended", b"\x0f\x09\x01a", b"\x0f\x09\x01c")
    ledger = cm.Ledger(f"sqlite:///{path}")
    verdict = ledger.verify()
    assert "an index of the database is damaged and does not find it by its hold" in str(verdict)
    assert (verdict.account, verdict.seq) == ("a", 2)
    with pytest.raises(LedgerBroken, match=r"hold 1 of 'a' was ended by entry 2, which an index .* does not find"):
        ledger.account("a").release(1, unseen=True)


def test_a_damaged_index_of_keys_is_found(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = cm.Ledger(f"sqlite:///{path}")
    ledger.create("a", epsilon=1, delta="1e-6").spend(STEP, key="report-7")
    ledger.close()
    damage_index(path, "sqlite_autoindex_entry_2", b"report-7", b"report-8")
    verdict = cm.Ledger(f"sqlite:///{path}").verify()
    assert "broken at entry 1 of 'a': an index of the database is damaged and does not find it by its key" in str(
        verdict
    )


def damage_byte(path: Path, text: bytes) -> None:
    """Make the last byte of a text one that is not UTF-8."""
    content = path.read_bytes()
    assert content.count(text) == 1
    path.write_bytes(content.replace(text, text[:-1] + b"\xc8"))


def test_a_cell_that_is_no_text_is_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was said that the database refuses, with exit code 1, and no entry was named."""
    path = tmp_path / "budget.db"
    ledger = cm.Ledger(f"sqlite:///{path}")
    account = ledger.create("a", epsilon=1, delta="1e-6")
    account.spend(STEP, key="one")
    account.spend(STEP * 3, key="two")
    ledger.close()
    damage_byte(path, b"Gaussian(sigma=50) * 3")
    verdict = cm.Ledger(f"sqlite:///{path}").verify()
    assert (verdict.sound, verdict.account, verdict.seq) == (False, "a", 2)
    assert verdict.reason == "its hash is not that of what it holds"
    for refused in (
        lambda: cm.Ledger(f"sqlite:///{path}").account("a").status(),
        lambda: cm.Ledger(f"sqlite:///{path}").account("a").spend(STEP),
    ):
        with pytest.raises(LedgerBroken, match="entry 2 of 'a' was changed"):
            refused()
    for words, code in ((["verify"], 4), (["history", "a"], 4), (["export", "--csv"], 0)):
        assert app.answer(["ledger", words[0], str(path), *words[1:]]) == code
    assert "\udcc8" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"'entries are never changed", "the trigger entries_stay was dropped or changed"),
        (b"'entries are never deleted", "the trigger entries_remain was dropped or changed"),
    ],
)
def test_a_schema_that_is_no_text_is_damage(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "budget.db"
    ledger = cm.Ledger(f"sqlite:///{path}")
    ledger.create("a", epsilon=1, delta="1e-6")
    ledger.close()
    damage_byte(path, text)
    assert said in str(cm.Ledger(f"sqlite:///{path}").verify())


def test_a_schema_whose_error_is_no_text_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = cm.Ledger(f"sqlite:///{path}")
    ledger.create("a", epsilon=1, delta="1e-6")
    ledger.close()
    damage_byte(path, b"CREATE TRIGGER entries_stay BEFORE UPDATE ")
    with pytest.raises(LedgerBroken):
        cm.Ledger(f"sqlite:///{path}").accounts()


@pytest.mark.parametrize("text", [b"value TEXT NOT NULL) WITHOUT", b"(account TEXT NOT NULL, seq"])
def test_a_schema_with_another_column_is_damage(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "budget.db"
    ledger = cm.Ledger(f"sqlite:///{path}")
    ledger.create("a", epsilon=1, delta="1e-6")
    ledger.close()
    path.write_bytes(path.read_bytes().replace(text, text.replace(b"v", b"w").replace(b"q", b"p")))
    with pytest.raises(LedgerBroken):
        cm.Ledger(f"sqlite:///{path}").account("a").status()


def test_a_damaged_index_of_holds_is_found(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = cm.Ledger(f"sqlite:///{path}")
    ledger.create("a", epsilon=1, delta="1e-6").hold(STEP)
    ledger.close()
    damage_index(path, "held", b"\x0f\x09\x01a", b"\x0f\x09\x01c")
    verdict = cm.Ledger(f"sqlite:///{path}").verify()
    assert "broken: the file is damaged (row 2 missing from index held)" in str(verdict)


def test_an_index_without_an_account_is_found(tmp_path: Path) -> None:
    """`verify` asks an index which accounts there are, and did not read one that the index does not have."""
    path = tmp_path / "budget.db"
    ledger = cm.Ledger(f"sqlite:///{path}")
    for name in "xy":
        ledger.create(name, epsilon=1, delta="1e-6").spend(STEP)
    ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE INDEX cut ON entry (account, key) WHERE account <> 'x'")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'cut') "
            "WHERE name = 'sqlite_autoindex_entry_2'"
        )
        connection.execute("DELETE FROM sqlite_master WHERE name = 'cut'")
        connection.execute("PRAGMA writable_schema = RESET")
    assert "damaged" in str(cm.Ledger(f"sqlite:///{path}").verify())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_does_not_free_the_lock_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    lock, other = store._FileLock(os.open(path, os.O_RDWR)), os.open(path, os.O_RDWR)
    assert lock.take(1)
    child = os.fork()
    if child == 0:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.release()
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


def test_owners_of_locks(tmp_path: Path) -> None:
    table, file = tmp_path / "locks", tmp_path / "file"
    file.touch()
    number = file.stat().st_ino
    table.write_text(
        f"1: FLOCK  ADVISORY  WRITE 123 fe:01:{number} 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 124 fe:01:{number} 0 EOF\n"
        f"2: POSIX  ADVISORY  WRITE 125 fe:01:{number + 1} 0 EOF\n3: POSIX  ADVISORY  WRITE 0 fe:01:{number} 0 EOF\n"
        f"4: POSIX  ADVISORY  READ 126 fe:01:{number} 128 128\n5: POSIX  ADVISORY  READ 127 fe:01:{number} 120 120\n"
    )
    assert store.lock_owners([file, tmp_path / "missing"], table) == [123, 127]
    assert store.lock_owners([file], tmp_path / "missing") == []


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "folder", tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(LedgerError, match="is a directory, a pipe or a device; name a file"):
            cm.Ledger(f"sqlite:///{path}").create("a", epsilon=1, delta="1e-6")
