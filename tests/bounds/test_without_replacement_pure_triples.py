"""Theorem P against linear programmes, random laws and its own extreme triples."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import cumulant as cm
from cumulant.bounds.bound import best
from cumulant.bounds.without_replacement import WITHOUT_REPLACEMENT, pure_triples
from cumulant.curves.closed_form import Response
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.enclosure import BOUNDED
from cumulant.pairs.response import ResponsePair
from tests.oracles.triples import random_pure_triples

ORDERS = [1.0, 1.01, 1.5, 2.0, 3.5, 16.0, 200.0]


def three(epsilon: float, rate: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """The three triples of the theorem from the laws of their mechanisms: a and b on the same outputs."""
    c = math.exp(epsilon)
    yes, no = np.array([c, 1]) / (1 + c), np.array([1, c]) / (1 + c)
    first, second, third = (np.where(np.arange(3) == own, c, 1.0) / (c + 2) for own in range(3))
    laws = [(no, yes, no), (yes, yes, no), (first, second, third)]  # R, P, Q
    return [((1 - rate) * r + rate * p, (1 - rate) * r + rate * q) for r, p, q in laws]


def log_moment(a: np.ndarray, b: np.ndarray, order: float) -> float:
    if order == 1:
        return float(np.sum(a * np.log(a / b)))
    return float(np.log1p(np.sum(b * np.expm1(order * np.log(a / b)) - order * (a - b))) / (order - 1))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("rate", [0.001, 0.1, 0.7])
def test_the_curve_is_that_of_the_worst_triple(epsilon: float, rate: float) -> None:
    run = cm.PureDP(epsilon) @ cm.WithoutReplacement(rate=rate)
    found = run.rdp(ORDERS, bound="pure-triples")
    truth = [max(log_moment(a, b, order) for a, b in three(epsilon, rate)) for order in ORDERS]
    assert found == pytest.approx(truth, rel=1e-8)
    assert (run.rdp(ORDERS) == found).all()


def test_numbers_of_the_renyi_curve() -> None:
    """Two runs by Rényi divergences alone, proved; the profile gives 1.8786 and 5.923."""
    for epsilon, rate, times, delta, expected in ((1, 0.01, 1000, 1e-6, 1.6523), (1, 0.001, 600_000, 1e-8, 5.194)):
        found = (cm.PureDP(epsilon) @ cm.WithoutReplacement(rate=rate) * times).guarantee(delta=delta, method="rdp")
        assert found.epsilon == pytest.approx(expected, rel=1e-4)
        assert (found.evidence.bound, found.rigour) == ("pure-triples", "proved")


@pytest.mark.parametrize("seed", range(4))
def test_a_linear_programme_over_the_hexagon_finds_no_more(seed: int) -> None:
    """Laws of (X, Y) on a grid of the hexagon with the mean (1, 1), for random convex functions."""
    rng = np.random.default_rng(seed)
    epsilon, rate = rng.uniform(0.1, 3), rng.uniform(0.01, 0.9)
    log = np.linspace(-epsilon, epsilon, 13)
    x, y = (side.ravel() for side in np.meshgrid(log, log))
    inside = np.abs(x - y) <= epsilon + 1e-12
    x, y = np.exp(x[inside]), np.exp(y[inside])
    a, b = 1 - rate + rate * x, 1 - rate + rate * y
    for _ in range(5):
        corners, sizes = (
            rng.uniform(1 / (1 + rate * np.expm1(epsilon)), 1 + rate * np.expm1(epsilon), 4),
            rng.uniform(size=4),
        )

        def convex(t: np.ndarray, corners: np.ndarray = corners, sizes: np.ndarray = sizes) -> np.ndarray:
            return np.asarray(np.maximum(t[..., None] - corners, 0) @ sizes)

        found = linprog(
            -b * convex(a / b),
            A_eq=np.array([np.ones_like(x), x, y]),
            b_eq=np.ones(3),
            bounds=(0, None),
            method="highs",
        )
        truth = max(float(np.sum(q * convex(p / q))) for p, q in three(epsilon, rate))
        assert -float(found.fun or 0.0) <= truth * (1 + 1e-7) + 1e-12


def test_random_triples_stay_below() -> None:
    """2,000 triples with up to 6 outputs, at random orders."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        epsilon, rate = float(rng.uniform(0.05, 4)), float(rng.uniform(0.001, 0.9))
        order = np.array([1.2, 2.0, 7.0, 60.0])
        bound = np.asarray(pure_triples(Response(epsilon=Fraction(epsilon)), Fraction(rate)).rdp(order))
        r, p, q = random_pure_triples(rng, epsilon, 100)
        a, b = (1 - rate) * r + rate * p, (1 - rate) * r + rate * q
        for one, limit in zip(order, bound, strict=True):
            found = np.log(np.sum(b * (a / b) ** one, axis=1)) / (one - 1)
            assert (found <= limit * (1 + 1e-9) + 1e-14).all()


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(9, 10)])
def test_floats_and_enclosures_lie_in_balls(rate: Fraction) -> None:
    curve = pure_triples(Response(epsilon=Fraction(2)), rate)
    for lam in (0.01, 1.0, 30.5):
        with BALLS.at(192):
            ball = curve.cgf(np.array([Fraction(lam)], dtype=object), BALLS)[0]
        enclosed = curve.cgf(np.array([lam]), BOUNDED)
        assert float(enclosed.lower()[0]) <= float(ball.mid()) <= float(enclosed.upper()[0])
        assert float(curve.cgf(np.array([lam]))[0]) == pytest.approx(float(ball.mid()), rel=1e-12)


def test_rows_that_hold_for_the_whole_class_are_not_evaluated() -> None:
    pair, rate = ResponsePair(epsilon=Fraction(1)), Fraction(1, 10)
    orders = np.array([1.5, 2.0, 10.0, 300.0])
    truth = pure_triples(pair.curve(), rate).rdp(orders)
    for name, row in WITHOUT_REPLACEMENT.items():
        if row.upper and row.curve is not None and not row.objection(pair.curve(), pair):
            assert (row.curve(pair.curve(), pair, rate).rdp(orders) >= truth * (1 - 1e-12)).all(), name
    assert best(WITHOUT_REPLACEMENT, pair.curve(), pair, rate).winner(3.0) == "pure-triples"


def test_several_queries_on_one_sample_are_one_pure_mechanism() -> None:
    sample = cm.WithoutReplacement(rate="0.01")
    both = ((cm.PureDP(1) * 2) @ sample).rdp([2, 9.5], bound="pure-triples")
    assert both == pytest.approx((cm.PureDP(2) @ sample).rdp([2, 9.5], bound="pure-triples"), rel=1e-12)
    with pytest.raises(cm.HypothesisError, match="slack"):
        (cm.ApproximateDP(1, 1e-6) @ sample).rdp(2, bound="pure-triples")


# ---- every inequality of the proof, on random draws


def random_classes(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """c, g, A and B, one setting in each row."""
    rng = np.random.default_rng(11)
    c, g = np.exp(10 ** rng.uniform(-2, 0.9, (count, 1))), 10 ** rng.uniform(-4, -0.01, (count, 1))
    return c, g, 1 + g * (c - 1), 1 - g * (1 - 1 / c)


def time_value(atoms: list[tuple[np.ndarray, np.ndarray]], s: np.ndarray) -> np.ndarray:
    """H(s) = E_b (t-s)_+ - (1-s)_+ as it is written, row by row: calls from 1 on, and puts below."""
    calls = sum((np.maximum(t - s, 0) * m for t, m in atoms), start=0 * s)
    puts = sum((np.maximum(s - t, 0) * m for t, m in atoms), start=0 * s)
    return np.where(s >= 1, calls, puts)


def all_four(c: np.ndarray, A: np.ndarray, B: np.ndarray) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Ratios and masses under b of (i), (ii), (iii) and (iv)."""
    return [
        [(A, 1 / (1 + c)), (B, c / (1 + c))],
        [(1 / A, A / (1 + c)), (1 / B, c * B / (1 + c))],
        [(A, 1 / (2 + c)), (1 / A, A / (2 + c))],
        [(B, c / (1 + 2 * c)), (1 / B, c * B / (1 + 2 * c))],
    ]


def test_the_put_ends_first() -> None:
    """AB = 1 + g(1-g)(c-1)^2/c >= 1, so that 1/A <= B and 1/B <= A."""
    c, g, A, B = random_classes(20_000)
    assert pytest.approx(1 + g * (1 - g) * (c - 1) ** 2 / c, rel=1e-12) == A * B
    assert (1 / A <= B * (1 + 1e-15)).all()
    assert (1 / B <= A * (1 + 1e-15)).all()


def test_the_fourth_extreme_point_never_wins() -> None:
    """Its time value is nowhere above that of the third, and so is every convex function of its ratio."""
    rng = np.random.default_rng(12)
    c, _, A, B = random_classes(4000)
    *_, third, fourth = all_four(c, A, B)
    s = np.exp(np.log(A) * np.linspace(-1.2, 1.2, 97))
    assert (time_value(fourth, s) <= time_value(third, s) + 1e-15 * A).all()
    corners, sizes = np.exp(np.log(A) * rng.uniform(-1.1, 1.1, (4000, 5))), rng.exponential(size=(4000, 5)) ** 2
    ours, theirs = ((time_value(law, corners) * sizes).sum(axis=1) for law in (third, fourth))
    assert (theirs <= ours * (1 + 1e-10) + 1e-14).all()
    assert (theirs > 0.9 * ours).any()  # with c = 1 they are the same


def test_masses_of_the_extreme_points_and_their_mean() -> None:
    c, _, A, B = random_classes(4000)
    for law in all_four(c, A, B):
        masses = sum((m for _, m in law), start=0 * c)
        assert (masses <= 1 + 1e-12).all()
        assert sum(t * m for t, m in law) - masses == pytest.approx(0 * c, abs=1e-9)


def test_the_difference_of_both_orders_is_odd_and_not_negative() -> None:
    """H2(x) = e^x H1(-x), D(x) = e^{-x/2} (H1 - H2), and (1+c) D = (1-g)(c-1)(e^{x/2} - e^{-x/2}) while both are positive."""
    c, g, A, B = random_classes(4000)
    one, two, *_ = all_four(c, A, B)
    x = np.log(A) * np.linspace(0.001, 1.2, 60)
    h1, h2, h1_below, h2_below = (time_value(law, np.exp(at)) for at in (x, -x) for law in (one, two))
    size = np.exp(x / 2) * (A - 1)
    assert (np.abs(h2 - np.exp(x) * h1_below) <= 1e-9 * size).all()
    D, D_below = np.exp(-x / 2) * (h1 - h2), np.exp(x / 2) * (h1_below - h2_below)
    assert (np.abs(D + D_below) <= 1e-9 * size).all()
    assert (-1e-10 * size <= D).all()
    both = x < -np.log(B) * (1 - 1e-9)
    stated = (1 - g) * (c - 1) * 2 * np.sinh(x / 2) / (1 + c)
    assert (np.abs(D - stated)[both] <= (1e-9 * size)[both]).all()


def test_the_first_order_is_worse_for_powers_from_one_half_on() -> None:
    """y^a, convex for a > 1, and -y^a for a in [1/2, 1); below 1/2 it is the other way round."""
    c, _, A, B = random_classes(3000)
    one, two, *_ = all_four(c, A, B)
    for order in (0.5, 0.51, 0.8, 1.2, 2.0, 3.5, 9.0, 0.3, 0.1):
        # E t^a - 1 - a E(t - 1): nothing cancels that matters
        values = [
            sum(m * (np.expm1(order * np.log(t)) - order * (t - 1)) for t, m in law) * (1 if order > 1 else -1)
            for law in (one, two)
        ]
        gap, size = values[0] - values[1], 1e-9 * values[0] + 1e-15 * A**order
        assert (gap >= -size).all() if order >= 0.5 else (gap <= size).all()
        assert order == 0.5 or (np.abs(gap) > 10 * size).any()


def test_none_of_the_three_can_be_left_out() -> None:
    """Each of the three is needed: without it some convex function is larger than what is left."""
    rng = np.random.default_rng(13)
    c, _, A, B = random_classes(4000)
    corners, sizes = np.exp(np.log(A) * rng.uniform(-1, 1, (4000, 2))), rng.exponential(size=(4000, 2))
    values = np.stack([(time_value(law, corners) * sizes).sum(axis=1) for law in all_four(c, A, B)[:3]])
    for left_out in range(3):
        others = np.delete(values, left_out, axis=0).max(axis=0)
        assert (values[left_out] > 1.01 * others).sum() > 50
