"""Questions about a ledger, as functions of JSON values; they run in worker processes too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from cumulant.filters.amounts import Amounts
from cumulant.ledger.account import Account
from cumulant.ledger.entry import Entry, Receipt
from cumulant.ledger.ledger import Ledger
from cumulant.ledger.writing import adopt_nonce

MOST_ENTRIES = 200
"""Rows in one answer: as many as a page shows without getting slow."""
MOST_SEARCHED = 20_000
"""Entries that one question looks through; measured: about a second. The next one goes on where this one stopped."""
MOST_RUNS = 3
"""Runs that are shown of each spender (convention: a row stays a row)."""
CHARGING = ("spend", "settle")
"""Entries that charge the account."""
_LONGEST_VERDICT = 2000
"""Characters of a verdict."""


@lru_cache(maxsize=1)
def _book(url: str) -> Ledger:
    return Ledger(url)


def accounts(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of the first accounts in the order of their names, and how many there are in all."""
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
        if any(wanted in str(cell).lower() for cell in row.values() if cell is not None):
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


def spenders(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return who spent what, the largest part first, from the newest entries.

    `used` is the part of the budget that these runs would use alone, as the rule of the account counts it. Such parts need
    not add up. `looked` says how many entries were read, of `all`.
    """
    book = _book(request["ledger"])
    account = book.account(request["account"])
    rule = book._writer.policy(account.name)[1].rule
    found: dict[str, dict[str, Any]] = {}
    charges: dict[str, Amounts] = {}
    lowered: dict[int, list[str]] = {}  # charges that a later entry lowered; it is read first
    looked = 0
    for entry in islice(account.newest(None), MOST_SEARCHED):
        looked += 1
        content = entry.content()
        if entry.kind == "reprice":
            lowered.setdefault(content["of"], content["charge"])
        if entry.kind not in CHARGING:
            continue
        row = found.setdefault(entry.actor, {"actor": entry.actor, "times": 0, "newest": entry.time, "runs": {}})
        row["times"] += 1
        runs = row["runs"]
        runs[entry.run] = runs.get(entry.run, 0) + 1
        charges[entry.actor] = charges.get(entry.actor, rule.zero()) + Amounts.read(
            lowered.get(entry.seq, content["charge"])
        )
    rows = [
        {**row, "used": rule.used(charges[name]), "runs": _most_often(row["runs"]), "kinds": len(row["runs"])}
        for name, row in found.items()
    ]
    rows.sort(key=lambda row: (-row["used"], row["actor"]))
    return {"spenders": rows[:MOST_ENTRIES], "looked": looked, "all": account.head().seq + 1}


def _most_often(runs: Mapping[str, int]) -> list[list[Any]]:
    """Return the runs that were charged most often, each with its number."""
    return [[run, times] for run, times in sorted(runs.items(), key=lambda item: -item[1])[:MOST_RUNS]]


def verify(request: Mapping[str, Any]) -> dict[str, Any]:
    """Check the chain of every entry."""
    verdict = _book(request["ledger"]).verify(
        request["accounts"], receipts=[Receipt.from_json(each) for each in request["receipts"]]
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
    "spenders": spenders,
    "verify": verify,
    "spend": spend,
}
