"""Mechanisms that users bring: by their curve, by points of it, or by the two laws of a worst pair of data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from cumulant.curves.curve import Curve
from cumulant.curves.function import Function, accepts_balls
from cumulant.curves.pair import Pair
from cumulant.curves.points import Points
from cumulant.domains import NONNEGATIVE, ORDER, PROBABILITY, Domain, Exact, ExactTuple, Number, Several
from cumulant.errors import InputError, NotationError
from cumulant.mechanisms.base import Mechanism, register
from cumulant.numerics.rationals import common

if TYPE_CHECKING:
    from cumulant.curves.density import DensityPair
    from cumulant.curves.discrete import DiscretePair

_LONGEST = 1 << 27
"""Bits of all masses together over one denominator; what takes more takes minutes."""


def mechanism(
    rdp: Callable[[Any], Any], pure: Number = math.inf, kl: Number | None = None, name: str = "custom"
) -> Mechanism:
    """A mechanism with this Rényi curve: the sup over BOTH orders of the pair and over all neighbours (E-1).

    The function is asked one order at a time. `pure` is the true value at order infinity, never a large order's.

    A function that also takes python-flint's balls and returns one is proved, as far as its formula is true; the first
    question tries it with the ball of order 2. Write it with + - * /, the methods of balls or numpy's functions; `math.log` and
    its like return floats and make the guarantee `estimated`. A float in the formula counts as the binary number it is.

    >>> mine = mechanism(rdp=lambda order: order / 18, name="mine")
    >>> mine.rdp(2), mine.guarantee(delta=1e-5).rigour
    (0.1111, 'proved')
    >>> mechanism(rdp=lambda order: math.log(order)).guarantee(delta=1e-5).rigour
    'estimated'
    """
    if not callable(rdp):
        raise InputError(f"rdp={rdp!r} must be a function of the order")
    limit = _limit(pure)
    return ByFunction(rdp, limit, None if kl is None else NONNEGATIVE.check("kl", kl), str(name))


def from_rdp_points(orders: Iterable[Number], values: Iterable[Number]) -> Mechanism:
    """A mechanism known at these orders only; between them K is bounded by chords, past the last by nothing (E-8).

    >>> from_rdp_points([2, 4], [0.1, 0.3]).rdp([3, 5])
    array([0.25,  inf])
    """
    return ByPoints(list(orders), list(values))  # type: ignore[arg-type]


def from_masses(p: Iterable[Number], q: Iterable[Number]) -> Mechanism:
    """A mechanism whose output laws on the worst pair of data sets have these masses; both directions are covered (E-1).

    The pair must dominate every neighbouring pair. Sums within 1e-9 of 1 are normalised to 1.

    >>> from_masses([0.75, 0.25], [0.25, 0.75]).epsilon(delta=0)
    1.09861
    """
    return ByMasses(list(p), list(q))  # type: ignore[arg-type]


def from_densities(
    log_p: Callable[[Any], Any],
    log_q: Callable[[Any], Any],
    support: tuple[float, float] = (-math.inf, math.inf),
    pure: Number = math.inf,
) -> Mechanism:
    """A mechanism whose output laws on the worst pair have these log densities; both directions are covered (E-1).

    The pair must dominate every neighbouring pair. `pure` is the largest |log p - log q|, if it is finite and known.

    >>> shifted = from_densities(lambda x: -abs(x - 1) / 2 - math.log(4), lambda x: -abs(x) / 2 - math.log(4))
    >>> abs(shifted.rdp(2) - 0.200303896173615962) < 1e-9
    True
    """
    from cumulant.curves.density import DensityPair

    limit = _limit(pure)
    return ByDensities(DensityPair(log_p, log_q, support, math.inf if limit is None else float(limit)))


def _limit(pure: Number) -> Exact | None:
    """The value at order infinity; None where it is not known to be finite."""
    return None if isinstance(pure, float) and pure == math.inf else NONNEGATIVE.check("pure", pure)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByFunction(Mechanism):
    """What `mechanism(rdp=…)` makes."""

    function: Callable[[Any], Any]
    known_pure: Fraction | None
    known_kl: Fraction | None
    label: str

    @property
    def estimated(self) -> bool:
        return not accepts_balls(self.function)

    def notation(self) -> str:
        raise NotationError(f"{self} holds a Python function, so it cannot be written as text")

    def key(self) -> Hashable:
        return self.function, self.known_pure, self.known_kl, self.label

    def own_curve(self, bound: str) -> Curve:
        return Function(self.function, self.known_kl, self.known_pure)

    def arguments(self) -> Mapping[str, str]:
        return {"name": f'"{self.label}"'}

    @classmethod
    def name(cls) -> str:
        return "mechanism"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByDensities(Mechanism):
    """What `from_densities` makes."""

    densities: DensityPair

    estimated = True

    def key(self) -> Hashable:
        return self.densities

    def own_curve(self, bound: str) -> Curve:
        return self.densities.curve()

    def pair(self) -> Pair:
        return self.densities

    def arguments(self) -> Mapping[str, str]:
        return {"support": str(self.densities.support)}

    @classmethod
    def name(cls) -> str:
        return "from_densities"


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByPoints(Mechanism):
    """What `from_rdp_points` makes."""

    orders: ExactTuple
    values: ExactTuple

    domains: ClassVar[Mapping[str, Domain | Several]] = {"orders": Several(ORDER), "values": Several(NONNEGATIVE)}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        if len(self.orders) != len(self.values):
            raise InputError(
                f"orders and values must have the same length, not {len(self.orders)} and {len(self.values)}"
            )
        if any(left >= right for left, right in zip(self.orders, self.orders[1:], strict=False)):
            raise InputError("orders must increase from one to the next")

    def key(self) -> Hashable:
        return self.orders, self.values

    def own_curve(self, bound: str) -> Curve:
        return Points(self.orders, self.values)

    @classmethod
    def name(cls) -> str:
        return "from_rdp_points"


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByMasses(Mechanism):
    """What `from_masses` makes."""

    p: ExactTuple
    q: ExactTuple
    laws: DiscretePair = field(init=False)

    domains: ClassVar[Mapping[str, Domain | Several]] = {"p": Several(PROBABILITY), "q": Several(PROBABILITY)}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        if len(self.p) != len(self.q):
            raise InputError(f"p and q must have the same length, not {len(self.p)} and {len(self.q)}")
        from cumulant.curves.discrete import DiscretePair

        laws = DiscretePair(_normalised("p", self.p), _normalised("q", self.q))
        object.__setattr__(self, "laws", laws)

    def key(self) -> Hashable:
        return self.laws

    def own_curve(self, bound: str) -> Curve:
        return self.laws.curve()

    def pair(self) -> Pair:
        return self.laws

    @classmethod
    def name(cls) -> str:
        return "from_masses"


def _normalised(name: str, masses: tuple[Exact, ...]) -> tuple[Fraction, ...]:
    """The masses divided by their sum, which is 1 but for rounding."""
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
