"""The tour of `exact` names the functions that one answer calls, in their order."""

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

import cumulant as cm
from cumulant.accounting.cache import forget
from cumulant.accounting.choices import Method

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-change.md").read_text(encoding="utf-8")
STOPS = re.findall(r"^\| \d+ \| `([^`]+)` \| `([^`]+)` \|", PAGE, re.MULTILINE)


PAPER = re.findall(r"^\| ([a-i]) \| `([^`]+)` \| `([^`]+)` \|", PAGE, re.MULTILINE)


def called(question: cm.Expression, method: Method = "best") -> list[tuple[str, str]]:
    """Return the functions of the library that an epsilon calls, each at its first call."""
    found: dict[tuple[str, str], None] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and "cumulant" in code.co_filename:
            found[code.co_filename.rpartition("cumulant/")[2], code.co_qualname] = None

    sys.setprofile(watch)
    try:
        question.epsilon(delta="1e-6", method=method)
    finally:
        sys.setprofile(None)
    return list(found)


def test_the_stops_are_called_in_their_order() -> None:
    forget()
    step = cm.Gaussian(noise_multiplier="1.1", clip=1, relation=cm.Relation.ADD_REMOVE) @ cm.Poisson(rate="1%")
    road = called(step * 1000)
    assert len(STOPS) == 12
    assert [stop for stop in STOPS if stop not in road] == []
    assert sorted(STOPS, key=road.index) == STOPS


def test_the_roads_of_the_paper() -> None:
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="0.001") * 600_000
    roads: list[tuple[Method, str]] = [("paper", "abcd"), ("best", "efghi")]
    for method, letters in roads:
        forget()
        road = called(run, method)
        stops = [(file, function) for letter, file, function in PAPER if letter in letters]
        assert len(stops) == len(letters)
        assert [stop for stop in stops if stop not in road] == []
        assert sorted(stops, key=road.index) == stops


@pytest.mark.tree
def test_the_constant_is_there() -> None:
    settings = (ROOT / "src/cumulant/exact/inversion/settings.py").read_text(encoding="utf-8")
    assert "most_intervals: int = 400" in settings
    assert "`most_intervals` from 400" in PAGE
