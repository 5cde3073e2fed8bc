"""Posterior sampling as a mechanism: brute force over data sets, composition, samples, text."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import cumulant as cm
from cumulant.mechanisms.posterior import DirichletPosterior, GaussianMeanPosterior, PosteriorSampling


def by_quadrature(first: Any, second: Any, low: float, high: float, a: float) -> float:
    """The Rényi divergence of two posteriors, integrated from their densities."""
    total = integrate.quad(
        lambda x: math.exp(a * first.logpdf(x) + (1 - a) * second.logpdf(x)), low, high, epsrel=1e-11
    )
    return math.log(total[0]) / (a - 1)


@pytest.mark.parametrize(("a", "b", "records", "tempering"), [(2, 3, 4, 1), (4, 2.5, 3, 0.5), (3, 3, 1, 1.5)])
def test_beta_bernoulli_is_the_worst_of_all_data_sets(a: float, b: float, records: int, tempering: float) -> None:
    mechanism = PosteriorSampling.beta_bernoulli(prior=(a, b), records=records, tempering=tempering)
    for order in (1.3, 2.0):
        worst = 0.0
        for heads in range(records):  # data sets with `heads` and with `heads + 1` heads are neighbours
            one, other = (stats.beta(a + tempering * h, b + tempering * (records - h)) for h in (heads, heads + 1))
            worst = max(worst, by_quadrature(one, other, 0, 1, order), by_quadrature(other, one, 0, 1, order))
        assert mechanism.rdp(order) == pytest.approx(worst, rel=1e-7)


def test_gaussian_mean_is_the_worst_of_all_data_sets() -> None:
    """Records in [-1, 2], variance 2, prior N(0.7, 2), tempering 0.8, three records."""
    mechanism = PosteriorSampling.gaussian_mean(3, variance=2, records=3, prior_precision="0.5", tempering="0.8")
    precision = 0.5 + 0.8 * 3 / 2
    for order in (1.3, 2.0, 2.6):
        worst = 0.0
        for rest in itertools.product((-1.0, 2.0), repeat=2):
            for x, y in itertools.permutations((-1.0, 0.5, 2.0), 2):
                one, other = (
                    stats.norm((0.5 * 0.7 + 0.8 * (sum(rest) + z) / 2) / precision, precision**-0.5) for z in (x, y)
                )
                worst = max(worst, by_quadrature(one, other, -9, 9, order))
        assert mechanism.rdp(order) == pytest.approx(worst, rel=1e-8)


def test_no_neighbours_of_a_small_dirichlet_model_exceed_the_bound() -> None:
    """Every pair of data sets of four records in three categories, the divergence of the draw sampled on the simplex."""
    prior, records, order = np.array([1.5, 2.0, 4.0]), 4, 2.0
    mechanism = PosteriorSampling.dirichlet(prior=[1.5, 2, 4], records=records, tempering="0.5")
    bound = mechanism.rdp(order)
    worst = 0.0
    for data in itertools.product(range(3), repeat=records):
        for other in range(3):
            changed = (*data[:-1], other)
            one, two = (prior + 0.5 * np.bincount(d, minlength=3) for d in (data, changed))
            # int p^2/q over the simplex: Dirichlet densities with parameters 2 one - two, by its normalising constant
            mixed = order * one - (order - 1) * two
            norm = [math.fsum(map(math.lgamma, v)) - math.lgamma(float(np.sum(v))) for v in (mixed, one, two)]
            worst = max(worst, norm[0] - 2 * norm[1] + norm[2])
    assert bound == pytest.approx(worst, rel=1e-12)


def test_it_composes_and_is_stated_for_replace_one() -> None:
    draw = PosteriorSampling.beta_bernoulli(prior=(50, 50), records=200)
    assert draw.relation is cm.Relation.REPLACE_ONE
    assert (draw * 3 + cm.Gaussian(sigma=5)).rdp(2) == pytest.approx(3 * draw.rdp(2) + 0.04, rel=1e-12)
    # one extra observation moves Beta(50, .): D_2 is near 2 (1/50 + 1/250) / 2
    assert draw.rdp(2) == pytest.approx(0.024, rel=0.05)
    assert draw.pure() == math.inf
    assert draw.epsilon(delta=1e-6) < 2
    with pytest.raises(cm.RelationError):
        draw + cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove")


def test_on_a_sample_it_is_amplified() -> None:
    draw = PosteriorSampling.gaussian_mean(diameter=1, variance=1, records=100, prior_precision=4)
    run = draw @ cm.WithoutReplacement(sample=100, population=10_000) * 500
    same = (
        cm.Gaussian(sigma=math.sqrt(104)) @ cm.WithoutReplacement(rate="0.01") * 500
    )  # the move is 1/104, sd 104^-0.5
    assert run.epsilon(delta=1e-6, method="paper") == pytest.approx(same.epsilon(delta=1e-6, method="paper"), rel=1e-9)


def test_two_categories_are_beta_bernoulli() -> None:
    assert PosteriorSampling.dirichlet([1, 2], 30, "0.25") == PosteriorSampling.beta_bernoulli((1, 2), 30, 0.25)
    assert PosteriorSampling.dirichlet([1, 2], 30) != PosteriorSampling.dirichlet([1, 2], 31)


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        (
            PosteriorSampling.beta_bernoulli(prior=(1, "1/3"), records=1000, tempering="0.10"),
            'DirichletPosterior(prior=[1, "1/3"], records=1000, tempering=0.10)',
        ),
        (
            PosteriorSampling.gaussian_mean(diameter=2, variance="0.5", records=64),
            "GaussianMeanPosterior(diameter=2, variance=0.5, records=64)",
        ),
    ],
)
def test_text(mechanism: cm.Mechanism, text: str) -> None:
    assert str(mechanism) == text
    assert cm.parse(text) == mechanism
    run = mechanism @ cm.WithoutReplacement(rate="1/3") * 12
    assert cm.parse(str(run)) == run


def test_wrong_input() -> None:
    with pytest.raises(cm.InputError, match="at least two categories"):
        PosteriorSampling.dirichlet(prior=[1], records=10)
    with pytest.raises(cm.InputError, match="two parameters of a beta law"):
        PosteriorSampling.beta_bernoulli(prior=(1, 1, 1), records=10)  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="records"):
        DirichletPosterior(prior=[1, 1], records="2.5")
    with pytest.raises(cm.InputError, match=r"prior\[1\]=0"):
        DirichletPosterior(prior=[1, 0], records=5)
    with pytest.raises(cm.InputError, match="tempering"):
        GaussianMeanPosterior(diameter=1, variance=1, records=5, tempering=0)


@pytest.mark.parametrize(
    ("diameter", "variance", "records", "precision"), [(2, 4, 100, 1), (1, 1, 3, 0), (3, "0.5", 9, 2)]
)
def test_a_gaussian_mean_has_the_profile_of_two_normal_laws(
    diameter: float, variance: float | str, records: int, precision: float
) -> None:
    """N(0, 1/P) against N(t D/(v P), 1/P), P = precision + n/v: the area above the other density, by a sum over a grid."""
    draw = GaussianMeanPosterior(diameter=diameter, variance=variance, records=records, prior_precision=precision)
    v = float(variance)
    total = precision + records / v
    moved, deviation = diameter / (v * total), 1 / math.sqrt(total)
    x = np.linspace(-12 * deviation, moved + 12 * deviation, 400_001)
    first, second = (np.exp(-((x - at) ** 2) * total / 2) * math.sqrt(total / (2 * math.pi)) for at in (moved, 0.0))
    for epsilon in (0.05, 0.5, 1.5):
        truth = float(np.maximum(first - math.exp(epsilon) * second, 0).sum() * (x[1] - x[0]))
        assert draw.delta(epsilon) == pytest.approx(truth, rel=1e-4, abs=1e-12)
    found = draw.guarantee(delta="1e-6")
    assert found.lower is not None
    assert found.rigour == "proved"
    assert found.epsilon == pytest.approx(found.lower, rel=1e-9)  # by divergences alone 8 to 9 % above
