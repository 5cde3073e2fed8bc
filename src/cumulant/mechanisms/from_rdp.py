"""A mechanism that users bring by its curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

from cumulant.curves.curve import Curve
from cumulant.curves.user_function import Function, ProjectedFunction, accepts_balls, identity
from cumulant.domains import NONNEGATIVE, Number, limit
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Mechanism
from cumulant.parameters import declared


def from_rdp(
    rdp: Callable[[Any], Any],
    *,
    pure: Number = math.inf,
    kl: Number | None = None,
    name: str = "custom",
    upper_bound: bool = False,
) -> Mechanism:
    """Return a mechanism with this Rényi curve.

    It is the largest divergence of all neighbours, in both directions (E-1).

    The function is asked one order at a time, and again at every question: an object whose parameters change prices its past
    releases anew, so hand each setting over as a mechanism of its own. `pure` is the true value at order infinity, never
    a large order's. What the function says is believed, except what no divergence does: an InputError says where it is
    negative, no number, or falls as the order grows. Return `math.inf` at orders where no bound is known.

    With `upper_bound=True` the function may fall or be noisy, as long as every value is at least the divergence there.
    Values at other orders then bound an order too (Proposition 35): the divergence is at most every bound at a larger
    order, and the cumulant generating function lies below the chords of its bounds.

    A guarantee is `proved`, given what the function says, if that also takes python-flint's balls and returns one; each
    question tries it with the ball of order 2. Write it with + - * /, the methods of balls or numpy's functions; `math.log` and
    its like return floats and make the guarantee `estimated`. A float in the formula counts as the binary number it is.

    >>> mine = from_rdp(lambda order: order / 18, name="mine")
    >>> mine.rdp(2), mine.guarantee(delta=1e-5).rigour
    (0.1111, 'proved')
    >>> from_rdp(lambda order: math.log(order)).guarantee(delta=1e-5).rigour
    'estimated'
    >>> loose = from_rdp(lambda order: order / 18 + 1 / order, upper_bound=True)  # it falls from order 1 to 4.24
    >>> loose.rdp(1.5), 1.5 / 18 + 1 / 1.5  # below the function itself: that at order 4.24 bounds all smaller orders
    (0.47..., 0.75)
    """
    if not callable(rdp):
        raise InputError(f"rdp={shown(rdp)} must be a function of the order")
    if not isinstance(name, str):
        raise InputError(f"name={shown(name)} must be a text; it is what the mechanism is called in answers")
    if not isinstance(upper_bound, bool):
        raise InputError(f"upper_bound={shown(upper_bound)} must be True or False")
    known_kl = None if kl is None else NONNEGATIVE.check("kl", kl)
    return ByFunction(rdp, limit("pure", pure), known_kl, name, upper_bound)


@declared
class ByFunction(Mechanism):
    """A mechanism known by a Python function of the order, as `from_rdp` makes it."""

    function: Callable[[Any], Any]
    known_pure: Fraction | None
    known_kl: Fraction | None
    label: str
    upper_bound: bool = False

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return not accepts_balls(self.function)

    def key(self) -> Hashable:
        return identity(self.function), self.known_pure, self.known_kl, self.label, self.upper_bound

    def own_curve(self, bound: str) -> Curve:
        return ProjectedFunction(Function(self.function, self.known_kl, self.known_pure, may_fall=self.upper_bound))

    def arguments(self) -> Mapping[str, str]:
        return {"name": f'"{self.label}"'}

    @classmethod
    def name(cls) -> str:
        return "from_rdp"
