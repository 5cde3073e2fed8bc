"""`cumulant audit --trials sequence` as the shell sees it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cumulant.cli import app

Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs `cumulant audit`: exit code, stdout, stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        code = app.answer(["audit", *arguments])
        out, err = capsys.readouterr()
        return int(code), out, err

    return command


def runs(shift: float, count: int) -> str:
    draws = np.random.default_rng(1)
    lines = ["member,score"]
    for _ in range(count):
        member = int(draws.integers(2))
        lines.append(f"{member},{draws.normal() + shift * member:.6f}")
    return "\n".join(lines) + "\n"


def test_a_false_claim_stops_early(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(runs(3.0, 400))
    code, out, err = shell(str(file), "GaussianDP(mu=0.5)", "--trials", "sequence", "--coin", "fair")
    assert (code, err) == (1, "")
    assert out.startswith("REFUTED after ")
    assert int(out.split()[2]) < 100
    assert "whenever you stop" in out


def test_a_true_claim_is_consistent(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(runs(0.5, 60)))
    code, out, _ = shell("-", "GaussianDP(mu=0.5)", "--trials", "sequence", "--coin", "fair", "--json")
    fields = json.loads(out)
    assert (code, fields["refuted"], fields["runs"], fields["coin"]) == (0, False, 60, "fair")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trials", "sequence"], "--coin fair"),
        (["--coin", "fair"], "only there"),
        (["--trials", "sequence", "--coin", "loaded"], "coin"),
        (["--trials", "sequence", "--coin", "fair", "--guesses", "3"], "leave them away"),
        (["--trials", "sequence", "--coin", "pairs"], "repeats the last coin"),
        (["--trials", "some"], "many, one or sequence"),
    ],
)
def test_what_is_refused(shell: Shell, tmp_path: Path, arguments: list[str], said: str) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("member,score\n1,0.5\n1,0.7\n0,0.2\n")
    code, _, err = shell(str(file), "GaussianDP(mu=1)", *arguments)
    assert code == 2
    assert said in err


def test_a_line_that_is_no_run(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("member,score\n1,0.5\nyes,0.7\n")
    code, _, err = shell(str(file), "GaussianDP(mu=1)", "--trials", "sequence", "--coin", "fair")
    assert code == 2
    assert "line 3" in err
