"""The approximations of the figures: the corrected formula is a divergence of normal laws, the printed one is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from cumulant.errors import InputError
from cumulant.paper.approximations import bad_data_approximation, data_approximation, good_data_approximation

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


def normals(first: tuple[float, float], second: tuple[float, float], order: float) -> float:
    """D_a of two normal laws (mean, variance) in closed form."""
    (m1, v1), (m2, v2) = first, second
    mixed = order * v2 + (1 - order) * v1
    log = math.log(mixed) - (1 - order) * math.log(v1) - order * math.log(v2)
    return order * (m1 - m2) ** 2 / (2 * mixed) - log / (2 * (order - 1))


def test_given_data_are_two_normal_laws() -> None:
    """The sums over samples in the mean and the variance of their definition; bad and good data are special cases."""
    random = np.random.default_rng(28)
    data, rate, sigma = random.uniform(-0.5, 0.5, 400), 0.05, 1.5
    laws = []
    for changed in (0.5, -0.5):
        numbers = [*data.tolist(), changed]
        mean = sum(numbers) / len(numbers)
        laws.append((rate * sum(numbers), sigma**2 + rate * sum((x - mean) ** 2 for x in numbers)))
    for order in (1.5, 2.0, 8.0):
        truth = max(normals(laws[0], laws[1], order), normals(laws[1], laws[0], order))
        found = data_approximation(order, data, 0.5, -0.5, sigma, rate)
        assert found == pytest.approx(truth, rel=1e-9)
    half = np.repeat([0.5, -0.5], 500)
    assert data_approximation(2, half, 0.5, -0.5, 1.0, 0.05) == pytest.approx(
        good_data_approximation(2, 1.0, 0.05, 1001), rel=1e-9
    )
    with pytest.raises(InputError, match="finite"):
        data_approximation(2, [math.nan], 0.5, -0.5, 1.0, 0.05)


@pytest.mark.parametrize(("sigma", "ratio"), [(5.0, 2.04), (1.0, 39.0), (0.5, 303.0)])
def test_good_data_are_not_gamma_n_times_better(sigma: float, ratio: float) -> None:
    """gamma n = 100: found are 2.04, 39 and 303."""
    n, rate = 100_001, 0.001
    bad = data_approximation(2, np.zeros(n - 1), 1.0, 0.0, sigma, rate)
    good = data_approximation(2, np.repeat([0.5, -0.5], (n - 1) // 2), 0.5, -0.5, sigma, rate)
    assert bad / good == pytest.approx(ratio, rel=5e-3)


def test_sums_over_samples_are_simulated() -> None:
    """Mean and variance of the sum over samples without replacement, drawn; the paper's variance lacks the factor 1 - g."""
    random = np.random.default_rng(5)
    data = random.uniform(-0.5, 0.5, 200)
    sums = np.array([data[random.permutation(200)[:10]].sum() for _ in range(40_000)])
    assert sums.mean() == pytest.approx(0.05 * data.sum(), abs=0.02)
    expected = 0.05 * np.sum((data - data.mean()) ** 2) * (1 - 0.05)
    assert sums.var() == pytest.approx(expected, rel=0.03)


def test_numbers_may_be_text() -> None:
    for approximation in (bad_data_approximation, good_data_approximation):
        assert approximation(2, "5", "1/1000", "100000") == approximation(2, 5, 0.001, 100_000)
        for wrong in (("0", "0.001", "10"), ("5", "2", "10"), ("5", "0.1", "x"), ("5", "0.1", "1.5")):
            with pytest.raises(InputError):
                approximation(2, *wrong)
    assert data_approximation(2, ["0", "1"], "1", "0", "5", "0.1") == data_approximation(2, [0, 1], 1, 0, 5, 0.1)
    with pytest.raises(InputError, match="finite numbers"):
        data_approximation(2, ["x"], 1, 0, 5, 0.1)
