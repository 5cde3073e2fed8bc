"""The product of a few pairs of finitely many losses: all rounds as one pair, by its atoms.

Losses add up and masses multiply, so the profile of the product is a finite sum. No line and no grid is needed for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from cumulant.losses.atom_transform import MOST_LATTICE_UNITS, Points, multiple_of
from cumulant.numerics.arithmetic import BALLS, Arithmetic, Array
from cumulant.numerics.enclosure import BOUNDED
from cumulant.pairs.finite_losses import LossPair

MOST_ATOMS = 512
"""Atoms of a product, of either sign; measured: a profile in balls takes 2 ms, an epsilon 0.1 s."""

MOST_ROUNDS = 16
"""Rounds of a product; measured: more rounds of few losses are faster along a line."""

SIGN_BITS = 512
"""Bits of the balls that decide which sums of losses are positive; a sum that they leave open has no product."""

FLOAT_BITS = 128
"""Bits of the balls from which floats are rounded; 75 more than a float has."""

Sum: TypeAlias = tuple[Fraction, tuple[int, ...]]
"""A sum of losses: the part that is known as a fraction, and how often each other loss occurs, a mirror image as -1."""


@dataclass(frozen=True, slots=True)
class ProductPair(LossPair):
    """Independent rounds of symmetric pairs, each pair so many times.

    Sums are compared exactly: fractions that cancel, and other losses with as many mirror images, have the loss 0.
    """

    factors: tuple[tuple[Points, int], ...]
    attained: bool = True

    @property
    def leak(self) -> Fraction:
        kept = Fraction(1)
        for points, times in self.factors:
            kept *= (1 - points.exact_leak()) ** times
        return 1 - kept

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        atoms = _positive_losses(self, on.precision() if on.exact else FLOAT_BITS)
        with BALLS.at(max(FLOAT_BITS, BALLS.precision())):
            x, log_p = [x for x, _ in atoms], [mass.log() for _, mass in atoms]
        if on.exact:
            return _array(x), _array(log_p)
        if on.enclosing:
            return BOUNDED.of_balls(x), BOUNDED.of_balls(log_p)
        return np.array([float(each.mid()) for each in x]), np.array([float(each.mid()) for each in log_p])

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        """Return leak + SUM p (1 - e^{eps-x})_+ by masses.

        The ball of a mass may hold 0, where its logarithm has no end.
        """
        atoms, leak = _positive_losses(self, on.precision()), on.number(self.leak)

        def delta(epsilon: Any) -> Any:
            eps = on.number(epsilon)
            return sum((mass * (-(eps - x).expm1()).nonnegative_part() for x, mass in atoms), leak)

        return np.asarray(np.frompyfunc(delta, 1, 1)(epsilons))

    @property
    def equal(self) -> float:
        with BALLS.at(FLOAT_BITS):
            return max(float(self.exact_equal().upper()), 0.0)

    def exact_equal(self) -> Any:
        """Return the mass of the sums that cancel."""
        listed = _atoms(self)
        return _masses(listed).get(_nothing(listed), BALLS.number(0))


@dataclass(frozen=True, slots=True)
class _Atom:
    """A loss of one round and its P-mass, in balls.

    It is a known fraction, or `sign` times the loss at a place.
    """

    fraction: Fraction
    place: int
    sign: int
    loss: Any
    mass: Any


def product_pair(factors: Sequence[tuple[Points, int]], attained: bool) -> ProductPair | None:
    """Return the pair of all these rounds together.

    Returns None if it has too many rounds or atoms, or balls leave open if a sum of losses is 0.
    """
    if sum(times for _, times in factors) > MOST_ROUNDS:
        return None
    pair, atoms = ProductPair(tuple(factors), attained), 1
    with BALLS.at(SIGN_BITS):
        for once, times in _atoms(pair):
            atoms *= math.comb(times + len(once) - 1, max(len(once) - 1, 0))
            if atoms > MOST_ATOMS:
                return None
    return None if _positive_sums(pair) is None else pair


def _atoms(pair: ProductPair) -> list[tuple[list[_Atom], int]]:
    """Return the atoms of each factor and how often it runs, in balls.

    Atoms of mass 0 are left out.
    """
    listed, place = [], 0
    for points, times in pair.factors:
        unit, once = points.exact_unit(), [_Atom(Fraction(0), 0, 0, BALLS.number(0), points.exact_equal())]
        for x, q in points.exact_points():
            whole = unit is not None and x < BALLS.number(unit * MOST_LATTICE_UNITS)
            known = Fraction(0) if unit is None or not whole else unit * multiple_of(x, unit)
            once += [
                _Atom(sign * known, place, 0 if known else sign, sign * x, q * x.exp() if sign > 0 else q)
                for sign in (1, -1)
            ]
            place += not known
        listed.append(([atom for atom in once if not atom.mass.is_zero()], times))
    return listed


def _losses(listed: Sequence[tuple[list[_Atom], int]]) -> dict[int, Any]:
    """Return the losses that are no known fractions, by their places."""
    return {atom.place: atom.loss for once, _ in listed for atom in once if atom.sign > 0}


def _nothing(listed: Sequence[tuple[list[_Atom], int]]) -> Sum:
    """Return the sum of no losses."""
    return Fraction(0), (0,) * len(_losses(listed))


def _loss(each: Sum, losses: Mapping[int, Any]) -> Any:
    """Return the sum of losses as a ball."""
    return sum((count * losses[place] for place, count in enumerate(each[1]) if count), start=BALLS.number(each[0]))


def _masses(listed: Sequence[tuple[list[_Atom], int]]) -> dict[Sum, Any]:
    """Return the P-mass of every sum of finite losses, in balls."""
    total: dict[Sum, Any] = {_nothing(listed): BALLS.number(1)}
    for once, times in listed:
        for _ in range(times):
            longer: dict[Sum, Any] = {}
            for (known, counts), mass in total.items():
                for atom in once:
                    key = known + atom.fraction, counts
                    if atom.sign:
                        place = atom.place
                        key = known, (*counts[:place], counts[place] + atom.sign, *counts[place + 1 :])
                    longer[key] = longer[key] + mass * atom.mass if key in longer else mass * atom.mass
            total = longer
    return total


@lru_cache(maxsize=64)
def _positive_sums(pair: ProductPair) -> frozenset[Sum] | None:
    """Return the positive sums of losses; None if balls leave open if a sum is 0."""
    with BALLS.at(SIGN_BITS):
        listed = _atoms(pair)
        losses, nothing = _losses(listed), _nothing(listed)
        sums = {each: _loss(each, losses) for each in _masses(listed) if each != nothing}
        if not all(loss != 0 for loss in sums.values()):
            return None
        return frozenset(each for each, loss in sums.items() if loss > 0)


@lru_cache(maxsize=64)
def _positive_losses(pair: ProductPair, bits: int) -> list[tuple[Any, Any]]:
    """Return the positive sums, increasing, with their P-masses, in balls of these bits."""
    positive = _positive_sums(pair)
    if positive is None:
        raise ArithmeticError("balls leave open which sums of losses are positive")
    with BALLS.at(bits):
        listed = _atoms(pair)
        losses = _losses(listed)
        found = [(_loss(each, losses), mass) for each, mass in _masses(listed).items() if each in positive]
    return sorted(found, key=lambda each: float(each[0].mid()))


def _array(balls: list[Any]) -> Array:
    found = np.empty(len(balls), dtype=object)
    found[:] = balls
    return found
