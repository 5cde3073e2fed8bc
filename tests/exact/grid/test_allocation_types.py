"""Epochs with several picks, every output and every subset of the steps enumerated, adaptive maps included."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact.grid.allocation import Allocated, AllocatedBelow
from cumulant.exact.grid.allocation_types import MOST_WORK, type_law, type_work
from cumulant.losses.grid import Loss

CUT = -48.0
FINITE: dict[str, Any] = {
    "yes or no": cm.RandomizedResponse(p="0.7"),
    "four answers": cm.KaryResponse(values=4, p="0.5"),
    "with a leak": cm.ApproximateDP(1, "1/50"),
}


def of(base: Any) -> Loss:
    loss = base.pair().loss()
    assert loss is not None
    return loss  # type: ignore[no-any-return]


def masses(loss: Loss) -> tuple[list[float], list[float], float]:
    """Q-masses and ratios of one step, and the P-mass where Q has none."""
    x, log_q = loss.atoms()
    q, w = np.exp(log_q).tolist(), np.exp(x).tolist()
    if loss.equal:
        q, w = [*q, loss.equal], [*w, 1.0]
    if loss.leak:
        q, w = [*q, loss.leak], [*w, 0.0]
    return q, w, loss.leak


def enumerated(loss: Loss, steps: int, picks: int) -> tuple[Any, Any, float]:
    """P- and Q-masses of all outputs: the mean over the subsets of the steps, from the definition."""
    q, w, leak = masses(loss)
    there, without = [], []
    for outputs in itertools.product(range(len(q)), repeat=steps):
        own = math.prod(q[i] for i in outputs)
        subsets = [math.prod(w[outputs[i]] for i in subset) for subset in itertools.combinations(range(steps), picks)]
        there.append(own * math.fsum(subsets) / len(subsets))
        without.append(own)
    return np.array(there), np.array(without), 1 - (1 - leak) ** picks


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize(("steps", "picks"), [(3, 2), (4, 2), (5, 3), (6, 4)])
def test_all_outputs_and_subsets_enumerated(name: str, steps: int, picks: int) -> None:
    loss = of(FINITE[name])
    one, two, shown = enumerated(loss, steps, picks)
    for epsilon in (0.05, 0.4, 1.1):
        for direction, first, second, more in (("remove", one, two, shown), ("add", two, one, 0.0)):
            exact = float(np.maximum(first - math.exp(epsilon) * second, 0).sum()) + more
            upper = Allocated(loss, steps, direction, picks).own_delta(epsilon, CUT)
            lower = AllocatedBelow(loss, steps, direction, picks=picks).own_delta(epsilon, CUT)
            assert lower <= exact * (1 + 1e-12)
            assert exact * (1 - 1e-12) <= upper <= exact * (1 + 1e-9)
            if not loss.leak:
                assert upper - lower <= 1e-9


def test_adaptive_steps_are_dominated() -> None:
    """Each step is a random map of a yes/no answer that depends on all outputs before it."""
    rng, loss = np.random.default_rng(31), of(FINITE["yes or no"])
    p, q = np.array([0.7, 0.3]), np.array([0.3, 0.7])
    for steps, picks in ((3, 2), (4, 2), (4, 3)):
        subsets = list(itertools.combinations(range(steps), picks))
        laws = np.ones((50, len(subsets) + 1, 1))
        for step in range(steps):
            kernel = rng.dirichlet(np.full(3, rng.choice([0.2, 1.0])), (50, laws.shape[2], 2))
            kernel[0] = np.eye(2, 3)  # the answers themselves: attained
            there, without = np.einsum("i,coij->coj", p, kernel), np.einsum("i,coij->coj", q, kernel)
            inside = np.array([*(step in subset for subset in subsets), False])[:, None, None]
            laws = (laws[..., None] * np.where(inside, there[:, None], without[:, None])).reshape(
                50, len(subsets) + 1, -1
            )
        one, two = laws[:, :-1].mean(axis=1), laws[:, -1]
        for direction, first, second in (("remove", one, two), ("add", two, one)):
            for epsilon in (0.1, 0.6):
                needed = np.maximum(first - math.exp(epsilon) * second, 0).sum(axis=1)
                claimed = Allocated(loss, steps, direction, picks).own_delta(epsilon, CUT)
                assert (needed <= claimed * (1 + 1e-12)).all()
                assert needed[0] == pytest.approx(claimed, rel=1e-9)


def test_masses_and_means_of_many_types() -> None:
    """Under Q all types have mass 1 and the ratio mean 1; k = 1 is the epoch with one pick."""
    for name, steps, picks in (("yes or no", 3000, 100), ("four answers", 60, 5), ("yes or no", 40, 39)):
        x, log_m, none, error = type_law(of(FINITE[name]), steps, picks)
        assert math.fsum(np.exp(log_m).tolist()) == pytest.approx(1, abs=1e-9)
        assert math.fsum(np.exp(log_m + x).tolist()) == pytest.approx(1, abs=1e-9)
        assert none == 0
        assert error < 1e-8
        assert (np.diff(x) >= 0).all()


def test_what_types_cannot_count_goes_to_blocks() -> None:
    assert type_work(of(cm.Gaussian(sigma=1)), 4, 2) == math.inf
    assert type_work(of(FINITE["yes or no"]), 4, 1) == math.inf
    assert type_work(of(cm.DiscreteGaussian(sigma="87.28")), 96, 54) == math.inf  # no float holds the number of types
    assert type_work(of(cm.PureDP(100)), 50, 20) == math.inf  # no float holds the largest ratio
    assert type_work(of(FINITE["yes or no"]), 100, 10) == 101 * 11 <= MOST_WORK
    assert type_work(of(FINITE["four answers"]), 2000, 50) > MOST_WORK
    blocks = cm.RandomizedResponse(p="0.7") @ cm.RandomAllocation(steps=10**6, picks=2)
    assert blocks == cm.RandomizedResponse(p="0.7") @ cm.RandomAllocation(steps=500_000, upper_bound=1) * 2
    assert type_work(of(cm.PureDP("0.1")), 2000, 400) == math.inf  # the table of binomials would take minutes


@pytest.mark.parametrize(("steps", "picks"), [(12, 4), (50, 5), (101, 10)])
def test_picks_cost_less_than_blocks_and_have_a_lower_end(steps: int, picks: int) -> None:
    base = cm.RandomizedResponse(p="0.7")
    run = base @ cm.RandomAllocation(steps=steps, picks=picks)
    size, longer = divmod(steps, picks)
    blocks = base @ cm.RandomAllocation(steps=size) * (picks - longer)
    if longer:
        blocks = blocks + base @ cm.RandomAllocation(steps=size + 1) * longer
    found = run.guarantee(delta=1e-5)
    assert found.lower is not None
    assert found.lower <= found.epsilon <= found.lower * (1 + 1e-6)
    assert found.epsilon < blocks.epsilon(1e-5)
    assert run.rdp(4) == pytest.approx(blocks.rdp(4))
    assert cm.parse(str(run)) == run
    # one release is no bound where the record is in several steps
    assert found.epsilon > math.log(7 / 3)
    assert run.epsilon(1e-5) > (base @ cm.RandomAllocation(steps=steps)).epsilon(1e-5)
    assert (cm.PureDP(1) @ cm.RandomAllocation(steps=steps, picks=picks)).guarantee(delta=1e-5).lower is None
    assert float(Fraction(picks)) * math.log(7 / 3) >= found.epsilon


@pytest.mark.parametrize("base", [cm.RandomizedResponse(p="0.9"), cm.PureDP("0.7"), cm.RandomizedResponse(p="0.6")])
def test_epochs_of_picks_are_never_above_their_blocks(base: cm.Mechanism) -> None:
    """Blocks are composed in balls, and the law of all types on a grid: the smaller number counts."""
    for epochs, delta in itertools.product((2, 3, 5), (1e-3, 1e-6)):
        run = base @ cm.RandomAllocation(steps=4, picks=2) * epochs
        blocks = base @ cm.RandomAllocation(steps=2) * (2 * epochs)
        found = run.guarantee(delta=delta)
        assert found.epsilon <= blocks.epsilon(delta)
        assert run.delta(1) <= blocks.delta(1)
        assert found.lower is None or found.lower <= found.epsilon
        assert found.verify().holds
