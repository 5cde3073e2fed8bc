"""Bessel functions by their ratios, against flint's own and the bounds of Amos."""

from fractions import Fraction

import pytest

from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.bessel import log_ratio_bounds, log_scaled


@pytest.mark.parametrize("v", ["1/1000000", "1/2", "10", "3000"])
def test_every_ball_holds_the_function(v: str) -> None:
    exact = Fraction(v)
    found = log_scaled(exact, 300, 128)
    with BALLS.at(512):
        for n in (0, 1, 2, 7, 60, 299):
            assert found[n].contains(BALLS.number(exact).bessel_i(n, scaled=True).log())
            assert found[n].rad() < 1e-30


@pytest.mark.parametrize("v", ["1/1000", "1/2", "10", "3000"])
def test_ratios_lie_between_their_bounds(v: str) -> None:
    found = log_scaled(Fraction(v), 300, 128)
    for n in range(299):
        low, high = log_ratio_bounds(n, float(Fraction(v)))
        assert low - 1e-12 <= float(found[n + 1] - found[n]) <= high + 1e-12
