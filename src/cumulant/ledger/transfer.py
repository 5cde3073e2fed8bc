"""Ledgers as text: JSON lines that keep every hash, and CSV for people."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from typing import Any, TextIO

from cumulant.errors import InputError, LedgerBroken, LedgerError, shown
from cumulant.ledger.chain import Verdict, verify
from cumulant.ledger.entry import COLUMNS, HASHED, Entry, canonical, printable
from cumulant.ledger.keys import Keys
from cumulant.ledger.store import Store, WriteConflict, import_mark

_HEADER = {"cumulant-ledger": HASHED}
_BATCH = 1000


def write(store: Store, out: TextIO) -> int:
    """Write every entry and note of a store, one on each line."""
    count = 0
    out.write(canonical(_HEADER) + "\n")
    for account in store.names():
        for entry in store.scan(account):
            out.write(canonical({column: getattr(entry, column) for column in COLUMNS}) + "\n")
            count += 1
    for digest, text in store.notes():
        out.write(canonical({"note": digest, "text": text}) + "\n")
    return count


def write_csv(store: Store, out: TextIO) -> int:
    """Write the columns that people ask about, for every entry of a store."""
    count = 0
    table = csv.writer(out)
    table.writerow(["account", "seq", "kind", "key", "hold", "time", "actor", "run", "hash"])
    for account in store.names():
        for entry in store.scan(account):
            cells = [account, entry.kind, entry.key, entry.time, entry.actor, entry.run or "", entry.hash]
            name, kind, key, moment, actor, run, digest = map(_cell, cells)
            table.writerow([name, entry.seq, kind, key, entry.hold, moment, actor, run, digest])
            count += 1
    return count


def _cell(text: str) -> str:
    """Return a text that is no formula to a spreadsheet and no command to a terminal."""
    shown_text = printable(text)
    return f"'{shown_text}" if shown_text.startswith(("=", "+", "-", "@")) else shown_text


def read(store: Store, lines: Iterable[str], keys: Keys) -> Verdict:
    """Fill an empty store with lines of `write`, all or nothing; its accounts are frozen."""
    if isinstance(lines, str | bytes | dict) or not isinstance(lines, Iterable):
        raise InputError(f"lines={shown(lines)} must be the lines of an export, such as an open file")
    try:
        return _read(store, lines, keys)
    except WriteConflict as error:
        raise InputError(f"the export has a key, a hold or a note twice ({error}); nothing was imported") from error


def _read(store: Store, lines: Iterable[str], keys: Keys) -> Verdict:
    following: dict[str, int] = {}
    with store.transaction([]):
        if store.execute("SELECT 1 FROM entry LIMIT 1"):
            raise LedgerError(
                "the ledger is not empty, and entries of two ledgers cannot be mixed; import into a new one"
            )
        first = True
        batch: list[Entry] = []
        for number, line in enumerate(lines, 1):
            row = _row(number, line)
            if first:
                if row != _HEADER:
                    raise InputError(f"line 1 is not the beginning of an exported ledger of format {HASHED}")
                first = False
            elif "note" in row:
                store.keep_note(str(row["note"]), str(row.get("text")))
            else:
                entry = _entry(number, row)
                _check_order(number, entry, following)
                batch.append(entry)
                if len(batch) == _BATCH:
                    store.append(batch)
                    batch = []
        if first:
            raise InputError("there is nothing to import; give what cumulant ledger export wrote")
        store.append(batch)
        verdict = verify(store, store.accounts_with_entries(), keys, recompute=True)
        if not verdict:
            raise LedgerBroken(f"the export is {verdict}; nothing was imported")
        for account in store.names():
            store.mark(import_mark(account), "1")
    return verdict


def _check_order(number: int, entry: Entry, following: dict[str, int]) -> None:
    """Raise InputError for a repeated entry, LedgerBroken for a missing one."""
    expected = following.get(entry.account, 0)
    if entry.seq < expected:
        raise InputError(f"line {number} repeats entry {entry.seq} of {shown(entry.account)}; nothing was imported")
    if entry.seq > expected:
        raise LedgerBroken(
            f"the export is broken: entry {expected} of {shown(entry.account)} is missing before line {number}; "
            "nothing was imported"
        )
    following[entry.account] = expected + 1


def _row(number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"line {number} is not an entry of an exported ledger")
    return found


def _entry(number: int, row: dict[str, Any]) -> Entry:
    texts = [row.get(column) for column in COLUMNS if column not in ("seq", "hold")]
    whole = type(row.get("seq")) is int and (row.get("hold") is None or type(row["hold"]) is int)
    if set(row) != set(COLUMNS) or not whole or not all(isinstance(text, str) for text in texts):
        raise InputError(f"line {number} is not an entry of an exported ledger")
    return Entry(**row)
