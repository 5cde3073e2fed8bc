"""Shuffled reports from both ends: all data sets of a few users enumerated, random randomizers, and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

import cumulant as cm
from cumulant.exact.shuffled_reports import CountsBelow, Kinds
from tests.mechanisms.reports import Laws, histograms, needed_delta


def unary(values: int, p: float, q: float) -> Laws:
    outputs = list(itertools.product((0, 1), repeat=values))
    return [
        [
            math.prod((p if i == own else q) if bit else 1 - (p if i == own else q) for i, bit in enumerate(bits))
            for bits in outputs
        ]
        for own in range(values)
    ]


def sets(values: int, size: int, odds: float) -> Laws:
    outputs = list(itertools.combinations(range(values), size))
    weights = [[odds if own in each else 1.0 for each in outputs] for own in range(values)]
    return [[w / sum(row) for w in row] for row in weights]


KNOWN: dict[str, tuple[cm.Mechanism, Laws]] = {
    "response": (cm.RandomizedResponse(p="3/4"), [[0.75, 0.25], [0.25, 0.75]]),
    "k-ary": (cm.KaryResponse(values=3, epsilon=1), sets(3, 1, math.e)),
    "k-ary, turned": (cm.KaryResponse(values=3, p="1/10"), [[0.1, 0.45, 0.45], [0.45, 0.1, 0.45], [0.45, 0.45, 0.1]]),
    "unary": (cm.UnaryEncoding(p="1/2", q="1/5"), unary(2, 0.5, 0.2)),
    "unary, three": (cm.UnaryEncoding(p="1/2", q="1/5"), unary(3, 0.5, 0.2)),
    "subsets": (cm.SubsetSelection(values=4, size=2, epsilon=1), sets(4, 2, math.e)),
    "finite": (
        cm.LocalRandomizer(inputs=3, masses=["1/2", "1/4", "1/4", 0, "1/2", "1/2", "1/3", "1/3", "1/3"]),
        [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]],
    ),
}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("reports", [2, 3])
def test_all_data_sets_enumerated(name: str, reports: int) -> None:
    mechanism, laws = KNOWN[name]
    run = mechanism @ cm.Shuffle(reports=reports)
    for epsilon in ("0", "0.2", "0.7"):
        needed = needed_delta(laws, reports, float(epsilon))
        found = run.guarantee(epsilon=epsilon)
        assert needed <= found.delta * (1 + 1e-9)
        assert found.delta <= mechanism.guarantee(epsilon=epsilon).delta * (1 + 1e-3)
        if found.lower is not None:
            assert found.lower <= needed * (1 + 1e-9)
            assert found.lower >= 0.2 * needed or name.startswith(("unary", "finite"))


@pytest.mark.parametrize(("values", "reports", "epsilon"), [(3, 100, "0.3"), (5, 1000, "0.1")])
def test_other_users_with_a_third_value_come_near_the_blanket(values: int, reports: int, epsilon: str) -> None:
    found = (cm.KaryResponse(values=values, epsilon=1) @ cm.Shuffle(reports=reports)).guarantee(epsilon=epsilon)
    assert found.lower is not None
    assert 0.8 * found.delta <= found.lower <= found.delta
    assert found.delta <= (cm.PureDP(1) @ cm.Shuffle(reports=reports)).delta(epsilon=epsilon)


def test_counts_are_binomial_sums() -> None:
    """Three reports, two kinds that are not all: every pair of counts from the definition."""
    kinds = Kinds((Fraction(1, 2), Fraction(1, 5)), (Fraction(1, 5), Fraction(1, 2)), (Fraction(1, 4), Fraction(1, 3)))
    laws = [[float(a), float(b), float(1 - a - b)] for a, b in (kinds.own, kinds.new, kinds.others)]
    p, q = histograms(laws, (0, 2, 2)), histograms(laws, (1, 2, 2))
    for direction, one, two in (("remove", p, q), ("add", q, p)):
        exact = sum(max(one[key] - math.exp(0.2) * two[key], 0.0) for key in one)
        assert CountsBelow(3, kinds, direction).own_delta(0.2, -40.0) == pytest.approx(exact, rel=1e-9)


def test_rounds_compose_both_ends() -> None:
    run = cm.KaryResponse(values=5, epsilon=1) @ cm.Shuffle(reports=1000) * 3
    found = run.guarantee(delta="1e-5")
    assert found.lower is not None
    assert 0.98 * found.epsilon <= found.lower <= found.epsilon
    assert found.rigour == "bounded"


def test_more_reports_are_more_private() -> None:
    for mechanism in (cm.UnaryEncoding(p="1/2", q="1/5"),):
        deltas = [(mechanism @ cm.Shuffle(reports=n)).delta(epsilon="0.2") for n in (2, 50, 10**4)]
        assert deltas == sorted(deltas, reverse=True)
        assert deltas[0] <= mechanism.delta(epsilon="0.2")


# ---- what has no known blanket


@pytest.mark.parametrize(
    "mechanism",
    [cm.Laplace(scale=1), cm.DiscreteLaplace(scale=1), cm.ExponentialMechanism(epsilon=1)],
    ids=str,
)
def test_other_pure_reports_are_clones(mechanism: cm.Mechanism) -> None:
    run, clones = mechanism @ cm.Shuffle(reports=50), cm.PureDP(mechanism.pure()) @ cm.Shuffle(reports=50)
    assert run.delta(epsilon="0.2") == pytest.approx(clones.delta(epsilon="0.2"), rel=1e-3)
    assert run.guarantee(epsilon="0.2").lower is None
    assert cm.parse(str(run)) == run


@pytest.mark.parametrize(
    "mechanism",
    [cm.ApproximateDP(1, "1e-10"), cm.Gaussian(noise_multiplier=4, relation=cm.Relation.REPLACE_ONE)],
    ids=str,
)
def test_reports_with_a_pair_are_batches_of_one_record(mechanism: cm.Mechanism) -> None:
    run, batches = mechanism @ cm.Shuffle(reports=500), mechanism @ cm.ShuffledBatches(batches=500)
    one, two = run.guarantee(delta="1e-5"), batches.guarantee(delta="1e-5")
    assert (one.epsilon, one.lower) == (two.epsilon, two.lower)
    assert one.epsilon < 0.5 * mechanism.epsilon(delta="1e-5")
    assert run.epsilon("1e-5", method="rdp") == mechanism.epsilon("1e-5", method="rdp")
    assert cm.parse(str(run)) == run
    assert "same randomizer" in one.explain()


# ---- a sample of the users, then a shuffle


@pytest.mark.parametrize("mechanism", [cm.PureDP(1), cm.KaryResponse(values=5, epsilon=1)], ids=str)
def test_a_sample_of_users_is_amplified_once_more(mechanism: cm.Mechanism) -> None:
    """The profile of a sample without replacement: g d(log(1 + (a-1)/g))."""
    shuffled = mechanism @ cm.Shuffle(reports=100)
    run = shuffled @ cm.WithoutReplacement(sample=100, population=1000)
    inner = shuffled.delta(epsilon=math.log1p(math.expm1(0.02) / 0.1))
    assert run.delta(epsilon="0.02", method="exact") == pytest.approx(0.1 * inner, rel=2e-2)
    assert cm.parse(str(run)) == run
    for sample in (cm.WithoutReplacement(sample=50, population=1000), cm.WithoutReplacement(rate="0.1")):
        with pytest.raises(cm.InputError, match="all reports are shuffled together"):
            shuffled @ sample


def test_a_sample_of_users_enumerated() -> None:
    """Two of three users, then shuffled: every sample, every list of reports."""
    laws = [[0.75, 0.25], [0.25, 0.75]]
    run = cm.RandomizedResponse(p="3/4") @ cm.Shuffle(reports=2) @ cm.WithoutReplacement(sample=2, population=3)

    def law(data: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = {}
        for sample in itertools.combinations(data, 2):
            for key, mass in histograms(laws, sample).items():
                found[key] = found.get(key, 0.0) + mass / 3
        return found

    for epsilon in ("0", "0.1", "0.4"):
        needed = 0.0
        for others in itertools.product((0, 1), repeat=2):
            p, q = law((0, *others)), law((1, *others))
            for one, two in ((p, q), (q, p)):
                needed = max(needed, sum(max(one[key] - math.exp(float(epsilon)) * two[key], 0.0) for key in one))
        assert needed <= run.delta(epsilon=epsilon, method="exact") * (1 + 1e-9)
    assert run.delta(epsilon=0, method="exact") < 0.5


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: (cm.PureDP(1) * 2) @ cm.Shuffle(reports=9), cm.HypothesisError, "one Shuffle each"),
        (lambda: cm.ZeroConcentrated(rho=1) @ cm.Shuffle(reports=9), cm.HypothesisError, "not known to be epsilon-DP"),
        (
            lambda: cm.Gaussian(sigma=1, relation=cm.Relation.ADD_REMOVE) @ cm.Shuffle(reports=9),
            cm.RelationError,
            "makes replace-one statements",
        ),
        (
            lambda: cm.ApproximateDP(1, "1e-9") @ cm.Shuffle(9) @ cm.WithoutReplacement(sample=9, population=90),
            cm.InputError,
            "amplified with a slack",
        ),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
