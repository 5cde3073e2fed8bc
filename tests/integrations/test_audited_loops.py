"""Many tiny runs of the real Opacus against what is claimed of them: wrong ones are refuted, the right one is not.

The worst case under replace-one: all other gradients are -C, the target's is +C or -C by a coin, every noisy sum is seen. Each
step draws afresh, so that consecutive pieces of one long pass are runs of their own, each with a coin of its own. Sizes, seeds,
scores and the level were fixed by simulations of the same loops before any of them ran.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, Dataset

import cumulant as cm
from cumulant.integrations.opacus import make_private
from cumulant.training import audit
from tests.integrations.loops import FIXED

BATCH, NOISE, RUNS, LEVEL, DELTA = 10, 1.0, 1000, 0.05, 1e-3
FRESH, IN_ORDER = {"records": 20, "steps": 2}, {"records": 50, "steps": 5}  # in order: one pass


class Records(Dataset[Any]):
    """Records whose gradient is their value, whatever the weights are; the first is the target."""

    def __init__(self, records: int) -> None:
        self.values = torch.full((records, 1), -1.0)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.values[index]


def passes(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def observed(module: Any, optimizer: Any, loader: Any, data: Records, steps: int, seed: int) -> tuple[Any, Any]:
    """The coins of the runs and their noisy sums, less what the others contribute, by the change of the one weight."""
    coins = np.random.default_rng(seed).integers(0, 2, RUNS)
    batches, sums = passes(loader), np.empty((RUNS, steps))
    (weight,) = module.parameters()
    for run, coin in enumerate(coins):
        data.values[0] = 1.0 if coin else -1.0
        for step, batch in enumerate(islice(batches, steps)):
            before = weight.item()
            optimizer.zero_grad()
            module(batch).sum().backward()
            optimizer.step()
            sums[run, step] = before - weight.item() + BATCH  # the loss is a sum, the rate of learning 1
            with torch.no_grad():
                weight.zero_()  # so that differences of weights stay exact
    return coins, sums


def fresh(noise: float, seed: int) -> tuple[Any, Any]:
    """Runs of samples of fixed size, with so much noise, and the score of the claimed law."""
    torch.manual_seed(seed)
    data, engine = Records(FRESH["records"]), PrivacyEngine(accountant=FIXED)
    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(module.weight)
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
        dataset=data,
        sample=BATCH,
        noise_multiplier=noise,
        max_grad_norm=1.0,
        steps=RUNS * FRESH["steps"],
        key=bytes([seed] * 32),
        loss_reduction="sum",
    )
    coins, sums = observed(module, optimizer, loader, data, FRESH["steps"], seed)
    rate = BATCH / FRESH["records"]
    return coins, np.log1p(rate * np.expm1((2 * sums - 2) / NOISE**2)).sum(axis=1)


def in_order(seed: int) -> tuple[Any, Any]:
    """Runs of a stock loader that does not shuffle, and the score of the step that holds the target."""
    torch.manual_seed(seed)
    data, engine = Records(IN_ORDER["records"]), PrivacyEngine(accountant="rdp")
    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(module.weight)
    module, optimizer, loader = engine.make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        poisson_sampling=False,
        loss_reduction="sum",
    )
    coins, sums = observed(module, optimizer, loader, data, IN_ORDER["steps"], seed)
    return coins, sums[:, 0]


def verdict(trials: tuple[Any, Any], run: cm.Expression) -> audit.ManyRuns:
    claim = audit.Claim.of(run, points=31)
    return audit.many_runs(members=trials[0], scores=trials[1], claim=claim, delta=DELTA, level=LEVEL)


def claimed(records: int, steps: int) -> cm.Expression:
    run: cm.Expression = cm.NoisySGD(batch=BATCH, records=records, steps=steps, noise_multiplier=NOISE).run
    return run


@pytest.fixture(scope="module")
def right() -> list[tuple[Any, Any]]:
    return [fresh(NOISE, seed) for seed in (1, 2)]


def test_the_right_run_is_not_refuted(right: list[tuple[Any, Any]]) -> None:
    for trials in right:
        found = verdict(trials, claimed(**FRESH))
        assert not found.refuted
        assert 0 < found.epsilon_lower <= claimed(**FRESH).epsilon(DELTA)


def test_a_claim_that_forgets_two_norms_is_refuted(right: list[tuple[Any, Any]]) -> None:
    forgetful = cm.Gaussian(sigma=NOISE) @ cm.WithoutReplacement(sample=BATCH, population=FRESH["records"])
    for trials in right:
        assert verdict(trials, forgetful * FRESH["steps"]).refuted


def test_halved_noise_is_refuted() -> None:
    assert verdict(fresh(NOISE / 2, seed=3), claimed(**FRESH)).refuted


def test_batches_in_order_are_refuted() -> None:
    assert verdict(in_order(seed=4), claimed(**IN_ORDER)).refuted
