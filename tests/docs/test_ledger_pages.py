"""The commands on the pages about the ledger run, one after the other in one directory, with the exit codes they mention."""

import re
import shlex
from pathlib import Path

import pytest

from cumulant.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("how-to-ledger.md", "how-to-operate-a-ledger.md")
SHELL = re.compile(r"^```shell\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"\$ cumulant (.*?)(?:\s+# exit (\d))?")


@pytest.mark.parametrize("name", PAGES)
def test_commands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cumulant.ledger import writing

    monkeypatch.chdir(tmp_path)
    lines = "".join(SHELL.findall((DOCS / name).read_text(encoding="utf-8"))).splitlines()
    assert len(lines) > 5
    for number, line in enumerate(lines):
        monkeypatch.setattr(writing, "_nonce", lambda process, number=number: f"process {number}")
        found = LINE.fullmatch(line)
        assert found is not None, line
        assert app.answer(shlex.split(found[1])) == int(found[2] or 0), (line, capsys.readouterr().err)


def test_the_pages_say_what_the_code_does() -> None:
    proofs = (DOCS / "ledger-proofs.md").read_text(encoding="utf-8")
    for word in ("Theorem 1", "Theorem 2", "Theorem 3", "Theorem 4", "Lemma P", "checklist"):
        assert word in proofs
