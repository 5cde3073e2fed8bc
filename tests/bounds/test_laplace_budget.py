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


@pytest.mark.parametrize("shift", ["0.5", "3.7", "4", "8"])
def test_triples_beside_the_maximisers_stay_below(shift: str) -> None:
    """The star, the corner and the pair, and values around them, in two to four dimensions; one of the three comes close."""
    rng, t = np.random.default_rng(8), float(shift)
    limit, closest = largest_square(Fraction(shift), "vector"), 0.0
    assert limit is not None
    for dimension in (2, 3, 4):
        for p, q in (((t / 2, t / 2), (t / 2, -t / 2)), ((t, 0.0), (t / 2, t / 2)), ((t, 0.0), (0.0, 0.0))):
            triple = np.zeros((3, 1500, dimension))
            triple[1, :, :2], triple[2, :, :2] = p, q
            noise = (
                rng.laplace(size=triple.shape) * 10 ** rng.uniform(-4, 0, (1, 1500, 1)) * (np.arange(1500) > 0)[:, None]
            )
            triple = triple + noise
            far = np.max([np.abs(triple[i] - triple[j]).sum(axis=1) for i, j in ((0, 1), (0, 2), (1, 2))], axis=0)
            found = laplace_square(*(triple * (t / far)[:, None]))
            assert (found <= limit).all()
            closest = max(closest, float(found.max()) / limit)
    assert closest > 0.9995


def test_in_one_dimension_the_pair_is_the_maximum() -> None:
    """J(t) - 1, attained by r = q, and by no triple exceeded."""
    rng = np.random.default_rng(9)
    for t in (0.3, 1.0, 4.0):
        zero = np.zeros((1, 1))
        assert float(laplace_square(zero, zero + t, zero)[0]) == pytest.approx(float(J(t)) - 1, rel=1e-9)
        points = np.sort(rng.uniform(0, t, (3, 20_000, 1)), axis=0)
        points = (points - points[:1]) * t / (points[2:] - points[:1])
        for order in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
            assert (laplace_square(*(points[i] for i in order)) <= (float(J(t)) - 1) * (1 + 1e-9)).all()


def draws(count: int = 20_000) -> tuple[Laws, ...]:
    return tuple(np.random.default_rng(3).exponential(size=(4, count)))


def test_moving_an_arm_is_convex() -> None:
    """Step (1): second differences of the whole in s, the median being the same in both coordinates or not."""
    rng = np.random.default_rng(4)
    c1, c2, d1, d2 = draws()
    a, b = rng.exponential(size=(2, 20_000)) + 1
    k = rng.uniform(0, 1, 20_000) * np.sqrt(a * b)
    s = 0.3 * np.minimum(c1, c2) * rng.uniform(size=20_000)

    def same(move: Laws, k: Laws) -> Laws:
        one, two = c1 + move, c2 - move
        return np.asarray(a * J(one + d1) * J(two + d2) + b * J(one) * J(two) - 2 * k * m(one, d1) * m(two, d2))

    def crossed(move: Laws, k: Laws) -> Laws:
        one, two = c1 + move, c2 - move
        return np.asarray(a * J(one + d1) * J(two) + b * J(one) * J(two + d2) - 2 * k * m(one, d1) * m(two, d2))

    for value in (same, crossed):
        size = 1e-12 * (np.abs(value(0 * s, k)) + a * J(c1 + d1) * J(c2 + d2))
        assert (value(s, k) + value(-s, k) - 2 * value(0 * s, k) >= -size).all()
        # beyond what Cauchy and Schwarz allow of E XY it is not
        assert (value(s, 3 * k) + value(-s, 3 * k) - 2 * value(0 * s, 3 * k) < -size).any()


def test_the_coefficient_of_the_second_derivative() -> None:
    """u (3 - u^2) <= 2 on [0, 1], and what it is for."""
    rng = np.random.default_rng(5)
    u = rng.uniform(size=20_000)
    assert (u * (3 - u * u) <= 2 + 1e-15).all()
    a, b = rng.exponential(size=(2, 20_000)) + 1
    D1, D2, k = rng.uniform(size=20_000), rng.uniform(size=20_000), rng.uniform(size=20_000) * np.sqrt(a * b)
    least = 2 * np.sqrt(a * b) * D2 / np.sqrt(D1) * (2 - np.sqrt(D1) * (3 - D1))
    mixed = 6 * k * D2 * (1 - D1 / 3)
    for squares in (2 * a * D2**2 / D1 + 2 * b, 2 * a / D1 + 2 * b * D2**2):
        assert (squares - mixed >= least - 1e-12 * squares).all()
    assert (least >= -1e-12).all()


def test_coordinates_with_the_rest_in_the_middle_merge() -> None:
    """Step (2): J(x1) J(x2) <= J(x1+x2) and rho(x1+x2, y1+y2) <= rho(x1, y1) rho(x2, y2)."""
    x1, x2, y1, y2 = draws()
    assert (J(x1) * J(x2) <= J(x1 + x2) * (1 + 1e-14)).all()
    assert (rho(x1 + x2, y1 + y2) <= rho(x1, y1) * rho(x2, y2) + 1e-15).all()
    # with the rest at an end coordinates do not merge: E XY of both may be larger
    assert (m(x1 + x2, y1 + y2) > m(x1, y1) * m(x2, y2) * (1 + 1e-9)).any()


def test_inequalities_in_one_dimension() -> None:
    c, d, *_ = draws()
    assert (J(c + d) + J(c) - 2 * m(c, d) <= J(c + d) - J(c) + 1e-12 * J(c + d)).all()
    assert (J(c) + J(d) - 2 * rho(c, d) <= J(c + d) - 1 + 1e-12 * J(c + d)).all()
    assert m(c, 0 * c) == pytest.approx(J(c), rel=1e-12)
    assert (np.exp(2 * c) + 2 * np.exp(-c) >= 3).all()


def test_what_boxes_rest_on_grows() -> None:
    """J, m and 1 - rho."""
    c, d, s, _ = draws()
    assert (J(c + s) >= J(c)).all()
    assert (m(c + s, d) >= m(c, d) * (1 - 1e-14)).all()
    assert (m(c, d + s) >= m(c, d) * (1 - 1e-14)).all()
    assert (rho(c + s, d) <= rho(c, d)).all()


def test_the_bathtub() -> None:
    """Random H between 0 and H_env with INT H <= beta: powers filled from the top, and e^{-nx} from x0, for every edge."""
    rng, t, g, beta_part = np.random.default_rng(6), 1.5, 0.05, 0.6
    top = math.log1p(g * math.expm1(t))
    s = np.exp(np.linspace(-top, top, 1501))
    x, width = np.log(s), np.gradient(s)
    call = g * -np.expm1((np.minimum(np.log1p(np.expm1(np.abs(x)) / g), t) - t) / 2)
    env = np.where(x >= 0, call, s * call)
    beta = beta_part * float(env @ width)
    H = env * rng.uniform(size=(400, 7)).repeat(215, axis=1)[:, :1501] ** rng.uniform(0, 2, (400, 1))
    H[:50] = env * (s > np.quantile(s, rng.uniform(size=(50, 1))))  # full from the top
    H[50:100] = env * (s < np.quantile(s, rng.uniform(size=(50, 1))))
    H *= np.minimum(beta / (H @ width), 1.0)[:, None]
    assert (env * (1 + 1e-12) >= H).all()
    edges = np.exp(top * rng.uniform(-1, 1, 40))
    for order in (2.0, 3.0, 8.0, 40.0):
        most = (H * s ** (order - 2)) @ width
        above = [float(np.maximum(s ** (order - 2) - s1 ** (order - 2), 0) * env @ width) for s1 in edges]
        bounds, less = (
            min(s1 ** (order - 2) * part * beta + each for s1, each in zip(edges, above, strict=True))
            for part in (1.0, 0.8)
        )
        assert most.max() <= bounds * (1 + 1e-12)
        assert most.max() > less  # a budget that is too small would be found
    for order in (0.5, 2.0, 8.0):
        for x0 in top * rng.uniform(-1, 0.9, 10):
            after = x >= x0
            most = (H * s ** (-order - 1) * after) @ width
            for x2 in x0 + (top - x0) * rng.uniform(size=6):
                mu = math.exp(-(order + 1) * x2)
                filled = mu * beta + float(np.maximum(s ** (-order - 1) - mu, 0) * env * after @ width)
                assert most.max() <= filled * (1 + 1e-12)


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
        assert (found.evidence.bound, found.rigour) == ("laplace-budget", "proved")


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
