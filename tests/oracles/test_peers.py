"""Figures of other libraries' own test suites (peers.json): nothing here is below a true number, nor above a valid bound.

Each figure names its project, file and test. What is larger here by more than 1e-3 is marked `left`, with the reason.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm

STORED = json.loads((Path(__file__).parent / "peers.json").read_text())
LOOSER = 1e-3
"""By how much a number may be above a peer's, relatively."""
ROUNDED = 1e-6
"""By how much a number may be below a true one, relatively: that has about seven digits."""
TESTS: dict[str, list[dict[str, Any]]] = {}
for _figure in STORED["figures"]:
    TESTS.setdefault(f"{_figure['project']}.{_figure['test']}", []).append(_figure)


def answer(figure: dict[str, Any]) -> float:
    run, at = cm.parse(figure["run"]), figure["at"]
    match figure["asked"]:
        case "delta" if figure["direction"] != "both":
            return float(run.privacy_loss(figure["direction"]).hockey_stick(at))
        case "delta":
            return float(run.delta(epsilon=at))
        case "epsilon":
            return float(run.epsilon(delta=at))
        case "rdp":
            return float(run.rdp(at))
        case "true_positive_rate":
            return float(run.true_positive_rate(at))
    return float(run.gaussian_mu())


@pytest.mark.parametrize("name", TESTS)
def test_figures(name: str) -> None:
    for figure in TESTS[name]:
        found, theirs = answer(figure), figure["value"]
        room = 10.0 ** -figure["places"] * (theirs if figure["kind"] == "relative" else 1.0)
        if figure["kind"] != "upper":
            assert found >= (theirs - room) * (1 - ROUNDED), figure
        if not figure["left"]:
            assert found <= theirs * (1 + LOOSER) + room, figure
        assert found >= 0, figure
        assert not math.isnan(found), figure


@pytest.mark.parametrize("table", STORED["tables"], ids=lambda table: str(table["test"]))
def test_tables_of_divergences(table: dict[str, Any]) -> None:
    """Divergences of Poisson samples with Gaussian noise: the true numbers, to eight digits."""
    runs: dict[tuple[float, float, int], list[tuple[float, float]]] = {}
    for order, rate, sigma, rounds, value in table["rows"]:
        runs.setdefault((rate, sigma, rounds), []).append((order, value))
    for (rate, sigma, rounds), asked in runs.items():
        run = cm.Gaussian(sigma=sigma, relation=cm.Relation.ADD_REMOVE) @ cm.Poisson(rate=rate) * rounds
        found = run.rdp([order for order, _ in asked])
        assert found == pytest.approx([value for _, value in asked], rel=10.0 ** -table["places"]), str(run)


def test_every_figure_names_its_source() -> None:
    assert set(STORED["sources"]) == {figure["project"] for figure in STORED["figures"] + STORED["tables"]}
    assert len(STORED["figures"]) + sum(len(table["rows"]) for table in STORED["tables"]) >= 1660
    counted = Counter(figure["kind"] for figure in STORED["figures"])
    assert set(counted) == set(STORED["kinds"])
    assert counted["exact"] > 150
    assert sum(bool(figure["left"]) for figure in STORED["figures"]) <= 17
