"""Processes that answer one question each and can be stopped.

A question that takes too long costs nobody else anything.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

MOST = 8
"""Questions that are answered at the same time."""

MOST_OF_A_KIND = {"verify": 2}
"""Questions of a kind that are answered at the same time, so that long ones leave workers to others."""

SECONDS = 30.0
"""After which a question is stopped."""

_MEMORY = 4 << 30
_TO_START = 60.0
"""Seconds that a new process may take before it can be asked; loading the library is not part of the question."""

READY = "ready"
Answer = tuple[int, dict[str, Any]]


def serve(line: Connection) -> None:
    """Answer the questions that come along the line, until that ends."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server stops its workers itself
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    from cumulant.web.questions import answer_question

    line.send(READY)
    while True:
        try:
            kind, request = line.recv()
        except (EOFError, OSError):
            return
        line.send(answer_question(kind, request))


TARGET = serve
"""The function that a new process runs."""


class _Worker:
    """One process and the line to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=TARGET, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        if not (self.line.poll(_TO_START) and self.line.recv() == READY):
            self.stop()
            raise OSError("a worker process did not start")

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.line.close()


class Workers:
    """Worker processes: at most so many questions at once, each for so many seconds.

    Workers are kept for the next question.

    >>> workers = Workers(most=1)
    >>> workers.ask("epsilon", {"run": "PureDP(1)", "delta": 0})[1]["epsilon"]
    1.0
    >>> workers.close()
    """

    def __init__(self, most: int = MOST, seconds: float = SECONDS) -> None:
        self.most, self.seconds = most, seconds
        self._free = threading.BoundedSemaphore(most)
        self._some = {kind: threading.BoundedSemaphore(count) for kind, count in MOST_OF_A_KIND.items()}
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, kind: str, request: Mapping[str, Any]) -> Answer:
        """Return the status and the answer; 429 if all are busy, 504 if it took too long."""
        some = self._some.get(kind)
        if some is not None and not some.acquire(blocking=False):
            return 429, _sentence(
                f"{MOST_OF_A_KIND[kind]} such questions are being answered already; ask again in a moment"
            )
        try:
            if not self._free.acquire(blocking=False):
                return 429, _sentence(f"{self.most} questions are being answered already; ask again in a moment")
            try:
                return self._ask_worker(kind, request)
            finally:
                self._free.release()
        finally:
            if some is not None:
                some.release()

    def _ask_worker(self, kind: str, request: Mapping[str, Any]) -> Answer:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        try:
            worker = worker or _Worker()
            with self._lock:
                if self.is_closed():
                    worker.stop()
                    return 503, _sentence("the page is being stopped")
                self._busy.add(worker)
            worker.line.send((kind, request))
            if worker.line.poll(self.seconds):
                found: Answer = worker.line.recv()
                with self._lock:
                    self._busy.discard(worker)
                    if not self.is_closed():
                        self._idle.append(worker)
                        return found
                worker.stop()
                return found
        except (EOFError, OSError):  # it was killed, or ran out of memory
            if worker is not None:
                self._stop(worker)
            if self.is_closed():
                return 503, _sentence("the page is being stopped")
            return 500, _sentence("the question ended its worker; ask a smaller one")
        self._stop(worker)
        return 504, _sentence(
            f"the question took more than {self.seconds:g} seconds and was stopped; ask a smaller one"
        )

    def is_closed(self) -> bool:
        """Return True once the workers are closed."""
        return self._closed

    def _stop(self, worker: _Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
        worker.stop()

    def close(self) -> None:
        """Stop every worker.

        Whoever waits for the answer of a busy one gets a sentence: the page is being stopped.
        """
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for worker in idle:
            worker.stop()
        for worker in busy:
            worker.process.kill()  # its line ends, and the thread that waits there does the rest


def _sentence(sentence: str) -> dict[str, Any]:
    return {"error": sentence, "position": None}
