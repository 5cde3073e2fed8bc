"""Accountants of five laws: their passes, and refusals with the reason."""

import itertools
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine

import cumulant as cm
from cumulant.integrations.opacus import DrawsAndSteps, make_private, make_private_with_epsilon
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
)


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
        (FIXED, {}, "give sample=…"),
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


# ---- passes of our samplers

BINS, CYCLIC = "cumulant-balls-in-bins", "cumulant-cyclic-poisson"
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
    assert "an epoch has the steps of BallsInBinsSampler" in engine.accountant.assumes
    sampler = loader.batch_sampler.sampler
    assert sorted(record for number in range(20) for record in sampler.draw(number)) == list(range(320))


@pytest.mark.parametrize(("accountant", "length"), [(BINS, 20), (SHUFFLED, 22), (CYCLIC, 10)])
def test_a_pass_that_was_broken_off_has_no_lower_end(accountant: str, length: int) -> None:
    """It counts as a whole one, which needs more than its steps need."""
    engine, module, optimizer, loader = passes(accountant)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    for steps, whole in ((5, False), (length - 5, True), (1, False)):
        train(module, optimizer, itertools.islice(batches, steps))
        found, spent = engine.accountant.guarantee(DELTA), engine.accountant.spent(DELTA)
        assert (found.lower is not None) == whole
        assert found.plan is None or (found.plan.lower is not None) == whole
        assert whole or spent["epsilon_lower"] is None


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
