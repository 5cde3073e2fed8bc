"""A mechanism that users bring by the masses of its two laws on a worst pair of data sets."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING

from cumulant.curves.curve import Curve
from cumulant.domains import PROBABILITY, Exact, Number, Several, listed
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.numerics.rationals import common
from cumulant.pairs.pair import Pair
from cumulant.parameters import Reals, parameter

if TYPE_CHECKING:
    from cumulant.pairs.finite import DiscretePair

_LONGEST = 1 << 27
"""Bits of all masses together over one denominator; what takes more takes minutes."""


def from_masses(p: Iterable[Number], q: Iterable[Number]) -> Mechanism:
    """Return a mechanism whose output laws on the worst pair have these masses.

    Both directions are covered (E-1).

    The pair must dominate every neighbouring pair. Lower ends, and so the verdict "false", are for mechanisms whose neighbours
    attain it in both orders: each of the two laws may be that of the larger data set.

    List the law with the record first. On samples the upper end holds for either order of the lists, so it may lie above the
    order that you mean; on Poisson samples the lower end is that of `p` with the record and `q` without it.

    Sums within 1e-9 of 1 are normalised to 1.

    >>> from_masses([0.75, 0.25], [0.25, 0.75]).epsilon(delta=0)
    1.09861
    """
    return ByMasses(listed("p", p), listed("q", q))


@register
class ByMasses(Mechanism):
    """A mechanism known by two laws of masses, as `from_masses` makes it."""

    p: Reals = parameter(Several(PROBABILITY))
    q: Reals = parameter(Several(PROBABILITY))
    laws: DiscretePair = field(init=False)

    def _validate(self) -> None:
        if len(self.p) != len(self.q):
            raise InputError(f"p and q must have the same length, not {len(self.p)} and {len(self.q)}")
        from cumulant.pairs.finite import DiscretePair

        laws = DiscretePair(_normalise("p", self.p), _normalise("q", self.q))
        object.__setattr__(self, "laws", laws)

    def key(self) -> Hashable:
        return self.laws

    def own_curve(self, bound: str) -> Curve:
        return self.laws.curve()

    def pair(self) -> Pair:
        return self.laws

    def assumption(self) -> str:
        return (
            "the two laws dominate every pair of neighbours; lower ends hold if neighbours attain them in both orders"
        )

    @classmethod
    def name(cls) -> str:
        return "from_masses"


def _normalise(name: str, masses: tuple[Exact, ...]) -> tuple[Fraction, ...]:
    """Divide the masses by their sum, which is 1 but for rounding."""
    shared = 1
    for mass in masses:
        shared = math.lcm(shared, mass.denominator)
        if shared.bit_length() * len(masses) > _LONGEST:
            raise InputError(
                f"the {len(masses)} masses of {name} have no common denominator of at most {_LONGEST // len(masses)} bits; "
                "round them to decimals"
            )
    numerators, whole = common(masses)
    total = sum(numerators)
    if abs(total - whole) * 10**9 > whole:
        raise InputError(f"the masses of {name} must sum to 1, not to {total / whole:.12g}")
    return tuple(Fraction(numerator, total) for numerator in numerators)
