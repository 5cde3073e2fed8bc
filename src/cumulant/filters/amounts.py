"""Exact vectors of charges.

Their sums do not depend on their order, on rounding or on the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from operator import add, sub

from cumulant.errors import InputError, shown

_TEXT = re.compile(r"(\d+)(?:/([1-9]\d*))?(?:\+(\d+)inf)?")
"""An amount as text: a fraction, and the number of infinite charges."""

_LONGEST = 20_000
"""Characters of an amount that is read; convention: no charge is so long, and reading takes time that grows with it."""

_SHORT = 4000
"""Digits up to which an amount is read as an integer at once; derived: Python refuses more than 4300."""

_WHOLE = frozenset([int])
"""The types of values that need no rounding."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Numbers that are added place by place.

    Infinite charges are counted and not added, so that they can be taken back.

    >>> once = Amounts.of([3, None, Fraction(1, 7)])
    >>> (once + once).texts()
    ['6', '0+2inf', '2/7']
    >>> (once + once - once) == once == Amounts.read(once.texts())
    True
    """

    values: tuple[int | Fraction, ...]
    infinite: tuple[int, ...]

    @classmethod
    def of(cls, values: Iterable[int | Fraction | None]) -> Amounts:
        """Create amounts from these numbers, None for infinity."""
        values = tuple(values)
        return cls(tuple(_plain(x or 0) for x in values), tuple(int(x is None) for x in values))

    @classmethod
    def read(cls, texts: object) -> Amounts:
        """Read amounts that `texts` wrote."""
        if not isinstance(texts, list):
            raise InputError(f"{shown(texts)} is not a list of amounts")
        values: list[int | Fraction] = []
        infinite = [0] * len(texts)
        for place, text in enumerate(texts):
            if type(text) is str and text.isdigit() and text.isascii() and len(text) <= _SHORT:
                values.append(int(text))
                continue
            found = _TEXT.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
            if found is None:
                raise InputError(f"{shown(text)} is not an amount")
            values.append(_plain(Fraction(int(found[1]), int(found[2]))) if found[2] else int(found[1]))
            infinite[place] = int(found[3] or 0)
        return cls(tuple(values), tuple(infinite))

    def texts(self) -> list[str]:
        """Return one text for each place.

        It is a whole number or a quotient, and how often infinity was added to it.
        """
        found = list(map(str, self.values))
        for place, count in enumerate(self.infinite):
            if count:
                found[place] += f"+{count}inf"
        return found

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(tuple(map(add, self.values, other.values)), tuple(map(add, self.infinite, other.infinite)))

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(tuple(map(sub, self.values, other.values)), tuple(map(sub, self.infinite, other.infinite)))

    def __mul__(self, times: int) -> Amounts:
        return Amounts(tuple(value * times for value in self.values), tuple(count * times for count in self.infinite))

    def scaled(self, factor: Fraction) -> Amounts:
        """Multiply each number by the factor; whole numbers are rounded up to whole numbers."""
        values = (
            -(-x * factor.numerator // factor.denominator) if isinstance(x, int) else x * factor for x in self.values
        )
        return Amounts(tuple(values), self.infinite)

    def rounded_up(self, unit: int) -> Amounts:
        """Round each fraction up to the next multiple of 1 / unit: its text stays short."""
        if _WHOLE.issuperset(map(type, self.values)):
            return self
        return Amounts(tuple(round_up(value, unit) for value in self.values), self.infinite)

    def minimum(self, other: Amounts) -> Amounts:
        """Return the smaller of the two numbers at each place."""
        pairs = zip(
            zip(self.infinite, self.values, strict=True), zip(other.infinite, other.values, strict=True), strict=True
        )
        lower = [min(pair) for pair in pairs]
        return Amounts(tuple(value for _, value in lower), tuple(count for count, _ in lower))

    def covers(self, other: Amounts) -> bool:
        """Check that nothing in the other one is larger."""
        return len(self.values) == len(other.values) and self.minimum(other) == other

    def is_nonnegative(self) -> bool:
        """Check that no place is below zero."""
        return min(self.values, default=0) >= 0 and min(self.infinite, default=0) >= 0

    def at(self, place: int) -> int | Fraction | None:
        """Return the number at a place; None if it is infinite."""
        return None if self.infinite[place] else self.values[place]


def round_up(value: int | Fraction, unit: int) -> int | Fraction:
    """Return the smallest multiple of 1 / unit that is at least a value.

    >>> round_up(Fraction(1, 3), 100)
    Fraction(17, 50)
    """
    return value if isinstance(value, int) else _plain(Fraction(-(-value.numerator * unit // value.denominator), unit))


def _plain(value: int | Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else Fraction(value)
