"""Shuffled passes: reference values, the theorems against enumeration and quadrature, several epochs, and mutations."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact.grid.refine import grid_delta
from cumulant.exact.shuffled_batches import Batches, ClonedEpoch
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.pair import Pair
from tests.effort import share
from tests.oracles.reference import load

ROWS = [row for row in load("allocation_intervals")["values"] if row["kind"] == "shuffled batches"]
WORST = [row for row in load("allocation_intervals")["values"] if row["kind"] == "shuffled steps, worst case"]


def pair_of(z: str) -> Pair:
    found = noise(z).pair()
    assert found is not None
    return found


def noise(z: str) -> cm.Mechanism:
    return cm.Gaussian(noise_multiplier=z, relation=cm.Relation.REPLACE_ONE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["expression"])
def test_reference_values(row: dict[str, Any]) -> None:
    z, count = row["expression"].split("multiplier ")[1].split(",")[0], row["expression"].split(" of ")[1].split(" ")[0]
    run = noise(z) @ cm.ShuffledBatches(batches=count)
    found = run.guarantee(delta="1e-6")
    assert found.lower is not None
    assert row["upper"] * 0.99 <= found.epsilon <= row["upper"] + row["tolerance"]
    assert row["lower"] * 0.995 <= found.lower <= row["lower"] * 1.0005
    assert found.epsilon <= noise(z).epsilon("1e-6")
    assert found.verify().holds


@pytest.mark.parametrize("row", WORST, ids=lambda row: row["expression"])
def test_the_worst_adaptive_steps_stay_below_the_clones(row: dict[str, Any]) -> None:
    """Linear programmes over all adaptive pure steps gave `lower`; two records attain the bound."""
    count, e0 = row["expression"].split(" ")[0], row["expression"].split("adaptive ")[1].split("-")[0]
    found = (cm.PureDP(e0) @ cm.ShuffledBatches(batches=count)).delta(epsilon=row["question"].split("=")[1])
    assert row["lower"] <= found * (1 + 1e-9)
    assert found <= row["upper"] + row["tolerance"]


# ---- one pass from the definition: every order, other records of any value, steps that adapt


def passes(target: int, others: tuple[int, ...], batch: int, odds: float, drop: bool) -> Any:
    """The law of all answers of one pass; a batch answers by randomized response about a query that adapts."""
    data = (target, *others)
    orders = list(itertools.permutations(range(len(data))))
    law: dict[tuple[int, ...], float] = {}
    yes = odds / (1 + odds)
    for order in orders:
        cut = [order[i : i + batch] for i in range(0, len(order), batch)]
        cut = [part for part in cut if len(part) == batch or not drop]
        for answers in itertools.product((0, 1), repeat=len(cut)):
            weight = 1 / len(orders)
            for i, (members, answer) in enumerate(zip(cut, answers, strict=True)):
                seen = [data[j] for j in members]
                asked = sum(seen) % 2 if i == 0 or answers[i - 1] else int(any(seen))
                weight *= yes if asked == answer else 1 - yes
            law[answers] = law.get(answers, 0.0) + weight
    return law


@pytest.mark.parametrize(("records", "batch", "drop"), [(4, 1, False), (4, 2, False), (5, 2, False), (5, 2, True)])
def test_enumerated_passes(records: int, batch: int, drop: bool) -> None:
    run = cm.RandomizedResponse(p="0.75") @ cm.ShuffledBatches(batch=batch, records=records, drop_last=drop)
    amplified = False
    for epsilon in ("0", "0.3", "0.8"):
        grown, needed = math.exp(float(epsilon)), 0.0
        for others in itertools.product((0, 1), repeat=records - 1):
            one, two = passes(0, others, batch, 3.0, drop), passes(1, others, batch, 3.0, drop)
            for p, q in ((one, two), (two, one)):
                needed = max(needed, sum(max(p[key] - grown * q[key], 0.0) for key in p))
        found = run.guarantee(epsilon=epsilon)
        assert needed <= found.delta * (1 + 1e-9)
        assert found.delta <= cm.RandomizedResponse(p="0.75").delta(epsilon=epsilon) * (1 + 1e-9)
        amplified |= found.delta < 0.99 * cm.RandomizedResponse(p="0.75").delta(epsilon=epsilon)
        if found.lower is not None and batch == 1:  # other records alike are among those enumerated
            assert found.lower <= needed * (1 + 1e-9)
    assert amplified


# ---- the worst adaptive queries: after every output the next query is the worst one, found backwards


def worst_queries(
    data: tuple[tuple[int, ...], tuple[int, ...]], cut: list[int], answers: Any, grown: float, epochs: int = 1
) -> float:
    """Return the largest delta over all adaptive yes/no queries about batches, of all epochs with fresh permutations.

    The hockey stick is a sum over transcripts, so the query after each output may be chosen by itself. `answers` has the law
    of the output for both truths. The state is the weight of every order under both data sets.
    """
    size = len(data[0])
    orders = list(itertools.permutations(range(size)))
    starts = [sum(cut[:i]) for i in range(len(cut))]
    seen = [
        [
            [tuple(sorted(records[j] for j in order[s : s + m])) for order in orders]
            for s, m in zip(starts, cut, strict=True)
        ]
        for records in data
    ]

    def value(step: int, epoch: int, p: Any, q: Any) -> float:
        if step == len(cut):
            total = float(p.sum()), float(q.sum())
            if epoch == epochs:
                return max(total[0] - grown * total[1], 0.0)
            return value(0, epoch + 1, *(np.full(len(orders), each / len(orders)) for each in total))
        contents = sorted({*seen[0][step], *seen[1][step]})
        best = 0.0
        for truth in itertools.product((0, 1), repeat=len(contents) - 1):
            asked = dict(zip(contents, (0, *truth), strict=True))  # a query and its negation tell the same
            bits = [np.array([asked[content] for content in seen[side][step]]) for side in (0, 1)]
            best = max(best, sum(value(step + 1, epoch, p * law[bits[0]], q * law[bits[1]]) for law in answers))
        return best

    start = np.full(len(orders), 1 / len(orders))
    return value(0, 1, start, start)


RESPONSE = np.array([[0.25, 0.75], [0.75, 0.25]])
"""Laws of the outputs of randomized response, p = 3/4: rows are outputs, columns truths."""
LEAKY = np.array([[0.02, 0.0], [0.0, 0.02], [0.245, 0.735], [0.735, 0.245]])
"""The truth is told with probability 1/50; else randomized response."""


@pytest.mark.parametrize(
    ("data", "batch", "drop", "epochs"),
    [
        (((0, 1, 1), (1, 1, 1)), 1, False, 1),
        (((0, 1, 2), (1, 1, 2)), 1, False, 1),
        (((0, 1), (1, 1)), 1, False, 2),
        (((0, 1, 1), (1, 1, 1)), 2, False, 1),
        (((0, 1, 2), (1, 1, 2)), 2, False, 1),
        (((0, 1, 1), (1, 1, 1)), 2, True, 1),
        (((0, 1, 1, 1), (1, 1, 1, 1)), 2, False, 1),
        (((0, 1, 1, 1), (1, 1, 1, 1)), 3, False, 2),
    ],
)
@pytest.mark.parametrize("leaky", [False, True])
def test_the_worst_adaptive_queries(data: Any, batch: int, drop: bool, epochs: int, leaky: bool) -> None:
    size = len(data[0])
    cut = [batch] * (size // batch) + ([size % batch] if size % batch and not drop else [])
    base = cm.ApproximateDP(cm.RandomizedResponse(p="3/4").pure(), "1/50") if leaky else cm.RandomizedResponse(p="3/4")
    run = base @ cm.ShuffledBatches(batch=batch, records=size, drop_last=drop) * epochs
    for epsilon in ("0.1", "0.6"):
        grown = math.exp(float(epsilon))
        needed = max(
            worst_queries(each, cut, LEAKY if leaky else RESPONSE, grown, epochs) for each in (data, data[::-1])
        )
        found = run.guarantee(epsilon=epsilon)
        assert needed <= found.delta * (1 + 1e-9)
        if (
            found.lower is not None
        ):  # other records alike are among the data, and constant queries among the adaptive ones
            assert found.lower <= needed * (1 + 1e-9) or len(set(data[0])) > 2


# ---- Gaussian steps by quadrature


def histogram(loss: Any, mass: Any, step: float) -> dict[int, float]:
    """Masses of a law of losses in cells of this step."""
    keys, place = np.unique(np.floor(loss / step).astype(int), return_inverse=True)
    return dict(zip(keys.tolist(), np.bincount(place, weights=mass).tolist(), strict=True))


def two_batches(z: float, other: float) -> tuple[Any, Any, Any]:
    """Losses of one pass over two records in two batches with their masses under both laws: +1 against -1, and another."""
    y = np.linspace(-1 - 9 * z, 1 + 9 * z, 701)
    width = y[1] - y[0]

    def density(mean: float) -> Any:
        return np.exp(-(((y - mean) / z) ** 2) / 2) / (z * math.sqrt(2 * math.pi)) * width

    def law(target: float) -> Any:
        return (np.outer(density(target), density(other)) + np.outer(density(other), density(target))).ravel() / 2

    p, q = law(1.0), law(-1.0)
    return np.log(p / q), p, q


@cache
def two_batches_answer(epochs: int, epsilon: float) -> cm.Guarantee:
    """Return the answer that the other record, of which it knows nothing, does not change."""
    return (noise("4") @ cm.ShuffledBatches(batches=2) * epochs).guarantee(epsilon=epsilon)


@pytest.mark.parametrize("other", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("epochs", [1, 2])
def test_two_batches_by_quadrature(other: float, epochs: int) -> None:
    z = 4.0
    loss, p, _ = two_batches(z, other)
    step = 1e-3
    one = histogram(loss, p, step)
    keys = np.array(sorted(one))
    line = np.zeros(keys[-1] - keys[0] + 1)
    line[keys - keys[0]] = [one[int(key)] for key in keys]
    law = line if epochs == 1 else np.convolve(line, line)
    # the left ends of cells: every loss is taken too small, so that this is needed
    losses = step * (epochs * keys[0] + np.arange(law.size))
    for epsilon in (0.1, 0.3, 0.6):
        gap = losses - epsilon
        needed = float(np.sum(law[gap > 0] * -np.expm1(-gap[gap > 0])))
        found = two_batches_answer(epochs, epsilon)
        assert needed <= found.delta
        if other == -1.0:  # the records of the lower end
            assert found.lower is not None
            assert found.lower <= needed * 1.02 + 1e-4
            assert needed <= found.lower * 1.02 + 1e-3


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_pair_of_the_theorem_by_quadrature(epochs: int) -> None:
    """Three batches, eps0 = 1/2: N = 1 + Bin(2, e^-1/2) draws of L = 2p/(p+q), summed directly."""
    shift, eps0, batches, step = 0.5, 0.5, 3, 2.0**-11
    x = np.linspace(-8, 8, 161)
    weight = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    ratio = np.exp(shift * x - shift * shift / 2)
    mixture, single = weight * (1 + ratio) / 2, 2 * ratio / (1 + ratio)
    total, masses, rate = single, mixture, math.exp(-eps0)
    size = math.ceil(12 / step)
    line = np.zeros(2 * size)
    for number in range(1, batches + 1):
        if number > 1:
            total = np.add.outer(total, single).ravel()
            masses = np.multiply.outer(masses, mixture).ravel()
        share = math.comb(batches - 1, number - 1) * rate ** (number - 1) * (1 - rate) ** (batches - number)
        loss = np.log(total / (2 * number - total))
        line += np.bincount(np.floor(loss / step).astype(int) + size, share * masses * total / number, 2 * size)
    law = line if epochs == 1 else np.convolve(line, line)
    losses = step * (np.arange(law.size) - epochs * size)
    pair = GaussianPair(Fraction(1, 2))
    epoch = ClonedEpoch(pair.loss(), batches, eps0)  # type: ignore[arg-type]
    for epsilon in (0.05, 0.2, 0.5):
        gap = losses - epsilon
        exact = float(np.sum(law[gap > 0] * -np.expm1(-gap[gap > 0])))
        found = grid_delta(((epoch, epochs),), epsilon, 1e-4, upper=True).value
        assert exact <= found * (1 + 1e-6)
        assert found <= exact * 1.01 + 2 * epochs * step


# ---- laws


def test_one_batch_is_the_mechanism() -> None:
    assert noise("4") @ cm.ShuffledBatches(batches=1) == noise("4")
    assert noise("4") @ cm.ShuffledBatches(batch=9, records=9) == noise("4")


def test_pure_steps_are_clones() -> None:
    for batches in (2, 50):
        one, two = cm.PureDP(1) @ cm.ShuffledBatches(batches=batches), cm.PureDP(1) @ cm.Shuffle(reports=batches)
        assert one.delta(epsilon="0.1") == pytest.approx(two.delta(epsilon="0.1"), rel=1e-6)
        assert one.guarantee(delta=1e-5).lower is None


def test_the_lower_end_is_that_of_one_allocated_record() -> None:
    """Other records alike: a random allocation with twice the shift, where the batch size divides the records."""
    lower = (noise("4") @ cm.ShuffledBatches(batches=10) * 2).guarantee(delta="1e-5").lower
    epoch = (cm.Gaussian(sigma=2) @ cm.RandomAllocation(steps=10) * 2).guarantee(delta="1e-5").lower
    assert lower == pytest.approx(epoch, rel=1e-6)


def test_partial_batches_change_both_ends() -> None:
    """Three records in batches of 2, noise 4, eps 0.1: with a uniform place 0.1593 would be claimed from below."""
    kept = (noise("4") @ cm.ShuffledBatches(batch=2, records=3)).guarantee(epsilon="0.1")
    dropped = (noise("4") @ cm.ShuffledBatches(batch=2, records=3, drop_last=1)).guarantee(epsilon="0.1")
    assert kept.lower is not None
    assert dropped.lower is not None
    assert kept.lower <= 0.1114
    assert dropped.lower <= 0.1062
    whole, part = Batches(5, 5), Batches(5, 6)
    for (_, one), (_, more) in zip(*(b.options(pair_of("4"), -14.0, 1) for b in (whole, part)), strict=True):
        assert more > 0.9 * one
    step = [next(iter(b.options(pair_of("4"), -14.0, 1))) for b in (whole, part)]
    same = [s for s in step if isinstance(s[0], ClonedEpoch)]
    assert len(same) == 2


NOISES = ["1", "2", "4", "8"]


@pytest.mark.parametrize("z", NOISES)
def test_never_above_the_unamplified_run(z: str) -> None:
    """One of three runs for each noise in turn, in a hunt all."""
    for batches, epochs in share([(2, 1), (30, 3), (5000, 2)], NOISES.index(z)):
        run = noise(z) @ cm.ShuffledBatches(batches=batches) * epochs
        found = run.guarantee(delta="1e-6")
        assert found.epsilon <= (noise(z) * epochs).epsilon("1e-6") * (1 + 1e-12)
        assert found.lower is not None
        assert found.lower <= found.epsilon


def test_divergences_take_the_unamplified_curve() -> None:
    run = noise("4") @ cm.ShuffledBatches(batches=1000)
    assert run.epsilon("1e-6", method="rdp") == noise("4").epsilon("1e-6", method="rdp")
    assert run.rdp(3) == noise("4").rdp(3)


@pytest.mark.parametrize(("batches", "epochs"), [(200, 1), (200, 4)])
def test_an_answer_contains_the_whole_slack(batches: int, epochs: int) -> None:
    """delta of the pair plus (1 + e^eps) E (T-1) eta/A, put together here, is at most the delta that was asked for."""
    run = noise("4") @ cm.ShuffledBatches(batches=batches) * epochs
    epsilon, delta = run.epsilon("1e-5"), 1e-5
    assert epsilon < (noise("4") * epochs).epsilon("1e-5")
    sums = []
    for step, slack in Batches(batches, batches).options(pair_of("4"), math.log(delta), epochs):
        own = grid_delta(((step, epochs),), epsilon, 1e-3, upper=True).value
        sums.append(own + (1 + math.exp(epsilon)) * epochs * slack)
    assert min(sums) <= delta * (1 + 2e-3)
    assert min(sums) >= delta * 0.97


def test_a_delta_contains_the_whole_slack() -> None:
    """No eps0 gives less than delta of the pair plus (1 + e^eps)(T-1) eta/A; without the 1 an answer would be 12 % less."""
    from scipy.special import ndtr

    epsilon, shift, loss = 0.5, 0.5, pair_of("4").loss()
    assert loss is not None
    delta, sums = (noise("4") @ cm.ShuffledBatches(batches=200)).delta(epsilon=epsilon), []
    for a in (2.44, 2.47, 2.5, 2.53, 2.56, 2.6):
        eta = ndtr(shift / 2 - a / shift) - math.exp(a) * ndtr(-shift / 2 - a / shift)
        own = ClonedEpoch(loss, 200, a).own_delta(epsilon, -48.0)
        sums.append(own + (1 + math.exp(epsilon)) * 199 * eta * math.exp(-a))
    assert 0.99 * min(sums) <= delta <= 1.1 * min(sums)


def leaking_steps(epsilon: float) -> float:
    """Delta of two batches of one record: a step tells its record with probability 1/50, else answers it with odds 3."""
    law = {0: (0.98 * 0.75, 0.98 * 0.25, 0.02, 0.0), 1: (0.98 * 0.25, 0.98 * 0.75, 0.0, 0.02)}
    worst = 0.0
    for target, other in itertools.product((0, 1), repeat=2):
        found = 0.0
        for y, z in itertools.product(range(4), repeat=2):
            p = (law[target][y] * law[other][z] + law[other][y] * law[target][z]) / 2
            q = (law[1 - target][y] * law[other][z] + law[other][y] * law[1 - target][z]) / 2
            found += max(p - math.exp(epsilon) * q, 0.0)
        worst = max(worst, found)
    return worst


@pytest.mark.parametrize(
    ("epsilon", "delta", "batches"), [("0.5", "1e-5", 100), ("1.0986122886681098", "1/50", 2), ("2", "1e-4", 50)]
)
def test_a_delta_never_rises_with_epsilon(epsilon: str, delta: str, batches: int) -> None:
    """The slack grows with epsilon; what holds at a smaller epsilon holds at a larger one, and chords are lower still."""
    step = cm.ApproximateDP(epsilon, delta)
    run = step @ cm.ShuffledBatches(batches=batches)
    places = np.linspace(0.0, 1.1 * float(epsilon), 23)
    found = [run.delta(place) for place in places.tolist()]
    assert all(later <= before * (1 + 1e-9) for before, later in itertools.pairwise(found))
    assert all(each <= step.delta(place) for each, place in zip(found, places.tolist(), strict=True))
    if batches == 2:
        assert all(each >= leaking_steps(place) for each, place in zip(found, places.tolist(), strict=True))


@pytest.mark.parametrize("epochs", [1, 10])
def test_a_delta_is_that_of_its_epsilon(epochs: int) -> None:
    """The search for eps0 at a given epsilon finds what the search at a given delta found."""
    run = noise("4") @ cm.ShuffledBatches(batches=1000) * epochs
    assert run.delta(run.epsilon(1e-6)) <= 1.01e-6


def test_a_delta_far_out_holds_that_of_a_smaller_epsilon() -> None:
    """No grid answers at 0.8, and without amplification delta is 0.006."""
    run = noise("10.9") @ cm.ShuffledBatches(batches=3159) * 5
    assert run.delta(0.8) < 1e-20


@pytest.mark.parametrize(("noise_multiplier", "records"), [("0.5", 3), ("0.3", 5), ("0.2", 5)])
def test_losses_far_out_keep_their_order(noise_multiplier: str, records: int) -> None:
    """Far out all ratios are the share that is dropped, and two of them came in the wrong order."""
    run = noise(noise_multiplier) @ cm.ShuffledBatches(batch=2, records=records, drop_last=1)
    found = run.guarantee(delta="1e-5")
    assert found.lower is not None
    assert 0 < found.lower <= found.epsilon < 400


def test_full_and_released_batches() -> None:
    cut = [
        cm.ShuffledBatches(batch=2, records=7).cut(),
        cm.ShuffledBatches(batch=2, records=7, drop_last=1).cut(),
        cm.ShuffledBatches(batch=2, records=8).cut(),
        cm.ShuffledBatches(batches=4).cut(),
    ]
    assert cut == [Batches(3, 4), Batches(3, 3, Fraction(1, 7)), Batches(4, 4), Batches(4, 4)]


def test_slack_constants() -> None:
    """(T-1) eta/A with the shift 2/z, once per epoch: half of any factor would be visible."""
    from scipy.special import ndtr

    shift = 0.5
    for (step, slack), _ in zip(Batches(100, 101).options(pair_of("4"), math.log(1e-6), 1), range(2), strict=False):
        assert isinstance(step, ClonedEpoch)
        a = step.eps0
        eta = ndtr(shift / 2 - a / shift) - math.exp(a) * ndtr(-shift / 2 - a / shift)
        assert slack == pytest.approx(100 * eta * math.exp(-a), rel=1e-3)
        assert slack >= 100 * eta * math.exp(-a)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: cm.ShuffledBatches(batches=0), cm.InputError, "batches=0 must be"),
        (lambda: cm.ShuffledBatches(batches="2.5"), cm.InputError, "batches=2.5 must be"),
        (lambda: cm.ShuffledBatches(batch=3), cm.InputError, "together"),
        (lambda: cm.ShuffledBatches(batch=30, records=3), cm.InputError, "at most records"),
        (lambda: cm.ShuffledBatches(batches=3, records=3), cm.InputError, "takes batches"),
        (lambda: cm.ShuffledBatches(batches=3, fresh=0), cm.HypothesisError, "one permutation for all passes"),
        (
            lambda: cm.Gaussian(sigma=2, relation=cm.Relation.ADD_REMOVE) @ cm.ShuffledBatches(batches=3),
            cm.RelationError,
            "moves",
        ),
        (lambda: noise("4") @ cm.ShuffledBatches(batches=3) @ cm.Group(size=2), cm.HypothesisError, "several batches"),
        (lambda: noise("4") @ cm.Group(size=2) @ cm.ShuffledBatches(batches=3), cm.CumulantError, "group"),
        (
            lambda: noise("4") @ cm.WithoutReplacement(rate="0.1") @ cm.ShuffledBatches(batches=3),
            cm.HypothesisError,
            "no sample and no group inside",
        ),
        (lambda: (noise("4") + noise("5")) @ cm.ShuffledBatches(batches=3), cm.HypothesisError, "one mechanism"),
        (
            lambda: cm.ZeroConcentrated(rho=1) @ cm.ShuffledBatches(batches=3),
            cm.HypothesisError,
            "known dominating pair",
        ),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
