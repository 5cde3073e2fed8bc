"""Ends that balls prove: where delta stops at the largest loss, secants that leave it come back."""

import math
from fractions import Fraction
from typing import Any

import pytest

import cumulant as cm
from cumulant.accounting import rounds
from cumulant.conversion.query import Query
from cumulant.exact.inversion import solver
from cumulant.exact.inversion.bracket import (
    largest_refuted_epsilon,
    locate_minimum,
    refine_root,
    smallest_proved_epsilon,
)
from cumulant.exact.inversion.choose import sides
from cumulant.numerics.arithmetic import BALLS

LARGEST, FLOOR, LAM = 0.6820075710365967, 1e-32, 42.0


def stopping(epsilon: Any) -> Any:
    """Delta that falls to nearly nothing at the largest loss, as seen by a line: linear before it, then its images."""
    mass = BALLS.number(Fraction(21, 100))
    before = mass * -(epsilon - BALLS.number(LARGEST)).expm1() + BALLS.number(FLOOR)
    return before if epsilon < BALLS.number(LARGEST) else BALLS.number(FLOOR)


@pytest.mark.parametrize("start", [0.0, 0.3, LARGEST - 1e-9, LARGEST, LARGEST + 1e-6, 5.0])
@pytest.mark.parametrize("delta", ["3.3e-13", "1e-20", "0.05"])
def test_an_end_beside_the_largest_loss_is_found(start: float, delta: str) -> None:
    with BALLS.at(192):
        asked = BALLS.number(Fraction(delta))
        found = refine_root(stopping, start, asked, LAM)
        truth = LARGEST + math.log1p(-float(Fraction(delta)) / 0.21)
        upper = smallest_proved_epsilon(lambda e: stopping(e) <= asked, found, LAM, 1e-9)
        lower = largest_refuted_epsilon(lambda e: stopping(e) > asked, found, 1e-9)
        assert upper is not None
        assert lower is not None
        assert truth * (1 - 1e-13) <= lower <= upper <= truth * (1 + 1e-13)


def test_what_is_never_small_enough_is_not_found() -> None:
    with BALLS.at(128):
        found = refine_root(lambda e: BALLS.number(1), 1.0, BALLS.number(Fraction(1, 2)), 1.0)
        assert smallest_proved_epsilon(lambda e: False, found, 1.0, 1e-9) is None
        assert math.isnan(refine_root(stopping, math.nan, BALLS.number(Fraction(1, 2)), 1.0))


def test_steps_that_grow_are_taken_back() -> None:
    """A ball that says enough only from some place on, and not enough only up to another."""
    with BALLS.at(128):
        upper = smallest_proved_epsilon(lambda e: bool(e >= BALLS.number(1.00007)), 1.0, 1.0, 1e-4)
        lower = largest_refuted_epsilon(lambda e: bool(e <= BALLS.number(0.8)), 1.0, 1e-4)
        assert upper is not None
        assert lower is not None
        assert 1.00007 <= upper <= 1.00008
        assert 0.79999 <= lower <= 0.8


@pytest.mark.parametrize("start", [1e-3, 0.2, 1.7, 400.0])
def test_the_bottom_of_a_valley_is_found(start: float) -> None:
    with BALLS.at(128):
        found = locate_minimum(lambda d: d + 3 / d, start)
        assert found == pytest.approx(math.sqrt(3), rel=1e-4)
        assert locate_minimum(lambda d: -d, 1.0) == 1.0  # there is none


def test_theorem_b_is_as_tight_where_floats_have_no_digits_left() -> None:
    """At delta 1e-100 floats do not see the gap: the one that they say costs a hundredth of epsilon."""
    run = cm.parse("Gaussian(sigma=4.82) @ WithoutReplacement(rate=0.000164) * 1 + Gaussian(sigma=22.8)")
    ran, _ = rounds.rounds(run.record())
    assert ran is not None
    offered = sides(ran, cone=True)
    assert offered is not None
    by_cone: Any = offered[1]
    found = solver.side_end(by_cone, Query("delta", Fraction("1.3e-100")), 1e-9)
    assert found is not None
    assert found.value <= 0.9217  # 0.9274 at the gap of floats


def test_a_poor_guess_of_epsilon_is_replaced_by_what_its_line_says() -> None:
    """Far out the saddle point says 16.9 where 14.3 is needed, and silence for the former is not enough for the latter."""
    run = cm.parse("Gaussian(sigma=1.17) @ Poisson(rate=0.00123) * 7 + Gaussian(sigma=2.05)")
    found = run.guarantee(delta="6.3e-100", accuracy="1e-9", prove=True)
    assert found.lower is not None
    assert found.lower <= found.epsilon <= found.lower * (1 + 1e-9)


@pytest.mark.parametrize(
    ("text", "delta"),
    [
        ("PureDP(epsilon=0.71) @ Poisson(rate=0.393) * 2", "3.3e-13"),
        ("PureDP(epsilon=0.02) @ Poisson(rate=0.0161) * 57", "1.9e-41"),
        ("DiscreteLaplace(scale=0.441) @ WithoutReplacement(rate=0.00015) * 4", "1.1e-41"),
    ],
)
def test_both_ends_beside_the_largest_loss_are_as_accurate_as_elsewhere(text: str, delta: str) -> None:
    found = cm.parse(text).guarantee(delta=delta, accuracy="1e-9")
    assert found.rigour == found.lower_rigour == "proved"
    assert found.lower is not None
    assert found.lower <= found.epsilon <= found.lower * (1 + 1e-9)
