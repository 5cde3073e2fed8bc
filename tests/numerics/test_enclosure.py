"""Enclosures where a number is wide or far out, against balls."""

from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.enclosure import BOUNDED, Enclosure


@pytest.mark.parametrize(
    ("mid", "radius"), [(-1e299, 1e283), (-800.0, 50.0), (-1e4, 5e3), (-760.0, 759.0), (3.0, 800.0)]
)
def test_log1p_exp_of_what_is_wide(mid: float, radius: float) -> None:
    """Both ends of x are inside of what is found, which is known."""
    with np.errstate(all="ignore"):  # as every curve does
        found = BOUNDED.log1p_exp(Enclosure(mid, radius))
    assert np.isfinite(found.radius)
    with BALLS.at(200):
        for end in (Fraction(mid) - Fraction(radius), Fraction(mid), Fraction(mid) + Fraction(radius)):
            value = BALLS.log1p_exp(BALLS.number(end))
            assert value <= BALLS.number(Fraction(float(found.upper())))
            assert value >= BALLS.number(Fraction(float(found.lower())))


@pytest.mark.parametrize("epsilon", ["1e6", "1e15", "1e299"])
def test_reports_with_no_privacy(epsilon: str) -> None:
    """KL of a sample stays below the rate times that of all the data, wherever it can be written."""
    for base in (cm.KaryResponse(values=4, epsilon=epsilon), cm.SubsetSelection(values=10, size=3, epsilon=epsilon)):
        run = base @ cm.WithoutReplacement(rate="0.1")
        assert run.kl() <= base.kl() * 0.1 * (1 + 1e-9)
        assert base.kl() <= base.pure() * (1 + 1e-12)
