"""docs/bounds: every row of the tables has its line and its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cumulant as cm

PAGES = Path(__file__).parents[2] / "docs" / "bounds"
LINES = dict(re.findall(r"\[`([\w-]+)`\]\(([\w-]+\.md)\)", (PAGES / "README.md").read_text()))


@pytest.mark.parametrize("name", [name for name in cm.BOUNDS if name != "best"])
def test_every_bound_has_a_line_and_a_page_that_names_it(name: str) -> None:
    assert f"`{name}`" in (PAGES / LINES[name]).read_text()


def test_citations_of_pages_lead_to_pages() -> None:
    cited = [page for row in cm.BOUNDS.values() for page in re.findall(r"docs/bounds/([\w-]+\.md)", row.citation)]
    assert cited
    for page in cited:
        assert (PAGES / page).is_file(), page


def test_the_page_lists_no_bound_that_is_not_there() -> None:
    assert set(LINES) <= set(cm.BOUNDS)
