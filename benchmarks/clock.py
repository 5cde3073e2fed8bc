"""A limit on the processor time that one call takes, and a line about how far a hunt is."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class Slow(Exception):
    """Raised where a call takes longer than its limit; the hunt counts it and goes on."""


SQUARES = 10**7
"""Squares that are added to measure a machine; convention."""

REFERENCE = 1.0
"""Seconds of the processor in which a machine of reference adds them (convention: Python 3.11 at 3 GHz takes 0.7 to 1.0)."""


def scaled(seconds: int) -> int:
    """Seconds of this machine that are as long as so many of one of reference, where this one is slower; 0 is no limit."""
    start, total = time.process_time(), 0
    for i in range(SQUARES):
        total += i * i
    pace = max((time.process_time() - start) / REFERENCE, 1.0)
    if seconds and pace > 1:
        print(
            f"this machine is {pace:.1f} times as slow as that of reference: {seconds} s are {pace * seconds:.0f}",
            flush=True,
        )
    return math.ceil(pace * seconds)


def _ring(*_: Any) -> None:
    raise Slow


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """So many seconds of the processor for what runs inside, in the main thread of a process; 0 is no limit.

    Processor time is the same on a busy machine, so that a hunt leaves out the same calls everywhere.
    """
    if not seconds:
        yield
        return
    before = signal.signal(signal.SIGPROF, _ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def within(results: Iterable[T], minutes: float) -> Iterator[T]:
    """Yield results until so many minutes have passed, and say that the rest was left out; 0 is no limit."""
    start = time.perf_counter()
    for count, result in enumerate(results, start=1):
        yield result
        if minutes and time.perf_counter() - start > 60 * minutes:
            print(f"{minutes:g} minutes are over after {count}; the rest was left out", flush=True)
            return


def report(done: int, total: int) -> None:
    """Print how far a hunt is, ten times in all."""
    if done % max(1, total // 10) == 0:
        print(f"{done} of {total}", flush=True)
