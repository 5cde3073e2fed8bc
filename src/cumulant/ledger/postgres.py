"""The shared store: PostgreSQL, for processes on many hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from cumulant.errors import InputError, LedgerError, shown
from cumulant.ledger.store import Interrupted, Store

_AGAIN = ("40001", "40P01", "23505", "55P03", "57P01", "57P02", "57P03")
"""Serialisation failure, deadlock, unique key, lock not available, and servers that stop or start."""
_EVERYTHING = 0
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT set_config('synchronous_commit', "
    "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"
)
"""A stricter setting of the server stays; whatever else a role or a session has set does not."""
_ROLE = re.compile(r"[a-z_][a-z0-9_$]{0,62}")
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

_RIGHTS = {
    "spender": (
        "GRANT SELECT, INSERT ON entry TO {role}",
        "GRANT SELECT ON meta TO {role}",
        "GRANT SELECT, INSERT ON note TO {role}",
        "CREATE POLICY {role}_reads ON entry FOR SELECT TO {role} USING (true)",
        "CREATE POLICY {role}_spends ON entry FOR INSERT TO {role} WITH CHECK (kind IN ('spend', 'hold', 'settle'))",
    ),
    "auditor": (
        "GRANT SELECT ON entry, meta, note TO {role}",
        "CREATE POLICY {role}_reads ON entry FOR SELECT TO {role} USING (true)",
    ),
}


class PostgreSQL(Store):
    """PostgreSQL at READ COMMITTED: an advisory lock for each account, taken in sorted order, is the queue.

    The lock needs no right on the table, so that a spender has SELECT and INSERT and nothing else. The unique keys of the
    table are the safety. Servers that do not wait for the disk are refused.
    """

    migrations = (_TABLES,)
    snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def _connect(self, create: bool) -> Any:
        psycopg = _psycopg()
        try:
            connection = psycopg.connect(
                self.url, autocommit=True, prepare_threshold=None, connect_timeout=10, application_name="cumulant"
            )
        except (psycopg.OperationalError, psycopg.ProgrammingError, UnicodeError) as error:
            raise Interrupted(f"{self.shown} cannot be reached: {_first_line(error)}") from error
        try:
            for name, wanted in _DURABLE.items():
                ((found,),) = self._run(connection, f"SHOW {name}", ())
                if found != wanted:
                    raise LedgerError(
                        f"the server has {name}={found}, so what it commits may be lost; a ledger needs {name}={wanted}"
                    )
            ((found,),) = self._run(connection, "SHOW synchronous_commit", ())
            if found == "off":
                raise LedgerError(
                    "the server has synchronous_commit=off, so what it commits may be lost; a ledger needs on"
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _run(self, connection: Any, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._translated(connection):
            cursor = connection.execute(statement.replace("?", "%s"), values or None)
            rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return rows

    def _run_many(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._translated(connection), connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s"), rows)

    @contextmanager
    def _translated(self, connection: Any) -> Iterator[None]:
        """Errors of the database as ours."""
        psycopg = _psycopg()
        try:
            yield
        except psycopg.Error as error:
            if error.sqlstate in _AGAIN or (error.sqlstate is None and isinstance(error, psycopg.OperationalError)):
                raise Interrupted(f"{self.shown} was interrupted: {_first_line(error)}") from error
            if connection.closed or (error.sqlstate or "").startswith("08"):
                raise Interrupted(f"the connection to {self.shown} was lost: {_first_line(error)}") from error
            if error.sqlstate == "42501":
                raise LedgerError(f"this role may not do that: {_first_line(error)}; nothing was written") from error
            if isinstance(error, psycopg.DataError):
                raise InputError(f"a value cannot be stored: {_first_line(error)}") from error
            raise LedgerError(f"{self.shown} refuses: {_first_line(error)}; nothing was written") from error
        except UnicodeError as error:
            raise InputError(f"a value cannot be stored: {error}") from error

    def _has_table(self, name: str) -> bool:
        # to_regclass would answer from a cache that waiting for an advisory lock does not renew
        where = "relname = ? AND relkind IN ('r', 'p') AND pg_table_is_visible(oid)"
        return bool(self.execute(f"SELECT 1 FROM pg_catalog.pg_class WHERE {where}", name))

    @contextmanager
    def transaction(self, accounts: Sequence[str]) -> Iterator[None]:
        """Lock and read are two statements: at READ COMMITTED the second one sees what the former owner of the lock wrote."""
        connection = self.connection(create=not accounts)
        try:
            self._run(connection, _BEGIN, ())
            if not accounts:
                self._run(connection, "SELECT pg_advisory_xact_lock(?)", (_EVERYTHING,))
            for account in sorted(set(accounts)):
                self._run(connection, "SELECT pg_advisory_xact_lock(hashtextextended(?, 7))", (account,))
            yield
            self._run(connection, "COMMIT", ())
        except Interrupted:
            self.forget()
            raise
        except BaseException:
            try:
                connection.execute("ROLLBACK")
            except Exception:  # the connection is gone, and with it the transaction
                self.forget()
            raise

    def now(self) -> datetime:
        ((now,),) = self.execute("SELECT clock_timestamp()")
        return now.astimezone(UTC)  # type: ignore[no-any-return]

    def grant(self, kind: str, role: str) -> None:
        """Give a role of the database the rights of a spender or an auditor."""
        if kind not in _RIGHTS or not _ROLE.fullmatch(role):
            raise InputError(f"role={shown(role)} must be a plain name, such as budget_spender")
        with self.transaction([]):
            for statement in _RIGHTS[kind]:
                self.execute(statement.format(role=role))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise LedgerError("a ledger in PostgreSQL needs psycopg 3: pip install 'cumulant[postgres]'") from None
    return psycopg
