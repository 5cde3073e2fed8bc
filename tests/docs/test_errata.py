"""docs/errata.md: every erratum has an entry and a place in the code, and every place that is named is there and says so."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

import cumulant

SOURCE = Path(cumulant.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "errata.md").read_text()
TABLE = re.findall(r"^\| (E-\d+) \| [^|]+ \| [^|]+ \| ([^|]+) \| `(test_\w+)` \|$", PAGE, re.MULTILINE)
ROWS = {erratum: places for erratum, places, _ in TABLE}
TESTS = {erratum: name for erratum, _, name in TABLE}
ENTRIES = re.findall(r"^## (E-\d+): ", PAGE, re.MULTILINE)
CITED = re.compile(r"(?<![\w.-])E-\d+\b")


def test_every_entry_has_a_row_and_every_row_an_entry() -> None:
    assert list(ROWS) == ENTRIES == [f"E-{number}" for number in range(1, 27)]


@pytest.mark.parametrize("erratum", ENTRIES)
def test_the_places_exist_and_cite_the_erratum(erratum: str) -> None:
    places = re.findall(r"`([^`]+)`", ROWS[erratum])
    assert places
    for place in places:
        file, _, name = place.partition("::")
        assert erratum in CITED.findall((SOURCE / file).read_text()), place
        module = importlib.import_module(".".join(("cumulant", *Path(file).with_suffix("").parts)))
        if name:
            found = reduce(getattr, name.split("."), module)
            assert getattr(found, "__module__", module.__name__) == module.__name__, place


def test_every_entry_has_a_kind() -> None:
    kinds = re.findall(r"^\| E-\d+ \| [^|]+ \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert len(kinds) == len(ENTRIES)
    assert set(kinds) == {"wrong formula", "misprint", "loose", "reading", "numerics", "improvement"}


def test_the_tests_exist() -> None:
    written = "\n".join(file.read_text() for file in Path(__file__).parents[1].rglob("test_*.py"))
    missing = {erratum: name for erratum, name in TESTS.items() if f"def {name}(" not in written}
    assert not missing
    assert list(TESTS) == ENTRIES


def test_the_code_cites_no_erratum_that_is_not_on_the_page() -> None:
    cited = {each for file in SOURCE.rglob("*.py") for each in CITED.findall(file.read_text())}
    assert cited <= set(ENTRIES)
