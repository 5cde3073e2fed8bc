"""One question about a profile: delta is given and epsilon is wanted, or the reverse.

Every engine encloses delta at an epsilon. A query passes through all of them; only the innermost step asks which number is
given, and inverts the falling delta if epsilon is wanted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from cumulant.numerics.rounding import rounded_down

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
