"""Sentences of the pages that users read first are short, as the style asks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = 20
"""Words that a sentence may have: the rule of the project for everything that a user reads."""

NAMES = """
    index faq tutorial explanation adaptive cli three-colleagues training-loops accounted-loops reviewers-checklist
    which-mechanism which-sampler samplers-and-noise model-card migration comparison whats-new glossary gallery
    how-to-calibrate how-to-check how-to-fedavg how-to-ledger how-to-operate-a-ledger how-to-page how-to-plot how-to-sweep
    how-to-train how-to-train-jax
"""
PAGES = ["README.md", *(f"docs/{name}.md" for name in NAMES.split())]
"""Pages without proofs."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a page without code, comments, tables, headings and pictures."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    found = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.)\s)", text):
        if not paragraph.lstrip().startswith(("|", "#", "!")):
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "Code", " ".join(paragraph.split())))
            found += re.split(r"(?<=[.?!:;])[*]*\s+(?=[A-Z*\[(])", plain)
    return found


def words(sentence: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


@pytest.mark.tree
@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_of_a_page_is_long(page: str) -> None:
    long = [each for each in sentences((ROOT / page).read_text(encoding="utf-8")) if words(each) > WORDS]
    assert not long


def test_a_long_sentence_is_found() -> None:
    long = "This sentence " + "goes on and on " * 6 + "until it ends."
    assert words(long) > WORDS
    assert sentences(f"# A heading\n\nShort. {long} Another one.\n\n| a | table |") == ["Short.", long, "Another one."]
