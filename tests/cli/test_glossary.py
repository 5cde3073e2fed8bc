"""The words that the shell explains are those of the page."""

from __future__ import annotations

import re
from pathlib import Path

from cumulant.cli.glossary import GLOSSARY

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_the_glossary_is_that_of_the_page() -> None:
    found: dict[str, str] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\| (\*\*.*?) \| (.*) \|", line):
            text = re.sub(r" ?\[[^\]]*\]\([^)]*\)\.?", "", match[2]).replace("$e^{\\varepsilon}$", "e^epsilon")
            found |= dict.fromkeys(re.findall(r"\*\*(.*?)\*\*", match[1]), re.sub("[`*]", "", text))
    assert found == GLOSSARY
