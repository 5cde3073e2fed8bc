"""Parts of pages that come from elsewhere are what `python docs/generate.py` writes; the README stays short."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm

pytestmark = pytest.mark.tree

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/index.md", "docs/README.md", "docs/comparison.md")


@pytest.fixture(scope="module")
def generate() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))


def test_every_generated_page_is_listed(generate: dict[str, Any]) -> None:
    assert tuple(generate["PARTS"]) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_what_is_generated(page: str, generate: dict[str, Any]) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == generate["replaced"](page), "run: python docs/generate.py"


def test_the_readme_is_short_and_names_every_group_of_the_map() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    for group in tomllib.loads((ROOT / "docs" / "map.toml").read_text())["group"]:
        assert f"| **{group['title']}** |" in text
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (ROOT / link).exists(), link


def test_no_accountant_that_claims_a_bound_is_below_our_lower_end() -> None:
    """What peers were measured to report contradicts no lower end: they are bounds, and so are ours."""
    settings = runpy.run_path(str(ROOT / "benchmarks" / "standard_settings.py"))["SETTINGS"]
    peers = json.loads((ROOT / "benchmarks" / "peer_epsilons.json").read_text())
    assert len(settings) == 12
    for one in settings:
        lower = cm.parse(one.expression).guarantee(delta=one.delta).lower
        assert lower is not None
        for name, each in peers.items():
            epsilon = each["epsilon"][one.name]
            assert epsilon is None or epsilon >= lower, (name, one.name)


def test_the_numbers_of_the_headline() -> None:
    """Opacus' RDP accountant, our interval and the picture are about one run."""
    peers = json.loads((ROOT / "benchmarks" / "peer_epsilons.json").read_text())
    assert f"{peers['Opacus, RDP']['epsilon']['CIFAR-10, 60 epochs']:.3f}" == "5.135"  # as Opacus prints it
    settings = runpy.run_path(str(ROOT / "benchmarks" / "standard_settings.py"))["SETTINGS"]
    (one,) = (each for each in settings if each.name == "CIFAR-10, 60 epochs")
    found = cm.parse(one.expression).guarantee(delta=one.delta)
    assert found.lower is not None
    assert 4.71 <= found.lower <= found.epsilon <= 4.711
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert "says 5.135. The truth is 4.711" in text
        assert "less than 4.710" in text


def test_every_picture_of_the_script_is_shown_and_small() -> None:
    pictures = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    for name in pictures["PICTURES"]:
        assert f"(figures/{name}.png)" in pages, name
        assert (ROOT / "docs" / "figures" / f"{name}.png").stat().st_size < 250_000


def test_a_picture_of_the_script_is_drawn() -> None:
    pictures = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    figure = pictures["interval"]()
    told = [text.get_text() for text in figure.axes[0].texts]
    assert "cumulant: 4.711" in told
    assert "Opacus, RDP: 5.135" in told
