"""What every test starts with."""

from collections.abc import Iterator

import pytest

from cumulant.accounting.cache import forget_answers


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Answers that another test has found would hide what this one changes."""
    forget_answers()
    yield
    forget_answers()
