"""xi and zeta of continuous mechanisms at real orders: quadrature from the definitions, closed forms, linear programmes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import cumulant as cm
from cumulant.paper.chi_curve import chi_curve
from cumulant.paper.chi_mechanisms import binary_chi, density_root, pure_ternary_root, ternary_chi

ORDERS = (1.0, 1.3, 2.0, 2.5, 3.0, 5.7, 12.0)


def moment(p: Callable[[float], float], q: Callable[[float], float], r: Callable[[float], float], a: float) -> float:
    """E_r |(p-q)/r|^a by scipy, on pieces that end where densities have kinks or cross."""

    def integrand(x: float) -> float:
        return r(x) * abs((p(x) - q(x)) / r(x)) ** a if r(x) > 1e-280 else 0.0

    cuts = (-90.0, -12.0, -4.0, -1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 5.0, 13.0, 90.0)
    pieces = [
        integrate.quad(integrand, *ends, epsabs=0, epsrel=1e-11, limit=400)[0] for ends in itertools.pairwise(cuts)
    ]
    return float(sum(pieces))


def gaussian(mean: float, sigma: float) -> Callable[[float], float]:
    return lambda x: float(math.exp(-(((x - mean) / sigma) ** 2) / 2) / sigma / math.sqrt(2 * math.pi))


def laplace(mean: float, scale: float) -> Callable[[float], float]:
    return lambda x: float(math.exp(-abs(x - mean) / scale) / (2 * scale))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (cm.Gaussian(sigma=1), lambda mean: gaussian(mean, 1.0)),
        (cm.Gaussian(sigma=2), lambda mean: gaussian(mean, 2.0)),
        (cm.Laplace(scale=2), lambda mean: laplace(mean, 2.0)),
        (cm.Laplace(scale="0.5"), lambda mean: laplace(mean, 0.5)),
    ],
    ids=["gaussian-1", "gaussian-2", "laplace-2", "laplace-0.5"],
)
def test_xi_from_its_definition(
    mechanism: cm.Mechanism, law: Callable[[float], Callable[[float], float]], order: float
) -> None:
    truth = moment(law(1.0), law(0.0), law(0.0), order) ** (1 / order)
    found = binary_chi(mechanism)(order)
    assert truth * (1 - 1e-9) <= found <= truth * (1 + 1e-9)


def test_xi_in_closed_form() -> None:
    for sigma in (0.5, 1.0, 5.0):
        xi = binary_chi(cm.Gaussian(sigma=sigma))
        shift = 1 / sigma
        assert xi(1) == pytest.approx(2 * (2 * stats.norm.cdf(shift / 2) - 1), rel=1e-10)
        assert xi(2) == pytest.approx(math.sqrt(math.expm1(shift**2)), rel=1e-10)
        assert xi(math.inf) == math.inf
    # Delta^4[M](0) = M_4 - 4 M_3 + 6 M_2 - 4 M_1 + M_0 at sigma = 1, M_j = e^{j(j-1)/2}
    fourth = math.exp(6) - 4 * math.exp(3) + 6 * math.e - 4 + 1
    assert binary_chi(cm.Gaussian(sigma=1))(4) == pytest.approx(fourth**0.25, rel=1e-10)
    p, q = 0.9, 0.1
    for order in ORDERS:
        exact = ((p - q) ** order * (q ** (1 - order) + p ** (1 - order))) ** (1 / order)
        for chi in (binary_chi, ternary_chi):
            assert chi(cm.RandomizedResponse(p="0.9"))(order) == pytest.approx(exact, rel=1e-10)
    assert binary_chi(cm.RandomizedResponse(p="0.9"))(math.inf) == pytest.approx(8.0, rel=1e-10)


def test_densities_and_finite_laws_answer_like_the_mechanism() -> None:
    log_normal = stats.norm.logpdf
    pair = cm.from_densities(lambda x: log_normal(x, 1.0), lambda x: log_normal(x, 0.0))
    for order in (1.0, 1.5, 2.0, 6.5):
        assert binary_chi(pair)(order) == pytest.approx(binary_chi(cm.Gaussian(sigma=1))(order), rel=1e-7)
        assert ternary_chi(pair)(order) == pytest.approx(ternary_chi(cm.Gaussian(sigma=1))(order), rel=1e-7)
    masses = cm.from_masses(["0.9", "0.1"], ["0.1", "0.9"])
    assert binary_chi(masses)(2.5) == pytest.approx(binary_chi(cm.RandomizedResponse(p="0.9"))(2.5), rel=1e-9)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 3.0, 6.5])
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_zeta_is_above_every_triple(name: str, order: float) -> None:
    """Centres on the line at distances up to 1; by symmetry q is at the left."""
    laws: dict[str, Callable[[float, float], Callable[[float], float]]] = {"gaussian": gaussian, "laplace": laplace}

    def law(mean: float) -> Callable[[float], float]:
        return laws[name](mean, 1.0)

    zeta = ternary_chi(cm.Gaussian(sigma=1) if name == "gaussian" else cm.Laplace(scale=1))(order)
    xi = binary_chi(cm.Gaussian(sigma=1) if name == "gaussian" else cm.Laplace(scale=1))(order)
    assert xi <= zeta <= 4 ** (1 / order) * xi * (1 + 1e-9)
    for p, q, r in ((1.0, 0.0, 0.0), (1.0, 0.0, 0.5), (1.0, 0.0, 1.0), (0.5, 0.0, 1.0), (0.25, 0.75, 0.0)):
        assert moment(law(p), law(q), law(r), order) ** (1 / order) <= zeta * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.3, 2.5, 6.0])
def test_zeta_of_gaussian_noise_is_four_positive_parts(order: float) -> None:
    """4 E_q (p/q - 1)_+^a: four events, a positive part each; a smaller constant is not proved."""
    part = integrate.quad(
        lambda x: stats.norm.pdf(x) * math.expm1(x - 0.5) ** order,
        0.5,
        20,
        epsabs=0,
        epsrel=1e-11,
        points=(1, 2, 4, 7, 11),
    )[0]
    assert ternary_chi(cm.Gaussian(sigma=1))(order) == pytest.approx((4 * part) ** (1 / order), rel=1e-9)


@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_zeta_is_above_the_equilateral_triangle(sigma: float) -> None:
    """Gaussian noise in the plane, three values at distance 1: E_r ((p-q)/r)^a = sum C(a,i) (-1)^i E_r p^{a-i} q^i / r^a."""
    angle, t = math.pi / 3, 1 / sigma
    u, v = np.array([t, 0.0]), np.array([t * math.cos(angle), t * math.sin(angle)])
    for order in (2, 4, 6, 8):
        total = math.fsum(
            math.comb(order, i)
            * (-1) ** i
            * math.exp((np.sum(((order - i) * u + i * v) ** 2) - (order - i) * t * t - i * t * t) / 2)
            for i in range(order + 1)
        )
        zeta, xi = ternary_chi(cm.Gaussian(sigma=sigma))(order), binary_chi(cm.Gaussian(sigma=sigma))(order)
        assert total ** (1 / order) <= zeta
        if order == 2 or sigma == 1:
            assert total ** (1 / order) > xi  # a triple can be worse than every pair: zeta = xi would be false


def test_the_class_of_pure_dp_by_linear_programming() -> None:
    """The hexagon of (p/r, q/r) on a grid that holds its corners: the largest mean of |x - y|^a with mean (1, 1)."""
    for epsilon in (0.3, math.log(2), 1.0, 2.5):
        c = math.exp(epsilon)
        points = np.exp(np.linspace(-epsilon, epsilon, 9))
        grid = np.array(
            [(x, y) for x in points for y in points if x <= c * y * (1 + 1e-12) and y <= c * x * (1 + 1e-12)]
        )
        for order in (1.0, 1.5, 2.0, 4.0):
            value = -(np.abs(grid[:, 0] - grid[:, 1]) ** order)
            constraints = np.vstack([np.ones(len(grid)), grid.T])
            best = optimize.linprog(value, A_eq=constraints, b_eq=np.ones(3), bounds=(0, None))
            assert pure_ternary_root(epsilon, order) == pytest.approx(
                float(-np.float64(best.fun)) ** (1 / order), rel=1e-7
            )
    assert pure_ternary_root(1.0, math.inf) == pytest.approx(math.e - 1, rel=1e-14)
    assert pure_ternary_root(1.0, 1e6) == pytest.approx(math.e - 1, rel=1e-5)


def test_three_densities() -> None:
    def normal(mean: float) -> Callable[[Any], Any]:
        return lambda x: stats.norm.logpdf(x, mean)

    # E_r ((p-q)/r)^2 = e^{u^2} + e^{v^2} - 2 e^{uv} for centres u, v seen from 0
    for u, v in ((1.0, -1.0), (1.0, 0.4), (0.3, 0.0)):
        exact = math.exp(u * u) + math.exp(v * v) - 2 * math.exp(u * v)
        found = density_root(normal(u), normal(v), normal(0), 2)
        assert found**2 == pytest.approx(exact, rel=1e-9)
    for order in (1.0, 1.7, 3.0):
        truth = moment(gaussian(1.0, 1.0), gaussian(0.0, 1.0), gaussian(0.5, 1.0), order) ** (1 / order)
        assert density_root(normal(1.0), normal(0.0), normal(0.5), order) == pytest.approx(truth, rel=1e-7)
    with pytest.raises(cm.InputError, match="supremum"):
        density_root(normal(1.0), normal(0.0), normal(0.5), math.inf)


def test_what_has_no_pair_is_refused() -> None:
    for run in (cm.Gaussian(sigma=1) * 2, cm.ZeroConcentrated(rho=1), cm.Gaussian(sigma=1) + cm.Laplace(scale=1)):
        with pytest.raises(cm.HypothesisError, match="has no dominating pair"):
            binary_chi(run)


def test_sampled_by_eq_9_is_a_row_of_the_table() -> None:
    """Definition 14, Proposition 16 and eq. (9) in a row give the number of `positive-part`."""
    sampled = ternary_chi(cm.Gaussian(sigma=5)).subsampled("0.001")
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
    for order in (2, 3, 16):
        found = chi_curve(sampled).rdp([order])[0]
        assert run.rdp(order, bound="lower") < found <= run.rdp(order, bound="positive-part") * (1 + 1e-9)
