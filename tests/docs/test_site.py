"""The site is built strictly: a warning is an error, nothing comes from elsewhere, every public name has a page."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm

pytestmark = pytest.mark.tree  # pages lead to files of the code

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "--fail-on-warning",
            "--keep-going",
            "-q",
            "-c",
            "docs",
            "-b",
            "html",
            ".",
            str(out),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "extensions" / "reference_pages.py"))


def test_every_page_is_in_exactly_one_group_of_the_map() -> None:
    groups = tomllib.loads((DOCS / "map.toml").read_text())["group"]
    listed = [page for group in groups for page in group["pages"]]
    assert len(listed) == len(set(listed))
    in_folders = {path.relative_to(ROOT).as_posix() for path in DOCS.glob("*/*.md") if path.name != "README.md"}
    by_hand = {path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md")} - in_folders
    assert by_hand - {"docs/index.md", "docs/README.md"} <= set(listed)
    assert {path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.ipynb")} <= set(listed)
    for page in listed:
        assert (ROOT / page).exists() or page == "docs/reference/index.md", page


def test_every_public_name_has_a_page_with_an_example(site: Path) -> None:
    index = (site / "docs" / "reference" / "index.html").read_text()
    for name in cm.__all__:
        if name.startswith("_"):
            continue
        assert f'href="{name}.html"' in index, name
        page = (site / "docs" / "reference" / f"{name}.html").read_text()
        assert "&gt;&gt;&gt;" in page, f"{name} has no example"
    for question in ("epsilon", "delta", "guarantee", "check", "rdp"):
        assert "&gt;&gt;&gt;" in (site / "docs" / "reference" / f"Run.{question}.html").read_text(), question


def test_the_site_says_its_version(site: Path) -> None:
    number = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"<title>cumulant {number}" in (site / "docs" / "index.html").read_text()


def test_notebooks_are_shown_with_their_outputs(site: Path) -> None:
    page = (site / "docs" / "notebooks" / "review-a-claim.html").read_text()
    assert "<b>The claim is false</b>" in page
    assert re.search(r'<img[^>]*src="[^"]*_images/[0-9a-f]+\.png"', page)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r'<(?:img|link|script|iframe)[^>]*(?:src|href)="(?:https?:)?//', page.read_text()), page


def test_formulas_are_set_without_scripts_and_their_font_comes_along(site: Path) -> None:
    page = (site / "docs" / "bounds" / "theorem9.html").read_text()
    assert page.count('display="block"') == 2
    assert "<msubsup>" in page
    assert "mathjax.js" not in page.lower()
    assert (site / "_static" / "math.woff2").read_bytes().startswith(b"wOF2")
    assert "SIL OPEN FONT LICENSE" in (site / "_static" / "math-font-licence.txt").read_text()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_no_formula_is_left_in_plain_letters(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$", "", page.read_text(), flags=re.DOTALL)
    assert not re.search(r"SUM_|INT_|[A-Za-z]\^\{", text), page


def test_a_docstring_in_plain_text_keeps_its_signs(reference: dict[str, Any]) -> None:
    assert reference["restructured"]("the `a_b` of x* and y_ is |z|") == r"the ``a_b`` of x\* and y\_ is \|z\|"
    assert reference["restructured"](">>> 1 * 2\n2") == ">>> 1 * 2\n2"
    assert reference["restructured"]("    a = b_c * d") == "::\n\n    a = b_c * d"


def test_a_table_of_benchmarks_has_its_date_and_its_command() -> None:
    page = (DOCS / "benchmarks.md").read_text()
    assert re.search(r"Measured on 20\d\d-\d\d-\d\d by `[^`]*compare.py[^`]*`", page)
    assert page.count("\n| ") > 10
