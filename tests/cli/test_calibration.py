"""`cumulant calibrate` as the shell sees it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import cumulant as cm
from cumulant.cli import app

Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs `cumulant calibrate`: exit code, stdout with white space collapsed, stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = app.answer(["calibrate", *arguments])
        out, err = capsys.readouterr()
        return int(code), " ".join(out.split()), err

    return command


def test_in_words(shell: Shell) -> None:
    code, out, err = shell("Laplace(scale=10) * ?", "--epsilon", "2.05", "--delta", "0", "--explain")
    assert (code, err) == (0, "")
    assert out.startswith("times = 20 meets ε ≤ 2.05 at δ = 0 ✔ proved: ε = 2 Next value times = 21 fails Protects")
    assert "What ran: Laplace(scale=10) runs 20 times." in out


def test_at_the_end_of_the_domain(shell: Shell) -> None:
    _, out, _ = shell("PureDP(1) @ WithoutReplacement(rate=?)", "--epsilon", "5", "--delta", "0")
    assert "Next value rate = 1 is the end of what is allowed" in out


def test_json_is_the_result_of_the_library(shell: Shell) -> None:
    text = "Gaussian(sigma=?) @ WithoutReplacement(rate=0.001) * 600000"
    options = ("--epsilon", "2", "--delta", "1e-8", "--digits", "3", "--method", "paper", "--json")
    code, out, _ = shell(text, *options)
    assert code == 0
    fields = json.loads(out)
    assert (fields["parameter"], fields["value"], fields["fails"]) == ("sigma", 5.08, 5.07)
    run = cm.parse(text, unknown=fields["value"])
    assert fields["guarantee"] == run.guarantee(delta="1e-8", method="paper").to_dict()
    assert fields["guarantee"]["epsilon"] <= 2 < cm.parse(text, unknown="5.07").epsilon("1e-8", method="paper")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Gaussian(sigma=1)", "the expression has no '?' to solve for"),
        ("Gaussian(sigma=?) * ?", "the expression has 2 '?'; leave one and write numbers for the others"),
        ("PureDP(1) * ?", "no value of times meets epsilon <= 0.5 at delta = 0"),
        ("Gausian(sigma=?)", "unknown name 'Gausian' at position 0; did you mean 'Gaussian'?"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(shell: Shell, text: str, sentence: str) -> None:
    code, out, err = shell(text, "--epsilon", "0.5", "--delta", "0")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {sentence}")
    assert "Traceback" not in err


def test_help_shows_examples(shell: Shell) -> None:
    code, out, _ = shell("--help")
    assert code == 0
    asked = "Gaussian(noise_multiplier=?, relation='add-remove') @ Poisson(1%) * 1000"
    assert f'cumulant calibrate "{asked}" --epsilon 2 --delta 1e-6' in out
