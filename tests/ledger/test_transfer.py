"""Ledgers as text: what is exported, imported and exported again is the same to the byte, and a copy is frozen."""

import csv
import io
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm
from cumulant.errors import LedgerBroken, LedgerError
from cumulant.ledger.entry import Entry
from tests.ledger.test_tamper import full

ORACLES = Path(__file__).parents[1] / "oracles"


def exported(ledger: cm.Ledger) -> str:
    out = io.StringIO()
    ledger.export(out)
    return out.getvalue()


def test_there_and_back(url: str, tmp_path: Path) -> None:
    account = full(url)
    ledger = account._ledger
    ledger.create("b", epsilon=2, delta="1e-9", mode="gaussian").spend(cm.Gaussian(sigma=40), note="a remark")
    text = exported(ledger)
    copy = cm.Ledger(f"sqlite:///{tmp_path}/copy.db")
    verdict = copy.import_lines(text.splitlines())
    assert verdict.entries == text.count("\n") - 2
    assert exported(copy) == text
    assert copy.account("b").note(1) == "a remark"
    with pytest.raises(LedgerError, match="not empty"):
        copy.import_lines(text.splitlines())
    imported = copy.account("b")
    for refused in (lambda: imported.spend("PureDP(1e-9)"), lambda: imported.hold("PureDP(1e-9)"), imported.freeze):
        with pytest.raises(cm.BudgetRefused, match="second copy"):
            refused()
    with pytest.raises(cm.InputError, match="twice the budget"):
        imported.thaw()
    imported.thaw(source_closed=True)
    imported.spend("PureDP(1e-9)")
    assert copy.verify()
    table = io.StringIO()
    assert ledger.export_csv(table) == verdict.entries
    assert "Gaussian(sigma=50) * 10" in table.getvalue()


def test_no_cell_of_a_table_is_a_formula(ledger: cm.Ledger) -> None:
    """The name of an account was written as it is, and spreadsheets carry out what begins with =."""
    ledger.create("=1+1", epsilon=1, delta=1e-6).spend("PureDP(1e-9)", key="+key")
    table = io.StringIO()
    ledger.export_csv(table)
    rows = list(csv.reader(io.StringIO(table.getvalue())))
    assert [row[0] for row in rows[1:]] == ["'=1+1"] * 2
    assert rows[2][3] == "'+key"


@pytest.mark.parametrize("out", [None, "ledger.jsonl", 3])
def test_an_export_needs_an_open_file(ledger: cm.Ledger, out: Any) -> None:
    for export in (ledger.export, ledger.export_csv):
        with pytest.raises(cm.InputError, match="must be an open text file"):
            export(out)
    with pytest.raises(cm.InputError, match="accounts"):
        ledger.holding("PureDP(1)", out)


def test_into_the_other_database(url: str, postgres: str, tmp_path: Path) -> None:
    from tests.ledger import server

    full(url)
    other = server.database(postgres) if url.startswith("sqlite") else f"sqlite:///{tmp_path}/other.db"
    text = exported(cm.Ledger(url))
    copy = cm.Ledger(other)
    copy.import_lines(io.StringIO(text))
    assert exported(copy) == text


def changed(text: str, number: int, **fields: object) -> list[str]:
    lines = text.splitlines()
    lines[number] = json.dumps(json.loads(lines[number]) | fields)
    return lines


def test_what_is_not_an_export(tmp_path: Path) -> None:
    text = exported(full(f"sqlite:///{tmp_path}/budget.db")._ledger)
    lines = text.splitlines()
    for number, (wrong, error) in enumerate(
        [
            ([], cm.InputError),
            (lines[1:], cm.InputError),
            (['{"cumulant-ledger":2}', *lines[1:]], cm.InputError),
            ([*lines, "{"], cm.InputError),
            ([*lines, "[]"], cm.InputError),
            (changed(text, 3, seq="3"), cm.InputError),
            (changed(text, 3, more=1), cm.InputError),
            (changed(text, 3, body="{}"), LedgerBroken),
            (changed(text, 3, kind="spend"), LedgerBroken),
            ([lines[0], *lines[2:]], LedgerBroken),
            (lines[:4] + lines[5:], LedgerBroken),
            (lines[:4] + lines[3:], cm.InputError),
            ([*lines, lines[3]], cm.InputError),
            ([*lines, *['{"note":"a","text":"b"}'] * 2], cm.InputError),
            (changed(text, 3, key="one"), cm.InputError),
        ]
    ):
        copy = cm.Ledger(f"sqlite:///{tmp_path}/{number}.db")
        with pytest.raises(error, match=r"line|nothing (was|to) import") as found:
            copy.import_lines(wrong)
        assert "another writer" not in str(found.value) or "twice" in str(found.value)
        assert copy.accounts() == []


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "a\u202eb", " a", ""])
def test_names_that_no_account_can_have_are_not_imported(tmp_path: Path, name: str) -> None:
    """An export whose account was renamed, with every hash repaired."""
    first, *lines = exported(full(f"sqlite:///{tmp_path}/budget.db")._ledger).splitlines()
    previous, forged = "", [first]
    for fields in (json.loads(line) for line in lines):
        if "seq" not in fields:
            continue  # a note
        entry = replace(Entry(**fields), account=name, prev=previous)
        entry = replace(entry, hash=entry.digest())
        previous = entry.hash
        forged.append(json.dumps(asdict(entry)))
    copy = cm.Ledger(f"sqlite:///{tmp_path}/copy.db")
    with pytest.raises((cm.InputError, LedgerBroken), match=r"printable|name="):
        copy.import_lines(forged)
    assert copy.accounts() == []


@pytest.mark.parametrize("path", sorted(ORACLES.glob("ledger-*.jsonl")), ids=lambda path: path.stem)
def test_ledgers_of_every_released_version(path: Path, tmp_path: Path) -> None:
    """They are imported, verified to the last charge and exported again as they were."""
    text = path.read_text(encoding="utf-8")
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    assert ledger.import_lines(text.splitlines())
    assert ledger.verify(recompute=True)
    assert exported(ledger) == text
    assert {entry.kind for name in ledger.accounts() for entry in ledger.account(name).history()} >= {
        "open",
        "spend",
        "hold",
        "settle",
        "release",
        "grant",
        "freeze",
        "thaw",
        "close",
    }


def test_there_is_a_ledger_of_a_released_version() -> None:
    assert list(ORACLES.glob("ledger-*.jsonl"))
