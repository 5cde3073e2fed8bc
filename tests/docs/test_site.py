"""The site is built strictly: what leads nowhere and what says nothing is an error, and nothing comes from elsewhere."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm

pytestmark = pytest.mark.tree  # pages lead to files of the code

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def builder() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "site.py"))


@pytest.fixture(scope="module")
def site(builder: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    builder["build"](out)
    return out


def test_every_page_and_every_public_name_is_there(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    pages.remove(Path("home.html"))  # is index.html
    assert pages <= {path.relative_to(site / "docs") for path in (site / "docs").rglob("*.html")}
    reference = (site / "reference.html").read_text()
    for name in cm.__all__:
        assert name.startswith("_") or f'<h2 id="{name.lower()}">' in reference, name


def test_every_link_leads_to_a_file_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()):
            if not re.match("[a-z]+:", link):
                place = page.parent / link
                assert place.exists() or not re.search(r"[.](html|css|png|svg)$", link), f"{page}: {link}"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r'<(script|iframe)|<(img|link)[^>]*(src|href)="https?:', page.read_text()), page


def test_home_is_for_four_readers_and_every_page_has_the_menu(site: Path) -> None:
    home = (site / "index.html").read_text()
    for reader in ("You train models", "You analyse data", "You review claims", "You do research"):
        assert f">{reader}</h2>" in home
    for page in site.rglob("*.html"):
        text = page.read_text()
        for title in (
            "Train",
            "Analyse",
            "Review",
            "Research",
            "Reference",
            "Changelog",
            "Numbering and errata",
            "Benchmarks",
        ):
            assert re.search(rf"<(h2|a [^>]*)>{title}</", text), (page, title)


def test_formulas_are_set_and_their_font_comes_along(site: Path) -> None:
    page = (site / "docs" / "bounds" / "theorem9.html").read_text()
    assert page.count('<math display="block">') == 2
    assert "<munderover>" in page
    assert "SUM_{" not in re.sub(r"<annotation.*?</annotation>", "", page, flags=re.DOTALL)
    assert (site / "math.woff2").read_bytes().startswith(b"wOF2")
    assert "SIL OPEN FONT LICENSE" in (site / "math-font-licence.txt").read_text()


def test_the_reference_has_an_example_for_every_name(builder: dict[str, Any], site: Path) -> None:
    _, wrong = builder["reference"]()
    assert wrong == []
    parts = re.split(r'<h2 id="([^"]*)">', (site / "reference.html").read_text())
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    for name in cm.__all__:
        assert name.startswith("_") or "&gt;&gt;&gt;" in told[name.lower()], name


def test_a_name_without_a_docstring_or_an_example_is_an_error(builder: dict[str, Any]) -> None:
    class Silent:
        pass

    class Dry:
        """It says something, and shows nothing."""

        def move(self) -> None:
            pass

    assert builder["_entries"]("Silent", Silent, "##", True)[1] == ["Silent has no docstring"]
    assert builder["_entries"]("Dry", Dry, "##", True)[1] == ["Dry.move has no docstring", "Dry has no example"]


def test_a_table_of_benchmarks_has_its_date_and_its_command() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert re.search(r"Measured on 20\d\d-\d\d-\d\d by `[^`]*compare.py[^`]*`", page)
    assert page.count("\n| ") > 10


def test_what_leads_nowhere_is_an_error(builder: dict[str, Any]) -> None:
    pages = {"a.md": builder["rendered"]("# One two\n[x](nowhere.md) [y](a.md#one-two) [z](#three)\n")}
    assert builder["broken"]("a.md", pages) == [
        "a.md: nowhere.md leads nowhere",
        "a.md: #three names no heading of a.md",
    ]
