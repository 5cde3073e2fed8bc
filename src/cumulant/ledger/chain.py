"""Is the ledger sound? Chain and sums by whole numbers, decisions by certificates, charges from the notation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cumulant.accounting.amounts import Amounts
from cumulant.accounting.filter import Tariff
from cumulant.errors import BudgetRefused, CumulantError, LedgerBroken, LedgerError
from cumulant.ledger.charge import held_prices, settled
from cumulant.ledger.entry import FIRST, KINDS, Entry, Receipt, canonical
from cumulant.ledger.keys import Keys
from cumulant.ledger.policy import Policy
from cumulant.ledger.state import CLOSED, FROZEN, OPEN, State, may
from cumulant.ledger.store import Store
from cumulant.notation import parse

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading raises of a body that no writer wrote."""
_STATUS = {"freeze": FROZEN, "thaw": OPEN, "close": CLOSED}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify` found: true if the ledger is sound, else the first entry that is broken and why.

    `checked` says what was looked at. `unsigned` counts signatures by keys that were not at hand.
    """

    sound: bool
    entries: int
    accounts: int
    checked: tuple[str, ...]
    account: str | None = None
    seq: int | None = None
    reason: str = ""
    unsigned: int = 0

    def __bool__(self) -> bool:
        return self.sound

    def __str__(self) -> str:
        looked = f"{self.entries} entries of {self.accounts} accounts, by {', '.join(self.checked)}"
        if self.sound:
            return f"sound: {looked}" + (
                f"; {self.unsigned} signatures by keys that are not at hand" if self.unsigned else ""
            )
        return f"broken at entry {self.seq} of {self.account!r}: {self.reason}"


class _Broken(Exception):
    """The entry that is looked at is not what its writer may have written."""


def verify(
    store: Store, names: Iterable[str], keys: Keys, receipts: Iterable[Receipt] = (), recompute: bool = False
) -> Verdict:
    """Check every entry of these accounts, and that every receipt is about one of them."""
    names, receipts = list(names), list(receipts)
    checked = ("chain and sums", "decisions", *(["charges"] if recompute else []), *(["receipts"] if receipts else []))
    entries = unsigned = 0
    for name in names:
        walk = Walk(store, name, keys, recompute)
        try:
            for _ in walk.entries(receipt for receipt in receipts if receipt.account == name):
                entries += 1
        except (_Broken, CumulantError) as error:
            return Verdict(False, entries, len(names), checked, name, walk.seq, str(error), unsigned + walk.unsigned)
        except _MALFORMED as error:
            reason = f"its body is not one that this library writes ({type(error).__name__}: {error})"
            return Verdict(False, entries, len(names), checked, name, walk.seq, reason, unsigned + walk.unsigned)
        unsigned += walk.unsigned
    for receipt in receipts:
        if receipt.account not in names:
            reason = "there is a receipt for this entry and no such account: the ledger was rolled back or replaced"
            return Verdict(False, entries, len(names), checked, receipt.account, receipt.seq, reason, unsigned)
    return Verdict(True, entries, len(names), checked, unsigned=unsigned)


class Walk:
    """One pass over the entries of an account, from the first, with everything added up again."""

    def __init__(self, store: Store, account: str, keys: Keys, recompute: bool) -> None:
        self._store, self._account, self._keys, self._recompute = store, account, keys, recompute
        self.seq = 0
        self.unsigned = 0
        self._holds: dict[int, dict[str, Any]] = {}
        self._repriced: dict[int, Amounts] = {}
        self._fresh: dict[str, bool] = {}

    def entries(self, receipts: Iterable[Receipt] = ()) -> Iterator[Entry]:
        """Each entry once it is checked; the exception leaves `seq` at the first that is broken."""
        wanted = {receipt.seq: receipt.hash for receipt in receipts}
        previous, state = FIRST, None
        for entry in self._store.scan(self._account):
            if entry.seq != self.seq:
                raise _Broken(f"entry {self.seq} is missing")
            self._chained(entry, previous)
            if entry.seq == 0:
                self._open(entry)
                state = State.empty(self._rule)
            elif state is not None:
                before, state = state, self._moved(entry, state)
                self._decided(entry, before, state)
            if state is None or canonical(state.to_dict()) != entry.state:
                raise _Broken("its sums are not those of the entries up to it")
            if wanted.get(entry.seq, entry.hash) != entry.hash:
                raise _Broken("its hash is not the one on the receipt: the ledger was rolled back and written again")
            yield entry
            previous = entry.hash
            self.seq += 1
        if self.seq == 0:
            raise _Broken("the account has no entries")
        lost = [seq for seq in wanted if seq >= self.seq]
        if lost:
            self.seq = min(lost)
            raise _Broken("there is a receipt for this entry, and it is missing: the ledger was rolled back")

    def _chained(self, entry: Entry, previous: str) -> None:
        if entry.prev != previous:
            raise _Broken("it does not follow the entry before it")
        if entry.digest() != entry.hash:
            raise _Broken("its hash is not that of what it holds")
        self.content = entry.content()
        if canonical(self.content) != entry.body or self.content.get("format") != 1 or entry.kind not in KINDS:
            raise _Broken("its body is not in a format that this library writes")
        signer = self.content.get("signer")
        if signer is None:
            if entry.signature:
                raise _Broken("it has a signature and names no key")
            if entry.seq and self._policy.signed:
                raise _Broken("it is not signed, in an account whose entries are")
        else:
            confirmed = self._keys.confirms(str(signer), entry.hash, entry.signature)
            if confirmed is False:
                raise _Broken(f"its signature is not by the key {signer!r}")
            self.unsigned += confirmed is None

    def _open(self, entry: Entry) -> None:
        if entry.kind != "open":
            raise _Broken("an account begins with the entry that opens it")
        self._policy = Policy.from_dict(self.content.get("policy", {}))
        self._rule = self._policy.rule()
        self._tariff = Tariff(self._rule)

    # ---- sums

    def _moved(self, entry: Entry, state: State) -> State:
        """The state after an entry, from what its body says; whatever it says has to be a whole and possible move."""
        content, zero = self.content, self._rule.zero()
        team = content.get("team")
        if (entry.kind in ("settle", "release")) != (entry.hold is not None):
            raise _Broken("only what settles or releases names a hold")
        if entry.kind in ("spend", "hold"):
            charge = self._amounts("charge")
            self._quoted(entry, charge)
            if entry.kind == "spend":
                return state.moved(charge, zero, team)
            self._holds[entry.seq] = content
            return state.moved(zero, charge, team)
        if entry.hold is not None:
            held = self._holds.pop(entry.hold, None)
            if held is None:
                raise _Broken(f"entry {entry.hold} is not a hold that was still open")
            if held.get("team") != team or held.get("accounts") != content.get("accounts"):
                raise _Broken("it is by another team than its hold, or in other accounts")
            for other in content.get("accounts", []):
                twin = self._store.by_key(str(other), entry.key)
                if twin is None or (twin.kind, twin.run) != (entry.kind, content.get("run")):
                    raise _Broken(f"its hold ends in all of its accounts alike, and not so in {other!r}")
            charge = self._amounts("charge") if entry.kind == "settle" else zero
            if entry.kind == "settle" and settled(self._rule, held, parse(content["run"]))[1] != charge:
                raise _Broken("its charge is not what ran at the prices of its hold")
            return state.moved(charge, zero - Amounts.read(held["charge"]), team)
        if entry.kind == "reprice":
            return state.moved(self._reprice(), zero, team)
        if entry.kind == "grant":
            share = Fraction(str(content.get("share")))
            if not 0 < share <= 1:
                raise _Broken("an allowance is a part of the budget")
            return state.granted(str(team), share, self._rule)
        if entry.kind in _STATUS:
            return State(state.spent, state.held, _STATUS[entry.kind], state.teams)
        raise _Broken("an account is opened once")

    def _amounts(self, name: str) -> Amounts:
        found = Amounts.read(self.content.get(name))
        if len(found.values) != len(self._rule.zero().values):
            raise _Broken("its charge has not one amount for each order")
        return found

    def _quoted(self, entry: Entry, charge: Amounts) -> None:
        content = self.content
        if entry.kind == "hold":
            prices = held_prices(content)
            if self._rule.charge((price, times) for times, price in prices.values()) != charge:
                raise _Broken("its charge is not that of its prices")
            if dict(parse(str(content["run"])).terms) != {mechanism: times for mechanism, (times, _) in prices.items()}:
                raise _Broken("its prices are not for what is held")
        for other in content.get("accounts", []):
            twin = self._store.by_key(str(other), entry.key)
            if twin is None or twin.request != entry.request:
                raise _Broken(f"it was written together with one in {other!r}, where it is missing")
        if self._recompute:
            self._charged(str(content["run"]), charge)

    def _charged(self, text: str, charge: Amounts) -> None:
        """Whether the charge covers what this library proves for the run; a lower one today is no fault."""
        known = f"{text}\n{charge.texts()}"
        if known not in self._fresh:
            run = parse(text)
            self._policy.accepts(run)
            try:
                prices = self._tariff.prices(run)
            except BudgetRefused as error:
                raise _Broken(f"what it charges for cannot be charged to this account: {error}") from error
            lower = self._rule.charge((price.lower, times) for price, times in prices)
            self._fresh[known] = charge.covers(lower)
        if not self._fresh[known]:
            raise _Broken(f"its charge is below what this library proves that {text} costs")

    def _reprice(self) -> Amounts:
        seq = self.content.get("of")
        target = self._store.at(self._account, seq) if type(seq) is int and 0 < seq < self.seq else None
        if (
            target is None
            or target.kind not in ("spend", "settle")
            or target.content().get("team") != self.content.get("team")
        ):
            raise _Broken("it changes the price of an entry that has none")
        old, new = self._amounts("old"), self._amounts("charge")
        if old != self._repriced.get(target.seq, Amounts.read(target.content()["charge"])):
            raise _Broken("the price that it replaces is not the price of that entry")
        if self._rule.cheaper(old, new) != new:
            raise _Broken("it raises a price, or changes slack")
        if self._recompute:
            self._charged(str(target.run), new)
        self._repriced[target.seq] = new
        return new - old

    # ---- decisions

    def _decided(self, entry: Entry, before: State, after: State) -> None:
        team = self.content.get("team")
        if not after.spent.sensible() or not after.held.sensible():
            raise _Broken("more was taken back than there was")
        if entry.kind in ("spend", "hold"):
            may(before, entry.kind, self._account)
            if not after.proved(self._rule, team, self.content.get("certificates")):
                raise _Broken("its certificate does not prove that the budget allowed it")
        if entry.kind in ("settle", "release", "reprice") and not before.total.covers(after.total):
            raise _Broken("it takes budget, and only spends and holds may")


def check_last(entry: Entry, keys: Keys, signed: bool) -> None:
    """Before anything is added to it, the newest entry must be what was written."""
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
    """Whoever adds to an account whose entries are signed has to have the key that confirms the newest one."""
    signer = entry.content().get("signer")
    if keys.confirms(str(signer), entry.hash, entry.signature) is None:
        raise LedgerError(
            f"entry {entry.seq} of {entry.account!r} is signed by the key {signer!r}, which is not at hand, so it cannot be "
            "checked before another one follows it; add the key to keys="
        )
