"""What every test starts with."""

from collections.abc import Iterator

import pytest

from cumulant.accounting.cache import forget_answers
from tests import slow


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Answers that another test has found would hide what this one changes."""
    forget_answers()
    yield
    forget_answers()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out."""
    for item in items:
        if slow.function(item.nodeid) in slow.listed():
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    yield from slow.timed(item.nodeid)
