"""Ledgers to try: a new one for each test, in both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import cumulant as cm
from tests.ledger import server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with server.address() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/budget.db"
    return server.database(request.getfixturevalue("postgres"))


@pytest.fixture
def ledger(url: str) -> cm.Ledger:
    return cm.Ledger(url)
