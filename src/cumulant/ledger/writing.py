"""One transaction: lock, find the key, read the last entry, decide, append, commit.

An interrupted transaction is repeated.
"""

from __future__ import annotations

import getpass
import os
import secrets
import socket
import time
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any

from cumulant.curves.cache import recall
from cumulant.errors import BudgetRefused, CumulantError, InputError, KeyConflict, LedgerBroken, LedgerError
from cumulant.filters.filter import Tariff
from cumulant.ledger.chain import ANY_CLOCK, TOLERANCE
from cumulant.ledger.charge import Quote, quote
from cumulant.ledger.entry import FORMAT, Entry, Receipt, canonical, moment_of, note_digest
from cumulant.ledger.keys import Keys
from cumulant.ledger.policy import Policy
from cumulant.ledger.state import State, check_status
from cumulant.ledger.store import Standing, Store, UnknownOutcome
from cumulant.mechanisms.mechanism import Expression

_REMEMBERED = 1024
_ATTEMPTS = 12
_PAUSE = 0.05
"""Seconds before the second attempt, on average; each further pause is twice as long. Convention."""

_LONGEST_PAUSE = 3.0
"""Seconds of a pause between two attempts, at most, on average; convention."""


@dataclass(frozen=True, slots=True)
class Position:
    """An account while its lock is held: its policy, its rule with prices, its newest entry."""

    policy: Policy
    tariff: Tariff
    last: Entry
    state: State
    imported: bool


@dataclass(frozen=True, slots=True)
class Change:
    """The content of an entry: its body, the state after it, the hold it ends."""

    body: dict[str, Any]
    state: State
    hold: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One entry to write: its account, kind, key, request, and the rule that decides it."""

    account: str
    kind: str
    key: str
    asked: Any
    change: Callable[[Position], Change]
    note: str | None = None


class Writer:
    """Writes jobs, all or none, and remembers the policies of accounts, which never change."""

    def __init__(self, store: Store, keys: Keys, actor: str | None, allow_unsigned: bool = False) -> None:
        self.store, self.keys, self.actor, self.allow_unsigned = store, keys, actor or _user(), allow_unsigned
        self._policies: dict[str, tuple[Policy, Tariff]] = {}
        self._first: dict[str, Entry] = {}  # the entry that each of these policies is in
        self._quotes: dict[Hashable, Quote] = {}
        self._seen: dict[str, tuple[Entry, State]] = {}  # the newest entry of an account that was checked, and its sums

    def policy(self, account: str) -> tuple[Policy, Tariff]:
        """Return an account's policy and its rule with prices; InputError if there is none."""
        if account not in self._policies:
            first = self.store.entry_at(account, 0)
            if first is None:
                known = ", ".join(map(repr, self.store.names()[:10])) or "none"
                raise InputError(f"there is no account {account!r} in this ledger; there are: {known}")
            check_last(first, self.keys, signed=False)
            policy = Policy.from_dict(first.content().get("policy", {}))
            check_last(first, self.keys, policy.signed)
            second = self.store.entry_at(account, 1)
            if second is not None and (second.prev != first.hash or second.digest() != second.hash):
                raise LedgerBroken(
                    f"entry 1 of {account!r}, or the policy in its entry 0, was changed after it was written; "
                    "run cumulant ledger verify"
                )
            self._first[account] = first
            self._seen[account] = (first, State.from_dict(first.sums()))
            self._policies[account] = (policy, Tariff(policy.rule()))
        return self._policies[account]

    def quote(self, account: str, run: Expression) -> Quote:
        """Price a run for an account; a run that is data alone is priced once."""
        policy, tariff = self.policy(account)
        if not run.frozen:
            return quote(policy, tariff, run)
        return recall(self._quotes, (account, run.notation()), lambda: quote(policy, tariff, run), _REMEMBERED)

    def position(self, account: str, standing: Standing | None = None) -> Position:
        """Return the current position of an account, from a standing that was read or is read here."""
        policy, tariff = self.policy(account)
        found = self._read_standing(account) if standing is None else standing
        assert found.last is not None
        last = found.last
        seen, state = self._seen[account]
        if seen != last:
            check_last(last, self.keys, policy.signed)
            state = State.from_dict(last.sums())
            self._seen[account] = (last, state)
        if len(state.spent.values) != len(tariff.rule.zero().values):
            raise LedgerBroken(f"the sums of {account!r} do not belong to its policy; run cumulant ledger verify")
        return Position(policy, tariff, last, state, found.imported)

    def write(self, jobs: Sequence[Job]) -> list[Receipt]:
        """Write all jobs in one transaction, or none.

        A call that was interrupted finds what it wrote by its key.
        """
        call, accounts = secrets.token_hex(8), [job.account for job in jobs]
        requests = [f"{_digest(job, accounts)}:{nonce()}:{call}" for job in jobs]
        for attempt in range(_ATTEMPTS):
            try:
                with self.store.transaction(sorted(set(accounts))):
                    standing = self._read_standings(jobs)
                    found = [standing[job.account].taken.get(job.key) for job in jobs]
                    if any(found):
                        _check_whole_call(jobs, found)
                        return [
                            _replay_receipt(job, entry, request)
                            for job, entry, request in zip(jobs, found, requests, strict=True)
                            if entry is not None
                        ]
                    entries, newest = self._entries(jobs, requests, standing)
                    self.store.append(entries)
                self._seen.update(newest)
                return [entry.receipt() for entry in entries]
            except UnknownOutcome as error:
                if attempt == _ATTEMPTS - 1:
                    raise LedgerError(
                        f"{error}; after {_ATTEMPTS} attempts it is not known whether it was written: ask again in this "
                        f"process with key {jobs[0].key!r}, or look it up in the history"
                    ) from error
                time.sleep(min(_PAUSE * 2**attempt, _LONGEST_PAUSE) * (0.5 + secrets.randbelow(1000) / 1000))
            except BaseException as error:
                if not isinstance(error, CumulantError):  # Ctrl-C must not keep the lock from others
                    self.store.abandon()
                raise
        raise AssertionError("unreachable")

    def _read_standings(self, jobs: Sequence[Job]) -> dict[str, Standing]:
        """Read the standings of the jobs' accounts, and which of their keys are taken."""
        keys: dict[str, list[str]] = {}
        for job in jobs:
            keys.setdefault(job.account, []).append(job.key)
        return {account: self._read_standing(account, some) for account, some in keys.items()}

    def _read_standing(self, account: str, keys: Sequence[str] = ()) -> Standing:
        """Read the standing of one account, and which of these keys are taken.

        LedgerBroken if what this process has seen of it is no longer there.
        """
        self.policy(account)
        seen = self._seen[account][0]
        found = self.store.read_standing(account, seen.seq, keys)
        if found.earlier != seen.hash:
            raise LedgerBroken(
                f"entry {seen.seq} of {account!r}, which this process has seen, is gone: the ledger was rolled back or "
                "replaced; freeze the account, run cumulant ledger verify with receipts, and start this process again"
            )
        return found

    def _entries(
        self, jobs: Sequence[Job], requests: Sequence[str], standing: dict[str, Standing]
    ) -> tuple[list[Entry], dict[str, tuple[Entry, State]]]:
        positions: dict[str, Position] = {}
        entries = []
        moment = now()
        for job, request in zip(jobs, requests, strict=True):
            if job.account not in positions:
                positions[job.account] = self.position(job.account, standing[job.account])
            position = positions[job.account]
            self._check_allowed(job, position, moment)
            entry = self._entry(job, request, job.change(position), position.last, moment)
            entries.append(entry[0])
            positions[job.account] = replace(position, last=entry[0], state=entry[1])
        return entries, {account: (position.last, position.state) for account, position in positions.items()}

    def _check_allowed(self, job: Job, position: Position, moment: datetime) -> None:
        if position.imported and job.kind != "thaw":
            raise BudgetRefused(
                f"account {job.account!r} was imported and is frozen: it is a second copy until its owner says that the first "
                "one is closed, by: cumulant ledger thaw --source-closed"
            )
        check_status(position.state, job.kind, job.account)
        if position.policy.expires is not None and job.kind in ("spend", "hold"):
            for clock in (moment, self.store.now()):
                if position.policy.expired(clock):
                    raise BudgetRefused(
                        f"account {job.account!r} has expired at {position.policy.expires}; open a new one"
                    )
        written = position.last.content()
        if written.get("format") != 1 and job.kind not in ANY_CLOCK:
            before = moment_of(written)
            if before - moment > TOLERANCE:
                raise LedgerError(
                    f"the clock of this host says {moment.isoformat(timespec='seconds')}, and entry {position.last.seq} of "
                    f"{job.account!r} is dated {before.isoformat()}: set the clock; if that date is wrong, the owner "
                    "freezes the account and thaws it again"
                )

    def _entry(
        self, job: Job, request: str, change: Change, last: Entry | None, moment: datetime
    ) -> tuple[Entry, State]:
        body = {
            "format": FORMAT,
            "actor": self.actor,
            "host": _printed(socket.gethostname()),
            "time": moment.isoformat(timespec="seconds"),
            "version": _version(),
            **change.body,
        }
        state = change.state.round_sums()
        signed = change.body["policy"]["signed"] if last is None else self.policy(job.account)[0].signed
        if self.keys.signer is not None and not signed and not self.allow_unsigned:
            raise LedgerError(
                f"account {job.account!r} is not signed, and there is a key here that signs: somebody may have rewritten it; "
                "verify it with receipts, or say allow_unsigned=True (--allow-unsigned)"
            )
        if signed:
            if self.keys.signer is None:
                raise LedgerError(
                    f"entries of {job.account!r} are signed, and there is no key here that can sign; give keys="
                )
            if last is not None:
                check_signer(self._first[job.account], self.keys)
                check_signer(last, self.keys)
            body["signer"] = self.keys.signer.name
        if job.note is not None:
            salted = f"{secrets.token_hex(16)} {job.note}"
            body["note"] = note_digest(salted)
            self.store.keep_note(body["note"], salted)
        entry = Entry(
            job.account,
            0 if last is None else last.seq + 1,
            job.kind,
            job.key,
            request,
            change.hold,
            canonical(body),
            canonical(state.to_dict()),
            "" if last is None else last.hash,
        )
        entry = replace(entry, hash=entry.digest())
        if signed and self.keys.signer is not None:
            entry = replace(entry, signature=self.keys.signer.sign(entry.hash))
        return entry, state

    def open(self, account: str, key: str, policy: Policy) -> Receipt:
        """Write the first entry of an account, within a transaction."""
        change = Change({"policy": policy.to_dict()}, State.empty(policy.rule()))
        job = Job(account, "open", key, policy.to_dict(), lambda _: change)
        entry, _ = self._entry(job, f"{_digest(job, [account])}:{nonce()}:", change, None, now())
        self.store.append([entry])
        return entry.receipt()


def _check_whole_call(jobs: Sequence[Job], found: Sequence[Entry | None]) -> None:
    """Raise KeyConflict if some keys of a call are taken and others are free.

    The error names one that is taken.
    """
    if all(found):
        return
    job, entry = next((job, entry) for job, entry in zip(jobs, found, strict=True) if entry is not None)
    conflict = KeyConflict(
        f"key {job.key!r} of {job.account!r} is taken, by entry {entry.seq}, and other keys of this call are free; "
        "nothing was written: take new keys for all of them"
    )
    conflict.receipt = entry.receipt(replayed=True)
    raise conflict


def _replay_receipt(job: Job, entry: Entry, request: str) -> Receipt:
    """Return the receipt of the entry that has the key of a job.

    The entry must have been written for the same request by this process.
    """
    digest, nonce, call = request.split(":")
    old_digest, old_nonce, old_call = [*entry.request.split(":"), "", ""][:3]
    if digest == old_digest and nonce == old_nonce:
        return entry.receipt(replayed=call != old_call)
    if digest == old_digest:
        conflict = KeyConflict(
            f"key {job.key!r} of {job.account!r} was used for the same request by another process, in entry {entry.seq}: "
            "publish the output that exists, or take a new key; running it again would be a second draw for one charge"
        )
    else:
        conflict = KeyConflict(
            f"key {job.key!r} of {job.account!r} is taken by another request, in entry {entry.seq}, a {entry.kind} of "
            f"{entry.run}; take a new key"
        )
    conflict.receipt = entry.receipt(replayed=True)
    raise conflict


def check_last(entry: Entry, keys: Keys, signed: bool) -> None:
    """Check the newest entry before anything is appended to it."""
    if entry.digest() != entry.hash:
        raise LedgerBroken(f"entry {entry.seq} of {entry.account!r} was changed; run cumulant ledger verify")
    signer = entry.content().get("signer")
    if (signer is None and signed) or (
        signer is not None and keys.confirms(str(signer), entry.hash, entry.signature) is False
    ):
        raise LedgerBroken(
            f"entry {entry.seq} of {entry.account!r} is not signed by its key; run cumulant ledger verify"
        )


def check_signer(entry: Entry, keys: Keys) -> None:
    """Refuse a writer to a signed account who lacks the key of its first or of its newest entry."""
    signer = entry.content().get("signer")
    if keys.confirms(str(signer), entry.hash, entry.signature) is None:
        raise LedgerError(
            f"entry {entry.seq} of {entry.account!r} is signed by the key {signer!r}, which is not at hand. "
            "It must be checked before another one follows; add the key to keys="
        )


def _digest(job: Job, accounts: Sequence[str]) -> str:
    return sha256(canonical([job.kind, sorted(set(accounts)), job.asked]).encode("ascii")).hexdigest()


@cache
def _nonce(process: int) -> str:
    return secrets.token_hex(16)


_asking: ContextVar[str | None] = ContextVar("asking", default=None)
"""The name of the process that asks through this one."""


def nonce() -> str:
    """Return one random name for this process.

    A fork or a restart has another, and may not use the receipts of this one.
    """
    return _asking.get() or _nonce(os.getpid())


def adopt_nonce(name: str) -> None:
    """Write from now on under the name of the process that asks through this one.

    So its retries are retries.
    """
    _asking.set(name)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_nonce.cache_clear)  # numbers of processes come again


def now() -> datetime:
    """Return the clock of this host; it is written down and used for nothing but expiry."""
    return datetime.now(UTC)


@cache
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cumulant")
    except PackageNotFoundError:  # run from a tree that was not installed
        return "unknown"


def _printed(name: str) -> str:
    """Return a name of the system; "unknown" if it does not print, because verify would refuse its entry for ever."""
    return name if name.isprintable() and name else "unknown"


def _user() -> str:
    try:
        return _printed(getpass.getuser())
    except (OSError, KeyError, ImportError):
        return "unknown"
