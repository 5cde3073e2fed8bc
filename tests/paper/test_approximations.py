"""The approximations of the figures: the corrected formula is a divergence of normal laws, the printed one is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from cumulant.paper.approximations import bad_data_approximation, good_data_approximation

RATE = 0.001
POPULATION = 100_000


def quadrature(mean: float, variance: float, other_variance: float, order: float) -> float:
    """D_a by the excess of E_q (p/q)^a over 1 + a E_q(p/q - 1): what is left after cancellation is integrated."""

    def integrand(x: float) -> float:
        y = stats.norm.logpdf(x, mean, math.sqrt(variance)) - stats.norm.logpdf(x, 0, math.sqrt(other_variance))
        density = stats.norm.pdf(x, 0, math.sqrt(other_variance))
        return float(density * (math.expm1(order * y) - order * math.expm1(y)))

    reach = 40 * math.sqrt(other_variance)
    excess = float(integrate.quad(integrand, -reach, reach, epsabs=0, epsrel=1e-11, limit=500)[0])
    return math.log1p(excess) / (order - 1)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("order", [2.0, 7.0, 64.0])
def test_bad_data_is_the_normal_divergence(sigma: float, order: float) -> None:
    variance = sigma**2 + RATE * (POPULATION - 1) / POPULATION
    truth = quadrature(RATE, variance, sigma**2, order)
    assert bad_data_approximation(order, sigma, RATE, POPULATION) == pytest.approx(truth, rel=2e-7)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 5.0])
def test_corrected_formula_term_by_term(sigma: float) -> None:
    rate, order = 0.3, 1.7
    top = sigma**2 * POPULATION / (rate * (POPULATION - 1)) + 1
    by_hand = (
        (
            order * rate**2 / (2 * sigma**2) * (top - 1) / (top - order)
            + math.log((top - 1) / top) / 2
            + math.log((top - 1) / (top - order)) / (2 * (order - 1))
        )
        if order < top
        else math.inf
    )
    assert bad_data_approximation(order, sigma, rate, POPULATION) == pytest.approx(by_hand, rel=1e-12)
    assert bad_data_approximation(top * 1.0001, sigma, rate, POPULATION) == math.inf


@pytest.mark.parametrize(("sigma", "factor"), [(5.0, 491), (0.5, 167)])
def test_printed_formula_fails(sigma: float, factor: float) -> None:
    """E-5: with a* in both numerators the formula is hundreds of times too large at order 2 and diverges at order 1."""
    top = sigma**2 * POPULATION / (RATE * (POPULATION - 1)) + 1

    def printed(order: float) -> float:
        return (
            order * RATE**2 / (2 * sigma**2) * top / (top - order)
            + math.log((top - 1) / top) / 2
            + math.log(top / (top - order)) / (2 * (order - 1))
        )

    ratio = printed(2) / bad_data_approximation(2, sigma, RATE, POPULATION)
    assert ratio == pytest.approx(factor, rel=0.01)
    assert printed(1 + 1e-6) > 1e4 * bad_data_approximation(1 + 1e-6, sigma, RATE, POPULATION)


def test_good_data_is_two_equal_variances() -> None:
    n, sigma = 101, 2.0
    # the mean moves by g; the sum of a sample has variance sigma^2 + g (n - 1/n) / 4 in both laws
    variance = sigma**2 + 0.1 * (n - 1 / n) / 4
    for order in (1.0, 2.0, 9.5):
        assert good_data_approximation(order, sigma, 0.1, n) == pytest.approx(order * 0.01 / (2 * variance), rel=1e-12)


def test_leading_orders_and_shape() -> None:
    orders = np.array([1.0, 2.0, 3.0])
    expected = orders * RATE**2 * (1 / (2 * 25) + 1 / (4 * 625))
    assert bad_data_approximation(orders, 5.0, RATE, POPULATION) == pytest.approx(expected, rel=1e-3)
    assert (good_data_approximation(orders, 5.0, RATE, POPULATION) < expected).all()
