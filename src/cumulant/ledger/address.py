"""Open the store at an address."""

from __future__ import annotations

from typing import Any

from cumulant.errors import InputError, shown
from cumulant.ledger.password import without_password
from cumulant.ledger.store import Store


def open_store(url: Any, group: bool = False) -> Store:
    """Return the store at an address.

    New files are for their owner alone, or for the group of their owner too.
    """
    if not isinstance(url, str):
        raise InputError(f"url={shown(url)} must be a text such as sqlite:///budget.db or postgresql://host/database")
    if url.startswith("sqlite:///"):
        from cumulant.ledger.sqlite import SQLite

        return SQLite(url, group is True)
    if url.startswith(("postgresql://", "postgres://")):
        from cumulant.ledger.postgres import PostgreSQL

        return PostgreSQL(url)
    raise InputError(
        f"url={shown(without_password(url))} is not a ledger; use sqlite:///relative, sqlite:////absolute or postgresql://…"
    )
