"""Ledgers of schema 1 are read, verified, upgraded and used on; every receipt of them stays good."""

import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.errors import LedgerBroken, LedgerError
from cumulant.filters.filter import UNIT
from cumulant.ledger.entry import Receipt
from cumulant.ledger.store import SCHEMA
from tests.ledger import server
from tests.ledger.test_postgres import as_role
from tests.ledger.test_tamper import tampered

ORACLES = Path(__file__).parents[1] / "oracles"
KEYS = ORACLES / "ledger-schema-1.keys"
STEP = cm.Gaussian(sigma=50)


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a ledger that the library wrote when its schema was 1."""
    if request.param == "sqlite":
        shutil.copy(ORACLES / "ledger-schema-1.db", tmp_path / "budget.db")
        yield f"sqlite:///{tmp_path}/budget.db"
        return
    import psycopg

    url = server.database(request.getfixturevalue("postgres"))
    dump = (ORACLES / "ledger-schema-1.sql").read_text(encoding="utf-8").replace("ledger_schema_1", server.schema(url))
    for role in ("old_spender", "old_auditor"):
        dump = dump.replace(role, f"{role}_{server.schema(url)}")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {server.schema(url)}")  # type: ignore[call-overload,unused-ignore]
        for role in ("old_spender", "old_auditor"):
            connection.execute(f"CREATE ROLE {role}_{server.schema(url)} LOGIN")  # type: ignore[call-overload,unused-ignore]
        connection.execute(dump)  # type: ignore[call-overload,unused-ignore]
    yield url


def receipts(url: str) -> list[Receipt]:
    kind = url.partition(":")[0]
    lines = (ORACLES / f"ledger-schema-1.{kind}.receipts").read_text(encoding="utf-8").splitlines()
    return [Receipt.from_json(line) for line in lines]


def check(url: str) -> None:
    """Every entry is sound, to the last charge, by its key and by its receipt."""
    verdict = cm.Ledger(url, keys=KEYS).verify(receipts=receipts(url), recompute=True)
    assert verdict, verdict
    assert verdict.entries >= len(receipts(url)) == 64


def test_an_old_ledger_is_read_and_verified_as_it_is(old: str) -> None:
    ledger = cm.Ledger(old)
    check(old)
    assert ledger._store.schema() == 1
    assert {name: ledger.account(name).status().state for name in ledger.accounts()} == {
        "adaptive": "open",
        "block/1": "open",
        "block/2": "open",
        "copied": "imported",
        "digits": "open",
        "gaussian": "open",
        "planned": "open",
        "pure": "closed",
        "signed": "frozen",
        "über/Größe": "open",
    }
    for refused in (
        lambda: ledger.account("adaptive").spend(STEP),
        lambda: ledger.account("adaptive").freeze(),
        lambda: ledger.create("new", epsilon=1, delta=1e-6),
    ):
        with pytest.raises(LedgerError, match="to write to it, run: cumulant ledger upgrade"):
            refused()
    check(old)


def test_an_upgrade_keeps_every_entry_and_the_ledger_goes_on(old: str) -> None:
    ledger = cm.Ledger(old)
    before = {name: list(ledger.account(name).history()) for name in ledger.accounts()}
    reader = cm.Ledger(old)
    reader.accounts()
    assert ledger.upgrade() == (1, SCHEMA)
    assert {name: list(ledger.account(name).history()) for name in ledger.accounts()} == before
    check(old)
    adaptive = reader.account("adaptive")  # connected before the upgrade
    adaptive.spend(cm.ApproximateDP(epsilon=0.0123456789, delta=1.23456789e-9))
    adaptive.held(next(hold["seq"] for hold in adaptive.status().holds)).settle(None)
    gaussian = ledger.account("gaussian")
    gaussian.spend(cm.Gaussian(sigma=51.23456789))
    for hold in gaussian.status().holds:
        gaussian.settle(hold["seq"], None)
    ledger.account("block/1").settle(next(hold["seq"] for hold in ledger.account("block/1").status().holds), None)
    ledger.account("planned").spend("Laplace(scale=40)")
    adaptive.reprice()
    ledger.account("copied").thaw(source_closed=True)
    ledger.account("copied").spend(STEP)
    cm.Ledger(old, keys=KEYS).account("signed").thaw()
    check(old)
    assert ledger.upgrade() == (SCHEMA, SCHEMA)


def test_roles_keep_their_rights_through_an_upgrade(old: str) -> None:
    if old.startswith("sqlite"):
        return
    cm.Ledger(old).upgrade()
    for kind in ("spender", "auditor"):
        role = f"old_{kind}_{server.schema(old)}"
        change(old, f"GRANT USAGE ON SCHEMA {server.schema(old)} TO {role}")
        account = cm.Ledger(as_role(old, role)).account("block/1")
        assert account.verify(recompute=True)
        if kind == "spender":
            account.spend(STEP, note="after the upgrade")
        else:
            with pytest.raises(LedgerError, match="may not do that"):
                account.spend(STEP)
    check(old)


def test_an_account_that_had_run_out_of_digits_goes_on(old: str) -> None:
    ledger = cm.Ledger(old)
    ledger.upgrade()
    account = ledger.account("digits")
    assert max(len(text) for text in list(account.history())[-1].sums()["spent"]) > 6000
    account.settle(account.status().holds[0]["seq"], None)
    account.spend(cm.Gaussian(sigma=321.123456789))
    state = list(account.history())[-1].sums()
    assert max(len(text) for name in ("spent", "held") for text in state[name]) < 60
    assert account.verify(recompute=True)
    exact = sum(
        times / term.sigma**2  # type: ignore[attr-defined]
        for entry in account.history()
        if entry.run is not None and entry.kind != "hold"
        for term, times in cm.parse(entry.run).terms.items()
    )
    assert 0 <= account._writer.position("digits").state.spent.values[0] - exact < Fraction(5, UNIT)


@pytest.mark.parametrize("value", ["x", "", "0", "-1", "1.5", "١", "99999999999999999999"])
def test_a_schema_that_is_no_number(url: str, value: str) -> None:
    cm.Ledger(url).create("a", epsilon=1, delta=1e-6)
    tampered(url, f"UPDATE meta SET value = '{value}' WHERE name = 'schema'")
    for asked in (cm.Ledger(url).accounts, cm.Ledger(url).upgrade, cm.Ledger(url).verify):
        with pytest.raises(LedgerBroken, match="is no version; restore that row"):
            asked()


@pytest.mark.parametrize("protection", ["entries_stay", "entries_remain", "entries_follow", "ended", "held"])
def test_what_protects_the_tables_is_looked_at(url: str, protection: str) -> None:
    account = cm.Ledger(url).create("a", epsilon=1, delta=1e-6)
    account.spend(STEP)
    assert account.verify()
    kind = "TRIGGER" if protection.startswith("entries") else "INDEX"
    where = " ON entry" if kind == "TRIGGER" and url.startswith("postgres") else ""
    change(url, f"DROP {kind} {protection}{where}")
    verdict = cm.Ledger(url).verify()
    assert not verdict
    assert verdict.account is None
    assert "dropped" in verdict.reason
    assert "broken: the" in str(verdict)


def test_protections_that_were_disabled_or_added(url: str) -> None:
    account = cm.Ledger(url).create("a", epsilon=1, delta=1e-6)
    if url.startswith("sqlite"):
        change(url, "CREATE TRIGGER mine BEFORE INSERT ON entry BEGIN SELECT RAISE(IGNORE); END")
        assert "added the trigger mine" in account.verify().reason
        change(url, "DROP TRIGGER mine")
        change(url, "CREATE UNIQUE INDEX mine ON entry (account, kind)")
        assert "added the index mine" in account.verify().reason
        change(url, "DROP INDEX mine")
        assert account.verify()
        change(url, "DROP TRIGGER entries_follow")
        change(url, "UPDATE meta SET value = '1' WHERE name = 'schema'")
        assert "was set back" in account.verify().reason
        return
    for off, on, said in (
        (
            "ALTER TABLE entry DISABLE TRIGGER entries_stay",
            "ALTER TABLE entry ENABLE TRIGGER entries_stay",
            "entries_stay",
        ),
        ("ALTER TABLE entry DISABLE ROW LEVEL SECURITY", "ALTER TABLE entry ENABLE ROW LEVEL SECURITY", "row security"),
        ("CREATE RULE mine AS ON INSERT TO entry DO INSTEAD NOTHING", "DROP RULE mine ON entry", "rule mine"),
        (
            "CREATE OR REPLACE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
            "",
            "function of the trigger",
        ),
    ):
        change(url, off)
        assert said in account.verify().reason
        if on:
            change(url, on)
            assert account.verify()


@pytest.mark.parametrize("seq", [0, 2, 7, 2**63 - 1])
def test_only_the_next_entry_can_be_inserted(url: str, seq: int) -> None:
    account = cm.Ledger(url).create("a", epsilon=1, delta=1e-6)
    account.spend(STEP)
    statement = (
        "INSERT INTO entry (account, seq, kind, key, request, hold, body, state, prev, hash, signature) "
        "VALUES ('{}', {}, 'spend', 'k{}', '', NULL, '', '', '', '', '')"
    )
    for name, number in (("a", seq if seq != 2 else 1), ("new", seq)):
        with pytest.raises(Exception, match="follows the newest one"):
            change(url, statement.format(name, number, number))
    account.spend(STEP)
    assert account.verify()


def change(url: str, statement: str) -> None:
    """Carry out a statement as somebody who owns the database can."""
    if url.startswith("sqlite"):
        import sqlite3

        database = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            database.execute(statement)
            database.commit()
        finally:
            database.close()
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload,unused-ignore]
