"""The card of several ways to form batches or to sample clients, grouped by whom their numbers protect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from cumulant.cli.card import Card

if TYPE_CHECKING:
    from cumulant.accounting.guarantee import Guarantee
    from cumulant.domains import Exact
    from cumulant.relation import Relation
    from cumulant.training.fedavg import FedAvg
    from cumulant.training.sgd import NoisySGD

Row = TypeVar("Row")

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
    groups = group_by_relation(rows, lambda row: row.relation)
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
        card.add("Protects", protected_group(relation, who, len(groups) > 1 and len(group) > 1))
        for row in group:
            least = f" (at least {row.least})" if row.least else ""
            card.add(row.name, f"{sign.split()[0]} = {row.shown}{least}, {row.formed}")
    return card


def group_by_relation(rows: Iterable[Row], relation: Callable[[Row], Relation]) -> dict[Relation, list[Row]]:
    """Return the rows by their neighbours, the weaker promise first; rows of one group keep their order."""
    groups: dict[Relation, list[Row]] = {}
    for row in sorted(rows, key=lambda row: relation(row).clipping or 0):
        groups.setdefault(relation(row), []).append(row)
    return groups


def protected_group(relation: Relation, who: str = "record", apart: bool = False) -> str:
    """Return whom the rows below protect; `apart` warns that other rows are different promises."""
    return relation.protected_for(1).replace("record", who) + (" (compare only these rows)" if apart else "")


def large_delta(delta: Exact, people: int | None, whose: str) -> list[str]:
    """Return a warning for a delta that publishing one of them at random would satisfy; empty if their number is unknown.

    >>> from cumulant.domains import Exact
    >>> large_delta(Exact("1e-3"), 1000, "records"), large_delta(Exact("1e-5"), 1000, "records")
    (['delta is not below 1 / records'], [])
    """
    return [f"delta is not below 1 / {whose}"] if people is not None and delta * people >= 1 else []


def _range(rows: Sequence[LoopRow]) -> str:
    """Return the smallest and the largest number of rows, as printed; one number where they are equal."""
    least, most = (pick(rows, key=lambda row: row.value).shown for pick in (min, max))
    return least if least == most else f"{least} to {most}"
