"""One account: the questions it answers and the changes it allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from cumulant.accounting.numbers import brief, percent_used, rounded_up
from cumulant.domains import Number, listed
from cumulant.errors import InputError
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import Filter, Plan
from cumulant.html_box import facts_box, spent_bar
from cumulant.ledger import spending
from cumulant.ledger.chain import Verdict
from cumulant.ledger.charge import expression
from cumulant.ledger.entry import Entry, Receipt, name_of, number_of
from cumulant.ledger.policy import Policy, explain_policy, moment
from cumulant.ledger.state import CLOSED, FROZEN, OPEN, SHARE
from cumulant.ledger.store import import_mark
from cumulant.ledger.writing import Change, Job, Position, now
from cumulant.mechanisms.mechanism import Expression

if TYPE_CHECKING:
    from cumulant.ledger.ledger import Ledger

_MOST = 10**30


@dataclass(frozen=True, slots=True)
class Status:
    """The budget of an account and how much of it is spent.

    `epsilon` and `delta` hold whatever happens; `spent` holds for what was charged so far, `with_held` also for what is held.
    In gaussian and planned accounts both are the whole epsilon from the first charge on: no smaller one is proved.

    There is no remaining epsilon: epsilons of parts do not add up to that of the whole. What is left is a number of runs:
    `fits` says how many of `like` still fit. `used` is the part of what the rule of the account allows, in its own unit: it is
    for a bar. `used_without_held` is that part without what is held. `plan` has each run of a planned account, how often it is
    planned, and how often it was charged or is held.
    """

    account: str
    state: str
    epsilon: str
    delta: str
    slack: str
    relation: str
    unit: str
    mode: str
    spent: float
    with_held: float
    used: float
    used_without_held: float
    holds: tuple[dict[str, Any], ...]
    teams: dict[str, str]
    like: str | None
    fits: int | None
    plan: tuple[dict[str, Any], ...]
    expires: str | None
    owner: str | None
    data: str | None
    head: str
    entries: int

    def __repr__(self) -> str:
        return (
            f"Status(account={self.account!r}, state={self.state!r}, spent={self.spent!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r}, entries={self.entries!r})"
        )

    def _repr_html_(self) -> str:
        fitting = "" if self.fits is None else f"{self.fits} more of {brief(self.like or '')}"
        adaptive = self.mode == "adaptive"
        held = f"{len(self.holds)} running" if self.holds else ""
        if self.holds and adaptive:
            held = f"{held}; with them epsilon {rounded_up(self.with_held)}"
        return facts_box(
            f"{self.account}: {rounded_up(self.spent)} of epsilon {self.epsilon} is spent"
            if adaptive
            else f"{self.account}: {percent_used(self.used)} of the budget is used",
            {
                "state": self.state_words(),
                "share": f"{self.used_words()} of the budget is used",
                "budget": f"epsilon = {self.epsilon}, delta = {self.delta}, per {self.unit}",
                "neighbours": self.relation,
                "holds": held,
                "what still fits": fitting,
                "expires": self.expires or "",
                "owner": self.owner or "",
                "data": self.data or "",
                "entries": str(self.entries),
            },
            picture=spent_bar(self.used),
        )

    def used_words(self) -> str:
        """Return the used part of the budget for a reader, and the part of it that is held.

        The held part is the growth of `used` by what is held.
        """
        used = percent_used(self.used)
        held = self.used - self.used_without_held
        return used if held <= 0 else f"{used}, of which {percent_used(held)} is held,"

    def state_words(self) -> str:
        """Return the state for a reader, who may not know that an imported account is frozen."""
        return "imported (frozen)" if self.state == "imported" else self.state

    def to_dict(self) -> dict[str, Any]:
        """Return the status as JSON."""
        return asdict(self)


class Hold:
    """A budget that is set aside for a running job: settle what ran, then publish.

    As a context manager it changes nothing at the end: what was not settled stays held, because somebody may have seen it.
    """

    def __init__(self, account: Account, receipts: Sequence[Receipt]) -> None:
        self._account, self.receipts = account, tuple(receipts)
        self.receipt = next(receipt for receipt in receipts if receipt.account == account.name)
        self.seq = self.receipt.seq

    def settle(self, run: Expression | str | None = None, *, key: str | None = None) -> Receipt:
        """Charge what ran, at most what is held, and free the rest; None settles all of it.

        Publish after this has returned.
        """
        return self._account.settle(self.seq, run, key=key)

    def release(self, *, unseen: bool, by: str | None = None, key: str | None = None) -> Receipt:
        """Free the whole hold; see `Account.release`."""
        return self._account.release(self.seq, unseen=unseen, by=by, key=key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Hold, (self._account, self.receipts)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"<Hold {self.seq} of {self._account.name!r}>"


class Account:
    """A budget (epsilon, delta) for one data set.

    It holds whatever the analysts do: a run that would exceed it is refused.
    """

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger, self.name = ledger, name
        self._writer = ledger._writer

    def __reduce__(self) -> tuple[Any, ...]:
        return Account, (self._ledger, self.name)

    @property
    def policy(self) -> Policy:
        """Return the policy that was fixed when the account was opened."""
        return self._writer.policy(self.name)[0]

    # ---- taking

    def spend(
        self, run: Expression | str, *, key: str | None = None, team: str | None = None, note: str | None = None
    ) -> Receipt:
        """Charge a run before it touches the data; BudgetRefused if it does not fit.

        Publish after this has returned.

        The same key and request from this process give the receipt of the first call, marked as replayed, which does not
        allow to run anything again; from another process, or with another request, they raise KeyConflict.

        >>> import cumulant as cm, tempfile
        >>> ledger = cm.Ledger(f"sqlite:///{tempfile.mkdtemp()}/budget.db")
        >>> account = ledger.create("patients", epsilon=1, delta=1e-6)
        >>> account.spend(cm.Gaussian(sigma=7.75), key="report-7").seq
        1
        >>> account.spend(cm.Gaussian(sigma=7.75), key="report-7").replayed
        True
        """
        return self._ledger.spend(run, [self.name], key=key, team=team, note=note)[0]

    def spend_all(
        self, runs: Iterable[Expression | str], *, keys: Iterable[str] | None = None, team: str | None = None
    ) -> list[Receipt]:
        """Charge many runs in one transaction, all or none."""
        wanted = [expression(run) for run in listed("runs", runs)]
        named = [uuid4().hex for _ in wanted] if keys is None else [name_of("key", key) for key in listed("keys", keys)]
        if len(named) != len(wanted) or len(set(named)) < len(named):
            raise InputError(f"{len(wanted)} runs need as many different keys, and there are {len(set(named))}")
        jobs = [(self.name, key, run) for key, run in zip(named, wanted, strict=True)]
        group = None if team is None else name_of("team", team)
        return spending.take_budget(self._writer, "spend", jobs, group, None) if jobs else []

    def hold(
        self, run: Expression | str, *, key: str | None = None, team: str | None = None, note: str | None = None
    ) -> Hold:
        """Set budget aside for a long job before it starts."""
        return Hold(self, self._ledger.hold(run, [self.name], key=key, team=team, note=note))

    def held(self, hold: int) -> Hold:
        """Return a hold that was made earlier, by the number of its entry."""
        return Hold(self, [spending._find_hold(self._writer, self.name, hold).receipt()])

    def settle(self, hold: int, run: Expression | str | None = None, *, key: str | None = None) -> Receipt:
        """End a hold by charging what ran; None charges all of it.

        The charge is made in all of its accounts, at the prices it recorded.
        """
        return self._end("settle", hold, run, key, {})

    def release(self, hold: int, *, unseen: bool, by: str | None = None, key: str | None = None) -> Receipt:
        """End a hold without a charge.

        `unseen=True` says, on the record, that no output of any step, nor whether or how it failed, was seen by a
        person or used by a program, and that the decision to release depends on none.
        """
        if unseen is not True:
            raise InputError(
                f"a hold is released only if {spending.UNSEEN}: say so by unseen=True (--unseen), else settle what ran"
            )
        fields = {"unseen": spending.UNSEEN, "by": name_of("by", self._writer.actor if by is None else by)}
        return self._end("release", hold, None, key, fields)

    def _end(self, kind: str, hold: int, run: Any, key: str | None, fields: dict[str, Any]) -> Receipt:
        receipts = spending.end_hold(self._writer, kind, self.name, hold, _key(key), run, fields)
        return next(receipt for receipt in receipts if receipt.account == self.name)

    # ---- governing

    def grant(self, team: str, share: Number, *, key: str | None = None) -> Receipt:
        """Allow a team this share of the budget.

        The team's own sums, divided by the share, must pass the rule too.
        """
        name, part = name_of("team", team), Fraction(SHARE.check("share", share))

        def change(position: Position) -> Change:
            return Change(
                {"team": name, "share": str(part)}, position.state.with_allowance(name, part, position.tariff.rule)
            )

        return self._write("grant", key, {"team": name, "share": str(part)}, change)

    def freeze(self, reason: str | None = None, *, key: str | None = None) -> Receipt:
        """Refuse everything but the end of holds, until the account is thawed."""
        return self._write("freeze", key, {}, spending.mark_status(FROZEN, _reason_field(reason)))

    def thaw(self, reason: str | None = None, *, key: str | None = None, source_closed: bool = False) -> Receipt:
        """Allow runs again.

        The owner of an imported account has to say that the source it was copied from is closed.
        """
        copied = import_mark(self.name)
        position = self._writer.position(self.name)
        if position.imported and source_closed is not True:
            raise InputError(
                f"account {self.name!r} was imported: two copies that both spend are twice the budget; say that the source is "
                "closed by source_closed=True (--source-closed)"
            )
        fields = _reason_field(reason) | ({"source": "closed"} if position.imported else {})

        def change(position: Position) -> Change:
            self._writer.store.mark(copied, None) if position.imported else None
            return spending.mark_status(OPEN, fields)(position)  # type: ignore[no-any-return]

        return self._write("thaw", key, {}, change)

    def close(self, reason: str | None = None, *, key: str | None = None) -> Receipt:
        """Refuse everything but the end of holds, for good."""
        return self._write("close", key, {}, spending.mark_status(CLOSED, _reason_field(reason)))

    def reprice(self, *entries: int, key: str | None = None) -> list[Receipt]:
        """Enter the lower prices that this library proves today, for these entries or for all.

        Slack keeps its price.
        """
        return spending.lower_prices(self._writer, self.name, [number_of("entry", seq) for seq in entries], _key(key))

    def _write(self, kind: str, key: str | None, asked: Any, change: Any) -> Receipt:
        return self._writer.write([Job(self.name, kind, _key(key), asked, change)])[0]

    # ---- asking

    def would_fit(self, run: Expression | str, *, team: str | None = None) -> int:
        """Return how many times this run would still fit, if nobody else spends.

        Nothing is written.
        """
        tariff = self._writer.policy(self.name)[1]
        prices = [(price, times) for _, times, price in self._writer.quote(self.name, expression(run)).terms]
        state = self._writer.position(self.name).state
        fits = tariff.rule.would_fit(state.total, prices, _MOST)
        if team is None:
            return fits
        mine = state.team(name_of("team", team))
        limit = tariff.rule.would_fit(
            (mine.spent + mine.held).scaled(1 / mine.share), _scale_prices(prices, mine.share), _MOST
        )
        return min(fits, limit)

    def status(self) -> Status:
        """Return the guarantee, the spent and held budget, what would fit, and the newest entry."""
        position = self._writer.position(self.name)
        policy, rule, state = position.policy, position.tariff.rule, position.state
        spent, with_held = rule.odometer(state.spent), rule.odometer(state.total)
        state_name = "imported" if position.imported else "expired" if policy.expired(now()) else state.status
        holds = tuple(
            {"seq": entry.seq, "run": entry.run, "key": entry.key, "time": entry.time, "actor": entry.actor}
            for entry in self._writer.store.holds(self.name)
        )
        used = rule.used(state.total)
        example = policy.like or (policy.plan and next(iter(expression(policy.plan).terms)).notation())
        return Status(
            account=self.name,
            state=state_name,
            epsilon=str(policy.epsilon),
            delta=str(policy.delta),
            slack=str(policy.slack),
            relation=str(policy.relation),
            unit=policy.unit,
            mode=policy.mode,
            spent=spent,
            with_held=with_held,
            used=used,
            used_without_held=rule.used(state.spent) if holds else used,
            holds=holds,
            teams={name: str(team.share) for name, team in state.teams.items()},
            like=example,
            fits=None if example is None else self.would_fit(example),
            plan=_planned(rule, state.total),
            expires=policy.expires,
            owner=policy.owner,
            data=policy.data,
            head=f"{position.last.seq}:{position.last.hash}",
            entries=position.last.seq + 1,
        )

    def explain(self) -> str:
        """Explain the guarantee of the account and its assumptions in sentences.

        >>> import cumulant as cm, tempfile
        >>> ledger = cm.Ledger(f"sqlite:///{tempfile.mkdtemp()}/budget.db")
        >>> print(ledger.create("patients", epsilon=1, delta=1e-6, unit="person").explain().splitlines()[0])
        Everything that is charged to 'patients' is together (1, 1e-6)-differentially private for data sets of ...
        """
        return explain_policy(self.name, self.policy)

    def history(self, start: int = 0, last: int | None = None, since: str | None = None) -> Iterator[Entry]:
        """Yield the entries in order.

        Each has `.seq`, `.kind`, `.key`, `.run`, `.time` and everything else that was written.

        `start` is the first entry, `last` how many of the newest there are at most, `since` a date or time in UTC after which
        they were written, by the clocks of their writers. They are read as they are asked for, so that a long history takes
        little memory.
        """
        first = number_of("start", start)
        if last is not None:
            first = max(first, self.head().seq + 1 - number_of("last", last))
        self._writer.policy(self.name)
        entries = self._writer.store.scan(self.name, first)
        if since is None:
            return entries
        earliest = moment(since, "since", at_its_end=False)
        return (entry for entry in entries if entry.time >= earliest)

    def newest(self, before: int | None = None) -> Iterator[Entry]:
        """Yield the entries from the newest back to the first.

        `before` starts below this number. Entries are read as they are asked for.
        """
        self._writer.policy(self.name)
        return self._writer.store.scan_back(self.name, None if before is None else number_of("before", before))

    def find(self, key: str) -> Entry | None:
        """Return the entry with this key, or None; the entry authorises nothing."""
        return self._writer.store.by_key(self.name, name_of("key", key))

    def head(self) -> Receipt:
        """Return the newest entry; a copy of it in a ticket reveals a rollback later."""
        return self._writer.position(self.name).last.receipt()

    def verify(
        self, receipts: Iterable[Receipt] = (), *, recompute: bool = False, allow_unknown_signers: bool = False
    ) -> Verdict:
        """Check every entry; see `Ledger.verify`."""
        return self._ledger.verify(
            [self.name], receipts=receipts, recompute=recompute, allow_unknown_signers=allow_unknown_signers
        )

    def note(self, seq: int) -> str | None:
        """Return the note of an entry; None if it has none or it was erased."""
        entry = self._writer.store.entry_at(self.name, number_of("seq", seq))
        digest = None if entry is None else entry.content().get("note")
        found = None if digest is None else self._writer.store.note(digest)
        return None if found is None else found.partition(" ")[2]

    def erase(self, seq: int) -> None:
        """Erase the note of an entry.

        The chain keeps a salted digest, from which nothing can be learnt.
        """
        entry = self._writer.store.entry_at(self.name, number_of("seq", seq))
        digest = None if entry is None else entry.content().get("note")
        if digest is None:
            raise InputError(f"entry {seq} of {self.name!r} has no note")
        with self._writer.store.transaction([self.name]):
            self._writer.store.erase_note(digest)

    def __repr__(self) -> str:
        return f"<Account {self.name!r} of {self._writer.store.safe_url}>"


def _planned(rule: Filter, total: Amounts) -> tuple[dict[str, Any], ...]:
    """Return each run of a plan, how often it is planned, and how often it was charged or is held; else nothing."""
    if not isinstance(rule, Plan):
        return ()
    members = zip(rule.members, total.values, strict=True)
    return tuple({"run": str(run), "planned": times, "ran": int(ran)} for (run, times), ran in members)


def _key(key: str | None) -> str:
    return uuid4().hex if key is None else name_of("key", key)


def _reason_field(reason: str | None) -> dict[str, Any]:
    return {} if reason is None else {"reason": name_of("reason", reason)}


def _scale_prices(prices: list[tuple[Any, int]], share: Fraction) -> list[tuple[Any, int]]:
    return [(price.scaled(1 / share), times) for price, times in prices]
