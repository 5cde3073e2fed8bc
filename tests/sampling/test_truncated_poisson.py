"""Truncated Poisson samples: every sample of small data sets, both directions, adaptive rounds, and the limits."""

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import cumulant as cm
from cumulant.pairs.public_choice import PublicChoicePair
from cumulant.sampling.truncated_poisson import TruncatedPoisson
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, product, renyi

ORDERS = [1.001, 1.5, 2, 7.3, 20]
SLIP = 1 + 1e-9
EDGES = np.concatenate([[-np.inf], np.linspace(-12, 12, 300), [np.inf]])


def chances(records: int, rate: float, limit: int) -> list[tuple[tuple[int, ...], float]]:
    """Every sample with its probability, from the definition."""
    found: dict[tuple[int, ...], float] = {}
    for size in range(records + 1):
        for drawn in itertools.combinations(range(records), size):
            chance = rate**size * (1 - rate) ** (records - size)
            cut = list(itertools.combinations(drawn, limit)) if size > limit else [drawn]
            for sample in cut:
                found[sample] = found.get(sample, 0.0) + chance / len(cut)
    return list(found.items())


def law(values: list[float], drawn: list[tuple[tuple[int, ...], float]], sigma: float, edges: Law = EDGES) -> Law:
    """The sum over the sample, with noise, in bins."""
    sums = np.array([sum(values[i] for i in sample) for sample, _ in drawn])
    below = ndtr((edges - sums[:, None]) / sigma)
    above = ndtr(-(edges - sums[:, None]) / sigma)
    bins = np.where(below[:, :-1] > 0.5, above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1])
    return np.array([chance for _, chance in drawn]) @ bins


def of_size(scheme: TruncatedPoisson, sigma: float, records: int) -> PublicChoicePair:
    """What is claimed where the larger data set has so many records."""
    pair = cm.Gaussian(sigma=sigma).pair()
    assert pair is not None
    case = scheme.case(pair, records)
    assert case is not None
    return PublicChoicePair((case,), directed=True)


def test_every_sample_of_small_data_sets() -> None:
    rng = random.Random(5)
    closest = 0.0
    for number in range(effort.drawn(100)):
        records, sigma = rng.randint(2, 5), rng.choice((0.5, 1.0, 2.0))
        limit, rate = rng.randint(1, records), rng.choice((0.1, 0.3, 0.5, 0.9))
        values = [rng.choice((-1.0, 1.0, 1.0, rng.uniform(-1, 1))) for _ in range(records)]
        if number % 3 == 0:  # the record that displaces others is as far from them as can be
            values = [-1.0] * (records - 1) + [1.0]
        with_it = law(values, chances(records, rate, limit), sigma)
        without = law(values[:-1], chances(records - 1, rate, limit), sigma)
        scheme = TruncatedPoisson(rate=rate, limit=limit, population=records)
        pair = of_size(scheme, sigma, records)
        epsilons = np.array([0.0, rng.uniform(0, 0.5), rng.uniform(0, 3)])
        claimed, divergences = pair.profile(epsilons), pair.curve().rdp(ORDERS)
        for p, q in ((with_it, without), (without, with_it)):
            needed = np.array([hockey_stick(p, q, epsilon) for epsilon in epsilons])
            assert (needed <= claimed * SLIP + 1e-12).all(), (scheme, sigma, values)
            assert (np.array([renyi(p, q, a) for a in ORDERS]) <= divergences * SLIP + 1e-12).all(), (scheme, values)
            closest = max(closest, float((needed / claimed)[claimed > 1e-6].max(initial=0.0)))
    assert closest > 0.98


def test_the_stated_size_may_be_the_smaller_one() -> None:
    for limit, rate in ((1, 0.5), (2, 0.3), (3, 0.9)):
        scheme = TruncatedPoisson(rate=rate, limit=limit, population=3)
        run = cm.Gaussian(sigma=1) @ scheme
        for epsilon in ("0", "0.3", "1"):
            both = [float(of_size(scheme, 1, n).profile(float(epsilon))) for n in (3, 4)]
            assert run.delta(epsilon=epsilon) == pytest.approx(max(both), rel=1e-9)


def test_two_adaptive_rounds() -> None:
    """The second sum has signs that the first output chooses."""
    rng = random.Random(6)
    edges = np.concatenate([[-np.inf], np.linspace(-6, 6, 40), [np.inf]])
    for _ in range(effort.drawn(5)):
        records, limit, rate = 3, rng.randint(1, 2), rng.choice((0.2, 0.5))
        values = [rng.choice((-1.0, 1.0)) for _ in range(records)]
        laws = []
        signs = [[rng.choice((-1.0, 1.0)) for _ in range(records)] for _ in range(edges.size - 1)]
        for size in (records, records - 1):
            drawn = chances(size, rate, limit)
            first = law(values[:size], drawn, 1.0, edges)
            rows = [a * law([s * v for s, v in zip(sign, values[:size], strict=False)], drawn, 1.0, edges)
                    for a, sign in zip(first, signs, strict=True)]  # fmt: skip
            laws.append(np.concatenate(rows))
        run = cm.Gaussian(sigma=1) @ TruncatedPoisson(rate=rate, limit=limit, population=records) * 2
        for epsilon in (0.0, 0.5, 1.5):
            claimed = run.delta(epsilon=epsilon)
            assert hockey_stick(laws[0], laws[1], epsilon) <= claimed * SLIP
            assert hockey_stick(laws[1], laws[0], epsilon) <= claimed * SLIP


def test_where_nothing_is_cut_it_is_a_poisson_sample() -> None:
    scheme, poisson = TruncatedPoisson("0.1", limit=30, population=30), cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.1")
    pair = of_size(scheme, 2, 30)
    assert pair.profile([0.0, 0.2]) == pytest.approx(np.array([poisson.delta(0), poisson.delta("0.2")]), rel=1e-12)
    run = cm.Gaussian(sigma=2) @ scheme  # a neighbour has 31 records, all of them drawn with probability 1e-31
    assert run.rdp([2, 8]) == pytest.approx(poisson.rdp([2, 8]), rel=1e-12)
    assert (run * 20).epsilon(1e-6) == pytest.approx((poisson * 20).epsilon(1e-6), rel=2e-3)


def test_many_rounds_compose_the_law_of_the_coin() -> None:
    """Against the convolution of the pair, binned from its definition; and with other samples in one run."""
    scheme = TruncatedPoisson(rate="0.25", limit=20, population=100)
    (branches,) = of_size(scheme, 2, 100).cases
    z = np.linspace(-9, 12, 900)
    base = np.diff(ndtr(z))
    masses, other = [], []
    for branch, moved in zip(branches, (0.5, 1.0), strict=True):
        mixed = float(1 - branch.rate) * base + float(branch.rate) * np.diff(ndtr(z - moved))
        masses.append(float(branch.weight) * mixed)
        other.append(float(branch.weight) * base)
    p, q = np.concatenate(masses), np.concatenate(other)
    two = hockey_stick(product([p, p]), product([q, q]), 0.5)
    found = (cm.Gaussian(sigma=2) @ scheme * 2).guarantee(epsilon="0.5")
    assert found.rigour == "bounded"
    assert found.lower is None
    assert two * (1 - 1e-6) <= found.delta <= two * 1.01
    mixed_run = cm.Gaussian(sigma=2) @ scheme * 2 + cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.01")
    assert found.delta <= mixed_run.delta(epsilon="0.5") <= found.delta * 1.05
    assert mixed_run.guarantee(epsilon="0.5").note == ""


def test_other_noise_and_what_is_refused() -> None:
    scheme = TruncatedPoisson(rate="0.25", limit=20, population=100)
    assert (cm.Laplace(scale=2) @ scheme).delta("0.1") < cm.Laplace(scale=2).delta("0.1")
    for base in (cm.ZeroConcentrated(rho=1), cm.from_masses(["0.5", "0.5"], ["0.2", "0.8"]), cm.Gaussian(sigma=1) * 2):
        with pytest.raises(
            cm.HypothesisError, match="it needs a single mechanism with a pair that is also known for several"
        ):
            (base @ scheme).epsilon(1e-6)
    with pytest.raises(cm.HypothesisError, match="carries slack"):
        (cm.ApproximateDP("0.1", "1e-6") @ scheme).epsilon(1e-3)
    with pytest.raises(cm.HypothesisError, match="not known for TruncatedPoisson samples"):
        (cm.Gaussian(sigma=2) @ scheme).epsilon(1e-6, method="naive")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"rate": "0.1", "limit": 11, "population": 10},
            r"limit=11 must be at most population=10.*Poisson\(rate=0.1\)",
        ),
        ({"rate": "1.5", "limit": 1, "population": 10}, "rate=1.5 must be"),
        ({"rate": "0.1", "limit": "2.5", "population": 10}, "limit=2.5 must be an integer"),
        ({"rate": "0.1", "limit": 2, "population": "9.5"}, "population=9.5 must be an integer"),
        ({"rate": "0.1", "limit": 0, "population": 10}, "limit=0 must be"),
    ],
    ids=["limit", "rate", "half a record", "half a data set", "nothing"],
)
def test_bad_input(given: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        TruncatedPoisson(**given)


def test_replace_one_is_refused_in_words() -> None:
    base = cm.Gaussian.from_clipping(norm=1, noise=1, relation="replace-one")
    with pytest.raises(cm.RelationError, match="TruncatedPoisson makes add-remove statements"):
        base @ TruncatedPoisson("0.1", limit=5, population=10)


def test_text_words_and_calibration() -> None:
    run = cm.Gaussian(sigma=2) @ TruncatedPoisson(rate="1/4", limit=20, population=100) * 3
    assert cm.parse(str(run)) == run
    said = run.guarantee(delta="1e-6").explain()
    assert "a sum over the sample or divides it by a public number" in said
    one = (cm.Gaussian(sigma=2) @ TruncatedPoisson(rate="1/4", limit=20, population=100)).guarantee(epsilon="0.1")
    assert (one.rigour, one.evidence.bound) == ("proved", "truncated-poisson")
    text = "Gaussian(sigma=?) @ TruncatedPoisson(rate=0.25, limit=20, population=100) * 3"
    assert cm.calibrate(text, epsilon=1, delta="1e-6").guarantee.epsilon <= 1
    assert math.isfinite(run.epsilon("1e-6", method="rdp"))
    assert Fraction(run.epsilon("1e-6")) < run.epsilon("1e-6", method="rdp")


@pytest.mark.parametrize(("rate", "limit", "population"), [(0.99, 1, 1), (0.5, 1, 1), (0.9, 1, 2), (0.7, 2, 3)])
def test_losses_of_one_direction_cover_one_record_more(rate: float, limit: int, population: int) -> None:
    """Either data set may be the one of `population` records: the larger one has as many, or one more."""
    run = cm.Gaussian(sigma=1) @ TruncatedPoisson(rate=rate, limit=limit, population=population)
    for direction in ("remove", "add"):
        loss = run.privacy_loss(direction)
        for larger in (population, population + 1):
            values = [1.0] + [-1.0] * (larger - 1)
            first = law(values, chances(larger, rate, limit), 1.0)
            second = law(values[1:], chances(larger - 1, rate, limit), 1.0)
            laws = (first, second) if direction == "remove" else (second, first)
            for epsilon in (0.0, 1.0, 3.0):
                assert loss.hockey_stick(epsilon) >= hockey_stick(*laws, epsilon) * (1 - 1e-9)
            assert hockey_stick(*laws, loss.epsilon("1e-3")) <= 1e-3 * SLIP


def test_gaussian_mu_counts_displaced_records_twice() -> None:
    run = cm.Gaussian(sigma=1) @ TruncatedPoisson(rate=".99", limit=1, population=50)
    assert run.gaussian_mu() == 2
    assert (cm.RandomizedResponse(p="0.6") @ TruncatedPoisson(rate=".99", limit=1, population=50)).gaussian_mu() > 0
