"""Accounts: what each operation writes, what it refuses, and that a refusal writes nothing."""

import math
import random
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm
from cumulant.errors import KeyConflict, LedgerError
from cumulant.filters.filter import GaussianSum, Step
from cumulant.ledger import writing
from cumulant.ledger.account import Account
from cumulant.ledger.entry import canonical
from cumulant.ledger.policy import Policy, moment
from cumulant.ledger.state import State
from cumulant.pairs.gaussian import GaussianPair
from tests.effort import drawn

STEP = cm.Gaussian(sigma=50)


@pytest.fixture
def account(ledger: cm.Ledger) -> Account:
    return ledger.create("patients", epsilon=1, delta="1e-6", like=STEP, owner="dpo")


def kinds(account: Account) -> list[str]:
    return [entry.kind for entry in account.history()]


def test_spend_until_it_is_full(account: Account) -> None:
    fits = account.would_fit(STEP)
    assert fits == 116
    account.spend(STEP * 100, key="first")
    assert account.would_fit(STEP) == 16
    with pytest.raises(cm.BudgetRefused, match=r"Nothing was charged\. 16 of 20 would fit") as refused:
        account.spend(STEP * 20, key="second")
    assert refused.value.requested == "Gaussian(sigma=50) * 20"
    assert (refused.value.would_fit, refused.value.asked) == (16, 20)
    assert 0.9 < refused.value.spent == refused.value.held < 1
    account.spend(STEP * 16, key="second")  # the key of a refusal stays free
    with pytest.raises(cm.BudgetRefused):
        account.spend(STEP)
    assert [(entry.seq, entry.kind, entry.key, entry.run) for entry in account.history()] == [
        (0, "open", "open", None),
        (1, "spend", "first", "Gaussian(sigma=50) * 100"),
        (2, "spend", "second", "Gaussian(sigma=50) * 16"),
    ]
    assert all(datetime.fromisoformat(entry.time).tzinfo for entry in account.history())
    assert account.verify(recompute=True)


def test_counts_of_the_rule(ledger: cm.Ledger) -> None:
    for name, delta, count in (("far", "1e-40", 100), ("near", "1e-12", 217)):
        account = ledger.create(name, epsilon=1, delta=delta)
        assert account.would_fit(cm.PureDP(0.01)) == count
        account.spend(cm.PureDP(0.01) * count)
        with pytest.raises(cm.BudgetRefused):
            account.spend(cm.PureDP(0.01))


def test_the_two_mechanisms(account: Account) -> None:
    account.spend(cm.Gaussian(sigma=7.75))
    for second in (cm.RandomizedResponse(p=0.62), cm.Gaussian(sigma=5.06)):
        assert (cm.Gaussian(sigma=7.75) + second).epsilon(delta=1e-6) < 1
        with pytest.raises(cm.BudgetRefused):
            account.spend(second)
    assert kinds(account) == ["open", "spend"]


def test_keys(account: Account, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = account.spend(STEP, key="k")
    again = account.spend(STEP, key="k")
    assert (first.replayed, again.replayed) == (False, True)
    assert (again.seq, again.hash) == (first.seq, first.hash)
    with pytest.raises(KeyConflict, match="taken by another request"):
        account.spend(STEP * 2, key="k")
    monkeypatch.setattr(writing, "_nonce", lambda process: "another")
    restarted = cm.Ledger(url).account("patients")
    with pytest.raises(KeyConflict, match="publish the output that exists") as conflict:
        restarted.spend(STEP, key="k")
    assert conflict.value.receipt == again
    assert kinds(account) == ["open", "spend"]
    for wrong in ("", " k", "a\nb", 3, "x" * 201):
        with pytest.raises(cm.InputError, match="key="):
            account.spend(STEP, key=wrong)  # type: ignore[arg-type]


def test_hold_and_settle(account: Account) -> None:
    with account.hold(STEP * 100, key="job") as hold:
        assert account.would_fit(STEP) == 16
        status = account.status()
        assert status.spent == 0 < 0.9 < status.with_held
        assert [held["seq"] for held in status.holds] == [hold.seq]
        with pytest.raises(cm.InputError, match="was held 100 times"):
            hold.settle(STEP * 101)
        with pytest.raises(cm.InputError, match="was held 0 times"):
            hold.settle(cm.Gaussian(sigma=51))
        hold.settle(STEP * 40)
    assert account.would_fit(STEP) == 76
    with pytest.raises(cm.InputError, match="was ended by entry 2, a settle"):
        hold.settle(STEP)
    with pytest.raises(cm.InputError, match="was ended by entry 2, a settle"):
        hold.release(unseen=True)
    with account.hold(STEP * 76):
        pass
    assert account.would_fit(STEP) == 0  # what was not settled stays held
    account.held(3).settle()
    assert account.status().holds == ()
    assert kinds(account) == ["open", "hold", "settle", "hold", "settle"]
    assert account.verify(recompute=True)


def test_settle_compares_terms_and_not_charges(ledger: cm.Ledger) -> None:
    """By the pure door PureDP(1) is allowed; another law below it at every order is not what was held."""
    account = ledger.create("pure", epsilon=1, delta=1e-6)
    hold = account.hold(cm.PureDP(1))
    with pytest.raises(cm.InputError, match="was held 0 times"):
        hold.settle(cm.Gaussian(sigma=9))


def test_release_needs_the_statement(account: Account) -> None:
    hold = account.hold(STEP * 100)
    with pytest.raises(cm.InputError, match="was seen by a person or used by a program"):
        hold.release(unseen=False)
    hold.release(unseen=True, by="dpo")
    (entry,) = account.history(2)
    assert entry.content()["by"] == "dpo"
    assert "used by a program" in entry.content()["unseen"]
    assert account.would_fit(STEP) == 116
    with pytest.raises(cm.InputError, match="not a hold"):
        account.settle(0)
    assert account.verify()


def test_blocks_are_charged_all_or_none(ledger: cm.Ledger) -> None:
    october = ledger.create("clicks/2026-10", epsilon=1, delta=1e-6)
    november = ledger.create("clicks/2026-11", epsilon=1, delta=1e-6)
    october.spend(STEP * 100)
    names = ["clicks/2026-11", "clicks/2026-10"]
    with pytest.raises(cm.BudgetRefused, match="'clicks/2026-10'"):
        ledger.spend(STEP * 20, accounts=names, key="w47")
    assert kinds(november) == ["open"]
    receipts = ledger.spend(STEP * 16, accounts=names, key="w47")
    assert [receipt.account for receipt in receipts] == names
    hold = ledger.holding(cm.Gaussian(sigma=1000) * 5, names, key="w48")
    october.settle(3, cm.Gaussian(sigma=1000) * 2)
    assert kinds(november) == ["open", "spend", "hold", "settle"]
    with pytest.raises(cm.InputError, match="was ended"):
        hold.settle()
    assert ledger.verify(recompute=True)
    for wrong in ([], ["clicks/2026-10"] * 2, "clicks/2026-10", [3], None):
        with pytest.raises(cm.InputError):
            ledger.spend(STEP, accounts=wrong)  # type: ignore[arg-type]


def test_union_of_blocks(ledger: cm.Ledger) -> None:
    """Somebody with a record in each of two Gaussian blocks has what the Gaussian of twice the squared shift has, at most."""
    for name in ("a", "b"):
        ledger.create(name, epsilon=1, delta=1e-6, mode="gaussian")
    epsilon, delta = ledger.union(["a", "b"])
    assert epsilon == 2
    assert delta == pytest.approx(1e-6 * (1 + math.e))
    mu = float(ledger.account("a").policy.mu or 0)
    both = cm.Gaussian(sigma=Fraction(1) / (2 * Fraction(repr(mu))))  # one run that reads both blocks moves by 2 mu
    assert both.delta(epsilon=2) <= delta
    ledger.create("c", epsilon=3, delta=1e-7)
    assert ledger.union(["c", "a"]) == ledger.union(["a", "c"])
    assert ledger.union(["a", "c"])[1] == pytest.approx(1e-6 + math.e * 1e-7)


def test_accounts_on_the_same_data_add_up(ledger: cm.Ledger) -> None:
    first = ledger.create("one", epsilon=1, delta=1e-6, data="cohort")
    ledger.create("none", epsilon=1, delta=1e-6)
    ledger.create("none either", epsilon=1, delta=1e-6)
    first.close()
    with pytest.raises(cm.InputError, match=r"together they would be \(3, 3e-6\)"):
        ledger.create("two", epsilon=2, delta=2e-6, data="cohort")
    second = ledger.create("two", epsilon=2, delta=2e-6, data="cohort", same_data=True)
    assert ledger.accounts_of("cohort") == ["one", "two"]
    assert ledger.combined_budget("cohort") == ("3", "3e-6")
    with pytest.raises(cm.InputError, match="no account names data='Cohort', so there is no sum; there are: 'cohort'"):
        ledger.combined_budget("Cohort")
    assert second.would_fit(STEP) > 116


def test_only_budgets_for_the_same_neighbours_add_up(ledger: cm.Ledger) -> None:
    """One record added and one record replaced were summed, and so were records and users."""
    ledger.create("one", epsilon=1, delta=1e-6, data="cohort")
    others: list[dict[str, Any]] = [{"relation": "add-remove"}, {"unit": "user"}]
    for other in others:
        name = "-".join(other)
        with pytest.raises(cm.InputError, match="there is no sum; say that this is meant"):
            ledger.create(name, epsilon=2, delta=2e-6, data="cohort", **other)
        ledger.create(name, epsilon=2, delta=2e-6, data="cohort", same_data=True, **other)
        with pytest.raises(cm.RelationError, match="have no sum"):
            ledger.combined_budget("cohort")
        with pytest.raises(cm.RelationError, match="have no sum"):
            ledger.union(["one", name])


def test_allowances(account: Account) -> None:
    account.grant("team-a", share="1/4")
    fits = account.would_fit(STEP, team="team-a")
    assert fits == 29  # of 116
    account.spend(STEP * fits, team="team-a")
    with pytest.raises(cm.BudgetRefused, match="more than the allowance of 'team-a', 1/4 of the budget"):
        account.spend(STEP, team="team-a")
    account.spend(STEP)
    with pytest.raises(cm.InputError, match="has no allowance"):
        account.spend(STEP, team="team-b")
    account.grant("team-a", share="0.5")
    hold = account.hold(STEP * 20, team="team-a")
    hold.settle(STEP * 10)
    assert account.would_fit(STEP, team="team-a") == 58 - 39
    for wrong in (0, 2, "x"):
        with pytest.raises(cm.InputError, match="share="):
            account.grant("team-a", share=wrong)
    assert account.status().teams == {"team-a": "1/2"}
    assert account.verify(recompute=True)


def test_frozen_and_closed(account: Account) -> None:
    hold = account.hold(STEP * 3)
    account.freeze(reason="restored from a backup")
    for refused in (lambda: account.spend(STEP), lambda: account.hold(STEP), lambda: account.grant("a", 1)):
        with pytest.raises(cm.BudgetRefused, match="is frozen"):
            refused()
    hold.settle(STEP)
    with pytest.raises(cm.InputError, match="reason=True"):
        account.thaw(True)  # type: ignore[arg-type]
    thawed = account.thaw("reconciled with all receipts")
    assert next(account.newest()).content()["reason"] == "reconciled with all receipts"
    assert thawed.kind == "thaw"
    account.spend(STEP)
    account.close()
    for refused in (lambda: account.spend(STEP), account.thaw, account.freeze, account.close):
        with pytest.raises(cm.BudgetRefused, match="is closed"):
            refused()
    assert account.status().state == "closed"
    assert kinds(account) == ["open", "hold", "freeze", "settle", "thaw", "spend", "close"]
    assert account.verify()


def test_expiry_and_clocks(ledger: cm.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    account = ledger.create("short", epsilon=1, delta=1e-6, expires="2999-12-31")
    account.spend(STEP)
    now = datetime.now(UTC)
    monkeypatch.setattr(writing, "now", lambda: now - timedelta(seconds=50))
    assert account.spend(STEP).seq == 2  # clocks of two hosts differ a little
    monkeypatch.setattr(writing, "now", lambda: datetime(1999, 1, 1, tzinfo=UTC))
    for kind in (account.spend, account.hold):
        with pytest.raises(LedgerError, match="the clock of this host says 1999"):
            kind(STEP)
    account.freeze()  # an owner may end a date that is wrong
    account.thaw()
    monkeypatch.setattr(writing, "now", lambda: now)
    account.spend(STEP)
    monkeypatch.setattr(writing, "now", lambda: datetime(3000, 1, 1, tzinfo=UTC))
    with pytest.raises(cm.BudgetRefused, match="has expired"):
        account.spend(STEP)
    past = ledger.create("past", epsilon=1, delta=1e-6, expires="2020-01-01")
    monkeypatch.setattr(writing, "now", lambda: datetime(1999, 1, 1, tzinfo=UTC))
    with pytest.raises(cm.BudgetRefused, match="has expired"):  # the clock of the store is asked as well
        past.spend(STEP)
    years = [int(entry.time[:4]) for entry in account.history()]
    assert years == [now.year, now.year, now.year, 1999, 1999, now.year]
    assert ledger.verify()


@pytest.mark.parametrize("mode", ["gaussian", "adaptive"])
def test_digits_stay_few(ledger: cm.Ledger, mode: str) -> None:
    """Sums of exact quotients had more digits with every spend, and no Python writes more than 4300 of them."""
    rng = random.Random(6)
    account = ledger.create("a", epsilon=1, delta="1e-6", slack="1e-7", mode=mode)
    runs: list[cm.Gaussian | cm.ApproximateDP] = [cm.Gaussian(sigma=rng.uniform(2000, 3000)) for _ in range(200)]
    runs += [cm.ApproximateDP(rng.uniform(1e-6, 1e-5), rng.uniform(1e-12, 1e-10)) for _ in range(100)]
    held = account.hold(cm.Gaussian(sigma=rng.uniform(2000, 3000)) * 3)
    account.spend_all(runs)
    held.settle(None)
    last = list(account.history())[-1].sums()
    assert max(len(text) for name in ("spent", "held") for text in last[name]) < 45
    assert account.verify(recompute=True)
    slack = sum(run.curve().slack() for run in runs)
    assert 0 <= account._writer.position("a").state.spent.values[-1] - slack < Fraction(101, 10**18)


def test_sums_of_many_random_sigmas() -> None:
    """A Gaussian account after 20,000 spends, 100,000 in a hunt: short texts, never below the truth, hardly above it."""
    rng = random.Random(7)
    rule = GaussianSum.for_budget(Fraction(1), Fraction(1, 10**6))
    state, truth = State.empty(rule), Fraction(0)
    for number in range(drawn(20_000)):
        shift = 1 / Fraction(rng.uniform(1e4, 1e6))
        step = Step(number, "noise", GaussianPair(shift).curve(), GaussianPair(shift))
        price = rule.price(step)
        state = state.with_amounts(rule.charge([(price.upper, 1)]), rule.zero(), None).round_sums()
        truth += shift**2 if number < 100 else 0
        if number == 99:
            assert 0 <= state.spent.values[0] - truth <= Fraction(100, 10**18)
    assert len(canonical(state.to_dict())) < 200
    assert rule.certificate(state.total) is not None


def test_verify_refuses_dates_that_writers_refuse(ledger: cm.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    account = ledger.create("a", epsilon=1, delta=1e-6, expires="2999-12-31")
    account.spend(STEP)
    account.hold(STEP).settle(STEP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "now", lambda: datetime(1999, 1, 1, tzinfo=UTC))
        patch.setattr(writing, "TOLERANCE", timedelta(days=99999))
        account.spend(STEP)
    verdict = ledger.verify()
    assert (verdict.seq, "more than a minute before" in verdict.reason) == (4, True)
    other = ledger.create("b", epsilon=1, delta=1e-6, expires="2999-12-31")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "now", lambda: datetime(3000, 1, 1, tzinfo=UTC))
        patch.setattr(Policy, "expired", lambda policy, now: False)
        other.spend(STEP)
    verdict = ledger.verify(["b"])
    assert (verdict.seq, "after the account has expired" in verdict.reason) == (1, True)


def test_other_modes(ledger: cm.Ledger) -> None:
    gaussian = ledger.create("gaussian", epsilon=1, delta=1e-6, mode="gaussian")
    assert gaussian.would_fit(STEP) == 140
    gaussian.spend(STEP * 140)
    with pytest.raises(cm.BudgetRefused):
        gaussian.spend(STEP)
    with pytest.raises(cm.BudgetRefused, match="neither Gaussian noise nor purely private"):
        gaussian.spend(cm.ZeroConcentrated(rho="0.001"))
    plan = STEP * 100 + cm.Laplace(scale=10) * 2
    planned = ledger.create("planned", epsilon=2, delta=1e-6, mode="planned", plan=plan)
    planned.spend(cm.Laplace(scale=10))
    with planned.hold(STEP * 100) as hold:
        hold.settle(STEP * 60)
    assert planned.would_fit(STEP) == 40
    with pytest.raises(cm.BudgetRefused, match="not in the plan"):
        planned.spend(cm.Gaussian(sigma=51))
    with pytest.raises(cm.BudgetRefused):
        planned.spend(STEP * 41)
    with pytest.raises(cm.BudgetRefused, match="the plan is proved to have epsilon"):
        ledger.create("too much", epsilon=1, delta=1e-6, mode="planned", plan=plan * 100)
    assert planned.status().used == 0.6
    assert gaussian.status().used == pytest.approx(1, abs=0.01)
    assert ledger.verify(recompute=True)


def test_slack(ledger: cm.Ledger) -> None:
    promise = cm.ApproximateDP("0.01", "1e-8")
    plain = ledger.create("plain", epsilon=1, delta=1e-6)
    with pytest.raises(cm.BudgetRefused, match="the slack of this budget is 0; open an account"):
        plain.spend(promise)
    some = ledger.create("some", epsilon=1, delta=1e-6, slack="1e-7")
    assert some.would_fit(promise) == 10
    some.spend(promise * 10)
    with pytest.raises(cm.BudgetRefused):
        some.spend(promise)
    assert ledger.verify(recompute=True)


def test_reprice(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that proves less charges less; what was charged by an older one may be entered again, never raised."""
    from cumulant.filters.filter import Price
    from cumulant.filters.mixture import Mixture

    proved = Mixture.price
    with monkeypatch.context() as older:
        older.setattr(
            Mixture, "price", lambda rule, step: Price((p := proved(rule, step)).upper.scaled(Fraction(3, 2)), p.lower)
        )
        old = cm.Ledger(account._writer.store.url).account("patients")
        old.spend(STEP * 60)
        with old.hold(STEP * 3) as hold:
            hold.settle(STEP * 2)
    assert account.verify(recompute=True)
    before = account.would_fit(STEP)
    assert [receipt.kind for receipt in account.reprice()] == ["reprice", "reprice"]
    assert account.would_fit(STEP) == 116 - 62 > before
    assert account.reprice() == []
    scan = account._writer.store.scan
    entries = [entry for entry in scan("patients") if entry.kind != "reprice"]
    with monkeypatch.context() as late:  # it looked before the others wrote
        late.setattr(account._writer.store, "scan", lambda name, start=0: entries if start == 0 else scan(name, start))
        with pytest.raises(cm.InputError, match="repriced by somebody else meanwhile"):
            account.reprice()
    with pytest.raises(cm.InputError, match="has no price"):
        account.reprice(0)
    assert account.verify(recompute=True)


def test_notes_can_be_erased(account: Account) -> None:
    receipt = account.spend(STEP, note="asked for by J. Doe")
    assert account.note(receipt.seq) == "asked for by J. Doe"
    assert not any("Doe" in entry.body + entry.state for entry in account.history())
    account.erase(receipt.seq)
    assert account.note(receipt.seq) is None
    with pytest.raises(cm.InputError, match="has no note"):
        account.erase(0)
    assert account.verify()


def test_what_is_refused_is_not_written(account: Account, ledger: cm.Ledger) -> None:
    step = cm.Gaussian(sigma=50) @ cm.Poisson(rate="0.1")
    for run, error, message in (
        (step, cm.RelationError, "add-remove neighbours and the account for replace-one"),
        (cm.from_rdp(rdp=lambda order: order / 100), cm.NotationError, "Python function"),
        ("Gausian(sigma=1)", cm.NotationError, "did you mean"),
        (3, cm.InputError, "not a mechanism"),
        (cm.Gaussian(sigma="1e-200"), cm.BudgetRefused, "Use more noise, or ask the owner, dpo"),
        (cm.Accountant(), cm.NotationError, "nothing ran"),
    ):
        with pytest.raises(error, match=message):
            account.spend(run)  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="there is no account 'others'"):
        ledger.account("others")
    with pytest.raises(cm.InputError, match="there is an account 'patients' already"):
        ledger.create("patients", epsilon=1, delta=1e-6)
    assert kinds(account) == ["open"]


def test_infinite_charges_are_named(ledger: cm.Ledger) -> None:
    account = ledger.create("a", epsilon=1, delta=1e-6)
    points = cm.from_rdp_points([1.5, 2], [1e-9, 1e-9])  # nothing is known at the orders of the account
    with pytest.raises(cm.BudgetRefused, match="infinite charge at every order"):
        account.spend(points)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 1}, "protects nobody"),
        ({"slack": 1e-5}, "slack"),
        ({"relation": "any"}, "relation"),
        ({"unit": ""}, "unit"),
        ({"unit": 3}, "unit"),
        ({"mode": "free"}, "mode"),
        ({"mode": "planned"}, "plan="),
        ({"plan": "PureDP(1)"}, "plan="),
        ({"like": 3}, "like"),
        ({"like": "Gaussian(sigma=1) @ Poisson(rate=0.1)"}, "add-remove"),
        ({"expires": "tomorrow"}, "expires"),
        ({"owner": ""}, "owner"),
        ({"data": 3}, "data"),
        ({"name": "a\0b"}, "name"),
    ],
)
def test_policies_that_are_refused(tmp_path: object, given: dict[str, object], message: str) -> None:
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    with pytest.raises(cm.InputError, match=message):
        ledger.create(**{"name": "a", "epsilon": 1, "delta": 1e-6} | given)  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="there is no ledger"):
        ledger.accounts()


def test_many_at_once(account: Account) -> None:
    receipts = account.spend_all([STEP, cm.PureDP(0.01), STEP * 2], keys=["a", "b", "c"])
    assert [receipt.seq for receipt in receipts] == [1, 2, 3]
    with pytest.raises(cm.BudgetRefused):
        account.spend_all([STEP, STEP * 200])
    assert len(kinds(account)) == 4
    assert all(
        receipt.replayed for receipt in account.spend_all([STEP, cm.PureDP(0.01), STEP * 2], keys=["a", "b", "c"])
    )
    with pytest.raises(KeyConflict):
        account.spend_all([STEP, STEP], keys=["a", "d"])
    with pytest.raises(cm.InputError, match="different keys"):
        account.spend_all([STEP, STEP], keys=["a", "a"])
    assert account.verify(receipts)


def test_signed(url: str) -> None:
    from cumulant.ledger.keys import Keys

    ring = Keys.read("hmac second " + "22" * 32 + "\nhmac first " + "11" * 32)
    first, both, none = Keys(ring.keys[1:]), ring, Keys()
    account = cm.Ledger(url, keys=first).create("a", epsilon=1, delta=1e-6)
    account.spend(STEP)
    cm.Ledger(url, keys=both).account("a").spend(STEP)  # the key was changed
    with pytest.raises(LedgerError, match="no key here that can sign"):
        cm.Ledger(url, keys=none).account("a").spend(STEP)
    assert [entry.content()["signer"] for entry in account.history()] == ["first", "first", "second"]
    assert cm.Ledger(url, keys=both).verify().unconfirmed == 0
    stranger = cm.Ledger(url, keys=first).verify()
    assert not stranger
    assert "not among those given" in stranger.reason
    assert cm.Ledger(url, keys=first).verify(allow_unknown_signers=True).unconfirmed == 1
    assert cm.Ledger(url).verify().unconfirmed == 3
    wrong = Keys.read("hmac first " + "11" * 32 + "\nhmac second " + "23" * 32)
    assert cm.Ledger(url, keys=wrong).verify().seq == 2
    with pytest.raises(LedgerError, match="not signed by its key"):
        cm.Ledger(url, keys=wrong).account("a").spend(STEP)
    edwards = cm.Ledger(url, keys=Keys.read("ed25519 e " + "33" * 32)).create("b", epsilon=1, delta=1e-6)
    edwards.spend(STEP)
    assert edwards.verify().unconfirmed == 0


def test_a_writer_with_a_key_refuses_what_is_not_signed(url: str) -> None:
    """An account that was rewritten with "signed": false would otherwise be followed by entries that nobody signs."""
    from cumulant.ledger.keys import Keys

    ring = Keys.read("hmac first " + "11" * 32)
    cm.Ledger(url).create("plain", epsilon=1, delta=1e-6)
    cm.Ledger(url, keys=ring).create("signed", epsilon=1, delta=1e-6).spend(STEP)
    plain = cm.Ledger(url, keys=ring).account("plain")
    for refused in (lambda: plain.spend(STEP), lambda: plain.hold(STEP), plain.freeze, lambda: plain.grant("t", 1)):
        with pytest.raises(LedgerError, match=r"is not signed, and there is a key here.*--allow-unsigned"):
            refused()
    cm.Ledger(url, keys=ring, allow_unsigned=True).account("plain").spend(STEP)
    verdict = cm.Ledger(url, keys=ring).verify()
    assert verdict
    assert verdict.unsigned == ("plain",)
    assert "not signed, so whoever has the database could have written it: plain" in str(verdict)
    assert cm.Ledger(url).verify().unsigned == ()


def test_a_batch_names_the_key_that_is_taken(account: Account) -> None:
    first = account.spend(STEP, key="b")
    with pytest.raises(KeyConflict, match="key 'b' of 'patients' is taken, by entry 1") as found:
        account.spend_all([STEP, STEP * 2, STEP], keys=["a", "b", "c"])
    assert found.value.receipt == replace(first, replayed=True)
    assert account.find("a") is None
    assert account.spend_all([STEP, STEP], keys=["d", "e"])[1].seq == 3


def test_ledgers_accounts_and_holds_can_be_pickled(ledger: cm.Ledger) -> None:
    import pickle

    account = ledger.create("a", epsilon=1, delta=1e-6)
    hold = pickle.loads(pickle.dumps(account.hold(STEP * 2)))
    hold.settle(STEP)
    again = pickle.loads(pickle.dumps(account))
    again.spend(STEP)
    assert [entry.kind for entry in again.history()] == kinds(account) == ["open", "hold", "settle", "spend"]
    assert pickle.loads(pickle.dumps(ledger)).verify()
    assert again._ledger._writer.actor == ledger._writer.actor


def test_a_pickle_keeps_who_may_use_the_file(tmp_path: Path) -> None:
    import pickle

    pickle.loads(pickle.dumps(cm.Ledger(f"{tmp_path}/budget.db", group=True))).create("a", epsilon=1, delta=1e-6)
    assert (tmp_path / "budget.db").stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2027-01-04", "2027-01-04T23:59:59+00:00"),
        ("2027-W01", "2027-01-04T23:59:59+00:00"),
        ("2027W01T10", "2027-01-04T10:00:00+00:00"),
        ("20270104T1", None),
    ],
)
def test_a_date_ends_with_its_day_and_a_time_at_once(text: str, end: str | None) -> None:
    """A short time was taken for a date, and moved to the end of its day."""
    if end is None:
        with pytest.raises(cm.InputError, match="expires"):
            moment(text)
    else:
        assert moment(text) == end


def test_a_host_that_does_not_print_breaks_no_account(ledger: cm.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the host was entered as it is, and `verify` refused the entry for ever."""
    account = ledger.create("a", epsilon=1, delta="1e-6")
    monkeypatch.setattr(socket, "gethostname", lambda: "pc\x1b[31m")
    account.spend("Gaussian(sigma=50)")
    assert list(account.history())[-1].content()["host"] == "unknown"
    assert ledger.verify()
