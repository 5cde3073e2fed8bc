"""Verification of a ledger.

Whole numbers check the chain and the sums, certificates check decisions, the notation gives charges.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cumulant.curves.cache import recall
from cumulant.errors import BudgetRefused, CumulantError, LedgerBroken, LedgerError
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import UNIT, Tariff
from cumulant.ledger.charge import charge_in_format, held_prices, settle_hold
from cumulant.ledger.entry import (
    FIRST,
    FORMATS,
    KINDS,
    Entry,
    Receipt,
    canonical,
    moment_of,
    name_of,
    note_digest,
)
from cumulant.ledger.keys import Keys
from cumulant.ledger.policy import Policy
from cumulant.ledger.state import CLOSED, FROZEN, OPEN, State, check_status, read_share
from cumulant.ledger.store import Store
from cumulant.notation import parse

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors that reading raises of a body that no writer wrote."""
_STATUS = {"freeze": FROZEN, "thaw": OPEN, "close": CLOSED}
ANY_CLOCK = tuple(_STATUS)
"""Kinds that only an owner writes: they may be dated before the entry that they follow, and so end a wrong date."""
TOLERANCE = timedelta(minutes=1)
"""Largest difference of the clocks of two hosts; convention."""
_NAMES = ("actor", "host", "version", "time", "by", "reason", "unseen", "source", "signer", "team", "run")
_NOTHING = ("",) * len(_NAMES)
_TEXTS = frozenset([str])
_REMEMBERED = 4096
_INDEXED = 500
"""Entries that one question looks for in an index; derived: SQLite may allow only 999 parameters."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `verify`.

    True if the ledger is sound, else the first entry that is broken and why.

    `checked` says what was looked at. `unconfirmed` counts signatures by keys that were not at hand. `unsigned` names the
    accounts whose entries are not signed, if keys were given. Where the tables and not an entry are broken, `account` is None.
    """

    sound: bool
    entries: int
    accounts: int
    checked: tuple[str, ...]
    account: str | None = None
    seq: int | None = None
    reason: str = ""
    unconfirmed: int = 0
    unsigned: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.sound

    def __str__(self) -> str:
        counted = [
            f"{count:,} {one if count == 1 else many}"
            for count, one, many in ((self.entries, "entry", "entries"), (self.accounts, "account", "accounts"))
        ]
        looked = f"{' of '.join(counted)}; checked: {', '.join(self.checked)}"
        if self.sound:
            said = [f"sound: {looked}"]
            if self.unconfirmed:
                said.append(f"{self.unconfirmed} signatures by keys that are not at hand")
            if self.unsigned:
                said.append(
                    f"not signed, so whoever has the database could have written it: {', '.join(self.unsigned)}"
                )
            return "; ".join(said)
        if self.account is None:
            return f"broken: {self.reason}"
        return f"broken at entry {self.seq} of {self.account!r}: {self.reason}"


class _EntryError(Exception):
    """Raised when an entry is not what its writer may have written."""


def verify(
    store: Store,
    names: Iterable[str],
    keys: Keys,
    receipts: Iterable[Receipt] = (),
    recompute: bool = False,
    allow_unknown_signers: bool = False,
) -> Verdict:
    """Check every entry of these accounts, the receipts, and the protection of the tables.

    Every receipt must be about one of the entries.
    """
    names, receipts = list(names), list(receipts)
    known = len(names), ("chain and sums", "decisions", *_more(store, recompute, receipts, keys))
    entries = unconfirmed = 0
    unsigned: list[str] = []
    edited = _EditedNotes(store)
    for name in names:
        walk = Walk(store, name, keys, recompute, allow_unknown_signers, edited)
        reason = None
        try:
            for _ in walk.entries(receipt for receipt in receipts if receipt.account == name):
                entries += 1
        except (_EntryError, CumulantError) as error:
            if isinstance(error, LedgerError) and not isinstance(error, LedgerBroken):
                raise  # the database did not answer, or a key cannot be used: nothing is known about the entries
            reason = str(error)
        except _MALFORMED as error:
            reason = f"its body is not one that this library writes ({type(error).__name__}: {error})"
        unconfirmed += walk.unconfirmed
        if reason is not None:
            return Verdict(False, entries, *known, name, walk.seq, reason, unconfirmed)
        unsigned += [name] if keys.keys and not walk.signed else []
    for receipt in receipts:
        reason = None if receipt.account in names else _contradiction(store, receipt)
        if reason is not None:
            return Verdict(False, entries, *known, receipt.account, receipt.seq, reason, unconfirmed)
    try:
        damage = store.damage()
    except LedgerBroken as error:
        damage = str(error)
    if damage is not None:
        reason = f"{damage}; check all receipts, then export the ledger and import it into a new one"
        return Verdict(False, entries, *known, None, None, reason, unconfirmed)
    return Verdict(True, entries, *known, unconfirmed=unconfirmed, unsigned=tuple(unsigned))


def _contradiction(store: Store, receipt: Receipt) -> str | None:
    """Say how a receipt contradicts an account that is not walked; None if its entry is there."""
    entry = store.entry_at(receipt.account, receipt.seq) if 0 <= receipt.seq < 2**63 else None
    if entry is not None and entry.hash == receipt.hash:
        return None
    if store.entry_at(receipt.account, 0) is None:
        return "there is a receipt for this entry and no such account: the ledger was rolled back or replaced"
    return (
        "there is a receipt for this entry, which is missing or has another hash: the ledger was rolled back, or the "
        "receipt was changed"
    )


def _more(store: Store, recompute: bool, receipts: list[Receipt], keys: Keys) -> Iterator[str]:
    if store.hides_rows():
        yield "only accounts that row security shows to this role"
    if recompute:
        yield "charges"
    if receipts:
        yield "receipts"
    if keys.keys:
        yield "signatures"


class _EditedNotes:
    """The digests of notes whose text was changed.

    They are read once, when the first entry with a note is met.

    A tenant of PostgreSQL may verify its accounts and has no right to read notes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: frozenset[str] | None = None

    def __contains__(self, digest: object) -> bool:
        if self._found is None:
            self._found = frozenset(name for name, text in self._store.notes() if note_digest(text) != name)
        return digest in self._found


class Walk:
    """One pass over the entries of an account, from the first, with everything added up again."""

    def __init__(
        self,
        store: Store,
        account: str,
        keys: Keys,
        recompute: bool,
        allow_unknown_signers: bool = False,
        edited: Container[str] = (),
    ) -> None:
        self._store, self._account, self._keys, self._recompute = store, account, keys, recompute
        self._strangers, self._edited = allow_unknown_signers or not keys.keys, edited
        self.seq = 0
        self.unconfirmed = 0
        self.signed = False
        self._format = 0
        self._before: datetime | None = None
        self._holds: dict[int, dict[str, Any]] = {}
        self._repriced: dict[int, Amounts] = {}
        self._fresh: dict[Hashable, bool] = {}

    def entries(self, receipts: Iterable[Receipt] = ()) -> Iterator[Entry]:
        """Yield each checked entry; an exception leaves `seq` at the first broken one."""
        wanted: dict[int, set[str]] = {}  # two receipts for one entry are a rollback, so none may replace the other
        for receipt in receipts:
            wanted.setdefault(receipt.seq, set()).add(receipt.hash)
        previous, state = FIRST, None
        recent: list[Entry] = []
        for entry in self._store.scan(self._account):
            if entry.seq < 0:  # its key and its hold count, so it could stand in for an entry that was cut off
                self.seq = entry.seq
                raise _EntryError("its number is below zero, and an account begins with entry 0")
            if entry.seq != self.seq:
                raise _EntryError(f"entry {self.seq} is missing")
            self._check_chain(entry, previous)
            if entry.seq == 0:
                state = State.empty(self._rule)
            elif state is not None:
                before, state = state, self._next_state(entry, state)
                state = state if self._format == 1 else state.round_sums()
                self._check_decision(entry, before, state)
            self._check_time(entry)
            if state is None or canonical(state.to_dict()) != entry.state:
                raise _EntryError("its sums are not those of the entries up to it")
            if not wanted.get(entry.seq, set()) <= {entry.hash}:
                raise _EntryError(
                    "its hash is not the one on the receipt: the ledger was rolled back and written again, "
                    "or the receipt was changed"
                )
            yield entry
            previous = entry.hash
            self.seq += 1
            recent.append(entry)
            if len(recent) == _INDEXED:
                self._check_indexes(recent)
                recent = []
        if self.seq == 0:
            raise _EntryError("the account has no entries")
        self._check_indexes(recent)
        lost = [seq for seq in wanted if not 0 <= seq < self.seq]
        if lost:
            self.seq = min(lost)
            raise _EntryError("there is a receipt for this entry, and it is missing: the ledger was rolled back")

    def _check_indexes(self, entries: Sequence[Entry]) -> None:
        """Refuse entries that the database does not find by their key and hold, as writers ask for them."""
        ends = [entry for entry in entries if entry.hold is not None]
        for column, some in (("key", entries), ("hold", ends)):
            places = self._store.places(self._account, column, [getattr(entry, column) for entry in some])
            for entry in some:
                if places.get(getattr(entry, column)) != entry.seq:
                    self.seq = entry.seq
                    raise _EntryError(f"an index of the database is damaged and does not find it by its {column}")

    def _check_chain(self, entry: Entry, previous: str) -> None:
        if entry.prev != previous:
            raise _EntryError("it does not follow the entry before it")
        if entry.digest() != entry.hash:
            raise _EntryError("its hash is not that of what it holds")
        self.content = entry.content()
        written = self.content.get("format")
        if type(written) is not int or written not in FORMATS or entry.kind not in KINDS:
            raise _EntryError("its body is not in a format that this library writes")
        if canonical(self.content) != entry.body:
            raise _EntryError("its body is not spelled in the format that this library writes")
        if written < self._format:
            raise _EntryError("its format is older than that of the entry before it")
        self._format = written
        self._check_texts(entry)
        self._check_note()
        if entry.seq == 0:
            self._check_opening(entry)
        self._check_signature(entry)

    def _check_texts(self, entry: Entry) -> None:
        """Refuse names with unprintable characters, which would reach terminals and pages."""
        texts = [entry.account, entry.key, entry.request, *map(self.content.get, _NAMES, _NOTHING)]
        if not _TEXTS.issuperset(map(type, texts)) or not "".join(texts).isprintable():
            raise _EntryError("one of its names is not a text of printable characters")

    def _check_note(self) -> None:
        note = self.content.get("note")
        if note is not None and (not isinstance(note, str) or note in self._edited):
            raise _EntryError("its note is not the one that was written: the text and its digest differ")

    def _check_signature(self, entry: Entry) -> None:
        signer = self.content.get("signer")
        if signer is None:
            if entry.signature:
                raise _EntryError("it has a signature and names no key")
            if self.signed:
                raise _EntryError("it is not signed, in an account whose entries are")
            return
        if not self.signed:
            raise _EntryError("it is signed, in an account whose entries are not")
        confirmed = self._keys.confirms(str(signer), entry.hash, entry.signature)
        if confirmed is False:
            raise _EntryError(f"its signature is not by the key {signer!r}")
        if confirmed is None and not self._strangers:
            raise _EntryError(
                f"it is signed by the key {signer!r}, which is not among those given; "
                "add that key, or allow unknown signers"
            )
        self.unconfirmed += confirmed is None

    def _check_opening(self, entry: Entry) -> None:
        if entry.kind != "open":
            raise _EntryError("an account begins with the entry that opens it")
        name_of("name", entry.account)
        self._policy = Policy.from_dict(self.content.get("policy", {}))
        self._policy.prove()
        self.signed = self._policy.signed
        self._rule = self._policy.rule()
        self._tariff = Tariff(self._rule)

    # ---- sums

    def _next_state(self, entry: Entry, state: State) -> State:
        """Return the state after an entry, from its body.

        The body has to be a whole and possible move.
        """
        content, zero = self.content, self._rule.zero()
        team = content.get("team")
        if (entry.kind in ("settle", "release")) != (entry.hold is not None):
            raise _EntryError("only what settles or releases names a hold")
        if entry.kind in ("spend", "hold"):
            charge = self._amounts("charge")
            self._check_quote(entry, charge)
            if entry.kind == "spend":
                return state.with_amounts(charge, zero, team)
            self._holds[entry.seq] = content
            return state.with_amounts(zero, charge, team)
        if entry.hold is not None:
            held = self._holds.pop(entry.hold, None)
            if held is None:
                raise _EntryError(f"entry {entry.hold} is not a hold that was still open")
            if held.get("team") != team or held.get("accounts") != content.get("accounts"):
                raise _EntryError("it is by another team than its hold, or in other accounts")
            for other in content.get("accounts", []):
                twin = self._store.by_key(str(other), entry.key)
                if twin is None or (twin.kind, twin.run) != (entry.kind, content.get("run")):
                    raise _EntryError(f"its hold ends in all of its accounts alike, and not so in {other!r}")
            taken = Amounts.read(held["charge"])
            charge = self._amounts("charge") if entry.kind == "settle" else zero
            if entry.kind == "settle":
                if settle_hold(self._rule, held, parse(content["run"]), self._format)[1] != charge:
                    raise _EntryError("its charge is not what ran at the prices of its hold")
                if not taken.rounded_up(UNIT).covers(charge.rounded_up(UNIT)):
                    raise _EntryError("it takes more than was held")
                if self._recompute:  # prices of a hold that are too low and too high have the right sum
                    self._check_charge(str(content["run"]), charge)
            return state.with_amounts(charge, zero - taken, team)
        if entry.kind == "reprice":
            return state.with_amounts(self._reprice(), zero, team)
        if entry.kind == "grant":
            return state.with_allowance(name_of("team", team), read_share(content.get("share")), self._rule)
        if entry.kind in _STATUS:
            return State(state.spent, state.held, _STATUS[entry.kind], state.teams)
        raise _EntryError("an account is opened once")

    def _amounts(self, name: str) -> Amounts:
        found = Amounts.read(self.content.get(name))
        if len(found.values) != len(self._rule.zero().values):
            raise _EntryError("its charge has not one amount for each order")
        return found

    def _check_quote(self, entry: Entry, charge: Amounts) -> None:
        content = self.content
        if content.get("rigour") != "proved":
            raise _EntryError("its charge is not said to be proved, and a budget takes no other")
        if entry.kind == "hold":
            prices = held_prices(content)
            if (
                charge_in_format(self._rule, ((price, times) for times, price in prices.values()), self._format)
                != charge
            ):
                raise _EntryError("its charge is not that of its prices")
            if dict(parse(str(content["run"])).terms) != {mechanism: times for mechanism, (times, _) in prices.items()}:
                raise _EntryError("its prices are not for what is held")
        together = content.get("accounts", [self._account])
        if not isinstance(together, list) or self._account not in together:
            raise _EntryError("the accounts that it was written in are not a list with its own among them")
        for other in content.get("accounts", []):
            twin = self._store.by_key(str(other), entry.key)
            if twin is None or (twin.request, twin.kind, twin.run) != (entry.request, entry.kind, content["run"]):
                raise _EntryError(f"it was written together with one in {other!r}, where it is missing")
        if self._recompute:
            self._check_charge(str(content["run"]), charge)

    def _check_charge(self, text: str, charge: Amounts) -> None:
        """Check that the charge covers what this library proves for the run.

        A lower proved charge today is no fault.
        """

        def covered() -> bool:
            run = parse(text)
            self._policy.accepts(run)
            try:
                prices = self._tariff.prices(run)
            except BudgetRefused as error:
                raise _EntryError(f"what it charges for cannot be charged to this account: {error}") from error
            return charge.covers(self._rule.exact_charge((price.lower, times) for price, times in prices))

        if not recall(self._fresh, (text, charge), covered, _REMEMBERED):
            raise _EntryError(f"its charge is below what this library proves that {text} costs")

    def _reprice(self) -> Amounts:
        seq = self.content.get("of")
        target = self._store.entry_at(self._account, seq) if type(seq) is int and 0 < seq < self.seq else None
        if (
            target is None
            or target.kind not in ("spend", "settle")
            or target.content().get("team") != self.content.get("team")
            or target.run != self.content.get("run")
        ):
            raise _EntryError("it changes the price of an entry that has none")
        old, new = self._amounts("old"), self._amounts("charge")
        if old != self._repriced.get(target.seq, Amounts.read(target.content()["charge"])):
            raise _EntryError("the price that it replaces is not the price of that entry")
        if self._rule.cheaper(old, new) != new:
            raise _EntryError("it raises a price, or changes slack")
        self._check_charge(str(target.run), new)  # it is rare, and gives budget back: it is always proved
        self._repriced[target.seq] = new
        return new - old

    # ---- decisions

    def _check_decision(self, entry: Entry, before: State, after: State) -> None:
        team = self.content.get("team")
        if not after.spent.is_nonnegative() or not after.held.is_nonnegative():
            raise _EntryError("more was taken back than there was")
        check_status(before, entry.kind, self._account)
        if entry.kind in ("spend", "hold") and not after.check_certificates(
            self._rule, team, self.content.get("certificates")
        ):
            raise _EntryError("its certificate does not prove that the budget allowed it")

    def _check_time(self, entry: Entry) -> None:
        """Refuse a spend after the expiry and an entry much older than the one before it.

        Entries of format 1 were written without a rule about clocks: theirs may be a minute late, and go back.
        """
        if self._format == 1 and (self._policy.expires is None or entry.kind not in ("spend", "hold")):
            self._before = None
            return
        time = moment_of(self.content)
        late = timedelta(0) if self._format != 1 else TOLERANCE
        if entry.kind in ("spend", "hold") and self._policy.expired(time - late):
            raise _EntryError(
                f"it is dated {time.isoformat()}, after the account has expired at {self._policy.expires}"
            )
        back = self._before is not None and self._before - time > TOLERANCE
        if self._format != 1 and back and entry.kind not in ANY_CLOCK:
            raise _EntryError("it is dated more than a minute before the entry that it follows")
        self._before = None if self._format == 1 else time
