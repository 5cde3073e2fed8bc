"""Lemma 31, corrected: valid for random laws, tight for a two-point family, and the printed forms fail (E-4)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from cumulant.numerics.arithmetic import BALLS
from cumulant.paper.chi import Binary, Ternary, binary_root
from cumulant.paper.chi_conversion import chi_delta, chi_epsilon

RNG = np.random.default_rng(31)


def true_delta(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def test_printed_first_form_fails_and_ours_holds() -> None:
    q = np.array([1e-4, 0.9999])
    p = np.array([0.0039171, 1 - 0.0039171])
    xi = Binary(lambda order: float(binary_root(p, q, order)))
    assert xi(2) ** 2 == pytest.approx(0.145718, rel=1e-4)
    truth, printed = true_delta(p, q, 3.0), (xi(2) / math.expm1(3.0)) ** 2
    assert truth == pytest.approx(1.9086e-3, rel=1e-4)
    assert truth > 4.7 * printed
    assert truth <= chi_delta(xi, 3.0, orders=[2]) < truth * 1.0002


def test_printed_second_form_fails_and_ours_holds() -> None:
    """Gaussian, sigma 1, order 2: log xi - 1 + log(1/delta)/2 is below the exact epsilon."""
    xi = math.sqrt(math.expm1(1.0))
    for delta in (0.1, 1e-3):
        printed = math.log(xi) - 1 + math.log(1 / delta) / 2
        epsilon = chi_epsilon(Binary(lambda order: xi), delta, orders=[2])
        exact = norm.cdf(0.5 - epsilon) - math.exp(epsilon) * norm.cdf(-0.5 - epsilon)
        assert exact <= delta
        claimed = norm.cdf(0.5 - printed) - math.exp(printed) * norm.cdf(-0.5 - printed)
        assert claimed > delta


@pytest.mark.parametrize("order", [1.1, 1.5, 2.0, 3.0, 7.3])
def test_random_laws_never_exceed_the_bound(order: float) -> None:
    for _ in range(300):
        p, q = RNG.dirichlet(np.full(4, 0.3), size=2) * (1 - 4e-9) + 1e-9
        xi = Binary.of_laws([p / p.sum(), q / q.sum()])
        epsilon = float(RNG.exponential(2.0))
        truth = true_delta(p / p.sum(), q / q.sum(), epsilon)
        assert truth <= chi_delta(xi, epsilon, orders=[order])


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
def test_tight_for_a_two_point_law(order: float) -> None:
    epsilon = 1.2
    mass, ratio = 1e-9, 1 + order * math.expm1(epsilon) / (order - 1)
    q, p = np.array([mass, 1 - mass]), np.array([mass * ratio, 1 - mass * ratio])
    xi = Binary(lambda a: float(binary_root(p, q, a)))
    assert chi_delta(xi, epsilon, orders=[order]) == pytest.approx(true_delta(p, q, epsilon), rel=1e-4)


def test_the_two_directions_invert_each_other() -> None:
    xi = Binary(lambda order: 0.7 * order**0.3)
    for epsilon in (0.3, 1.0, 4.0):
        for order in (1.4, 2.0, 9.0):
            delta = chi_delta(xi, epsilon, orders=[order])
            if delta < 1:
                assert chi_epsilon(xi, delta, orders=[order]) == pytest.approx(epsilon, rel=1e-9)


def test_ends() -> None:
    pair = Ternary.of_laws([[0.75, 0.25], [0.25, 0.75]])
    assert chi_delta(pair, 0.0) == pytest.approx(0.5, rel=1e-12)  # total variation, order 1
    assert chi_delta(pair, math.log(3) * (1 + 1e-12)) == 0.0  # order inf
    assert chi_epsilon(pair, 0.0) == pytest.approx(math.log(3), rel=1e-12)
    assert chi_epsilon(pair, 0.51) == 0.0
    assert chi_epsilon(pair, 1.0) == 0.0
    unknown = Binary(lambda order: math.inf)
    assert chi_delta(unknown, 1.0) == 1.0
    assert chi_epsilon(unknown, 1e-3) == math.inf
    same = Binary(lambda order: 0.0)
    assert chi_delta(same, 0.0) == 0.0
    assert chi_epsilon(same, 0.0) == 0.0
    assert chi_delta(Binary(lambda order: math.nan), 1.0) == 1.0


def constant(root: float) -> Binary:
    return Binary(lambda order: root)


@pytest.mark.parametrize("order", [2.0, 7.0, 33.0, 800.0, 4096.0])
def test_small_deltas_and_large_orders_are_rounded_up(order: float) -> None:
    """xi^a (a-1)^(a-1) / (a^a t^(a-1)) in balls: logarithms of hundreds lose digits, and none of them may be missing."""
    rng = np.random.default_rng(int(order))
    with BALLS.at(256):
        a = BALLS.number(order)
        for _ in range(200):
            root, epsilon = float(np.exp(rng.uniform(-3, 0))), float(rng.uniform(0.01, 6))
            truth = a * BALLS.number(root).log() + (a - 1) * (a - 1).log() - a * a.log()
            truth -= (a - 1) * BALLS.number(epsilon).expm1().log()
            found = chi_delta(constant(root), epsilon, orders=[order])
            if 1e-300 < found < 1:
                assert found >= truth.exp()
                assert found <= truth.exp() * (1 + 1e-9)
                assert chi_epsilon(constant(root), found, orders=[order]) <= epsilon * (1 + 1e-9)
