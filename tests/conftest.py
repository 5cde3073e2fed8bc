"""What every test starts with."""

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

# before numpy is loaded: a second thread waits for a core in a loop, and makes a small product ten times as expensive
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from cumulant.accounting.cache import forget_answers
from tests import slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def nothing_remembered(request: pytest.FixtureRequest) -> None:
    """Forget all answers around a test that changes the code, which they would hide, and between files.

    Tests of one file that ask the same question share its answer: a tenth of the time (measured).
    """
    file = request.node.nodeid.partition("::")[0]
    if "monkeypatch" in request.fixturenames or file != _file[0]:
        forget_answers()
    _file[0] = "" if "monkeypatch" in request.fixturenames else file  # a changed library's answers are forgotten too


_file = [""]
"""The file of the test before, if that test left the code as it is."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage among eleven thousand tests, which stay until the end: an eighth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read the files that `make test-fast` leaves out as a whole."""
    fast = config.option.markexpr == "not slow"
    listed = fast and collection_path.is_relative_to(ROOT)
    return True if listed and collection_path.relative_to(ROOT).as_posix() in slow.listed() else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the library only: the tests have none, and a search reads every function and its source."""
    found = yield
    if not file_path.is_relative_to(ROOT / "tests"):
        return found
    return [each for each in found if type(each).__name__ != "DoctestModule"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out, and begin with files of long tests, so that no core waits for one at the end.

    At the front nobody steals a part of such a file, whose fixture would be made twice then.
    """
    for item in items:
        if slow.is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not slow.is_long(item.nodeid))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    yield from slow.timed(item.nodeid)
