"""w, L, its inverse and both kernels: floats and enclosures against the definitions in balls of 600 bits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cumulant.curves.closed_form import lemma3
from cumulant.losses.subsampled import (
    PAIR,
    PROFILE,
    Kernel,
    Point,
    Rate,
    analytic_mixed_ball,
    analytic_rest,
    enclosed_loss,
    enclosed_rest,
    log_kernel,
    mixed_ball,
    mixed_quotients,
    sampled_loss,
    unsampled_ball,
    unsampled_loss,
)
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.enclosure import BOUNDED, Enclosure

RATES = [Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 2), Fraction(999, 1000), 1 - Fraction(1, 10**9)]
LOSSES = np.array([-800.0, -30.0, -2.0, -0.4, -1e-9, 1e-12, 0.3, 1.0, 40.0, 699.0, 701.0, 5000.0])
BITS = 600

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # callers silence the branches that are not taken


def truth(x: float, rate: Fraction) -> tuple[Any, Any]:
    """w and L, from the definition."""
    with BALLS.at(BITS + 15_000):  # e^5000 and e^-800 beside 1
        w = BALLS.number(1 - rate) + BALLS.number(rate) * BALLS.number(x).exp()
        return w, w.log()


@pytest.mark.parametrize("rate", RATES, ids=float)
def test_the_loss_and_its_inverse(rate: Fraction) -> None:
    floats = Rate.of(rate)
    found, enclosed = floats.loss(LOSSES), enclosed_loss(BOUNDED.asarray(LOSSES), rate)
    back = unsampled_loss(found, floats.g, floats.kept)
    for i, x in enumerate(LOSSES.tolist()):
        with BALLS.at(BITS):
            w, L = truth(x, rate)
            assert found[i] == pytest.approx(float(L.mid()), rel=1e-13), x
            assert enclosed.lower()[i] <= L <= enclosed.upper()[i], x
            ball = BALLS.number(x)
            assert mixed_ball(ball, BALLS.number(rate)).overlaps(w), x
            assert analytic_mixed_ball(ball, BALLS.number(rate)).overlaps(w), x
            if x > 0:
                assert unsampled_ball(L, rate).overlaps(ball), x
                assert lemma3(ball, BALLS.number(rate), BALLS).overlaps(L), x
                assert lemma3(np.float64(x), float(rate), FLOATS) == pytest.approx(float(L.mid()), rel=1e-13), x
                assert back[i] == pytest.approx(x, rel=1e-9 if x < 1e-9 else 1e-12), x


def test_a_rate_of_one_changes_nothing_and_half_of_it_does() -> None:
    assert (sampled_loss(LOSSES, 1.0, 0.0) == LOSSES).all()
    assert sampled_loss(np.array([math.log(3)]), 0.5, 0.5)[0] == pytest.approx(math.log(2), rel=1e-15)
    assert unsampled_loss(np.array([math.log(2)]), 0.5, 0.5)[0] == pytest.approx(math.log(3), rel=1e-15)
    assert unsampled_loss(np.array([math.log(0.4)]), 0.5, 0.5)[0] == -math.inf  # below log(1 - g) there is no loss


@pytest.mark.parametrize("rate", RATES, ids=float)
def test_what_is_left_of_the_loss_where_it_is_large(rate: Fraction) -> None:
    x = np.array([1.0, 30.0, 5000.0])
    floats, enclosed = Rate.of(rate).rest(x), enclosed_rest(BOUNDED.asarray(x), rate)
    for i, each in enumerate(x.tolist()):
        with BALLS.at(BITS):
            left = truth(each, rate)[1] - each
            assert floats[i] == pytest.approx(float(left.mid()), rel=1e-13)
            assert enclosed.lower()[i] <= left <= enclosed.upper()[i]
            from flint import acb

            analytic = analytic_rest(acb(each), BALLS.number(rate), False)
            assert analytic.real.overlaps(left)


def test_quotients_of_integers_stay_exact() -> None:
    rate, ratios = Fraction(3, 7), [(0, 5), (2, 3), (9, 4)]
    mixed = [Fraction(x, y) for x, y in mixed_quotients(ratios, rate)]
    assert mixed == [1 - rate + rate * Fraction(*ratio) for ratio in ratios]


@pytest.mark.parametrize("rate", RATES[:4], ids=float)
@pytest.mark.parametrize("kernel", [PAIR, PROFILE], ids=["pair", "profile"])
def test_kernels_in_three_arithmetics(kernel: Kernel, rate: Fraction) -> None:
    """w^a - 1 - a(w-1), and (w^lambda - 1)(w - w^-lambda) for x > 0, divided by max(w, 1)^a."""
    losses = LOSSES[(np.abs(LOSSES) < 50) & (kernel.whole | (LOSSES > 0))]
    L = Rate.of(rate).loss(losses)
    for lam in (1e-6, 0.5, 1.0, 40.0):
        floats = kernel.term(np.full_like(L, lam), L)
        enclosed = log_kernel(
            Enclosure(np.full_like(L, lam)), enclosed_loss(BOUNDED.asarray(losses), rate), kernel.whole
        )
        for i, x in enumerate(losses.tolist()):
            with BALLS.at(BITS):
                w, log_w = truth(x, rate)
                a = BALLS.number(lam) + 1
                if kernel.whole:
                    value = (a * log_w).exp() - 1 - a * (w - 1)
                else:
                    value = ((a - 1) * log_w).exp() - 1
                    value *= w - ((1 - a) * log_w).exp()
                point = Point(w, log_w, BALLS.number(1), (a * log_w).exp())
                assert kernel.ball_term(a - 1, point).overlaps(value), (lam, x)
                scaled = value / (a * log_w).exp() if log_w > 0 else value
                assert floats[i] == pytest.approx(float(scaled.mid()), rel=1e-11), (lam, x)
                assert enclosed.lower()[i] <= scaled.log() <= enclosed.upper()[i], (lam, x)


@pytest.mark.parametrize("kernel", [PAIR, PROFILE], ids=["pair", "profile"])
def test_the_slope_is_the_limit_of_the_kernel(kernel: Kernel) -> None:
    L = np.array([1e-3, 0.5, 3.0])
    small = 1e-7
    assert kernel.slope(L) == pytest.approx(kernel.term(np.full_like(L, small), L) / small, rel=1e-5)
