"""Descent with a budget for every record, on gradients of torch.func."""

from typing import Any

import numpy as np
import pytest
import torch

import cumulant as cm
from cumulant.training import IndividualBudget, PoissonSampler, train_with_individual_budget

RECORDS, STEPS = 300, 12
PLAN: dict[str, Any] = {"records": RECORDS, "epsilon": 4, "delta": "1e-5", "noise_multiplier": 2, "levels": 8}


def squared_error(weights: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x @ weights - y) ** 2 / 2


def data(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draws = torch.Generator().manual_seed(seed)
    x = torch.randn(RECORDS, 3, generator=draws)
    return x, x @ torch.tensor([1.0, -1.0, 0.5])


def train(budget: IndividualBudget, records: tuple[torch.Tensor, ...], sampler: Any, **changed: Any) -> torch.Tensor:
    words: dict[str, Any] = {"steps": STEPS, "learning_rate": "0.5", "divisor": 60, "chunk": 64}
    found: torch.Tensor = train_with_individual_budget(
        squared_error, torch.zeros(3), records, budget=budget, sampler=sampler, **(words | changed)
    )
    return found


@pytest.mark.parametrize("bounds", ["public", "drawn"])
def test_it_learns_and_everybody_is_charged(bounds: str) -> None:
    budget = IndividualBudget(**PLAN, rate="1/5", bounds=bounds)
    records = data()
    found = train(budget, records, PoissonSampler(population=RECORDS, rate="1/5", steps=STEPS))
    assert torch.isfinite(found).all()
    assert float(torch.stack([squared_error(found, *row) for row in zip(*records, strict=True)]).mean()) < 1.0
    assert (budget._totals.sum(axis=1) > 0).all()
    assert budget.guarantee() == (4.0, 1e-5, "add-remove")


def test_without_noise_it_is_descent_on_clipped_gradients() -> None:
    """Every record in every step: what a plain loop of clipped gradients gives, but for the noise."""
    budget = IndividualBudget(**PLAN | {"noise_multiplier": "0.01", "epsilon": 10**6}, rate=None)
    x, y = data(1)
    found = train(budget, (x, y), None, divisor=RECORDS)
    weights = np.zeros(3)
    for _ in range(STEPS):
        rows = (x.numpy() @ weights - y.numpy())[:, None] * x.numpy()
        norms = np.linalg.norm(rows, axis=1)
        limit = np.minimum(np.ceil(norms * 8), 8) / 8  # rounded up to a level, at most the norm
        rows = rows * np.minimum(1, limit / np.maximum(norms, 1e-30))[:, None]
        weights -= 0.5 * rows.sum(axis=0) / RECORDS
    assert found.numpy() == pytest.approx(weights, abs=1e-3)


def test_a_record_that_moves_nothing_is_free_and_one_without_numbers_is_harmless() -> None:
    x, y = data(2)
    x[0], y[0] = 0.0, 0.0
    x[1] = float("nan")
    x[2] = float("inf")
    budget = IndividualBudget(**PLAN, rate="1/5")
    found = train(budget, (x, y), PoissonSampler(population=RECORDS, rate="1/5", steps=STEPS))
    assert torch.isfinite(found).all()
    assert (budget._totals[0] == 0).all()
    assert (budget._totals[1:3] > 0).all()


def test_norms_of_the_last_draw_are_all_that_is_remembered() -> None:
    """Bounds from own draws change only where a record was drawn; in the first step everybody wants the clipping norm."""
    asked: list[np.ndarray[Any, Any]] = []

    class Watched(IndividualBudget):
        def bounds(self, wanted: Any) -> Any:
            asked.append(np.array(wanted))
            return super().bounds(wanted)

    budget = Watched(**PLAN, rate="1/5", bounds="drawn")
    sampler = PoissonSampler(population=RECORDS, rate="1/5", steps=STEPS)
    train(budget, data(), sampler)
    assert (asked[0] == 1.0).all()
    for step in range(1, STEPS):
        others = np.setdiff1d(np.arange(RECORDS), sampler.draw(step - 1))
        assert (asked[step][others] == asked[step - 1][others]).all()


def test_a_second_call_draws_other_batches() -> None:
    """It began with step 0 again, so that two calls released the same batches: the noise is fresh, the coins were not."""
    batches = []

    class Watched(PoissonSampler):
        def _draw(self, step: int) -> Any:
            found = super()._draw(step)
            batches.append(tuple(found))
            return found

    sampler = Watched(population=RECORDS, rate="1/5", steps=STEPS)
    budget = IndividualBudget(**PLAN, rate="1/5")
    for _ in range(2):
        train(budget, data(), sampler, steps=5)
    assert len(set(batches)) == len(batches) == 10


@pytest.mark.parametrize("again", ["one key for two samplers", "set back"])
def test_a_draw_that_a_step_used_is_refused(again: str) -> None:
    """Two samplers of one key drew the same batches in two calls; so did one that was set back with its key."""
    sampler = PoissonSampler(population=RECORDS, rate="1/5", steps=STEPS, key=bytes(32))
    start = sampler.state_dict(secret=True)
    budget = IndividualBudget(**PLAN, rate="1/5")
    train(budget, data(), sampler, steps=3)
    before = budget._totals.copy()
    if again == "set back":
        sampler.load_state_dict(start)
    else:
        sampler = PoissonSampler(population=RECORDS, rate="1/5", steps=STEPS, key=bytes(32))
    with pytest.raises(cm.BudgetRefused, match="drawn by the same key before"):
        train(budget, data(), sampler, steps=3)
    assert (budget._totals == before).all()
    sampler = PoissonSampler(population=RECORDS, rate="1/5", steps=STEPS)
    train(budget, data(), sampler, steps=3)  # another key draws afresh
