"""The shared store: PostgreSQL, for processes on many hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from cumulant.errors import InputError, LedgerError, shown
from cumulant.ledger.entry import printable
from cumulant.ledger.password import may_be_quoted
from cumulant.ledger.store import SCHEMA, LockTimeout, Statement, Store, UnknownOutcome, WriteConflict

_AGAIN = ("25P03", "40001", "40P01", "57P01", "57P02", "57P03")
"""Idle for too long, serialisation failure, deadlock, and servers that stop or start."""
_NOT_IN_TIME = "55P03"
"""The lock was not free within `lock_timeout`."""
_NO_PLACE = "22012"
"""Division by zero: a place of the queue is gone."""
LOCK_SECONDS = 30.0
"""Seconds that a writer waits for its turn; convention, as in the embedded store."""
PLACES = 1024
"""Places in the queue of writers; accounts that share one wait for one another. Derived: 3 % that two of 8 accounts do."""
_EVERYTHING = -1
"""The place of those who open accounts and give rights."""
_NO_TABLES_YET = 0
"""The advisory lock of those who make or upgrade the tables; nobody spends then."""
_TURN = "SELECT 1 / count(*) FROM (SELECT 1 FROM queue WHERE place = ? FOR UPDATE) AS mine"
"""Wait for a place. Only who may update the queue can take it, so that a role that may only read cannot stop writers."""
_OWNERS = (
    "SELECT pid, usename, coalesce(state, 'hidden') FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND pid IN "
    "(SELECT pid FROM pg_locks WHERE granted AND ((locktype = 'relation' AND relation = to_regclass('queue') AND "
    "mode IN ('RowShareLock', 'ExclusiveLock', 'AccessExclusiveLock')) OR "
    "(locktype = 'advisory' AND (classid, objid, objsubid) = (0, 0, 1)))) AND pid NOT IN "
    "(SELECT pid FROM pg_locks WHERE NOT granted) ORDER BY pid"
)
"""Sessions that are at the head of the queue or have locked it as a whole: those that wait have a lock that is not granted."""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_DURABLY = (
    "SELECT set_config('synchronous_commit', "
    "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), "
    "set_config('idle_in_transaction_session_timeout', ?, true), set_config('lock_timeout', ?, true)"
)
"""A stricter setting of the server stays; whatever else a role or a session has set does not. And a client that was stopped,
or is cut off, while it has the lock loses both: nobody else could spend until then."""
_LONGEST_IDLE = "20s"
"""Below LOCK_SECONDS, so that those who wait for a client that was stopped get their turn; it decides within a millisecond."""
_LONGEST_IMPORT_IDLE = "300s"
"""An import reads its lines from somewhere while it has the lock."""
_ROLE = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,54}")
_DURABLE = {"fsync": "on", "full_page_writes": "on"}

_TABLES = (
    "CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL)",
    "CREATE TABLE note (digest text PRIMARY KEY, text text NOT NULL)",
    "CREATE TABLE entry (account text NOT NULL, seq bigint NOT NULL, kind text NOT NULL, key text NOT NULL, "
    "request text NOT NULL, hold bigint, body text NOT NULL, state text NOT NULL, prev text NOT NULL, hash text NOT NULL, "
    "signature text NOT NULL, PRIMARY KEY (account, seq), UNIQUE (account, key))",
    "CREATE UNIQUE INDEX ended ON entry (account, hold) WHERE hold IS NOT NULL",  # a hold ends once
    "CREATE INDEX held ON entry (account, seq) WHERE kind = 'hold'",
    "CREATE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'entries are never changed or deleted'; END $$",
    "CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE ON entry FOR EACH ROW EXECUTE FUNCTION entries_stay()",
    "CREATE TRIGGER entries_remain BEFORE TRUNCATE ON entry FOR EACH STATEMENT EXECUTE FUNCTION entries_stay()",
    "ALTER TABLE entry ENABLE ROW LEVEL SECURITY",
)

_FOLLOWING = (
    # the table is named by the trigger and not found by the search path, which a spender can set
    "CREATE FUNCTION entries_follow() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$ "
    "DECLARE last bigint; BEGIN "
    "EXECUTE format('SELECT max(seq) FROM %I.%I WHERE account = $1', TG_TABLE_SCHEMA, TG_TABLE_NAME) "
    "INTO last USING NEW.account; "
    "IF NEW.seq <> coalesce(last, -1) + 1 OR (NEW.seq = 0) <> (NEW.kind = 'open') THEN "
    "RAISE EXCEPTION 'an entry follows the newest one, and the first one opens the account' USING ERRCODE = '23505'; "
    "END IF; RETURN NEW; END $$",
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION entries_follow()",
)
_QUEUE = (
    "CREATE TABLE queue (place integer PRIMARY KEY)",
    f"INSERT INTO queue (place) SELECT generate_series({_EVERYTHING}, {PLACES - 1})",
    "CREATE TRIGGER places_stay BEFORE UPDATE OR DELETE ON queue FOR EACH ROW EXECUTE FUNCTION entries_stay()",
    # whoever could read or spend before the upgrade can do so after it
    "DO $$ DECLARE given record; BEGIN FOR given IN SELECT pg_get_userbyid(grantee) AS role, "
    "CASE privilege_type WHEN 'INSERT' THEN 'UPDATE' ELSE 'SELECT' END AS kind FROM pg_class, aclexplode(relacl) "
    "WHERE oid = 'entry'::regclass AND privilege_type IN ('SELECT', 'INSERT') AND grantee <> 0 LOOP "
    "EXECUTE pg_catalog.format('GRANT %s ON queue TO %I', given.kind, given.role); END LOOP; END $$",
)
"""Rows that writers lock; nothing is ever written to them."""
_TRIGGERS = ({"entries_stay": 27, "entries_remain": 34}, {"entries_follow": 7})
"""The triggers that each version of the schema adds, with pg_trigger.tgtype: for each row 1, before 2, insert 4, delete 8,
update 16, truncate 32."""
_FUNCTIONS = frozenset(
    (statement.split("$$")[1], "{search_path=pg_catalog}" if "SET search_path" in statement else "")
    for statement in (*_TABLES, *_FOLLOWING)
    if "$$" in statement
)
"""The source of each function of a trigger, and the settings it runs under."""
_INDEXES = {
    "btree (account, seq)": True,
    "btree (account, key)": True,
    "btree (account, hold) WHERE (hold IS NOT NULL)": True,
    "btree (account, seq) WHERE (kind = 'hold'::text)": False,
}
"""The indexes of the table of entries, as the server spells them, and whether each is unique."""
_ENTRIES = "(SELECT oid FROM pg_catalog.pg_class WHERE relname = 'entry' AND pg_catalog.pg_table_is_visible(oid))"
_NOT_LOGGED = (
    "SELECT relname FROM pg_catalog.pg_class WHERE relname IN ('entry', 'meta', 'note', 'queue') "
    "AND pg_catalog.pg_table_is_visible(oid) AND relpersistence <> 'p' ORDER BY relname"
)
"""Tables whose rows are not in the log of the server, which loses them when it stops unexpectedly."""
_POLICIES = (
    "SELECT polname, coalesce(pg_catalog.pg_get_expr(polwithcheck, polrelid), pg_catalog.pg_get_expr(polqual, polrelid), '') "
    f"FROM pg_catalog.pg_policy WHERE polrelid = {_ENTRIES} AND polpermissive AND polcmd IN ('a', '*') ORDER BY polname"
)
"""Policies that allow roles to insert entries, and the rows that each one allows."""
_KIND = "(?:spend|hold|settle)"
_TEXT = f"'{_KIND}'::text"
_IS_KIND = (
    rf"\(kind = (?:{_TEXT}|ANY \(ARRAY\[{_TEXT}(?:, {_TEXT})*\]\)|ANY \('\{{{_KIND}(?:,{_KIND})*\}}'::text\[\]\))\)"
)
_SPENDS = rf"(?:{_IS_KIND}|\({_IS_KIND}(?: OR {_IS_KIND})+\))"
_SPENDING = re.compile(rf"{_SPENDS}|\({_SPENDS} AND .*\)|\(.* AND {_SPENDS}\)", re.DOTALL)
"""A policy that allows spends, holds and settlements only, as the server spells it: it gives each operator parentheses, so what
is joined by AND at an end of the outermost pair holds of every row."""
_MINE = (
    "EXISTS (SELECT FROM unnest(polroles) AS role WHERE CASE role WHEN 0 THEN true ELSE pg_has_role(role, 'USAGE') END)"
)
_HIDDEN = (
    f"SELECT row_security_active({_ENTRIES}) AND (EXISTS (SELECT FROM pg_policy WHERE polrelid = {_ENTRIES} "
    f"AND NOT polpermissive AND polcmd IN ('r', '*') AND {_MINE}) OR NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = "
    f"{_ENTRIES} AND polpermissive AND polcmd IN ('r', '*') AND pg_get_expr(polqual, polrelid) = 'true' AND {_MINE}))"
)
"""True if no policy shows all entries to this role."""

_NOBODY = ("public", "none")
"""Names that stand for everybody or for no role."""

_RIGHTS = {
    "spender": (
        "GRANT SELECT, INSERT ON entry TO {role}",
        "GRANT SELECT ON meta TO {role}",
        "GRANT SELECT, INSERT ON note TO {role}",
        "GRANT SELECT, UPDATE ON queue TO {role}",
        "DROP POLICY IF EXISTS {role}_reads ON entry",
        "DROP POLICY IF EXISTS {role}_spends ON entry",
        "CREATE POLICY {role}_reads ON entry FOR SELECT TO {role} USING (true)",
        "CREATE POLICY {role}_spends ON entry FOR INSERT TO {role} WITH CHECK (kind IN ('spend', 'hold', 'settle'))",
    ),
    "auditor": (
        "GRANT SELECT ON entry, meta, note, queue TO {role}",
        "DROP POLICY IF EXISTS {role}_reads ON entry",
        "CREATE POLICY {role}_reads ON entry FOR SELECT TO {role} USING (true)",
    ),
}


class _Session:
    """A connection, and the statements that travel with the next one.

    A journey costs more than a statement.

    All that travel together are one message of the simple protocol. The server carries them out one after the other, each
    with a snapshot of its own, and none that follows an error.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._cursor = _psycopg().ClientCursor(connection)
        self._waiting: list[Statement] = []

    def queue(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Queue a statement; it is sent with the next one that runs."""
        self._waiting.append((statement, values))

    def rows(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Run the queued statements, then these, and return the rows of each of these."""
        waiting, self._waiting = self._waiting, []
        together = [*waiting, *statements]
        text = ";".join(statement for statement, _ in together).replace("?", "%s")
        cursor = self._cursor.execute(text, [value for _, values in together for value in values] or None)
        for _ in waiting:
            cursor.nextset()
        found = []
        for _ in statements:
            found.append(cursor.fetchall() if cursor.pgresult.nfields else [])
            cursor.nextset()
        return found

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of the rows, without waiting for each answer."""
        if self._waiting:
            self.rows([])
        with self.connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s"), rows)

    def roll_back(self) -> None:
        """Roll a transaction back."""
        self._waiting = []
        if self.connection.info.transaction_status:  # it was begun: the beginning travels with the first question
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection, and with it its transaction."""
        self.connection.close()


class PostgreSQL(Store):
    """PostgreSQL at READ COMMITTED.

    Locks of rows in a table of their own, taken in sorted order, are the queue.

    A spender has SELECT and INSERT on the entries and may lock places in the queue; an auditor may do neither. The unique keys
    of the table are the safety. Servers that do not wait for the disk are refused.
    """

    migrations = (_TABLES, (*_FOLLOWING, *_QUEUE))
    snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def _connect(self, create: bool) -> _Session:
        psycopg = _psycopg()
        try:
            session = _Session(
                psycopg.connect(
                    self.url, autocommit=True, prepare_threshold=None, connect_timeout=10, application_name="cumulant"
                )
            )
        except (psycopg.OperationalError, psycopg.ProgrammingError, UnicodeError) as error:
            if not may_be_quoted(self.url):  # nor may the message, or the error that it comes from
                raise UnknownOutcome(
                    f"{self.safe_url} cannot be reached; write @ : / ? # % and spaces of the password as "
                    "%40 %3A %2F %3F %23 %25 %20, or leave it to PGPASSWORD"
                ) from None
            raise UnknownOutcome(f"{self.safe_url} cannot be reached: {_first_line(error)}") from error
        # whoever reads waits no longer than whoever writes: a spender can lock the whole queue, which verify reads
        session.queue("SELECT set_config('lock_timeout', ?, false)", (f"{LOCK_SECONDS:g}s",))
        try:
            for name, wanted in _DURABLE.items():
                ((found,),) = self._run(session, f"SHOW {name}", ())
                if isinstance(found, bytes):
                    raise LedgerError(
                        f"the database of {self.safe_url} has the encoding SQL_ASCII, which keeps bytes and no text; use one "
                        "that was made by CREATE DATABASE budget ENCODING 'UTF8' TEMPLATE template0"
                    )
                if found != wanted:
                    raise LedgerError(
                        f"the server has {name}={found}, so what it commits may be lost; a ledger needs {name}={wanted}"
                    )
            ((found,),) = self._run(session, "SHOW synchronous_commit", ())
            if found == "off":
                raise LedgerError(
                    "the server has synchronous_commit=off, so what it commits may be lost; a ledger needs on"
                )
        except BaseException:
            session.close()
            raise
        self._local.lost = None
        return session

    def _run_all(self, connection: _Session, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        with self._translate_errors(connection):
            return connection.rows(statements)

    def _insert(self, connection: _Session, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) == 1:
            connection.queue(statement, rows[0])  # with its COMMIT
            return
        with self._translate_errors(connection):
            connection.run_many(statement, rows)

    @contextmanager
    def _translate_errors(self, connection: _Session) -> Iterator[None]:
        """Turn errors of the database into ours."""
        psycopg = _psycopg()
        try:
            yield
        except psycopg.Error as error:
            if error.sqlstate == _NOT_IN_TIME:
                raise LockTimeout(
                    f"a table of {self.safe_url} was locked for {LOCK_SECONDS:g} s; nothing was written; "
                    "end the session that pg_locks names by pg_terminate_backend, or ask again"
                ) from error
            if error.sqlstate == _NO_PLACE:
                raise LedgerError(
                    f"the table queue of {self.safe_url} has lost a place, so writers cannot wait for one another; restore it, "
                    "and run cumulant ledger verify"
                ) from error
            if error.sqlstate == "23505":
                raise WriteConflict(f"another writer was first: {_first_line(error)}") from error
            if error.sqlstate in _AGAIN or (error.sqlstate is None and isinstance(error, psycopg.OperationalError)):
                raise UnknownOutcome(f"{self.safe_url} was interrupted: {_first_line(error)}") from error
            if connection.connection.closed or (error.sqlstate or "").startswith("08"):
                raise UnknownOutcome(f"the connection to {self.safe_url} was lost: {_first_line(error)}") from error
            if error.sqlstate == "42501":
                raise LedgerError(f"this role may not do that: {_first_line(error)}; nothing was written") from error
            if isinstance(error, psycopg.DataError):
                raise InputError(f"a value cannot be stored: {_first_line(error)}") from error
            raise LedgerError(f"{self.safe_url} refuses: {_first_line(error)}; nothing was written") from error
        except UnicodeError as error:
            raise InputError(f"a value cannot be stored: {error}") from error

    def _rollback(self, connection: _Session) -> None:
        try:
            connection.roll_back()
        except BaseException as error:  # the connection is gone, and with it the transaction
            self.forget()
            if not isinstance(error, _psycopg().Error):  # it came from the handler of a signal
                raise

    def _check_writable(self) -> None:
        super()._check_writable()
        if self._local.lost is None:  # once for each connection
            self._local.lost = [name for (name,) in self.execute(_NOT_LOGGED)]
        for name in self._local.lost:
            raise LedgerError(
                f"{_not_logged(name)}; run ALTER TABLE {name} SET LOGGED, then cumulant ledger verify with receipts"
            )

    def _has_table(self, name: str) -> bool:
        # to_regclass would answer from a cache that waiting for an advisory lock does not renew
        where = "relname = ? AND relkind IN ('r', 'p') AND pg_table_is_visible(oid)"
        return bool(self.execute(f"SELECT 1 FROM pg_catalog.pg_class WHERE {where}", name))

    def damage(self) -> str | None:
        wanted = {name: kind for some in _TRIGGERS[: self.schema()] for name, kind in some.items()}
        triggers, rules, indexes, security, lost, policies, functions = self._ask(
            [
                (
                    "SELECT tgname, tgenabled IN ('O', 'A'), tgtype, tgqual IS NULL AND tgattr = '' FROM pg_trigger "
                    f"WHERE tgrelid = {_ENTRIES} AND NOT tgisinternal",
                    (),
                ),
                (f"SELECT rulename FROM pg_rewrite WHERE ev_class = {_ENTRIES}", ()),
                (
                    "SELECT pg_get_indexdef(indexrelid), indisunique FROM pg_index "
                    f"WHERE indrelid = {_ENTRIES} AND indisvalid",
                    (),
                ),
                (
                    "SELECT relrowsecurity, EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = pg_class.oid) "
                    f"FROM pg_class WHERE oid = {_ENTRIES}",
                    (),
                ),
                (_NOT_LOGGED, ()),
                (_POLICIES, ()),
                (
                    "SELECT tgname, prosrc, coalesce(proconfig::text, '') FROM pg_trigger "
                    f"JOIN pg_proc ON pg_proc.oid = tgfoid WHERE tgrelid = {_ENTRIES} AND NOT tgisinternal",
                    (),
                ),
            ]
        )
        if self.schema() >= 2 and self.execute("SELECT count(*) FROM queue") != [(PLACES + 1,)]:
            return "the queue of writers has lost or gained places"
        enabled = {name for name, fires, _, _ in triggers if fires}
        for name in sorted(wanted.keys() - enabled):
            return f"the trigger {name} was dropped or disabled"
        for (name,) in [*((name,) for name in sorted({each[0] for each in triggers} - wanted.keys())), *rules]:
            return f"somebody has added the trigger or rule {name}"
        for name, _, kind, always in triggers:
            if kind != wanted[name] or not always:
                return f"the trigger {name} was changed"
        for name, source, settings in functions:
            if (source, settings) not in _FUNCTIONS:
                return f"the function of the trigger {name} was changed"
        found = {text.partition(" USING ")[2]: unique for text, unique in indexes}
        for text, unique in _INDEXES.items():
            if text not in found or (unique and not found[text]):
                return f"the index {text} of the entries was dropped or changed"
        for (name,) in lost:
            return _not_logged(name)
        if security[0][1]:
            return "somebody has added a table whose rows are read as entries"
        for name, allowed in policies:
            if not _SPENDING.fullmatch(allowed):
                return (
                    f"the policy {printable(name)} may let roles insert other entries than spends, holds and settlements; "
                    "this library makes no such policy"
                )
        return None if security[0][0] else "the row security of the entries was disabled"

    def hides_rows(self) -> bool:
        ((hidden,),) = self.execute(_HIDDEN)
        return bool(hidden)

    @contextmanager
    def _transaction(self, accounts: Sequence[str]) -> Iterator[None]:
        """Open a transaction in which this session holds the lock of these accounts.

        Lock and read are two statements: at READ COMMITTED the second one sees what the former owner of the lock wrote.
        """
        session: _Session = self.connection(create=not accounts)
        try:
            if not accounts:
                self._local.schema = self.schema()
            session.queue(_BEGIN)
            idle_limit = _LONGEST_IDLE if accounts else _LONGEST_IMPORT_IDLE
            session.queue(_DURABLY, (idle_limit, f"{LOCK_SECONDS:g}s"))
            if self._local.schema < SCHEMA:
                session.queue("SELECT pg_catalog.pg_advisory_xact_lock(?)", (_NO_TABLES_YET,))
            else:
                for place in sorted({_place(account) for account in accounts} or {_EVERYTHING}):
                    session.queue(_TURN, (place,))
            yield
            self._run(session, "COMMIT", ())
        except LockTimeout as busy:
            session.roll_back()
            raise self._busy() from busy
        except UnknownOutcome:
            self.forget()
            raise
        except BaseException:
            self._rollback(session)
            raise

    def _busy(self) -> LockTimeout:
        """Say which sessions have held the lock for too long."""
        owners = [f"pid {pid} (role {role}, {state})" for pid, role, state in self.execute(_OWNERS)]
        return LockTimeout(
            f"another session has held the lock of {self.safe_url} for {LOCK_SECONDS:g} s: "
            f"{', '.join(owners) or 'it has just ended'}; nothing was written; end it by pg_terminate_backend, or ask again"
        )

    def now(self) -> datetime:
        ((now,),) = self.execute("SELECT clock_timestamp()")
        return now.astimezone(UTC)  # type: ignore[no-any-return]

    def grant(self, kind: str, role: str) -> None:
        """Give a role of the database the rights of a spender or an auditor."""
        if kind not in _RIGHTS or not _ROLE.fullmatch(role) or role in _NOBODY:
            raise InputError(f"role={shown(role)} must be the plain name of one role, such as budget_spender")
        with self.transaction([]):
            for statement in _RIGHTS[kind]:
                self.execute(statement.format(role=role))


def _not_logged(table: str) -> str:
    return f"the table {table} is not logged, so a crash of the server empties it"


def _place(account: str) -> int:
    """Return the place of an account in the queue."""
    return int.from_bytes(sha256(account.encode("utf-8", "surrogatepass")).digest()[:8], "big") % PLACES


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise LedgerError("a ledger in PostgreSQL needs psycopg 3: pip install 'cumulant[postgres]'") from None
    return psycopg
