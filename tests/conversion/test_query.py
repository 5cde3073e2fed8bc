"""A query: the number that is given, and the point of the profile once the other one is found."""

from __future__ import annotations

import math
from fractions import Fraction

from cumulant.conversion.query import Query


def test_the_wanted_number_completes_the_point() -> None:
    by_delta, by_epsilon = Query("delta", Fraction(1, 8)), Query("epsilon", Fraction(2))
    assert by_delta.wants_epsilon
    assert not by_epsilon.wants_epsilon
    assert by_delta.point(0.5) == (0.5, Fraction(1, 8))
    assert by_epsilon.point(0.5) == (Fraction(2), 0.5)


def test_the_trivial_bound_is_infinite_for_epsilon_and_1_for_delta() -> None:
    assert Query("delta", Fraction(1, 8)).trivial == math.inf
    assert Query("epsilon", Fraction(2)).trivial == 1


def test_log_delta_is_that_of_a_float_not_above_the_given_one() -> None:
    third = Query("delta", Fraction(1, 3)).log_delta
    assert third is not None
    assert math.exp(third) <= Fraction(1, 3) + Fraction(1, 2**53)
    assert Query("delta", Fraction(1, 8)).log_delta == -3 * math.log(2)
    assert Query("epsilon", Fraction(2)).log_delta is None
