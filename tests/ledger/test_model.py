"""A state machine against a model with fractions: spend, hold, settle, release, crashes between any two statements."""

import math
import tempfile
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import cumulant as cm
from cumulant.errors import KeyConflict
from cumulant.ledger import writing
from cumulant.ledger.account import Account
from tests.ledger import server

COSTS = [Fraction(1, 7), Fraction(1, 3), Fraction(1, 100), Fraction(2, 9)]


class Crash(BaseException):
    """The process is gone."""


class Model:
    """What an account of pure epsilons does: sums of whole numbers of 1e-18 that may not exceed 1."""

    def __init__(self) -> None:
        self.spent = self.held = Fraction(0)
        self.holds: dict[str, tuple[Fraction, int]] = {}
        self.entries = 1

    @staticmethod
    def cost(each: Fraction, times: int) -> Fraction:
        fine = math.ceil(each * 10**30)
        return Fraction(-(-fine * times // 10**12), 10**18)

    def fits(self, each: Fraction, times: int) -> bool:
        return self.spent + self.held + self.cost(each, times) <= 1

    def spend(self, each: Fraction, times: int) -> None:
        self.spent, self.entries = self.spent + self.cost(each, times), self.entries + 1

    def hold(self, key: str, each: Fraction, times: int) -> None:
        self.held, self.entries = self.held + self.cost(each, times), self.entries + 1
        self.holds[key] = (each, times)

    def end(self, key: str, times: int) -> None:
        each, held = self.holds.pop(key)
        self.held -= self.cost(each, held)
        self.spent += self.cost(each, times) if times else 0
        self.entries += 1


class Machine(RuleBasedStateMachine):
    url: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.name = uuid4().hex
        self.ledger = cm.Ledger(self.url)
        self.account = self.ledger.create(self.name, epsilon=1, delta=0)
        self.model, self.number = Model(), 0

    def attempt(self, act: Callable[[Account], Any], crash: tuple[int, bool] | None) -> None:
        """Do it, and if the process crashes at a statement, before or after it is carried out, do it again in another."""
        store: Any = self.ledger._store
        seen = [0]

        def crashing(carry_out: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any) -> Any:
                seen[0] += 1
                if crash is None or seen[0] != crash[0]:
                    return carry_out(*arguments)
                if crash[1]:
                    carry_out(*arguments)
                raise Crash

            return run

        try:
            with pytest.MonkeyPatch.context() as patch:
                for door in ("_run_all", "_insert"):
                    patch.setattr(store, door, crashing(getattr(store, door)))
                act(self.account)
        except Crash:
            store._local.owned.connection.close()  # the kernel does that
            self.restart()
            try:
                act(self.account)
            except KeyConflict as conflict:
                assert conflict.receipt is not None  # noqa: PT017  it was written, and the answer was lost

    def key(self) -> str:
        self.number += 1
        return f"{self.number:04}"

    def restart(self) -> None:
        self.nonce = uuid4().hex
        pytest.MonkeyPatch().setattr(writing, "_nonce", lambda process, nonce=self.nonce: nonce)
        self.ledger = cm.Ledger(self.url)
        self.account = self.ledger.account(self.name)

    crashes = st.one_of(st.none(), st.tuples(st.integers(1, 7), st.booleans()))

    @rule(each=st.sampled_from(COSTS), times=st.integers(1, 5), crash=crashes)
    def spend(self, each: Fraction, times: int, crash: tuple[int, bool] | None) -> None:
        run, key = cm.PureDP(each) * times, self.key()
        if not self.model.fits(each, times):
            with pytest.raises(cm.BudgetRefused):
                self.account.spend(run, key=key)
            return
        self.attempt(lambda account: account.spend(run, key=key), crash)
        self.model.spend(each, times)
        assert self.account.find(key) is not None

    @rule(each=st.sampled_from(COSTS), times=st.integers(1, 5), crash=crashes)
    def hold(self, each: Fraction, times: int, crash: tuple[int, bool] | None) -> None:
        run, key = cm.PureDP(each) * times, self.key()
        if not self.model.fits(each, times):
            with pytest.raises(cm.BudgetRefused):
                self.account.hold(run, key=key)
            return
        self.attempt(lambda account: account.hold(run, key=key), crash)
        self.model.hold(key, each, times)

    @precondition(lambda self: self.model.holds)
    @rule(data=st.data(), crash=crashes)
    def end(self, data: st.DataObject, crash: tuple[int, bool] | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.holds)))
        each, held = self.model.holds[key]
        times = data.draw(st.integers(0, held))
        entry = self.account.find(key)
        assert entry is not None

        def act(account: Account) -> None:
            if account.find(f"{key}/end"):
                return
            if times:
                account.settle(entry.seq, cm.PureDP(each) * times, key=f"{key}/end")
            else:
                account.release(entry.seq, unseen=True, key=f"{key}/end")

        self.attempt(act, crash)
        self.model.end(key, times)
        with pytest.raises(cm.InputError, match="was ended"):
            self.account.settle(entry.seq)

    @invariant()
    def same_sums(self) -> None:
        state = self.account._writer.position(self.name).state
        assert (state.spent.values[-2], state.held.values[-2]) == (self.model.spent * 10**18, self.model.held * 10**18)
        assert self.account.head().seq + 1 == self.model.entries
        assert len(self.account.status().holds) == len(self.model.holds)

    def teardown(self) -> None:
        verdict = self.account.verify(recompute=True)
        assert verdict, str(verdict)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_against_the_model(kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_nonce", writing._nonce)  # put back at the end
    if kind == "sqlite":
        url = f"sqlite:///{tempfile.mkdtemp()}/budget.db"
    else:
        url = server.database(request.getfixturevalue("postgres"))
    machine = type("Machine", (Machine,), {"url": url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=15,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
