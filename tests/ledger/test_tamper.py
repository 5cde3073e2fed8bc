"""Whatever is changed in the table is found, and the entry is named."""

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm
from cumulant.errors import LedgerBroken, LedgerError
from cumulant.filters.amounts import Amounts
from cumulant.ledger.account import Account
from cumulant.ledger.chain import Verdict, verify
from cumulant.ledger.charge import Quote
from cumulant.ledger.entry import COLUMNS, Entry, canonical
from cumulant.ledger.keys import Keys
from cumulant.ledger.policy import Policy
from cumulant.ledger.state import State
from cumulant.ledger.store import UnknownOutcome
from tests.ledger.forgery import Altered

STEP = cm.Gaussian(sigma=50)
EVERY = "CUMULANT_EVERY_BYTE" in os.environ
KEYS = Keys.read("hmac k " + "5a" * 32)


def full(url: str, keys: Keys | None = None) -> Account:
    """An account with one entry of every kind."""
    account = cm.Ledger(url, keys).create("a", epsilon=1, delta="1e-6")
    account.spend(STEP * 10, key="one")
    hold = account.hold(STEP * 5, key="two")
    account.grant("team", "1/2")
    account.spend(cm.PureDP("0.01"), team="team")
    hold.settle(STEP * 3)
    account.hold(STEP).release(unseen=True)
    account.freeze()
    account.thaw()
    account.close()
    return account


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    return list(full(f"sqlite:///{tmp_path_factory.mktemp('tamper')}/budget.db", KEYS).history())


def check(entries: list[Entry], **more: Any) -> Verdict:
    return verify(Altered(entries), ["a"], KEYS, **more)  # type: ignore[arg-type]


def test_it_is_sound(entries: list[Entry]) -> None:
    assert check(entries, recompute=True)
    assert {entry.kind for entry in entries} >= {
        "open",
        "spend",
        "hold",
        "settle",
        "release",
        "grant",
        "freeze",
        "close",
    }


def altered(value: Any) -> Iterator[Any]:
    """Every change of one character; of a number, its neighbours, and of nothing, something."""
    if value is None or isinstance(value, int):
        yield from {1 if value is None else value + 1, None if value is not None else 0}
        return
    for place, character in enumerate(value):
        yield value[:place] + chr(ord(character) ^ 1) + value[place + 1 :]
    yield value + "x"
    yield value[:-1] if value else " "


@pytest.mark.parametrize("column", COLUMNS)
def test_every_change_of_every_column(entries: list[Entry], column: str) -> None:
    """Every character of every cell; of the longer texts a part, and all of it where $CUMULANT_EVERY_BYTE is set."""
    tried = 0
    for place, entry in enumerate(entries):
        for number, value in enumerate(altered(getattr(entry, column))):
            if number % (1 if EVERY or len(str(getattr(entry, column))) < 20 else 13) != 0:
                continue
            changed = [*entries[:place], replace(entry, **{column: value}), *entries[place + 1 :]]
            verdict = check(changed)
            assert not verdict
            assert verdict.seq == place or (column == "account" and verdict.seq is not None), (column, value)
            tried += 1
    assert tried >= len(entries)


def test_missing_swapped_and_repeated(entries: list[Entry]) -> None:
    for place in range(len(entries) - 1):
        verdict = check(entries[:place] + entries[place + 1 :])
        assert (verdict.sound, verdict.seq) == (False, place)
        swapped = list(entries)
        swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
        assert check(swapped).seq == place
        assert check([*entries[: place + 1], *entries[place:]]).seq == place + 1
    assert check([]).seq == 0


def test_a_cut_tail_is_found_by_its_receipt(entries: list[Entry]) -> None:
    receipts = [entry.receipt() for entry in entries]
    for length in range(1, len(entries)):
        short = entries[:length]
        assert check(short)  # no chain can see this
        verdict = check(short, receipts=receipts)
        assert (verdict.sound, verdict.seq) == (False, length)
        assert "rolled back" in verdict.reason
    rewritten = [*entries[:-1], forged(entries, len(entries) - 1, lambda body: body | {"actor": "me"})[-1]]
    assert check(rewritten)
    assert check(rewritten, receipts=receipts).seq == len(entries) - 1
    other = replace(receipts[0], account="b")
    assert check(entries, receipts=[other]).account == "b"


def test_two_receipts_for_one_entry_contradict_in_either_order(entries: list[Entry]) -> None:
    """One from before a rollback and one from after it: the second must not replace the first."""
    mine = entries[1].receipt()
    before = replace(mine, hash="0" * 64)
    for receipts in ([before, mine], [mine, before]):
        verdict = check(entries, receipts=receipts)
        assert (verdict.sound, verdict.seq) == (False, 1)
    assert check(entries, receipts=[mine, mine])
    assert not check(entries, receipts=[replace(mine, seq=-1)])


def test_receipts_of_accounts_that_are_not_walked(url: str) -> None:
    ledger = cm.Ledger(url)
    for name in ("a", "b"):
        ledger.create(name, epsilon=1, delta="1e-6")
    receipt = ledger.account("b").spend(STEP)
    assert ledger.verify(["a"], receipts=[receipt])
    for wrong, reason in (
        (replace(receipt, hash="0" * 64), "another hash"),
        (replace(receipt, seq=2), "missing"),
        (replace(receipt, seq=2**70), "missing"),
        (replace(receipt, seq=-1), "missing"),
        (replace(receipt, account="c"), "no such account"),
    ):
        verdict = ledger.verify(["a"], receipts=[wrong])
        assert not verdict
        assert reason in verdict.reason


def test_a_database_that_does_not_answer_is_not_called_broken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = cm.Ledger(url)
    ledger.create("a", epsilon=1, delta="1e-6")

    def cut(*_: Any) -> Iterator[Entry]:
        raise UnknownOutcome("the connection was lost")

    monkeypatch.setattr(ledger._store, "scan", cut)
    with pytest.raises(UnknownOutcome, match="lost"):
        ledger.verify()


def forged(
    entries: list[Entry], place: int, change: Callable[[dict[str, Any]], dict[str, Any]], sums: Any = None
) -> list[Entry]:
    """Entries with another body, and perhaps other sums from there on, every hash and signature repaired with the key."""
    key = KEYS.signer
    assert key is not None
    made = list(entries[:place])
    for number, entry in enumerate(entries[place:], place):
        body = change(entry.content()) if number == place else entry.content()
        state = sums(entry.sums()) if sums is not None else entry.sums()
        new = replace(
            entry,
            body=canonical(body),
            state=canonical(state),
            prev=made[-1].hash if made else "",
            hash="",
            signature="",
        )
        new = replace(new, hash=new.digest())
        made.append(replace(new, signature=key.sign(new.hash)))
    return made


def test_forged_sums_are_found_by_adding(entries: list[Entry]) -> None:
    made = forged(entries, 1, lambda body: body, lambda state: state | {"spent": [*state["spent"][:-1], "1"]})
    verdict = check(made)
    assert verdict.seq == 1
    assert "sums" in verdict.reason


def test_forged_charges_and_sums_are_found_by_proving_them_again(entries: list[Entry]) -> None:
    """A tenth of the price, everything that follows from it repaired: only the notation knows better."""
    charge = entries[1].content()["charge"]
    tenth = [text if "inf" in text else str(int(text) // 10) for text in charge]
    less = Amounts.read(charge) - Amounts.read(tenth)

    def sums(state: dict[str, Any]) -> dict[str, Any]:
        return state | {"spent": (Amounts.read(state["spent"]) - less).texts()}

    made = forged(entries, 1, lambda body: body | {"charge": tenth}, sums)
    assert check(made)
    verdict = check(made, recompute=True)
    assert verdict.seq == 1
    assert "below what this library proves" in verdict.reason


@pytest.mark.parametrize(
    ("place", "change", "reason"),
    [
        (1, lambda body: body | {"certificates": {"all": [10**9 - 1] + [0] * 12}}, "certificate"),
        (1, lambda body: body | {"certificates": {}}, "certificate"),
        (1, lambda body: {name: body[name] for name in body if name != "charge"}, "amounts"),
        (1, lambda body: body | {"charge": ["-1"] * 15}, "amount"),
        (1, lambda body: body | {"format": 3}, "format"),
        (1, lambda body: body | {"format": True}, "format"),
        (1, lambda body: body | {"rigour": "guessed"}, "proved"),
        (1, lambda body: body | {"signer": "other"}, "not among those given"),
        (1, lambda body: body | {"actor": "\x1b[2J"}, "printable"),
        (1, lambda body: {name: body[name] for name in body if name != "signer"}, "names no key"),
        (
            1,
            lambda body: body | {"run": "Gaussian(sigma=50) * 9", "charge": body["charge"], "accounts": ["a", "b"]},
            "missing",
        ),
        (1, lambda body: body | {"accounts": ["b"]}, "its own among them"),
        (2, lambda body: body | {"run": "Gaussian(sigma=50) * 4"}, "not for what is held"),
        (
            2,
            lambda body: body | {"prices": [[*body["prices"][0][:1], "4", body["prices"][0][2]]]},
            "not that of its prices",
        ),
        (4, lambda body: body | {"team": "others"}, "no allowance"),
        (5, lambda body: body | {"run": "Gaussian(sigma=50) * 2"}, "at the prices of its hold"),
        (5, lambda body: body | {"run": "Gaussian(sigma=50) * 6"}, "was held 5 times"),
    ],
)
def test_forged_bodies(entries: list[Entry], place: int, change: Any, reason: str) -> None:
    verdict = check(forged(entries, place, change))
    assert verdict.seq == place
    assert reason in verdict.reason


JUNK = [
    None,
    0,
    -1,
    1.5,
    "",
    "x",
    "1/0",
    "-3",
    "5",
    [],
    {},
    [None],
    ["1"],
    {"a": 1},
    True,
    "9" * 50,
    [["a", "1", ["1"]]],
]


def mutated(value: Any, rng: random.Random) -> Any:
    """One place of a text of JSON replaced by something else, or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(sorted(value))
        if rng.random() < 0.2:
            return {other: value[other] for other in value if other != name}
        return value | {name: mutated(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        place = rng.randrange(len(value))
        return [*value[:place], mutated(value[place], rng), *value[place + 1 :]]
    return rng.choice(JUNK)


@pytest.mark.parametrize("place", range(1, 10))
def test_whatever_a_body_says_there_is_a_verdict(entries: list[Entry], place: int) -> None:
    """By somebody who has the key and repairs every hash: no exception, and nothing that matters passes."""
    harmless = {"actor", "host", "time", "version", "rigour", "by", "unseen", "reason"}
    if entries[place].kind == "spend":
        harmless |= {"run"}  # only proving the charge again knows better
    for seed in range(60):
        rng = random.Random(f"{place}/{seed}")
        body = entries[place].content()
        other = mutated(body, rng)
        if not isinstance(other, dict) or "signer" not in other:
            continue
        verdict = check(forged(entries, place, lambda _: other))  # noqa: B023
        if verdict:
            changed = {name for name in body.keys() | other.keys() if body.get(name) != other.get(name)}
            assert changed <= harmless, (place, changed)


def test_forged_policies(entries: list[Entry]) -> None:
    for field, value in (("epsilon", "1/2"), ("weights", ["1"] * 13), ("orders", ["0"] * 13), ("relation", "none")):
        verdict = check(forged(entries, 0, lambda body: body | {"policy": body["policy"] | {field: value}}))  # noqa: B023
        assert not verdict


@pytest.mark.parametrize(
    ("mode", "field", "value"),
    [
        ("gaussian", "mu", "100"),
        ("gaussian", "mu", "0.2368"),
        ("gaussian", "mu", "0"),
        ("gaussian", "mu", "-1"),
        ("gaussian", "mu", None),
        ("gaussian", "mu", 1),
        ("gaussian", "slack", "1e-6"),
        ("gaussian", "plan", "Gaussian(sigma=1)"),
        ("gaussian", "orders", ["2"]),
        ("planned", "plan", "Gaussian(sigma=0.01)"),
        ("planned", "plan", "Gaussian(sigma=50) * 2000"),
        ("planned", "plan", None),
        ("planned", "slack", "1e-7"),
        ("planned", "mu", "100"),
        ("planned", "mode", "adaptive"),
        ("adaptive", "slack", "1"),
        ("adaptive", "slack", "-1e-7"),
        ("adaptive", "slack", "2e-6"),
        ("adaptive", "weights", ["1000000", "-999999.9", *["0"] * 11]),
        ("adaptive", "weights", ["0.5", *["0.05"] * 12]),
        ("adaptive", "weights", ["0.5"]),
        ("adaptive", "weights", "0.5"),
        ("adaptive", "orders", ["-1"] * 13),
        ("adaptive", "orders", []),
        ("adaptive", "mu", "100"),
        ("adaptive", "mode", "yolo"),
        ("adaptive", "mode", "gaussian"),
        ("adaptive", "mode", "planned"),
        ("adaptive", "unit", "<script>"),
        ("adaptive", "unit", None),
        ("adaptive", "relation", "any"),
        ("adaptive", "relation", "none"),
        ("adaptive", "delta", "5"),
        ("adaptive", "delta", "1"),
        ("adaptive", "delta", True),
        ("adaptive", "delta", "-1e-6"),
        ("adaptive", "epsilon", "-1"),
        ("adaptive", "epsilon", "nan"),
        ("adaptive", "epsilon", "1e7"),
        ("adaptive", "epsilon", 1),
        ("adaptive", "expires", "junk"),
        ("adaptive", "expires", "2027-12-31"),
        ("adaptive", "expires", 5),
        ("adaptive", "owner", "\x1b[2J"),
        ("adaptive", "data", ""),
        ("adaptive", "like", "Nothing()"),
        ("adaptive", "signed", 1),
        ("adaptive", "signed", None),
        ("adaptive", "more", "1"),
    ],
)
def test_a_forged_policy_is_refused_by_readers_writers_and_imports(
    tmp_path: Path, mode: str, field: str, value: Any
) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    plan = STEP * 10 if mode == "planned" else None
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6", mode=mode, plan=plan)
    (first,) = account.history()
    body = first.content()
    forgery = replace(first, body=canonical(body | {"policy": body["policy"] | {field: value}}))
    lines = [
        '{"cumulant-ledger":1}',
        canonical({name: getattr(forgery, name) for name in COLUMNS} | {"hash": forgery.digest()}),
    ]
    tampered(url, f"UPDATE entry SET body = '{forgery.body}', hash = '{forgery.digest()}'")
    verdict = cm.Ledger(url).verify()
    assert (verdict.sound, verdict.seq) == (False, 0)
    with pytest.raises(LedgerBroken, match="the export is broken at entry 0"):
        cm.Ledger(f"sqlite:///{tmp_path}/copy.db").import_lines(lines)
    if (mode, field) == ("planned", "plan") and value is not None:
        return  # proving a plan may take seconds: writers leave that to verify
    with pytest.raises(LedgerBroken, match="is not one that can be opened"):
        cm.Ledger(url).account("a").spend(STEP)


@pytest.mark.parametrize("kind", ["thaw", "freeze", "grant", "spend"])
def test_nothing_follows_the_end_of_an_account(tmp_path: Path, kind: str) -> None:
    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta="1e-6")
    account.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cumulant.ledger.writing.check_status", lambda *_: None)
        {"spend": lambda: account.spend(STEP), "grant": lambda: account.grant("t", 1)}.get(
            kind, getattr(account, kind)
        )()
    verdict = account.verify()
    assert (verdict.seq, "closed" in verdict.reason) == (2, True)


def test_prices_of_a_hold_that_were_shifted_are_found_when_it_is_settled(tmp_path: Path) -> None:
    """The charge of the hold is right; what is settled of it is cheap, because the price of the rest was raised."""
    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta="1e-6")
    with pytest.MonkeyPatch.context() as patch:

        def shifted(quote: Quote) -> list[list[Any]]:
            (one, times, cheap), (other, more, dear) = [(text, times, price) for text, times, price in quote.terms]
            moved = cheap - cheap.scaled(Fraction(1, 100))
            return [[one, str(times), (cheap - moved).texts()], [other, str(more), (dear + moved).texts()]]

        patch.setattr(Quote, "prices", shifted)
        hold = account.hold(cm.Gaussian(sigma=20) + cm.Gaussian(sigma=21))
    assert account.verify(recompute=True)
    hold.settle(cm.Gaussian(sigma=20))
    verdict = account.verify(recompute=True)
    assert (verdict.seq, "below what this library proves" in verdict.reason) == (2, True)


def test_an_import_proves_every_charge_again(tmp_path: Path) -> None:
    """Nothing else would see a charge of nothing before the next writer spends the whole budget once more."""
    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta="1e-6")
    account.spend(STEP * 100)
    first, second = account.history()
    nothing = ["0"] * len(second.content()["charge"])
    forgery = replace(second, body=canonical(second.content() | {"charge": nothing}), state=first.state)
    lines = [{"cumulant-ledger": 1}] + [
        {name: getattr(entry, name) for name in COLUMNS} | {"hash": entry.digest()} for entry in (first, forgery)
    ]
    with pytest.raises(LedgerBroken, match="below what this library proves"):
        cm.Ledger(f"sqlite:///{tmp_path}/copy.db").import_lines(map(canonical, lines))


def test_an_edited_note_is_found_and_an_erased_one_is_not_missed(url: str) -> None:
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    for remark in ("one", "two"):
        account.spend(STEP, note=remark)
    account.erase(1)
    assert account.verify()
    tampered(url, "UPDATE note SET text = text || 'x'")
    verdict = cm.Ledger(url).verify()
    assert (verdict.seq, "note" in verdict.reason) == (2, True)


def test_a_reprice_to_nothing_is_found_without_recompute(url: str) -> None:
    from cumulant.ledger import spending

    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    account.spend(STEP * 100)
    charge = next(account.history(1)).content()["charge"]
    body = {"of": 1, "run": str(STEP * 100), "old": charge, "charge": ["0"] * len(charge)}
    account._write("reprice", None, {"of": 1}, spending._reprice_change(account._writer, "a", body, None, 1))
    verdict = account.verify()
    assert (verdict.seq, "below what this library proves" in verdict.reason) == (2, True)


def test_an_unjust_decision_is_found(tmp_path: Path) -> None:
    """A writer that does not ask the rule is caught, its entry named."""
    from cumulant.ledger.state import State

    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=1, delta="1e-6")
    account.spend(STEP * 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(State, "certificates", lambda state, rule, team: {"all": [10**9] + [0] * 12})
        account.spend(STEP * 100)
    verdict = account.verify()
    assert verdict.seq == 2
    assert "certificate" in verdict.reason


def test_what_is_not_signed_is_not_followed(url: str) -> None:
    """Somebody with the rights of a spender and no key puts the sums back to nothing."""
    account = cm.Ledger(url, KEYS).create("a", epsilon=1, delta="1e-6")
    account.spend(STEP * 116)
    first, last = account.history()
    body = last.content()
    del body["signer"]
    for signer, message in (({}, "not signed by its key"), ({"signer": "other"}, "a key that is not|not at hand")):
        entry = replace(last, seq=2, key="forged", body=canonical(body | signer), state=first.state, prev=last.hash)
        entry = replace(entry, hash="", signature="00" * 32 if signer else "")
        with account._writer.store.transaction(["a"]):
            account._writer.store.append([replace(entry, hash=entry.digest())])
        for writer in (cm.Ledger(url, KEYS).account("a"), account):
            with pytest.raises(cm.CumulantError, match=message):
                writer.spend(STEP * 116)
        assert cm.Ledger(url, KEYS).verify().seq == 2
        tampered(url, "DELETE FROM entry WHERE seq = 2")
        account = cm.Ledger(url, KEYS).account("a")


@pytest.mark.parametrize("signer", ["stranger", "k", None])
def test_a_forged_first_entry_is_not_followed_though_the_newest_one_is_signed(
    tmp_path: Path, signer: str | None
) -> None:
    """Epsilon 100 instead of 1, by a key that nobody knows, by the key in another ledger, or in an unsigned account."""
    keys = None if signer is None else KEYS
    url = f"sqlite:///{tmp_path}/budget.db"
    account = cm.Ledger(url, keys).create("a", epsilon=1, delta="1e-6")
    account.spend(STEP)
    first = next(account.history())
    body = json.loads(first.body)
    body["policy"]["epsilon"] = "100"
    if signer is not None:
        body["signer"] = signer
    forged = replace(first, body=canonical(body))
    forged = replace(forged, hash=forged.digest())
    if keys is not None and keys.signer is not None:
        forged = replace(forged, signature=keys.signer.sign(forged.hash) if signer == "k" else "00" * 32)
    store = account._writer.store
    store.execute("DROP TRIGGER entries_stay")
    row = (forged.body, forged.hash, forged.signature)
    store.execute("UPDATE entry SET body = ?, hash = ?, signature = ? WHERE seq = 0", *row)
    with pytest.raises(LedgerError, match="was changed" if signer != "stranger" else "not at hand|was changed"):
        cm.Ledger(url, keys).account("a").spend(STEP * 3000)
    assert account._writer.store.entry_at("a", 2) is None


def test_the_first_entry_needs_a_known_key_before_the_second_is_written(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    cm.Ledger(url, KEYS).create("a", epsilon=1, delta="1e-6").spend(STEP)
    both = Keys.read("hmac n " + "6b" * 32 + "\nhmac k " + "5a" * 32)
    cm.Ledger(url, both).account("a").spend(STEP)
    with pytest.raises(LedgerError, match="entry 0 of 'a' is signed by the key 'k', which is not at hand"):
        cm.Ledger(url, Keys.read("hmac n " + "6b" * 32)).account("a").spend(STEP)


def test_an_entry_of_the_first_minute_of_all_clocks_can_be_followed(tmp_path: Path) -> None:
    source = cm.Ledger(f"sqlite:///{tmp_path}/source.db").create("a", epsilon=1, delta="1e-6")
    first = next(source.history())
    body = json.loads(first.body) | {"time": "0001-01-01T00:00:00+00:00"}
    early = replace(first, body=canonical(body))
    early = replace(early, hash=early.digest())
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/copy.db")
    ledger.import_lines(
        [canonical({"cumulant-ledger": 1}), canonical({column: getattr(early, column) for column in COLUMNS})]
    )
    ledger.account("a").thaw(source_closed=True)
    ledger.account("a").spend(STEP)
    assert ledger.verify()


def test_what_a_process_has_seen_cannot_be_taken_back(url: str) -> None:
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    account.spend(STEP)
    tampered(url, "DELETE FROM entry WHERE seq = 1")
    for refused in (lambda: account.spend(STEP), account.status):
        with pytest.raises(LedgerBroken, match="entry 1 of 'a', which this process has seen, is gone"):
            refused()
    cm.Ledger(url).account("a").spend(STEP)  # somebody else goes on, and the numbers look right again
    with pytest.raises(LedgerBroken, match="is gone"):
        account.spend(STEP)


def test_a_hold_ends_alike_in_all_of_its_accounts(url: str) -> None:
    ledger = cm.Ledger(url)
    for name in ("a", "b"):
        ledger.create(name, epsilon=1, delta="1e-6")
    ledger.holding(STEP * 5, ["a", "b"])
    ledger.account("a").settle(1, STEP * 4, key="end")
    assert ledger.verify()
    (ended,) = ledger.account("b").history(2)
    less = json.loads(ended.body) | {"run": "Gaussian(sigma=50) * 3"}
    charge = Amounts.read(ledger.account("a").find("end").content()["charge"]).scaled(Fraction(3, 4))  # type: ignore[union-attr]
    less["charge"] = charge.texts()
    forgery = replace(ended, body=canonical(less), state=canonical(ended.sums() | {"spent": charge.texts()}), hash="")
    tampered(
        url,
        f"UPDATE entry SET body = '{forgery.body}', state = '{forgery.state}', hash = '{forgery.digest()}' "
        "WHERE account = 'b' AND seq = 2",
    )
    verdict = cm.Ledger(url).verify()
    assert (verdict.account, verdict.seq) == ("a", 2)
    assert "alike" in verdict.reason


def tampered(url: str, statement: str) -> None:
    """Change the table as somebody who owns the database can."""
    if url.startswith("sqlite"):
        import sqlite3

        database = sqlite3.connect(url.removeprefix("sqlite:///"))
        database.executescript(
            f"DROP TRIGGER IF EXISTS entries_stay; DROP TRIGGER IF EXISTS entries_remain; {statement};"
        )
        database.close()
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE entry DISABLE TRIGGER ALL")
        connection.execute(statement)  # type: ignore[call-overload,unused-ignore]


@pytest.mark.parametrize("column", [column for column in COLUMNS if column not in ("account", "seq", "hold")])
def test_in_the_table(url: str, column: str) -> None:
    full(url)
    tampered(url, f"UPDATE entry SET {column} = {column} || 'x' WHERE seq = 4")
    verdict = cm.Ledger(url).verify()
    assert (verdict.sound, verdict.account, verdict.seq) == (False, "a", 4)


@pytest.mark.parametrize("cell", ["body = x'00ff'", "seq = 'abc'", "hash = 5", "request = x'00'", "hold = 'x'"])
def test_cells_of_another_kind(tmp_path: Path, cell: str) -> None:
    """SQLite stores anything anywhere."""
    url = f"sqlite:///{tmp_path}/budget.db"
    full(url)
    tampered(url, f"UPDATE entry SET {cell} WHERE seq = 4")
    verdict = cm.Ledger(url).verify()
    assert (verdict.sound, verdict.account, verdict.seq) == (False, "a", 4)
    tampered(url, "DELETE FROM entry WHERE seq > 4 AND seq <> 'abc'")
    with pytest.raises(LedgerBroken):
        cm.Ledger(url).account("a").spend(STEP)


def test_a_first_entry_that_is_gone(url: str) -> None:
    full(url)
    tampered(url, "DELETE FROM entry WHERE seq = 0")
    verdict = cm.Ledger(url).verify()
    assert (verdict.sound, verdict.account, verdict.seq) == (False, "a", 0)


@pytest.mark.parametrize("seq", [-1, -(2**63)])
def test_an_entry_below_zero(url: str, seq: int) -> None:
    """It takes a key and ends a hold, so it stood in for the half of a joint spend that was cut off."""
    ledger = cm.Ledger(url)
    for name in "ab":
        ledger.create(name, epsilon=1, delta="1e-6")
    receipt = ledger.spend(STEP, ["a", "b"])[0]
    assert ledger.verify()
    tampered(url, f"UPDATE entry SET seq = {seq} WHERE account = 'b' AND seq = 1")
    verdict = cm.Ledger(url).verify(receipts=[receipt])
    assert (verdict.sound, verdict.account, verdict.seq) == (False, "b", seq)
    assert verdict.reason == "its number is below zero, and an account begins with entry 0"


def test_triggers(url: str) -> None:
    account = full(url)
    for statement in ("UPDATE entry SET key = 'x'", "DELETE FROM entry"):
        with pytest.raises(cm.CumulantError, match="entries are never"):
            account._writer.store.execute(statement)
    assert account.verify()
    assert json.loads(account.head().to_json())["seq"] == account.head().seq


@pytest.mark.parametrize("share", ["1e-1000000", "0.5", "2/4", " 1/2", "1/0", "nan", "3/2", "1e-301", "", None, 1])
def test_a_forged_share_is_refused_at_once(entries: list[Entry], share: Any) -> None:
    """A tiny share in the shorthand of powers of ten kept readers busy for minutes, and writers while they had the lock."""
    started = time.monotonic()
    verdict = check(forged(entries, 3, lambda body: {**body, "share": share}))
    assert (verdict.sound, verdict.seq) == (False, 3)
    assert verdict.reason.startswith("share=")
    sums = next(entry.sums() for entry in entries if entry.sums()["teams"])
    sums["teams"]["team"]["share"] = share
    with pytest.raises(LedgerBroken, match="the sums of the account cannot be read"):
        State.from_dict(sums)
    assert time.monotonic() - started < 1


def test_forged_orders_are_refused_at_once(entries: list[Entry]) -> None:
    policy = entries[0].content()["policy"]
    policy["orders"] = [f"{10**1200 + 2 * number}/{10**1199 + 1}" for number in range(50)]
    policy["weights"] = ["0.001"] * 50
    with pytest.raises(LedgerBroken, match="have at most 10000 characters"):
        Policy.from_dict(policy)


def test_no_entry_goes_back_to_an_older_format(entries: list[Entry]) -> None:
    """An entry of the older format is excused from rules about clocks, which a forger could use."""
    forged: list[Entry] = []
    for entry in entries:
        content = entry.content()
        if entry.seq == 3:
            content["format"] = 1
        changed = replace(entry, body=canonical(content), prev=forged[-1].hash if forged else entry.prev)
        signed = replace(changed, hash=changed.digest())
        forged.append(replace(signed, signature=KEYS.keys[0].sign(signed.hash)))
    verdict = check(forged)
    assert not verdict
    assert (verdict.seq, verdict.reason) == (3, "its format is older than that of the entry before it")
