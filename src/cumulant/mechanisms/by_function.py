"""A mechanism that users bring by its curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cumulant.curves.curve import Curve
from cumulant.curves.foreign import identity
from cumulant.curves.function import Function, ProjectedFunction, accepts_balls
from cumulant.domains import NONNEGATIVE, Number, limit
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Mechanism


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
    return ByFunction(rdp, limit("pure", pure), None if kl is None else NONNEGATIVE.check("kl", kl), name)


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
        return ProjectedFunction(Function(self.function, self.known_kl, self.known_pure))

    def arguments(self) -> Mapping[str, str]:
        return {"name": f'"{self.label}"'}

    @classmethod
    def name(cls) -> str:
        return "mechanism"
