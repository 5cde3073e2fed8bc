"""Forgers who have the file and no key: every field of every kind of entry is changed, and everything is hashed again.

    python -m tests.ledger.forgery --mutants 10000 --seed 1

A forger changes one field, then repairs what follows from it: hashes, and in most mutants also sums and certificates, with
this library. `verify` with `recompute` must refuse the ledger, or what it accepts must be within the budget that its first
entry states: what ran, and what writers would still allow, is composed from the notation by another layer. With the receipts
of the true ledger every mutant must be refused.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

import cumulant as cm
from cumulant.accounting.choices import Method
from cumulant.errors import CumulantError
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import Tariff
from cumulant.ledger.chain import Verdict, verify
from cumulant.ledger.entry import COLUMNS as TABLE
from cumulant.ledger.entry import Entry, Receipt, canonical
from cumulant.ledger.keys import Keys
from cumulant.ledger.policy import Policy
from cumulant.ledger.state import CLOSED, FROZEN, OPEN, State

STEP = cm.Gaussian(sigma=50)
PLAN = "Gaussian(sigma=50) * 60 + Laplace(scale=20) * 3 + PureDP(0.01) * 5"
PROBES = ("Gaussian(sigma=50)", "Gaussian(sigma=0.05)", "PureDP(0.2)", "ApproximateDP(epsilon=0.1, delta=1e-8)")
STRONG = ("Gaussian(sigma=0.05)", "PureDP(9)", "ApproximateDP(epsilon=0.5, delta=0.9)", "Gaussian(sigma=50) * 100000")
JUNK: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        1.5,
        "",
        "x",
        "0",
        "1",
        "-1",
        "1/0",
        "nan",
        "inf",
        "1e400",
        "9" * 50,
        "\x1b[2J",
        "<script>",
    ),
    *([], {}, [None], ["0"], ["1", "1"], {"a": 1}, [["PureDP(0.01)", "1", ["0"]]], 2**63 - 1),
)
COLUMNS = ("account", "seq", "kind", "key", "request", "hold", "state", "prev", "signature")
KINDS = ("open", "spend", "hold", "settle", "release", "grant", "reprice", "freeze", "thaw", "close")
ROOM = 1 + 1e-9
"""What another layer may differ by in the epsilon that it composes."""

Path = tuple[str | int, ...]


class Altered:
    """A store that holds other entries than were written; cells are read as those of a table are."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries

    def scan(self, account: str) -> Iterator[Entry]:
        return (Entry.from_row([getattr(entry, column) for column in TABLE]) for entry in self.entries)

    def entry_at(self, account: str, seq: int) -> Entry | None:
        return next((entry for entry in self.entries if (entry.account, entry.seq) == (account, seq)), None)

    def by_key(self, account: str, key: str) -> Entry | None:
        return next((entry for entry in self.entries if (entry.account, entry.key) == (account, key)), None)

    def places(self, account: str, column: str, values: list[Any]) -> dict[Any, int]:
        found = [entry for entry in self.entries if entry.account == account]
        return {getattr(entry, column): entry.seq for entry in found if getattr(entry, column) in values}

    def notes(self) -> Iterator[tuple[str, str]]:
        return iter(())

    def hides_rows(self) -> bool:
        return False

    def damage(self) -> str | None:
        return None


@dataclass(frozen=True)
class Field:
    """One field of one entry: a column, or a path into the body."""

    account: str
    seq: int
    column: str
    path: Path = ()

    def __str__(self) -> str:
        return f"{self.account}/{self.seq}/{self.column}/{'.'.join(map(str, self.path))}"


def originals(folder: str) -> dict[str, list[Entry]]:
    """Accounts of each mode with an entry of every kind, almost full."""
    ledger = cm.Ledger(f"sqlite:///{folder}/budget.db")
    common = {
        "epsilon": 1,
        "delta": "1e-6",
        "owner": "dpo",
        "data": "cohort",
        "same_data": True,
        "expires": "2999-12-31",
    }
    for name, more in (
        ("adaptive", {"slack": "1e-7", "like": STEP, "unit": "person"}),
        ("gaussian", {"mode": "gaussian", "slack": "1e-8"}),
        ("planned", {"mode": "planned", "plan": PLAN}),
    ):
        account = ledger.create(name, **common, **more)  # type: ignore[arg-type]
        account.spend(STEP * 20, key="one", note="a remark")
        hold = account.hold(STEP * 12 + cm.PureDP("0.01"), key="two")
        account.grant("team", "1/2")
        account.spend(cm.PureDP("0.01"), team="team")
        if name != "planned":
            account.spend(cm.ApproximateDP("0.01", "1e-9"))
        hold.settle(STEP * 3)
        account.hold(STEP).release(unseen=True, by="dpo")
        account.freeze("a pause")
        account.thaw(reason="it is over")
        account.spend(STEP * max(account.would_fit(STEP) - 1, 1))
        account.hold(STEP)
    for name in ("adaptive", "gaussian"):  # a price that was too high, and is lowered
        _dear(ledger.create(f"repriced {name}", epsilon=1, delta="1e-6", mode=name, data="cohort", same_data=True))
    entries = {name: list(ledger.account(name).history()) for name in ledger.accounts()}
    assert {entry.kind for some in entries.values() for entry in some} >= {*KINDS} - {"close"}
    assert ledger.verify(recompute=True)
    ledger.close()
    return entries


def _dear(account: Any) -> None:
    from cumulant.ledger import charge, writing

    def twice(policy: Any, tariff: Any, run: Any) -> charge.Quote:
        true = charge.quote(policy, tariff, run)
        terms = tuple((text, times, price * 2) for text, times, price in true.terms)
        return charge.Quote(true.run, terms, tariff.rule.charge((price, times) for _, times, price in terms))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "quote", twice)
        account.spend(STEP * 20)
    account._writer._quotes.clear()
    account.reprice()
    account.spend(STEP * (account.would_fit(STEP) - 1))


def fields(entries: dict[str, list[Entry]]) -> list[Field]:
    """Every field of every entry, and a new one in each object."""
    found = []
    for name, some in entries.items():
        for entry in some:
            found += [Field(name, entry.seq, column) for column in COLUMNS]
            found += [Field(name, entry.seq, "body", path) for path in _paths(entry.content()) if path]
            found.append(Field(name, entry.seq, "body", ("new",)))
    return found


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield from _paths(each, (*path, name))


def mutated(value: Any, rng: random.Random, others: list[Any]) -> Any:
    """Something else instead of a value: rubbish, a neighbour, a much larger or smaller number, what stands elsewhere."""
    choice = rng.random()
    if choice < 0.25:
        return rng.choice(JUNK)
    if choice < 0.4:
        return rng.choice(others)
    if isinstance(value, str):
        try:
            number = cm.domains.Exact(value)
        except (ValueError, AttributeError):
            return rng.choice(
                [*STRONG, *PROBES, value + " ", value + "x", value[:-1], value.upper(), *KINDS, OPEN, FROZEN, CLOSED]
            )
        factor = rng.choice(["0", "1/2", "2", "10", "1/10", "1000000", "-1", "999/1000", "1001/1000"])
        found = number * cm.domains.Exact(factor)
        return (
            str(found.numerator) if found.denominator == 1 else str(found) if rng.random() < 0.5 else repr(float(found))
        )
    if isinstance(value, bool) or value is None:
        return rng.choice([True, False, None, 1, "1"])
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 10**9, -(10**9)])
    if isinstance(value, list) and value:
        return rng.choice([value[:-1], value[::-1], [*value, value[0]], [value[0]] * len(value), value[1:]])
    return rng.choice(JUNK)


def put(value: Any, path: Path, new: Any, drop: bool) -> Any:
    """A copy with something else at a path, or without it."""
    name, rest = path[0], path[1:]
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[name] = put(copy[name], rest, new, drop)
    elif drop:
        del copy[name]
    else:
        copy[name] = new
    return copy


def forge(entries: list[Entry], field: Field, rng: random.Random, pool: list[Any]) -> list[Entry]:
    """The entries of an account with one field changed and everything that follows from it repaired, as far as it goes."""
    made = list(entries)
    old = made[field.seq]
    if field.column == "body":
        value: Any = old.content()
        for name in field.path:
            value = value.get(name) if isinstance(value, dict) else value[int(name)]
        drop = field.path != ("new",) and rng.random() < 0.1
        body = put(old.content(), field.path, mutated(value, rng, pool), drop)
        made[field.seq] = replace(old, body=canonical(body))
    else:
        new: Any = mutated(getattr(old, field.column), rng, pool)
        made[field.seq] = replace(old, **{field.column: new if isinstance(new, str | int) else str(new)})  # type: ignore[arg-type]
    return rehashed(made, sums=rng.random() < 0.8 and field.column != "state", pinned=field)


def rehashed(entries: list[Entry], sums: bool, pinned: Field) -> list[Entry]:
    """Entries with their chain repaired, and with the sums and certificates that their bodies lead to."""
    made: list[Entry] = []
    state, rule, holds = None, None, {}
    for entry in entries:
        new = entry
        if sums:
            try:
                content = entry.content()
                if entry.seq == 0:
                    rule = Policy.from_dict(content["policy"]).rule()
                    state = State.empty(rule)
                elif state is not None and rule is not None:
                    zero, team = rule.zero(), content.get("team")
                    amount = Amounts.read(content["charge"]) if "charge" in content else zero
                    match entry.kind:
                        case "spend":
                            state = state.with_amounts(amount, zero, team)
                        case "hold":
                            holds[entry.seq], state = amount, state.with_amounts(zero, amount, team)
                        case "settle" | "release":
                            state = state.with_amounts(amount, zero - holds[entry.hold], team)  # type: ignore[index]
                        case "grant":
                            state = state.with_allowance(str(team), cm.domains.Exact(str(content["share"])), rule)
                        case "reprice":
                            state = state.with_amounts(amount - Amounts.read(content["old"]), zero, team)
                        case "freeze" | "thaw" | "close":
                            words = {"freeze": FROZEN, "thaw": OPEN, "close": CLOSED}
                            state = replace(state, status=words[entry.kind])
                    state = state.round_sums()
                    if "certificates" in content and "certificates" not in pinned.path:
                        content["certificates"] = state.certificates(rule, team) or content["certificates"]
                        new = replace(new, body=canonical(content))
                if state is not None:
                    new = replace(new, state=canonical(state.to_dict()))
            except (CumulantError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError):
                state = None
        if not (pinned.column == "prev" and entry.seq == pinned.seq):
            new = replace(new, prev=made[-1].hash if made else "")
        try:
            made.append(replace(new, hash=new.digest()))
        except ValueError:
            made.append(new)
    return made


def excess(entries: list[Entry]) -> float:
    """The largest epsilon that an accepted ledger leads to, as a part of the one that its first entry states."""
    policy = Policy.from_dict(entries[0].content()["policy"])
    ran: Counter[str] = Counter()
    holds = {entry.seq: str(entry.run) for entry in entries if entry.kind == "hold"}
    for entry in entries:
        if entry.kind in ("spend", "settle"):
            ran[str(entry.run)] += 1
        if entry.kind in ("settle", "release") and entry.hold is not None:
            holds.pop(entry.hold)
    ran.update(holds.values())
    return _excess(policy, tuple(sorted(ran.items())), entries[-1].state)


@cache
def _excess(policy: Policy, ran: tuple[tuple[str, int], ...], state: str) -> float:
    import json

    tariff, total = Tariff(policy.rule()), State.from_dict(json.loads(state)).total
    done = [cm.parse(text) * times for text, times in ran]
    worst = 0.0
    for probe in (None, *PROBES):
        runs = list(done)
        if probe is not None:
            try:
                (price,) = tariff.prices(cm.parse(probe))
            except CumulantError:
                continue
            fits = tariff.rule.would_fit(total, [(price[0].upper, 1)], 10**6)
            runs += [cm.parse(probe) * fits] if fits else []
        if runs:
            method: Method = "rdp" if policy.mode == "adaptive" else "best"
            reached = sum(runs[1:], start=runs[0]).epsilon(delta=policy.delta, method=method)
            worst = max(worst, reached / float(policy.epsilon) if policy.epsilon else float(reached > 0) * float("inf"))
    return worst


def check(entries: list[Entry], receipts: list[Receipt] = []) -> Verdict:  # noqa: B006
    """The verdict of everything that verify can look at."""
    name = entries[0].account
    mine = [replace(receipt, account=name) for receipt in receipts]
    return verify(Altered(entries), [name], Keys(), mine, recompute=True)  # type: ignore[arg-type]


def hunt(mutants: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How many mutants were refused and accepted, and what went wrong with which."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        entries = originals(folder)
    for name, some in entries.items():
        if not 0.5 < excess(some) <= ROOM:
            wrong.append(f"{name} itself is at {excess(some)} of its budget")
    every = fields(entries)
    pool = [
        entry.content().get(name)
        for some in entries.values()
        for entry in some
        for name in ("run", "charge", "policy", "prices")
    ]
    for number in range(mutants):
        field = every[number % len(every)]
        rng = random.Random(f"{seed}/{number}")
        original = entries[field.account]
        made = forge(original, field, rng, pool)
        if made == original:
            counts["same"] += 1
            continue
        verdict = check(made)
        if not verdict:
            counts["refused"] += 1
            continue
        counts["accepted"] += 1
        part = excess(made)
        if part > ROOM:
            wrong.append(f"{field}, mutant {number}: accepted at {part} of the budget")
        if check(made, [entry.receipt() for entry in original]):
            wrong.append(f"{field}, mutant {number}: accepted though its receipts say otherwise")
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts, wrong = hunt(given.mutants, given.seed)
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(", ".join(f"{counts[name]} {name}" for name in sorted(counts)) + f"; {len(wrong)} wrong\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
