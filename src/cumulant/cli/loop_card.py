"""The card of several ways to form batches or to sample clients, grouped by whom their numbers protect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cumulant.cli.card import Card

if TYPE_CHECKING:
    from cumulant.accounting.guarantee import Guarantee
    from cumulant.domains import Exact
    from cumulant.relation import Relation
    from cumulant.training.fedavg import FedAvg
    from cumulant.training.sgd import NoisySGD

EPSILON_SIGN = "ε"
NOISE_WORDS = "noise multiplier"


@dataclass(frozen=True, slots=True)
class LoopRow:
    """One way to form batches or to sample clients, with the number that it needs."""

    name: str
    relation: Relation
    value: float
    shown: str
    """The epsilon or the noise multiplier, as printed."""
    least: str
    """The lower end of epsilon, as printed; empty if none is known, or if the noise was asked for."""
    formed: str

    @classmethod
    def read(cls, plan: NoisySGD | FedAvg, found: Guarantee, formed: str, epsilon: str | None) -> LoopRow:
        """Return the row of a loop: its epsilon, or its noise where `epsilon` is the target."""
        from cumulant.accounting.numbers import rounded_down, rounded_up

        if epsilon is not None:
            noise = plan.noise_multiplier
            return cls(plan.sampling, plan.relation, float(noise), str(noise), "", formed)
        least = rounded_down(found.lower) if found.lower else ""
        return cls(plan.sampling, plan.relation, found.epsilon, rounded_up(found.epsilon), least, formed)


def loops_card(
    rows: Sequence[LoopRow], epsilon: str | None, delta: Exact, open_question: str, who: str = "record"
) -> Card:
    """Return the card of these rows; `epsilon` is the target where the noise multiplier was asked for.

    `open_question` says what the number depends on where there are several rows, and `who` is protected.
    Numbers for different neighbours are different promises. They stand apart, in the headline as in the rows.
    """
    sign = EPSILON_SIGN if epsilon is None else NOISE_WORDS
    groups: dict[Relation, list[LoopRow]] = {}
    for row in sorted(rows, key=lambda row: row.relation.clipping or 0):
        groups.setdefault(row.relation, []).append(row)
    ranges = [
        _range(group) + (f" ({relation.change})" if len(groups) > 1 else "") for relation, group in groups.items()
    ]
    target = f"at δ = {delta}" if epsilon is None else f"meets ε ≤ {epsilon} at δ = {delta}"
    card = Card(f"{sign} = {', '.join(ranges)}   {target}")
    if len(rows) > 1:
        card.verdict, card.tone = open_question, "open"
    if all(math.isinf(row.value) for row in rows):
        card.verdict, card.tone = "no finite epsilon is known", "bad"
    for relation, group in groups.items():
        apart = " (compare only these rows)" if len(groups) > 1 and len(group) > 1 else ""
        card.add("Protects", relation.protected_for(1).replace("record", who) + apart)
        for row in group:
            least = f" (at least {row.least})" if row.least else ""
            card.add(row.name, f"{sign.split()[0]} = {row.shown}{least}, {row.formed}")
    return card


def _range(rows: Sequence[LoopRow]) -> str:
    """Return the smallest and the largest number of rows, as printed; one number where they are equal."""
    least, most = (pick(rows, key=lambda row: row.value).shown for pick in (min, max))
    return least if least == most else f"{least} to {most}"
