"""Gradient descent with a budget for every record, on gradients of torch.

The loop keeps the rules of `IndividualBudget`: everybody is charged in every step, sums are divided by a constant, and neither
bounds nor the number of records that still take part leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cumulant.domains import COUNT, POSITIVE, Number
from cumulant.errors import InputError, shown
from cumulant.training.individual import IndividualBudget
from cumulant.training.sampler import PoissonSampler

CHUNK = 1024
"""Records whose gradients are computed together (convention: 1024 rows of 1e5 weights are 400 MB of floats of torch)."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def train_with_individual_budget(
    loss: Callable[..., Any],
    weights: Any,
    records: Sequence[Any],
    *,
    budget: IndividualBudget,
    sampler: PoissonSampler | None,
    steps: int,
    learning_rate: Number,
    divisor: Number,
    chunk: int = CHUNK,
) -> Any:
    """Run so many steps of private gradient descent and return the weights, which may be released.

    `loss(weights, *record)` is the loss of one record, `weights` a tensor and `records` tensors with one row for each record.
    The sampler has the rate of the budget, or is None where every record takes part in every step. `divisor` is a constant,
    chosen without looking at the number of records.

    A record wants the norm of its present gradient, which costs a pass over the data in every step; with `bounds="drawn"` it
    wants its norm when it was last drawn, which costs nothing. A gradient that is no number counts as 0. `loss` must not raise
    because of one record: an error is an output too.

    >>> from importlib.util import find_spec
    >>> budget = IndividualBudget(records=3, epsilon=2, delta="1e-6", noise_multiplier=3, rate=None, levels=4)
    >>> if find_spec("torch"):
    ...     import torch
    ...
    ...     weights = train_with_individual_budget(
    ...         lambda w, x: ((w - x) ** 2).sum(),
    ...         torch.zeros(2),
    ...         (torch.ones(3, 2),),
    ...         budget=budget,
    ...         sampler=None,
    ...         steps=2,
    ...         learning_rate="0.1",
    ...         divisor=3,
    ...     )
    >>> budget.guarantee()
    Promise(epsilon=2.0, delta=1e-06, relation='add-remove')
    """
    count = int(COUNT.check("steps", steps))
    rate, over = float(POSITIVE.check("learning_rate", learning_rate)), float(POSITIVE.check("divisor", divisor))
    _check(records, budget, sampler, count)
    rows = _Rows(loss, records, int(COUNT.check("chunk", chunk)))
    wanted: Floats = np.full(budget.records, budget.clip)
    for _ in range(count):
        if not budget.by_own_draws:
            wanted = rows.norms(weights)
        batch = np.arange(budget.records) if sampler is None else _fresh_batch(budget, sampler)
        bounds = budget.bounds(wanted)
        gradients = rows.gradients(weights, batch)
        noisy = budget.noisy_sum(gradients, bounds[batch])
        budget.charge(bounds)
        if budget.by_own_draws:
            wanted[batch] = _norms(gradients)
        weights = weights - weights.new_tensor(noisy.reshape(weights.shape) * (rate / over))
    return weights


def _fresh_batch(budget: IndividualBudget, sampler: PoissonSampler) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a draw that no step of this budget used, also in an earlier call: a sampler goes on where it stopped."""
    number, mark = sampler.step, sampler.mark()
    budget.use_draw(mark, number)
    sampler.count_draw(number)
    return np.array(sampler.draw(number), dtype=np.int64)


def _check(records: Sequence[Any], budget: IndividualBudget, sampler: PoissonSampler | None, steps: int) -> None:
    if not isinstance(budget, IndividualBudget):
        raise InputError(f"budget={shown(budget)} must be an IndividualBudget")
    lengths = {len(each) for each in records}
    if lengths != {budget.records}:
        raise InputError(f"records have {sorted(lengths)} rows; the budget is for {budget.records} records")
    if budget.rate is None:
        if sampler is not None:
            raise InputError(
                "the budget is for every record in every step; give sampler=None, or a budget with rate=..."
            )
        return
    if not isinstance(sampler, PoissonSampler) or sampler.rate != budget.rate:
        raise InputError(f"sampler={shown(sampler)} must be a PoissonSampler with the rate {budget.rate} of the budget")
    if sampler.population != budget.records:
        raise InputError(f"the sampler draws from {sampler.population} records; the budget is for {budget.records}")
    if sampler.world > 1:
        raise InputError(
            f"the sampler gives one of {sampler.world} slices of each draw, and which records a slice has depends on all "
            "others; give one process the whole draw"
        )
    if steps > sampler.steps:
        raise InputError(f"steps={steps} must be at most the {sampler.steps} steps of the sampler")


class _Rows:
    """Gradients of single records, one flat row each."""

    def __init__(self, loss: Callable[..., Any], records: Sequence[Any], chunk: int) -> None:
        from torch.func import grad, vmap

        self._each = vmap(grad(loss), (None, *(0 for _ in records)))
        self._records, self._chunk = records, chunk

    def gradients(self, weights: Any, chosen: np.ndarray[Any, Any]) -> Floats:
        found = np.zeros((len(chosen), weights.numel()))
        for start in range(0, len(chosen), self._chunk):
            part = chosen[start : start + self._chunk]
            some = self._each(weights, *(each[part] for each in self._records))
            found[start : start + self._chunk] = some.detach().cpu().numpy().reshape(len(part), -1)
        return found

    def norms(self, weights: Any) -> Floats:
        everybody = np.arange(len(self._records[0]))
        found = np.empty(len(everybody))
        for start in range(0, len(everybody), self._chunk):
            part = everybody[start : start + self._chunk]
            found[part] = _norms(self.gradients(weights, part))
        return found


def _norms(gradients: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(np.linalg.norm(gradients, axis=1))
