"""Samples with replacement: every sequence of draws from small data sets, both directions, adaptive rounds, and the limits."""

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, ndtr

import cumulant as cm
from cumulant.pairs.public_choice import PublicChoicePair
from cumulant.sampling.with_replacement import WithReplacement, copies
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, renyi

ORDERS = [1.001, 1.5, 2, 7.3, 20]
SLIP = 1 + 1e-9
EDGES = np.concatenate([[-np.inf], np.linspace(-8, 8, 200), [np.inf]])


def sequences(population: int, sample: int) -> Law:
    return np.array(list(itertools.product(range(population), repeat=sample)))


def law(values: list[float], drawn: Law, sigma: float, edges: Law = EDGES) -> Law:
    """The sum over the draws, all equally likely, with noise, in bins."""
    sums = np.array(values)[drawn].sum(axis=1)
    below = ndtr((edges - sums[:, None]) / sigma)
    above = ndtr(-(edges - sums[:, None]) / sigma)
    return np.where(below[:, :-1] > 0.5, above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1]).mean(axis=0)


def claimed_pair(base: cm.Mechanism, scheme: WithReplacement) -> PublicChoicePair:
    pair = base.pair()
    assert pair is not None
    found = scheme.closed_form(pair)[0]
    assert isinstance(found, PublicChoicePair)
    return found


def test_every_sequence_of_draws_with_gaussian_noise() -> None:
    """Values in an interval of length 1: each copy of a record moves the sum by 1 at most."""
    rng = random.Random(5)
    closest = 0.0
    for number in range(effort.drawn(60)):
        population, sample, sigma = rng.randint(2, 4), rng.randint(1, 4), rng.choice((0.5, 1.0, 3.0))
        values = [rng.choice((0.0, 1.0, rng.uniform(0, 1))) for _ in range(population)]
        moved = [rng.choice((0.0, 1.0, rng.uniform(0, 1))), *values[1:]]
        if number % 3 == 0:
            values, moved = [0.0] * population, [1.0] + [0.0] * (population - 1)
        drawn = sequences(population, sample)
        p, q = law(values, drawn, sigma), law(moved, drawn, sigma)
        pair = claimed_pair(cm.Gaussian(sigma=sigma), WithReplacement(sample, population))
        epsilons = np.array([0.0, rng.uniform(0, 0.5), rng.uniform(0, 3)])
        claimed, divergences = pair.profile(epsilons), pair.curve().rdp(ORDERS)
        for one, other in ((p, q), (q, p)):
            needed = np.array([hockey_stick(one, other, epsilon) for epsilon in epsilons])
            assert (needed <= claimed * SLIP + 1e-12).all(), (values, moved, sample, sigma)
            assert (np.array([renyi(one, other, a) for a in ORDERS]) <= divergences * SLIP + 1e-12).all()
            closest = max(closest, float((needed / claimed)[claimed > 1e-6].max(initial=0.0)))
    assert closest > 0.98


def test_every_sequence_of_draws_with_finite_outputs() -> None:
    """Masses ~ e^u, u a sum over the draws of scores in [0, epsilon / 2]: epsilon-DP for each copy, in both directions."""
    rng = np.random.default_rng(7)
    for _ in range(effort.drawn(60)):
        population, sample, epsilon = int(rng.integers(2, 5)), int(rng.integers(1, 4)), float(rng.uniform(0.1, 1.5))
        scores = epsilon / 2 * rng.choice([0.0, 1.0, 0.5], size=(population, 3))
        moved = scores.copy()
        moved[0] = epsilon / 2 * rng.choice([0.0, 1.0], size=3)
        drawn, laws = sequences(population, sample), []
        for table in (scores, moved):
            weight = np.exp(table[drawn].sum(axis=1))
            laws.append((weight / weight.sum(axis=1, keepdims=True)).mean(axis=0))
        scheme = WithReplacement(sample, population)
        pair = claimed_pair(cm.PureDP(epsilon), scheme)
        asked = np.array([0.0, 0.1 * epsilon, epsilon, 2 * epsilon])
        claimed, divergences = pair.profile(asked), pair.curve().rdp([1.5, 2, 30, math.inf])
        for p, q in (laws, laws[::-1]):
            assert (np.array([hockey_stick(p, q, e) for e in asked]) <= claimed * SLIP + 1e-13).all()
            needed = [*(renyi(p, q, a) for a in (1.5, 2, 30)), float(np.log(p / q).max())]
            assert (np.array(needed) <= divergences * SLIP + 1e-12).all()


def test_two_adaptive_rounds() -> None:
    rng = random.Random(6)
    edges = np.concatenate([[-np.inf], np.linspace(-6, 8, 40), [np.inf]])
    for _ in range(effort.drawn(5)):
        population, sample = rng.randint(2, 3), rng.randint(1, 3)
        drawn = sequences(population, sample)
        first = [[rng.choice((0.0, 1.0)) for _ in range(population)] for _ in range(2)]
        second = [[rng.choice((0.0, 1.0)) for _ in range(population)] for _ in range(edges.size - 1)]
        flips = [rng.choice((0.0, 1.0)) for _ in range(edges.size - 1)]
        laws = []
        for odd in (False, True):  # data sets that differ in the first record
            start = law([first[odd][0], *first[0][1:]], drawn, 1.0, edges)
            rows = [a * law([flip if odd else each[0], *each[1:]], drawn, 1.0, edges)
                    for a, each, flip in zip(start, second, flips, strict=True)]  # fmt: skip
            laws.append(np.concatenate(rows))
        run = cm.Gaussian(sigma=1) @ WithReplacement(sample, population) * 2
        for epsilon in (0.0, 0.5, 1.5):
            claimed = run.delta(epsilon=epsilon)
            assert hockey_stick(laws[0], laws[1], epsilon) <= claimed * SLIP
            assert hockey_stick(laws[1], laws[0], epsilon) <= claimed * SLIP


def test_one_draw_is_a_sample_without_replacement() -> None:
    for base in (cm.Gaussian(sigma=2), cm.Laplace(scale=2), cm.PureDP("0.5")):
        one, other = (
            base @ WithReplacement(sample=1, population=50),
            base @ cm.WithoutReplacement(sample=1, population=50),
        )
        assert one.delta(epsilon="0.01") == pytest.approx(other.delta(epsilon="0.01"), rel=1e-9)
        orders = [1.5, 2, 20]
        assert one.rdp(orders) == pytest.approx(other.rdp(orders, bound="profile"), rel=1e-9)
        # of samples without replacement more is known
        assert (one * 20).delta(epsilon="0.1") >= (other * 20).delta(epsilon="0.1") * (1 - 2e-2)


def test_replacing_costs_more() -> None:
    """A record may be there twice; for small samples that is rare."""
    with_it = cm.Gaussian(sigma=1) @ WithReplacement(sample=256, population=60_000)
    without = cm.Gaussian(sigma=1) @ cm.WithoutReplacement(sample=256, population=60_000)
    for epsilon, factor in (("0.01", 1.006), ("0.1", 1.5)):
        assert 1 < with_it.delta(epsilon=epsilon) / without.delta(epsilon=epsilon) < factor
    deltas = [(cm.Gaussian(sigma=4) @ WithReplacement(m, 10)).delta(epsilon="0.1") for m in (1, 2, 5, 20)]
    assert deltas == sorted(deltas)


def test_copies_beyond_reach_leak() -> None:
    rate, weights, leak = copies(300, 100, tail := Fraction(1, 2**200))
    assert 0 < leak <= tail
    assert float(sum(weights)) == pytest.approx(1, abs=1e-12)
    assert float(rate) == pytest.approx(1 - 0.99**300, rel=1e-12)
    run = cm.Gaussian(sigma=5) @ WithReplacement(300, 100) * 3
    found = run.guarantee(delta="1e-6")
    assert found.lower is None
    assert math.isfinite(found.epsilon)
    assert run.epsilon("1e-80") == math.inf


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sample": 0, "population": 10}, "sample=0 must be an integer"),
        ({"sample": "1.5", "population": 10}, "sample=1.5 must be an integer"),
        ({"sample": 1, "population": True}, "population=True must be an integer"),
    ],
    ids=["nothing", "half", "truth"],
)
def test_bad_input(given: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        WithReplacement(**given)


def test_what_is_refused() -> None:
    scheme = WithReplacement(sample=5, population=50)
    with pytest.raises(cm.HypothesisError, match="also known for several records at once"):
        cm.ZeroConcentrated(rho=1) @ scheme
    with pytest.raises(cm.HypothesisError, match="give each mechanism a sample of its own"):
        (cm.Gaussian(sigma=1) * 3) @ scheme
    with pytest.raises(cm.HypothesisError, match="give each mechanism a sample of its own"):
        (cm.Gaussian(sigma=1) + cm.Laplace(scale=1)) @ scheme
    with pytest.raises(cm.HypothesisError, match="carries slack"):
        (cm.ApproximateDP("0.1", "1e-6") @ scheme).epsilon(1e-3)
    with pytest.raises(cm.RelationError, match="WithReplacement makes replace-one statements"):
        cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove") @ scheme


def test_text_and_calibration() -> None:
    run = cm.Gaussian(sigma=2) @ WithReplacement(sample=100, population=1000) * 3
    assert cm.parse(str(run)) == run
    assert "sensitivities are per copy" in run.guarantee(delta="1e-6").explain()
    one = (cm.Gaussian(sigma=2) @ WithReplacement(sample=100, population=1000)).guarantee(epsilon="0.1")
    assert (one.rigour, one.evidence.bound, one.lower) == ("proved", "with-replacement", None)
    text = "Gaussian(sigma=?) @ WithReplacement(sample=3, population=1000) * 3"
    assert cm.calibrate(text, epsilon=1, delta="1e-6").guarantee.epsilon <= 1


def test_what_is_drawn_over_and_over() -> None:
    with pytest.raises(cm.InputError, match="draws every record more than 32 times on average"):
        cm.WithReplacement(sample=97, population=3)
    # one record: it is there as often as is drawn
    many = cm.Gaussian(sigma=1000) @ cm.WithReplacement(sample=32, population=1)
    assert many.epsilon(delta=1e-6) == pytest.approx(cm.Gaussian(sigma="31.25").epsilon(delta=1e-6), rel=1e-9)
    edge = cm.Gaussian(sigma=1000) @ cm.WithReplacement(sample=96, population=3)
    assert 0 < edge.epsilon(delta=1e-6) < math.inf


def test_gaussian_mu_counts_every_copy() -> None:
    """A record that is drawn 20 times moves the sum 20 times as far."""
    run = cm.Gaussian(sigma=1) @ cm.WithReplacement(sample=20, population=100)
    assert run.gaussian_mu() == 20
    assert (run * 4).gaussian_mu() == pytest.approx(40)
    assert (cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate="0.2")).gaussian_mu() == 1
    assert (cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=5)).gaussian_mu() == 1


@pytest.mark.parametrize("scale", [1, 20])
@pytest.mark.parametrize(("sample", "population"), [(40, 10), (60, 200), (256, 60_000)])
def test_divergences_are_finite_and_hold(sample: int, population: int, scale: int) -> None:
    """Many copies are unlikely and count all the same: the record moves the sum by k with the probability of k copies."""
    run = cm.DiscreteLaplace(scale=scale) @ cm.WithReplacement(sample=sample, population=population)
    x, k = np.arange(-60.0 * scale, sample + 60.0 * scale), np.arange(sample + 1)
    log_p = logsumexp(stats.binom.logpmf(k, sample, 1 / population)[:, None] - np.abs(x - k[:, None]) / scale, axis=0)
    log_p, log_q = (each + math.log(math.tanh(0.5 / scale)) for each in (log_p, -np.abs(x) / scale))
    for order in (1.5, 2.0, 6.0):
        found = run.rdp(order)
        assert math.isfinite(found)
        for one, other in ((log_p, log_q), (log_q, log_p)):
            assert logsumexp(order * one + (1 - order) * other) / (order - 1) <= found * (1 + 1e-9)
    assert run.kl() <= run.rdp(1.5)


def test_divergences_of_gaussian_noise_are_finite() -> None:
    gaussian = cm.Gaussian(sigma=2, sensitivity=2, geometry="ball") @ cm.WithReplacement(sample=256, population=60_000)
    assert math.isfinite(gaussian.rdp(2))
    assert math.isfinite((gaussian * 10 + cm.Gaussian(sigma=1)).rdp(2))
    assert gaussian.kl() < 1e-4


@pytest.mark.parametrize("mechanism", [cm.DiscreteLaplace(scale=1), cm.Gaussian(sigma=3)], ids=str)
def test_no_copies_are_left_out_of_divergences(mechanism: cm.Mechanism) -> None:
    """Steps of a quarter are no less than all of them one by one, which for few draws are within reach."""
    scheme, pair = WithReplacement(sample=60, population=10), mechanism.pair()
    assert pair is not None
    every = scheme._public_choice(pair, Fraction(0))
    assert every is not None
    assert every.curve().slack() == 0
    assert scheme.curve(mechanism.curve, pair, "best", "").slack() > 0
    for order in (2.0, 8.0, 20.0):
        needed, found = float(every.curve().rdp([order])[0]), float((mechanism @ scheme).rdp(order))
        assert needed * (1 - 1e-9) <= found <= 1.5 * needed
