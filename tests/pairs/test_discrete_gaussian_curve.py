"""Divergences of discrete Gaussian noise on samples, by enumeration of the outputs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import cumulant as cm
from cumulant.curves.discrete_gaussian import Theta
from cumulant.numerics.arithmetic import FLOATS
from cumulant.numerics.enclosure import BOUNDED
from cumulant.pairs import discrete_gaussian

Array = np.ndarray[Any, np.dtype[np.float64]]
X = np.arange(-1500.0, 3001.0)
SETTINGS = [("3", 2, "0.1"), ("0.7", 1, "0.02"), ("10", 1, "0.5"), ("1", 3, "0.9")]
ORDERS = (1.5, 2.0, 9.0, 40.0)


def log_noise(sigma: str, shift: int) -> Array:
    variance = float(sigma) ** 2
    return np.asarray(-((X - shift) ** 2) / (2 * variance) - logsumexp(-(X**2) / (2 * variance)))


def log_mixed(sigma: str, shift: int, rate: float) -> Array:
    return np.logaddexp(math.log(1 - rate) + log_noise(sigma, 0), math.log(rate) + log_noise(sigma, shift))


def renyi(log_p: Array, log_q: Array, order: float) -> float:
    return float(logsumexp(order * log_p + (1 - order) * log_q)) / (order - 1)


@pytest.mark.parametrize(("sigma", "moved", "rate"), SETTINGS)
def test_poisson_samples(sigma: str, moved: int, rate: str) -> None:
    noise = cm.DiscreteGaussian(sigma=sigma, sensitivity=moved, dimension=1, relation=cm.Relation.ADD_REMOVE)
    added, replaced = noise @ cm.Poisson(rate=rate), noise @ cm.Poisson(rate=rate, relation="replace-one")
    p, q, still = log_mixed(sigma, moved, float(rate)), log_mixed(sigma, -moved, float(rate)), log_noise(sigma, 0)
    for order in ORDERS:
        assert added.rdp(order) == pytest.approx(renyi(p, still, order), rel=1e-10)
        assert renyi(still, p, order) <= added.rdp(order) * (1 + 1e-12)
        assert replaced.rdp(order) == pytest.approx(renyi(p, q, order), rel=1e-10)
    assert added.kl() == pytest.approx(float(np.sum(np.exp(p) * (p - still))), rel=1e-9)
    assert replaced.kl() == pytest.approx(float(np.sum(np.exp(p) * (p - q))), rel=1e-9)
    assert added.rdp(3, bound="lower") == pytest.approx(added.rdp(3), rel=1e-12)


@pytest.mark.parametrize(("sigma", "moved", "rate"), SETTINGS)
def test_samples_of_a_fixed_size(sigma: str, moved: int, rate: str) -> None:
    """The pair of the amplified profile: loss L with P-mass q w and -L with q, where L > 0, and 0 for the rest."""
    run = cm.DiscreteGaussian(sigma=sigma, sensitivity=moved, dimension=1) @ cm.WithoutReplacement(rate=rate)
    q, g = log_noise(sigma, 0), float(rate)
    above = log_noise(sigma, moved) > q + 1e-12
    L = np.log1p(g * np.expm1(np.minimum((log_noise(sigma, moved) - q)[above], 700.0)))
    L = np.where((log_noise(sigma, moved) - q)[above] > 700, (log_noise(sigma, moved) - q)[above] + math.log(g), L)
    log_q = q[above]
    rest = 1 - float(np.sum(np.exp(log_q + L) + np.exp(log_q)))
    for order in (1.5, 2.0, 9.0):
        terms = [log_q + order * L, log_q + (1 - order) * L, np.array([math.log(max(rest, 1e-300))])]
        needed = float(logsumexp(np.concatenate(terms))) / (order - 1)
        assert run.rdp(order, bound="profile") == pytest.approx(needed, rel=1e-8)
        assert run.rdp(order) <= needed * (1 + 1e-9)
        assert run.rdp(order, bound="lower") <= run.rdp(order)


def test_wide_noise_and_large_orders_fall_back() -> None:
    """Where outputs are too many, joint convexity answers: never less than the pair, and finite."""
    wide = cm.DiscreteGaussian(sigma=5000, dimension=1) @ cm.Poisson(rate="0.1")
    near = cm.Gaussian(sigma=5000) @ cm.Poisson(rate="0.1")
    assert near.rdp(2) * 0.999 <= wide.rdp(2) < 1e-7
    noise = cm.DiscreteGaussian(sigma=3, dimension=1)
    assert (noise @ cm.Poisson(rate="0.1")).rdp(1e6) <= noise.rdp(1e6)
    assert (noise @ cm.Poisson(rate="0.1") * 20).guarantee(delta=1e-6, method="rdp").verify().holds


@pytest.mark.parametrize(("sigma", "moved"), [("0.2223", 2), ("0.2223", 30), ("1", 60)])
def test_kl_of_a_shift_of_many_deviations(sigma: str, moved: int) -> None:
    """The tail at order 2 is e^(m^2 / v) there, which overflowed and left no divergence of order 1."""
    noise = cm.DiscreteGaussian(sigma=sigma, sensitivity=moved, dimension=1, relation=cm.Relation.ADD_REMOVE)
    p, still = log_mixed(sigma, moved, 0.1), log_noise(sigma, 0)
    run = noise @ cm.Poisson(rate="0.1")
    assert run.kl() == pytest.approx(float(np.sum(np.exp(p) * np.where(np.exp(p) > 0, p - still, 0.0))), rel=1e-9)
    assert run.kl() <= run.rdp(1.01)


def test_kl_of_draws_with_replacement() -> None:
    run = cm.DiscreteGaussian(sigma="0.2223", sensitivity=2, dimension=1) @ cm.WithReplacement(sample=11, population=56)
    assert run.kl() <= run.rdp(1.01) < run.rdp(2) < math.inf


def test_outputs_in_floats_are_the_nearest_without_a_fraction_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three fractions for each of many thousand outputs took 4 s for one epsilon."""
    curve = discrete_gaussian.DiscreteGaussianCurve(
        1, Fraction("22.07") ** 2, Fraction("7.519e-4"), "replacement", Theta(1, Fraction("22.07") ** 2)
    )
    numbers = [-7, 0, 1, 12345, -(10**9)]
    exact = curve._over_two_variances(numbers, BOUNDED)
    assert exact == [Fraction(each) / (2 * curve.variance) for each in numbers]
    assert curve._over_two_variances(numbers, FLOATS) == [float(each) for each in exact]
    made: list[Any] = []

    def counted(*parts: Any) -> Fraction:
        made.append(parts)
        return Fraction(*parts)

    monkeypatch.setattr(discrete_gaussian, "Fraction", counted)
    assert len(curve._outputs(1, 5000, FLOATS)[0]) == 5000
    assert len(made) < 10
