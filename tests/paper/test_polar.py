"""Polar numbers against exact fractions, and where they fail although the paper suggests them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from cumulant.paper.polar import Polar, polar_differences, polar_sum

RNG = np.random.default_rng(36)


def test_sums_and_products_against_fractions() -> None:
    for _ in range(200):
        numbers = [Fraction(int(n), 64) for n in RNG.integers(-500, 500, size=6)]
        exact, size = sum(numbers), sum(abs(n) for n in numbers)
        assert float(polar_sum(Polar.of(float(n)) for n in numbers)) == pytest.approx(
            float(exact), abs=1e-13 * float(size)
        )
        product = math.prod(numbers)
        polar = Polar(1, 0.0)
        for n in numbers:
            polar = polar * Polar.of(float(n))
        assert float(polar) == pytest.approx(float(product), rel=1e-12)
    assert polar_sum([]) == Polar(0, -math.inf)
    assert float(Polar.of(2) - Polar.of(2)) == 0.0
    assert Polar.of(0) * Polar(1, 1e300) == Polar(0, -math.inf)
    assert float(Polar(-1, 1e4)) == -math.inf


def moments(sigma: int, top: int) -> list[float]:
    """Delta^(l)[e^{i(i-1)/(2 s^2)}](0) in balls of 2000 bits."""
    with flint.ctx.workprec(2000):
        values = [(flint.arb(i * (i - 1)) / (2 * sigma * sigma)).exp() for i in range(top + 1)]
        found = []
        while values:
            found.append(float(values[0]))
            values = [b - a for a, b in itertools.pairwise(values)]
    return found


def polar_moments(sigma: int, top: int) -> list[float]:
    return [float(x) for x in polar_differences([Polar(1, i * (i - 1) / (2 * sigma * sigma)) for i in range(top + 1)])]


def test_differences_work_for_small_noise_and_fail_for_large() -> None:
    """E-19: at sigma = 5 the recursion happens to be fine; at sigma = 50 it is off by more than 1 % from order 12 on."""
    exact, found = moments(5, 24), polar_moments(5, 24)
    assert found == pytest.approx(exact, rel=1e-6, abs=1e-12)
    exact, found = moments(50, 24), polar_moments(50, 24)
    assert found[:5] == pytest.approx(exact[:5], rel=1e-6, abs=1e-12)
    wrong = [order for order in range(2, 25, 2) if abs(found[order] / exact[order] - 1) > 0.01]
    assert wrong[0] == 12
    assert min(found[order] for order in range(2, 25, 2)) < 0 < min(exact[order] for order in range(2, 25, 2))
