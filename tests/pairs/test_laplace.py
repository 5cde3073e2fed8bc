"""The Laplace pair: certified references and ball arithmetic."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest

from cumulant.curves.closed_form import LaplaceShift
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.differences import leading_differences
from cumulant.pairs.laplace import LaplacePair, _integrals

ORACLES = Path(__file__).parents[1] / "oracles"
MOMENTS = json.loads((ORACLES / "moments_and_queries.json").read_text())["moments"]
FIGURE1 = json.loads((ORACLES / "figure1.json").read_text())["panels"]
SHIFTS = [Fraction(x) for x in ("1/1000000", "1/1000", "1/20", "1/2", "2", "7", "20", "100", "1000")]


def scaled_error(value: Any, reference: Any) -> float:
    value, reference = np.asarray(value, dtype=np.float64), np.asarray([float(x) for x in reference])
    assert np.isfinite(value).all()
    assert np.isfinite(reference).all()
    return float(np.max(np.abs(value - reference) / np.maximum(1, np.abs(reference))))


def test_moments_against_the_certified_table() -> None:
    rows = [row for row in MOMENTS if row["mechanism"] == "laplace"]
    assert len(rows) == 39
    for row in rows:
        pair = LaplacePair(1 / Fraction(row["value"]))
        assert scaled_error(pair.moments([row["l"]]), [row["log_abs"]]) <= 1e-12
        assert scaled_error(pair.positive_moments([row["l"]]), [row["log_pos"]]) <= 1e-12


@pytest.mark.parametrize("scale", ["2", "0.5"])
def test_even_moments_against_figure_1(scale: str) -> None:
    table = FIGURE1[f"laplace_b{scale}"]["B_even"]
    with BALLS.at(256):
        logs = []
        for text in table.values():
            mantissa, _, exponent = text.partition("e")
            logs.append(BALLS.number(Fraction(mantissa) * Fraction(10) ** int(exponent or 0)).log())
    assert scaled_error(LaplacePair(1 / Fraction(scale)).moments([int(order) for order in table]), logs) <= 1e-11


@pytest.mark.parametrize("shift", [*SHIFTS, Fraction(69, 100), Fraction(7, 10)])
def test_floats_agree_with_the_balls(shift: Fraction) -> None:
    pair, orders = LaplacePair(shift), [1, 2, 3, 7, 10, 11, 40, 99, 255, 256, 257, 300, 5000]
    assert scaled_error(pair.moments(orders), pair.moments(orders, BALLS)) < 1e-12
    assert scaled_error(pair.positive_moments(orders), pair.positive_moments(orders, BALLS)) < 1e-12


@pytest.mark.parametrize("shift", ["1/1000000", "1/20", "1/2", "69/100", "7/10", "2", "20"])
def test_recurrences_hold_the_alternating_sums(shift: str) -> None:
    """E_q[(p/q)^i; p > q] = e^{(i-1) t} / 2 + e^{-t/2} (e^{(i-1/2) t} - 1) / (4 (i-1/2)), likewise for p < q; differences."""
    orders = np.array([1, 2, 3, 10, 11, 60])
    with BALLS.at(4000):
        t, i = BALLS.number(Fraction(shift)), BALLS.asarray(np.arange(61).astype(object))
        x, edge = i - BALLS.number(Fraction(1, 2)), (-t / 2).exp() / 4
        above = leading_differences(BALLS.exp((i - 1) * t) / 2 + edge * BALLS.expm1(x * t) / x, BALLS)[orders]
        below = leading_differences(BALLS.exp(-i * t) / 2 - edge * BALLS.expm1(-x * t) / x, BALLS)[orders]
        both = above + np.where(orders % 2 == 0, 1, -1) * below
        exact = [[each.log().mid() for each in side] for side in (both, above)]
    with BALLS.at(128):
        pair = LaplacePair(Fraction(shift))
        for values, found in zip(
            exact, (pair.moments(orders, BALLS), pair.positive_moments(orders, BALLS)), strict=True
        ):
            for value, ball in zip(values, found, strict=True):
                assert ball.contains(value)
                assert float(ball.rad()) < 1e-24 * max(1.0, abs(float(ball)))


def test_far_orders_in_balls_hold_the_integral() -> None:
    """G and Q of the recurrence by integration, on both sides of e^-t = 1/2 and of twice the bits."""
    for shift in ("1/10", "1/2", "7/10", "3"):
        for order in (5, 200, 600):
            with BALLS.at(128):
                t = BALLS.number(Fraction(shift))
                D = -(-t).expm1()

                def kernel(w: Any, power: Any, D: Any = D) -> Any:
                    return (1 - D * w) ** flint.acb(-1.5) * power

                def fall(w: Any, _: Any, order: int = order) -> Any:
                    return kernel(w, (1 - w) ** order)

                def rise(w: Any, _: Any, order: int = order) -> Any:
                    return kernel(w, w**order)

                falling = flint.acb.integral(fall, 0, 1).real
                rising = flint.acb.integral(rise, 0, 1).real * (-t / 2).exp()
                above, below = _integrals([order], t, BALLS)
                assert above[0].overlaps(falling)
                assert below[0].overlaps(rising)
                assert above[0].rel_accuracy_bits() > 80


@pytest.mark.parametrize("shift", SHIFTS)
def test_extreme_orders_are_finite_and_below_the_pure_bound(shift: Fraction) -> None:
    orders = np.array([1, 2, 1000, 10**6])
    both, above = LaplacePair(shift).moments(orders), LaplacePair(shift).positive_moments(orders)
    assert np.isfinite(both).all()
    assert (above <= both).all()
    t = float(shift)
    log_e = t + math.log(-math.expm1(-t))
    # E_q (p/q - 1)_+^l has an atom e^-t / 2 at the largest value E, and E_q |p/q - 1|^l <= E^l
    assert (above >= orders * log_e - t - math.log(2) - 1e-9 * (1 + np.abs(above))).all()
    assert (both <= orders * log_e + 1e-9 * (1 + np.abs(both))).all()


def test_profile_in_both_arithmetics() -> None:
    pair, epsilons = LaplacePair(Fraction(1, 2)), [Fraction(0), Fraction(1, 4), Fraction(49, 100), Fraction(1, 2), 3]
    expected = [max(0.0, 1 - math.exp((float(eps) - 0.5) / 2)) for eps in epsilons]
    assert pair.profile([float(eps) for eps in epsilons]) == pytest.approx(expected, rel=1e-12)
    with BALLS.at(128):
        assert [float(ball) for ball in pair.profile(epsilons, BALLS)] == pytest.approx(expected, rel=1e-12, abs=1e-30)
    assert pair.log_profile([0.5, 1.0]).tolist() == [-np.inf, -np.inf]


def test_profile_at_zero_is_half_the_first_moment() -> None:
    for shift in SHIFTS:
        pair = LaplacePair(shift)
        assert pair.log_profile([0.0])[0] == pytest.approx(pair.positive_moments([1])[0], rel=1e-13, abs=1e-13)


def test_curve() -> None:
    assert LaplacePair(Fraction(1, 2)).curve() == LaplaceShift(Fraction(1, 2))
