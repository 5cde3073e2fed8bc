"""Samplers against their laws: all ordered tuples, all subsets, independence, resuming, ranks."""

import copy
import itertools
import os
import pickle
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
from cumulant.training import BallsInBinsSampler, CyclicPoissonSampler, FixedSizeSampler, PoissonSampler
from cumulant.training.shuffled_sampler import ShuffledSampler
from tests.effort import drawn

KEY = bytes(range(32))
DRAWS = drawn(12_000)
"""At least 50 expected in every cell of the tests of all tuples."""


def chi_square(counts: Counter[Any], cells: list[Any], probabilities: list[float] | None = None) -> float:
    total = sum(counts.values())
    assert set(counts) <= set(cells)
    expected = [total * p for p in probabilities] if probabilities else None
    return float(stats.chisquare([counts[cell] for cell in cells], expected).pvalue)


@pytest.mark.parametrize(("population", "sample"), [(7, 3), (5, 4), (6, 3), (4, 1), (3, 3)])
def test_every_ordered_tuple_is_equally_likely(population: int, sample: int) -> None:
    sampler = FixedSizeSampler(population, sample, steps=DRAWS, key=KEY)
    counts = Counter(tuple(batch) for batch in sampler)
    assert chi_square(counts, list(itertools.permutations(range(population), sample))) > 1e-3


def test_consecutive_draws_are_independent() -> None:
    sampler = FixedSizeSampler(6, 2, steps=DRAWS, key=KEY)
    sets = [tuple(sorted(batch)) for batch in sampler]
    subsets = list(itertools.combinations(range(6), 2))
    counts = Counter(itertools.pairwise(sets))
    assert chi_square(counts, list(itertools.product(subsets, subsets))) > 1e-3


def test_every_subset_has_its_poisson_probability() -> None:
    sampler = PoissonSampler(4, "1/3", steps=DRAWS, key=KEY)
    subsets = [subset for size in range(5) for subset in itertools.combinations(range(4), size)]
    probabilities = [float(Fraction(1, 3) ** len(s) * Fraction(2, 3) ** (4 - len(s))) for s in subsets]
    assert chi_square(Counter(tuple(batch) for batch in sampler), subsets, probabilities) > 1e-3


def test_a_rate_below_32_bits_needs_further_bits() -> None:
    """With rate k + 1/2 units of 2^-32 the first word ties once in 2^32; a source of ties shows that the rest decides."""

    class Ties(PoissonSampler):
        def _stream(self, step: int, label: str, size: int) -> bytes:
            if label == "bits 0":
                return (7).to_bytes(4, "little") * (size // 4)
            return super()._stream(step, label, size)

    sampler = Ties(20_000, Fraction(2 * 7 + 1, 2**33), steps=1, key=KEY)
    assert abs(len(sampler.draw(0)) - 10_000) < 4 * 71
    assert Ties(100, Fraction(7, 2**32), steps=1, key=KEY).draw(0) == []  # U >= rate
    assert len(Ties(100, Fraction(8, 2**32), steps=1, key=KEY).draw(0)) == 100


def test_words_are_cut_without_bias() -> None:
    """Words below 2^64 mod n are left out: of all words, each remainder is then kept equally often."""

    class Given(FixedSizeSampler):
        words = np.array([0, 1, 5, 6, 2**64 - 1], dtype="<u8")  # 2^64 mod 10 = 6: 0, 1, 5 are rejected

        def _stream(self, step: int, label: str, size: int) -> bytes:
            return self.words.tobytes()

    assert Given(10, 2, steps=1, key=KEY).draw(0) == [6, 5]


def test_a_tie_of_ranks_draws_again() -> None:
    class Tied(FixedSizeSampler):
        def _stream(self, step: int, label: str, size: int) -> bytes:
            words = [3, 1, 1] if label == "ranks 0" else [1, 3, 2]
            return np.array(words, dtype="<u8").tobytes()

    assert Tied(3, 3, steps=1, key=KEY).draw(0) == [0, 2, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda key: FixedSizeSampler(1797, 64, steps=28, key=key),
        lambda key: PoissonSampler(1797, "64/1797", steps=28, key=key),
    ],
    ids=["fixed size", "Poisson"],
)
def test_resuming_goes_on_bit_for_bit(make: Any) -> None:
    whole = make(KEY)
    expected = [whole.draw(step) for step in range(56)]
    first = make(KEY)
    passes = iter(first)
    found = [next(passes) for _ in range(10)]
    state = first.state_dict(secret=True)
    assert state["step"] == 10
    second = make(None)
    second.load_state_dict(state)
    found += list(second)
    assert found == expected[:38]
    assert second.step == 38
    assert second.draw(3) == expected[3]


def test_a_state_without_the_key_goes_on_with_a_new_one() -> None:
    sampler = FixedSizeSampler(1000, 10, steps=5, key=KEY)
    list(sampler)
    state = sampler.state_dict()
    assert KEY.hex() not in str(state)
    assert KEY.hex() not in repr(sampler)
    other = FixedSizeSampler(1000, 10, steps=5, key=KEY)
    other.load_state_dict(state)
    assert other.step == 5
    assert other.draw(0) != sampler.draw(0)


def test_a_broken_off_pass_goes_on_and_counts_what_was_drawn() -> None:
    sampler = FixedSizeSampler(100, 5, steps=10, key=KEY)
    for _ in range(3):
        for batch, _ in zip(sampler, range(2), strict=False):
            assert len(batch) == 5
    assert sampler.step >= 6


@pytest.mark.parametrize("world", [2, 4])
def test_ranks_share_one_draw(world: int) -> None:
    whole = FixedSizeSampler(100, 20, steps=3, key=KEY)
    slices = [FixedSizeSampler(100, 20, steps=3, key=KEY, rank=rank, world=world) for rank in range(world)]
    for step in range(3):
        parts = [each.draw(step) for each in slices]
        assert all(len(part) == 20 // world for part in parts)
        assert [record for group in zip(*parts, strict=True) for record in group] == whole.draw(step)
    assert len({each.fingerprint() for each in slices}) == 1
    other = FixedSizeSampler(100, 20, steps=3, key=bytes(32), rank=0, world=world)
    assert other.fingerprint() != slices[0].fingerprint()


def test_keys_sizes_and_steps_all_matter() -> None:
    draws = [
        FixedSizeSampler(1000, 10, steps=1, key=KEY).draw(0),
        FixedSizeSampler(1000, 10, steps=1, key=KEY).draw(1),
        FixedSizeSampler(1000, 10, steps=1, key=bytes(32)).draw(0),
        FixedSizeSampler(1001, 10, steps=1, key=KEY).draw(0),
        FixedSizeSampler(1000, 11, steps=1, key=KEY).draw(0)[:10],
        FixedSizeSampler(1000, 10, steps=1).draw(0),
    ]
    assert len({tuple(draw) for draw in draws}) == len(draws)


def test_the_law_is_the_scheme_that_is_accounted() -> None:
    assert FixedSizeSampler(60_000, 256).law == cm.WithoutReplacement(sample=256, population=60_000)
    assert PoissonSampler(60_000, Fraction(256, 60_000)).law == cm.Poisson(rate="256/60000")
    assert len(FixedSizeSampler(1797, 64)) == 28


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: FixedSizeSampler(10, 11), "at most population"),
        (lambda: FixedSizeSampler(10, 0), "sample=0"),
        (lambda: FixedSizeSampler(10, True), "sample=True"),
        (lambda: FixedSizeSampler(10.5, 2), "population=10.5"),  # type: ignore[arg-type]
        (lambda: FixedSizeSampler(10, 2, steps=0), "steps=0"),
        (lambda: FixedSizeSampler(10, 2, key=b"short"), "secret bytes"),
        (lambda: FixedSizeSampler(10, 2, key="text" * 8), "secret bytes"),  # type: ignore[arg-type]
        (lambda: FixedSizeSampler(10, 2, world=2), "without a key"),
        (lambda: FixedSizeSampler(10, 3, key=KEY, world=2), "multiple of world"),
        (lambda: FixedSizeSampler(10, 2, key=KEY, world=2, rank=2), "below world"),
        (lambda: PoissonSampler(10, 0), "rate=0"),
        (lambda: FixedSizeSampler(10, 2).draw(-1), "step=-1"),
        (lambda: FixedSizeSampler(10, 2).batch_iterator(11), "num_examples=11"),
        (lambda: FixedSizeSampler(10, 2).batch_iterator(10, rng="x"), "numpy generator"),
        (lambda: FixedSizeSampler(10, 2).load_state_dict({}), "not the state"),
        (lambda: FixedSizeSampler(10, 2).load_state_dict(FixedSizeSampler(10, 3).state_dict()), "same sizes"),
        (
            lambda: FixedSizeSampler(10, 2, key=KEY, world=2).load_state_dict(FixedSizeSampler(10, 2).state_dict()),
            "no key",
        ),
    ],
)
def test_what_is_wrong_is_refused(make: Any, said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        make()


def test_frameworks_cannot_rebuild_it() -> None:
    sampler = FixedSizeSampler(10, 2)
    assert not hasattr(sampler, "batch_size")
    assert not hasattr(sampler, "drop_last")


@pytest.mark.parametrize("make", [lambda: FixedSizeSampler(60, 9, steps=3), lambda: PoissonSampler(60, "1/5", steps=3)])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
def test_pickles_and_copies_leave_the_key_out(make: Any, copied: Any) -> None:
    """A copy with the key would draw the samples of the original again, and their noise would average out."""
    sampler = make()
    next(iter(sampler))
    key = bytes.fromhex(sampler.state_dict(secret=True)["key"])
    assert key not in pickle.dumps(sampler)
    other, again = copied(sampler), copied(sampler)
    assert (other.law, other.step, len(other)) == (sampler.law, 1, 3)
    assert len({str([one.draw(step) for step in range(20)]) for one in (sampler, other, again)}) == 3
    assert other.draw(5) == other.draw(5)  # it has a key of its own from then on


def test_a_fork_draws_by_a_key_of_its_own() -> None:
    sampler = FixedSizeSampler(1000, 10, steps=3, key=KEY)
    shared = FixedSizeSampler(1000, 10, steps=3, key=KEY, world=2)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            shared.draw(0)
        except cm.InputError as error:
            os.write(writer, f"{sampler.draw(0) == sampler.draw(0)} {sampler.draw(0)} {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    assert said.startswith("True [")
    assert str(sampler.draw(0)) not in said
    assert "make it anew in every process" in said
    assert sampler.draw(0) == FixedSizeSampler(1000, 10, key=KEY).draw(0)


def test_a_slice_that_was_copied_is_refused() -> None:
    with pytest.raises(cm.InputError, match="copies leave the key out"):
        copy.deepcopy(FixedSizeSampler(10, 2, key=KEY, world=2)).draw(0)


@pytest.mark.parametrize(
    ("make", "drawn", "releases"),
    [
        (lambda: FixedSizeSampler(100, 5, 10), 10, 30),
        (lambda: PoissonSampler(100, "1/10", 10), 10, 30),
        (lambda: BallsInBinsSampler(100, 10), 1, 3),
        (lambda: ShuffledSampler(100, 10), 1, 3),
        (lambda: CyclicPoissonSampler(100, "1/2", 10), 1, 3),
    ],
)
def test_a_sampler_that_is_set_back_has_drawn_all_the_same(make: Any, drawn: int, releases: int) -> None:
    sampler = make()
    start = sampler.state_dict()
    step = cm.Gaussian.from_clipping(norm=1, noise=2, relation=sampler.law.relation)
    for again in range(3):
        if again:
            sampler.load_state_dict(start)
        for _ in zip(range(drawn), sampler, strict=False):
            pass
    assert sampler.accounted_run(step) == step @ sampler.law * releases
    resumed = make()
    resumed.load_state_dict(sampler.state_dict())  # what was set back is part of the state
    assert resumed.accounted_run(step) == step @ sampler.law * releases
    assert sampler.accounted_run(step, steps=drawn) == step @ sampler.law * sampler.releases(drawn)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedSizeSampler(100, 5, 10),
        lambda: PoissonSampler(100, "1/10", 10),
        lambda: BallsInBinsSampler(100, 10),
        lambda: ShuffledSampler(100, 10),
        lambda: CyclicPoissonSampler(100, "1/2", 10),
    ],
)
def test_samples_that_are_handed_out_twice_are_not_accounted(make: Any) -> None:
    """Twenty steps on one sample of 5 of 100 with noise 1 need epsilon 67.8 at delta 1e-5; twenty samples need 10.6."""
    sampler = make()
    step = cm.Gaussian.from_clipping(norm=1, noise=2, relation=sampler.law.relation)
    start = sampler.state_dict(secret=True)
    list(zip(range(4), sampler, strict=False))
    sampler.load_state_dict(sampler.state_dict(secret=True))  # goes on where it was
    list(zip(range(2), sampler, strict=False))
    assert sampler.accounted_run(step) == step @ sampler.law * sampler.releases(sampler.state_dict().get("counted", 6))
    sampler.load_state_dict(start)
    list(zip(range(1), sampler, strict=False))
    resumed = make()
    resumed.load_state_dict(sampler.state_dict())
    for each in (sampler, copy.copy(sampler), resumed):
        with pytest.raises(cm.InputError, match="two steps had the same sample"):
            each.accounted_run(step)
        assert each.accounted_run(step, steps=6) == step @ sampler.law * sampler.releases(6)


def test_draws_that_are_asked_for_by_number_count() -> None:
    sampler = FixedSizeSampler(100, 5, 10)
    step = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
    with pytest.raises(cm.InputError, match="no draw was handed out yet"):
        sampler.accounted_run(step)
    for number in range(7):
        sampler.draw(number)
    assert sampler.accounted_run(step) == step @ sampler.law * 7
    list(sampler)
    assert sampler.accounted_run(step) == step @ sampler.law * 10
    resumed = FixedSizeSampler(100, 5, 10)
    resumed.load_state_dict(sampler.state_dict())
    list(resumed)
    assert resumed.accounted_run(step) == step @ sampler.law * 20


@pytest.mark.parametrize("renew", ["copy", "pickle", "rng", "state"])
def test_draws_by_number_under_a_new_key_count(renew: str) -> None:
    """Steps that were drawn before are drawn anew by another key: those batches were released too."""
    sampler = FixedSizeSampler(100, 5, 10)
    step = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
    for number in range(6):
        sampler.draw(number)
    if renew == "copy":
        sampler = copy.copy(sampler)
    elif renew == "pickle":
        sampler = pickle.loads(pickle.dumps(sampler))
    elif renew == "rng":
        sampler.batch_iterator(100, rng=3)
    else:
        sampler.load_state_dict(sampler.state_dict(secret=False))
    for number in range(4):
        sampler.draw(number)
    assert sampler.accounted_run(step) == step @ sampler.law * 10


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
@pytest.mark.parametrize("before", [0, 7])
def test_a_copy_counts_the_steps_before_it_once(
    again: Callable[[FixedSizeSampler], FixedSizeSampler], before: int
) -> None:
    """The key of a copy is drawn at its first step, which was counted with the steps before it once more."""
    sampler = FixedSizeSampler(100, 5, 10)
    step = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
    ahead = iter(sampler)
    for _ in range(before):
        next(ahead)
    other = again(sampler)
    next(iter(other))
    assert other.accounted_run(step) == step @ sampler.law * (before + 1)
    state = other.state_dict()
    assert state.pop("drawn")[other.mark()] == before + 1
    assert state == {**FixedSizeSampler(100, 5, 10).state_dict(), "step": before + 1}


def _hand_out(sampler: FixedSizeSampler, way: str) -> None:
    if way == "iterate":
        ahead = iter(sampler)
        for _ in range(5):
            next(ahead)
        return
    for number in range(5):
        sampler.draw(number)
        if way == "count":
            sampler.count_draw(number)


@pytest.mark.parametrize("first", ["iterate", "draw", "count"])
@pytest.mark.parametrize("second", ["iterate", "draw", "count"])
def test_draws_used_again_after_a_set_back_are_refused(first: str, second: str) -> None:
    sampler = FixedSizeSampler(100, 5, 10)
    step = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
    state = sampler.state_dict(secret=True)
    _hand_out(sampler, first)
    assert sampler.accounted_run(step) == step @ sampler.law * 5
    sampler.load_state_dict(state)
    _hand_out(sampler, second)
    with pytest.raises(cm.InputError, match="two steps had the same sample"):
        sampler.accounted_run(step)


def test_a_draw_that_is_asked_for_twice_is_one_draw() -> None:
    """Without a set-back, asking again shows the same draw; so does a state that is loaded where it was saved."""
    sampler = FixedSizeSampler(100, 5, 10)
    step = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
    assert sampler.draw(3) == sampler.draw(3)
    _hand_out(sampler, "iterate")
    sampler.load_state_dict(sampler.state_dict(secret=True))
    sampler.draw(5)
    assert sampler.accounted_run(step) == step @ sampler.law * 6


def test_draws_that_another_process_made_count() -> None:
    sampler = FixedSizeSampler(100, 5, 10)
    step = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
    for number in range(3):
        sampler.count_draw(number)
    assert sampler.accounted_run(step) == step @ sampler.law * 3


@pytest.mark.parametrize("renew", ["seed", "copy"])
def test_a_new_key_in_the_middle_of_a_cycle_gives_records_their_turn_again(renew: str) -> None:
    """All draws are from the first part: 1.354 was claimed for 10 of them, and 3.959 is needed."""
    sampler = CyclicPoissonSampler(100, "1/2", cycle=10)
    for seed in range(10):
        sampler.draw(0)
        if renew == "copy":
            sampler = copy.copy(sampler)
        else:
            next(sampler.batch_iterator(100, rng=seed))
            sampler.load_state_dict({**sampler.state_dict(), "step": 0, "counted": 0})
    mechanism = cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove")
    assert sampler.accounted_run(mechanism) == mechanism @ sampler.law * (10 if renew == "copy" else 20)


def test_a_new_key_where_the_draws_of_the_first_one_ended_goes_on_in_its_cycle() -> None:
    sampler = CyclicPoissonSampler(100, "1/2", cycle=10)
    list(itertools.islice(sampler, 3))
    list(itertools.islice(sampler.batch_iterator(100, rng=7), 7))
    mechanism = cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove")
    assert sampler.accounted_run(mechanism) == mechanism @ sampler.law


SAMPLERS = [
    lambda: FixedSizeSampler(100, 5, 10),
    lambda: PoissonSampler(100, "1/10", 10),
    lambda: BallsInBinsSampler(100, 10),
    lambda: ShuffledSampler(100, 10),
    lambda: CyclicPoissonSampler(100, "1/2", 10),
]


@pytest.mark.parametrize("make", SAMPLERS)
@pytest.mark.parametrize("resumed", [False, True])
def test_a_seed_that_comes_again_after_a_set_back_draws_the_same_samples(make: Any, resumed: bool) -> None:
    """The state has no key, but the seed gives it again: 1.56 was reported for 200 steps on 100 samples."""
    sampler = make()
    start = sampler.state_dict()
    mechanism = cm.Gaussian.from_clipping(norm=1, noise=2, relation=sampler.law.relation)
    one = [batch.tolist() for batch in sampler.batch_iterator(100, rng=7)]
    sampler.load_state_dict({**sampler.state_dict(), "step": 0} if resumed else start)
    if resumed:  # in another process, which knows the keys from the state
        other = make()
        other.load_state_dict(sampler.state_dict())
        sampler = other
    if isinstance(sampler, BallsInBinsSampler | ShuffledSampler):
        assert sampler.step == 0
    two = [batch.tolist() for batch in sampler.batch_iterator(100, rng=7)]
    assert one == two
    with pytest.raises(cm.InputError, match="two steps had the same sample"):
        sampler.accounted_run(mechanism)


@pytest.mark.parametrize("make", SAMPLERS)
def test_a_set_back_is_part_of_the_state_before_a_draw_comes_again(make: Any) -> None:
    sampler = make()
    mechanism = cm.Gaussian.from_clipping(norm=1, noise=2, relation=sampler.law.relation)
    start = sampler.state_dict(secret=True)
    one = list(sampler)
    sampler.load_state_dict(start)
    resumed = make()
    resumed.load_state_dict(sampler.state_dict(secret=True))
    assert list(resumed) == one
    with pytest.raises(cm.InputError, match="two steps had the same sample"):
        resumed.accounted_run(mechanism)


@pytest.mark.parametrize("make", SAMPLERS)
@pytest.mark.parametrize("secret", [False, True])
def test_the_state_of_another_run_adds_its_draws(make: Any, secret: bool) -> None:
    """The larger of both counts was taken: 11 draws instead of 21."""
    other, sampler = make(), make()
    mechanism = cm.Gaussian.from_clipping(norm=1, noise=2, relation=sampler.law.relation)
    list(itertools.islice(other, 10))
    list(itertools.islice(sampler, 10))
    state = other.state_dict(secret=secret)
    for _ in range(2):  # the second time nothing in it is new
        sampler.load_state_dict(state)
    next(iter(sampler))
    assert sampler.accounted_run(mechanism) == mechanism @ sampler.law * sampler.releases(21)
    assert "drawn" in state
    older, state = make(), {**state, "counted": 10}
    list(itertools.islice(older, 10))
    del state["drawn"]  # as an earlier version saved it
    older.load_state_dict(state)
    assert older.accounted_run(mechanism) == mechanism @ sampler.law * sampler.releases(20)


@pytest.mark.parametrize("make", SAMPLERS)
def test_states_of_one_run_count_its_draws_once(make: Any) -> None:
    sampler, resumed = make(), make()
    mechanism = cm.Gaussian.from_clipping(norm=1, noise=2, relation=sampler.law.relation)
    for _ in range(3):  # a younger state of the same run replaces an older one
        list(itertools.islice(sampler, 10))
        resumed.load_state_dict(sampler.state_dict())
        sampler.load_state_dict(sampler.state_dict())
    assert resumed.accounted_run(mechanism) == mechanism @ sampler.law * sampler.releases(30)
    assert sampler.accounted_run(mechanism) == mechanism @ sampler.law * sampler.releases(30)


@pytest.mark.parametrize("make", SAMPLERS)
@pytest.mark.parametrize("again", [copy.copy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
def test_the_key_of_a_copy_has_drawn_nothing_yet(make: Any, again: Any) -> None:
    """Its state with the key missed the draws below the step: 0.894 was reported for three passes, which need 1.110."""
    sampler = make()
    mechanism = cm.Gaussian.from_clipping(norm=1, noise=2, relation=sampler.law.relation)
    list(itertools.islice(sampler, 9))
    state = again(sampler).state_dict(secret=True)
    resumed = make()
    resumed.load_state_dict(state)
    if resumed.releases(10) == 10:
        resumed.draw(0)
        needed = 10
    else:
        list(resumed)
        list(itertools.islice(resumed, 1))
        needed = 3 if isinstance(resumed, BallsInBinsSampler | ShuffledSampler) else 2
    assert resumed.accounted_run(mechanism) == mechanism @ resumed.law * needed


def test_a_state_that_is_refused_changes_no_parts() -> None:
    sampler = CyclicPoissonSampler(100, 1, cycle=4)
    before = sampler.draw(0)
    state = {**CyclicPoissonSampler(100, 1, cycle=4).state_dict(), "step": -1}
    with pytest.raises(cm.InputError, match="step"):
        sampler.load_state_dict(state)
    assert sampler.draw(0) == before
