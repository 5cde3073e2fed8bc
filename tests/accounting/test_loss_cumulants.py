"""The privacy loss of known pairs: K between -1 and 0, its derivatives and cumulants, from the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

import cumulant as cm

P, Q = ("0.1", "0.6", "0.3"), ("0.25", "0.25", "0.5")
KNOWN: dict[str, cm.Expression] = {
    "gaussian": cm.Gaussian(sigma="1.7"),
    "laplace": cm.Laplace(scale="0.8"),
    "response": cm.RandomizedResponse(p="0.7"),
    "pure": cm.PureDP("0.9"),
    "masses": cm.from_masses(P, Q),
    "sum": cm.Gaussian(sigma=2) * 3 + cm.Laplace(scale=2),
}
LAMBDAS = (-1.0, -0.75, -0.5, -0.3, -0.01, 0.4, 1.0, 2.5)


def expectation(name: str, f: Callable[[float], float]) -> float:
    """E_p f(log(p/q)) of a pair, by sums and by scipy's quadrature."""
    if name == "gaussian":
        t = 1 / 1.7
        return float(
            integrate.quad(lambda x: stats.norm.pdf(x, t) * f(t * x - t * t / 2), -12, 14, epsabs=1e-13, epsrel=1e-11)[
                0
            ]
        )
    if name == "laplace":
        t = 1 / 0.8
        between = integrate.quad(lambda y: math.exp((y - t) / 2) / 4 * f(y), -t, t, epsabs=1e-13, epsrel=1e-11)[0]
        return float(0.5 * f(t) + math.exp(-t) / 2 * f(-t) + between)
    if name == "masses":
        return sum(float(p) * f(math.log(float(p) / float(q))) for p, q in zip(P, Q, strict=True))
    e0 = math.log(0.7 / 0.3) if name == "response" else 0.9
    p = 1 / (1 + math.exp(-e0))
    return p * f(e0) + (1 - p) * f(-e0)


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "sum"])
def test_from_the_definitions(name: str) -> None:
    run = KNOWN[name]
    for lam in LAMBDAS:
        norm = expectation(name, lambda y, lam=lam: math.exp(lam * y))  # type: ignore[misc]
        mean = expectation(name, lambda y, lam=lam: y * math.exp(lam * y)) / norm  # type: ignore[misc]
        square = expectation(name, lambda y, lam=lam: y * y * math.exp(lam * y)) / norm  # type: ignore[misc]
        if lam < 0 or name != "masses":  # above 0 the larger of both directions is the bound
            assert run.cgf(lam) == pytest.approx(math.log(norm), rel=1e-9, abs=1e-12)
        assert run.cgf_derivative(lam) == pytest.approx(mean, rel=1e-9, abs=1e-12)
        assert run.cgf_derivative(lam, order=2) == pytest.approx(square - mean**2, rel=1e-8)
    mean = expectation(name, lambda y: y)
    variance, third = (expectation(name, lambda y, n=n: (y - mean) ** n) for n in (2, 3))  # type: ignore[misc]
    assert run.loss_cumulants(3) == pytest.approx([mean, variance, third], rel=1e-8, abs=1e-12)
    if name != "masses":
        assert run.kl() == pytest.approx(mean, rel=1e-9)  # the mean is KL


def test_closed_forms() -> None:
    t = Fraction(1, 2)
    assert cm.Gaussian(sigma=2).loss_cumulants(4).tolist() == [float(t**2 / 2), float(t**2), 0.0, 0.0]
    p = 0.7
    e0 = math.log(p / (1 - p))
    assert KNOWN["response"].loss_cumulants(2) == pytest.approx([(2 * p - 1) * e0, 4 * p * (1 - p) * e0**2], rel=1e-12)
    # lambda = -1/2: twice the log of the Bhattacharyya coefficient's root; e^{-t/2} (1 + t/2) for Laplace noise
    assert cm.Laplace(scale=2).cgf(-0.5) == pytest.approx(math.log1p(0.25) - 0.25, rel=1e-12)
    assert KNOWN["response"].cgf(-0.5) == pytest.approx(math.log(2 * math.sqrt(p * (1 - p))), rel=1e-12)


@pytest.mark.parametrize("name", KNOWN)
def test_lemma_36(name: str) -> None:
    """K(-1) = K(0) = 0, convex, K' increasing, and negative in between."""
    run = KNOWN[name]
    assert run.cgf([-1, 0]).tolist() == [0.0, 0.0]
    lam = np.linspace(-1, 0, 21)
    values = run.cgf(lam.tolist())
    assert (values[1:-1] < 0).all()
    assert (np.diff(values, 2) > 0).all()
    slopes = [run.cgf_derivative(float(x)) for x in (*lam, 0.5, 3.0)]
    assert (np.diff(slopes) > 0).all()
    steps = (run.cgf([x + 1e-5 for x in (-0.6, -0.2)]) - run.cgf([x - 1e-5 for x in (-0.6, -0.2)])) / 2e-5
    assert steps == pytest.approx([run.cgf_derivative(x) for x in (-0.6, -0.2)], rel=1e-6)


def test_they_add() -> None:
    one, other = cm.Gaussian(sigma=2), cm.Laplace(scale=2)
    both = one * 3 + other
    assert both.loss_cumulants(3) == pytest.approx(3 * one.loss_cumulants(3) + other.loss_cumulants(3), rel=1e-12)
    assert both.cgf(-0.3) == pytest.approx(3 * one.cgf(-0.3) + other.cgf(-0.3), rel=1e-12)


def test_densities_are_integrated() -> None:
    pair = cm.from_densities(lambda x: stats.norm.logpdf(x, 1.0), lambda x: stats.norm.logpdf(x, 0.0))
    for lam in (-1.0, -0.5, -0.2):
        assert pair.cgf(lam) == pytest.approx(lam * (lam + 1) / 2, abs=1e-9)
        assert pair.cgf_derivative(lam) == pytest.approx((2 * lam + 1) / 2, rel=1e-7, abs=1e-9)
    assert pair.loss_cumulants(2) == pytest.approx([0.5, 1.0], rel=1e-7)


def test_refusals() -> None:
    for run in (
        cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.1),
        cm.ZeroConcentrated(rho=1),
        cm.from_rdp_points([2], [1]),
        cm.Gaussian(sigma=1) + cm.ZeroConcentrated(rho=1),
    ):
        with pytest.raises(cm.HypothesisError, match="not known by a dominating pair"):
            run.cgf(-0.5)
        with pytest.raises(cm.HypothesisError):
            run.loss_cumulants()
    with pytest.raises(cm.InputError, match="at least -1"):
        cm.Gaussian(sigma=1).cgf(-1.5)
    alone = cm.from_masses(["0.5", "0.5"], [1, 0])
    assert alone.loss_cumulants(1)[0] == math.inf
    assert alone.cgf(-1) == 0.0  # log Q(p > 0)
