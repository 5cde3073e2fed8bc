"""The card of several loops: numbers for different neighbours stand apart."""

from __future__ import annotations

import math

from cumulant.cli.loop_card import LoopRow, loops_card
from cumulant.domains import Exact
from cumulant.relation import Relation

QUESTION = "depends on the loader"


def row(name: str, relation: Relation, value: float, least: str = "") -> LoopRow:
    return LoopRow(name, relation, value, f"{value:g}", least, "as drawn")


def lines(*rows: LoopRow, epsilon: str | None = None) -> list[str]:
    card = loops_card(rows, epsilon, Exact("1e-5"), QUESTION)
    return ["".join(text for text, _ in line).strip() for line in card.lines(100)]


def test_weaker_neighbours_come_first_and_each_group_has_its_range() -> None:
    found = lines(
        row("fixed-size", Relation.REPLACE_ONE, 33.0, "32"),
        row("poisson", Relation.ADD_REMOVE, 4.7, "4.6"),
        row("any-order", Relation.REPLACE_ONE, 185.0),
    )
    assert found[0] == f"ε = 4.7 (added or removed), 33 to 185 (replaced)   at δ = 1e-5      ? {QUESTION}"
    assert found[2:] == [
        "Protects    one record added or removed",
        "poisson     ε = 4.7 (at least 4.6), as drawn",
        "Protects    one record replaced by another (compare only these rows)",
        "fixed-size  ε = 33 (at least 32), as drawn",
        "any-order   ε = 185, as drawn",
    ]


def test_one_kind_of_neighbour_needs_no_word_in_the_headline() -> None:
    found = lines(row("a", Relation.ADD_REMOVE, 2.0), row("b", Relation.ADD_REMOVE, 1.0), epsilon="3")
    assert found[0] == f"noise multiplier = 1 to 2   meets ε ≤ 3 at δ = 1e-5      ? {QUESTION}"
    assert found[3] == "a         noise = 2, as drawn"
    assert lines(row("a", Relation.ADD_REMOVE, 2.0))[0] == "ε = 2   at δ = 1e-5"


def test_nothing_finite_is_said_as_such() -> None:
    assert lines(row("a", Relation.ADD_REMOVE, math.inf))[0].endswith("✘ no finite epsilon is known")
