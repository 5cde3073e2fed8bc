"""The trapezoid sum against closed forms at integer orders and against the integral of the ball library at others."""

import random
from dataclasses import replace
from fractions import Fraction
from math import comb
from typing import Any

import pytest

from cumulant.losses import gaussian_sum
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.subsampled import PAIR
from cumulant.numerics.arithmetic import BALLS

CASES = [
    (Fraction(shift), Fraction(rate), Fraction(order))
    for shift, rate, order in [
        ("1", "0.004", "10.7"),
        ("0.2", "0.001", "1.01"),
        ("0.83", "0.9", "1.5"),
        ("2.5", "0.0001", "4.25"),
        ("1", "0.004", "31.3"),  # past where protection is lost
        ("0.05", "1/3", "150.5"),
    ]
]


def closed(shift: Fraction, rate: Fraction, order: int) -> Any:
    """SUM_j C(a,j) (1-g)^(a-j) g^j e^{j(j-1)t^2/2} - 1."""
    terms = (
        BALLS.number(comb(order, j) * (1 - rate) ** (order - j) * rate**j)
        * BALLS.number(j * (j - 1) * shift**2 / 2).exp()
        for j in range(order + 1)
    )
    return sum(terms, start=BALLS.number(-1))


def test_integer_orders() -> None:
    draw = random.Random(5)
    asked = 0
    for _ in range(60):
        shift = Fraction(draw.randint(1, 300), 100)
        rate = Fraction(draw.randint(1, 999), 10 ** draw.randint(3, 6))
        order = draw.randint(2, 24)
        with BALLS.at(128):
            found = gaussian_sum.excess(shift, rate, Fraction(order), 64)
        if found is None:
            continue
        asked += 1
        with BALLS.at(400):
            known = closed(shift, rate, order)
        assert found.contains(known), (shift, rate, order)
        assert found.rel_accuracy_bits() >= 60, (shift, rate, order)
    assert asked >= 50


@pytest.mark.parametrize(("shift", "rate", "order"), CASES, ids=str)
def test_real_orders(shift: Fraction, rate: Fraction, order: Fraction) -> None:
    with BALLS.at(128):
        found = gaussian_sum.excess(shift, rate, order, 64)
    assert found is not None
    with BALLS.at(220):
        size = float(found.log())
        known = GaussianLaw(shift).enclosure(
            lambda point: PAIR.ball_term(BALLS.number(order - 1), point), order, rate, True, size, 80
        )
    assert known.rel_accuracy_bits() >= 75
    assert found.overlaps(known)
    assert found.rel_accuracy_bits() >= 60


@pytest.mark.parametrize(("shift", "rate", "order"), CASES, ids=str)
@pytest.mark.parametrize(("first", "last"), [(0, -60), (0, -45), (12, 0), (20, 0)])
def test_what_lies_past_the_nodes_is_in_the_ball(
    shift: Fraction, rate: Fraction, order: Fraction, first: int, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends too close, and steps too wide, make the ball wide and never wrong."""
    monkeypatch.setattr(gaussian_sum, "SETTINGS", replace(gaussian_sum.SETTINGS, most_nodes=10_000))
    with BALLS.at(300):
        known = gaussian_sum.excess(shift, rate, order, 150)
    ends, step = gaussian_sum._ends, gaussian_sum._step
    monkeypatch.setattr(gaussian_sum, "_ends", lambda *given: (min(ends(*given)[0] + first, 0), ends(*given)[1] + last))
    with BALLS.at(128):
        found = gaussian_sum.excess(shift, rate, order, 64)
    assert found is None or found.contains(known)
    monkeypatch.undo()
    monkeypatch.setattr(gaussian_sum, "_step", lambda t, need: step(t, need) * Fraction(first - last, 16))
    with BALLS.at(128):
        found = gaussian_sum.excess(shift, rate, order, 64)
    assert found is None or found.contains(known)


def test_where_it_is_not_offered() -> None:
    with BALLS.at(128):
        assert gaussian_sum.excess(Fraction(20), Fraction(1, 100), Fraction(3), 64) is None
        assert gaussian_sum.excess(Fraction(1), Fraction(1, 10**13), Fraction(3), 64) is None
        assert gaussian_sum.excess(Fraction(1), Fraction(1, 100), Fraction(20_000), 64) is None
