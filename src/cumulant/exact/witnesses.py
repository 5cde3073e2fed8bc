"""Explicit neighbouring data sets, which bound epsilon and delta from below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cumulant.losses.grid import Step
    from cumulant.losses.transform import Transform

PAIR = "data sets with and without one record that counts (Proposition 11)"
"""Name of the neighbours of Proposition 11, and of every closed form."""

SWAPPED = "data sets without and with one record that counts (Proposition 11)"
"""Name of the neighbours of Proposition 11 in the reverse direction."""

TRIPLE = "data sets whose odd records and the rest are three values in general position"
"""Name of neighbours whose three values have the same distance from each other."""

CORNER = (
    "data sets whose odd records and the rest are three values, one of them half way and aside, and as far from both"
)
"""Name of neighbours whose third value lies half way and aside."""

TURNED = f"{CORNER}, the other way round"
"""Name of those neighbours in the reverse direction."""

OPPOSITE = "data sets in which a record at one end is replaced by one at the other end, beside records that add nothing"
"""Name of replace-one neighbours on Poisson samples, and of their closed form."""

ADAPTIVE = "data sets with one record that counts, asked by queries that adapt to every answer (Theorem P)"
"""Name of the neighbours of adaptive queries."""


REPLACED = dict.fromkeys(
    (PAIR, SWAPPED), "data sets in which one record that counts is replaced by another (Proposition 11)"
)
"""Names of these neighbours where a record is replaced, by those where it is added or removed."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two named data sets, and the output laws of one round on them.

    All rounds of a run are asked about data sets of one name. `covered` says that for this round alone data sets of another
    name are known to need as much; where that is so for all rounds, the name is left out.
    """

    name: str
    step: Step
    covered: bool = False
    transform: Transform | None = None
    """The transform of the step; None if the line may not be asked."""
