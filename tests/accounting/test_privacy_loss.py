"""Privacy losses by their definition: enumerated laws, directions of sampled runs, negative epsilons, Bayes risk, mu."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
from cumulant.accounting.choices import Direction
from tests.effort import drawn
from tests.mechanisms.brute import Law, hockey_stick, product

EPSILONS = [-2.0, -0.3, 0.0, 0.2, 1.0]


def responses(p: Fraction, rate: float, rounds: int) -> tuple[Law, Law]:
    """Output laws with the record and without it: binary response on Poisson samples, by enumeration."""
    yes, no = np.array([float(p), 1 - float(p)]), np.array([1 - float(p), float(p)])
    with_it, without = (1 - rate) * no + rate * yes, no
    return product([with_it] * rounds), product([without] * rounds)


@pytest.mark.parametrize(("rate", "rounds"), [(0.25, 1), (0.25, 4), (0.9, 3)])
def test_directions_of_sampled_responses(rate: float, rounds: int) -> None:
    """Each direction from above, within the accuracy of a grid; at every real epsilon."""
    run = cm.RandomizedResponse(p="3/4") @ cm.Poisson(rate=rate) * rounds
    p, q = responses(Fraction(3, 4), rate, rounds)
    ways: dict[Direction, tuple[Law, Law]] = {"remove": (p, q), "add": (q, p)}
    for direction, (first, second) in ways.items():
        loss = run.privacy_loss(direction)
        found = np.asarray(loss.hockey_stick(EPSILONS))
        needed = np.array([hockey_stick(first, second, x) for x in EPSILONS])
        assert (found >= needed * (1 - 1e-12)).all()
        assert (found <= needed * (1 + 2e-2) + 1e-3).all()
        enough = loss.epsilon(1e-3)
        assert hockey_stick(first, second, enough) <= 1e-3 * (1 + 1e-9)
    both = np.asarray(run.privacy_loss().hockey_stick(EPSILONS))
    assert (both >= np.asarray(run.privacy_loss("remove").hockey_stick(EPSILONS)) * (1 - 1e-9)).all()


def answered(data: Law, rate: float, bits: Law) -> Law:
    """Binary response, for each instance about a bit of the sum of a Poisson sample: every subset by its probability."""
    shares = np.zeros(len(data))
    for inside in itertools.product((0, 1), repeat=data.shape[1]):
        weight = math.prod(rate if i else 1 - rate for i in inside)
        shares += weight * bits[np.arange(len(data)), data @ np.array(inside)]
    return np.stack([0.25 + 0.5 * shares, 0.75 - 0.5 * shares], axis=1)


def adapted(data: Law, rate: float, bits: Law, rounds: int) -> Law:
    """The next question depends on the answer: `bits` has one table for each node of the tree of answers."""
    first = answered(data, rate, bits[0])
    if rounds == 1:
        return first
    half = (len(bits) - 1) // 2
    after = [adapted(data, rate, part, rounds - 1) for part in (bits[1 : 1 + half], bits[1 + half :])]
    return np.concatenate([first[:, [i]] * after[i] for i in (0, 1)], axis=1)


@pytest.mark.parametrize(("rate", "rounds"), [(0.25, 1), (0.6, 1), (0.25, 2), (0.6, 2), (0.4, 3)])
def test_directions_of_enumerated_data_sets(rate: float, rounds: int) -> None:
    """500 data sets with and without a record, every bit of every sum, adaptively: each direction alone is enough for it."""
    rng = np.random.default_rng(rounds)
    others, record = rng.integers(0, 3, (500, 2)), rng.integers(0, 3, (500, 1))
    others[::3] = 0  # nothing hides the record
    bits = rng.integers(0, 2, (2**rounds - 1, 500, 7))
    with_it, without = (adapted(data, rate, bits, rounds) for data in (np.hstack([others, record]), others))
    run = cm.RandomizedResponse(p="3/4") @ cm.Poisson(rate=rate) * rounds
    xs, found = [-0.4, 0.0, 0.3, 0.6], []
    ways: dict[Direction, Any] = {"remove": (with_it, without), "add": (without, with_it)}
    for direction, (p, q) in ways.items():
        needed = np.array([np.maximum(p - math.exp(x) * q, 0).sum(axis=1) for x in xs])
        claimed = np.asarray(run.privacy_loss(direction).hockey_stick(xs))
        assert (needed <= claimed[:, None] * (1 + 1e-12) + 1e-14).all()
        assert (needed.max(axis=1) >= 0.98 * claimed)[:2].all()
        found.append((needed.max(axis=1), claimed))
    (removed, _), (_, adding) = found
    assert (removed > adding * 1.01).any()  # each direction for itself: exchanged they would not be enough


def tail(p: Law, q: Law, x: float) -> float:
    return float(p[np.log(p / q) > x + 1e-12].sum())


def finite(rng: np.random.Generator, size: int) -> tuple[cm.Mechanism, Law, Law]:
    """A mechanism of two neighbours with random laws on a few outputs, and the laws."""
    masses = rng.integers(1, 60, (2, size))
    run = cm.from_masses(*([Fraction(int(x), int(row.sum())) for x in row] for row in masses))
    p, q = (row / row.sum() for row in masses)
    return run, p, q


def test_tails_and_quantiles_of_enumerated_laws() -> None:
    """600 mechanisms. No garbling of a pair has a larger tail, although many have a larger one than the pair itself."""
    rng, above, shares = np.random.default_rng(3), 0, []
    for i in range(100):
        run, p, q = finite(rng, 5)
        loss = run.privacy_loss()
        x = float(rng.choice([-0.4, 0.05, 0.3, 0.8, 1.5]))
        most, least = loss.tail(x), loss.cdf(x)
        quantile = loss.quantile("0.9") if i % 5 == 0 else math.inf
        kernels = rng.dirichlet(np.full(3, 0.4), (5, 5)) + 1e-9
        garbled = [(p @ kernel, q @ kernel) for kernel in kernels / kernels.sum(axis=2, keepdims=True)]
        for one, other in ((p, q), *garbled):
            for first, second in ((one, other), (other, one)):
                needed = tail(first, second, x)
                assert needed <= most * (1 + 1e-12)
                assert 1 - needed >= least - 1e-12
                assert tail(first, second, quantile) <= 0.1 + 1e-12
                above += needed > max(tail(p, q, x), tail(q, p, x)) + 1e-9
                shares.append(needed / most if most else 0.0)
        assert loss.mean >= float((p * np.log(p / q)).sum()) - 1e-12
    assert above > 10
    assert max(shares) > 0.8


def test_a_gaussian_loss() -> None:
    loss = cm.Gaussian(sigma=1).privacy_loss()
    for x in (0.5, 2.0, 5.0):
        exact = float(stats.norm.sf(x - 0.5))
        assert exact <= loss.tail(x) <= 10 * exact
    assert stats.norm.cdf(loss.quantile("0.999") - 0.5) >= 0.999
    assert loss.quantile(1) == math.inf
    assert loss.mean == pytest.approx(0.5)
    assert loss.hockey_stick(-1) == pytest.approx(
        float(stats.norm.cdf(1.5) - math.exp(-1) * stats.norm.cdf(0.5)), rel=1e-12
    )


@pytest.mark.parametrize(
    "run", [cm.PureDP(1), cm.Gaussian(sigma=2) * 3, cm.Laplace(scale=2), cm.ApproximateDP(1, "1e-3")], ids=str
)
def test_negative_epsilons(run: cm.Expression) -> None:
    """H_{e^-x}(P||Q) = 1 - e^-x + e^-x H_{e^x}(Q||P), and in an array as alone."""
    for x in (0.1, 2.0):
        mirrored = 1 - math.exp(-x) * (1 - run.delta(x))
        assert mirrored * (1 - 1e-14) <= run.delta(-x) <= mirrored * (1 + 1e-14)
    assert run.delta([-2, -0.1, 0.1])[1] == pytest.approx(run.delta(-0.1), rel=1e-8)
    assert run.delta(-1000) == 1
    with pytest.raises(cm.InputError, match=r"epsilon=-1 must be .* run\.delta\(epsilon=…\)"):
        run.guarantee(epsilon=-1)


RULES = np.array(list(itertools.product((0, 1), repeat=4)))


def test_bayes_risk() -> None:
    """The least sum of both errors over all decision rules, enumerated."""
    rng = np.random.default_rng(8)
    for _ in range(drawn(200)):
        run, p, q = finite(rng, 4)
        prior = round(float(rng.uniform(0.02, 0.98)), 3)
        errors = [prior * (1 - RULES @ x) + (1 - prior) * (RULES @ y) for x, y in ((p, q), (q, p))]
        least = np.min(errors)
        assert least * (1 - 1e-9) - 1e-12 <= run.bayes_risk(prior) <= least * (1 + 1e-12)
    assert cm.PureDP(1).bayes_risk(0) == cm.PureDP(1).bayes_risk(1) == 0
    assert cm.Gaussian(sigma=1).bayes_risk() == pytest.approx(float(stats.norm.cdf(-0.5)), rel=1e-12)


@pytest.mark.parametrize(
    ("run", "mu"),
    [
        (cm.Gaussian(sigma=2) * 9, 1.5),
        (cm.Gaussian(sigma=1, squared_sensitivity=2) * 2 + cm.GaussianDP(mu=1), math.sqrt(5)),
        (cm.PureDP(1), 2 * float(stats.norm.isf(1 / (1 + math.e)))),
        (cm.RandomizedResponse(p="3/4") @ cm.Poisson(rate="0.5"), None),
        (cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1") * 4, 2.0),
        ((cm.Gaussian(sigma=1) * 2 + cm.Laplace(scale=1)) @ cm.WithoutReplacement(rate="0.3"), None),
        (cm.Laplace(scale=2) + cm.Gaussian(sigma=4), None),
        (cm.ZeroConcentrated(rho=1), math.inf),
        (cm.ApproximateDP(1, "1e-6"), math.inf),
    ],
    ids=str,
)
def test_gaussian_mu(run: cm.Expression, mu: float | None) -> None:
    """delta of the run is at most that of N(mu, 1) at every epsilon."""
    found = run.gaussian_mu()
    if mu is not None:
        assert found == pytest.approx(mu, rel=1e-12)
    if math.isfinite(found):
        other = cm.GaussianDP(mu=found)
        for x in (0, 0.1, 0.7, 2.0):
            assert (run.guarantee(epsilon=x).lower or 0) <= other.delta(x) * (1 + 1e-9)


def test_targets_of_calibrations() -> None:
    found = cm.calibrate("Gaussian(sigma=?) * 10", advantage="0.1")
    exact = math.sqrt(10) / (2 * float(stats.norm.ppf(0.55)))
    assert exact <= float(found.value) <= exact + 2e-4
    assert found.run.advantage() <= 0.1 < cm.parse(f"Gaussian(sigma={found.fails}) * 10").advantage()
    assert found.guarantee.delta <= 0.1
    found = cm.calibrate("Gaussian(sigma=?)", tpr="0.05", fpr="0.01", digits=3)
    shift = float(stats.norm.ppf(0.05) - stats.norm.ppf(0.01))
    assert 1 / shift <= float(found.value) <= 1.05 / shift
    assert found.run.true_positive_rate("0.01") <= 0.05
    for wrong in ({}, {"epsilon": 1}, {"advantage": "0.1", "epsilon": 1, "delta": 0}, {"tpr": "0.1"}):
        with pytest.raises(cm.InputError, match="give one target"):
            cm.calibrate("Gaussian(sigma=?)", **wrong)
    with pytest.raises(cm.InputError, match="which guessing has"):
        cm.calibrate("Gaussian(sigma=?)", tpr="0.01", fpr="0.1")
    with pytest.raises(cm.InputError, match="takes no bound"):
        cm.calibrate("Gaussian(sigma=?)", advantage="0.1", method="rdp", bound="theorem9")


def test_what_is_refused() -> None:
    with pytest.raises(cm.RelationError, match="either of them may come first"):
        cm.KaryResponse(values=3, p="1/2").privacy_loss("add")
    with pytest.raises(cm.InputError, match="choose one of both, remove, add"):
        cm.PureDP(1).privacy_loss("up")  # type: ignore[arg-type]


def test_one_direction_of_one_round_is_exact() -> None:
    """Both directions of sampled masses by enumeration, to the last digits, as `delta` answers for both at once."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        run, p, q = finite(rng, 4)
        rate = float(rng.choice([0.1, 0.5, 0.9]))
        sampled = run @ cm.Poisson(rate=rate)
        removed, added = sampled.privacy_loss("remove"), sampled.privacy_loss("add")
        mixed = [((1 - rate) * q + rate * p, q), ((1 - rate) * p + rate * q, p)]
        for x in (-0.3, 0.0, 0.05, 0.4):
            there = max(hockey_stick(one, other, x) for one, other in mixed)
            back = max(hockey_stick(other, one, x) for one, other in mixed)
            assert removed.hockey_stick(x) == pytest.approx(there, rel=1e-12, abs=1e-14)
            assert added.hockey_stick(x) == pytest.approx(back, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_largest_loss_of_a_record_added(rounds: int) -> None:
    """A sample without the record has probability 1 - rate, so that the loss is at most -log(1 - rate) in each round."""
    gaussian = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1") * rounds
    assert gaussian.privacy_loss("add").epsilon(0) == pytest.approx(-rounds * math.log(0.9), rel=1e-12)
    assert gaussian.privacy_loss("add").epsilon(0) >= -rounds * math.log1p(-0.1)
    assert gaussian.privacy_loss("remove").epsilon(0) == math.inf
    assert gaussian.privacy_loss("add").hockey_stick(rounds * 0.11) == 0
    response = cm.RandomizedResponse(p="3/4") @ cm.Poisson(rate="0.3") * rounds
    needed: dict[Direction, float] = {"remove": math.log(0.7 + 0.9), "add": -math.log(0.7 + 0.1)}
    for direction, each in needed.items():
        assert response.privacy_loss(direction).epsilon(0) == pytest.approx(rounds * each, rel=1e-12)
    mixture = cm.GaussianMixture(sigma=1, shifts=[0, 1, 2], weights=["0.8", "0.1", "0.1"]) * rounds
    assert mixture.privacy_loss("add").epsilon(0) == pytest.approx(-rounds * math.log(0.8), rel=1e-12)
    without = cm.GaussianMixture(sigma=1, shifts=[1, 2], weights=["0.5", "0.5"])
    assert without.privacy_loss("add").epsilon(0) == math.inf


def test_a_direction_takes_an_accuracy() -> None:
    run = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.2") * 4
    loss = run.privacy_loss("add")
    rough, fine = (loss.hockey_stick("0.2", accuracy=accuracy) for accuracy in ("0.1", "1e-5"))
    assert fine < rough
    assert loss.epsilon(1e-3, accuracy="1e-5") < loss.epsilon(1e-3, accuracy="0.1")
    with pytest.raises(cm.InputError, match="accuracy"):
        loss.hockey_stick(1, accuracy=-1)
