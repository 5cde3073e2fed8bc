"""zCDP from a curve: closed forms, brute force over orders, and what must not be claimed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cumulant as cm
from cumulant.paper.concentration import concentration


@pytest.mark.parametrize("sigma", ["0.5", "1", "5", "31/7"])
def test_gaussian_is_exact(sigma: str) -> None:
    exact = 1 / (2 * float(cm.Gaussian(sigma=sigma).sigma) ** 2)
    assert concentration(cm.Gaussian(sigma=sigma)) == pytest.approx(exact, rel=1e-15)
    assert concentration(cm.Gaussian(sigma=sigma) * 7) == pytest.approx(7 * exact, rel=1e-15)


def response(order: float, epsilon: float) -> float:
    """D_a of randomized response by its definition."""
    p = 1 / (1 + math.exp(-epsilon))
    return math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (order - 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_pure_dp(epsilon: float, part: float) -> None:
    """(0, eps^2/2) and (eps, 0) hold for pure DP; the least rho is the largest (D_a - xi)/a, by a dense grid of orders."""
    xi = part * epsilon
    orders = 1 + np.geomspace(1e-5, 60.0 / epsilon, 40_000)
    largest = max(max((response(a, epsilon) - xi) / a for a in orders.tolist()), 0.0)
    found = concentration(cm.PureDP(epsilon), xi=xi)
    assert found >= largest * (1 - 1e-9)
    assert found <= largest * (1 + 1e-4) + 1e-4 * epsilon
    assert concentration(cm.PureDP(epsilon)) <= epsilon**2 / 2


def test_laplace_from_its_printed_curve() -> None:
    def printed(order: float) -> float:
        near, far = order / (2 * order - 1), (order - 1) / (2 * order - 1)
        return math.log(near * math.exp(order - 1) + far * math.exp(-order)) / (order - 1)

    largest = max(
        *(printed(a) / a for a in (1 + np.geomspace(1e-4, 100, 20_000)).tolist()), math.exp(-1)
    )  # KL at order 1
    found = concentration(cm.Laplace(scale=1))
    assert largest * (1 - 1e-8) <= found <= largest * (1 + 1e-5)


def test_back_is_never_below() -> None:
    """ZeroConcentrated(rho) is a bound of what rho was read from, at every order, and eq. (3) of it in closed form."""
    run = cm.Laplace(scale=2) * 10 + cm.RandomizedResponse(p="0.6") * 3
    rho = concentration(run)
    promise = cm.ZeroConcentrated(rho=rho)
    orders = [1.0001, 1.5, 2, 7.3, 64, 1000, 1e5]
    assert (promise.rdp(orders) >= run.rdp(orders)).all()
    closed = rho + 2 * math.sqrt(rho * math.log(1e5))
    assert promise.epsilon(1e-5, method="rdp", conversion="classic") == pytest.approx(closed, rel=1e-9)
    assert run.epsilon(1e-5) <= closed


def test_truncated_and_unbounded() -> None:
    sampled = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
    assert concentration(sampled) == pytest.approx(0.02, rel=1e-15)
    truncated = concentration(sampled, up_to=100, bound="theorem9")
    # Theorem 9 knows no order below 2, so that eps'(2), 1.632e-7 by the reference, stands for all of them
    assert truncated == pytest.approx(1.632430834454e-7, rel=1e-6)
    assert truncated * 100 >= 1.19412678078022e-5
    past = concentration(sampled, up_to=1000, bound="theorem9")
    assert past == pytest.approx(13.0860238920905 / 1000, rel=1e-6)
    # what is known at a few orders says nothing about all
    table = cm.from_rdp_points([2, 4], [0.1, 0.2])
    assert concentration(table) == math.inf
    assert concentration(table, up_to=4) == pytest.approx(0.1, rel=1e-4)  # 0.1 at every order up to 2
    assert concentration(table, up_to=5) == math.inf


def test_refusals() -> None:
    with pytest.raises(cm.InputError, match="up_to=1"):
        concentration(cm.Gaussian(sigma=1), up_to=1)
    assert concentration(cm.ApproximateDP(1, 1e-6)) == math.inf
