"""The sum of eq. (9) by blocks, and its largest term, against all terms in extended precision."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.bounds.large_orders import log_block_largest, log_block_maxima, log_block_sum, log_block_sums
from cumulant.bounds.without_replacement import theorem9
from cumulant.curves.closed_form import Concentrated, LaplaceShift
from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array

RATES = (Fraction(1, 1000), Fraction(1, 10))
ORDERS = (8193, 20_000, 30_000, 40_000, 50_000, 65_537, 100_000, 131_072)


def log_binomials(order: int) -> Any:
    """log C(a, j), j = 2 … a, as cumulative sums in extended precision."""
    j = np.arange(1, order + 1, dtype=np.longdouble)
    return np.cumsum(np.log((order - j + 1) / j))[1:]


def gaussian_terms(order: int, rate: Fraction, sigma: int) -> Any:
    """Theorem 9 written out: 4 (e^{1/s^2} - 1) or 2 M_2 at j = 2, then 2 M_j, M_j = e^{j(j-1)/(2 s^2)}."""
    j = np.arange(2, order + 1, dtype=np.longdouble)
    log_c = j * (j - 1) / (2 * np.longdouble(sigma) ** 2) + np.log(np.longdouble(2))
    log_c[0] = min(log_c[0], np.log(4 * np.expm1(1 / np.longdouble(sigma) ** 2)))
    return log_binomials(order) + j * np.log(np.longdouble(rate.numerator) / rate.denominator) + log_c


def laplace_terms(order: int, rate: Fraction, scale: float) -> Any:
    j, b = np.arange(2, order + 1, dtype=np.longdouble), np.longdouble(scale)
    log_m = (j - 1) / b + np.log(j / (2 * j - 1) + (j - 1) / (2 * j - 1) * np.exp(-(2 * j - 1) / b))
    log_c = log_m + np.minimum(np.log(np.longdouble(2)), j * np.log(np.expm1(1 / b)))
    log_c[0] = min(log_c[0], np.log(4 * np.expm1(log_m[0])))
    return log_binomials(order) + j * np.log(np.longdouble(rate.numerator) / rate.denominator) + log_c


def log_sum(terms: Any) -> float:
    top = terms.max()
    return float(top + np.log(np.sum(np.exp(terms - top))))


CASES: dict[str, tuple[Curve, Any]] = {
    **{
        f"gaussian-{sigma}": (
            Concentrated(Fraction(1, 2 * sigma**2)),
            lambda order, rate, sigma=sigma: gaussian_terms(order, rate, sigma),
        )
        for sigma in (1, 5, 20, 100)
    },
    **{
        f"laplace-{scale}": (
            LaplaceShift(1 / Fraction(scale)),
            lambda order, rate, scale=scale: laplace_terms(order, rate, float(scale)),
        )
        for scale in ("2", "0.5")
    },
}


@pytest.mark.parametrize("rate", RATES, ids=["0.001", "0.1"])
@pytest.mark.parametrize("name", CASES)
def test_orders_side_by_side_are_those_alone(name: str, rate: Fraction) -> None:
    """Bit for bit: an order that needs more divisions than its neighbours, or fewer, is not disturbed by them."""
    coefficients = theorem9(CASES[name][0])
    orders = [*ORDERS, 10**6, 3 * 10**9, 2**53]
    alone = [log_block_sum(order, rate, coefficients) for order in orders]
    assert log_block_sums(orders, rate, coefficients) == alone
    assert log_block_sums(orders[::-3], rate, coefficients) == alone[::-3]
    few = orders[::4]
    assert log_block_maxima(few, rate, coefficients) == [log_block_largest(each, rate, coefficients) for each in few]


@pytest.mark.parametrize("rate", RATES, ids=["0.001", "0.1"])
@pytest.mark.parametrize("name", CASES)
def test_thirteen_digits(name: str, rate: Fraction) -> None:
    """K = log(1 + sum) by blocks is the sum itself up to order 131,072, before, at and after the transition."""
    curve, terms = CASES[name]
    for order in ORDERS:
        truth = float(np.logaddexp(0.0, log_sum(terms(order, rate))))
        found = float(np.logaddexp(0.0, log_block_sum(order, rate, theorem9(curve))))
        assert found == pytest.approx(truth, rel=2e-13)


@pytest.mark.parametrize("name", CASES)
def test_the_largest_term(name: str) -> None:
    curve, terms = CASES[name]
    for order in ORDERS[::3]:
        truth = float(np.max(terms(order, RATES[0])))
        found = log_block_largest(order, RATES[0], theorem9(curve))
        assert found == pytest.approx(truth, rel=1e-12, abs=1e-12)
        assert found >= truth - 1e-14 * abs(truth) * order


def test_balls_hold_the_sum_and_the_largest_term() -> None:
    curve, terms = CASES["gaussian-5"]
    with BALLS.at(128):
        for order in (9001, 50_000):
            exact = terms(order, RATES[0])
            for bound, truth in ((log_block_sum, log_sum(exact)), (log_block_largest, float(exact.max()))):
                ball = bound(order, RATES[0], theorem9(curve), BALLS)
                assert float(ball.upper()) >= truth * (1 - 1e-15)
                assert float(ball.upper()) == pytest.approx(truth, rel=1e-13)


def test_three_maxima_are_all_seen() -> None:
    """E-15: responses of log-odds 5, 7, 9 with weights 1, e^-100, e^-420; a search from both ends misses the middle one."""
    odds, weights = np.array([5.0, 7.0, 9.0]), np.array([0.0, -100.0, -420.0])
    weights = weights - np.logaddexp.reduce(weights)

    def twice_moment(j: Array, on: Arithmetic) -> Array:
        x = (np.asarray(j, dtype=np.float64) - 1)[:, None] * odds
        each = (
            np.log(np.cosh(np.minimum(x, 300.0))) + np.maximum(x - 300.0, 0) + np.log1p(np.tanh(odds / 2) * np.tanh(x))
        )
        return np.asarray(np.logaddexp.reduce(weights + each, axis=1) + math.log(2))

    order, rate = 200, Fraction(1, 1000)
    j = np.arange(2, order + 1)
    terms = log_binomials(order) + j * math.log(0.001) + twice_moment(j, FLOATS)
    inner = terms[1:-1]
    peaks = np.flatnonzero((inner > terms[:-2]) & (inner > terms[2:])) + 3
    assert peaks.tolist() == [25, 105, 178]
    assert int(np.argmax(terms)) + 2 == 105
    assert log_block_largest(order, rate, [twice_moment]) == pytest.approx(float(terms.max()), rel=1e-12)


PAGE = Path(__file__).parents[2] / "docs" / "bounds" / "large-orders.md"
ROWS = re.findall(
    r"^\| (Gaussian|Laplace), \w+ ([\d.]+) \| ([\d.]+) \| ([\d, ]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE
)


@pytest.mark.parametrize(("noise", "parameter", "rate", "said"), ROWS, ids=lambda text: text.replace(" ", ""))
def test_the_page_says_how_many_coefficients_are_evaluated(noise: str, parameter: str, rate: str, said: str) -> None:
    counts: list[int] = []
    coefficients = theorem9(CASES[f"{noise.lower()}-{parameter}"][0])

    def counted(j: Array, on: Arithmetic) -> Array:
        counts[-1] += j.size
        return coefficients[1](j, on)

    for order in (10**4, 10**5, 131_072, 10**6, 10**9):
        counts.append(0)
        log_block_sum(order, Fraction(rate), [coefficients[0], counted, *coefficients[2:]])
    assert counts == pytest.approx([int(number) for number in said.split(", ")], rel=0.05)


def test_the_page_has_a_table() -> None:
    assert len(ROWS) == 5


def test_the_papers_estimate_above_order_8192() -> None:
    """theorem9-max is max + log(a) at every order: where the paper meant it, and never below the sum."""
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
    for order in (8193, 50_000, 10**6):
        truth = float(np.max(gaussian_terms(order, RATES[0], 5))) + math.log(order)
        found = run.rdp(order, bound="theorem9-max") * (order - 1)
        assert found == pytest.approx(truth, rel=1e-9)
        assert run.rdp(order, bound="theorem9-max") >= run.rdp(order, bound="theorem9")
    below, above = (run.rdp(order, bound="theorem9-max") for order in (8192, 8193))
    assert below <= above == pytest.approx(below, rel=1e-3)
    # before the transition the largest item is the 1, and the estimate is log(a)/(a-1)
    mild = cm.Laplace(scale=200) @ cm.WithoutReplacement(rate="1e-6")
    assert mild.rdp(10_000, bound="theorem9-max") == pytest.approx(math.log(10_000) / 9999, rel=1e-12)
