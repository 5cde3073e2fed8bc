"""The embedded store: which files it takes, and what it says of those it does not."""

import gc
import io
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.errors import LedgerError
from cumulant.ledger import sqlite as store
from cumulant.ledger.entry import Entry
from cumulant.ledger.store import SCHEMA

STEP = cm.Gaussian(sigma=50)


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://x", "", "budget.db", "sqlite:///a\0b"]
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
        f"app.answer(['ledger', 'status', 'sqlite:///{tmp_path}/budget.db'])\n"  # loads what only root can read
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
        other.import_(copy)
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
