"""The lock of shared objects."""

import copy
import os
import pickle
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from cumulant import lock
from cumulant.lock import Lock
from cumulant.numerics.arithmetic import BALLS


def held_by_another_thread(lock: Lock) -> threading.Event:
    """Let another thread take the lock until the event is set."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait()

    threading.Thread(target=hold, daemon=True).start()
    taken.wait()
    return done


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))])
def test_a_copy_is_free(copied: object) -> None:
    lock = Lock()
    done = held_by_another_thread(lock)
    with copied(lock):  # type: ignore[operator]
        done.set()


def test_a_lock_is_free_in_a_child_that_is_forked_while_another_thread_has_it() -> None:
    lock = Lock()
    done = held_by_another_thread(lock)
    child = os.fork()
    if child == 0:
        with lock:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    done.set()


def test_balls_can_be_used_in_a_child_that_is_forked_during_a_proof() -> None:
    done = held_by_another_thread(BALLS._lock)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits for ever is ended
        with BALLS.at(64):
            os._exit(7)
    _, status = os.waitpid(child, 0)
    done.set()
    assert os.waitstatus_to_exitcode(status) == 7


def test_forks_wait_once_for_an_import_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs inside of an import holds the lock of its module until it ends."""
    monkeypatch.setattr(lock, "_PATIENCE", 0.3)
    monkeypatch.setattr(lock, "_OUTLASTED", set())
    text = "import test_lock_gate as gate\ngate.begun.set()\ngate.end.wait()\n"
    (tmp_path / "program_in_an_import.py").write_text(text, encoding="ascii")
    gate = ModuleType("test_lock_gate")
    gate.begun, gate.end = threading.Event(), threading.Event()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "test_lock_gate", gate)
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=import_module, args=("program_in_an_import",))
    thread.start()
    gate.begun.wait()
    paused: list[float] = []
    monkeypatch.setattr(time, "sleep", lambda seconds: paused.append(seconds))
    waits = []
    for _ in range(3):
        paused.clear()
        lock._wait_for_imports()
        waits.append(bool(paused))
    gate.end.set()
    thread.join()
    assert waits == [True, False, False]
    lock._wait_for_imports()
    assert not {name for name, _ in lock._OUTLASTED if "program_in_an_import" in name}


def test_a_module_is_there_in_a_child_that_is_forked_while_another_thread_imports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules are loaded when they are needed: a first spend in a thread imports for a second."""
    (tmp_path / "slowly_loaded.py").write_text("import time\ntime.sleep(0.5)\nANSWER = 7\n", encoding="ascii")
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=import_module, args=("slowly_loaded",))
    thread.start()
    while "slowly_loaded" not in sys.modules:
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits for ever is ended
        os._exit(import_module("slowly_loaded").ANSWER)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
