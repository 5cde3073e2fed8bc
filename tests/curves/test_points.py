"""Curves known at some orders: the largest cumulant generating function below them, found here by trying every chord."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import cumulant as cm
from cumulant.curves.points import hull_of_points

ORDERS = (2, 3, 4, 6, 8)
A, B = ("0.02", "0.30", "0.30", "0.30", "0.08"), ("0.30", "0.03", "0.30", "0.06", "0.40")


def least_chord(nodes: list[tuple[Fraction, Fraction]], lam: Fraction) -> Fraction:
    """The smallest chord over lam of any two nodes around it, or a node at it."""
    at = [y for x, y in nodes if x == lam]
    chords = [y0 + (lam - x0) / (x1 - x0) * (y1 - y0) for (x0, y0), (x1, y1) in combinations(nodes, 2) if x0 < lam < x1]
    return min(at + chords)


def nodes(orders: list[Fraction], values: list[Fraction]) -> list[tuple[Fraction, Fraction]]:
    start = (Fraction(0), Fraction(0))
    return [start, *((a - 1, (a - 1) * v) for a, v in zip(orders, values, strict=True))]


def test_every_chord_on_random_tables() -> None:
    random = np.random.default_rng(35)
    for _ in range(60):
        size = int(random.integers(1, 8))
        orders = [1 + Fraction(int(x), 7) for x in np.cumsum(random.integers(1, 30, size))]
        values = [Fraction(int(x), 100) for x in random.integers(0, 60, size)]
        curve, points = hull_of_points(orders, values), nodes(orders, values)
        asked = [Fraction(int(x), 997) for x in random.integers(1, int(997 * (orders[-1] - 1)) + 1, 20)]
        asked += [order - 1 for order in orders]
        found = curve.cgf([float(lam) for lam in asked])
        assert found == pytest.approx([float(least_chord(points, lam)) for lam in asked], rel=1e-12, abs=1e-300)
        rising = [y / x for x, y in nodes(list(curve.orders), list(curve.values))[1:]]
        assert rising == sorted(rising)  # a divergence never falls
        assert curve.cgf([float(orders[-1]) - 1 + 1e-6])[0] == math.inf  # nothing is known past the last node
        assert curve.kl() == float(curve.values[0])


def test_the_sum_of_two_tables() -> None:
    """2A + 2B at delta 1e-3. The best order is 6, where K_A = .02 + 4 (.56 - .02)/6 and K_B = .30."""
    first, second = cm.from_rdp_points(ORDERS, A), cm.from_rdp_points(ORDERS, B)
    run = 2 * first + 2 * second
    total = 2 * (0.02 + 4 * 0.09) + 2 * 0.30
    assert first.cgf(5) == pytest.approx(0.38, rel=1e-12)
    assert second.cgf(5) == pytest.approx(0.30, rel=1e-12)
    classic = (total + math.log(1e3)) / 5
    assert classic == pytest.approx(1.6536, abs=5e-5)
    assert run.epsilon(1e-3, method="rdp", conversion="classic") == pytest.approx(classic, rel=1e-9)
    cks = total / 5 + math.log(5 / 6) - (math.log(1e-3) + math.log(6)) / 5
    assert cks == pytest.approx(1.1129, abs=5e-5)
    assert run.epsilon(1e-3) == pytest.approx(cks, rel=1e-9)
    guarantee = run.guarantee(delta=1e-3)
    assert guarantee.rigour == "proved"
    assert guarantee.verify().holds
    # the sum of the tables, projected, is worse than the sum of the projections
    sums = [2 * (float(a) + float(b)) * (order - 1) for order, a, b in zip(ORDERS, A, B, strict=True)]
    later = [(order - 1, y) for order, y in zip(ORDERS, sums, strict=True)]
    exact = [(Fraction(0), Fraction(0)), *((Fraction(x), Fraction(y)) for x, y in later)]
    chord = float(least_chord(exact, Fraction(5)))
    assert chord / 5 + math.log(5 / 6) - (math.log(1e-3) + math.log(6)) / 5 > 1.2


def test_it_is_projected_before_it_is_amplified() -> None:
    """Theorem 9 at order 4 with the hull of table A: eps(2) = .02, eps(3) = .11/2, eps(4) = .2/3."""
    run = cm.from_rdp_points(ORDERS, A) @ cm.WithoutReplacement(rate="0.1")
    terms = [
        math.comb(4, 2) * 0.1**2 * min(4 * math.expm1(0.02), 2 * math.exp(0.02)),
        math.comb(4, 3) * 0.1**3 * 2 * math.exp(0.11),
        0.1**4 * 2 * math.exp(0.2),
    ]
    assert run.rdp(4, bound="theorem9") == pytest.approx(math.log1p(sum(terms)) / 3, rel=1e-12)
    both = (cm.from_rdp_points(ORDERS, A) + cm.from_rdp_points(ORDERS, B)) @ cm.WithoutReplacement(rate="0.1")
    sums = {2: 0.02 + 0.03, 3: 0.11 + 0.06, 4: 0.2 + 0.14}  # K at lambda = 1, 2, 3 of both hulls
    terms = [
        math.comb(4, j) * 0.1**j * (2 * math.exp(k) if j > 2 else min(4 * math.expm1(k), 2 * math.exp(k)))
        for j, k in sums.items()
    ]
    assert both.rdp(4, bound="theorem9") == pytest.approx(math.log1p(sum(terms)) / 3, rel=1e-12)


def test_a_function_with_a_kink() -> None:
    """rdp jumps at order 4; the true K is convex, and so below the chord that skips the jump."""

    def rdp(order: float) -> float:
        return 0.05 if order < 4 else 0.6

    mine = cm.from_rdp(rdp=rdp)
    # K = lam/20 at lam = 1, 2 and 0.6 lam from 3 on; the hull leaves (2, 0.1) for the last order of the scan, lam = 4096
    slope = (0.6 * 4096 - 0.1) / (4096 - 2)
    for lam in (3, 5, 40, 1000):
        assert mine.cgf(lam) == pytest.approx(0.1 + slope * (lam - 2), rel=1e-9)
        assert mine.cgf(lam) < 0.6 * lam
    assert mine.cgf(2.5) == pytest.approx(0.125, rel=1e-9)  # where the function itself is lower
    assert mine.guarantee(delta=1e-3).rigour == "estimated"
    # Theorem 9 sees the hull: 2 M_4 with K(3) instead of 1.8
    sampled = mine @ cm.WithoutReplacement(rate="0.5")
    moments = [4 * math.expm1(0.05), 2 * math.exp(0.1), 2 * math.exp(0.1 + slope)]
    total = sum(math.comb(4, j) * 0.5**j * moment for j, moment in zip((2, 3, 4), moments, strict=True))
    assert sampled.rdp(4, bound="theorem9") == pytest.approx(math.log1p(total) / 3, rel=1e-9)


def test_a_function_that_is_not_made_for_every_order() -> None:
    table = {2.0: 0.02, 3.0: 0.30, 8.0: 0.08 + 0.3}

    def rdp(order: float) -> float:
        return table[order]

    mine = cm.from_rdp(rdp=rdp)
    assert mine.rdp(8) == pytest.approx(0.38, rel=1e-12)
    # the hull of (1, .02), (2, .6), (7, 2.66): order 3 lies below the chord
    assert mine.rdp(3) == pytest.approx((0.02 + (2.66 - 0.02) / 6) / 2, rel=1e-12)
    with pytest.raises(cm.InputError, match="order 5"):
        mine.rdp(5)
    with pytest.raises(cm.InputError, match="never falls"):
        cm.from_rdp(rdp=lambda order: 1 / order).rdp(2)
