"""Transforms of finitely many losses: atoms in balls, and the lattice that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

from cumulant.losses.transform import SLIGHTEST, STRONGEST, Lattice, Rule, Transform
from cumulant.numerics.arithmetic import BALLS, Scalar
from cumulant.numerics.rationals import log_rational

HIGHEST_POWER = 1000
"""Largest n for which a ratio is compared with base^n; chosen by hand: it only decides whether a lattice is noticed,
and validity does not depend on it."""

MOST_LATTICE_UNITS = 2**40
"""Largest loss, in units of the lattice; chosen by hand: a finer lattice saves nothing, and validity does not depend
on it."""


class Points(Protocol):
    """A symmetric pair of finitely many losses, in balls of the working precision."""

    def exact_points(self) -> list[tuple[Scalar, Scalar]]:
        """Return the losses x > 0 with their Q-masses q; the losses -x have the Q-masses q e^x."""
        ...

    def exact_equal(self) -> Scalar:
        """Return the mass where p = q; the exact 0 if there is no such mass."""
        ...

    def exact_leak(self) -> Fraction:
        """Return the mass of P where Q has none, which is also that of Q where P has none."""
        ...

    def exact_unit(self) -> Fraction | None:
        """Return a rational number of which all losses are multiples; None if none is known."""
        ...


def point_transform(points: Points, rate: Fraction, direction: str) -> PointTransform | None:
    """Return the transform of a symmetric pair of atoms on a sample, in one direction.

    Returns None if there are no losses or if they span too many scales; the caller then uses the grid.
    """
    with BALLS.at(64):
        found = points.exact_points()
        inside = all(x >= BALLS.number(SLIGHTEST) and x <= BALLS.number(STRONGEST) for x, _ in found)
    return PointTransform(points, rate, direction) if found and inside else None


@dataclass(frozen=True, slots=True)
class PointTransform(Transform):
    """A symmetric pair of atoms on a sample: "remove", "add" or "symmetric", as in `Mixture`."""

    points: Points
    rate: Fraction
    direction: str

    @property
    def unsampled_points(self) -> Points | None:
        return self.points if self.rate == 1 else None

    @property
    def _leak_stays(self) -> bool:
        """True if an output of only one law of the base pair keeps its infinite loss on the sample."""
        return self.direction != "add" or self.rate == 1

    def leak(self) -> Scalar:
        return BALLS.number(self.rate * self.points.exact_leak() if self._leak_stays else Fraction(0))

    def values(self) -> list[tuple[Scalar, Scalar]]:
        """Return all finite losses with their P-masses; losses of mass 0 are left out."""
        g, kept, base = BALLS.number(self.rate), BALLS.number(1 - self.rate), self.points.exact_points()
        equal, leak = self.points.exact_equal(), BALLS.number(self.points.exact_leak())
        found: list[tuple[Scalar, Scalar]] = []
        if self.direction == "symmetric":
            distance = leak
            for x, q in base:
                growth = x.expm1()
                L = (g * growth).log1p()
                found += [(L, q * (1 + g * growth)), (-L, q)]
                distance += q * growth
            found.append((BALLS.number(0), kept * distance + equal))
        else:
            for x, q in [each for y, mass in base for each in ((y, mass), (-y, mass * y.exp()))]:
                w = 1 + g * x.expm1()
                L = (g * x.expm1()).log1p()
                found.append((L, q * w) if self.direction == "remove" else (-L, q))
            found.append((BALLS.number(0), equal))
            if self.rate < 1:  # where P0 has nothing, w = 1 - g
                L = kept.log()
                found.append((L, kept * leak) if self.direction == "remove" else (-L, leak))
        return [(loss, mass) for loss, mass in found if not mass.is_zero()]

    def atoms(self, lam: float, log_error: float) -> Rule:
        return _tilted_rule(self.values(), self.leak(), lam)

    def lattice(self) -> Lattice | None:
        unit = self.points.exact_unit() if self.rate == 1 else None
        if unit is not None and all(abs(loss) < BALLS.number(unit * MOST_LATTICE_UNITS) for loss, _ in self.values()):
            numbers = [multiple_of(loss, unit) for loss, _ in self.values()]
            odd = all(number % 2 for number in numbers)
            return Lattice(2 * unit, unit) if odd else Lattice(unit, Fraction(0))
        losses = [loss for loss, _ in self.values()]
        if len(losses) == 2:
            low, high = losses if losses[0] < losses[1] else losses[::-1]
            return Lattice(high - low, low)
        if len(losses) == 3 and (self.direction == "symmetric" or self.rate == 1):  # L, -L and 0
            return Lattice(losses[0], BALLS.number(0))
        return None


@dataclass(frozen=True, slots=True)
class MassTransform(Transform):
    """P against Q on finitely many outputs, by exact masses: multiples of 1 / `whole`."""

    masses: tuple[tuple[int, int], ...]
    whole: int

    def leak(self) -> Scalar:
        return BALLS.number(Fraction(sum(p for p, q in self.masses if not q), self.whole))

    def _by_ratio(self) -> list[tuple[Fraction, int]]:
        found: dict[Fraction, int] = {}
        for p, q in self.masses:
            if p and q:
                found[Fraction(p, q)] = found.get(Fraction(p, q), 0) + p
        return sorted(found.items())

    def values(self) -> list[tuple[Scalar, Scalar]]:
        """Return the finite losses, one for each ratio p/q, with their P-masses."""
        return [(BALLS.number(ratio).log(), BALLS.number(Fraction(p, self.whole))) for ratio, p in self._by_ratio()]

    def atoms(self, lam: float, log_error: float) -> Rule:
        return _tilted_rule(self.values(), self.leak(), lam)

    def lattice(self) -> Lattice | None:
        ratios = [ratio for ratio, _ in self._by_ratio()]
        if len(ratios) < 2:
            return None
        least, step = ratios[0], min(b / a for a, b in pairwise(ratios))
        powers = [_integer_power(ratio / least, step) for ratio in ratios]
        return None if None in powers else Lattice(BALLS.number(step).log(), BALLS.number(least).log())


def _tilted_rule(values: list[tuple[Scalar, Scalar]], leak: Scalar, lam: float) -> Rule:
    """Return the masses times e^{lam L} as a rule of atoms.

    Raises ArithmeticError if the masses and the leak do not add up to 1: a law that lost mass would give too small a
    delta.
    """
    from flint import arb

    order = BALLS.number(lam)
    # M(0) = 1 - leak
    if not (sum((mass for _, mass in values), start=leak) - 1).contains(0):
        raise ArithmeticError("the masses of one round and its leak do not add up to 1")
    return Rule([], [(loss, mass * (order * loss).exp()) for loss, mass in values], arb(0))


def _integer_power(ratio: Fraction, base: Fraction) -> int | None:
    """Return n if the ratio is base^n and n is at most `HIGHEST_POWER`; otherwise None."""
    size = log_rational(base)  # also of a base that is 1 as a float
    number = round(min(log_rational(ratio) / size, 2.0 * HIGHEST_POWER)) if size > 0 else -1
    return number if 0 <= number <= HIGHEST_POWER and base**number == ratio else None


def multiple_of(loss: Any, unit: Fraction) -> int:
    """Return the integer n with loss = n * unit; raises ArithmeticError if there is none."""
    quotient = loss / BALLS.number(unit)
    number = round(float(quotient.mid()))
    if not (quotient - number).contains(0):
        raise ArithmeticError(f"a loss of {float(loss.mid())} is no multiple of {unit}")
    return number
