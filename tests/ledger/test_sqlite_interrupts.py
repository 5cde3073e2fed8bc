"""Ctrl-C at every step of a spend: no lock stays, and no thread is taken to be inside of an operation."""

import contextlib
import inspect
import os
import sqlite3
import sys
import warnings
from contextlib import closing
from pathlib import Path
from types import FrameType, SimpleNamespace

import pytest

import cumulant as cm
from cumulant import domains
from cumulant.errors import LedgerError
from cumulant.ledger import entry, fork, keys, ledger, sqlite, store, writing

fcntl = pytest.importorskip("fcntl")
STEP = cm.Gaussian(sigma=2000)
_FILES = frozenset(module.__file__ for module in (contextlib, domains, entry, fork, ledger, sqlite, store, writing))


class Alarm(Exception):
    """What the handler of a signal raises, in a program that limits its own time."""


class Interrupt:
    """Raises an exception at one of the moments in which the interpreter runs the handlers of signals.

    Those are the begin of a function and the return of a call.
    """

    def __init__(self, raised: type[BaseException], moment: int) -> None:
        self.raised, self.left, self.place = raised, moment, ""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        if frame.f_code.co_filename not in _FILES or event in ("c_call", "c_exception"):
            return
        if event == "return" and generator:  # the call that resumed it returns next
            return
        above: FrameType | None = frame
        while above is not None:
            if above.f_code.co_name == "__del__":  # the interpreter prints what is raised there and goes on
                return
            above = above.f_back
        self.left -= 1
        if self.left == 0:
            sys.setprofile(None)
            self.place = f"{event} at {frame.f_code.co_name}:{frame.f_lineno}"
            raise self.raised


@pytest.mark.parametrize(
    ("question", "raised"), [("spend", KeyboardInterrupt), ("status", KeyboardInterrupt), ("spend", Alarm)]
)
def test_an_interrupt_at_any_moment_leaves_nothing_locked(
    tmp_path: Path, question: str, raised: type[BaseException]
) -> None:
    """Ctrl-C while the lock was released kept it until the process ended; a notebook keeps the traceback of a spend too."""
    path = tmp_path / "budget.db"
    account = cm.Ledger(f"sqlite:///{path}").create("a", epsilon=5, delta="1e-6", mode="gaussian")
    account.spend(STEP)
    other = os.open(f"{path}.lock", os.O_RDWR)
    wrong: list[str] = []
    kept: BaseException | None = None
    moment = 0
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as writer, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a file that was opened and has no name yet
        while True:
            interrupt = Interrupt(raised, moment := moment + 1)
            try:
                sys.setprofile(interrupt)
                account.spend(STEP) if question == "spend" else account.status()
            except raised as error:
                kept = error if question == "spend" else None
            finally:
                sys.setprofile(None)
            if not interrupt.place:
                break
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(other, fcntl.LOCK_UN)
                writer.execute("BEGIN IMMEDIATE")
                writer.execute("ROLLBACK")
                assert not fork.GATE._threads()
                assert account.spend(STEP).seq
            except Exception as error:
                wrong.append(f"{interrupt.place}: {error!r:.150}")
        del kept
    os.close(other)
    assert moment > 100
    assert wrong == []
    assert account.verify()


def test_a_lock_of_this_process_is_not_said_to_be_of_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0.05)
    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=5, delta="1e-6")
    mine = os.open(tmp_path / "budget.db.lock", os.O_RDWR)
    fcntl.flock(mine, fcntl.LOCK_EX)
    with pytest.raises(
        LedgerError, match=rf"^this process \(pid {os.getpid()}\) has held the lock .* in another thread"
    ):
        account.spend(STEP)
    os.close(mine)
    assert account.spend(STEP).seq == 1


def test_a_lock_that_was_never_made_is_dropped_in_silence() -> None:
    """The interpreter printed an AttributeError when a signal came before the lock had its file."""
    lock = sqlite._FileLock.__new__(sqlite._FileLock)
    lock.__del__()


def test_an_exception_of_a_handler_is_not_a_wrong_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest entry was said not to be signed by its key."""
    pytest.importorskip("cryptography")
    key = keys.Key("ed25519", "e", b"3" * 32)
    signature = key.sign("ab")
    assert key.confirms("ab", signature)
    assert not key.confirms("ac", signature)
    assert not key.confirms("ab", "no hexadecimal")

    def interrupted(*_: object) -> None:
        raise Alarm

    public = SimpleNamespace(from_public_bytes=lambda _: SimpleNamespace(verify=interrupted))
    monkeypatch.setattr(keys, "_ed25519", lambda: SimpleNamespace(Ed25519PublicKey=public))
    with pytest.raises(Alarm):
        keys.Key("ed25519-public", "e", b"3" * 32).confirms("ab", signature)
