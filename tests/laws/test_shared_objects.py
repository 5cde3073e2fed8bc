"""Everything public that can change is used by 8 threads at once: nothing is forgotten, and no limit is exceeded."""

import copy
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm
from cumulant.errors import BudgetRefused
from cumulant.ledger.account import Account, Hold
from cumulant.paper.moments_accountant import MomentsAccountant
from cumulant.training import (
    BallsInBinsSampler,
    Budget,
    CorrelatedIntegers,
    CorrelatedNoise,
    CyclicPoissonSampler,
    FixedSizeSampler,
    IndividualBudget,
    PoissonSampler,
    Sequential,
    ShuffledSampler,
    correlated_noise,
)
from cumulant.training.audit import Claim
from cumulant.training.sampler import Sampler

THREADS = 8
STEP = cm.Gaussian(sigma=60)


ROUNDS = int(os.environ.get("CUMULANT_ROUNDS", "1"))
"""How often each test is made; a hunt makes many rounds."""


@pytest.fixture(autouse=True, params=range(ROUNDS))
def impatient(request: pytest.FixtureRequest) -> Iterator[None]:
    """Threads change as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], Any]) -> list[Any]:
    """What each of the threads returns; all of them begin at one moment."""
    start = threading.Barrier(THREADS)

    def begun(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begun, range(THREADS)))


def accepted(attempt: Callable[[], Any], most: int) -> int:
    """How often 8 threads are told yes before each of them was told no, or has asked so often."""

    def work(_: int) -> int:
        for count in range(most):
            try:
                attempt()
            except BudgetRefused:
                return count
        return most

    return sum(together(work))


def repeated(count: int, attempt: Callable[[], Any]) -> Callable[[int], None]:
    """What a thread does that attempts it so often."""

    def work(_: int) -> None:
        for _ in range(count):
            attempt()

    return work


def alone(attempt: Callable[[], Any]) -> int:
    """The same of one thread."""
    count = 0
    while True:
        try:
            attempt()
        except BudgetRefused:
            return count
        count += 1


# ---- accountants


def test_an_accountant_keeps_its_limit() -> None:
    one, shared = cm.Accountant(limit=(1, "1e-6")), cm.Accountant(limit=(1, "1e-6"))
    fits = alone(lambda: one.compose(STEP))
    assert fits == 167
    assert accepted(lambda: shared.compose(STEP), 400) == fits
    assert shared == one
    assert shared.odometer == one.odometer


def test_an_accountant_forgets_nothing() -> None:
    shared = cm.Accountant()
    together(repeated(5000, lambda: shared.compose(STEP)))
    assert dict(shared.terms) == {STEP: THREADS * 5000}


def test_accountants_that_compose_one_another_do_not_wait_for_ever() -> None:
    one, other = cm.Accountant(), cm.Accountant()
    one.compose(STEP)
    other.compose(STEP)

    def work(number: int) -> None:
        for _ in range(5):
            one.compose(other) if number % 2 else other.compose(one)

    together(work)
    assert one.terms[STEP] > 20
    before = one.terms[STEP]
    one.compose(one)
    assert one.terms[STEP] == 2 * before


def test_questions_are_about_one_moment() -> None:
    shared = cm.Accountant()
    mechanisms = [cm.PureDP(f"1/{n}") for n in range(2, 400)]

    def work(number: int) -> None:
        for mechanism in mechanisms[number::THREADS]:
            shared.compose(mechanism)
            if number == 0:
                found = shared.record()
                assert found.text.count("PureDP") == len(found.parts)
                assert len(cm.Accountant.from_json(shared.to_json()).terms) >= 1
                assert shared.copy().terms.items() <= shared.terms.items()

    together(work)
    assert len(shared.terms) == len(mechanisms)


@pytest.mark.parametrize(
    "copied", [cm.Accountant.copy, copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_copies_go_their_own_way(copied: Callable[[cm.Accountant], cm.Accountant]) -> None:
    one = cm.Accountant(limit=(1, "1e-6"))
    one.compose(STEP, 100)
    twin = copied(one)
    assert alone(lambda: twin.compose(STEP)) == 67
    assert one.terms[STEP] == 100
    assert alone(lambda: one.compose(STEP)) == 67
    assert twin == one


def test_copies_that_are_made_meanwhile_are_whole() -> None:
    shared = cm.Accountant(limit=(1, "1e-6"))

    def work(number: int) -> None:
        for _ in range(2):
            shared.compose(STEP)
            twin = (copy.copy, copy.deepcopy)[number % 2](shared)
            held = twin.terms[STEP]
            assert alone(lambda twin=twin: twin.compose(STEP)) == 167 - held  # type: ignore[misc]

    together(work)
    assert shared.terms[STEP] == 2 * THREADS


def test_the_old_accountant_forgets_nothing() -> None:
    one, shared = MomentsAccountant(8), MomentsAccountant(8)
    for _ in range(THREADS * 200):
        one.compose(STEP)
    together(repeated(200, lambda: shared.compose(STEP)))
    assert shared.epsilon("1e-6") == one.epsilon("1e-6")


# ---- training

TRAINED = cm.NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=4).run


@pytest.mark.parametrize(
    ("options", "fits"), [({}, 162), ({"adaptive": True}, None), ({"schedule": [(TRAINED, 100)]}, 100)]
)
def test_a_budget_of_a_loop_is_kept(options: dict[str, Any], fits: int | None) -> None:
    one, shared = Budget(1, "1e-5", **options), Budget(1, "1e-5", **options)
    found = alone(lambda: one.allow(TRAINED))
    assert fits in (None, found)
    assert accepted(lambda: shared.allow(TRAINED), 400) == found == shared.taken


@pytest.mark.parametrize(
    "made",
    [
        lambda: FixedSizeSampler(100, 10, 500, bytes(32)),
        lambda: PoissonSampler(100, "1/10", 500, bytes(32)),
        lambda: CyclicPoissonSampler(100, "1/10", 5, 500, bytes(32)),
        lambda: BallsInBinsSampler(100, 500, bytes(32)),
        lambda: ShuffledSampler(500, 1, bytes(32)),
    ],
    ids=["fixed-size", "poisson", "cyclic-poisson", "balls-in-bins", "shuffled"],
)
def test_no_step_is_drawn_twice(made: Callable[[], Sampler]) -> None:
    sampler = made()
    expected = sorted(tuple(sampler.draw(step)) for step in range(THREADS * 500))
    drawn = together(lambda _: [tuple(batch) for batch in sampler])
    assert sampler.step == THREADS * 500
    assert sorted(batch for batches in drawn for batch in batches) == expected


def correlated() -> CorrelatedNoise:
    return CorrelatedNoise(size=3, sigma=2, bands=[1, "1/2", "1/4"], seed=1)


def test_no_row_of_noise_is_handed_out_twice() -> None:
    one, shared = correlated(), correlated()
    expected = sorted(tuple(one.next_row()) for _ in range(THREADS * 500))
    rows = together(lambda _: [tuple(shared.next_row()) for _ in range(500)])
    assert sorted(row for each in rows for row in each) == expected
    assert shared.step == THREADS * 500


def test_integer_sums_follow_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, what threads release in any order adds up to C^-1 C x = x for every step."""
    monkeypatch.setattr(correlated_noise, "rounded_gaussian", lambda image, _: image)
    shared = CorrelatedIntegers(size=2, sigma=50, bands=[1, 1, 1])

    def work(number: int) -> bool:
        return all(shared.release([number, step]).tolist() == [number, step] for step in range(200))

    assert all(together(work))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("made", [correlated, lambda: CorrelatedIntegers(size=2, sigma=50, bands=[1, 1])])
def test_noise_is_not_copied(made: Callable[[], Any], copied: Callable[[Any], Any]) -> None:
    with pytest.raises(cm.InputError, match="make new noise"):
        copied(made())


def individual() -> IndividualBudget:
    return IndividualBudget(records=3, epsilon=2, delta="1e-6", noise_multiplier=9, rate=None, levels=4)


def forked(attempt: Callable[[], Any]) -> str:
    """Return the message of the error that a forked process gets."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            attempt()
        except cm.CumulantError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        return answer.read().decode()


def test_a_forked_process_uses_neither_noise_nor_individual_budgets() -> None:
    noise, budget = correlated(), individual()
    integers = CorrelatedIntegers(size=2, sigma=50, bands=[1, 1])
    assert "after a fork" in forked(noise.next_row)
    assert "after a fork" in forked(lambda: integers.release([1, 1]))
    assert "forked process" in forked(lambda: budget.bounds([1, 1, 1]))


def test_individual_budgets_are_kept() -> None:
    one, shared = individual(), individual()

    def step(budget: IndividualBudget) -> int:
        while True:
            try:
                bounds = budget.bounds([1, 1, 1])
            except BudgetRefused:  # another thread has not charged its own yet
                continue
            budget.charge(bounds)
            return int(bounds[0] == 1)

    fits = sum(step(one) for _ in range(80))
    assert 0 < fits < 80
    assert sum(sum(each) for each in together(lambda _: [step(shared) for _ in range(10)])) == fits


def test_an_audit_sees_every_run() -> None:
    def made() -> Sequential:
        return Sequential(Claim.of(cm.PureDP(1)), thresholds=[0.5])

    one, shared = made(), made()
    for _ in range(THREADS * 50):
        one.see(True, 1.0)
    together(repeated(50, lambda: shared.see(True, 1.0)))
    assert (shared.runs, shared.e_value, shared.p_value) == (one.runs, one.e_value, one.p_value)


# ---- ledgers


def test_a_ledger_keeps_its_budget(tmp_path: Path) -> None:
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("patients", epsilon=1, delta="1e-6")
    fits = account.would_fit("Gaussian(sigma=20)")
    assert 0 < fits < 100
    assert accepted(lambda: account.spend("Gaussian(sigma=20)"), 100) == fits
    assert len(list(account.history())) == fits + 1
    assert account.verify()


def test_a_hold_ends_once(tmp_path: Path) -> None:
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    hold = ledger.create("patients", epsilon=1, delta="1e-6").hold("Gaussian(sigma=60) * 8")

    def work(_: int) -> bool:
        try:
            hold.settle("Gaussian(sigma=60)")
        except cm.InputError:
            return False
        return True

    assert sum(together(work)) == 1
    assert ledger.account("patients").verify()


# ---- nothing is left out

SAMPLERS = {FixedSizeSampler, PoissonSampler, CyclicPoissonSampler, BallsInBinsSampler, ShuffledSampler}
NOISE = {CorrelatedNoise, CorrelatedIntegers}
TESTED = (
    {cm.Accountant, MomentsAccountant, Budget, cm.Ledger, Account, Hold, IndividualBudget, Sequential}
    | SAMPLERS
    | NOISE
)
FIXED = {cm.Run}
"""Plain classes whose instances never change after they were made."""


def test_every_public_class_that_can_change_is_tested_here() -> None:
    """The adapters of frameworks are tested beside them, because their packages may be absent."""
    rooms = [cm, cm.training, sys.modules[Account.__module__], sys.modules[MomentsAccountant.__module__]]
    public = {
        found
        for room in rooms
        for name in getattr(room, "__all__", vars(room))
        if not name.startswith("_") and inspect.isclass(found := getattr(room, name))
        if hasattr(room, "__all__") or found.__module__ == room.__name__
    }
    can_change = {
        found
        for found in public
        if found.__module__.startswith("cumulant")
        and not issubclass(found, BaseException)
        and not inspect.isabstract(found)
        and not (is_dataclass(found) and found.__dataclass_params__.frozen)  # type: ignore[attr-defined]
        and not hasattr(found, "__members__")  # of an enumeration
    }
    assert can_change - TESTED - FIXED == set()
