"""Shuffled passes against their law: every permutation, fresh in every pass, and what another key may draw."""

import copy
import itertools
import math
from collections import Counter

import pytest
from scipy import stats

import cumulant as cm
from cumulant.training import ShuffledSampler

KEY = bytes(range(32))


def test_every_permutation_is_equally_likely_and_passes_are_independent() -> None:
    sampler = ShuffledSampler(4, 2, key=KEY)
    passes = [tuple(record for batch in sampler for record in batch) for _ in range(12_000)]
    cells = list(itertools.permutations(range(4)))
    counts = Counter(passes)
    assert set(counts) <= set(cells)
    assert stats.chisquare([counts[cell] for cell in cells]).pvalue > 1e-3
    again = sum(one == other for one, other in itertools.pairwise(passes))
    assert abs(again - len(passes) / math.factorial(4)) < 5 * math.sqrt(len(passes) / math.factorial(4))


@pytest.mark.parametrize(("drop", "sizes"), [(False, [64] * 28 + [5]), (True, [64] * 28)])
def test_batches_have_their_sizes_and_no_record_twice(drop: bool, sizes: list[int]) -> None:
    sampler = ShuffledSampler(1797, 64, key=KEY, drop_last=drop)
    batches = list(sampler)
    assert [len(batch) for batch in batches] == sizes
    seen = list(itertools.chain(*batches))
    assert len(set(seen)) == len(seen) == sum(sizes)
    assert list(sampler) != batches


def test_the_law_is_one_release_for_each_pass_that_was_started() -> None:
    sampler = ShuffledSampler(1797, 64)
    assert sampler.law == cm.ShuffledBatches(batch=64, records=1797)
    assert ShuffledSampler(1797, 64, drop_last=True).law == cm.ShuffledBatches(batch=64, records=1797, drop_last=1)
    assert [sampler.releases(steps) for steps in (0, 1, 29, 30)] == [0, 1, 1, 2]
    noise = cm.Gaussian.from_clipping(norm=1, noise=4, relation="replace-one")
    assert sampler.accounted_run(noise, 58) == cm.NoisySGD(64, 1797, 4, 2, sampling="shuffled").run


def test_another_key_begins_the_next_pass() -> None:
    sampler = ShuffledSampler(100, 10, key=KEY)
    first = next(iter(sampler))
    assert len(first) == 10
    other = copy.copy(sampler)
    next(iter(other))
    assert other.step == 11  # the rest of the broken pass is left out, and it counts in full
    assert other.releases(other.step) == 2


def test_what_is_refused() -> None:
    with pytest.raises(cm.InputError, match="one permutation for all passes"):
        ShuffledSampler(100, 10, redraw=False)
    with pytest.raises(cm.InputError, match="at most population"):
        ShuffledSampler(10, 100)
