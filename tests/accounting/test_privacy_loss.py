"""Privacy losses by their definition: enumerated laws, directions of sampled runs, negative epsilons, Bayes risk, mu."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
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
    for direction, (first, second) in {"remove": (p, q), "add": (q, p)}.items():
        loss = run.privacy_loss(direction)
        found = np.asarray(loss.hockey_stick(EPSILONS))
        needed = np.array([hockey_stick(first, second, x) for x in EPSILONS])
        assert (found >= needed * (1 - 1e-12)).all()
        assert (found <= needed * (1 + 2e-2) + 1e-3).all()
        enough = loss.epsilon(1e-3)
        assert hockey_stick(first, second, enough) <= 1e-3 * (1 + 1e-9)
    both = np.asarray(run.privacy_loss().hockey_stick(EPSILONS))
    assert (both >= np.asarray(run.privacy_loss("remove").hockey_stick(EPSILONS)) * (1 - 1e-9)).all()


def tail(p: Law, q: Law, x: float) -> float:
    return float(p[np.log(p / q) > x + 1e-12].sum())


def test_tails_and_quantiles_of_enumerated_laws() -> None:
    """No garbling of the pair has a larger tail, although many have a larger one than the pair itself."""
    rng, above = np.random.default_rng(3), 0
    for _ in range(20):
        masses = rng.integers(1, 60, (2, 5))
        run = cm.from_masses(*([Fraction(int(x), int(row.sum())) for x in row] for row in masses))
        p, q = (row / row.sum() for row in masses)
        loss = run.privacy_loss()
        xs = [0.05, 0.3, 0.8, 1.5]
        tails, lows = np.asarray(loss.tail(xs)), np.asarray(loss.cdf(xs))
        quantile = loss.quantile("0.9")
        kernel = rng.dirichlet(np.full(3, 0.4), 5)
        for first, second in ((p, q), (q, p), (p @ kernel, q @ kernel), (q @ kernel, p @ kernel)):
            needed = np.array([tail(first, second, x) for x in xs])
            assert (needed <= tails * (1 + 1e-12)).all()
            assert (1 - needed >= lows - 1e-12).all()
            assert tail(first, second, quantile) <= 0.1 + 1e-12
            above += tail(first, second, 0.3) > max(tail(p, q, 0.3), tail(q, p, 0.3))
        assert loss.mean >= float((p * np.log(p / q)).sum()) - 1e-12
    assert above > 0


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
    with pytest.raises(cm.InputError, match="epsilon=-1 must be"):
        run.guarantee(epsilon=-1)


def test_bayes_risk() -> None:
    """The least sum of both errors over all decision rules, enumerated."""
    rng = np.random.default_rng(8)
    for _ in range(30):
        masses = rng.integers(1, 40, (2, 4))
        run = cm.from_masses(*([Fraction(int(x), int(row.sum())) for x in row] for row in masses))
        p, q = (row / row.sum() for row in masses)
        for prior in (0.05, 0.4, 0.5, 0.9):
            rules = itertools.product((0, 1), repeat=4)
            least = min(
                prior * (1 - (np.array(rule) * x).sum()) + (1 - prior) * (np.array(rule) * y).sum()
                for rule in rules
                for x, y in ((p, q), (q, p))
            )
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
    found = run.gaussian_mu
    if mu is not None:
        assert found == pytest.approx(mu, rel=1e-12)
    if math.isfinite(found):
        other = cm.GaussianDP(mu=found)
        for x in (0, 0.1, 0.7, 2.0):
            assert (run.guarantee(epsilon=x).lower_delta or 0) <= other.delta(x) * (1 + 1e-9)


def test_targets_of_calibrations() -> None:
    found = cm.calibrate("Gaussian(sigma=?) * 10", advantage="0.1")
    exact = math.sqrt(10) / (2 * float(stats.norm.ppf(0.55)))
    assert exact <= float(found.value) <= exact + 2e-4
    assert found.run.advantage <= 0.1 < cm.parse(f"Gaussian(sigma={found.fails}) * 10").advantage
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
    with pytest.raises(cm.RelationError, match="either may be the first"):
        cm.KaryResponse(values=3, p="1/2").privacy_loss("add")
    with pytest.raises(cm.InputError, match="choose one of both, remove, add"):
        cm.PureDP(1).privacy_loss("up")
