"""Theorems A and C: Delta by two independent integrals, limits, and an attack by random triangles."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.hunt_triangles import TOLERANCE, hunt
from cumulant.bounds import gaussian_theorems
from cumulant.bounds.gaussian_theorems import (
    _delta_ball,
    _expanded_delta,
    _integrated_delta,
    delta,
    gaussian_ball,
    gaussian_diameter,
)
from cumulant.bounds.without_replacement import profile, proposition11
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.gaussian import GaussianPair

ORDERS = np.array([1.0, 1.01, 1.5, 2.0, 10.0, 64.5, 1000.0])


def delta_cap(shift: Fraction, rate: Fraction) -> float:
    """Return g^2 (e^{s/2} - 1)^2 / (2(1-g)), which Delta does not exceed; 0 from rate 1/2 on."""
    g, s = float(rate), float(shift) ** 2
    return 0.0 if rate >= Fraction(1, 2) else g * g * math.expm1(min(s / 2, 350.0)) ** 2 / (2 * (1 - g))


@pytest.mark.parametrize("shift", ["0.01", "0.2", "1", "5", "1000"])
@pytest.mark.parametrize("rate", ["1e-12", "0.001", "0.1", "0.4999"])
def test_delta_as_a_double_integral_and_as_a_certified_single_one(shift: str, rate: str) -> None:
    value = delta(Fraction(shift), Fraction(rate))
    with BALLS.at(128):
        ball = _delta_ball(Fraction(shift), Fraction(rate))
    assert ball.rel_accuracy_bits() > 50
    assert value == pytest.approx(float(ball.mid()), rel=1e-13)
    assert _integrated_delta(Fraction(shift), Fraction(rate)) == pytest.approx(float(ball.mid()), rel=1e-13)
    assert 0 < value < delta_cap(Fraction(shift), Fraction(rate))


@pytest.mark.parametrize("shift", ["1e-9", "0.001", "0.05", "0.2", "0.5"])
@pytest.mark.parametrize("rate", ["1e-100", "1e-6", "0.01", "0.1"])
def test_delta_by_powers_holds_the_ball(shift: str, rate: str) -> None:
    found = _expanded_delta(Fraction(shift), Fraction(rate))
    if found is None:
        assert rate == "0.1"  # the powers grow before they are small, or are not small enough
        assert shift in ("0.5", "1e-9")
        return
    with BALLS.at(256):
        ball = _delta_ball(Fraction(shift), Fraction(rate))
        assert BALLS.number(Fraction(float(found.lower()))) < ball < BALLS.number(Fraction(float(found.upper())))
    assert found.radius < 1e-13 * found.mid


@pytest.mark.parametrize("powers", [1, 2, 3])
def test_what_the_powers_leave_out_counts(powers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shift, rate = Fraction(1, 2), Fraction(1, 10)
    monkeypatch.setattr(gaussian_theorems, "_MOST_POWERS", powers)
    monkeypatch.setattr(gaussian_theorems, "_SHARP", 1e9)
    found = _expanded_delta.__wrapped__(shift, rate)
    assert found is not None
    with BALLS.at(128):
        away = abs(float(_delta_ball(shift, rate) - BALLS.number(Fraction(float(found.mid)))))
    assert 1e-3 * found.radius < away < found.radius
    assert away > 1e-6 * found.mid  # rounding alone would not hold it


def test_delta_vanishes_from_rate_one_half_on() -> None:
    for rate in (Fraction(1, 2), Fraction(9, 10)):
        assert delta(Fraction(1), rate) == delta_cap(Fraction(1), rate) == 0
        pair = GaussianPair(Fraction(1))
        np.testing.assert_array_equal(gaussian_diameter(pair, rate).rdp(ORDERS), proposition11(pair, rate).rdp(ORDERS))


def test_delta_is_what_the_worst_triangle_of_kl_adds() -> None:
    # B* = 1 here: the equilateral triangle; KL of two mixtures in the plane by a product rule
    g, sigma = 0.2, 1.5
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]]) / sigma
    line = np.arange(-9, 11, 0.25)
    y = np.stack(np.meshgrid(line, line), axis=-1)
    n = [np.exp(-np.sum((y - c) ** 2, axis=-1) / 2) / (2 * np.pi) for c in corner]
    a, b = (1 - g) * n[0] + g * n[1], (1 - g) * n[0] + g * n[2]
    equilateral = np.sum(a * np.log(a / b)) * 0.25**2
    pair = GaussianPair(1 / Fraction("1.5"))
    assert gaussian_diameter(pair, Fraction(1, 5)).kl() == pytest.approx(equilateral, rel=1e-10)
    assert proposition11(pair, Fraction(1, 5)).kl() < 0.97 * equilateral


def test_ball_is_the_lower_bound() -> None:
    pair, rate = GaussianPair(Fraction(1, 2), "ball"), Fraction(1, 100)
    np.testing.assert_array_equal(gaussian_ball(pair, rate).rdp(ORDERS), proposition11(pair, rate).rdp(ORDERS))


def test_diameter_at_integers_is_proposition_11_plus_one_term() -> None:
    # C(a,2) 2 Delta inside the logarithm
    pair, rate = GaussianPair(Fraction(1)), Fraction(1, 1000)
    for a in (2, 3, 10):
        inside = np.expm1(proposition11(pair, rate).cgf([a - 1.0])[0]) + a * (a - 1) * delta(Fraction(1), rate)
        assert gaussian_diameter(pair, rate).cgf([a - 1.0])[0] == pytest.approx(np.log1p(inside), rel=1e-13)


@pytest.mark.parametrize("sigma", ["5", "1", "0.5"])
def test_ratio_to_the_lower_bound(sigma: str) -> None:
    pair, rate = GaussianPair(1 / Fraction(sigma)), Fraction(1, 1000)
    orders = np.unique(np.geomspace(2, 1000, 60).round())
    low, diameter = proposition11(pair, rate).rdp(orders), gaussian_diameter(pair, rate).rdp(orders)
    assert np.all(diameter >= low)
    assert np.all(np.minimum(diameter, profile(pair, rate).rdp(orders)) <= 1.60 * low)


def test_floats_lie_in_the_balls() -> None:
    curve = gaussian_diameter(GaussianPair(Fraction(1, 2)), Fraction(1, 100))
    lam = [Fraction(1, 100), Fraction(1), Fraction(9, 2), Fraction(400)]
    with BALLS.at(128):
        balls = [float(x.mid()) for x in [*curve.cgf(lam, BALLS), curve.kl(BALLS)]]
    np.testing.assert_allclose([*curve.cgf([float(x) for x in lam]), curve.kl()], balls, rtol=1e-13)


def test_limits_of_the_rate_and_extreme_values() -> None:
    pair = GaussianPair(Fraction(1, 2), "ball")
    for bound in (gaussian_ball, gaussian_diameter):
        nearly = bound(pair, 1 - Fraction(1, 10**12)).rdp(ORDERS)
        np.testing.assert_allclose(nearly, pair.curve().rdp(ORDERS), rtol=1e-9)
        assert np.all(bound(pair, Fraction(1, 10**12)).rdp(ORDERS[:-1]) < 1e-18)
    for shift in ("1000", "1e-6"):
        for rate in ("1e-12", "0.3"):
            rdp = gaussian_diameter(GaussianPair(Fraction(shift)), Fraction(rate)).rdp(np.append(ORDERS, 1e7))
            assert np.all(np.isfinite(rdp))
            assert np.all(np.diff(rdp) > -1e-12 * rdp[1:])
            assert np.all(rdp > 0)


def test_random_triangles_stay_below() -> None:
    measured, worst = hunt(settings=30, seed=20)
    assert measured > 150
    assert all(0.9 < ratio <= 1 + TOLERANCE for ratio, _ in worst.values())
