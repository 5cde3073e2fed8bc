"""Balls in bins and cyclic Poisson samples against their laws: every allocation, ranks, and what another key may draw."""

import copy
import itertools
import os
import pickle
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
from cumulant.training import BallsInBinsSampler, CyclicPoissonSampler, FixedSizeSampler, PoissonSampler
from cumulant.training.sampler import uniform_numbers
from tests.effort import drawn

KEY = bytes(range(32))


def p_value(counts: Counter[Any], cells: list[Any], probabilities: list[float]) -> float:
    total = sum(counts.values())
    assert set(counts) <= set(cells)
    return float(stats.chisquare([counts[cell] for cell in cells], [total * p for p in probabilities]).pvalue)


def places(batches: list[list[int]], records: int) -> tuple[int, ...]:
    return tuple(next(step for step, batch in enumerate(batches) if record in batch) for record in range(records))


# ---- balls in bins


def test_every_allocation_is_equally_likely_and_passes_are_independent() -> None:
    sampler = BallsInBinsSampler(3, 2, key=KEY)
    passes = [places(list(sampler), 3) for _ in range(drawn(5_000))]
    cells = list(itertools.product(range(2), repeat=3))
    assert p_value(Counter(passes), cells, [1 / 8] * 8) > 1e-3
    pairs = Counter(zip(passes[::2], passes[1::2], strict=True))
    assert p_value(pairs, list(itertools.product(cells, cells)), [1 / 64] * 64) > 1e-3


def test_every_pass_has_every_record_once_in_any_order_of_asking() -> None:
    sampler = BallsInBinsSampler(100, 7, key=KEY)
    passes = [[sampler.draw(step) for step in range(7 * t, 7 * t + 7)] for t in range(3)]
    for batches in passes:
        assert sorted(itertools.chain(*batches)) == list(range(100))
    assert passes[0] != passes[1] != passes[2]
    assert [sampler.draw(step) for step in (15, 2, 9)] == [passes[2][1], passes[0][2], passes[1][2]]
    assert sampler.step == 0


def test_the_law_is_one_release_for_each_pass_that_was_started() -> None:
    sampler = BallsInBinsSampler(60_000, 234)
    assert sampler.law == cm.RandomAllocation(steps=234)
    assert [sampler.releases(steps) for steps in (0, 1, 234, 235, 468)] == [0, 1, 1, 2, 2]
    noisy = cm.Gaussian.from_clipping(norm=1, noise="1.1", relation="add-remove")
    plan = cm.NoisySGD(batch=256, records=60_000, steps=1000, noise_multiplier="1.1", sampling="balls-in-bins")
    assert sampler.accounted_run(noisy, 1000) == plan.run


def test_one_draw_for_all_passes_is_refused() -> None:
    with pytest.raises(cm.InputError, match="another scheme"):
        BallsInBinsSampler(100, 10, redraw=False)


def half_a_pass() -> tuple[BallsInBinsSampler, list[list[int]]]:
    sampler = BallsInBinsSampler(100, 10, key=KEY)
    steps = iter(sampler)
    return sampler, [next(steps) for _ in range(4)]


def test_resuming_with_the_key_goes_on_within_the_pass() -> None:
    sampler, seen = half_a_pass()
    other = BallsInBinsSampler(100, 10)
    other.load_state_dict(sampler.state_dict(secret=True))
    rest = list(itertools.islice(other, 6))
    assert sorted(itertools.chain(*seen, *rest)) == list(range(100))
    assert other.step == 10


def copied(sampler: BallsInBinsSampler) -> BallsInBinsSampler:
    return copy.deepcopy(sampler)


def pickled(sampler: BallsInBinsSampler) -> BallsInBinsSampler:
    found = pickle.loads(pickle.dumps(sampler))
    assert isinstance(found, BallsInBinsSampler)
    return found


def resumed(sampler: BallsInBinsSampler) -> BallsInBinsSampler:
    other = BallsInBinsSampler(100, 10, key=KEY)
    other.load_state_dict(sampler.state_dict())
    return other


def rekeyed(sampler: BallsInBinsSampler) -> BallsInBinsSampler:
    """As processes that share a new key are told to do."""
    other = BallsInBinsSampler(100, 10)
    other.load_state_dict({**sampler.state_dict(), "key": bytes(32).hex()})
    return other


def seeded(sampler: BallsInBinsSampler) -> BallsInBinsSampler:
    sampler.batch_iterator(100, rng=1)
    return sampler


@pytest.mark.parametrize("go_on", [copied, pickled, resumed, rekeyed, seeded])
def test_another_key_begins_the_next_pass(go_on: Any) -> None:
    """With the rest of a pass by another key, some records would be in it twice."""
    sampler, _ = half_a_pass()
    other = go_on(sampler)
    batches = list(other)
    assert sorted(itertools.chain(*batches)) == list(range(100))
    assert other.step == 20
    assert other.releases(other.step) == 2
    with pytest.raises(cm.InputError, match="another key"):
        other.draw(5)


def test_a_forked_process_does_not_finish_a_pass() -> None:
    sampler, _ = half_a_pass()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            sampler.draw(5)
            os.write(write, b"drawn")
        except cm.InputError:
            whole = sorted(itertools.chain(*sampler)) == list(range(100))
            os.write(write, b"refused, next pass" if whole and sampler.step == 20 else b"wrong")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"refused, next pass"
    assert sampler.step == 4


def test_pickles_hold_no_draws() -> None:
    sampler, _ = half_a_pass()
    assert sampler.__getstate__()["_allocation"] is None
    assert "_key" not in sampler.__getstate__()


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_one_allocation(world: int) -> None:
    whole = BallsInBinsSampler(100, 7, key=KEY)
    slices = [BallsInBinsSampler(100, 7, key=KEY, rank=rank, world=world) for rank in range(world)]
    for step in range(14):
        parts = [each.draw(step) for each in slices]
        assert sorted(itertools.chain(*parts)) == sorted(whole.draw(step))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert len({each.fingerprint() for each in slices}) == 1


# ---- Poisson samples from parts in turn


def test_every_part_and_subset_has_its_probability() -> None:
    """Over keys: two records, two parts, rate 1/3; both draws of a cycle."""
    counts: Counter[Any] = Counter()
    for seed in range(drawn(4_000)):
        sampler = CyclicPoissonSampler(2, "1/3", cycle=2, key=KEY + seed.to_bytes(4, "big"))
        counts[tuple(map(tuple, sampler))] += 1
    one = {"first": Fraction(1, 6), "second": Fraction(1, 6), "never": Fraction(2, 3)}
    cells: dict[Any, Fraction] = {}
    for where in itertools.product(one, repeat=2):
        cell = tuple(tuple(r for r in (0, 1) if where[r] == turn) for turn in ("first", "second"))
        cells[cell] = cells.get(cell, Fraction(0)) + one[where[0]] * one[where[1]]
    assert p_value(counts, list(cells), [float(p) for p in cells.values()]) > 1e-3


def test_parts_stay_and_draws_are_fresh() -> None:
    sampler = CyclicPoissonSampler(1000, "1/2", cycle=4, steps=40, key=KEY)
    batches = list(sampler)
    parts = [set(itertools.chain(*batches[part::4])) for part in range(4)]
    assert sum(map(len, parts)) == len(set().union(*parts)) > 990  # all but about 1000 / 2^10
    assert batches[0] != batches[4]
    assert sampler.law == cm.Poisson(rate="1/2")
    assert [sampler.releases(steps) for steps in (1, 4, 5)] == [1, 1, 2]


def test_a_resumed_run_keeps_its_parts() -> None:
    sampler = CyclicPoissonSampler(1000, "1/2", cycle=4, steps=6, key=KEY)
    whole = [sampler.draw(step) for step in range(12)]
    list(sampler)
    exact, other = (CyclicPoissonSampler(1000, "1/2", cycle=4, steps=6) for _ in range(2))
    exact.load_state_dict(sampler.state_dict(secret=True))
    assert list(exact) == whole[6:]
    other.load_state_dict(sampler.state_dict())
    rest = list(other)
    assert rest != whole[6:]
    for one, two in zip(rest, (2, 3, 0, 1, 2, 3), strict=True):
        part = set(itertools.chain(*whole[two::4]))
        assert len(set(one) - part) < len(one) / 4  # of a part, 7 of 8 records were drawn in three turns
    twin = pickle.loads(pickle.dumps(sampler))
    assert twin.state_dict()["partition"] == sampler.state_dict()["partition"]
    with pytest.raises(cm.InputError, match="not the state"):
        other.load_state_dict({**sampler.state_dict(), "partition": "x"})


def test_ranks_compare_their_parts() -> None:
    one, two = (CyclicPoissonSampler(100, "1/2", cycle=4, key=KEY, rank=rank, world=2) for rank in (0, 1))
    other = CyclicPoissonSampler(100, "1/2", cycle=4, key=KEY, partition=bytes(16), rank=1, world=2)
    assert one.fingerprint() == two.fingerprint() != other.fingerprint()
    assert not set(one.draw(0)) & set(two.draw(0))


# ---- for JAX


def test_padded_batches_leave_nothing_out() -> None:
    for sampler in (
        FixedSizeSampler(1000, 50, steps=20, key=KEY),
        PoissonSampler(1000, "1/20", steps=20, key=KEY),
        BallsInBinsSampler(1000, 20, key=KEY),
        CyclicPoissonSampler(1000, "1/2", cycle=10, steps=20, key=KEY),
    ):
        expected = [sampler.draw(step) for step in range(20)]
        padded = list(sampler.padded_batches())
        assert len({batch.indices.shape for batch in padded}) == 1
        assert [batch.indices[batch.mask].tolist() for batch in padded] == expected
        assert all((batch.indices[~batch.mask] == 0).all() for batch in padded)


def test_a_draw_beyond_the_shape_is_padded_to_a_multiple() -> None:
    padded = list(PoissonSampler(1000, "1/20", steps=20, key=KEY).padded_batches(40))
    assert {batch.indices.shape for batch in padded} == {(40,), (80,)}
    assert all(batch.mask.sum() > 40 for batch in padded if len(batch.mask) == 80)
    (empty,) = PoissonSampler(1, "1e-9", steps=1, key=KEY).padded_batches()
    assert not empty.mask.any()
    assert len(empty.mask) == 8


def test_a_seed_repeats_a_run_as_samplers_of_jax_privacy_do() -> None:
    runs = [
        [batch.tolist() for batch in FixedSizeSampler(1000, 10, steps=3).batch_iterator(1000, rng=given)]
        for given in (5, np.random.default_rng(5), 6, None, None)
    ]
    assert runs[0] == runs[1]
    assert len({str(run) for run in runs}) == 4


def test_numbers_are_cut_without_bias() -> None:
    numbers = uniform_numbers(KEY, "test", 6, 60_000)
    assert stats.chisquare(np.bincount(numbers, minlength=6)).pvalue > 1e-3
    half = 2**63 + 1  # nearly half of all words are drawn anew
    large = uniform_numbers(KEY, "test", 2**62 + 1, 1000)
    assert large.min() >= 0
    assert large.max() < half
    assert abs(float(np.mean(large < 2**61)) - 0.5) < 0.07
