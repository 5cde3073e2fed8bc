"""Budgets and refusals: before the update, with the weights untouched, and with the reason."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import cumulant as cm
from cumulant.integrations.opacus_accountants import (
    FixedSizeAccountant,
    PoissonAccountant,
    ShuffledAccountant,
)
from cumulant.integrations.opacus_accounting import Accountant
from cumulant.training.budget import Budget
from cumulant.training.sgd import ANY_ORDER, SAMPLINGS
from tests.integrations.loops import (
    DELTA,
    FIXED,
    POISSON,
    SHUFFLED,
    fixed,
    step,
    stock,
    train,
    weights,
)


def test_a_limit_refuses_before_the_update() -> None:
    engine, module, optimizer, loader = fixed(limit=("0.5", DELTA), steps=100)
    most = cm.NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=4).steps_within(epsilon="0.5", delta=DELTA)
    assert 20 < most < 100
    before: list[float] = []
    with pytest.raises(cm.BudgetRefused, match=f"{most} steps"):
        for batch in loader:
            before = weights(module)
            step(module, optimizer, batch)
    assert weights(module) == before
    assert len(engine.accountant) == most
    assert engine.get_epsilon(DELTA) <= 0.5
    for parameter in optimizer.params:
        assert parameter.grad is None
        assert parameter.summed_grad is None
        assert parameter.grad_sample is None


def test_a_second_segment_under_a_limit_is_refused() -> None:
    engine, module, optimizer, loader = fixed(limit=(3, DELTA))
    batches = iter(loader)
    step(module, optimizer, next(batches))
    optimizer.noise_multiplier = 5.0
    with pytest.raises(cm.BudgetRefused, match="another step"):
        step(module, optimizer, next(batches))
    assert engine.accountant.history == [(4.0, "64/1797", 1)]


def test_adaptive_noise_under_a_limit_goes_by_the_filter() -> None:
    engine, module, optimizer, loader = fixed(limit=Budget(1, DELTA, adaptive=True), steps=200)
    taken = 0
    with pytest.raises(cm.BudgetRefused):
        for batch in loader:
            optimizer.noise_multiplier = 4.0 if taken % 2 else 3.0
            step(module, optimizer, batch)
            taken += 1
    assert 10 < taken < 200
    assert engine.accountant.get_epsilon(DELTA, method="rdp") <= 1.2
    assert engine.get_epsilon(DELTA) <= 1


def test_noise_zero_is_refused() -> None:
    with pytest.raises(cm.InputError, match="noise_multiplier"):
        fixed(noise=0.0)
    _, module, optimizer, loader = stock(POISSON, noise=0.0)
    with pytest.raises(cm.InputError, match="adds no noise"):
        train(module, optimizer, loader)


@pytest.mark.parametrize(
    ("kind", "rate", "noise"),
    [
        (PoissonAccountant, "1/10", 4),
        (FixedSizeAccountant, "64/1797", 4),
        (ShuffledAccountant, ShuffledAccountant.PASS, 60),
    ],
)
@pytest.mark.parametrize("limited", [False, True])
def test_threads_share_an_accountant(kind: type[Accountant], rate: str, noise: int, limited: bool) -> None:
    one, shared = kind(), kind()
    if limited:
        one.limit = shared.limit = (1, DELTA)

    def steps(accountant: Accountant, most: int) -> int:
        for count in range(most):
            try:
                accountant.step(noise_multiplier=noise, sample_rate=rate)
            except cm.BudgetRefused:
                return count
        return most

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(8) as pool:
        found = sum(pool.map(lambda _: steps(shared, 400), range(8))) if limited else None
        if not limited:
            list(pool.map(lambda _: steps(shared, 100), range(8)))
    sys.setswitchinterval(before)
    expected = steps(one, 1000 if limited else 800)
    ((_, _, counted),) = shared.history
    assert found in (None, expected)
    assert shared.taken == counted == expected <= 800


def test_an_accountant_can_be_copied_and_pickled() -> None:
    accountant = PoissonAccountant()
    accountant.step(noise_multiplier=2, sample_rate="1/100")
    for twin in (copy.deepcopy(accountant), pickle.loads(pickle.dumps(accountant))):
        twin.step(noise_multiplier=2, sample_rate="1/100")
        assert len(twin) == 2
    assert len(accountant) == 1


SETTING = cm.training.Setting(
    unit="one row", released="the weights", tuning="none", not_covered="none", noise="float", sampler="a loader"
)


@pytest.mark.parametrize("accountant", [FIXED, POISSON, SHUFFLED])
def test_the_statement_of_an_accountant_has_its_assumptions_and_caveats(accountant: str) -> None:
    made = fixed() if accountant == FIXED else stock(accountant, poisson_sampling=accountant == POISSON)
    engine, module, optimizer, loader = made
    with pytest.raises(cm.InputError, match="no step"):
        engine.accountant.statement([DELTA], SETTING)
    train(module, optimizer, loader)
    found = engine.accountant.statement([DELTA, "0.001"], SETTING)
    assert found["guarantees"][0]["epsilon"] == engine.get_epsilon(DELTA)
    assert set(engine.accountant.caveats) < set(found["caveats"])
    assert any("1 / 1797:" in each for each in found["caveats"])
    name = {FIXED: "fixed-size", POISSON: "poisson", SHUFFLED: "shuffled"}[accountant]
    assert (ANY_ORDER if accountant == SHUFFLED else SAMPLINGS[name].assumes) in found["assumptions"]
    if accountant == SHUFFLED:  # a surrogate has no lower end
        assert [row["epsilon_lower"] for row in found["guarantees"]] == [None, None]
        assert "no claim below" not in found.latex()
    else:
        assert "no claim below" in found.latex()
    with pytest.raises(cm.InputError, match="floating point"):
        engine.accountant.statement([DELTA], replace(SETTING, noise="exact"))


@pytest.mark.parametrize("user", ["loop", "engine"])
def test_a_budget_that_others_used_is_refused(user: str) -> None:
    """It started afresh in every engine, so that three of them had epsilon 1 each from one budget of 1."""
    budget = Budget(1, DELTA)
    if user == "loop":
        budget.allow(cm.Gaussian(sigma=100), 3)
    else:
        _, module, optimizer, loader = fixed(limit=budget, steps=3)
        train(module, optimizer, loader)
    other, module, optimizer, loader = fixed(limit=budget, steps=3)
    with pytest.raises(cm.InputError, match="3 steps that this accountant did not take"):
        train(module, optimizer, loader)
    assert not len(other.accountant)


def test_a_budget_goes_on_after_a_state_is_loaded() -> None:
    budget = Budget(1, DELTA, adaptive=True)
    engine, module, optimizer, loader = fixed(limit=budget, steps=3)
    train(module, optimizer, loader)
    engine.accountant.load_state_dict(engine.accountant.state_dict())
    train(module, optimizer, loader)
    engine.accountant.limit = (1, DELTA)
    train(module, optimizer, loader)
    assert len(engine.accountant) == 9
