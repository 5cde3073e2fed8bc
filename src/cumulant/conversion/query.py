"""One question about a profile, and its answer.

Delta is given and epsilon is wanted, or the reverse.

Every engine encloses delta at an epsilon. A query passes through all of them; only the innermost step asks which number is
given, and inverts the falling delta if epsilon is wanted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from cumulant.conversion.failure import Failure
from cumulant.numerics.rounding import rounded_down

if TYPE_CHECKING:
    from cumulant.conversion.certify import Certificate

Given = Literal["delta", "epsilon"]
"""The number that a question gives; the other one is wanted."""


@dataclass(frozen=True, slots=True)
class Query:
    """The number that is given, and which of the two it is.

    >>> Query("delta", Fraction("1e-6")).wants_epsilon
    True
    """

    given: Given
    value: Fraction

    @property
    def wants_epsilon(self) -> bool:
        """Return True if delta is given and epsilon is wanted."""
        return self.given == "delta"

    @property
    def log_delta(self) -> float | None:
        """Return log of the given delta, rounded down; None if epsilon is given."""
        return math.log(rounded_down(self.value)) if self.wants_epsilon else None

    @property
    def trivial(self) -> float:
        """Return the upper bound that always holds: epsilon is at most infinite, delta at most 1."""
        return math.inf if self.wants_epsilon else 1.0

    def point(self, found: float) -> tuple[Fraction | float, Fraction | float]:
        """Return epsilon and delta once the wanted number is found."""
        return (found, self.value) if self.wants_epsilon else (self.value, found)


EXACT_WAYS = ("closed form", "line", "lattice", "cone", "adaptive", "order")
"""The ways in which the exact layer reaches a number."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The number, the order that proves it, its rigour, its bound and its route.

    The rigour is `proved`, `bounded` or `estimated`.
    """

    value: float
    order: float | None  # None where no order is involved
    rigour: str
    proof: Certificate | None = None  # None where nothing had to be evaluated, or nothing could be
    bound: str = ""
    way: str = ""  # the conversion of a curve, or how the exact layer found it
    failure: Failure | None = None  # why it does not come from where it was asked for
    width: float | None = None  # of a grid, the step
    points: int = 0
    rounds: tuple[tuple[float, float] | None, ...] = ()
    """The (epsilon, delta) at which a composition theorem states each part's rounds; None where it states none."""

    @property
    def note(self) -> str:
        """The sentence of its failure; empty if it comes from where it was asked for."""
        return "" if self.failure is None else self.failure.sentence

    @property
    def exact(self) -> bool:
        """True if the exact layer gave it."""
        return self.way in EXACT_WAYS
