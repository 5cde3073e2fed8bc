"""The site is built strictly: what leads nowhere and what says nothing is an error, and nothing comes from elsewhere."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm

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


def test_what_leads_nowhere_is_an_error(builder: dict[str, Any]) -> None:
    pages = {"a.md": builder["rendered"]("# One two\n[x](nowhere.md) [y](a.md#one-two) [z](#three)\n")}
    assert builder["broken"]("a.md", pages) == [
        "a.md: nowhere.md leads nowhere",
        "a.md: #three names no heading of a.md",
    ]
