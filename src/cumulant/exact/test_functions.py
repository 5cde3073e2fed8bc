"""Test functions of the inversion.

The hockey stick, Theorem B and Theorem W are data for one `Line`.

A test function g(y) = SUM a y^m e^{-cy} for y > 0, and 0 below, has non-negative values and a Laplace transform

    INT_0^inf g(y) e^{-zy} dy = ( 1 / (z PROD (1 + z/c)) )^p,    the product over its poles c.

Theorem L0 holds with each of them: E_P[g(S - eps0); S > eps0] is an inversion integral of the moment function. A theorem turns
that expectation into a bound: (y - R)_+ <= C f(y) for all y gives delta(eps) <= C E_P[g(S - eps0); S > eps0] at
eps0 = eps - log R, at every gap d > 0, by which R and C are chosen (docs/line.md, docs/test-orders.md).

To add a test function, write its terms, poles and constants here; `Line` needs nothing else. `TestFunction` refuses terms
whose m is not 0 or 1, poles whose transform is not that of the terms, and those for which `tail_power` is wrong. Name the
function in `EVERY` of tests/exact/test_test_functions.py, which compares it with its definition and checks that it is not
negative. An answer takes it by `Side.test`: `sides` of inversion/choose.py offers Theorem B beside the profile, and
adaptive/theorem_w.py chooses n. Two things ask for a function by name: lower ends, which subtract images, are those of the
hockey stick, and `_invert_delta` of inversion/solver.py searches the gap of Theorem B in balls where much cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from cumulant.numerics.arithmetic import BALLS, Array

Constants = Callable[[Array], tuple[Array, Array]]
"""Returns log R and log C at each gap d, in floats, to search with."""

BallConstants = Callable[[Any], tuple[Any, Any]]
"""Returns log R and C at a ball d > 0."""

Column = tuple[Fraction, int]
"""A lattice sum, by c and m: SUM_i (h i)^m q^i with q = e^{-h (c + z)}, h the spacing; m is 0 or 1."""

_SERIES = 0.25
"""Gap below which series replace formulas that cancel; derived: 15 terms give all digits there."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term a y^m e^{-cy} of a test function; m is 0 or 1."""

    decay: Fraction
    coefficient: Fraction
    power: int = 0


@dataclass(frozen=True, slots=True)
class TestFunction:
    """A test function: its terms, the poles of its transform, the constants of its theorem.

    Its values are not negative, so that the images of the sum only add to the expectation.
    """

    __test__: ClassVar[bool] = False  # pytest would take it for a test

    name: str
    terms: tuple[Term, ...]
    poles: tuple[Fraction, ...]
    """The c > 0 of the factors 1 + z/c of the transform's denominator; one of them is at most 1."""
    multiplicity: int
    """The power p of the transform, 1 or 2."""
    limit: float
    """g at infinity: how much a unit of leak contributes; inf if g is unbounded."""
    constants: Constants | None = field(default=None, compare=False)
    """log R and log C in floats; None if delta is the expectation itself."""
    ball_constants: BallConstants | None = field(default=None, compare=False)
    """log R and C in balls; None if delta is the expectation itself."""
    columns: tuple[Column, ...] = field(init=False, compare=False, repr=False)
    """The lattice sums that the terms need, each once."""
    tail_power: int = field(init=False, compare=False, repr=False)
    """The q with |denominator(lam + iu)| >= u^q.

    The factor z and a pole c <= 1 give u^2, other poles at least 1. Poles above 1 alone give less: (1 - e^-3y) would get a tail
    that is three times too small.
    """

    def __post_init__(self) -> None:
        if not 0 < min(self.poles) <= 1 or self.multiplicity not in (1, 2):
            raise ValueError(f"{self.name}: poles must be above 0, one of them at most 1, and the power 1 or 2")
        if any(term.power not in (0, 1) for term in self.terms):
            raise ValueError(f"{self.name}: the power m of a term must be 0 or 1")
        # two quotients of polynomials that agree at more points than they have degrees are one function
        degrees = self.multiplicity * (len(self.poles) + 1) + sum(term.power + 1 for term in self.terms)
        if any(
            self._transform_of_terms(z) * self.denominator(z, Fraction) != 1
            for z in map(Fraction, range(1, degrees + 2))
        ):
            raise ValueError(f"{self.name}: the transform of the terms has other poles")
        columns = dict.fromkeys((term.decay, m) for term in self.terms for m in range(term.power + 1))
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "tail_power", 2 * self.multiplicity)

    def _transform_of_terms(self, z: Fraction) -> Fraction:
        """Return INT_0^inf g(y) e^{-zy} dy, term by term: a m! / (c + z)^{m+1}, and m! = 1."""
        return sum((term.coefficient / (term.decay + z) ** (term.power + 1) for term in self.terms), start=Fraction(0))

    def denominator(self, z: Any, number: Callable[[Fraction], Any] = float) -> Any:
        """Return (z PROD (1 + z/c))^p, in floats or, with `number=BALLS.number`, in balls."""
        product = z
        for pole in self.poles:
            product = product * (1 + z if pole == 1 else 1 + z / number(pole))
        return product if self.multiplicity == 1 else product * product

    def column_decays(self, spacing: Any) -> list[Any]:
        """Return e^{-ac} of each column as a ball."""
        return [(-spacing * BALLS.number(decay)).exp() for decay, _ in self.columns]

    def lattice_sums(self, q: Any, spacing: Any, decays: list[Any]) -> list[Any]:
        """Return each column at the complex ball q = e^{-az}: 1/(1 - r), or a r/(1 - r)^2, with r = q e^{-ac}."""
        found = []
        for (_, m), decay in zip(self.columns, decays, strict=True):
            ratio = q * decay
            found.append(spacing * ratio / (1 - ratio) ** 2 if m else 1 / (1 - ratio))
        return found

    def lattice_factors(self, rest: Any) -> list[Any]:
        """Return the factor of each column at r = `rest`.

        SUM_i e^{-hzi} g(r + hi) is the sum of factors times columns.
        """
        found: dict[Column, Any] = {}
        for term in self.terms:
            size = BALLS.number(term.coefficient) * (-BALLS.number(term.decay) * rest).exp()
            for m, part in enumerate((size * rest**term.power, size)[: term.power + 1]):
                column = term.decay, m
                found[column] = found[column] + part if column in found else part
        return [found[column] for column in self.columns]

    def float_lattice_factors(self, rest: Array) -> tuple[list[Array], list[Array]]:
        """Return the factor of each column at each r in floats, and its derivative in epsilon."""
        found: dict[Column, tuple[Array, Array]] = {}
        for term in self.terms:
            decay, power = float(term.decay), term.power
            size = float(term.coefficient) * np.exp(-decay * rest)
            parts = (
                [(size * rest, decay * size * rest - size), (size, decay * size)] if power else [(size, decay * size)]
            )
            for m, part in enumerate(parts):
                before = found.get((term.decay, m))
                found[term.decay, m] = part if before is None else (before[0] + part[0], before[1] + part[1])
        return [found[column][0] for column in self.columns], [found[column][1] for column in self.columns]


# ---- the hockey stick: delta itself


_ZERO = Fraction(0)
"""The decay of a constant term; convention."""

_ONE = Fraction(1)
"""The decay of e^-y; convention."""

HOCKEY_STICK = TestFunction("hockey stick", (Term(_ZERO, _ONE), Term(_ONE, -_ONE)), (_ONE,), 1, 1.0)
"""g(y) = 1 - e^-y: its expectation is delta."""


# ---- Theorem B


def theorem_b_constants(gap: Array) -> tuple[Array, Array]:
    """Return log R and log C with (y - R)_+ <= C f(y) for all y, at every gap d > 0.

    Equality holds at y = e^d (Theorem L-cone). C = 1/(d - 1 + e^-d) and R = e^d (1 - (1+d) e^-d) C: the tangent of the convex
    f at e^d, so C is the maximum C(R).
    """
    gap = np.asarray(gap, dtype=np.float64)
    small = np.minimum(gap, _SERIES)
    slope, rise = np.zeros_like(small), np.zeros_like(small)
    # SUM_{n >= 2} (-d)^n / n!  and  SUM_{n >= 2} (n - 1) (-d)^n / n!, which floats would cancel
    for n in range(15, 1, -1):
        slope = 1 / math.factorial(n) - small * slope
        rise = (n - 1) / math.factorial(n) - small * rise
    far = gap > _SERIES
    slope = np.where(far, gap + np.expm1(-gap), slope * small**2)
    rise = np.where(far, -np.expm1(-gap) - gap * np.exp(-gap), rise * small**2)
    return gap + np.log(rise) - np.log(slope), -np.log(slope)


def theorem_b_ball_constants(gap: Any) -> tuple[Any, Any]:
    """Return log R and C of Theorem L-cone at the ball d > 0.

    Both cancel to d^2/2, so 64 bits are added.
    """
    with BALLS.at(BALLS.precision() + 64):
        slope = gap + (-gap).expm1()
        log_ratio = gap + (-(-gap).expm1() - gap * (-gap).exp()).log() - slope.log()
        return log_ratio, 1 / slope


THEOREM_B = TestFunction(
    "Theorem B",
    (Term(_ZERO, Fraction(1), 1), Term(_ONE, Fraction(1), 1), Term(_ZERO, Fraction(-2)), Term(_ONE, Fraction(2))),
    (_ONE,),
    2,
    math.inf,
    theorem_b_constants,
    theorem_b_ball_constants,
)
"""g(y) = (1 + e^-y) y - 2 (1 - e^-y): its transform is the square of the hockey stick's."""


# ---- Theorem W


def log_ratio(order: float, gap: Array) -> Array:
    """Return log R = log[ n/(n-1) (1 - e^{(1-n)d}) / (1 - e^-nd) ] of Theorem W.

    It grows with d.
    """
    less = order - 1
    return np.asarray(np.log(-np.expm1(-less * gap) / less) + math.log(order) - np.log(-np.expm1(-order * gap)))


def log_constant(order: float, gap: Array) -> Array:
    """Return log C = -log(1 - e^-nd) of Theorem W."""
    return np.asarray(-np.log(-np.expm1(-order * gap)))


def theorem_w_ball_constants(order: float, gap: Any) -> tuple[Any, Any]:
    """Return log R and C at the ball d > 0.

    Then (y - R)_+ <= C n f_n(y) for all y, with equality at y = e^d; n is not 1.
    """
    n = BALLS.number(order)
    # C = 1/(1 - e^-nd),  R = n/(n-1) (1 - e^{(1-n)d}) C
    constant = -1 / (-n * gap).expm1()
    return (n / (1 - n) * ((1 - n) * gap).expm1() * constant).log(), constant


@lru_cache(maxsize=64)
def theorem_w(order: float) -> TestFunction:
    """Return g_n(y) = 1 - n/(n-1) e^-y + e^-ny/(n-1) for the test order n, which is not 1.

    At n = 2 it is the squared hockey stick (1 - e^-y)^2.
    """
    n = Fraction(order)
    return TestFunction(
        f"Theorem W, n = {order}",
        (Term(_ZERO, _ONE), Term(_ONE, -n / (n - 1)), Term(n, 1 / (n - 1))),
        (_ONE, n),
        1,
        1.0,
        lambda gaps: (log_ratio(order, gaps), log_constant(order, gaps)),
        lambda gap: theorem_w_ball_constants(order, gap),
    )
