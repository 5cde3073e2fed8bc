"""Special functions against other libraries and against balls of higher precision."""

from __future__ import annotations

import flint
import numpy as np
import pytest
from scipy.stats import norm

from cumulant.losses.gaussian_transform import normal_tail
from cumulant.numerics.arithmetic import BALLS, ball_erfc
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.special import log_excess


@pytest.mark.parametrize("x", [-1000.0, -1.0, -1e-8, 1e-8, 0.5, 29.0, 31.0])
def test_log_excess(x: float) -> None:
    with flint.ctx.workprec(300):
        expected = float((flint.arb(x).expm1() - flint.arb(x)).log())
    assert float(log_excess(x)) == pytest.approx(expected, rel=1e-14)
    assert float(log_excess(1e5)) == 1e5


@pytest.mark.parametrize("x", [-3.0, -1e-3, 0.5, 20.0])
def test_log_excess_is_one_function_in_every_arithmetic(x: float) -> None:
    enclosed = log_excess(BOUNDED.asarray(np.array([x])), BOUNDED)
    with BALLS.at(200):
        ball = log_excess(BALLS.asarray(np.array([x], dtype=object)), BALLS)[0]
        assert float(enclosed.lower()[0]) <= float(ball.mid()) <= float(enclosed.upper()[0])
    assert float(log_excess(x)) == pytest.approx(float(ball.mid()), rel=1e-13)


@pytest.mark.parametrize("z", [-8.0, -1.0, 0.0, 1.959963984540054, 12.0])
def test_the_tail_of_the_normal_law(z: float) -> None:
    with BALLS.at(128):
        found = normal_tail(BALLS.number(z))
        assert found.rel_accuracy_bits() > 100
        assert float(found) == pytest.approx(float(norm.sf(z)), rel=1e-13)


@pytest.mark.parametrize("z", ["65537.3", "1e6", "1e9"])
@pytest.mark.parametrize("bits", [128, 512, 2048])
def test_the_ball_of_erfc_far_out(z: str, bits: int) -> None:
    """An exact argument has a good ball of its own; one with an error must contain it and keep most digits."""
    with BALLS.at(4 * bits):
        exact = flint.arb(int(float(z))) + flint.arb(1) / 8
        known = exact.erfc()
    with BALLS.at(bits):
        found = ball_erfc(flint.arb(exact.mid(), exact.abs_upper() * flint.arb(2) ** -bits))
        assert found.contains(known)
        assert found.rel_accuracy_bits() > bits - 4 * np.log2(float(z))
        assert ball_erfc(flint.arb(3)).overlaps(flint.arb(3).erfc())
