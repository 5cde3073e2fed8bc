"""The ledger: accounts in one database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

from cumulant.accounting import numbers
from cumulant.domains import Number, listed
from cumulant.errors import InputError, LedgerError, RelationError, shown
from cumulant.ledger import spending, transfer
from cumulant.ledger.account import Account, Hold
from cumulant.ledger.address import open_store
from cumulant.ledger.chain import Verdict, verify
from cumulant.ledger.charge import expression
from cumulant.ledger.entry import Receipt, name_of, names_of
from cumulant.ledger.keys import Keys
from cumulant.ledger.policy import Policy
from cumulant.ledger.store import Store
from cumulant.ledger.writing import Writer
from cumulant.mechanisms.mechanism import Expression
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import rounded_up, stated
from cumulant.relation import Relation

_BITS = 128


class Ledger:
    """Privacy budgets that many processes share, durable and checked before they are spent.

    `url` is a file such as `budget.db` (also written `sqlite:///budget.db`), or `postgresql://…`. `keys` is a file of keys
    that sign entries.
    A new SQLite file can be used by its owner alone, with `group=True` by the group of its owner too.
    A writer that holds a key which signs refuses accounts that are not signed, unless `allow_unsigned=True`.
    A ledger may be used by many threads and after a fork: each has a connection of its own. It can be pickled, and connects
    again where it is read: the pickle holds the address and the keys.

    >>> import cumulant as cm, tempfile
    >>> ledger = cm.Ledger(f"sqlite:///{tempfile.mkdtemp()}/budget.db")
    >>> account = ledger.create("patients-2026", epsilon=1, delta=1e-6)
    >>> receipt = account.spend(cm.Gaussian(sigma=7.75))
    >>> account.spend(cm.RandomizedResponse(p="0.62"))
    Traceback (most recent call last):
    ...
    cumulant.errors.BudgetRefused: RandomizedResponse(p=0.62) does not fit into account 'patients-2026' of epsilon 1, ...
    >>> [entry.kind for entry in account.history()], bool(ledger.verify(receipts=[receipt]))
    (['open', 'spend'], True)
    """

    def __init__(
        self,
        url: str,
        keys: Keys | str | Path | None = None,
        actor: str | None = None,
        allow_unsigned: bool = False,
        group: bool = False,
    ) -> None:
        ring = keys if isinstance(keys, Keys) else Keys() if keys is None else Keys.load(_path(keys))
        who = None if actor is None else name_of("actor", actor)
        self._writer = Writer(open_store(url, group), ring, who, allow_unsigned is True)

    def __reduce__(self) -> tuple[Any, ...]:
        writer = self._writer
        return Ledger, (writer.store.url, writer.keys, writer.actor, writer.allow_unsigned, writer.store.group)

    @property
    def _store(self) -> Store:
        return self._writer.store

    # ---- accounts

    def create(
        self,
        name: str,
        epsilon: Number,
        delta: Number,
        *,
        relation: Relation | str = Relation.REPLACE_ONE,
        unit: str = "record",
        mode: str = "adaptive",
        like: Expression | str | None = None,
        plan: Expression | str | None = None,
        slack: Number = 0,
        owner: str | None = None,
        expires: str | None = None,
        data: str | None = None,
        same_data: bool = False,
    ) -> Account:
        """Open an account; its policy can never be changed.

        The first account makes the ledger.

        `like` names a workload whose order gets half of the weight, `plan` what a planned account may run. Accounts that
        name the same `data` add up, also when one is closed, so a second one needs `same_data=True`.
        """
        name = name_of("name", name)
        signed = self._writer.keys.signer is not None
        policy = Policy.create(epsilon, delta, relation, unit, mode, slack, like, plan, owner, expires, data, signed)
        self._store.connection(create=True)
        if self._store.schema() == 0:
            self._store.upgrade()
        with self._store.transaction([]):
            if self._store.entry_at(name, 0) is not None:
                raise InputError(
                    f"there is an account {name!r} already, and its policy cannot change; take another name"
                )
            if policy.data is not None and same_data is not True:
                others = self.accounts_of(policy.data)
                if others:
                    raise InputError(
                        f"data={policy.data!r} has accounts already ({', '.join(map(repr, others))}): "
                        f"{self._together(others, policy)}; "
                        "say that this is meant by same_data=True (--same-data)"
                    )
            self._writer.open(name, "open", policy)
        return Account(self, name)

    def account(self, name: str) -> Account:
        """Return the account of this name."""
        found = Account(self, name_of("name", name))
        self._writer.policy(found.name)
        return found

    def accounts(self) -> list[str]:
        """Return the names of all accounts."""
        return self._store.names()

    def accounts_of(self, data: str) -> list[str]:
        """Return the accounts that name this data, including closed ones."""
        return [name for name in self.accounts() if self._writer.policy(name)[0].data == data]

    def combined_budget(self, data: str) -> tuple[str, str]:
        """Return the (epsilon, delta) of all accounts on the same data; InputError if none names it.

        They add up, whichever order they are used in.

        That is so if this sum was fixed before the first answer; an account that is opened because of an answer to another
        one makes its own sum an outcome.
        """
        found = self.accounts_of(data)
        if not found:
            policies = (self._writer.policy(name)[0] for name in self.accounts())
            known = ", ".join(sorted({repr(policy.data) for policy in policies if policy.data is not None})[:10])
            raise InputError(f"no account names data={shown(data)}, so there is no sum; there are: {known or 'none'}")
        return self._sum(found)

    def _together(self, others: Sequence[str], policy: Policy) -> str:
        try:
            return "together they would be ({}, {}) for the same people".format(*self._sum([*others, policy]))
        except RelationError:
            return "they have another relation or unit, so there is no sum"

    def _sum(self, accounts: Iterable[str | Policy]) -> tuple[str, str]:
        policies = [each if isinstance(each, Policy) else self._writer.policy(each)[0] for each in accounts]
        _check_alike(policies)
        sums = (
            sum((Fraction(getattr(p, field)) for p in policies), start=Fraction(0)) for field in ("epsilon", "delta")
        )
        loss, failure = (numbers.rounded_up(stated(total), 6) for total in sums)
        return loss, failure

    def union(self, accounts: Iterable[str]) -> tuple[float, float]:
        """Return the (epsilon, delta) of a person with one record in each block, rounded up.

        See Theorem 4.
        """
        policies = sorted(
            (self._writer.policy(name)[0] for name in names_of("accounts", accounts)), key=lambda p: p.epsilon
        )
        _check_alike(policies)
        loss = Fraction(0)
        with BALLS.at(_BITS):
            failure = BALLS.number(0)
            for policy in policies:  # the largest epsilon last
                failure += BALLS.exp(BALLS.number(loss)) * BALLS.number(Fraction(policy.delta))
                loss += policy.epsilon
            mantissa, exponent = (int(part) for part in failure.upper().man_exp())
        return rounded_up(loss), min(rounded_up(Fraction(mantissa) * Fraction(2) ** exponent), 1.0)

    # ---- runs over several accounts

    def spend(
        self,
        run: Expression | str,
        accounts: Iterable[str],
        *,
        key: str | None = None,
        team: str | None = None,
        note: str | None = None,
    ) -> list[Receipt]:
        """Charge a run to every account whose block it reads, all or none.

        Receipts come in the order of the accounts.
        """
        return self._take("spend", run, accounts, key, team, note)

    def hold(
        self,
        run: Expression | str,
        accounts: Iterable[str],
        *,
        key: str | None = None,
        team: str | None = None,
        note: str | None = None,
    ) -> list[Receipt]:
        """Set budget aside in every account whose block a job will read, all or none.

        The hold ends in all of them at once.
        """
        return self._take("hold", run, accounts, key, team, note)

    def holding(
        self,
        run: Expression | str,
        accounts: Iterable[str],
        *,
        key: str | None = None,
        team: str | None = None,
        note: str | None = None,
    ) -> Hold:
        """Set budget aside as `hold` does, as a context manager."""
        names = names_of("accounts", accounts)
        receipts = self.hold(run, names, key=key, team=team, note=note)
        return Hold(self.account(names[0]), receipts)

    def _take(
        self,
        kind: str,
        run: Expression | str,
        accounts: Iterable[str],
        key: str | None,
        team: str | None,
        note: str | None,
    ) -> list[Receipt]:
        names = names_of("accounts", accounts)
        words: object = note
        if note is not None and (not isinstance(words, str) or not note):
            raise InputError(f"note={shown(note)} must be a text")
        what, named = expression(run), uuid4().hex if key is None else name_of("key", key)
        group = None if team is None else name_of("team", team)
        return spending.take_budget(self._writer, kind, [(name, named, what) for name in names], group, note)

    # ---- checking and moving

    def verify(
        self,
        accounts: Iterable[str] = (),
        *,
        receipts: Iterable[Receipt] = (),
        recompute: bool = False,
        allow_unknown_signers: bool = False,
    ) -> Verdict:
        """Check all accounts, or these: the chain, sums and decisions.

        `recompute` also checks charges. Receipts are checked if given.

        With keys, an entry that is signed by another key is broken, unless `allow_unknown_signers=True`.
        The verdict is true if all is sound; otherwise it names the first entry that is not, and why.
        """
        wanted, known = listed("accounts", accounts), listed("receipts", receipts)
        wrong = [each for each in known if not isinstance(each, Receipt)]
        if wrong:
            raise InputError(f"{shown(wrong[0])} is not a receipt; read one by Receipt.from_json(text)")
        with self._store.reading():
            names = names_of("accounts", wanted) if wanted else self._store.accounts_with_entries()
            if not names and self._store.hides_rows():
                raise LedgerError(
                    "row security shows no account to this role, so nothing could be checked; ask as the owner, or as a role "
                    "that cumulant ledger upgrade --auditor ROLE has given its rights"
                )
            strangers = allow_unknown_signers is True
            return verify(self._store, names, self._writer.keys, known, recompute is True, strangers)

    def files(self) -> list[Path]:
        """Return the files of this ledger; none if a server keeps it."""
        return self._store.files()

    def export(self, out: TextIO) -> int:
        """Write every entry and note as JSON lines; return the number of entries.

        A copy in use is twice the budget: see import_lines.
        """
        _check_file(out)
        with self._store.reading():
            return transfer.write(self._store, out)

    def export_csv(self, out: TextIO) -> int:
        """Write every entry as CSV, for reading."""
        _check_file(out)
        with self._store.reading():
            return transfer.write_csv(self._store, out)

    def import_lines(self, lines: Iterable[str]) -> Verdict:
        """Import lines of `export` into an empty ledger; LedgerBroken if they are not sound.

        The lines are verified and keep their hashes.

        The accounts are frozen until their owner says that the source is closed (`thaw`).
        """
        self._store.connection(create=True)
        if self._store.schema() == 0:
            self.upgrade()
        return transfer.read(self._store, lines, self._writer.keys)

    def upgrade(self) -> tuple[int, int]:
        """Make the tables, or bring them to the version of this library.

        Returns the version before and after.
        """
        return self._store.upgrade()

    def grant(self, kind: str, role: str) -> None:
        """Give a database role the rights of a "spender" or an "auditor"; PostgreSQL only."""
        self._store.grant(kind, role)

    def close(self) -> None:
        """Close the connection of this thread; the next question opens another."""
        self._store.forget()

    def __repr__(self) -> str:
        return f"<Ledger {self._store.safe_url}>"


def _check_alike(policies: Sequence[Policy]) -> None:
    """Raise RelationError unless all accounts are about the same neighbours: only such budgets add up."""
    kinds = sorted({f"{policy.relation.value}, one {policy.unit}" for policy in policies})
    if len(kinds) > 1:
        raise RelationError(f"these accounts have no sum: their budgets are for {' and for '.join(kinds)}")


def _check_file(out: Any) -> None:
    if not callable(getattr(out, "write", None)):
        raise InputError(f"out={shown(out)} must be an open text file, such as open('ledger.jsonl', 'w')")


def _path(keys: Any) -> str | Path:
    if not isinstance(keys, str | Path):
        raise InputError(f"keys={shown(keys)} must be the path of a file of keys")
    return keys
