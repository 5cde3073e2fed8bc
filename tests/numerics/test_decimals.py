"""Decimal intervals against balls of 8,000 bits: they contain the value, and hardly more."""

import itertools
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.decimals import Interval, NotDecimal, decimals
from tests.effort import drawn

DIGITS = 40
ON = decimals(DIGITS)
FUNCTIONS = ("exp", "log", "expm1", "log1p", "tanh", "excess", "log_expm1", "log_cosh", "log1p_exp")
EXTREMES = [
    "0",
    "1",
    "-1",
    "2",
    "1/2",
    "-1/2",
    "1e-20",
    "-1e-20",
    "1e-39",
    "1e-40",
    "1e-41",
    "-1e-41",
    "1e-300",
    "-1e-300",
]
EXTREMES += ["79", "80", "81", "1e3", "-1e3", "1e6", "-1e6", "0.999999999999999999999", "1.000000000000000000001"]


def arguments(count: int, seed: int) -> list[Fraction]:
    """Both signs, sizes from 10^-60 to 10^4, numerators of one to forty digits."""
    random.seed(seed)
    return [
        random.choice((-1, 1))
        * Fraction(random.randrange(1, 10 ** random.randrange(1, 40)), random.randrange(1, 10**9))
        * Fraction(10) ** random.randrange(-60, 4)
        for _ in range(count)
    ]


def exact(end: Decimal) -> Any:
    value = Fraction(end)
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def assert_tight(found: Interval, truth: Any, digits: int) -> None:
    """The interval, narrower than 10^-digits of the truth, is not missed by the far narrower ball."""
    low, high = exact(found.low), exact(found.high)
    assert not bool(truth < low), (found, truth)
    assert not bool(truth > high), (found, truth)
    assert bool(high - low <= abs(truth) * flint.arb(10) ** -digits), (found, truth)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_enclose_the_truth_and_little_else(name: str) -> None:
    points = [Fraction(x) for x in EXTREMES] + [x for x in arguments(150, 1) if abs(x) < 10**6]
    floor = {"log": 0, "log_expm1": 0, "log1p": -1}.get(name)
    with BALLS.at(8000):
        for x in points:
            if floor is not None and x <= floor:
                continue
            found = getattr(ON, name)(ON.number(x))
            truth = getattr(BALLS, name)(BALLS.number(x))
            if truth == 0 or x == 0:
                assert found.low == found.high == (1 if name == "exp" else 0) or name == "log1p_exp"
                continue
            # a third is not a decimal: where the function is steep, one digit of x is many of the value
            steepness = max(0, len(str(abs(int(x)))))
            near_one = 24 if name in ("log", "log_expm1") else 0  # log x is tiny next to 1
            assert_tight(found, truth, DIGITS - 3 - steepness - near_one)


@pytest.mark.parametrize("seed", range(3))
def test_arithmetic_encloses_the_exact_result(seed: int) -> None:
    numbers = arguments(300, seed)
    for x, y in itertools.pairwise(numbers):
        a, b = ON.number(x), ON.number(y)
        for found, truth in (
            (a + b, x + y),
            (a - b, x - y),
            (a * b, x * y),
            (a / b, x / y),
            (3 - a, 3 - x),
            (2 / a, 2 / x),
            (a**7, x**7),
            (abs(a), abs(x)),
            (-a, -x),
            (a.max(b), max(x, y)),
        ):
            assert Fraction(found.low) <= truth <= Fraction(found.high)
        assert Fraction((a * b).high) - Fraction((a * b).low) <= abs(x * y) * Fraction(10) ** (3 - DIGITS)


def test_products_of_intervals_of_either_sign() -> None:
    ends = [Decimal(x) for x in (-3, -1, 0, 2, 5)]
    intervals = [Interval(low, high, ON) for low in ends for high in ends if low <= high]
    for a in intervals:
        for b in intervals:
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            assert ((a * b).low, (a * b).high) == (min(corners), max(corners))
            if b.low > 0 or b.high < 0:
                quotients = [Fraction(x) / Fraction(y) for x in (a.low, a.high) for y in (b.low, b.high)]
                assert Fraction((a / b).low) <= min(quotients)
                assert Fraction((a / b).high) >= max(quotients)
            else:
                assert (a / b).is_nan()


def test_functions_of_wide_intervals_contain_every_point() -> None:
    random.seed(5)
    with BALLS.at(300):
        for _ in range(200):
            low, high = sorted(Fraction(random.randrange(-400, 400), 100) for _ in range(2))
            wide = Interval(ON.number(low).low, ON.number(high).high, ON)
            inside = low + (high - low) * Fraction(random.randrange(101), 100)
            for name in ("exp", "expm1", "tanh", "excess", "log_cosh"):
                found, truth = getattr(ON, name)(wide), getattr(BALLS, name)(BALLS.number(inside))
                assert not bool(truth < exact(found.low))
                assert not bool(truth > exact(found.high))


@pytest.mark.parametrize("places", [8, 20, 38])
@pytest.mark.parametrize("name", ["exp", "log", "expm1", "log1p", "tanh", "excess", "log_cosh"])
def test_functions_of_narrow_intervals_contain_both_ends_and_little_else(name: str, places: int) -> None:
    """One value and a slope take the place of two values."""
    floor = {"log": 0, "log1p": -1}.get(name)
    points = [Fraction(x) for x in EXTREMES] + [x for x in arguments(drawn(15), places) if abs(x) < 10**6]
    with BALLS.at(8000):
        for x in points:
            low = Fraction(ON.number(x).low)
            high = low + abs(low) / 10**places
            if floor is not None and low <= floor:
                continue
            found = getattr(ON, name)(Interval(ON.number(low).low, ON.number(high).high, ON))
            ends = [getattr(BALLS, name)(BALLS.number(end)) for end in (low, high)]
            for truth in ends:
                assert not bool(truth < exact(found.low)), (x, found)
                assert not bool(truth > exact(found.high)), (x, found)
            change = abs(ends[1] - ends[0])
            if name == "tanh":  # which is flat far out
                change = change.max(BALLS.number(high - low))
            size = abs(ends[0]).max(abs(ends[1])) * BALLS.number(max(1, abs(high))) if name != "log" else 1
            rounding = size * flint.arb(10) ** (5 - DIGITS)
            assert bool(exact(found.high) - exact(found.low) <= change * 1.32 + rounding), (x, found)  # 1 / tanh 1


@pytest.mark.parametrize("digits", [24, 60])
def test_sums_leave_out_what_is_too_small_and_bound_it(digits: int) -> None:
    on = decimals(digits)
    random.seed(digits)
    terms = [Fraction(random.randrange(-400_000, 10_000), 1000) for _ in range(300)]
    with BALLS.at(4000):
        for each in (terms, [Fraction(0)] + 1000 * [Fraction(-4 * digits)], [Fraction(-5)] * 3, [Fraction(-900)]):
            x, balls = on.asarray(each), BALLS.asarray(each)
            for name in ("log_sum_exp", "log1p_sum_exp"):
                found, truth = getattr(on, name)(x), getattr(BALLS, name)(balls)
                assert not bool(truth < exact(found.low))
                assert not bool(truth > exact(found.high))
                assert bool(exact(found.high) - exact(found.low) <= flint.arb(10) ** (6 - digits))
    unknown = on.asarray([0, 1]) * np.array([on.number(1), on.number(np.inf)], dtype=object)
    assert on.log_sum_exp(unknown).high == Decimal("Infinity")
    infinite = on.log_sum_exp(on.asarray([np.inf, 0.0]))
    assert infinite.low == infinite.high == Decimal("Infinity")


def test_what_overflows_stays_a_bound() -> None:
    huge = ON.number(10**19).exp()
    assert huge.low.is_finite()
    assert huge.high == Decimal("Infinity")
    assert not huge.is_finite()
    tiny = (-ON.number(10**19)).exp()
    assert tiny.low == 0 < tiny.high
    infinite = ON.number(np.inf)
    assert (infinite - infinite).is_nan()
    assert (infinite * 0).is_nan()
    assert ON.number(-1).log().is_nan()
    assert ON.number(0).log().high == Decimal("-Infinity")
    assert ON.known(infinite - infinite) == infinite
    assert ON.minimum(infinite - infinite, ON.number(2)) == 2


def test_exact_results_are_not_widened() -> None:
    assert ON.number(0).exp() == 1
    assert ON.number(1).log() == 0
    assert ON.number(0).expm1() == 0
    assert ON.number(Fraction(1, 1024)) * 1024 == 1


def test_comparisons_hold_for_all_numbers_inside() -> None:
    one_to_two, two_to_three = (Interval(Decimal(k), Decimal(k + 1), ON) for k in (1, 2))
    assert one_to_two <= two_to_three
    assert not one_to_two < two_to_three
    assert not one_to_two == one_to_two  # noqa: SIM201
    assert not one_to_two != two_to_three  # noqa: SIM202
    assert one_to_two != 4
    assert two_to_three > 0
    assert ON.number(2) == 2


def test_numpy_arrays_of_intervals() -> None:
    values = ON.asarray([Fraction(1, 2), 3])
    total = np.sum(values * ON.number(2))
    assert total == 7
    assert (ON.number(2) * values)[1] == 6
    assert (1 - values)[0] == Fraction(1, 2)


def test_the_context_of_the_caller_is_neither_used_nor_changed() -> None:
    expected = repr(ON.number(Fraction(2, 3)).exp() - 1)
    with localcontext() as context:
        context.prec, context.Emax = 3, 5
        context.clear_flags()
        assert repr(ON.number(Fraction(2, 3)).exp() - 1) == expected
        assert repr(abs(-ON.number(Fraction(2, 3)))) == repr(ON.number(Fraction(2, 3)))
        assert not any(context.flags.values())


@pytest.mark.parametrize("ask", [lambda x: x.erfc(), lambda x: x + flint.arb(1), ON.log_gamma])
def test_what_decimals_cannot_do_is_said(ask: Any) -> None:
    with pytest.raises(NotDecimal):
        ask(ON.number(2))
