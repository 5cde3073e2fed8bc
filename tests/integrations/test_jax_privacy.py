"""Strategies of JAX Privacy 2.0 as expressions, and its own Monte Carlo accounting beside ours."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from jax_privacy import batch_selection
from jax_privacy.experimental import execution_plan
from jax_privacy.experimental.monte_carlo import sample_generation

import cumulant as cm
from cumulant.integrations.jax_privacy import from_plan

BANDS = [1, 0.5]


def matrix(bands: list[float], steps: int) -> cm.MatrixMechanism:
    return cm.MatrixMechanism(bands=bands, steps=steps, noise_multiplier=4)


GAUSSIAN = cm.Gaussian(noise_multiplier=4, relation=cm.Relation.ADD_REMOVE)
REPLACED = cm.Gaussian(noise_multiplier=4, relation=cm.Relation.REPLACE_ONE)


@pytest.mark.parametrize(
    ("strategy", "bands", "meant"),
    [
        (batch_selection.CyclicPoissonSampling(0.01, 100), None, GAUSSIAN @ cm.Poisson(rate="0.01") * 100),
        (
            batch_selection.CyclicPoissonSampling(0.01, 100, cycle_length=2),
            BANDS,
            matrix([1, 0.5], 100) @ cm.CyclicPoisson(2, "0.01"),
        ),
        (batch_selection.CyclicPoissonSampling(0.01, 100), BANDS, matrix([1, 0.5], 100) @ cm.MinSep(1, rate="0.01")),
        (
            batch_selection.CyclicPoissonSampling(1.0, 100, cycle_length=10),
            BANDS,
            matrix([1, 0.5], 100) @ cm.FixedOrder(every=10),
        ),
        (batch_selection.BallsInBinsSampling(100, 10), BANDS, matrix([1, 0.5], 100) @ cm.BallsInBins(10)),
        (batch_selection.BallsInBinsSampling(100, 10), None, matrix([1], 100) @ cm.BallsInBins(10)),
        (
            batch_selection.FixedBatchSampling(8, 100),
            None,
            REPLACED @ cm.WithoutReplacement(sample=8, population=500) * 100,
        ),
        (
            batch_selection.FixedBatchSampling(8, 100, replace=True),
            None,
            REPLACED @ cm.WithReplacement(sample=8, population=500) * 100,
        ),
        (batch_selection.FixedBatchSampling(8, 100), BANDS, matrix([1, 0.5], 100) @ cm.FixedOrder(every=1)),
        (batch_selection.BMinSepSampling(0.1, 100, 4), BANDS, matrix([1, 0.5], 100) @ cm.MinSep(4, rate="0.1")),
        (batch_selection.BMinSepSampling(1.0, 100, 4), BANDS, matrix([1, 0.5], 100) @ cm.BallsInBins(4)),
        (batch_selection.BMinSepSampling(0.1, 100, 1), None, GAUSSIAN @ cm.Poisson(rate="0.1") * 100),
        (
            batch_selection.UserSelectionStrategy(batch_selection.CyclicPoissonSampling(0.01, 100), 2),
            None,
            GAUSSIAN @ cm.Poisson(rate="0.01") * 100,
        ),
    ],
    ids=str,
)
def test_every_row_has_its_expression(strategy: object, bands: list[float] | None, meant: cm.Expression) -> None:
    assert from_plan(strategy, noise_multiplier=4, bands=bands, num_examples=500) == meant


def test_the_map_has_a_row_for_every_strategy() -> None:
    page = (Path(__file__).parents[2] / "docs" / "samplers-and-noise.md").read_text(encoding="utf-8")
    strategies = {
        name
        for name, each in vars(batch_selection).items()
        if inspect.isclass(each)
        and issubclass(each, batch_selection.BatchSelectionStrategy)
        and not inspect.isabstract(each)
    }
    assert len(strategies) >= 4
    assert {name for name in strategies if f"`{name}" not in page} == set()


def test_truncated_batches_are_those_of_the_worse_group() -> None:
    strategy = batch_selection.CyclicPoissonSampling(0.1, 100, truncated_batch_size=20, cycle_length=2)
    run = from_plan(strategy, noise_multiplier=4, bands=BANDS, num_examples=99)
    each = [GAUSSIAN @ cm.TruncatedPoisson(rate="0.1", limit=20, population=size) * 50 for size in (50, 51)]
    assert run.epsilon(1e-5, method="rdp") >= max(one.epsilon(1e-5, method="rdp") for one in each) * (1 - 1e-9)


def test_random_allocation_is_read_by_name() -> None:
    class RandomAllocationSampling:
        k, t = 2, 10

    assert from_plan(RandomAllocationSampling(), noise_multiplier=4) == GAUSSIAN @ cm.RandomAllocation(
        steps=10, picks=2
    )
    banded = from_plan(RandomAllocationSampling(), noise_multiplier=4, bands=BANDS)
    assert banded == matrix([1, 0.5], 10) @ cm.MinSep(1, most=2)


def test_what_is_not_proved_is_refused() -> None:
    cyclic = batch_selection.CyclicPoissonSampling(0.01, 100, cycle_length=2)
    with pytest.raises(cm.HypothesisError, match="share noise"):
        from_plan(cyclic, noise_multiplier=4, bands=[1, 0.5, 0.25])
    truncated = batch_selection.BMinSepSampling(0.1, 100, 4, truncated_batch_size=10)
    with pytest.raises(cm.HypothesisError, match="truncated"):
        from_plan(truncated, noise_multiplier=4, bands=BANDS)
    with pytest.raises(cm.InputError, match="num_examples"):
        from_plan(batch_selection.FixedBatchSampling(8, 100), noise_multiplier=4)
    with pytest.raises(cm.InputError, match="noise_multiplier"):
        from_plan(cyclic)
    with pytest.raises(cm.InputError, match="known are"):
        from_plan(object(), noise_multiplier=4)

    class ShuffledSampling:
        iterations = 10

    with pytest.raises(cm.HypothesisError, match="ShuffledBatches"):
        from_plan(ShuffledSampling(), noise_multiplier=4)


def test_a_band_mf_plan() -> None:
    config = execution_plan.BandMFExecutionPlanConfig(
        strategy=np.array(BANDS), iterations=100, epsilon=None, delta=None, noise_multiplier=4.0, sampling_prob=0.02
    )
    assert from_plan(config) == matrix([1, 0.5], 100) @ cm.CyclicPoisson(2, "0.02")
    assert from_plan(config, noise_multiplier=5).epsilon(1e-5) < from_plan(config).epsilon(1e-5)


@pytest.mark.parametrize("positive", [True, False])
def test_their_monte_carlo_is_not_above_our_bound(positive: bool) -> None:
    """delta = E (1 - e^(epsilon - loss))+ over their own samples; their multiplier there is over the clip norm."""
    strategy, sigma, epsilon, samples = batch_selection.BallsInBinsSampling(60, 6), 3.0, 0.5, 4000
    losses, _ = sample_generation.get_privacy_loss_sample(
        strategy, sigma, np.array(BANDS), seed=1, positive_sample=positive, num_samples=samples
    )
    values = np.maximum(1 - np.exp(epsilon - np.asarray(losses)), 0.0)
    error = values.std() / np.sqrt(samples)
    found = (cm.MatrixMechanism(bands=BANDS, steps=60, sigma=3) @ cm.BallsInBins(bins=6)).guarantee(epsilon="0.5")
    assert values.mean() <= found.delta + 4 * error
    assert found.lower is not None
    if positive:
        assert found.lower <= values.mean() + 4 * error
