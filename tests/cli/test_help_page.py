"""Help that fits: examples are folded so that they can still be pasted, and values have plain names."""

from __future__ import annotations

import re
import shlex

import pytest

from cumulant.cli.app import COMMANDS, answer, load_command
from cumulant.cli.help_page import fold_examples

LEDGER = sorted(load_command("ledger").commands)


@pytest.mark.parametrize("columns", [80, 120])
def test_every_help_fits_its_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in [[], *([name] for name in COMMANDS), *(["ledger", name] for name in LEDGER)]:
        assert answer([*words, "--help"]) == 0
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= columns, (words, shown)
        assert not re.search(r"<(str|int|path|float|list)|\{EXPR|\[\[|[a-z]\.\.\.$", shown, re.MULTILINE), (
            words,
            shown,
        )


def test_a_folded_example_means_the_same() -> None:
    lines = [
        """  cumulant epsilon "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(1%) * 1000" --delta 1e-6""",
        """  curl -H 'content-type: application/json' -d '{"run": "PureDP(1)", "delta": 0}' http://127.0.0.1:8417/api/epsilon""",
        """  cumulant ledger spend budget.db patients "Gaussian(sigma=20)" --key report-7/q3 --note "a b --c d" --json""",
    ]
    for line in lines:
        folded = fold_examples(line, 74)
        assert max(map(len, folded.splitlines())) <= 77 < len(line)
        assert folded.count("\n") == 1
        words = [" ".join(word.split()) for word in shlex.split(folded.replace("\\\n", ""))]
        assert words == shlex.split(line)


def test_other_lines_stay() -> None:
    text = f"One sentence.\n\n\b\nExamples:\n  # {'a remark ' * 20}\n"
    assert fold_examples(text, 40) == text
