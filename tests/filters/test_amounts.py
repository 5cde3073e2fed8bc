"""Exact sums: they do not depend on order, and infinity can be taken back."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cumulant.errors import InputError
from cumulant.filters.amounts import Amounts

NUMBERS = st.one_of(st.integers(0, 10**40), st.fractions(0, 10, max_denominator=10**6), st.none())


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8), st.randoms())
def test_sums_do_not_depend_on_their_order(values: list[tuple[int | Fraction | None, ...]], random: object) -> None:
    amounts = [Amounts.of(pair) for pair in values]
    total = sum(amounts, start=Amounts.of([0, 0]))
    assert sum(reversed(amounts), start=Amounts.of([0, 0])) == total
    assert Amounts.read(total.texts()) == total
    for amount in amounts:
        total = total - amount
    assert total == Amounts.of([0, 0])


@given(st.integers(0, 10**30), st.fractions(1, 50, max_denominator=50))
def test_scaled_is_rounded_up(value: int, factor: Fraction) -> None:
    (scaled,) = Amounts.of([value]).scaled(factor).values
    assert 0 <= scaled - value * factor < 1


def test_smaller_place_by_place() -> None:
    one, other = Amounts.of([1, None, Fraction(1, 3)]), Amounts.of([2, 5, Fraction(1, 4)])
    assert one.minimum(other) == Amounts.of([1, 5, Fraction(1, 4)])
    assert one.covers(one.minimum(other))
    assert not other.covers(one)
    assert not (one - other).is_nonnegative()


@pytest.mark.parametrize("text", [None, "1", ["-1"], ["1.5"], ["1/0"], [1], ["1+inf"], ["1" * 30_000]])
def test_what_is_no_amount(text: object) -> None:
    with pytest.raises(InputError):
        Amounts.read(text)
