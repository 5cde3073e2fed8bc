"""Every way outward lands on its side, and close."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import (
    DOZENS,
    ENVELOPE,
    FEW,
    FORMULA,
    LONG,
    MANY,
    MEASURED,
    ROUGH,
    U,
    at_least,
    lowered,
    next_above,
    outward,
    raised,
    rounded_down,
    rounded_up,
)

PARTS = [FEW, FORMULA, DOZENS, ENVELOPE, MEASURED, LONG, MANY, ROUGH]


def numbers(seed: int, count: int = 300) -> list[Fraction]:
    draw = random.Random(seed)
    return [
        Fraction(draw.getrandbits(90) + 1, draw.getrandbits(90) + 1) * Fraction(2) ** draw.randint(-900, 900)
        for _ in range(count)
    ]


def test_fractions_become_the_neighbouring_floats() -> None:
    """Each end holds as a binary number and as the decimal that it prints as; no float between it and the value does."""
    for value in numbers(1):
        low, high = rounded_down(value), rounded_up(value)
        assert Fraction(low) <= value <= Fraction(high)
        assert Fraction(repr(low)) <= value <= Fraction(repr(high))
        nearer = math.nextafter(high, 0.0)
        assert Fraction(nearer) < value or Fraction(repr(nearer)) < value
        assert rounded_up(-value) == -low
    assert (rounded_up(Fraction(1, 10)), rounded_up(Fraction(1, 2)), rounded_up(Fraction(0))) == (0.1, 0.5, 0.0)


def test_parts_grow_and_each_is_more_than_it_says() -> None:
    assert sorted(PARTS) == PARTS
    assert FEW == 8 * U
    for part in PARTS:
        for value in map(float, numbers(2, 50)):
            up, down = Fraction(raised(value, part)), Fraction(lowered(value, part))
            assert up >= Fraction(value) * (1 + Fraction(part) - 3 * Fraction(U))
            assert down <= Fraction(value) * (1 - Fraction(part) + 3 * Fraction(U))
            assert down < Fraction(value) < up


def test_outward_moves_all_but_nothing_and_infinity() -> None:
    values = np.array([0.0, 1e-300, 1.0, 1e300, np.inf])
    above, below = outward(values), outward(values, upper=False)
    assert above[[0, 4]].tolist() == below[[0, 4]].tolist() == [0.0, np.inf]
    assert (above[1:4] > values[1:4] * (1 + MEASURED / 2)).all()
    assert (below[1:4] < values[1:4] * (1 - MEASURED / 2)).all()
    assert next_above(1.0) == 1 + 2 * U


@pytest.mark.parametrize("exponent", [-5000, -1000, 0, 1000, 5000])
def test_ends_of_balls_are_fractions_above_them(exponent: int) -> None:
    with BALLS.at(128):
        for sign in (1, -1):
            ball = sign * BALLS.number(3) * BALLS.number(2) ** exponent
            end = at_least(ball)
            if abs(exponent) <= 1000:
                assert end == sign * 3 * Fraction(2) ** exponent
            else:  # no float is that small or large: 0 or what becomes infinity will do
                assert rounded_up(end) == ((math.inf if exponent > 0 else 5e-324) if sign > 0 else 0)
