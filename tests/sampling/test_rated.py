"""Samples for the other neighbours: enumerated data sets, subsets and adaptive rounds; degenerate runs."""

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick

P = 0.75


def drawn(data: tuple[int, ...], size: int, bit: Callable[[int], int]) -> Law:
    """Randomized response about a bit of the sum of a uniform subset of this size."""
    bits = [bit(sum(each)) for each in itertools.combinations(data, size)]
    share = sum(bits) / len(bits)
    return np.array([1 - P, P]) * share + np.array([P, 1 - P]) * (1 - share)


def adaptive(data: tuple[int, ...], size: int, rules: list[dict[int, int]], rounds: int) -> Law:
    """Rounds of which each asks for another bit after each answer; the rules are the same on both data sets."""
    if not rounds:
        return np.ones(1)
    law = drawn(data, size, rules[0].__getitem__)
    half = (len(rules) - 1) // 2
    after = [adaptive(data, size, part, rounds - 1) for part in (rules[1 : 1 + half], rules[1 + half :])]
    return np.concatenate([law[i] * after[i] for i in (0, 1)])


@lru_cache
def displaced(size: int, population: int, rounds: int, x: float) -> float:
    """What is claimed."""
    scheme = cm.WithoutReplacement(sample=size, population=population, relation="add-remove")
    return (cm.RandomizedResponse(p="3/4") @ scheme * rounds).delta(x)


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_record_added_to_samples_of_a_fixed_size(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    shares = []
    for _ in range(effort.drawn(50)):
        population = int(rng.integers(3, 6))
        size = int(rng.integers(1, population))
        larger = tuple(int(x) for x in rng.integers(0, 3, population))
        smaller = larger[1:] if rng.random() < 0.7 else (larger[-1],) * (population - 1)
        larger = (larger[0], *smaller)
        rules = [{s: int(rng.integers(2)) for s in range(2 * size + 1)} for _ in range(2**rounds - 1)]
        p, q = (adaptive(data, size, rules, rounds) for data in (larger, smaller))
        for x in (0.0, 0.2, 0.6):
            claimed = displaced(size, population, rounds, x)
            for needed in (hockey_stick(p, q, x), hockey_stick(q, p, x)):
                assert needed <= claimed * (1 + 1e-9) + 1e-12
            if claimed > 1e-6:
                shares.append(hockey_stick(p, q, x) / claimed)
    assert max(shares) > 0.999


def test_the_record_alone_needs_all_of_it() -> None:
    """All others alike: the two directions are those of a Poisson sample of the same rate, at the replace-one sensitivity."""
    run = cm.Gaussian(sigma=2, sensitivity=2, geometry="ball") @ cm.WithoutReplacement(
        sample=10, population=100, relation="add-remove"
    )
    same = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1")
    assert (run * 7).epsilon(1e-6) == (same * 7).epsilon(1e-6)
    assert (run * 7).guarantee(delta=1e-6).lower == (same * 7).guarantee(delta=1e-6).lower
    assert run.relation is cm.Relation.ADD_REMOVE
    assert "counts as 2C" in " ".join(cm_assumptions(run))


def cm_assumptions(run: cm.Expression) -> list[str]:
    from cumulant.accounting.text import assumptions

    return assumptions(run.record())


def clipped_sums(values: Law, rate: float, sigma: float, at: Law) -> Law:
    """Density of the noisy sum of a Poisson sample, every subset of records by its probability."""
    total = np.zeros_like(at)
    for inside in itertools.product((0, 1), repeat=values.size):
        weight = np.prod([rate if i else 1 - rate for i in inside])
        total += weight * stats.norm.pdf(at, np.dot(inside, values), sigma)
    return total


def test_a_record_replaced_on_poisson_samples() -> None:
    rng, shares = np.random.default_rng(4), []
    for i in range(effort.drawn(20)):
        sigma, rate = round(float(rng.uniform(0.4, 2)), 2), round(float(rng.uniform(0.05, 0.9)), 2)
        run = cm.Gaussian.from_clipping(norm=1, noise=sigma, relation="replace-one") @ cm.Poisson(
            rate=rate, relation="replace-one"
        )
        others = rng.uniform(-1, 1, 2)
        first, second = (rng.choice([-1.0, 1.0], 2, replace=False) if i % 2 else rng.uniform(-1, 1, 2)).tolist()
        at = np.linspace(-4 - 9 * sigma, 4 + 9 * sigma, 2001)
        width = at[1] - at[0]
        p, q = (clipped_sums(np.array([*others, x]), rate, sigma, at) * width for x in (first, second))
        for x in (0.0, 0.3, 1.0):
            needed, claimed = hockey_stick(p, q, x), run.delta(x)
            assert needed <= claimed * (1 + 1e-6) + 1e-9
            shares.append(needed / claimed if claimed > 1e-6 else 0.0)
    assert max(shares) > 0.9
    assert run.delta(0.3) < (run * 2).delta(0.3)
    same = run.inner @ cm.WithoutReplacement(rate=rate)
    assert (run * 3).epsilon(1e-6) <= (same * 3).epsilon(1e-6) * (1 + 2e-3)
    assert run.rdp(2, bound="gaussian-ball") == same.rdp(2, bound="gaussian-ball")


EDGES = np.linspace(-9, 9, 121)


def binned_sums(values: Law, rate: float, sigma: float) -> Law:
    """Masses between edges of the noisy sums of Poisson samples, one row for each row of values; bins are a garbling."""
    masses = np.zeros((len(values), EDGES.size + 1))
    for inside in itertools.product((0, 1), repeat=values.shape[1]):
        weight = math.prod(rate if i else 1 - rate for i in inside)
        below = ndtr((EDGES - (values @ np.array(inside))[:, None]) / sigma)
        masses += weight * np.diff(below, prepend=0.0, append=1.0)
    return masses


@pytest.mark.parametrize(("sigma", "rate"), [("0.6", "0.3"), ("1", "0.1"), ("1", "0.5"), ("2", "0.9")])
def test_a_record_replaced_in_one_and_two_rounds(sigma: str, rate: str) -> None:
    """500 times; what each record contributes to the second sum depends on where the first one fell."""
    rng, size = np.random.default_rng(5), 500
    clipped = cm.Gaussian.from_clipping(norm=1, noise=sigma, relation="replace-one")
    run = clipped @ cm.Poisson(rate=rate, relation="replace-one")
    others = rng.uniform(-1, 1, (3, size, 1)) * rng.choice([0.0, 1.0], (3, size, 1))
    records = np.where(rng.random((1, size, 1)) < 0.5, [[[1.0, -1.0]]], rng.uniform(-1, 1, (3, size, 2)))
    after = rng.random((size, EDGES.size + 1)) < rng.random((size, 1))
    laws = []
    for which in (0, 1):
        first, one, other = (
            binned_sums(np.hstack([others[i], records[i][:, [which]]]), float(rate), float(sigma)) for i in range(3)
        )
        second = np.where(after[:, :, None], one[:, None, :], other[:, None, :])
        laws.append((first, (first[:, :, None] * second).reshape(size, -1)))
    for rounds, p, q in zip((1, 2), *laws, strict=True):
        for x in (0.0, 0.3, 1.0):
            needed, claimed = np.maximum(p - math.exp(x) * q, 0).sum(axis=1), (run * rounds).delta(x)
            assert (needed <= claimed * (1 + 1e-12)).all()
            assert needed.max() > 0.95 * claimed


def test_text_equality_and_pickles() -> None:
    import pickle

    clipped = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
    replaced = clipped @ cm.Poisson(rate="0.1", relation="replace-one")
    added = clipped @ cm.WithoutReplacement(sample=2, population=9, relation="add-remove")
    for run in (replaced, replaced * 4, added + added * 2):
        assert cm.parse(str(run)) == run
        assert pickle.loads(pickle.dumps(run)) == run
        assert run.guarantee(delta=1e-6).verify().holds
    assert cm.Poisson(rate="0.1", relation="replace-one") != cm.Poisson(rate="0.1")
    assert cm.Poisson(rate="0.1", relation="add-remove") == cm.Poisson(rate="0.1")
    assert cm.WithoutReplacement(rate="0.1", relation="replace-one") == cm.WithoutReplacement(rate="0.1")
    twice = replaced @ cm.Poisson(rate="0.1", relation="replace-one")
    assert twice == clipped @ cm.Poisson(rate="0.01", relation="replace-one")


def replaced_records(sample: int, population: int, size: int, epsilon: float) -> float:
    """Return delta of a sum of records 1 or 0 with noise 1, of which so many are replaced by zeros."""
    shares = stats.hypergeom(population, size, sample).pmf(range(size + 1))

    def at_least(x: float) -> float:  # the masses of one half-line on both data sets
        return float(shares @ ndtr(np.arange(size + 1) - x) - math.exp(epsilon) * ndtr(-x))

    return max(at_least(x) for x in np.linspace(-5, 15, 2001))


@pytest.mark.parametrize("around", [cm.Group(size=3), cm.User(records=3)], ids=str)
@pytest.mark.parametrize("question", ["guarantee", "list", "epsilon", "rdp", "accountant"])
def test_samples_of_other_sizes_are_not_mixed_up(around: Any, question: str) -> None:
    """Three records are in 100 of 1,000 with another law than in 1 of 10, whatever was asked before."""
    relation = "replace-one" if isinstance(around, cm.Group) else "add-remove"
    base = cm.Gaussian(sigma=1, relation="replace-one")

    def run(sample: int, population: int) -> cm.Expression:
        scheme = cm.WithoutReplacement(sample=sample, population=population, relation=relation)
        grouped: cm.Expression = base @ scheme @ around
        return grouped

    def accounted(each: cm.Expression) -> float:
        accountant = cm.Accountant()
        accountant.compose(few)
        accountant.compose(each)
        return accountant.epsilon("1e-5")

    few, many = run(1, 10), run(100, 1000)
    asked: dict[str, Callable[[cm.Expression], float]] = {
        "guarantee": lambda each: each.guarantee(epsilon=2).delta,
        "list": lambda each: float(each.delta([2, 3])[0]),
        "epsilon": lambda each: each.epsilon("1e-5"),
        "rdp": lambda each: each.rdp(3),
        "accountant": accounted,
    }
    less, more = asked[question](few), asked[question](many)
    assert less < more
    if question in ("guarantee", "list"):
        assert less < replaced_records(100, 1000, 3, 2.0) <= more
    assert few != many
    assert few + many == many + few
    assert len((few + many).terms) == 2


def test_equal_samples_have_one_law_of_several_records() -> None:
    sizes: list[dict[str, Any]] = [
        {"sample": 1, "population": 10},
        {"sample": 100, "population": 1000},
        {"rate": "0.1"},
    ]
    for kind in (cm.Poisson, cm.WithoutReplacement):
        for relation in kind.statements:
            schemes = [kind(**each, relation=relation) for each in sizes]
            for one, other in itertools.combinations(schemes, 2):
                laws = [[each.group_counts(3), each.user_counts(3)] for each in (one, other)]
                assert laws[0] == laws[1] or one != other


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: cm.Laplace(2) @ cm.Poisson(rate="0.1", relation="replace-one"), "from an absent one"),
        (lambda: cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1", relation="replace-one"), "from an absent one"),
        (
            lambda: cm.Gaussian(sigma=1, geometry="ball") * 2 @ cm.Poisson(rate="0.1", relation="replace-one"),
            "noise on each sample",
        ),
        (lambda: cm.WithoutReplacement(sample=3, population=3, relation="add-remove"), "must be below population"),
        (lambda: cm.WithoutReplacement(rate="0.1", relation="any"), "must be 'replace-one' or 'add-remove'"),
        (lambda: cm.Poisson(rate="0.1", relation="swap"), "relation='swap' is unknown"),
        (
            lambda: (
                cm.Gaussian(sigma=1, relation=cm.Relation.ADD_REMOVE)
                @ cm.WithoutReplacement(rate="0.1", relation="add-remove")
            ),
            "is stated for add-remove",
        ),
    ],
)
def test_refused(made: Callable[[], Any], said: str) -> None:
    with pytest.raises(cm.CumulantError, match=said):
        made()


PRIVATE = [
    cm.Gaussian(sigma=1, sensitivity=0),
    cm.Gaussian(sigma=0, sensitivity=0),
    cm.Laplace(scale=1, sensitivity=0),
    cm.Gaussian(sigma=1) @ cm.Poisson(rate=0) * 5,
    cm.Laplace(1) @ cm.WithoutReplacement(rate=0),
    cm.Run({}),
]


@pytest.mark.parametrize("run", PRIVATE, ids=str)
def test_what_never_sees_a_record(run: cm.Expression) -> None:
    assert (
        run.epsilon(0) == run.epsilon(1e-6) == run.delta(0) == run.advantage() == run.pure() == run.gaussian_mu() == 0
    )
    assert run.bayes_risk() == 0.5
    assert run.delta(-1) == pytest.approx(1 - math.exp(-1))
    assert run.check(epsilon=0, delta=0).verdict == "holds"
    for other in (cm.Gaussian(sigma=2), cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.1") * 3):
        if run.relation in (cm.Relation.ANY, other.relation):
            assert (run + other).epsilon(1e-6) == other.epsilon(1e-6)
    if run.terms:
        assert cm.parse(str(run)) == run


@pytest.mark.parametrize(
    "run", [cm.Gaussian(sigma=0), cm.Laplace(scale=0), cm.Gaussian(sigma=0) + cm.Gaussian(sigma=1)], ids=str
)
def test_what_is_released_as_it_is(run: cm.Expression) -> None:
    assert run.epsilon(1e-6) == run.epsilon(0) == run.pure() == run.rdp(2) == math.inf
    assert run.delta(100) == run.advantage() == run.true_positive_rate(0) == 1
    assert run.bayes_risk() == 0
    assert cm.parse(str(run)) == run
