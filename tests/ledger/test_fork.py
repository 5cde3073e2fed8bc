"""Forks of a process that has a SQLite ledger open: no entry is lost, and no child waits for a lock of its parent."""

import os
import random
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.ledger import fork
from cumulant.ledger.account import Account

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
STEP = cm.Gaussian(sigma=600)


def forked(work: Callable[[], str]) -> tuple[int, int]:
    """Start a child that writes a text, and return its number and the end of the pipe to read."""
    here, there = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where there are threads
        child = os.fork()
    if child:
        os.close(there)
        return child, here
    try:
        text = work()
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
    os.write(there, text.encode())
    os._exit(0)


def said(child: tuple[int, int]) -> str:
    """Return what a child has written, when it has ended."""
    with os.fdopen(child[1], encoding="utf-8") as text:
        found = text.read()
    os.waitpid(child[0], 0)
    return found


@pytest.fixture
def account(tmp_path: Path) -> Account:
    return cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=20, delta=1e-6, mode="gaussian")


def test_what_a_child_writes_outlives_the_connection_of_its_parent(account: Account) -> None:
    """The parent closed the file as its last user, and deleted the entries of the child."""
    rng = random.Random(3)
    for start in range(3):
        account.spend(STEP)

        def work(start: int = start) -> str:
            return " ".join(account.spend(STEP, key=f"child {start} {j}").key.split()[-1] for j in range(30))

        child = forked(work)
        for _ in range(rng.randrange(1, 10)):
            account.spend(STEP)
            account._ledger.close()
        assert said(child) == " ".join(map(str, range(30)))
        account._ledger.close()
    assert account.verify()
    kept = {entry.key for entry in account.history()}
    assert {f"child {start} {j}" for start in range(3) for j in range(30)} <= kept


def test_a_parent_that_ends_takes_nothing_along(tmp_path: Path) -> None:
    program = (
        "import os, sys, cumulant as cm\n"
        f"account = cm.Ledger('sqlite:///{tmp_path}/budget.db').create('a', epsilon=20, delta=1e-6, mode='gaussian')\n"
        "if os.fork() == 0:\n"
        "    for j in range(40):\n"
        "        account.spend(cm.Gaussian(sigma=600), key=str(j))\n"
        "    print('done', flush=True)\n"
        "    os._exit(0)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout == "done\n"
    assert len(list(cm.Ledger(f"sqlite:///{tmp_path}/budget.db").account("a").history())) == 41


def test_a_fork_waits_for_other_threads(account: Account) -> None:
    """The child took the lock of another thread of its parent for its own, and could never spend."""
    end, errors = threading.Event(), []

    def spend() -> None:
        try:
            while not end.is_set():
                account.spend(STEP)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=spend) for _ in range(3)]
    for thread in threads:
        thread.start()
    found = [said(forked(lambda: str(account.spend(STEP).seq > 0))) for _ in range(8)]
    end.set()
    for thread in threads:
        thread.join()
    assert found == ["True"] * 8
    assert errors == []
    assert account.verify()


def test_a_fork_while_a_connection_is_being_opened_is_refused_in_the_child(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a connection is not remembered yet, and the child inherits what SQLite keeps of it."""
    monkeypatch.setattr(fork, "_PATIENCE", 0.01)
    begun, end = threading.Event(), threading.Event()

    def open_slowly() -> None:
        with fork.GATE.operation():
            begun.set()
            end.wait()

    thread = threading.Thread(target=open_slowly)
    thread.start()
    begun.wait()
    found = said(forked(lambda: str(account.spend(STEP))))
    end.set()
    thread.join()
    assert found.startswith("LedgerError: this process was forked while a ledger was read or written; fork outside")


def test_a_fork_within_a_transaction_is_refused_in_the_child(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork, "_PATIENCE", 0.01)
    with account._ledger._store.transaction(["a"]):
        mine = said(forked(lambda: str(account.spend(STEP))))
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        with account._ledger._store.transaction(["a"]):
            begun.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    of_another = said(forked(lambda: str(account.spend(STEP))))
    end.set()
    thread.join()
    assert mine == of_another
    assert mine.startswith("LedgerError: this process was forked while a ledger was read or written; fork outside")
    assert account.spend(STEP).seq == 1
    assert said(forked(lambda: str(account.spend(STEP).seq))) == "2"


def test_a_child_that_was_forked_within_an_import_is_told_so(tmp_path: Path) -> None:
    """The lines come from the program of a user, which may fork; its child ended with a KeyError."""
    program = (
        "import io, os, sys, cumulant as cm\n"
        f"ledger, copy = (cm.Ledger(f'sqlite:///{tmp_path}/{{name}}.db') for name in ('budget', 'copy'))\n"
        "ledger.create('a', epsilon=1, delta=1e-6).spend(cm.Gaussian(sigma=600))\n"
        "out = io.StringIO()\n"
        "ledger.export(out)\n"
        "def lines():\n"
        "    for line in out.getvalue().splitlines():\n"
        "        if 'spend' in line and (child := os.fork()):\n"
        "            os.waitpid(child, 0)\n"
        "        yield line\n"
        "try:\n"
        "    copy.import_lines(lines())\n"
        "    print(copy.verify())\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    child, parent = found.stdout.splitlines()
    assert child.startswith("LedgerError this process was forked while a ledger was read or written; fork outside")
    assert parent.startswith("sound: 2 entries of 1 account")
