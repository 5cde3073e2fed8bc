"""Ends that balls prove: where delta stops at the largest loss, secants that leave it come back."""

import math
from fractions import Fraction
from typing import Any

import flint
import pytest

import cumulant as cm
from cumulant.accounting import rounds
from cumulant.conversion.query import Query
from cumulant.exact.inversion import solver
from cumulant.exact.inversion.choose import sides
from cumulant.exact.inversion.solver import prove_epsilon
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
        truth = LARGEST + math.log1p(-float(Fraction(delta)) / 0.21)
        upper, lower = (prove_epsilon(stopping, asked, start, upper) for upper in (True, False))
        assert upper is not None
        assert lower is not None
        assert truth * (1 - 1e-13) <= lower <= upper <= truth * (1 + 1e-13)
        assert upper <= math.nextafter(
            math.nextafter(lower, 1), 1
        )  # one holds as it is printed too, the other fails so


@pytest.mark.parametrize("upper", [True, False])
def test_an_end_holds_as_it_is_printed(upper: bool) -> None:
    """The decimal of a float may lie below it: 31 of 400 floats hold here though their decimals do not."""
    with BALLS.at(128):
        for i in range(1, 401):
            asked = BALLS.number(Fraction(i, 401))
            found = prove_epsilon(lambda epsilon: (-epsilon).exp(), asked, -math.log(i / 401), upper)
            assert found is not None
            value = (-BALLS.number(Fraction(repr(found)))).exp()
            assert value <= asked if upper else value > asked


def test_what_is_never_small_enough_is_not_found() -> None:
    with BALLS.at(128):
        half = BALLS.number(Fraction(1, 2))
        assert prove_epsilon(lambda e: BALLS.number(1), half, 1.0) is None
        assert prove_epsilon(lambda e: BALLS.number(Fraction(1, 4)), half, 1.0, upper=False) is None
        assert prove_epsilon(lambda e: BALLS.number(Fraction(1, 4)), half, 0.0) == 0.0
        assert prove_epsilon(lambda e: BALLS.number(math.nan), half, 1.0) is None


def test_a_wide_ball_proves_less() -> None:
    """A ball of radius 1/4 around 2 - epsilon is at most 1 from 1.25 on, and more than 1 up to 0.75."""
    with BALLS.at(128):
        wide = flint.arb(0, 0.25)
        upper, lower = (prove_epsilon(lambda e: 2 - e + wide, BALLS.number(1), 1.0, upper) for upper in (True, False))
        assert upper == pytest.approx(1.25, rel=1e-9)
        assert lower == pytest.approx(0.75, rel=2e-9)


def test_theorem_b_is_as_tight_where_floats_have_no_digits_left() -> None:
    """At delta 1e-100 floats do not see the gap: the one that they say costs a hundredth of epsilon."""
    run = cm.parse("Gaussian(sigma=4.82) @ WithoutReplacement(rate=0.000164) * 1 + Gaussian(sigma=22.8)")
    ran, _ = rounds.rounds(run.record())
    assert ran is not None
    offered = sides(ran, theorem_b=True)
    assert offered is not None
    by_theorem_b: Any = offered[1]
    found = solver.side_end(by_theorem_b, Query("delta", Fraction("1.3e-100")), 1e-9)
    assert found is not None
    assert found.value <= 0.9217  # 0.9274 at the gap of floats


def test_a_poor_guess_of_epsilon_is_replaced_by_what_its_line_says() -> None:
    """Far out the saddle point says 16.9 where 14.3 is needed, and decay for the former is not enough for the latter."""
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
