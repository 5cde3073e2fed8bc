"""Exact numbers, many at once: against fractions and against balls."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest
from flint import arb, fmpq

from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rationals import by_size, common, enclosed_logs, log_quotient

CASES = [
    (1, 3),
    (2, 1),
    (10**30 + 1, 10**30),
    (10**30 - 1, 10**30),
    (10**400, 7),
    (7, 10**400),
    (10**700 + 1, 10**700),
    (3, 2),
    (1, 2),
    (10**320, 10**5 + 1),
    (5, 5),
]


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with BALLS.at(4000):
        yield


def exact_log(top: int, bottom: int) -> arb:
    return arb(fmpq(top, bottom)).log()


def test_a_common_denominator_keeps_the_numbers() -> None:
    values = [Fraction(3, 7), Fraction(1, 10**20), Fraction(0), Fraction(5, 14)]
    numerators, denominator = common(values)
    assert [Fraction(numerator, denominator) for numerator in numerators] == values


def test_the_order_is_that_of_the_fractions_and_equal_ones_are_equal() -> None:
    draw = random.Random(3)
    quotients = [(draw.randint(1, 30), draw.randint(1, 30)) for _ in range(400)]
    quotients += [(10**30, 10**30 - 1), (10**30 + 1, 10**30), (10**30 - 1, 10**30 - 2)]
    found = by_size(quotients)
    assert sorted(place for _, place in found) == list(range(len(quotients)))
    for (left, i), (right, j) in itertools.pairwise(found):
        assert Fraction(*quotients[i]) <= Fraction(*quotients[j])
        assert (left == right) == (Fraction(*quotients[i]) == Fraction(*quotients[j]))


@pytest.mark.parametrize(("top", "bottom"), CASES)
def test_logarithms_have_full_relative_accuracy(top: int, bottom: int) -> None:
    exact, found = exact_log(top, bottom), log_quotient(top, bottom)
    assert abs(arb(found) - exact) <= arb(1e-15) * abs(exact) + arb(5e-324)


def test_enclosures_hold_the_logarithms_and_are_narrow() -> None:
    found = enclosed_logs(CASES)
    for i, (top, bottom) in enumerate(CASES):
        exact = exact_log(top, bottom)
        assert arb(float(found.lower()[i])) <= exact <= arb(float(found.upper()[i]))
        assert found.radius[i] <= 1e-14 * abs(found.mid[i]) + 1e-290
