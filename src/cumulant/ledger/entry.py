"""Entries of the one append-only table: canonical text, the hash that chains them, receipts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from cumulant.domains import listed
from cumulant.errors import InputError, LedgerBroken, shown
from cumulant.html_box import facts_box

FORMAT = 2
"""The format of the bodies that this library writes: 2 rounds squares, slack and their sums up to 1e-18."""
FORMATS = (1, FORMAT)
"""The formats of the bodies that this library reads."""
HASHED = 1
"""The layout of what an entry's hash is over, and of the lines of an export."""
COLUMNS = ("account", "seq", "kind", "key", "request", "hold", "body", "state", "prev", "hash", "signature")
KINDS = ("open", "spend", "hold", "settle", "release", "grant", "reprice", "freeze", "thaw", "close")
FIRST = ""
"""The hash before the first entry of an account."""

_LONGEST_NAME = 200
_TYPES = tuple((str, int, *[str] * 3, hold, *[str] * 5) for hold in (int, type(None)))


def canonical(value: Any) -> str:
    """Return JSON with one spelling: sorted names, ASCII, no spaces, no NaN.

    >>> canonical({"b": 1, "a": "é"})
    '{"a":"\\\\u00e9","b":1}'
    """
    return _SPELLING.encode(value)


_SPELLING = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def printable(text: str) -> str:
    """Return a text with a question mark for each character that does not print.

    >>> printable("a\x1b[31mb")
    'a?[31mb'
    """
    return "".join(each if each.isprintable() else "?" for each in text)


def name_of(what: str, value: Any) -> str:
    """Return a name or key that can be stored, compared and printed; else InputError."""
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= _LONGEST_NAME
        or not value.isprintable()
        or value != value.strip()
    ):
        raise InputError(
            f"{what}={shown(value)} must be 1 to {_LONGEST_NAME} printable characters, without spaces around them"
        )
    return value


def names_of(what: str, values: Any) -> list[str]:
    """Return several different names, at least one."""
    names = [name_of(what, value) for value in listed(what, values, 'names, such as ["a", "b"]')]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{what}={shown(values)} must be one or more different names")
    return names


def number_of(what: str, value: Any) -> int:
    """Return the number of an entry."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise InputError(f"{what}={shown(value)} must be the number of an entry")
    return value


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the table.

    `body` says what was asked and charged, `state` the sums after it, `prev` is the hash of the entry before.
    """

    account: str
    seq: int
    kind: str
    key: str
    request: str
    hold: int | None
    body: str
    state: str
    prev: str
    hash: str = ""
    signature: str = ""

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Entry:
        """Read a row of the table; LedgerBroken if a cell has a type that no writer wrote.

        SQLite would store such a cell.
        """
        if tuple(map(type, row)) not in _TYPES:
            raise LedgerBroken(f"entry {shown(row[1])} of {shown(row[0])} was changed; run cumulant ledger verify")
        return cls(*row)

    def digest(self) -> str:
        """Return SHA-256 over everything but itself and the signature, which is over this."""
        parts = [
            HASHED,
            self.account,
            self.seq,
            self.kind,
            self.key,
            self.request,
            self.hold,
            self.body,
            self.state,
            self.prev,
        ]
        return sha256(canonical(parts).encode("ascii")).hexdigest()

    def content(self) -> dict[str, Any]:
        """Return the parsed body."""
        return _object(self.body, self, "body")

    def sums(self) -> dict[str, Any]:
        """Return the parsed state."""
        return _object(self.state, self, "state")

    @property
    def run(self) -> str | None:
        """Return the run in the notation; None for entries that are not about a run."""
        text = self.content().get("run")
        return text if isinstance(text, str) else None

    @property
    def time(self) -> str:
        """Return the writer's time of the entry; the order is `seq`."""
        return str(self.content().get("time"))

    @property
    def actor(self) -> str:
        """Return the writer's name for itself."""
        return str(self.content().get("actor"))

    def receipt(self, replayed: bool = False) -> Receipt:
        """Return the receipt that the writer keeps."""
        return Receipt(self.account, self.seq, self.hash, self.kind, self.key, replayed)


def moment_of(content: Mapping[str, Any]) -> datetime:
    """Return the time that a body states; LedgerBroken if that is no moment."""
    try:
        found = datetime.fromisoformat(content["time"])
    except (KeyError, TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is None:
        raise LedgerBroken(
            f"the time {shown(content.get('time'))} of an entry is no moment; run cumulant ledger verify"
        )
    return found


def note_digest(text: str) -> str:
    """Return the digest that the chain has of a note, with its salt."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _object(text: str, entry: Entry, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LedgerBroken(
            f"the {what} of entry {entry.seq} of {entry.account!r} cannot be read; run cumulant ledger verify"
        )
    return found


_SHOWN_HASH = 12
"""Digits of a hash that a short text shows; convention, as in git."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of an entry that its writer keeps: a ledger without this entry was rolled back.

    `replayed` says that the entry was written for an earlier call with the same key. Such a receipt does not allow to run
    anything again: publish the output that exists, or take a new key.

    >>> receipt = Receipt("patients", 3, "ab" * 32, "spend", "report-7")
    >>> Receipt.from_json(receipt.to_json()) == receipt
    True
    """

    account: str
    seq: int
    hash: str
    kind: str
    key: str
    replayed: bool = False

    def __repr__(self) -> str:
        again = ", replayed=True" if self.replayed else ""
        return (
            f"Receipt(account={self.account!r}, seq={self.seq}, kind={self.kind!r}, key={self.key!r}, "
            f"hash='{self.hash[:_SHOWN_HASH]}…'{again})"
        )

    def _repr_html_(self) -> str:
        again = "An earlier call with this key wrote the entry. Do not run anything again." if self.replayed else ""
        facts = {"kind": self.kind, "key": self.key, "hash": self.hash}
        return facts_box(f"Receipt: entry {self.seq} of {self.account}", facts, note=again)

    def to_json(self) -> str:
        """Return one line of JSON."""
        return canonical(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """Read JSON that `to_json` wrote, or any JSON object with account, seq and hash."""
        try:
            found = json.loads(text)
            account, seq, digest = found["account"], found["seq"], found["hash"]
        except (TypeError, ValueError, KeyError, RecursionError):
            raise InputError(f"{shown(text)} is not a receipt; give a JSON object with account, seq and hash") from None
        if not (isinstance(account, str) and isinstance(digest, str) and type(seq) is int):
            raise InputError(f"{shown(text)} is not a receipt; seq must be a whole number, account and hash texts")
        return cls(
            account, seq, digest, str(found.get("kind", "")), str(found.get("key", "")), found.get("replayed") is True
        )
