"""Decimals of so many digits, or integers, in their order, for a search."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from cumulant.domains import Domain, Exact
from cumulant.errors import InputError

_FAR = Fraction(10**30)  # how far a domain without an end is searched


@dataclass(frozen=True, slots=True)
class Ranks:
    """All decimals of so many significant digits, or all integers, from `first` to `last`.

    Neighbours have ranks that differ by one. As among floats, those below `unit` times 10^digits are the multiples of
    the unit.
    """

    digits: int
    unit: Fraction
    first: int = 0
    last: int = 0
    endless: tuple[bool, bool] = (False, False)

    @classmethod
    def over(cls, declared: Domain, limits: Domain | None, digits: int) -> Ranks:
        """The numbers inside of both domains; a domain without an end is searched very far."""
        grid = cls(99, Fraction(1)) if declared.integer else cls(digits, 1 / (_FAR * 10 ** (digits - 1)))
        first, last = grid._inside(declared)
        if limits is not None:
            low, high = grid._inside(limits)
            first, last = max(first, low), min(last, high)
        if first > last:
            where = f"{limits} and {declared}" if limits is not None else f"{declared}"
            raise InputError(f"there is no number of {digits} digits that is {where}")
        if limits is not None:
            return replace(grid, first=first, last=last)
        # what lies beyond an end that was only made up, at infinity or next to zero, is not known
        near = declared.low == 0 and not declared.low_closed
        return replace(grid, first=first, last=last, endless=(near, declared.high is None))

    @property
    def integer(self) -> bool:
        return self.unit == 1

    def value(self, rank: int) -> Exact:
        """The number of this rank."""
        if rank < 0:
            return Exact(-self.value(-rank))
        least = 10 ** (self.digits - 1)
        if rank < least:
            return Exact(rank * self.unit)
        decade, above = divmod(rank - least, 9 * least)
        return Exact((least + above) * self.unit * 10**decade)

    def below(self, value: Fraction) -> int:
        """The rank of the largest number that is not above this one."""
        if value < 0:
            rank = -self.below(-value)
            return rank if self.value(rank) <= value else rank - 1
        whole = math.floor(value / self.unit)
        decade = max(0, len(str(whole)) - self.digits)
        return int(whole // 10**decade + decade * 9 * 10 ** (self.digits - 1))

    def _inside(self, domain: Domain) -> tuple[int, int]:
        low = max(domain.low, 1 / _FAR) if domain.low == 0 and not domain.low_closed else domain.low
        low, high = -_FAR if low is None else low, _FAR if domain.high is None else domain.high
        first, last = -self.below(-low), self.below(high)
        return first + (self.value(first) not in domain), last - (self.value(last) not in domain)
