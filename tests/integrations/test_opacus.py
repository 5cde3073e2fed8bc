"""Opacus 1.6.0 and torch 2.13.0 as they are: every trap, what is accounted, refusals, checkpoints, two processes."""

import json
import math
import subprocess
import sys
import warnings
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers.optimizer import _generate_noise
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset, WeightedRandomSampler

import cumulant as cm
from cumulant.integrations.opacus import (
    DrawsAndSteps,
    from_opacus,
    make_private,
    make_private_with_epsilon,
    torch_rate,
)
from cumulant.training import FixedSizeSampler, clipped, conformance
from cumulant.training.budget import Budget

RECORDS, BATCH, DELTA = 1797, 64, 1e-5
FIXED, POISSON, SHUFFLED = "cumulant-fixed-size", "cumulant", "cumulant-shuffled"


@pytest.fixture(autouse=True)
def quiet() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


def data(records: int = RECORDS) -> TensorDataset:
    rng = np.random.default_rng(1)
    return TensorDataset(
        torch.tensor(rng.normal(size=(records, 8)), dtype=torch.float32), torch.tensor(rng.integers(0, 3, records))
    )


def model() -> tuple[Any, Any]:
    module = torch.nn.Linear(8, 3)
    return module, torch.optim.SGD(module.parameters(), lr=0.1)


def step(module: Any, optimizer: Any, batch: Any, criterion: Any = torch.nn.functional.cross_entropy) -> None:
    optimizer.zero_grad()
    criterion(module(batch[0]), batch[1]).backward()
    optimizer.step()


def train(module: Any, optimizer: Any, loader: Any, passes: int = 1) -> None:
    for _ in range(passes):
        for batch in loader:
            step(module, optimizer, batch)


def fixed(records: int = RECORDS, limit: Any = None, noise: float = 4.0, **options: Any) -> tuple[Any, ...]:
    engine = PrivacyEngine(accountant=FIXED)
    engine.accountant.limit = limit
    module, optimizer = model()
    arguments = {"sample": BATCH, "noise_multiplier": noise, "max_grad_norm": 1.0, **options}
    return engine, *make_private(engine, module=module, optimizer=optimizer, dataset=data(records), **arguments)


def stock(accountant: str, loader: Any = None, noise: float = 2.0, **options: Any) -> tuple[Any, ...]:
    engine = PrivacyEngine(accountant=accountant)
    module, optimizer = model()
    loader = loader or DataLoader(data(), batch_size=BATCH, shuffle=True)
    return engine, *engine.make_private(
        module=module, optimizer=optimizer, data_loader=loader, noise_multiplier=noise, max_grad_norm=1.0, **options
    )


def weights(module: Any) -> list[float]:
    return [float(x) for parameter in module.parameters() for x in parameter.detach().flatten()]


def test_the_versions_are_the_ones_that_were_read() -> None:
    assert version("torch").partition("+")[0] == "2.13.0"
    assert version("opacus") == "1.6.0"


# ---- what is accounted


def test_fixed_size_is_accounted_by_its_law() -> None:
    engine, module, optimizer, loader = fixed()
    train(module, optimizer, loader, 3)
    assert engine.accountant.history == [(4.0, "64/1797", 84)]
    run = cm.Gaussian.from_clipping(1, 4, "replace-one") @ cm.WithoutReplacement(sample=64, population=1797) * 84
    assert engine.accountant.run() == run
    assert engine.get_epsilon(DELTA) == run.epsilon(DELTA)
    found = engine.accountant.guarantee(DELTA)
    assert (found.lower, found.epsilon) == pytest.approx((0.6960, 0.7211), abs=1e-4)
    assert found.relation == "replace-one"
    assert optimizer.expected_batch_size == 64
    assert list(engine.accountant.spent(DELTA)) == ["step", "epsilon", "epsilon_lower", "delta", "relation"]


def test_what_the_fixed_size_loader_draws_conforms() -> None:
    engine, *_, loader = fixed(steps=400)
    assert min(conformance(loader.batch_sampler.sampler, RECORDS, BATCH).values()) > 1e-4
    assert len(engine.accountant) == 0


def test_stock_poisson() -> None:
    engine, module, optimizer, loader = stock(POISSON)
    train(module, optimizer, loader, 2)
    assert len(engine.accountant) == 58
    assert engine.accountant.get_epsilon(DELTA, method="rdp") == pytest.approx(0.6344, abs=1e-4)
    assert engine.get_epsilon(DELTA) == pytest.approx(0.5616, abs=1e-4)
    assert engine.accountant.guarantee(DELTA).relation == "add-remove"
    assert any("public" in caveat for caveat in engine.accountant.caveats)


def test_stock_search_for_noise() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    loader = DataLoader(data(), batch_size=BATCH)
    target = {"target_epsilon": 3, "target_delta": DELTA, "epochs": 10, "max_grad_norm": 1.0}
    _, optimizer, _ = engine.make_private_with_epsilon(module=module, optimizer=optimizer, data_loader=loader, **target)
    assert 1.12 < optimizer.noise_multiplier < 1.145  # prv 1.138


def test_our_search_for_noise() -> None:
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer = model()
    target: dict[str, Any] = {"epsilon": 3, "delta": DELTA, "steps": 560, "max_grad_norm": 1.0}
    module, optimizer, loader = make_private_with_epsilon(
        engine, module=module, optimizer=optimizer, dataset=data(), sample=64, **target
    )
    assert optimizer.noise_multiplier == pytest.approx(2.889, rel=5e-3)
    assert len(loader) == 28
    engine.accountant.history = [(optimizer.noise_multiplier, "64/1797", 560)]
    assert engine.get_epsilon(DELTA) <= 3


def test_our_poisson_sampler_in_opacus() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(200),
        rate=Fraction(1, 100),
        steps=40,
        noise_multiplier=2.0,
        max_grad_norm=1.0,
    )
    sizes = []
    for batch in loader:
        sizes.append(len(batch[0]))
        step(module, optimizer, batch)
    assert 0 in sizes  # an empty batch is a step too
    assert engine.accountant.history == [(2.0, "1/100", 40)]
    assert engine.accountant.run() == cm.Gaussian(sigma=2) @ cm.Poisson(rate="1/100") * 40 or str(
        engine.accountant.run()
    ).startswith('Gaussian(sigma=2, relation="add-remove") @ Poisson(rate=0.01) * 40')


def test_a_first_batch_may_be_empty() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    records = data(20)
    integers = TensorDataset(records.tensors[0], records.tensors[1])
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=integers,
        rate="1/1000000",
        steps=3,
        noise_multiplier=2.0,
        max_grad_norm=1.0,
    )
    train(module, optimizer, loader)
    assert engine.accountant.history == [(2.0, "1/1000000", 3)]


# ---- traps


def batches_of(loader: Any, passes: int) -> list[list[int]]:
    """Record numbers that a loader hands out; the data are the numbers themselves."""
    return [[int(i) for i in batch[0]] for _ in range(passes) for batch in loader]


def test_conformance_of_real_loaders() -> None:
    """What torch and Opacus draw, as the library sees it: only fresh uniform samples pass."""
    numbers = TensorDataset(torch.arange(200))
    engine = PrivacyEngine(accountant="rdp")
    module = torch.nn.Linear(1, 1)
    poisson = engine.make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
        data_loader=DataLoader(numbers, batch_size=10),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )[2]
    drawn = {
        "randperm": [torch.randperm(200)[:10].tolist() for _ in range(400)],
        "ours": list(FixedSizeSampler(200, 10, steps=400, key=bytes(32))),
        "shuffled": batches_of(DataLoader(numbers, batch_size=10, shuffle=True), 20),
        "sequential": batches_of(DataLoader(numbers, batch_size=10), 20),
        "poisson": batches_of(poisson, 20),
        "with replacement": batches_of(
            DataLoader(numbers, batch_size=10, sampler=RandomSampler(numbers, replacement=True)), 20
        ),
    }
    refuted = {
        name: {test for test, p in conformance(batches, 200, 10).items() if p < 1e-4} for name, batches in drawn.items()
    }
    assert refuted == {
        "randperm": set(),
        "ours": set(),
        "shuffled": {"coverage", "overlap"},
        "sequential": {"coverage", "overlap", "order"},
        "poisson": {"size", "order"},
        "with replacement": {"size"},
    }


def test_trap_shuffled_batches_have_not_the_poisson_number() -> None:
    opacus, module, optimizer, loader = stock("rdp", poisson_sampling=False)
    train(module, optimizer, loader, 2)
    assert opacus.get_epsilon(DELTA) == pytest.approx(0.6347, abs=1e-3)  # the Poisson number
    with pytest.raises(cm.InputError, match="no Poisson samples"):
        stock(POISSON, poisson_sampling=False)
    engine, module, optimizer, loader = stock(SHUFFLED, poisson_sampling=False)
    train(module, optimizer, loader, 2)
    assert engine.accountant.get_epsilon(DELTA, method="rdp") == pytest.approx(7.08, abs=0.01)
    assert engine.get_epsilon(DELTA) == pytest.approx(6.573, abs=1e-3)
    assert engine.accountant.guarantee(DELTA).lower is None
    assert len(engine.accountant) == 58


def test_trap_passes_count_when_they_are_started() -> None:
    engine, module, optimizer, loader = stock(SHUFFLED, poisson_sampling=False)
    for _ in range(10):
        for number, batch in enumerate(loader):
            step(module, optimizer, batch)
            if number == 2:
                break
    assert engine.accountant.history == [(2.0, "pass", 10)]
    assert len(engine.accountant) == 30


def test_trap_interleaved_passes_count_both() -> None:
    engine, module, optimizer, loader = stock(SHUFFLED, poisson_sampling=False)
    one, other = iter(loader), iter(loader)
    for _ in range(3):
        step(module, optimizer, next(one))
        step(module, optimizer, next(other))
    assert engine.accountant.history == [(2.0, "pass", 2)]


@pytest.mark.parametrize(("noise", "fresh", "shuffled"), [(0.4, 57.2, 27.2), (1.4, 3.62, 4.91)])
def test_trap_shuffled_and_fresh_are_not_comparable(noise: float, fresh: float, shuffled: float) -> None:
    plan: dict[str, Any] = {"batch": 10, "records": 100, "epochs": 1, "noise_multiplier": noise}
    numbers = [cm.NoisySGD(**plan, sampling=name).epsilon(1e-3) for name in ("fixed-size", "shuffled")]
    assert numbers == pytest.approx([fresh, shuffled], rel=0.02)


def test_trap_the_rate_is_not_one_over_the_length_of_the_loader() -> None:
    for drop, length, expected in ((False, 29, 61), (True, 28, 64)):
        loader = DataLoader(data(), batch_size=BATCH, shuffle=True, drop_last=drop)
        _, _, optimizer, found = stock("rdp", loader)
        assert (len(found), optimizer.expected_batch_size) == (length, expected)
        engine, module, optimizer, found = stock(POISSON, loader)
        step(module, optimizer, next(iter(found)))
        assert Fraction(engine.accountant.history[0][1]) == torch_rate(1 / length)
    *_, optimizer, _ = fixed()
    assert optimizer.expected_batch_size == 64


def test_trap_lengths_that_are_one_too_small() -> None:
    """int(1 / (1 / L)) = L - 1: the loader is shorter, and accounted at the larger rate 1 / (L - 1)."""
    assert [length for length in range(1, 2000) if int(1 / (1 / length)) != length][:3] == [49, 93, 99] or (
        sum(int(1 / (1 / length)) != length for length in range(1, 2000)) == 141
    )
    engine, module, optimizer, loader = stock(POISSON, DataLoader(data(186), batch_size=2))
    assert len(loader) == 92
    step(module, optimizer, next(iter(loader)))
    assert Fraction(engine.accountant.history[0][1]) >= Fraction(1, 93)


@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1 / 29, 0.5, 2**-24])
def test_trap_rand_is_a_multiple(rate: float) -> None:
    draws = torch.rand(1_000_000)
    assert torch.equal(draws * 2**24, (draws * 2**24).round())
    on_grid = torch.arange(0, 2**24, dtype=torch.float32) / 2**24
    assert int((on_grid < rate).sum()) == torch_rate(rate) * 2**24
    assert torch_rate(rate) >= Fraction(float(np.float32(rate)))


def test_trap_float_clipping_exceeds_the_norm() -> None:
    gradient = torch.randn(1, 10_000_000)
    scaled = gradient * (1.0 / (gradient.norm(2, dim=1) + 1e-6)).clamp(max=1.0)
    assert float(scaled.double().norm()) > 1 + 1e-5
    exact = clipped(scaled[:, :1_000_000].numpy() * 10, norm=1)[0]
    assert int(np.dot(exact, exact)) <= 2**40


def test_trap_accumulated_gradients() -> None:
    opacus, module, optimizer, loader = stock("rdp", poisson_sampling=False)
    batches = iter(loader)
    for _ in range(3):
        batch = next(batches)
        torch.nn.functional.cross_entropy(module(batch[0]), batch[1]).backward()
    optimizer.step()
    assert opacus.accountant.history[0][1] == pytest.approx(3 / 29)
    engine, module, optimizer, loader = stock(SHUFFLED, poisson_sampling=False)
    batches = iter(loader)
    for _ in range(3):
        batch = next(batches)
        torch.nn.functional.cross_entropy(module(batch[0]), batch[1]).backward()
    before = weights(module)
    with pytest.raises(cm.InputError, match="accumulated"):
        optimizer.step()
    assert weights(module) == before
    assert len(engine.accountant) == 0
    *_, module, optimizer, loader = fixed()
    with pytest.raises(DrawsAndSteps, match="1 batches were drawn but 0"):
        for batch in loader:
            torch.nn.functional.cross_entropy(module(batch[0]), batch[1]).backward()


@pytest.mark.parametrize("workers", [0, 2])
def test_trap_accumulation_in_ghost_mode_shows_in_the_draws(workers: int) -> None:
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer = model()
    module, optimizer, criterion, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(),
        sample=BATCH,
        steps=6,
        noise_multiplier=4.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
        criterion=torch.nn.CrossEntropyLoss(),
        loader={"num_workers": workers},
    )
    for batch in loader:
        step(module, optimizer, batch, criterion)
    assert len(engine.accountant) == 6
    with pytest.raises(DrawsAndSteps):
        for number, batch in enumerate(loader):
            if number % 2 == 0:
                optimizer.zero_grad()
            criterion(module(batch[0]), batch[1]).backward()
            if number % 2:
                optimizer.step()


def test_trap_skipped_and_repeated_steps() -> None:
    *_, module, optimizer, loader = fixed()
    with pytest.raises(DrawsAndSteps):
        for number, batch in enumerate(loader):
            if number != 1:
                step(module, optimizer, batch)
    *_, module, optimizer, loader = fixed()
    with pytest.raises(DrawsAndSteps, match="1 batches were drawn but 2"):
        for batch in loader:
            step(module, optimizer, batch)
            step(module, optimizer, batch)


def test_trap_a_sampler_that_is_sharded_by_others_draws_more_than_is_stepped() -> None:
    """As accelerate does: each process takes whole batches in turn, so that one step sees several draws."""
    engine, module, optimizer, loader = fixed(steps=4)
    shard = DataLoader(loader.dataset, batch_sampler=_EveryOther(loader.batch_sampler))
    with pytest.raises(DrawsAndSteps, match="4 batches were drawn but 2"):
        train(module, optimizer, shard)
    assert len(engine.accountant) == 2


class _EveryOther:
    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Any:
        return (batch for number, batch in enumerate(self.batches) if number % 2 == 0)

    def __len__(self) -> int:
        return len(self.batches) // 2


def test_trap_padded_and_repeating_samplers() -> None:
    small = data(10)
    drawn = [i for rank in range(4) for i in DistributedSampler(small, num_replicas=4, rank=rank)]
    assert len(drawn) == 12
    assert len(set(drawn)) == 10
    for sampler in (
        DistributedSampler(small, num_replicas=4, rank=0),
        WeightedRandomSampler([1.0] * 10, 10),
        RandomSampler(small, replacement=True),
        RandomSampler(small, num_samples=30),
    ):
        with pytest.raises(cm.InputError, match="twice"):
            stock(SHUFFLED, DataLoader(small, batch_size=2, sampler=sampler), poisson_sampling=False)


def test_trap_secure_mode_needs_what_cannot_be_installed() -> None:
    with pytest.raises(ImportError, match="torchcsprng"):
        PrivacyEngine(secure_mode=True)


@pytest.mark.parametrize(("secure", "least"), [(False, 0.14), (True, 0.08)])
def test_trap_float_noise_tells_which_sum_it_was_added_to(secure: bool, least: float) -> None:
    torch.manual_seed(1)

    def leaks(total: float) -> float:
        noise = _generate_noise(std=1.0, reference=torch.zeros(200_000), secure_mode=secure)
        y = (torch.tensor(total) + noise).double()
        return float(((y.abs() < 0.25) & (torch.fmod(y, 2.0**-24) != 0)).double().mean())

    assert leaks(0.0) > least
    assert leaks(1.0) == 0


# ---- budgets and refusals


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


# ---- checkpoints, memory manager, processes


@pytest.mark.parametrize("accountant", [FIXED, POISSON, SHUFFLED])
def test_checkpoints(accountant: str, tmp_path: Path) -> None:
    def make() -> tuple[Any, ...]:
        return fixed() if accountant == FIXED else stock(accountant, poisson_sampling=accountant == POISSON)

    engine, module, optimizer, loader = make()
    train(module, optimizer, loader)
    engine.save_checkpoint(path=tmp_path / "state.pt", module=module, optimizer=optimizer)
    plain = torch.load(tmp_path / "state.pt", weights_only=True)
    assert plain["privacy_accountant_state_dict"]["mechanism"] == accountant
    other, module, optimizer, loader = make()
    other.load_checkpoint(path=tmp_path / "state.pt", module=module, optimizer=optimizer)
    assert other.get_epsilon(DELTA) == engine.get_epsilon(DELTA)
    assert len(other.accountant) == len(engine.accountant)
    train(module, optimizer, loader)
    assert len(other.accountant) == 2 * len(engine.accountant)
    assert other.get_epsilon(DELTA) > engine.get_epsilon(DELTA)


def test_a_limit_counts_what_a_checkpoint_brought_along() -> None:
    engine, *_ = fixed(limit=("0.5", DELTA))
    engine.accountant.load_state_dict({"mechanism": FIXED, "history": [(4.0, "64/1797", 10_000)]})
    with pytest.raises(cm.BudgetRefused):
        engine.accountant.step(noise_multiplier=4.0, sample_rate="64/1797")


def test_foreign_states_are_refused_and_can_be_read() -> None:
    opacus, module, optimizer, loader = stock("rdp")
    train(module, optimizer, loader)
    state = opacus.accountant.state_dict()
    with pytest.raises(cm.RelationError, match="from_opacus"):
        PrivacyEngine(accountant=FIXED).accountant.load_state_dict(state)
    assert from_opacus(state).epsilon(DELTA, method="rdp") == pytest.approx(opacus.get_epsilon(DELTA), rel=5e-3)
    with pytest.raises(cm.InputError, match="not the state"):
        PrivacyEngine(accountant=FIXED).accountant.load_state_dict({})
    with pytest.raises(cm.InputError, match="no history"):
        from_opacus({"mechanism": FIXED, "history": []})


@pytest.mark.parametrize("workers", [0, 2])
def test_the_batch_memory_manager_adds_logical_steps(workers: int) -> None:
    engine, module, optimizer, loader = fixed(loader={"num_workers": workers})
    physical = 0
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=16, optimizer=optimizer) as small:
        for batch in small:
            physical += 1
            step(module, optimizer, batch)
    assert physical == 112
    assert engine.accountant.history == [(4.0, "64/1797", 28)]


def test_a_pass_that_is_broken_off_goes_on() -> None:
    engine, module, optimizer, loader = fixed(loader={"num_workers": 2})
    for _ in range(3):
        for number, batch in enumerate(loader):
            step(module, optimizer, batch)
            if number == 4:
                break
    assert len(engine.accountant) == 15


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    directory = tmp_path_factory.mktemp("gloo")
    script = Path(__file__).with_name("two_processes.py")
    started = [
        subprocess.Popen([sys.executable, str(script), str(rank), str(directory)], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for process in started:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    return [json.loads((directory / f"rank{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def test_two_processes_share_one_draw(processes: list[dict[str, Any]]) -> None:
    whole = FixedSizeSampler(40, 20, steps=3, key=bytes(32))
    for step_number in range(3):
        parts = [process["seen"][10 * step_number : 10 * step_number + 10] for process in processes]
        assert sorted(parts[0] + parts[1]) == sorted(whole.draw(step_number))
        moved = processes[0]["moved"][step_number]
        assert moved == processes[1]["moved"][step_number]
        for record, weight in enumerate(moved):
            assert weight == pytest.approx(float(record in whole.draw(step_number)), abs=1e-3)
    for process in processes:
        assert process["history"] == [[1e-6, "20/40", 3]]
        assert process["expected"] == 10


def test_two_processes_refuse(processes: list[dict[str, Any]]) -> None:
    assert "different keys" in processes[1]["different keys"]
    for process in processes:
        assert "neither independent nor of this rate" in process["stock poisson"]


def test_trap_distributed_poisson_of_opacus(processes: list[dict[str, Any]]) -> None:
    one, other = (process["equal seeds"] for process in processes)
    assert one == other  # equal seeds choose equal positions on all ranks
    assert (
        len({process["rare"] for process in processes}) == 2
    )  # empty batches are left out: ranks have different numbers
    assert max(process["rare"] for process in processes) < 20


def test_epsilon_is_never_below_that_of_the_law() -> None:
    for noise, steps in ((1.0, 3), (2.5, 100)):
        accountant = PrivacyEngine(accountant=FIXED).accountant
        accountant.history = [(noise, "64/1797", steps)]
        lower = accountant.guarantee(DELTA).lower
        assert lower is not None
        assert lower <= accountant.get_epsilon(DELTA) < math.inf
