"""Figures of other libraries' own test suites (peers.json): nothing here is below a true number, nor above a valid bound.

Each figure names its project, file and test. What is larger here by more than 1e-3 has a reason, and so has a peer's figure
that is false. `make test` asks a tenth of the runs of every test, a hunt asks all of them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.choices import Direction
from tests import effort

STORED = json.loads((Path(__file__).parent / "peers.json").read_text())
Floats = np.ndarray[Any, np.dtype[np.float64]]
LOOSER = 1e-3
"""By how much a number may be above a peer's, relatively."""
ROUNDED = 1e-6
"""By how much a number may be below a true one, relatively: that has about seven digits."""
TENTH = 10
"""One of so many runs of each test is asked in `make test`; convention: all of them take 20 seconds, a tenth five."""
NAMES = [f"{test['project']}.{test['test']}" for test in STORED["tests"]]


def answers(text: str, direction: Direction, asked: str, places: list[str]) -> list[float]:
    """Return the answers of one run at all places, asked together where they can be."""
    run = cm.parse(text)
    match asked:
        case "delta" if direction != "both" or any(float(place) < 0 for place in places):
            found: Any = run.privacy_loss(direction).hockey_stick(places)
        case "delta":
            found = run.delta(epsilon=places)
        case "epsilon":
            found = run.epsilon(delta=places)
        case "rdp":
            found = run.rdp([float(place) for place in places])
        case "true_positive_rate":
            found = run.true_positive_rate(places)
        case "bayes_risk":
            found = [run.bayes_risk(place) for place in places]
        case "advantage":
            found = run.advantage()
        case _:
            found = run.gaussian_mu()
    return [float(each) for each in np.atleast_1d(found)]


@pytest.mark.parametrize("place", range(len(NAMES)), ids=NAMES)
def test_figures(place: int) -> None:
    rows = STORED["tests"][place]["rows"]
    for text, direction, asked, kind, digits, reason, figures in effort.share(rows, place, -(-len(rows) // TENTH)):
        found = answers(text, direction, asked, list(figures))
        for (at, theirs), ours in zip(figures.items(), found, strict=True):
            case = f"{asked} of {text} ({direction}) at {at}: {ours}, theirs {kind} {theirs}"
            room = 10.0**-digits * (theirs if kind == "relative" else 1.0)
            assert not math.isnan(ours), case
            if kind != "upper":
                assert ours >= (theirs - room) * (1 - ROUNDED), case
            if kind == "false":
                assert ours > theirs, case
            elif not reason and kind != "lower":
                assert ours <= theirs * (1 + LOOSER) + room, case


@pytest.mark.parametrize("table", STORED["tables"], ids=lambda table: str(table["test"]))
def test_tables_of_divergences(table: dict[str, Any]) -> None:
    """Divergences of Poisson samples with Gaussian noise: the true numbers, to eight digits."""
    for rate, sigma, rounds, divergences in table["rows"]:
        run = cm.Gaussian(sigma=sigma, relation=cm.Relation.ADD_REMOVE) @ cm.Poisson(rate=rate) * rounds
        found = run.rdp([float(order) for order in divergences])
        assert found == pytest.approx(list(divergences.values()), rel=10.0 ** -table["places"]), str(run)


def test_every_figure_names_its_source() -> None:
    assert set(STORED["sources"]) == {test["project"] for test in STORED["tests"] + STORED["tables"]}
    rows = [row for test in STORED["tests"] for row in test["rows"]]
    counted = Counter({kind: sum(len(row[-1]) for row in rows if row[3] == kind) for kind in STORED["kinds"]})
    assert counted.total() + sum(len(row[-1]) for table in STORED["tables"] for row in table["rows"]) >= 5700
    assert {row[3] for row in rows} == set(STORED["kinds"])
    assert {row[5] for row in rows} - {""} == set(STORED["reasons"])
    assert counted["exact"] + counted["relative"] > 1400
    assert all(row[5] for row in rows if row[3] == "false")
    assert not [row for row in rows if row[5] and row[3] != "false"]


def divergence(p: float, q: float, orders: Floats) -> Floats:
    """D_a of two answers of probability p against q."""
    first = orders * math.log(p) + (1 - orders) * math.log(q)
    second = orders * math.log1p(-p) + (1 - orders) * math.log1p(-q)
    return np.asarray(np.logaddexp(first, second) / (orders - 1))


def test_claims_for_zcdp_from_order_one_half_are_false() -> None:
    """Two answers are rho-zCDP, at every order above 1, and an attacker gains more from them than the peer says."""
    orders = 1 + np.geomspace(1e-4, 3000, 1500)
    rows = [row for test in STORED["tests"] for row in test["rows"] if row[5] == "half"]
    assert len(rows) > 15
    for text, _, asked, _, _, _, figures in rows:
        rho = float(re.fullmatch(r"ZeroConcentrated\(rho=(.*)\)", text)[1])  # type: ignore[index]
        for at, theirs in figures.items():
            gained = theirs + 1e-4
            p, q = ((1 + gained) / 2, (1 - gained) / 2) if asked == "advantage" else (gained, float(at))
            for first, second in ((p, q), (q, p)):
                assert (divergence(first, second, orders) <= rho * orders).all(), (text, asked, at)
