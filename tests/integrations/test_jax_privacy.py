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


def matrix(bands: list[float], steps: int, relation: str = "add-remove") -> cm.MatrixMechanism:
    return cm.MatrixMechanism(bands=bands, steps=steps, noise_multiplier=4, relation=cm.Relation.read(relation))


INDEPENDENT = batch_selection.PartitionType.INDEPENDENT
GAUSSIAN = cm.Gaussian(noise_multiplier=4, relation=cm.Relation.ADD_REMOVE)
REPLACED = cm.Gaussian(noise_multiplier=4, relation=cm.Relation.REPLACE_ONE)


@pytest.mark.parametrize(
    ("strategy", "bands", "meant"),
    [
        (batch_selection.CyclicPoissonSampling(0.01, 100), None, GAUSSIAN @ cm.Poisson(rate="0.01") * 100),
        (
            batch_selection.CyclicPoissonSampling(0.01, 100, cycle_length=2),
            BANDS,
            matrix([1, 0.5], 100, "replace-special") @ cm.CyclicPoisson(2, "0.01"),
        ),
        (
            batch_selection.CyclicPoissonSampling(0.01, 100, cycle_length=2, partition_type=INDEPENDENT),
            BANDS,
            matrix([1, 0.5], 100) @ cm.CyclicPoisson(2, "0.01"),
        ),
        (
            batch_selection.CyclicPoissonSampling(0.01, 100, cycle_length=2),
            None,
            matrix([1], 100, "replace-special") @ cm.CyclicPoisson(2, "0.01"),
        ),
        (batch_selection.CyclicPoissonSampling(0.01, 100), BANDS, matrix([1, 0.5], 100) @ cm.MinSep(1, rate="0.01")),
        (
            batch_selection.CyclicPoissonSampling(1.0, 100, cycle_length=10),
            BANDS,
            matrix([1, 0.5], 100, "replace-special") @ cm.FixedOrder(every=10),
        ),
        (
            batch_selection.CyclicPoissonSampling(1.0, 100, cycle_length=10, partition_type=INDEPENDENT),
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
        (
            batch_selection.FixedBatchSampling(8, 100),
            BANDS,
            matrix([1, 0.5], 100, "replace-one") @ cm.FixedOrder(every=1),
        ),
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


def test_truncated_batches_of_all_the_data() -> None:
    """Groups are refused: a record that leaves changes all of them, and their sizes are random if INDEPENDENT."""
    whole = batch_selection.CyclicPoissonSampling(0.1, 100, truncated_batch_size=20)
    scheme = cm.TruncatedPoisson(rate="0.1", limit=20, population=99)
    assert from_plan(whole, noise_multiplier=4, num_examples=99) == GAUSSIAN @ scheme * 100
    small = from_plan(whole, noise_multiplier=4, num_examples=19)
    assert small == GAUSSIAN @ cm.Poisson(rate="0.1") * 100  # nothing is cut off
    for partition in batch_selection.PartitionType:
        groups = batch_selection.CyclicPoissonSampling(
            0.1, 100, truncated_batch_size=20, cycle_length=2, partition_type=partition
        )
        with pytest.raises(cm.HypothesisError, match="changes its group"):
            from_plan(groups, noise_multiplier=4, bands=BANDS, num_examples=99)


def test_equal_groups_change_if_a_record_leaves() -> None:
    """Four records in two groups of two; of three records every group has one, and another record is never used."""
    strategy = batch_selection.CyclicPoissonSampling(1.0, 2, cycle_length=2)
    assert [len(batch) for batch in strategy.batch_iterator(4, rng=0)] == [2, 2]
    assert [len(batch) for batch in strategy.batch_iterator(3, rng=0)] == [1, 1]
    assert str(from_plan(strategy, noise_multiplier=4).relation) == "replace-special"


def test_a_record_of_fixed_batches_moves_a_sum_twice_as_far() -> None:
    """Two records +1 and -1, batches of one: the sum is -1 without the first record, and +1 in every second step with it.

    One step by quadrature: with relation="add-remove" the matrix claimed less than these data sets need.
    """
    strategy = batch_selection.FixedBatchSampling(1, 1)
    run = from_plan(strategy, noise_multiplier=1, bands=BANDS, num_examples=2)
    y = np.linspace(-12, 12, 200001)
    lone, other = (np.exp(-((y - x) ** 2) / 2) / np.sqrt(2 * np.pi) for x in (-1, 1))
    needed = float(np.maximum((lone + other) / 2 - np.exp(3) * lone, 0).sum() * (y[1] - y[0]))
    claimed = cm.MatrixMechanism(bands=BANDS, steps=1, noise_multiplier=1) @ cm.FixedOrder(every=1)
    assert claimed.delta(3) < needed <= run.delta(3)
    with pytest.raises(cm.HypothesisError, match="several times in one step"):
        from_plan(batch_selection.FixedBatchSampling(1, 1, replace=True), noise_multiplier=1, bands=BANDS)


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
    assert from_plan(config) == matrix([1, 0.5], 100, "replace-special") @ cm.CyclicPoisson(2, "0.02")
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
