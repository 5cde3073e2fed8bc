"""A limit on the time that one call takes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Slow(Exception):
    """Raised where a call takes longer than its limit; the hunt counts it and goes on."""


def _ring(*_: Any) -> None:
    raise Slow


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """So many seconds for what runs inside, in the main thread of a process; 0 is no limit."""
    if not seconds:
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
