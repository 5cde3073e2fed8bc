"""Conformance refutes loaders that draw something else, and raises false alarms as often as its level says."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
from cumulant.training import (
    BallsInBinsSampler,
    CyclicPoissonSampler,
    FixedSizeSampler,
    PoissonSampler,
    ShuffledSampler,
    conformance,
)
from cumulant.training.conformance import _hypergeometric, _overlap
from tests.effort import drawn

POPULATION, SAMPLE, BATCHES, LEVEL = 1797, 64, 2000, 1e-3
RNG = np.random.default_rng(18)


def ours() -> Iterable[list[int]]:
    return FixedSizeSampler(POPULATION, SAMPLE, steps=BATCHES, key=bytes(32))


def numpy_choice() -> Iterable[list[int]]:
    rng = np.random.default_rng(1)
    return (rng.choice(POPULATION, SAMPLE, replace=False).tolist() for _ in range(BATCHES))


def permutations() -> Iterable[list[int]]:
    rng = np.random.default_rng(2)
    return (rng.permutation(POPULATION)[:SAMPLE].tolist() for _ in range(BATCHES))


def shuffled() -> Iterable[list[int]]:
    rng, per_epoch = np.random.default_rng(3), POPULATION // SAMPLE
    for _ in range(-(-BATCHES // per_epoch)):
        order = rng.permutation(POPULATION)
        yield from (order[SAMPLE * i : SAMPLE * (i + 1)].tolist() for i in range(per_epoch))


def sequential() -> Iterable[list[int]]:
    per_epoch = POPULATION // SAMPLE
    return (list(range(SAMPLE * (t % per_epoch), SAMPLE * (t % per_epoch + 1))) for t in range(BATCHES))


def in_order() -> Iterable[list[int]]:
    return (sorted(batch) for batch in numpy_choice())


def poisson() -> Iterable[list[int]]:
    rng = np.random.default_rng(4)
    return (np.flatnonzero(rng.random(POPULATION) < SAMPLE / POPULATION).tolist() for _ in range(BATCHES))


def with_replacement() -> Iterable[list[int]]:
    rng = np.random.default_rng(5)
    return (rng.integers(0, POPULATION, SAMPLE).tolist() for _ in range(BATCHES))


def half_of_the_data() -> Iterable[list[int]]:
    rng = np.random.default_rng(6)
    return (rng.choice(POPULATION // 2, SAMPLE, replace=False).tolist() for _ in range(BATCHES))


@pytest.mark.parametrize("loader", [ours, numpy_choice, permutations])
def test_fresh_uniform_samples_are_accepted(loader: Callable[[], Iterable[list[int]]]) -> None:
    found = conformance(loader(), POPULATION, SAMPLE)
    assert list(found) == ["size", "coverage", "overlap", "order"]
    assert all(p > LEVEL for p in found.values())
    assert all(type(p) is float for p in found.values())


@pytest.mark.parametrize(
    ("loader", "by"),
    [
        (shuffled, {"coverage", "overlap"}),
        (sequential, {"coverage", "overlap", "order"}),
        (in_order, {"order"}),
        (poisson, {"size", "order"}),
        (with_replacement, {"size"}),
        (half_of_the_data, {"coverage", "overlap"}),
    ],
)
def test_other_loaders_are_refuted(loader: Callable[[], Iterable[list[int]]], by: set[str]) -> None:
    found = conformance(loader(), POPULATION, SAMPLE)
    assert {test for test, p in found.items() if p <= LEVEL} == by


def test_false_alarms_come_at_the_stated_level() -> None:
    """Honest loaders, each test at 5 %: more alarms than the limit have a probability below 1e-3."""
    loaders = drawn(60)
    alarms = dict.fromkeys(("size", "coverage", "overlap", "order"), 0)
    for seed in range(loaders):
        sampler = FixedSizeSampler(200, 16, steps=300, key=seed.to_bytes(32, "big"))
        for test, p in conformance(sampler, 200, 16).items():
            alarms[test] += p <= 0.05
    most = int(stats.binom.isf(1e-3, loaders, 0.05))
    assert alarms["size"] == 0
    assert all(alarms[test] <= most for test in alarms), alarms
    assert all(alarms[test] > 0 for test in ("coverage", "overlap", "order")), alarms


def test_extreme_sizes_have_answers() -> None:
    whole = FixedSizeSampler(12, 12, steps=400, key=bytes(32))
    assert conformance(whole, 12, 12)["coverage"] == 1
    single = conformance(FixedSizeSampler(12, 1, steps=400, key=bytes(32)), 12, 1)
    assert single["order"] == 1
    assert all(p > LEVEL for p in single.values())
    assert conformance([[0], [0]], 1, 1) == {"size": 1, "coverage": 1, "overlap": 1, "order": 1}
    assert conformance([[], [1, 2]], 5, 2)["size"] == 0


@pytest.mark.parametrize(
    "batches", [[[0, 5]], [[0], [9]], [["a"], ["b"]], 5, [[[0]], [[1]]], [[0.5], [1.5]], [[-1], [0]]]
)
def test_what_is_no_list_of_batches_is_refused(batches: object) -> None:
    with pytest.raises(cm.InputError):
        conformance(batches, 9, 1)  # type: ignore[arg-type]


def false_rate() -> Iterable[list[int]]:
    rng = np.random.default_rng(7)
    return (np.flatnonzero(rng.random(POPULATION) < 1.1 * SAMPLE / POPULATION).tolist() for _ in range(BATCHES))


def without_empty_ones() -> Iterable[list[int]]:
    """Batches below 50 records are skipped: the sizes are too even and too large."""
    return (batch for batch in poisson() if len(batch) >= 50)


@pytest.mark.parametrize(
    ("draw", "refuted"),
    [
        (poisson, set()),
        (false_rate, {"size"}),
        (without_empty_ones, {"size"}),
        (numpy_choice, {"size"}),
        (with_replacement, {"size"}),
        (shuffled, {"size", "coverage", "overlap"}),
        (half_of_the_data, {"size", "coverage", "overlap"}),
    ],
)
def test_against_poisson_samples(draw: Callable[[], Iterable[list[int]]], refuted: set[str]) -> None:
    found = conformance(draw(), POPULATION, rate=f"{SAMPLE}/{POPULATION}")
    assert list(found) == ["size", "coverage", "overlap"]
    assert {test for test, p in found.items() if p < LEVEL} == refuted


def test_false_alarms_about_sizes_are_as_rare_as_they_say() -> None:
    rng = np.random.default_rng(8)
    alarms = 0
    for _ in range(400):
        sizes = rng.binomial(50, 0.1, 100)
        batches = [range(size) for size in sizes]
        alarms += conformance(batches, 50, rate="0.1")["size"] < 0.05
    assert alarms <= stats.binom.ppf(0.9999, 400, 0.05)


def test_one_law_is_asked_for() -> None:
    for law in ({}, {"sample": 3, "rate": "0.1"}):
        with pytest.raises(cm.InputError, match="one of them"):
            conformance([[1], [2]], 10, **law)  # type: ignore[arg-type]


# ---- balls in bins, and Poisson samples from parts in turn

STEPS, PASSES = 28, 40


def allocated(rng: np.random.Generator, redraw: bool = True) -> list[list[int]]:
    batches: list[list[int]] = []
    for number in range(PASSES):
        if redraw or number == 0:
            bins = rng.integers(STEPS, size=POPULATION)
        batches += [np.flatnonzero(bins == step).tolist() for step in range(STEPS)]
    return batches


def permuted(rng: np.random.Generator) -> list[list[int]]:
    return [part.tolist() for _ in range(PASSES) for part in np.array_split(rng.permutation(POPULATION), STEPS)]


def by_number(rng: np.random.Generator) -> list[list[int]]:
    """Random sizes, but records in data-set order."""
    ends = [np.sort(rng.integers(STEPS, size=POPULATION)) for _ in range(PASSES)]
    return [np.flatnonzero(bins == step).tolist() for bins in ends for step in range(STEPS)]


def shifted(rng: np.random.Generator) -> list[list[int]]:
    """One draw, that every pass starts one step later."""
    bins = rng.integers(STEPS, size=POPULATION)
    return [np.flatnonzero((bins + t) % STEPS == step).tolist() for t in range(PASSES) for step in range(STEPS)]


@pytest.mark.parametrize(
    ("batches", "refuted"),
    [
        (
            lambda rng: [
                b for s in [BallsInBinsSampler(POPULATION, STEPS, bytes(32))] for _ in range(PASSES) for b in s
            ],
            "",
        ),
        (allocated, ""),
        (lambda rng: allocated(rng, redraw=False), "overlap"),
        (shifted, "overlap"),
        (permuted, "size"),
        (by_number, "order"),
        (lambda rng: list(poisson())[: STEPS * PASSES], "coverage"),
        (lambda rng: allocated(rng)[1:], "coverage"),
    ],
    ids=["ours", "numpy", "one draw", "one draw, shifted", "permutations", "sorted", "Poisson", "not from the start"],
)
def test_balls_in_bins(batches: Callable[[np.random.Generator], list[list[int]]], refuted: str) -> None:
    found = conformance(batches(np.random.default_rng(7)), POPULATION, steps=STEPS)
    assert list(found) == ["size", "coverage", "overlap", "order"]
    if refuted:
        assert found[refuted] < 1e-9
    else:
        assert min(found.values()) > LEVEL


def test_false_alarms_about_balls_in_bins() -> None:
    rng = np.random.default_rng(8)
    alarms = {"size": 0, "overlap": 0, "order": 0}
    for _ in range(400):
        batches = [np.flatnonzero(bins == s).tolist() for bins in rng.integers(5, size=(6, 60)) for s in range(5)]
        found = conformance(batches, 60, steps=5)
        alarms = {test: count + (found[test] < 0.05) for test, count in alarms.items()}
    assert all(stats.binom.cdf(count, 400, 0.05) < 0.9999 for count in alarms.values())


def test_poisson_samples_from_parts_in_turn() -> None:
    sampler = CyclicPoissonSampler(600, "1/3", cycle=6, steps=1200, key=bytes(32))
    batches = list(sampler)
    assert min(conformance(batches, 600, rate="1/3", cycle=6).values()) > LEVEL
    assert conformance(batches, 600, rate="1/4", cycle=6)["size"] < 1e-9
    assert conformance(PoissonSampler(600, "1/18", steps=1200, key=bytes(32)), 600, rate="1/3", cycle=6)["parts"] == 0
    same = [batches[t % 6] for t in range(1200)]  # one draw, used again
    assert conformance(same, 600, rate="1/3", cycle=6)["overlap"] < 1e-9


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"steps": 5, "rate": "1/5"}, "one of them"),
        ({"cycle": 5, "sample": 2}, "give their rate"),
        ({"batch": 2, "sample": 2}, "one of them"),
        ({"drop_last": True, "sample": 2}, "give their batch"),
        ({"batch": 20}, "at most population"),
        ({"batch": 3}, "whole passes"),
        ({"steps": 5}, "whole passes"),
        ({"rate": "1/2", "cycle": 5}, "whole cycles"),
    ],
)
def test_laws_that_batches_cannot_be_tested_against(given: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        conformance([[0], [1], [2], [3], [4], [5]], 10, **given)


Passes = list[list[list[int]]]


def cut_permutations(
    rng: np.random.Generator, batch: int = 10, records: int = 95, drop: bool = False, passes: int = 30
) -> Passes:
    """Permutations by numpy, cut into batches."""
    found = []
    for _ in range(passes):
        order = rng.permutation(records).tolist()
        cut = [order[i : i + batch] for i in range(0, records, batch)]
        found.append(cut[:-1] if drop and len(cut[-1]) < batch else cut)
    return found


@pytest.mark.parametrize("drop", [False, True])
def test_shuffled_passes(drop: bool) -> None:
    sampler = ShuffledSampler(95, 10, key=bytes(32), drop_last=drop)
    ours = [batch for _ in range(40) for batch in sampler]
    other = [batch for one in cut_permutations(np.random.default_rng(3), drop=drop) for batch in one]
    for batches in (ours, other):
        found = conformance(batches, 95, batch=10, drop_last=drop)
        assert list(found) == ["size", "coverage", "overlap", "order"]
        assert min(found.values()) > LEVEL
    assert conformance(ours, 95, batch=5, drop_last=drop)["size"] == 0


def test_orders_that_are_used_again_are_refuted() -> None:
    one = cut_permutations(np.random.default_rng(4), records=90)[0]
    turned = [batches[::-1] if t % 2 else batches for t, batches in enumerate([one] * 20)]
    moved = [one[t % 9 :] + one[: t % 9] for t in range(20)]
    for passes in ([one] * 20, turned, moved):
        assert conformance([b for each in passes for b in each], 90, batch=10)["overlap"] < 1e-6
    in_order = [list(range(i, i + 10)) for _ in range(20) for i in range(0, 90, 10)]
    assert conformance(in_order, 90, batch=10)["order"] < 1e-6
    twice = [one[0], *one[:-1]] * 20
    assert conformance(twice, 90, batch=10)["coverage"] == 0


def test_false_alarms_about_shuffled_passes() -> None:
    rng = np.random.default_rng(9)
    alarms = {"overlap": 0, "order": 0}
    for number in range(300):
        batch = (30, 20, 7)[number % 3]
        found = conformance([b for one in cut_permutations(rng, batch, 60, passes=6) for b in one], 60, batch=batch)
        alarms = {test: count + (found[test] < 0.05) for test, count in alarms.items()}
    assert all(stats.binom.cdf(count, 300, 0.05) < 0.9999 for count in alarms.values())


def test_false_alarms_about_rare_overlaps() -> None:
    """A single overlap had a p-value far below 1 % by the normal law, and comes in every 17th of these loaders."""
    rng = np.random.default_rng(3)
    loaders, records = 300, 1_281_167
    alarms = 0
    for _ in range(loaders):
        batches = [np.sort(rng.choice(records, 16, replace=False, shuffle=False)) for _ in range(300)]
        alarms += _overlap(batches, records) <= 0.01
    assert stats.binom.sf(alarms - 1, loaders, 0.01) > 1e-4


@pytest.mark.parametrize("records", [7, 60])
def test_the_law_of_an_overlap(records: int) -> None:
    for a, b in ((3, 5), (7, 7), (0, 4), (6, 2)):
        least, masses = _hypergeometric(a, b, records)
        values = least + np.arange(len(masses))
        assert masses == pytest.approx(stats.hypergeom(records, a, b).pmf(values), abs=1e-14)
        assert masses.sum() == pytest.approx(1)


def test_copied_batches_are_refuted_by_their_overlap() -> None:
    batches = [np.arange(16 * i, 16 * i + 16) for i in range(200)]
    assert _overlap(batches, 1_281_167) > 0.5
    assert _overlap([*batches, batches[-1]], 1_281_167) < 1e-6


@pytest.mark.parametrize("passes", [2, 3, 20])
def test_false_alarms_about_two_bins(passes: int) -> None:
    """Counts that are exactly even had the p-value 0, and come in every twentieth of these loaders."""
    rng = np.random.default_rng(9)
    loaders = 300
    alarms = dict.fromkeys(("size", "overlap"), 0)
    for _ in range(loaders):
        batches = [np.flatnonzero(bins == s).tolist() for bins in rng.integers(2, size=(passes, 100)) for s in range(2)]
        for test, p in conformance(batches, 100, steps=2).items():
            if test in alarms:
                alarms[test] += p <= 0.01
    assert all(stats.binom.sf(count - 1, loaders, 0.01) > 1e-4 for count in alarms.values()), alarms


def cut_passes(rng: np.random.Generator, records: int, length: int, passes: int) -> list[list[int]]:
    order = [rng.permutation(records).tolist() for _ in range(passes)]
    return [each[i : i + length] for each in order for i in range(0, records, length)]


def chosen(rng: np.random.Generator, records: int, size: int, batches: int) -> list[list[int]]:
    return [rng.choice(records, size, replace=False).tolist() for _ in range(batches)]


def tossed(rng: np.random.Generator, records: int, rate: float, batches: int) -> list[list[int]]:
    return [np.flatnonzero(rng.random(records) < rate).tolist() for _ in range(batches)]


@pytest.mark.parametrize(
    ("draw", "given", "records", "test"),
    [
        (lambda rng: cut_passes(rng, 257, 256, 30), {"batch": 256}, 257, "overlap"),
        (lambda rng: cut_passes(rng, 129, 64, 20), {"batch": 64}, 129, "overlap"),
        (lambda rng: cut_passes(rng, 20, 19, 20), {"batch": 19}, 20, "overlap"),
        (lambda rng: chosen(rng, 2, 1, 10), {"sample": 1}, 2, "coverage"),
        (lambda rng: chosen(rng, 3, 2, 30), {"sample": 2}, 3, "coverage"),
        (lambda rng: chosen(rng, 1000, 1, 10), {"sample": 1}, 1000, "coverage"),
        (lambda rng: tossed(rng, 100, 0.001, 100), {"rate": 0.001}, 100, "size"),
        (lambda rng: tossed(rng, 1000, 0.001, 10), {"rate": 0.001}, 1000, "coverage"),
    ],
)
def test_false_alarms_where_counts_are_small(draw: Any, given: dict[str, Any], records: int, test: str) -> None:
    """Loaders that draw what they say were refuted: most of them at the level 1e-4 in 0.3 % to 24 % of all cases."""
    rng, loaders = np.random.default_rng(5), 1000
    found = np.array([conformance(draw(rng), records, **given)[test] for _ in range(loaders)])
    for level in (1e-2, 1e-3, 1e-4):
        assert stats.binom.sf(np.sum(found < level) - 1, loaders, 1.5 * level) > 1e-3, level


def test_a_permutation_of_two_batches_that_comes_again_is_refuted() -> None:
    rng = np.random.default_rng(6)
    for records, length in ((257, 256), (20, 19), (20, 10)):
        once = cut_passes(rng, records, length, 1)
        assert conformance(once * 20, records, batch=length)["overlap"] < 1e-6
    one, other = cut_passes(rng, 20, 10, 1)
    assert conformance([one, other, other, one] * 10, 20, batch=10)["overlap"] < 1e-6


def test_two_records_that_take_turns_are_refuted() -> None:
    assert conformance([[t % 2] for t in range(1000)], 2, 1)["coverage"] < 0.06
    assert conformance([[0]] * 20, 2, 1)["coverage"] < 1e-5
    assert conformance([[0, 1], []] * 20, 2, rate=0.5)["coverage"] == 1.0


def test_too_few_draws_to_tell_how_even_they_are() -> None:
    assert conformance([[t] for t in range(99)], 1000, 1)["coverage"] == 1.0
    assert conformance([[t] for t in range(999)], 1000, 1)["coverage"] < 1e-3
