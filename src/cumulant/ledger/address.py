"""Open the store at an address."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from cumulant.errors import InputError, shown
from cumulant.ledger.password import without_password
from cumulant.ledger.store import Store

_KEYWORD_PASSWORD = re.compile(
    r"^(?!postgres(ql)?://|sqlite:///)(.*[\s;,&?])?[a-z]*(password|passwd|pwd|pass)\s*=", re.IGNORECASE | re.DOTALL
)
"""An address by keywords, as libpq reads it; its text would be taken for the name of a file, and printed."""

_KEYWORDS = re.compile(r"^\s*(host|hostaddr|port|dbname|user|service|sslmode)\s*=", re.IGNORECASE)
"""The beginning of an address by keywords; SQLite would make such a file, and the database would miss its entries."""


def open_store(url: Any, group: bool = False) -> Store:
    """Return the store at an address: the name of a file such as budget.db, sqlite:///FILE or postgresql://….

    New files are for their owner alone, or for the group of their owner too.
    """
    if not isinstance(url, str):
        raise InputError(f"url={shown(url)} must be a text such as sqlite:///budget.db or postgresql://host/database")
    if _KEYWORD_PASSWORD.search(url):
        raise InputError("this address has a password in a form that is not read; give postgresql://user@host/database")
    if _KEYWORDS.search(url):
        raise InputError(
            f"url={shown(url)} is an address by keywords, which is not read; give postgresql://user@host/database"
        )
    if is_file_name(url):
        url = f"sqlite:///{url}"
    if url.startswith("sqlite:///"):
        from cumulant.ledger.sqlite import SQLite

        return SQLite(url, group is True)
    if url.startswith(("postgresql://", "postgres://")):
        from cumulant.ledger.postgres import PostgreSQL

        return PostgreSQL(url)
    raise InputError(
        f"url={shown(without_password(url))} is not a ledger; give a file such as budget.db, or postgresql://host/database"
    )


def is_file_name(text: str) -> bool:
    """Return True for the name of a file, with an ending or a folder, so that no account is taken for a ledger.

    >>> (
    ...     is_file_name("budget.db"),
    ...     is_file_name("data/budget"),
    ...     is_file_name("patients"),
    ...     is_file_name("postgres:/budget.db"),
    ... )
    (True, True, False, False)
    """
    path = PurePath(text)
    drive = path.drive
    return ":" not in text.removeprefix(drive) and bool(path.suffix or path.parent != PurePath("."))
