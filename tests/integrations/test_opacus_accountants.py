"""Budgets and refusals: before the update, with the weights untouched, and with the reason."""

import copy
import itertools
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine

import cumulant as cm
from cumulant.integrations.opacus import DrawsAndSteps, make_private, make_private_with_epsilon
from cumulant.integrations.opacus_accountants import (
    Accountant,
    FixedSizeAccountant,
    PoissonAccountant,
    ShuffledAccountant,
)
from cumulant.training.budget import Budget
from cumulant.training.sgd import ANY_ORDER, SAMPLINGS
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
    assert (ANY_ORDER if accountant == SHUFFLED else SAMPLINGS[name].assumes) in found["assumptions"]
    if accountant == SHUFFLED:  # a surrogate has no lower end
        assert [row["epsilon_lower"] for row in found["guarantees"]] == [None, None]
        assert "no claim below" not in found.latex()
    else:
        assert "no claim below" in found.latex()
    with pytest.raises(cm.InputError, match="floating point"):
        engine.accountant.statement([DELTA], replace(SETTING, noise="exact"))


# ---- passes of our samplers

BINS, CYCLIC, SHUFFLED = "cumulant-balls-in-bins", "cumulant-cyclic-poisson", "cumulant-shuffled"
LAWS: dict[str, dict[str, Any]] = {
    BINS: {"bins": 20},
    CYCLIC: {"rate": "1/2", "cycle": 10, "steps": 20},
    SHUFFLED: {"batch": 15},
}


def passes(accountant: str, **options: Any) -> tuple[Any, ...]:
    """Engine, module, optimizer and loader of 320 records."""
    engine = PrivacyEngine(accountant=accountant)
    module, optimizer = model()
    arguments = {"noise_multiplier": 2.0, "max_grad_norm": 1.0, **LAWS[accountant], **options}
    return engine, *make_private(engine, module=module, optimizer=optimizer, dataset=data(320), **arguments)


def test_balls_in_bins_are_accounted_by_passes() -> None:
    engine, module, optimizer, loader = passes(BINS)
    batches = iter(loader)
    train(module, optimizer, itertools.islice(batches, 5))
    assert engine.accountant.history == [(2.0, "1/20", 1)]
    assert len(engine.accountant) == 5
    batches.close()
    train(module, optimizer, loader)  # the rest of the first pass, and five steps of the second
    one = cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove") @ cm.RandomAllocation(steps=20)
    assert engine.accountant.run() == one * 2
    assert engine.get_epsilon(DELTA) == (one * 2).epsilon(DELTA)
    assert optimizer.expected_batch_size == 16
    sampler = loader.batch_sampler.sampler
    assert sorted(record for number in range(20) for record in sampler.draw(number)) == list(range(320))


def test_permutations_of_ours_are_amplified_and_others_are_not() -> None:
    """320 records in batches of 15: 21 full ones and a short one; two passes were started."""
    engine, module, optimizer, loader = passes(SHUFFLED, noise_multiplier=8.0)
    train(module, optimizer, loader)
    train(module, optimizer, itertools.islice(iter(loader), 1))
    assert engine.accountant.history == [(8.0, "15 of 320", 2)]
    noise = cm.Gaussian.from_clipping(norm=1, noise=8, relation="replace-one")
    run = noise @ cm.ShuffledBatches(batch=15, records=320) * 2
    assert engine.accountant.run() == run
    assert engine.accountant.guarantee(DELTA).epsilon == run.epsilon(DELTA)
    assert run.epsilon(DELTA) < 0.9 * (noise @ cm.ShuffledBatches() * 2).epsilon(DELTA)
    assert optimizer.expected_batch_size == 15
    assert "fresh uniform permutation" in engine.accountant.assumes
    sampler = loader.batch_sampler.sampler
    assert sorted(record for number in range(22) for record in sampler.draw(number)) == list(range(320))
    with pytest.raises(cm.InputError, match="adaptive clipping"):
        passes(SHUFFLED, **ADAPTIVE)
    with pytest.raises(cm.InputError, match="leave steps=… out"):
        passes(SHUFFLED, steps=3)
    with pytest.raises(cm.InputError, match="one of them"):
        passes(SHUFFLED, sample=15)


def test_turns_of_parts_are_accounted_by_cycles() -> None:
    engine, module, optimizer, loader = passes(CYCLIC)
    train(module, optimizer, itertools.islice(iter(loader), 11))
    one = cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove") @ cm.Poisson(rate="1/2")
    assert engine.accountant.history == [(2.0, "1/2 of 10", 2)]
    assert engine.accountant.run() == one * 2
    assert optimizer.expected_batch_size == 16


@pytest.mark.parametrize("accountant", [BINS, CYCLIC])
def test_a_resumed_pass_counts_again(accountant: str) -> None:
    engine, module, optimizer, loader = passes(accountant)
    train(module, optimizer, itertools.islice(iter(loader), 5))
    state, drawn = engine.accountant.state_dict(), loader.batch_sampler.sampler.state_dict(secret=True)
    engine, module, optimizer, loader = passes(accountant)
    engine.accountant.load_state_dict(state)
    loader.batch_sampler.sampler.load_state_dict(drawn)
    train(module, optimizer, itertools.islice(iter(loader), 5))
    assert engine.accountant.history[0][2] == 2
    assert len(engine.accountant) == 10


@pytest.mark.parametrize("accountant", [BINS, CYCLIC])
def test_refusals_of_passes(accountant: str) -> None:
    engine, module, optimizer, loader = passes(accountant)
    batches = iter(loader)
    step(module, optimizer, next(batches))
    optimizer.noise_multiplier = 4.0
    with pytest.raises(cm.InputError, match="within one pass"):
        step(module, optimizer, next(batches))
    with pytest.raises(DrawsAndSteps, match=r"was used by a step already|no accounted step used|handed out none"):
        step(module, optimizer, next(iter(loader)))
        step(module, optimizer, next(iter(loader)))
        step(module, optimizer, data(320).tensors)
    assert engine.accountant.history[0][2] == 1
    with pytest.raises(cm.InputError, match="does not draw by this law"):
        stock(accountant, poisson_sampling=False)
    with pytest.raises(cm.InputError, match="does not say how a pass is drawn"):
        engine.accountant.step(noise_multiplier=2.0, sample_rate=0.05)
    with pytest.raises(cm.InputError, match="does not account for"):
        passes(accountant, bins=None, rate="1/2", cycle=None)
    with pytest.raises(cm.InputError, match="adaptive clipping"):
        passes(accountant, **ADAPTIVE)


def test_arguments_of_a_law() -> None:
    with pytest.raises(cm.InputError, match="one step for each bin"):
        passes(BINS, steps=10)
    with pytest.raises(cm.InputError, match="cycle=… goes with rate=…"):
        passes(BINS, cycle=10)


def test_a_limit_counts_passes() -> None:
    engine, module, optimizer, loader = passes(BINS)
    one = cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove") @ cm.RandomAllocation(steps=20)
    engine.accountant.limit = ((one * 2).epsilon(DELTA) * (1 + 1e-9), DELTA)
    train(module, optimizer, loader, 2)
    with pytest.raises(cm.BudgetRefused):
        train(module, optimizer, loader)
    assert len(engine.accountant) == 40


def test_the_search_for_noise_of_balls_in_bins() -> None:
    engine = PrivacyEngine(accountant=BINS)
    module, optimizer = model()
    module, optimizer, loader = make_private_with_epsilon(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(320),
        bins=20,
        epsilon=2,
        delta=DELTA,
        steps=30,
        max_grad_norm=1.0,
    )
    train(module, optimizer, loader, 2)
    assert 1.99 < engine.get_epsilon(DELTA) <= 2
