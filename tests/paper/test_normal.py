"""Normal laws against quadrature in two dimensions and against item 44 as it stands."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from cumulant.errors import InputError
from cumulant.paper.families import Gaussian
from cumulant.paper.normal import normal_divergence

RNG = np.random.default_rng(44)
MEANS = np.array([0.4, -0.2]), np.array([0.1, 0.3])
COVARIANCES = np.array([[1.0, 0.3], [0.3, 0.8]]), np.array([[1.3, -0.1], [-0.1, 1.1]])


def item44(mean: np.ndarray, cov: np.ndarray, other: np.ndarray, other_cov: np.ndarray, order: float) -> float:
    mixed = order * other_cov + (1 - order) * cov
    if np.linalg.eigvalsh(mixed)[0] <= 0:
        return math.inf
    d = mean - other
    logs = [np.linalg.slogdet(m)[1] for m in (mixed, cov, other_cov)]
    ratio = logs[0] - (1 - order) * logs[1] - order * logs[2]
    return float(order / 2 * d @ np.linalg.solve(mixed, d) - ratio / (2 * (order - 1)))


@pytest.mark.parametrize("order", [0.5, 2.0, 3.5])
def test_quadrature(order: float) -> None:
    p, q = (stats.multivariate_normal(m, c) for m, c in zip(MEANS, COVARIANCES, strict=True))
    # the trapezoid rule is spectrally accurate for these integrands
    x = np.linspace(-14, 14, 561)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    total = np.sum(np.exp(order * p.logpdf(grid) + (1 - order) * q.logpdf(grid))) * (x[1] - x[0]) ** 2
    found = normal_divergence(MEANS[0], COVARIANCES[0], MEANS[1], COVARIANCES[1], order)
    assert found == pytest.approx(math.log(total) / (order - 1), rel=1e-9)


def test_kl_by_quadrature() -> None:
    p, q = stats.norm(0.3, 1.2), stats.norm(-0.1, 0.9)
    kl = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -15, 15, epsabs=0, epsrel=1e-12)[0]
    assert normal_divergence(0.3, 1.44, -0.1, 0.81, 1) == pytest.approx(kl, rel=1e-9)


def test_the_formula_as_printed_in_any_dimension() -> None:
    infinite = 0
    for size in (1, 2, 5):
        for _ in range(30):
            cov, other_cov = (a @ a.T + 0.3 * np.eye(size) for a in RNG.normal(size=(2, size, size)))
            mean, other = RNG.normal(size=(2, size))
            order = float(1 + RNG.exponential(0.5))
            truth = item44(mean, cov, other, other_cov, order)
            assert normal_divergence(mean, cov, other, other_cov, order) == pytest.approx(truth, rel=1e-9)
            infinite += truth == math.inf
    assert 10 < infinite < 80


def test_the_line_is_the_exponential_family() -> None:
    orders = [0, 0.4, 1, 1.5, 3, 4.5, np.inf]
    for first, second in (((0, 1), (1, 2)), ((0, 2), (1, 1.5))):
        family = Gaussian().divergence(Gaussian.natural(*first), Gaussian.natural(*second), orders)
        assert normal_divergence(first[0], first[1], second[0], second[1], orders) == pytest.approx(family, rel=1e-12)


def test_equal_covariances_and_ends() -> None:
    cov = COVARIANCES[0]
    d = MEANS[0] - MEANS[1]
    exact = [a / 2 * d @ np.linalg.solve(cov, d) for a in (1, 2, 50)]
    assert normal_divergence(MEANS[0], cov, MEANS[1], cov, [1, 2, 50]) == pytest.approx(exact, rel=1e-12)
    assert normal_divergence(MEANS[0], cov, MEANS[1], cov, [0, np.inf]).tolist() == [0, math.inf]
    assert normal_divergence(MEANS[0], cov, MEANS[0], cov, np.inf) == 0.0
    assert normal_divergence(0, 1 + 1e-9, 0, 1, 3) == pytest.approx(3 / 4 * 1e-18, rel=1e-6)


def test_bad_covariances_are_refused() -> None:
    with pytest.raises(InputError, match="positive definite"):
        normal_divergence(0, 1, 0, -1, 2)
    with pytest.raises(InputError, match="symmetric"):
        normal_divergence([0, 0], [[1, 0.5], [0, 1]], [0, 0], np.eye(2), 2)
    with pytest.raises(InputError, match=r"must be \(2, 2\)"):
        normal_divergence([0, 0], 1, [0, 0], np.eye(2), 2)
