"""A progress bar on stderr for long work, where someone is looking."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

Item = TypeVar("Item")

PATIENCE = 1.0
"""Seconds after which one wants to know how far it is."""


@contextmanager
def step_progress(steps: int, done: int = 0) -> Iterator[Callable[[str], None]]:
    """Yield a function to call before each of so many steps, with the name of the next one.

    Some of the steps are done already.

    Prints nothing unless stderr is a terminal.
    """
    if not _has_terminal():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=steps)
        done -= 1

        def tell(what: str) -> None:
            nonlocal done
            done += 1
            progress.update(task, completed=done, description=what)

        yield tell


def watched(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield the items one by one; after a second, with a bar of how many are done."""
    started = time.monotonic()
    with ExitStack() as stack:
        tell: Callable[[str], None] | None = None
        for done, item in enumerate(items):
            if tell is None and _has_terminal() and time.monotonic() - started >= PATIENCE:
                tell = stack.enter_context(step_progress(len(items), done))
            if tell is not None:
                tell(f"{done:,} of {len(items):,} {what}")
            yield item


def _has_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
