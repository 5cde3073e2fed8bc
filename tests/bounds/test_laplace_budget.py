"""Theorem V: random triples of values, every inequality of its proof, and the curve that it gives."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.bounds.laplace_budget import _largest_over_boxes, laplace_budget, largest_square
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.laplace import LaplacePair
from tests.oracles.triples import Laws, binned_laplace, laplace_square, random_l1_triples


def J(x: Laws | float) -> Laws:
    return np.asarray(2 / 3 * np.exp(x) + 1 / 3 * np.exp(-2 * np.asarray(x)))


def m(c: Laws, d: Laws) -> Laws:
    return np.asarray(np.exp(c) - np.exp(-d) * (np.exp(c) - np.exp(-2 * c)) / 3)


def rho(x: Laws, y: Laws) -> Laws:
    return np.asarray(1 - (1 - np.exp(-x)) * (1 - np.exp(-y)))


@pytest.mark.parametrize(
    ("shift", "expected"), [("0.5", 0.22671), ("1", 0.92022), ("2", 4.66879), ("4", 46.612), ("8", 3203.7)]
)
def test_the_largest_square(shift: str, expected: float) -> None:
    found = largest_square(Fraction(shift), "vector")
    assert found is not None
    assert expected * (1 - 1e-5) <= found <= expected * 1.00035
    scalar = largest_square(Fraction(shift), "scalar")
    assert scalar is not None
    assert scalar == pytest.approx(float(J(float(shift))) - 1, rel=1e-9)
    assert scalar <= found


def test_what_is_not_said_has_no_budget() -> None:
    assert largest_square(Fraction(2), "") is None
    sample = cm.WithoutReplacement(rate="0.01")
    for run in (
        (cm.Laplace(scale=2) * 2) @ sample,
        cm.NoisyMax(1) @ sample,
        cm.PermuteAndFlip(1) @ sample,
        cm.PureDP(1) @ sample,
    ):
        with pytest.raises(cm.HypothesisError, match="laplace-budget"):
            run.rdp(2, bound="laplace-budget")
    with pytest.raises(cm.HypothesisError, match="Poisson"):
        (cm.Laplace(scale=2) @ cm.Poisson(rate="0.01")).rdp(2, bound="laplace-budget")


def test_moments_of_one_coordinate() -> None:
    """J, m and rho against quadrature of three Laplace densities."""
    x = np.linspace(-60, 60, 2_400_001)
    r = np.exp(-np.abs(x)) / 2

    def moment(p: float, q: float) -> float:
        return float(np.trapezoid(np.exp(-np.abs(x - p) - np.abs(x - q)) / 4 / r, x))

    for c, d in ((0.7, 0.3), (1.5, 0.0), (0.2, 1.1)):
        assert moment(c, c) == pytest.approx(float(J(c)), rel=1e-6)
        assert moment(c, c + d) == pytest.approx(float(m(np.array(c), np.array(d))), rel=1e-6)
        assert moment(c, -d) == pytest.approx(float(rho(np.array(c), np.array(d))), rel=1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
def test_random_triples_stay_below(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    for shift in ("0.3", "1", "4"):
        limit = largest_square(Fraction(shift), "scalar" if dimension == 1 else "vector")
        assert limit is not None
        found = laplace_square(*random_l1_triples(rng, float(shift), 3000, dimension))
        assert (found <= limit).all()
        assert found.max() > 0.5 * limit


def test_inequalities_of_the_proof() -> None:
    rng = np.random.default_rng(3)
    c1, c2, d1, d2, s = rng.exponential(size=(5, 20_000))
    u = rng.uniform(size=20_000)
    assert (u * (3 - u * u) <= 2 + 1e-15).all()
    # step (1): second differences of the whole in s, both medians
    a, b = rng.exponential(size=(2, 20_000)) + 1
    k = rng.uniform(0, 1, 20_000) * np.sqrt(a * b)
    s = 0.3 * np.minimum(c1, c2) * rng.uniform(size=20_000)

    def same(move: Laws) -> Laws:
        one, two = c1 + move, c2 - move
        return np.asarray(a * J(one + d1) * J(two + d2) + b * J(one) * J(two) - 2 * k * m(one, d1) * m(two, d2))

    def crossed(move: Laws) -> Laws:
        one, two = c1 + move, c2 - move
        return np.asarray(a * J(one + d1) * J(two) + b * J(one) * J(two + d2) - 2 * k * m(one, d1) * m(two, d2))

    for value in (same, crossed):
        size = np.abs(value(0 * s)) + a * J(c1 + d1) * J(c2 + d2)
        assert (value(s) + value(-s) - 2 * value(0 * s) >= -1e-12 * size).all()
    # step (2)
    assert (J(c1) * J(c2) <= J(c1 + c2) * (1 + 1e-14)).all()
    assert (rho(c1 + c2, d1 + d2) <= rho(c1, d1) * rho(c2, d2) + 1e-15).all()
    # one dimension
    assert (J(c1 + d1) + J(c1) - 2 * m(c1, d1) <= J(c1 + d1) - 1 + 1e-12 * J(c1 + d1)).all()
    assert (J(c1) + J(d1) - 2 * rho(c1, d1) <= J(c1 + d1) - 1 + 1e-12 * J(c1 + d1)).all()
    # what the boxes rest on: J, m and 1 - rho grow
    assert (J(c1 + s) >= J(c1)).all()
    assert (m(c1 + s, d1) >= m(c1, d1) * (1 - 1e-14)).all()
    assert (m(c1, d1 + s) >= m(c1, d1) * (1 - 1e-14)).all()


def test_the_curve_is_above_explicit_triples() -> None:
    """Outputs in bins, which only lose; the budget and the curve are still close to them."""
    for shift, rate in (("2", "0.01"), ("4", "0.001")):
        curve = laplace_budget(LaplacePair(Fraction(shift), query="vector"), Fraction(rate))
        t, g = float(shift), float(rate)
        for p, q in (((t / 2, t / 2), (t / 2, -t / 2)), ((t, 0.0), (t / 2, t / 2)), ((t, 0.0), (0.0, 0.0))):
            laws = binned_laplace(np.array([(0.0, 0.0), p, q]), 60)
            a, b = (1 - g) * laws[0] + g * laws[1], (1 - g) * laws[0] + g * laws[2]
            for order in (1.5, 2.0, 3.0, 9.0, 40.0):
                needed = float(np.log(np.sum(b * (a / b) ** order)) / (order - 1))
                assert needed <= float(curve.rdp(order)) * (1 + 1e-9)
        assert float(curve.rdp(2.0)) < 0.75 * float(curve.profile.rdp(2.0))


def test_numbers_of_the_renyi_curve() -> None:
    for scale, rate, times, delta, expected in (
        ("0.5", "0.001", 600_000, 1e-8, 10.913),
        ("1", "0.01", 10_000, 1e-6, 5.043),
        ("2", "0.001", 600_000, 1e-8, 2.069),
        ("0.25", "0.001", 100_000, 1e-8, 14.81),
    ):
        found = (cm.Laplace(scale=scale) @ cm.WithoutReplacement(rate=rate) * times).guarantee(
            delta=delta, method="rdp"
        )
        assert found.epsilon == pytest.approx(expected, rel=4e-4)
        assert (found.bound, found.rigour) == ("laplace-budget", "proved")


@pytest.mark.parametrize(
    ("shift", "rate", "query"), [("2", "0.001", "vector"), ("6", "0.05", "scalar"), ("0.3", "0.2", "vector")]
)
def test_floats_lie_in_balls_and_below_the_profile(shift: str, rate: str, query: str) -> None:
    curve = laplace_budget(LaplacePair(Fraction(shift), query=query), Fraction(rate))
    for lam in (0.5, 1.0, 2.5, 100.0):
        with BALLS.at(128):
            ball = curve.cgf(np.array([Fraction(lam)], dtype=object), BALLS)[0]
        assert float(curve.cgf(np.array([lam]))[0]) == pytest.approx(float(ball.mid()), rel=1e-9)
        if lam >= 1:
            assert float(ball.mid()) <= float(curve.profile.cgf(np.array([lam]))[0]) * (1 + 1e-9)


def test_boxes_notice_a_limit_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """With candidates that miss the maximum the bisection never ends, and nothing is claimed."""
    assert _largest_over_boxes(1.0, 3e-4) is not None
    assert _largest_over_boxes(1.0, -0.02) is None
    assert math.isclose(_largest_over_boxes(1.0, 3e-4) or 0.0, 0.92022 * 1.0003, rel_tol=1e-4)
