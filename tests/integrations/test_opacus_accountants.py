"""Budgets and refusals: before the update, with the weights untouched, and with the reason."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine

import cumulant as cm
from cumulant.integrations.opacus import (
    make_private,
)
from cumulant.integrations.opacus_accountants import (
    Accountant,
    FixedSizeAccountant,
    PoissonAccountant,
    ShuffledAccountant,
)
from cumulant.training.budget import Budget
from cumulant.training.sgd import SAMPLINGS
from tests.integrations.loops import (
    DELTA,
    FIXED,
    POISSON,
    SHUFFLED,
    data,
    fixed,
    model,
    step,
    stock,
    train,
    weights,
)


def test_a_limit_refuses_before_the_update() -> None:
    engine, module, optimizer, loader = fixed(limit=("0.5", DELTA), steps=100)
    most = cm.NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=4).steps_within("0.5", DELTA)
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


def test_a_stock_call_does_not_draw_samples_of_fixed_size() -> None:
    with pytest.raises(cm.InputError, match="with sample="):
        stock(FIXED)
    with pytest.raises(cm.InputError, match="with sample="):
        stock(FIXED, poisson_sampling=False)


def test_other_refusals() -> None:
    module, optimizer = model()
    arguments: dict[str, Any] = {
        "module": module,
        "optimizer": optimizer,
        "dataset": data(),
        "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
    }
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("rdp", {"sample": 64}, "does not know this loader"),
        (FIXED, {}, "sample=… for samples"),
        (FIXED, {"sample": 64, "rate": "0.1"}, "one of them"),
        (FIXED, {"rate": "0.1"}, "does not account for PoissonSampler"),
        (POISSON, {"sample": 64}, "does not account for FixedSizeSampler"),
        (SHUFFLED, {"sample": 64}, "does not account for FixedSizeSampler"),
        (FIXED, {"sample": 64, "poisson_sampling": True}, "not yours to choose"),
        (POISSON, {"rate": "0.1", "clipping": "adaptive"}, "adaptive clipping"),
    ]
    for accountant, wrong, said in cases:
        with pytest.raises(cm.InputError, match=said):
            make_private(PrivacyEngine(accountant=accountant), **arguments, **wrong)
    with pytest.raises(cm.InputError, match="none here"):
        PrivacyEngine(accountant=POISSON).accountant.get_optimizer_hook_fn(sample_rate=0.1)
    with pytest.raises(cm.InputError, match="takes poisson_sampling=False"):
        stock(SHUFFLED)
    with pytest.raises(cm.InputError, match="how many of how many"):
        PrivacyEngine(accountant=FIXED).accountant.step(noise_multiplier=1.0, sample_rate=0.1)


ADAPTIVE: dict[str, Any] = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.1,
    "unclipped_num_std": 10.0,
}


def test_adaptive_clipping_is_accounted_for_fixed_sizes_only() -> None:
    with pytest.raises(cm.InputError, match="adaptive clipping"):
        stock(POISSON, **ADAPTIVE)
    engine, module, optimizer, loader = fixed(steps=3, **ADAPTIVE)
    train(module, optimizer, loader)
    assert engine.accountant.history == [(4.0, "64/1797", 3)]


def test_clipping_per_layer() -> None:
    engine, module, optimizer, loader = fixed(steps=3, clipping="per_layer", max_grad_norm=[0.6, 0.8])
    train(module, optimizer, loader)
    assert optimizer.max_grad_norm == pytest.approx(1.0)
    assert engine.accountant.history == [(4.0, "64/1797", 3)]


def test_a_data_set_that_changed_its_length() -> None:
    engine, module, optimizer, loader = fixed(steps=2)
    train(module, optimizer, loader)
    grown = data(1800)
    loader.dataset.tensors = grown.tensors
    with pytest.raises(cm.InputError, match="1800 records now"):
        train(module, optimizer, loader)
    again, _ = model()
    module, optimizer, loader = make_private(
        engine,
        module=again,
        optimizer=torch.optim.SGD(again.parameters(), lr=0.1),
        dataset=grown,
        sample=64,
        noise_multiplier=4.0,
        max_grad_norm=1.0,
    )
    with pytest.raises(cm.InputError, match="1797 and 1800"):
        train(module, optimizer, loader)


# ---- threads


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
    assert SAMPLINGS[name].assumes in found["assumptions"]
    if accountant == SHUFFLED:  # a surrogate has no lower end
        assert [row["epsilon_lower"] for row in found["guarantees"]] == [None, None]
        assert "no claim below" not in found.latex()
    else:
        assert "no claim below" in found.latex()
    with pytest.raises(cm.InputError, match="floating point"):
        engine.accountant.statement([DELTA], replace(SETTING, noise="exact"))
