"""Mechanisms that users bring: by their curve, by points of it, or by the two laws of a worst pair of data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

from cumulant.curves.curve import Curve
from cumulant.curves.foreign import identity
from cumulant.curves.function import Function, accepts_balls
from cumulant.curves.memory import once
from cumulant.curves.points import Points
from cumulant.domains import NONNEGATIVE, ORDER, PROBABILITY, Domain, Exact, ExactTuple, Number, Several, listed
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.numerics.rationals import common
from cumulant.pairs.pair import Pair

if TYPE_CHECKING:
    from cumulant.pairs.densities import DensityPair
    from cumulant.pairs.masses import DiscretePair

_LONGEST = 1 << 27
"""Bits of all masses together over one denominator; what takes more takes minutes."""


def mechanism(
    rdp: Callable[[Any], Any], pure: Number = math.inf, kl: Number | None = None, name: str = "custom"
) -> Mechanism:
    """A mechanism with this Rényi curve: the sup over BOTH orders of the pair and over all neighbours (E-1).

    The function is asked one order at a time, and again at every question: an object whose parameters change prices its past
    releases anew, so hand each setting over as a mechanism of its own. `pure` is the true value at order infinity, never
    a large order's. What the function says is believed, except what no divergence does: an InputError says where it is
    negative, no number, or falls as the order grows.

    A guarantee is `proved`, given what the function says, if that also takes python-flint's balls and returns one; each
    question tries it with the ball of order 2. Write it with + - * /, the methods of balls or numpy's functions; `math.log` and
    its like return floats and make the guarantee `estimated`. A float in the formula counts as the binary number it is.

    >>> mine = mechanism(rdp=lambda order: order / 18, name="mine")
    >>> mine.rdp(2), mine.guarantee(delta=1e-5).rigour
    (0.1111, 'proved')
    >>> mechanism(rdp=lambda order: math.log(order)).guarantee(delta=1e-5).rigour
    'estimated'
    """
    if not callable(rdp):
        raise InputError(f"rdp={shown(rdp)} must be a function of the order")
    if not isinstance(name, str):
        raise InputError(f"name={shown(name)} must be a text; it is what the mechanism is called in answers")
    return ByFunction(rdp, _limit(pure), None if kl is None else NONNEGATIVE.check("kl", kl), name)


def from_rdp_points(orders: Iterable[Number], values: Iterable[Number]) -> Mechanism:
    """A mechanism known at these orders only; between them K is bounded by chords, past the last by nothing (E-8).

    Each value is an upper bound. The divergence grows with the order, so a smaller value at a later order holds before it.

    >>> from_rdp_points([2, 4], [0.1, 0.3]).rdp([3, 5])
    array([0.25,  inf])
    >>> from_rdp_points([2, 4], [0.5, 0.3]).rdp([2, 4])
    array([0.3, 0.3])
    """
    return ByPoints(listed("orders", orders), listed("values", values))  # type: ignore[arg-type]


def from_masses(p: Iterable[Number], q: Iterable[Number]) -> Mechanism:
    """A mechanism whose output laws on the worst pair of data sets have these masses; both directions are covered (E-1).

    The pair must dominate every neighbouring pair. Sums within 1e-9 of 1 are normalised to 1.

    >>> from_masses([0.75, 0.25], [0.25, 0.75]).epsilon(delta=0)
    1.09861
    """
    return ByMasses(listed("p", p), listed("q", q))  # type: ignore[arg-type]


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
    for name, density in (("log_p", log_p), ("log_q", log_q)):
        if not callable(density):
            raise InputError(f"{name}={shown(density)} must be a function of the output, the logarithm of its density")
    made = ByDensities(log_p, log_q, _interval(support), _limit(pure))
    made.pair()
    return made


def _interval(support: tuple[float, float]) -> tuple[float, float]:
    """The ends of the support; infinite ones are floats."""
    try:
        low, high = (end if end in (-math.inf, math.inf) else float(Exact(end)) for end in support)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"support={shown(support)} must be an interval (low, high) with low < high: {error}"
        ) from error
    return float(low), float(high)


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

    def key(self) -> Hashable:
        return identity(self.function), self.known_pure, self.known_kl, self.label

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

    log_p: Callable[[Any], Any]
    log_q: Callable[[Any], Any]
    support: tuple[float, float]
    known_pure: Fraction | None

    estimated = True

    def key(self) -> Hashable:
        return identity(self.log_p), identity(self.log_q), self.support, self.known_pure

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> DensityPair:
        """The densities as they are now, checked: once in each question, since they may change after it."""
        from cumulant.pairs.densities import DensityPair

        limit = math.inf if self.known_pure is None else float(self.known_pure)
        return once((self, "pair"), lambda: DensityPair(self.log_p, self.log_q, self.support, limit))

    def arguments(self) -> Mapping[str, str]:
        return {"support": str(self.support)}

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
        # a value bounds the divergence at all lower orders too, so each may be the smallest of those that follow
        smallest = tuple(accumulate(reversed(self.values), min))[::-1]
        return Points(self.orders, smallest)

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
        from cumulant.pairs.masses import DiscretePair

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
