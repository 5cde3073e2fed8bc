"""Exponential families against sums and integrals of their densities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from scipy import integrate, special, stats

from cumulant.errors import InputError
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.gaps import log_gamma_gap, log_gap
from cumulant.paper.families import (
    Bernoulli,
    Exponential,
    Family,
    Gamma,
    Gaussian,
    GaussianMean,
    LogPartition,
    Multinomial,
    Poisson,
)

ORDERS = [0.3, 1.0, 1.001, 1.7, 2.0, 4.0]


def of_masses(p: Any, q: Any, order: float) -> float:
    p, q = np.asarray(p, float), np.asarray(q, float)
    if order == 1:
        return float(np.sum(special.rel_entr(p, q)))
    return math.log(math.fsum(np.exp(order * np.log(p) + (1 - order) * np.log(q)))) / (order - 1)


def of_densities(
    log_p: Callable[[float], float], log_q: Callable[[float], float], low: float, high: float, order: float
) -> float:
    if order == 1:
        return float(
            integrate.quad(lambda x: math.exp(log_p(x)) * (log_p(x) - log_q(x)), low, high, epsabs=0, epsrel=1e-12)[0]
        )
    total = integrate.quad(
        lambda x: math.exp(order * log_p(x) + (1 - order) * log_q(x)), low, high, epsabs=0, epsrel=1e-12, limit=400
    )[0]
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("order", ORDERS)
def test_finite_families_by_summation(order: float) -> None:
    family: Family = Bernoulli()
    found = family.divergence(Bernoulli.natural(0.3), Bernoulli.natural(0.6), order)
    assert found == pytest.approx(of_masses([0.3, 0.7], [0.6, 0.4], order), rel=1e-9)
    p, q = [0.2, 0.3, 0.5], [0.3, 0.6, 0.1]
    outcomes = [(i, j, 3 - i - j) for i in range(4) for j in range(4 - i)]
    found = Multinomial(3).divergence(Multinomial.natural(p), Multinomial.natural(q) + 5.0, order)
    truth = of_masses(stats.multinomial.pmf(outcomes, 3, p), stats.multinomial.pmf(outcomes, 3, q), order)
    assert found == pytest.approx(truth, rel=1e-9)
    n = np.arange(120)
    found = Poisson().divergence(Poisson.natural(3.0), Poisson.natural(2.0), order)
    assert found == pytest.approx(of_masses(stats.poisson.pmf(n, 3.0), stats.poisson.pmf(n, 2.0), order), rel=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_continuous_families_by_quadrature(order: float) -> None:
    found = Exponential().divergence(Exponential.natural(1.5), Exponential.natural(1.9), order)
    truth = of_densities(stats.expon(scale=1 / 1.5).logpdf, stats.expon(scale=1 / 1.9).logpdf, 0, 150, order)
    assert found == pytest.approx(truth, rel=1e-9)
    found = Gamma().divergence(Gamma.natural(5.0, 3.0), Gamma.natural(5.5, 2.5), order)
    truth = of_densities(stats.gamma(5.0, scale=1 / 3).logpdf, stats.gamma(5.5, scale=0.4).logpdf, 0, 40, order)
    assert found == pytest.approx(truth, rel=1e-9)
    found = Gaussian().divergence(Gaussian.natural(0.3, 1.1), Gaussian.natural(-0.2, 1.4), order)
    truth = of_densities(
        stats.norm(0.3, math.sqrt(1.1)).logpdf, stats.norm(-0.2, math.sqrt(1.4)).logpdf, -40, 40, order
    )
    assert found == pytest.approx(truth, rel=1e-9)
    found = GaussianMean(2.0).divergence(0.7, -0.4, order)
    truth = of_densities(stats.norm(0.7, 2).logpdf, stats.norm(-0.4, 2).logpdf, -60, 60, order)
    assert found == pytest.approx(truth, rel=1e-9)


def test_printed_formula_fails_and_ours_holds() -> None:
    """E-7: dividing log-partition functions gives a negative divergence."""
    eta1, eta2 = float(Bernoulli.natural(0.3)[0]), float(Bernoulli.natural(0.6)[0])
    mixed, first, second = (math.log1p(math.exp(eta)) for eta in (2 * eta1 - eta2, eta1, eta2))
    printed = math.log(mixed / (first**2 * second**-1))
    assert printed == pytest.approx(-0.184, abs=5e-4)
    truth = math.log(0.3**2 / 0.6 + 0.7**2 / 0.4)
    assert truth == pytest.approx(0.318, abs=5e-4)
    assert Bernoulli().divergence(eta1, eta2, 2) == pytest.approx(truth, rel=1e-12)


def exponential_divergence(first: float, second: float, order: float) -> float:
    """The integral of rate1^a rate2^(1-a) e^{-(a rate1 + (1-a) rate2) x}, done by hand."""
    mixed = order * first + (1 - order) * second
    log_integral = order * math.log(first) + (1 - order) * math.log(second) - math.log(mixed) if mixed > 0 else math.inf
    return log_integral / (order - 1)


def test_outside_the_parameter_space_is_infinite() -> None:
    found = Exponential().divergence(Exponential.natural(1.0), Exponential.natural(2.0), [1.9, 2.0, 2.5])
    assert found.tolist() == pytest.approx([exponential_divergence(1.0, 2.0, order) for order in (1.9, 2.0, 2.5)])
    assert found[1:].tolist() == [math.inf, math.inf]
    found = Exponential().divergence(Exponential.natural(2.0), Exponential.natural(1.0), 5)
    assert found == pytest.approx(exponential_divergence(2.0, 1.0, 5), rel=1e-12)
    found = Gaussian().divergence(Gaussian.natural(0, 3), Gaussian.natural(0, 2), [2.9, 3.0, 4.0])
    assert np.isfinite(found).tolist() == [True, False, False]
    found = Gamma().divergence(Gamma.natural(1, 1), Gamma.natural(2, 1), [1.9, 2.0, 3.0])
    assert np.isfinite(found).tolist() == [True, False, False]


def test_order_zero_and_identical_laws() -> None:
    for family, first, second in PAIRS:
        assert family.divergence(first, second, 0) == 0.0
        assert family.divergence(first, first, [0, 0.5, 1, 2, 9, np.inf]).tolist() == [0.0] * 6


PAIRS: list[tuple[Family, Any, Any]] = [
    (Bernoulli(), Bernoulli.natural(0.3), Bernoulli.natural(0.6)),
    (Multinomial(4), Multinomial.natural([0.2, 0.8]), Multinomial.natural([0.3, 0.7])),
    (Poisson(), Poisson.natural(2), Poisson.natural(3)),
    (Exponential(), Exponential.natural(3), Exponential.natural(2)),
    (Gamma(), Gamma.natural(3, 3), Gamma.natural(2, 2)),
    (GaussianMean(2), [0.0, 1.0], [1.0, 1.0]),
    (Gaussian(), Gaussian.natural(0, 1), Gaussian.natural(1, 2)),
]


@pytest.mark.parametrize(("family", "first", "second"), PAIRS)
def test_grows_to_the_largest_privacy_loss(family: Family, first: Any, second: Any) -> None:
    values = family.divergence(first, second, [0.5, 1, 2, 10, 1e3, 1e9, np.inf])
    assert (np.diff(values[np.isfinite(values)]) >= -1e-12).all()
    if np.isfinite(values[-1]):
        assert values[-2] == pytest.approx(values[-1], rel=1e-6)


def test_largest_privacy_loss_by_hand() -> None:
    assert Bernoulli().divergence(Bernoulli.natural(0.3), Bernoulli.natural(0.6), np.inf) == pytest.approx(
        math.log(0.7 / 0.4)
    )
    assert Poisson().divergence(Poisson.natural(2), Poisson.natural(3), np.inf) == pytest.approx(1.0)
    assert Poisson().divergence(Poisson.natural(3), Poisson.natural(2), np.inf) == math.inf
    assert Exponential().divergence(Exponential.natural(3), Exponential.natural(2), np.inf) == pytest.approx(
        math.log(1.5)
    )
    assert Exponential().divergence(Exponential.natural(2), Exponential.natural(3), np.inf) == math.inf
    x = np.linspace(1e-3, 20, 200_001)
    peak = np.max(stats.gamma(3.0, scale=1 / 3).logpdf(x) - stats.gamma(2.0, scale=1 / 2).logpdf(x))
    assert Gamma().divergence(Gamma.natural(3, 3), Gamma.natural(2, 2), np.inf) == pytest.approx(peak, rel=1e-6)
    x = np.linspace(-20, 20, 400_001)
    peak = np.max(stats.norm(0, 1).logpdf(x) - stats.norm(1, math.sqrt(2)).logpdf(x))
    assert Gaussian().divergence(Gaussian.natural(0, 1), Gaussian.natural(1, 2), np.inf) == pytest.approx(
        peak, rel=1e-6
    )
    assert GaussianMean().divergence(0, 1, np.inf) == math.inf


def test_own_log_partition_function() -> None:
    poisson = LogPartition(
        lambda eta: math.exp(eta[0]), lambda eta: np.exp(eta), lambda d: math.inf if d[0] > 0 else 0.0
    )
    orders = [0, 0.5, 1, 2, 7.5, np.inf]
    ready = Poisson().divergence(Poisson.natural(2), Poisson.natural(3), orders)
    assert poisson.divergence(math.log(2), math.log(3), orders) == pytest.approx(ready, rel=1e-12)
    assert LogPartition(lambda eta: math.exp(eta[0]), lambda eta: np.exp(eta)).divergence(0, 1, np.inf) == math.inf
    broken = LogPartition(lambda eta: math.nan, lambda eta: eta)
    assert broken.divergence(0.0, 1.0, 2) == math.inf


def test_tiny_differences_keep_their_digits() -> None:
    """D_a is about a d^2 Var / 2; the difference form would return rounding noise."""
    for family, eta, variance in (
        (Bernoulli(), Bernoulli.natural(0.3), 0.21),
        (Poisson(), Poisson.natural(7.0), 7.0),
        (Exponential(), Exponential.natural(2.0), 0.25),
    ):
        assert family.divergence(eta, eta + 1e-9, 3) == pytest.approx(1.5e-18 * variance, rel=1e-7)


@pytest.mark.parametrize("x", [1e-3, 0.4, 3.0, 80.0, 9e3, 2e4, 1e9])
@pytest.mark.parametrize("share", [-0.999, -0.3, -0.24, -1e-6, 1e-9, 0.1, 0.26, 3.0])
def test_gaps_against_balls(x: float, share: float) -> None:
    with BALLS.at(400):
        step = x * share
        truth = float(log_gamma_gap(arb(x), arb(step), BALLS))
        small = float(log_gap(arb(share), BALLS))
    assert float(log_gamma_gap(x, step, FLOATS)) == pytest.approx(truth, rel=2e-12)
    assert float(log_gap(share, FLOATS)) == pytest.approx(small, rel=1e-14)
    assert ctx.prec == 53


def test_orders_below_zero_are_refused() -> None:
    with pytest.raises(InputError, match="at least 0"):
        Poisson().divergence(0.0, 1.0, -1)


def test_the_privacy_loss_is_the_log_ratio_of_the_densities() -> None:
    points = np.array([0.0, 1.0, 4.0])
    ratio = stats.poisson(2).logpmf(points) - stats.poisson(3).logpmf(points)
    assert Poisson().loss(Poisson.natural(2), Poisson.natural(3), points[:, None]) == pytest.approx(ratio, rel=1e-12)
    ratio = stats.norm(0, 1).logpdf(points) - stats.norm(1, math.sqrt(2)).logpdf(points)
    statistic = np.stack([points, points**2], axis=-1)
    found = Gaussian().loss(Gaussian.natural(0, 1), Gaussian.natural(1, 2), statistic)
    assert found == pytest.approx(ratio, rel=1e-12)
    positive = np.array([0.3, 2.0])
    ratio = stats.gamma(2).logpdf(positive) - stats.gamma(3, scale=0.5).logpdf(positive)
    statistic = np.stack([np.log(positive), positive], axis=-1)
    assert Gamma().loss(Gamma.natural(2, 1), Gamma.natural(3, 2), statistic) == pytest.approx(ratio, rel=1e-12)
    assert Bernoulli().loss(Bernoulli.natural(0.3), Bernoulli.natural(0.6), 1) == pytest.approx(math.log(0.5))


def test_the_mean_of_the_privacy_loss_is_kl() -> None:
    first, second = Bernoulli.natural(0.3), Bernoulli.natural(0.6)
    losses = Bernoulli().loss(first, second, [[0], [1]])
    assert np.array([0.7, 0.3]) @ losses == pytest.approx(Bernoulli().divergence(first, second, 1), rel=1e-12)
