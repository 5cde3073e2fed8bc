"""Workers: the ninth question waits, a slow one is stopped, a greedy one is refused, and the next one is answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest

from cumulant.web import workers
from cumulant.web.questions import QUESTIONS, answer_question
from cumulant.web.workers import MOST, Workers

PURE = {"run": "PureDP(1)", "delta": 0}


def sleeping(asked: Any) -> dict[str, Any]:
    time.sleep(float(asked["seconds"]))
    return {"slept": True}


def greedy(asked: Any) -> dict[str, Any]:
    return {"bytes": len(bytearray(int(asked["bytes"])))}


def dying(asked: Any) -> dict[str, Any]:
    import os

    os._exit(3)


def serve(line: Connection) -> None:
    """A worker that can also sleep, take memory and die."""
    QUESTIONS.update(sleep=sleeping, take=greedy, die=dying)
    workers.serve(line)


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    monkeypatch.setattr(workers, "TARGET", serve)
    found = Workers()
    yield found
    found.close()


def test_eight_run_and_the_ninth_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST == 8
    gate, inside = threading.Event(), threading.Semaphore(0)

    def slow(self: Workers, kind: str, asked: Any) -> tuple[int, dict[str, Any]]:
        inside.release()
        gate.wait(60)
        return answer_question(kind, asked)

    monkeypatch.setattr(Workers, "_ask_worker", slow)
    found = Workers()
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(found.ask("epsilon", PURE)[0])) for _ in range(8)]
    for each in threads:
        each.start()
    for _ in threads:
        assert inside.acquire(timeout=60)
    status, told = found.ask("epsilon", PURE)
    assert (status, told["error"]) == (429, "8 questions are being answered already; ask again in a moment")
    gate.set()
    for each in threads:
        each.join()
    assert answers == [200] * 8
    assert found.ask("epsilon", PURE)[0] == 200


def test_a_slow_question_is_stopped_and_the_next_one_answered(eight: Workers) -> None:
    assert eight.ask("epsilon", PURE)[0] == 200
    eight.seconds = 0.3
    status, told = eight.ask("sleep", {"seconds": 600})
    assert (status, "was stopped" in told["error"]) == (504, True)
    eight.seconds = 30.0
    assert eight.ask("epsilon", PURE)[1]["epsilon"] == 1


def test_a_greedy_question_is_refused_and_a_dying_worker_replaced(eight: Workers) -> None:
    assert eight.ask("take", {"bytes": 1000}) == (200, {"bytes": 1000})
    status, told = eight.ask("take", {"bytes": 8 << 30})
    assert (status, told["error"]) == (413, "the question needs more memory than one question may have")
    status, told = eight.ask("die", {})
    assert (status, "ended its worker" in told["error"]) == (500, True)
    assert eight.ask("epsilon", PURE)[0] == 200
