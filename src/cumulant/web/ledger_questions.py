"""Questions about a ledger, as functions of JSON values; they run in worker processes too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from cumulant.ledger.account import Account
from cumulant.ledger.entry import Entry, Receipt
from cumulant.ledger.ledger import Ledger
from cumulant.ledger.writing import adopt_nonce

MOST_ENTRIES = 200
"""Rows in one answer: as many as a page shows without getting slow."""
MOST_SEARCHED = 20_000
"""Entries that one question looks through; measured: about a second. The next one goes on where this one stopped."""
_LONGEST_VERDICT = 2000
"""Characters of a verdict."""


@lru_cache(maxsize=1)
def _book(url: str) -> Ledger:
    return Ledger(url)


def accounts(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of each account, in the order of their names."""
    book = _book(request["ledger"])
    names = book.accounts()
    return {"accounts": [Account(book, name).status().to_dict() for name in names[:MOST_ENTRIES]], "all": len(names)}


def history(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the newest entries below `before` that contain a text, newest first.

    `next` is the number to go on from, if any.
    """
    account, wanted = _book(request["ledger"]).account(request["account"]), request["search"].lower()
    rows: list[dict[str, Any]] = []
    looked, place = 0, None
    for entry in account.newest(request["before"]):
        if len(rows) == MOST_ENTRIES or looked == MOST_SEARCHED:
            place = entry.seq + 1
            break
        looked += 1
        row = _row(entry)
        if wanted in json.dumps(row, ensure_ascii=False).lower():
            rows.append(row)
    return {"entries": rows, "looked": looked, "next": place, "all": account.head().seq + 1}


def _row(entry: Entry) -> dict[str, Any]:
    content = entry.content()
    return {
        "seq": entry.seq,
        "kind": entry.kind,
        "time": content.get("time"),
        "actor": content.get("actor"),
        "run": content.get("run"),
        "key": entry.key,
        "hash": entry.hash,
    }


def verify(request: Mapping[str, Any]) -> dict[str, Any]:
    """Check the chain of every entry."""
    verdict = _book(request["ledger"]).verify(
        request["accounts"], [Receipt.from_json(each) for each in request["receipts"]]
    )
    return {"whole": bool(verdict), "said": str(verdict)[:_LONGEST_VERDICT]}


def spend(request: Mapping[str, Any]) -> dict[str, Any]:
    """Charge an account, in the name of the process that was asked."""
    adopt_nonce(request["nonce"])
    receipt = _book(request["ledger"]).account(request["account"]).spend(request["run"], key=request["key"])
    found: dict[str, Any] = json.loads(receipt.to_json())
    return found


LEDGER_QUESTIONS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "accounts": accounts,
    "history": history,
    "verify": verify,
    "spend": spend,
}
