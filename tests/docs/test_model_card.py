"""The example of a model card is what the library prints for it."""

import re
import runpy
from pathlib import Path

from tests.docs.test_tutorial import ROOT, blocks

PAGE = ROOT / "docs" / "model-card.md"


def shown(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_printed_by_its_code(tmp_path: Path) -> None:
    script = tmp_path / "card.py"
    script.write_text(blocks(PAGE, "python")[0], encoding="utf-8")
    names = runpy.run_path(str(script))
    assert shown("markdown") == names["text"]
    assert shown("latex").strip() == names["sentence"]
