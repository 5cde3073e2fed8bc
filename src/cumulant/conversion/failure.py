"""Failures of an engine as data.

Each says what did not work and what the answer is instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

_FALLBACK = "so the answer comes from Rényi divergences"
"""The end of every sentence about a run that the exact layer cannot take; convention."""


class Reason(Enum):
    """A kind of failure; the value is its sentence, {detail} what it was about."""

    NO_LOSSES = f"{{detail}} says nothing about loss distributions, {_FALLBACK}"
    CURVE_ONLY = f"{{detail}} is known by its curve only, {_FALLBACK}"
    DIRECTIONS = f"the samples of the run have directions that do not match, {_FALLBACK}"
    TOO_MANY_ROUNDS = f"more than {{detail}} rounds are more than a grid resolves, {_FALLBACK}"
    TOO_WIDE = f"noise this far from the sensitivity spans too many scales for a grid, {_FALLBACK}"
    NO_FINITE_GRID = "no grid gave a finite answer, so it comes from Rényi divergences"
    STRAINED = "rounding so many losses costs more than the accuracy that was asked for"
    NO_OPTIMUM = "these rounds are too many or too different for the exact composition, so its closed form was used"
    NO_PROOF = "asked for a proof, and there is none: {detail}"
    SLOW_PROOF = "bounded, not proved: {detail}; prove=True asks for it anyway"
    STORED = "{detail}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A reason and what it was about.

    >>> print(Failure(Reason.CURVE_ONLY, "ZeroConcentrated(rho=1)").sentence)
    ZeroConcentrated(rho=1) is known by its curve only, so the answer comes from Rényi divergences
    """

    reason: Reason
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The sentence, without a full stop."""
        return self.reason.value.replace("{detail}", self.detail)
