"""A bar on stderr while a command works, where someone is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def told(steps: int) -> Iterator[Callable[[str], None]]:
    """A function to call before each of so many steps with what comes next; silent unless stderr is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=steps)
        done = -1

        def tell(what: str) -> None:
            nonlocal done
            done += 1
            progress.update(task, completed=done, description=what)

        yield tell
