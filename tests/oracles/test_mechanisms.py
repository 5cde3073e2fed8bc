"""Reference values of the mechanisms, computed at high precision from their closed forms and sums."""

from typing import Any

import pytest

import cumulant as cm
from tests.oracles.reference import load

ROWS = load("mechanisms")["values"]


def described(row: dict[str, Any]) -> cm.Expression:
    """The mechanism a row speaks of; parameters stay text, so they are exact."""
    parameters = {{"k": "values"}.get(name, name): value for name, value in row["parameters"].items()}
    kind: type[cm.Mechanism] = getattr(cm, row["mechanism"])
    return kind(**parameters) * int(row["at"].get("times", 1))


def name(row: dict[str, Any]) -> str:
    return "-".join([row["mechanism"], *row["parameters"].values(), row["quantity"], *row["at"].values()])


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_reference(row: dict[str, Any]) -> None:
    run, at = described(row), row["at"]
    if isinstance(row["value"], list):  # an interval in which the truth lies, and what was found with few points
        least, most = map(float, row["value"])
        assert least <= run.delta(epsilon=at["epsilon"]) <= most
        return
    expected = float(row["value"])
    if "order" in at:
        found, room = float(run.rdp(float(at["order"]))), 1e-12
    else:
        found, room = run.delta(epsilon=at["epsilon"]), 1e-12 if "times" not in at else 1e-3
    assert found >= expected * (1 - 1e-14)
    assert found <= expected * (1 + room) + 1e-300
