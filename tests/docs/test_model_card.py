"""The example of a model card is what the library prints for it."""

import re
import runpy
from pathlib import Path

import pytest

from tests.docs.test_tutorial import ROOT, blocks

NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:e-?\d+)?)(?![\w.]*\w)")
VERSION = re.compile(r"cumulant \d+\.\d+\.\d+")
PAGE = ROOT / "docs" / "model-card.md"


def shown(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_printed_by_its_code(tmp_path: Path) -> None:
    script = tmp_path / "card.py"
    script.write_text(blocks(PAGE, "python")[0], encoding="utf-8")
    names = runpy.run_path(str(script))
    for kind, name in (("markdown", "text"), ("latex", "sentence")):
        expected, found = (NUMBER.split(VERSION.sub("cumulant", text.strip())) for text in (shown(kind), names[name]))
        assert found[::2] == expected[::2]
        # what is proved may become a little tighter; what is said stays
        assert [float(x) for x in found[1::2]] == pytest.approx([float(x) for x in expected[1::2]], rel=5e-3)
