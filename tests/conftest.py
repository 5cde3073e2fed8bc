"""What every test starts with."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# before numpy is loaded: a second thread waits for a core in a loop, and makes a small product ten times as expensive
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from cumulant.accounting.cache import forget_answers
from tests import slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Answers that another test has found would hide what this one changes."""
    forget_answers()
    yield
    forget_answers()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read the files that `make test-fast` leaves out as a whole."""
    fast = config.option.markexpr == "not slow"
    listed = fast and collection_path.is_relative_to(ROOT)
    return True if listed and collection_path.relative_to(ROOT).as_posix() in slow.listed() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out."""
    for item in items:
        if slow.is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    yield from slow.timed(item.nodeid)
