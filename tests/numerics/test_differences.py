"""The finite-difference calculus, against polynomials, Fractions and the traps of E-17."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cumulant.curves.closed_form import Concentrated, LaplaceShift, Response
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.differences import chi, difference, escalated, leading_differences, newton, stencil, table

FIGURE1 = json.loads((Path(__file__).parents[1] / "oracles" / "figure1.json").read_text())["panels"]
CURVES: dict[str, Curve] = {
    "gaussian_sigma5": Concentrated(Fraction(1, 50)),
    "gaussian_sigma1": Concentrated(Fraction(1, 2)),
    "gaussian_sigma0.5": Concentrated(Fraction(2)),
    "laplace_b2": LaplaceShift(Fraction(1, 2)),
    "laplace_b0.5": LaplaceShift(Fraction(2)),
    "randresp_p0.6": Response(p=Fraction(3, 5)),
    "randresp_p0.9": Response(p=Fraction(9, 10)),
}


def test_filters_of_the_paper() -> None:
    assert stencil(0) == (1,)
    assert stencil(2) == (1, -2, 1)
    assert stencil(3) == (-1, 3, -3, 1)
    assert stencil(4) == (1, -4, 6, -4, 1)


@given(st.lists(st.fractions(-1000, 1000, max_denominator=50), min_size=1, max_size=9))
def test_table_filter_product_and_newton_agree(values: list[Fraction]) -> None:
    leading = [row[0] for row in table(values)]
    assert leading == [difference(order, values) for order in range(len(values))]
    assert [newton(leading, Fraction(x)) for x in range(len(values))] == values
    with BALLS.at(256):
        balls = leading_differences(BALLS.asarray(values), BALLS)
        for ball, exact in zip(balls, leading, strict=True):
            # an exact rational is in the ball: times its denominator, minus its numerator, zero is
            assert (ball * exact.denominator - exact.numerator).contains(0)
            assert float(ball.rad()) < 1e-60


def test_product_does_not_stop_at_ten_terms() -> None:
    # Delta^(l)[2^i](0) = 1 for every l; power series of python-flint are cut at ctx.cap = 10 and would give exact zeros
    with BALLS.at(256):
        balls = leading_differences(BALLS.asarray([2**i for i in range(40)]), BALLS)
    assert [round(float(ball), 12) for ball in balls] == [1.0] * 40


def test_newton_series_reproduces_a_polynomial_between_the_integers() -> None:
    leading = [row[0] for row in table([Fraction(x**3 - x) for x in range(6)])]
    assert newton(leading, Fraction(5, 2)) == Fraction(5, 2) ** 3 - Fraction(5, 2)


@pytest.mark.parametrize("name", CURVES)
def test_chi_at_the_first_orders(name: str) -> None:
    b = chi(CURVES[name].cgf, 2)
    assert (float(b[0]), float(b[1])) == (1.0, 0.0)
    assert float(b[2]) == pytest.approx(math.expm1(float(CURVES[name].rdp([2.0])[0])), rel=1e-14)


@pytest.mark.parametrize("name", CURVES)
def test_chi_against_the_reference(name: str) -> None:
    b = chi(CURVES[name].cgf, 200)
    for order, reference in FIGURE1[name]["B_even"].items():
        if int(order) <= 200:
            with BALLS.at(128):
                mantissa, exponent = reference.split("e") if "e" in reference else (reference, "0")
                expected = BALLS.number(Fraction(mantissa) * Fraction(10) ** int(exponent))
                assert abs(float(b[int(order)] / expected) - 1) < 1e-16 + 1e-14


def test_chi_is_a_moment_under_q_not_under_p() -> None:
    # E-17, sigma = 1, l = 2: Delta of e^K is 15.65, Delta of e^{K(.-1)} is 1.718
    under_p = difference(2, [math.exp(i * (i + 1) / 2) for i in range(3)])
    assert under_p == pytest.approx(15.65, abs=5e-3)
    assert float(chi(CURVES["gaussian_sigma1"].cgf, 2)[2]) == pytest.approx(math.e - 1, rel=1e-14)


def test_upper_bounds_of_the_curve_do_not_bound_chi() -> None:
    # E-17, sigma = 5: one per cent on eps(3) turns B(4) = 6.13e-3 into 7.1e-4 and B(6) negative
    log_moments = [0.0, 0.0] + [i * (i - 1) / 50 for i in range(2, 7)]
    exact = [math.exp(x) for x in log_moments]
    loose = [math.exp(x * 1.01) if i == 3 else math.exp(x) for i, x in enumerate(log_moments)]
    assert difference(4, exact) == pytest.approx(6.13e-3, abs=5e-6)
    assert difference(4, loose) == pytest.approx(7.1e-4, abs=5e-6)
    assert difference(6, loose) < 0 < difference(6, exact)


def test_floats_lose_what_balls_keep() -> None:
    cgf = Response(p=Fraction(51, 100)).cgf
    exact = 2.0 ** (math.log2(0.02) * 20) * (0.49**-19 + 0.51**-19)
    assert float(chi(cgf, 20)[20]) == pytest.approx(exact, rel=1e-12)
    assert not np.isclose(chi(cgf, 20, FLOATS)[20], exact, rtol=0.1, atol=0)
    assert chi(cgf, 2, FLOATS)[2] == pytest.approx(float(chi(cgf, 2)[2]), rel=1e-9)


def test_a_ball_that_stays_wide_is_an_error() -> None:
    with pytest.raises(CertificateError, match="stayed too wide"):
        escalated(lambda: BALLS.exp(BALLS.asarray([1])) - BALLS.exp(BALLS.asarray([1])), BALLS)


@settings(max_examples=20, deadline=None)
@given(st.fractions(min_value=Fraction(1, 100), max_value=3), st.integers(1, 12))
def test_chi_of_randomized_response_is_its_closed_form(epsilon: Fraction, half: int) -> None:
    e0, order = float(epsilon), 2 * half
    p = 1 / (1 + math.exp(-e0))
    expected = (1 - p) * math.expm1(e0) ** order + p * (-math.expm1(-e0)) ** order
    assert float(chi(Response(epsilon=epsilon).cgf, order)[order]) == pytest.approx(expected, rel=1e-12)
