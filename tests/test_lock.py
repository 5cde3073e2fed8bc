"""The lock of shared objects."""

import copy
import os
import pickle
import signal
import threading

import pytest

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
