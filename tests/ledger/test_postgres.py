"""The shared store: roles with the rights they need and no more, servers that forget are refused."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from urllib.parse import urlsplit, urlunsplit

import pytest

import cumulant as cm
from cumulant.errors import LedgerError
from cumulant.ledger import postgres as store
from cumulant.ledger import writing
from cumulant.ledger.account import Account
from cumulant.ledger.entry import Entry
from cumulant.ledger.postgres import PostgreSQL
from cumulant.ledger.store import SCHEMA
from tests.ledger import server

STEP = cm.Gaussian(sigma=50)


def execute(url: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload,unused-ignore]


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}"))


@pytest.fixture
def url(postgres: str) -> str:
    return server.database(postgres)


def role(url: str, kind: str) -> str:
    name = f"{kind}_{server.schema(url)}"
    execute(url, f"CREATE ROLE {name} LOGIN", f"GRANT USAGE ON SCHEMA {server.schema(url)} TO {name}")
    cm.Ledger(url).grant(kind, name)
    return as_role(url, name)


def test_a_spender_may_spend_and_nothing_else(url: str) -> None:
    owner = cm.Ledger(url)
    owner.create("a", epsilon=1, delta="1e-6").freeze()
    owner.account("a").thaw()
    spender = cm.Ledger(role(url, "spender"))
    account = spender.account("a")
    account.spend(STEP, note="a remark")
    hold = account.hold(STEP * 2)
    hold.settle(STEP)
    ours = account.hold(STEP)
    for forbidden in (
        lambda: ours.release(unseen=True),
        account.freeze,
        account.close,
        lambda: account.grant("me", 1),
        lambda: spender.create("b", epsilon=9, delta="0.1"),
        lambda: spender._store.execute("UPDATE entry SET key = 'x'"),
        lambda: spender._store.execute("DELETE FROM entry"),
        lambda: spender._store.execute("TRUNCATE entry"),
        lambda: spender._store.execute("DELETE FROM note"),
        lambda: spender._store.mark("imported:a", None),
    ):
        with pytest.raises(LedgerError, match="this role may not do that"):
            forbidden()
    owner.account("a").release(ours.seq, unseen=True)
    assert spender.verify(recompute=True)
    assert [entry.kind for entry in account.history()][3:] == ["spend", "hold", "settle", "hold", "release"]


def test_rights_can_be_given_twice_and_never_to_everybody(url: str) -> None:
    owner = cm.Ledger(url)
    owner.create("a", epsilon=1, delta="1e-6")
    for kind in ("spender", "auditor"):
        address = role(url, kind)
        owner.grant(kind, address.partition("//")[2].partition("@")[0])
        assert cm.Ledger(address).verify()
        for wrong in ("public", "none", "pg_monitor", "PUBLIC", "a b", "x" * 60):
            with pytest.raises(cm.InputError, match="the plain name of one role"):
                owner.grant(kind, wrong)
    assert owner.verify()


def test_a_spender_cannot_block_an_account_or_a_name(url: str) -> None:
    """Rows far ahead, or at the beginning of an account that nobody has opened; also behind a table of the same name."""
    import psycopg

    owner = cm.Ledger(url)
    account = owner.create("a", epsilon=1, delta="1e-6")
    spender = role(url, "spender")
    row = "INSERT INTO {}entry VALUES ('{}', {}, 'spend', 'k', '', NULL, '', '', '', '', '')"
    temporary = "CREATE TEMPORARY TABLE entry AS SELECT 'a'::text AS account, {}::bigint AS seq"
    for name, seq in (("a", 2**63 - 1), ("a", 5), ("new", 0), ("new", 3)):
        with psycopg.connect(spender, autocommit=True) as connection:
            connection.execute(temporary.format(seq - 1))  # type: ignore[call-overload,unused-ignore]
            with pytest.raises(psycopg.errors.UniqueViolation, match="follows the newest one"):
                connection.execute(row.format(f"{server.schema(url)}.", name, seq))  # type: ignore[call-overload,unused-ignore]
    account.spend(STEP)
    owner.create("new", epsilon=1, delta="1e-6")
    assert owner.verify()


def test_an_auditor_may_read(url: str) -> None:
    cm.Ledger(url).create("a", epsilon=1, delta="1e-6").spend(STEP)
    auditor = cm.Ledger(role(url, "auditor"))
    assert auditor.verify(recompute=True)
    assert auditor.account("a").status().entries == 2
    with pytest.raises(LedgerError, match="this role may not do that"):
        auditor.account("a").spend(STEP)


def test_owners_cannot_change_entries_by_mistake(url: str) -> None:
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    for statement in ("UPDATE entry SET key = 'x'", "DELETE FROM entry", "TRUNCATE entry"):
        with pytest.raises(LedgerError, match="entries are never changed or deleted"):
            account._writer.store.execute(statement)
    assert account.verify()


def test_tenants_see_their_own_accounts(url: str) -> None:
    """The statements of the page for operators: one role per tenant, rows by the prefix of the account."""
    owner = cm.Ledger(url)
    owner.create("north/a", epsilon=1, delta="1e-6")
    owner.create("south/a", epsilon=1, delta="1e-6")
    name = f"north_{server.schema(url)}"
    execute(
        url,
        f"CREATE ROLE {name} LOGIN",
        f"GRANT USAGE ON SCHEMA {server.schema(url)} TO {name}",
        f"GRANT SELECT, INSERT ON entry TO {name}",
        f"GRANT SELECT ON meta TO {name}",
        f"GRANT SELECT, UPDATE ON queue TO {name}",
        f"CREATE POLICY {name}_reads ON entry FOR SELECT TO {name} USING (account LIKE 'north/%')",
        f"CREATE POLICY {name}_spends ON entry FOR INSERT TO {name} "
        "WITH CHECK (account LIKE 'north/%' AND kind IN ('spend', 'hold', 'settle'))",
    )
    tenant = cm.Ledger(as_role(url, name))
    assert tenant.accounts() == ["north/a"]
    tenant.account("north/a").spend(STEP)
    assert "only accounts that row security shows to this role" in str(tenant.verify(recompute=True))
    with pytest.raises(cm.InputError, match="there is no account 'south/a'"):
        tenant.account("south/a")
    assert owner.verify()


def test_nothing_is_not_sound_for_a_role_that_may_not_see_it(url: str) -> None:
    cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    name = f"nobody_{server.schema(url)}"
    execute(
        url,
        f"CREATE ROLE {name} LOGIN",
        f"GRANT USAGE ON SCHEMA {server.schema(url)} TO {name}",
        f"GRANT SELECT ON entry, meta, note, queue TO {name}",
    )
    with pytest.raises(LedgerError, match="row security shows no account to this role, so nothing could be checked"):
        cm.Ledger(as_role(url, name)).verify()
    assert "row security" not in str(cm.Ledger(role(url, "auditor")).verify())


@pytest.mark.parametrize(
    ("rows", "allowed"),
    [
        ("kind IN ('spend', 'hold', 'settle')", True),
        ("kind = 'spend' AND account LIKE 'north/%'", True),
        ("account LIKE 'north/%' AND length(key) < 9 AND kind IN ('spend', 'hold')", True),
        ("kind = 'spend' OR kind = 'hold'", True),
        ("kind = 'spend' OR kind IN ('hold', 'settle') OR kind = 'hold'", True),
        ("kind = ANY ('{spend,hold}'::text[])", True),
        ("account LIKE 'north/%' AND (kind = 'spend' OR kind = ANY ('{hold,settle}'))", True),
        ("(kind = 'spend' OR kind = 'hold') AND account LIKE 'north/%' AND length(key) < 9", True),
        ("true", False),
        ("kind = 'spend' OR kind = 'grant'", False),
        ("kind = 'spend' OR kind = 'hold' OR account = 'a'", False),
        ("kind = 'spend' OR (kind = 'hold' OR key = 'k')", False),
        ("(kind = 'spend' OR kind = 'hold') AND account = 'a' OR key = 'k'", False),
        ("key = 'k' OR account = 'a' AND (kind = 'spend' OR kind = 'hold')", False),
        ("NOT (kind = 'spend' OR kind = 'hold')", False),
        ("kind = ANY ('{spend,grant}'::text[])", False),
        ("kind <> ALL ('{spend,hold}'::text[])", False),
        (
            "account = 'x AND (kind = ''spend''::text))' OR key = ' AND ((kind = ''spend''::text) OR (kind = ''hold''::text))'",
            False,
        ),
        ("kind IN ('spend', 'grant')", False),
        ("account LIKE 'north/%' OR kind IN ('spend', 'hold', 'settle')", False),
        ("key = 'k' OR (account = 'a' AND kind IN ('spend', 'hold', 'settle'))", False),
        ("(kind = 'spend' AND account = 'a') OR (key = 'k' AND kind = 'spend')", False),
        ("NOT (account = 'a' AND kind = 'spend')", False),
    ],
)
@pytest.mark.parametrize("command", ["FOR INSERT", "FOR ALL USING (true)"])
def test_policies_for_other_entries_are_noticed(url: str, command: str, rows: str, allowed: bool) -> None:
    owner = cm.Ledger(url)
    owner.create("a", epsilon=1, delta="1e-6")
    execute(url, f"CREATE POLICY evil ON entry {command} WITH CHECK ({rows})")
    said = "the policy evil may let roles insert other entries than spends, holds and settlements"
    assert (said in str(owner.verify())) is not allowed
    assert bool(owner.verify()) is allowed


def test_servers_that_forget_are_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    carry_out = PostgreSQL._run
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):

        def run(self: object, connection: object, statement: str, values: object, setting: str = setting) -> object:
            return [("off",)] if statement == f"SHOW {setting}" else carry_out(self, connection, statement, values)  # type: ignore[arg-type]

        monkeypatch.setattr(PostgreSQL, "_run", run)
        with pytest.raises(LedgerError, match=f"{setting}=off"):
            cm.Ledger(url).accounts()


def test_a_database_without_an_encoding_is_refused(url: str) -> None:
    """It was said that the server has fsync=b'on'."""
    name = f"ascii_{server.schema(url)}"
    execute(url, f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    parts = urlsplit(url)
    address = urlunsplit(parts._replace(path=f"/{name}", query=""))
    try:
        with pytest.raises(LedgerError, match="has the encoding SQL_ASCII, which keeps bytes and no text"):
            cm.Ledger(address).create("a", epsilon=1, delta="1e-6")
    finally:
        execute(url, f"DROP DATABASE {name} WITH (FORCE)")


def test_tables_that_a_crash_empties_are_refused(url: str) -> None:
    cm.Ledger(url).create("a", epsilon=1, delta="1e-6").spend(STEP)
    execute(url, "ALTER TABLE entry SET UNLOGGED")
    ledger = cm.Ledger(url)
    assert not ledger.verify()
    with pytest.raises(LedgerError, match=r"the table entry is not logged, .* run ALTER TABLE entry SET LOGGED"):
        ledger.account("a").spend(STEP)
    execute(url, "ALTER TABLE entry SET LOGGED")
    assert cm.Ledger(url).account("a").spend(STEP).seq == 2


def test_a_session_cannot_make_commits_forgetful(url: str) -> None:
    ledger = cm.Ledger(url)
    ledger.create("a", epsilon=1, delta="1e-6")
    ledger._store.execute("SET synchronous_commit = off")
    with ledger._store.transaction(["a"]):
        assert ledger._store.execute("SHOW synchronous_commit") == [("on",)]


def test_whoever_waits_for_the_lock_sees_what_its_owner_wrote(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock and read travel together and are two statements, each with a snapshot of its own."""
    ledger = cm.Ledger(url)
    account, store, found = ledger.create("a", epsilon=1, delta="1e-6"), ledger._store, list[int]()
    waiter = threading.Thread(target=lambda: found.append(cm.Ledger(url).account("a").spend(STEP).seq))
    append, attempts = store.append, list[object]()
    blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"

    def while_somebody_waits(entries: Sequence[Entry]) -> None:
        waiter.start()
        while store.execute(blocked) == [(0,)]:
            time.sleep(0.01)
        append(entries)

    monkeypatch.setattr(store, "append", while_somebody_waits)
    monkeypatch.setattr(writing, "time", SimpleNamespace(sleep=attempts.append))  # before a second attempt
    assert account.spend(STEP).seq == 1
    waiter.join()
    assert (found, attempts) == ([2], [])


def test_a_client_that_does_not_answer_loses_the_lock(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped between its lock and its entry, or cut off: the others go on, and it asks again."""
    monkeypatch.setattr(store, "_LONGEST_IDLE", "50ms")
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    append, unanswered = account._writer.store.append, [True]

    def after_a_while(entries: Sequence[Entry]) -> None:
        if unanswered.pop() if unanswered else False:
            assert cm.Ledger(url).account("a").spend(STEP, key="other").seq == 1
        append(entries)

    monkeypatch.setattr(account._writer.store, "append", after_a_while)
    assert account.spend(STEP, key="slow").seq == 2
    assert account.verify()


def test_a_connection_that_was_cut_while_it_was_idle(url: str) -> None:
    """By a firewall or a restart, while a job trained for hours: what it asks next is answered."""
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    hold = account.hold(STEP * 3)

    def cut() -> None:
        ((backend,),) = account._writer.store.execute("SELECT pg_backend_pid()")
        execute(url, f"SELECT pg_terminate_backend({backend})")

    for asked in (
        account.status,
        lambda: list(account.history()),
        account.verify,
        account.head,
        lambda: hold.settle(STEP),
    ):
        cut()
        asked()
    assert [entry.kind for entry in account.history()] == ["open", "hold", "settle"]
    with pytest.raises(LedgerError, match="interrupted"):
        cut_within(account)


def cut_within(account: Account) -> None:
    """A transaction that lost its connection is not continued in another one."""
    store = account._writer.store
    with store.transaction(["a"]):
        ((backend,),) = store.execute("SELECT pg_backend_pid()")
        execute(store.url, f"SELECT pg_terminate_backend({backend})")
        store.execute("SELECT 1")


def test_a_newer_schema(url: str) -> None:
    ledger = cm.Ledger(url)
    ledger.create("a", epsilon=1, delta="1e-6")
    ledger._store.mark("schema", str(SCHEMA + 1))
    for refused in (cm.Ledger(url).accounts, cm.Ledger(url).upgrade):
        with pytest.raises(LedgerError, match=f"schema {SCHEMA + 1} and this library knows {SCHEMA}"):
            refused()


def test_texts_travel_as_they_are(url: str) -> None:
    ledger = cm.Ledger(url)
    for text in ("it's", "100 %s", "\\'; DROP TABLE entry; --", "E'\\047", "?", "π∑ 🂡", "$1"):
        account = ledger.create(text, epsilon=1, delta="1e-6", owner=text)
        receipt = account.spend(STEP, key=text, note=text)
        assert account.find(text) == next(account.history(1))
        assert (account.note(receipt.seq), account.policy.owner) == (text, text)
    assert ledger.verify()
    assert len(ledger.accounts()) == 7


def test_no_server_is_one_sentence() -> None:
    with pytest.raises(LedgerError, match="cannot be reached"):
        cm.Ledger("postgresql://postgres:secret@127.0.0.1:1/none").accounts()
    try:
        cm.Ledger("postgresql://postgres:secret@127.0.0.1:1/none").accounts()
    except LedgerError as error:
        assert "secret" not in str(error)  # noqa: PT017
    for wrong in ("budget; DROP TABLE entry", "Budget", ""):
        with pytest.raises(cm.InputError, match="role="):
            PostgreSQL("postgresql://postgres@127.0.0.1:1/none").grant("spender", wrong)


def test_a_text_that_no_database_can_hold(url: str) -> None:
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    with pytest.raises(cm.InputError):
        account.spend(STEP, note="a\0b")
    assert account.head().seq == 0


# ---- the queue of writers


def test_an_auditor_cannot_stop_writers(url: str) -> None:
    import psycopg

    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    with psycopg.connect(role(url, "auditor")) as auditor:
        for lock in ("FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                auditor.execute(f"SELECT * FROM queue {lock}")  # type: ignore[call-overload,unused-ignore]
            auditor.rollback()
        for mode in ("SHARE", "ROW SHARE", "ROW EXCLUSIVE", "EXCLUSIVE"):
            for table in ("queue", "entry"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    auditor.execute(f"LOCK TABLE {table} IN {mode} MODE")  # type: ignore[call-overload,unused-ignore]
                auditor.rollback()
        auditor.execute("LOCK TABLE queue, entry IN ACCESS SHARE MODE")
        auditor.execute("SELECT pg_advisory_xact_lock(0), pg_advisory_xact_lock(hashtextextended('a', 7))")
        auditor.execute("SELECT pg_advisory_xact_lock(place) FROM queue")
        assert account.spend(STEP).seq == 1
        cm.Ledger(url).create("b", epsilon=1, delta="1e-6")


def test_a_session_that_has_the_lock_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    monkeypatch.setattr(store, "LOCK_SECONDS", 0.3)
    owner = cm.Ledger(url)
    account = owner.create("a", epsilon=1, delta="1e-6")
    spender = role(url, "spender")
    with psycopg.connect(spender) as session:
        session.execute("SELECT * FROM queue FOR UPDATE")
        who = f"pid {session.info.backend_pid} .role {session.info.user}, idle in transaction."
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(account.spend, STEP) for _ in range(4)]
            for each in waiting:
                with pytest.raises(
                    LedgerError, match=f"has held the lock of .* for 0.3 s: .*{who}.*; nothing was written"
                ):
                    each.result()
        with pytest.raises(LedgerError, match=who):
            owner.create("b", epsilon=1, delta="1e-6")
    assert account.spend(STEP).seq == 1
    assert owner.accounts() == ["a"]


def test_a_spender_cannot_change_the_queue(url: str) -> None:
    import psycopg

    cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    with psycopg.connect(role(url, "spender"), autocommit=True) as spender:
        for change in ("UPDATE queue SET place = place + 5000", "DELETE FROM queue", "TRUNCATE queue"):
            with pytest.raises(psycopg.Error, match=r"never changed|permission denied"):
                spender.execute(change)  # type: ignore[call-overload,unused-ignore]


def test_a_place_that_is_gone_is_said(url: str) -> None:
    owner = cm.Ledger(url)
    account = owner.create("a", epsilon=1, delta="1e-6")
    execute(url, "ALTER TABLE queue DISABLE TRIGGER places_stay", "DELETE FROM queue")
    with pytest.raises(LedgerError, match="has lost a place"):
        account.spend(STEP)
    verdict = owner.verify()
    assert not verdict
    assert "queue" in str(verdict)


def test_a_spender_who_locks_the_queue_is_named_and_stops_no_reader(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UPDATE gives the right to lock the whole table, which verify reads: it waits as long as a writer."""
    import psycopg

    monkeypatch.setattr(store, "LOCK_SECONDS", 0.3)
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    with psycopg.connect(role(url, "spender")) as session:
        session.execute("LOCK TABLE queue IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(LedgerError, match=f"pid {session.info.backend_pid} .role {session.info.user}, idle"):
            account.spend(STEP)
        with pytest.raises(LedgerError, match=r"was locked for 0\.3 s.*pg_terminate_backend"):
            cm.Ledger(url).verify()
        assert account.status().entries == 1
    assert account.spend(STEP).seq == 1
    assert account.verify()


def test_functions_that_others_have_put_into_the_schema_are_not_called(url: str) -> None:
    """Before PostgreSQL 15 everybody may create in `public`; a function of a closer type would be called by the owner."""
    name = server.schema(url)
    trap = f"LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called in {name}'; END $$"
    execute(
        url,
        f"CREATE FUNCTION pg_advisory_xact_lock(integer) RETURNS integer {trap}",
        f"CREATE FUNCTION format(text, text, name) RETURNS text {trap}",
        f"CREATE FUNCTION to_regclass(varchar) RETURNS oid {trap}",
        f"CREATE FUNCTION set_config(text, text, integer) RETURNS text {trap}",
    )
    owner = cm.Ledger(url)
    owner.upgrade()
    owner.create("a", epsilon=1, delta="1e-6").spend(STEP)
    assert owner.verify()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "DROP TRIGGER entries_stay ON entry; CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE ON entry "
            "FOR EACH ROW WHEN (false) EXECUTE FUNCTION entries_stay()",
            "the trigger entries_stay was changed",
        ),
        (
            "DROP TRIGGER entries_stay ON entry; CREATE TRIGGER entries_stay BEFORE UPDATE OF key ON entry "
            "FOR EACH ROW EXECUTE FUNCTION entries_stay()",
            "the trigger entries_stay was changed",
        ),
        (
            "DROP TRIGGER entries_follow ON entry; CREATE TRIGGER entries_follow AFTER INSERT ON entry "
            "FOR EACH ROW EXECUTE FUNCTION entries_follow()",
            "the trigger entries_follow was changed",
        ),
        ("ALTER FUNCTION entries_follow RESET search_path", "the function of the trigger entries_follow was changed"),
        ("ALTER TABLE entry SET UNLOGGED", "the table entry is not logged, so a crash of the server empties it"),
        ("ALTER TABLE meta SET UNLOGGED", "the table meta is not logged, so a crash of the server empties it"),
        ("CREATE TABLE more () INHERITS (entry)", "added a table whose rows are read as entries"),
    ],
)
def test_protection_that_was_weakened_is_noticed(url: str, change: str, said: str) -> None:
    owner = cm.Ledger(url)
    owner.create("a", epsilon=1, delta="1e-6").spend(STEP)
    assert owner.verify()
    execute(url, *change.split("; "))
    assert said in str(owner.verify())
