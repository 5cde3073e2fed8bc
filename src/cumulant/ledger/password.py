"""Passwords in addresses: one function decides what of an address may be shown."""

from __future__ import annotations

import re

_HOST = r"(?:\[[0-9a-fA-F:.%]*\]|[\w.%-]*)(?::\d*)?"
_POSTGRES = re.compile(
    rf"(?P<scheme>postgres(?:ql)?)://(?P<user>[^@/]*@)?(?P<place>{_HOST}(?:,{_HOST})*(?:/[^@/?#]*)?)(?:\?(?P<options>[^@]*))?"
)
"""An address that PostgreSQL's client library reads in one way: a second '@', or a '/' in the password, match nothing."""
_HARMLESS = ("host", "hostaddr", "port", "dbname", "sslmode", "options", "target_session_attrs", "connect_timeout")
"""Options that are shown with their values; all others are left out."""
_UNBROKEN = re.compile(r"[^\s\x00-\x1f\x7f]*")
"""No white space: the client library ends its message about an address with a space by what follows, the password."""
_BROKEN_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})|%00")


def without_password(url: str) -> str:
    """Return an address as it may be printed, logged or sent in an answer.

    User, password and unknown options are left out.

    Of an address that can be read in two ways only the scheme is shown: a part of the password may look like a host.

    >>> without_password("postgresql://me:secret@db:5432/budget?sslmode=require&password=secret")
    'postgresql://…@db:5432/budget?sslmode=require'
    >>> without_password("postgresql://me:sec@ret@db/budget"), without_password("sqlite:///me@home.db")
    ('postgresql://…', 'sqlite:///me@home.db')
    """
    if url.startswith("sqlite:///"):
        return url
    parts = _parts(url)
    if parts is None:
        scheme, separator, _ = url.partition("://")
        return f"{scheme}://…" if separator and scheme.isalnum() else "…" if {"@", ":", "="} & set(url) else url
    options = [each for each in (parts["options"] or "").split("&") if each.partition("=")[0] in _HARMLESS]
    query = f"?{'&'.join(options)}" if options else ""
    return f"{parts['scheme']}://{'…@' if parts['user'] else ''}{parts['place']}{query}"


def may_be_quoted(url: str) -> bool:
    """Check that a server's message about this address can hold no part of its password."""
    return _parts(url) is not None


def _parts(url: str) -> re.Match[str] | None:
    """Return the parts of an address that can be read in one way only; None for any other."""
    found = _POSTGRES.fullmatch(url)
    if found is None or _BROKEN_PERCENT.search(url) or not _UNBROKEN.fullmatch(url):
        return None
    options = found["options"]
    whole = options is None or all(each.count("=") == 1 for each in options.split("&"))
    return found if whole else None
