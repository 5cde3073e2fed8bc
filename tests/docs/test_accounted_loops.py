"""The page on accounted loops quotes the messages that the code has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "accounted-loops.md").read_text(encoding="utf-8")


def sentences() -> Iterator[str]:
    """Every text in the code of the integrations, as far as it has no values in it."""
    for path in (ROOT / "src" / "cumulant" / "integrations").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.mark.tree
def test_the_messages_are_those_of_the_code() -> None:
    said = list(sentences())
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| loop")]
    assert len(rows) > 25
    quoted = [quote for row in rows for quote in re.findall(r"`([^`]+)`", row[4])]
    assert len(quoted) > 15
    assert [quote for quote in quoted if not any(quote in text for text in said)] == []


def test_every_refusal_has_its_message() -> None:
    for line in PAGE.splitlines():
        if line.startswith("| ") and "| refused" in line:
            assert line.split("|")[4].strip(), line
