"""Every trap of loaders and loops, shown with the real torch and Opacus, and what becomes of it here."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers.optimizer import _generate_noise
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset, WeightedRandomSampler

import cumulant as cm
from cumulant.integrations.opacus import (
    DrawsAndSteps,
    make_private,
    torch_rate,
)
from cumulant.training import FixedSizeSampler, clipped, conformance
from tests.integrations.loops import (
    BATCH,
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
    batch = next(batches := iter(loader))
    torch.nn.functional.cross_entropy(module(batch[0]), batch[1]).backward()
    with pytest.raises(DrawsAndSteps, match="accumulated"):
        next(batches)
    assert len(engine.accountant) == 0
    *_, module, optimizer, loader = fixed()
    with pytest.raises(DrawsAndSteps, match="accumulated"):
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
    with pytest.raises(DrawsAndSteps, match="used by a step already"):
        for batch in loader:
            step(module, optimizer, batch)
            step(module, optimizer, batch)


def test_trap_a_sampler_that_is_sharded_by_others_draws_more_than_is_stepped() -> None:
    """As accelerate does: each process takes whole batches in turn, so that one step sees several draws."""
    engine, module, optimizer, loader = fixed(steps=4)
    shard = DataLoader(loader.dataset, batch_sampler=_EveryOther(loader.batch_sampler))
    with pytest.raises(DrawsAndSteps, match="iterates a copy"):
        train(module, optimizer, shard)
    assert len(engine.accountant) == 0


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
