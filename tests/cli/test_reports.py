"""`cumulant mu` and `cumulant risk` as the shell sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cumulant.cli import app

Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs `cumulant`: exit code, stdout with white space collapsed, stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = app.answer(arguments)
        out, err = capsys.readouterr()
        return int(code), " ".join(out.split()), err

    return command


def test_mu_in_words(shell: Shell) -> None:
    code, out, err = shell("mu", "Laplace(scale=2)", "--explain")
    assert (code, err) == (0, "")
    assert out.startswith("μ = 0.5618 at slack 1e-6 ✔ bounded; at least 0.5617 Means no attack does better than ")
    assert ("mu = 0.5618 at slack 1e-6 (at least 0.5617): no attack does better than telling N(0.5618, 1)") in out
    assert "but for 1e-6 Fit " in out
    assert "but for 1e-6; fit 0.028" in out
    assert "What ran: Laplace(scale=2) runs once." in out


def test_mu_for_machines(shell: Shell) -> None:
    _, out, _ = shell("mu", "Gaussian(sigma=2) * 4", "--slack", "1e-9", "--json")
    fields = json.loads(out)
    assert (fields["mu"], fields["slack"], fields["fit"]) == (1.0, 1e-9, 0.0)
    assert shell("mu", "Gaussian(sigma=2) * 4", "--quiet")[1] == "1"


def test_mu_that_is_infinite(shell: Shell) -> None:
    code, out, _ = shell("mu", "ApproximateDP(1, 0.01)")
    assert code == 1
    assert out.startswith("μ = inf at slack 1e-6 ✘ no finite mu is known")


def test_risk_in_words(shell: Shell) -> None:
    code, out, err = shell("risk", "PureDP(1)", "--kind", "attribute", "--prior", "0.01")
    assert (code, err) == (0, "")
    assert out.startswith("success ≤ 2.72 % attribute, from 1 % without the release ")
    assert "with probability 1 %. With it, the attacker guesses it with at most 2.72 %, on average over" in out
    assert "The 1 % must include all side knowledge" in out
    _, out, _ = shell("risk", "PureDP(1)", "--kind", "membership", "--fpr", "0.01")
    assert out.startswith("success ≤ 2.72 % membership, from 1 % by chance ")


def test_risk_for_machines(shell: Shell) -> None:
    _, out, _ = shell("risk", "PureDP(1)", "--kind", "reidentification", "--candidates", "100", "--json")
    fields = json.loads(out)
    assert (fields["kind"], fields["prior"], fields["run"]) == ("reidentification", 0.01, "PureDP(epsilon=1)")
    assert shell("risk", "PureDP(1)", "--kind", "membership", "--fpr", "0.01", "--quiet")[1] == "0.02718281829"


def test_a_picture_of_a_risk(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "risk.svg"
    code, _, err = shell("risk", "PureDP(1)", "--kind", "reconstruction", "--prior", "0.1", "--out", str(out))
    assert (code, err) == (0, "")
    assert "<svg" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kind", "attribute"], "give --prior"),
        (["--kind", "attribute", "--prior", "1"], "prior=1 must be"),
        (["--kind", "attribute", "--prior", "0.1", "--fpr", "0.1"], "no --fpr"),
        (["--kind", "attribute", "--candidates", "5"], "--candidates is for"),
        (["--kind", "membership", "--prior", "0.1"], "give --fpr"),
        (["--kind", "reidentification", "--candidates", "5", "--prior", "0.1"], "give candidates=100"),
        (["--kind", "theft", "--prior", "0.1"], "kind"),
    ],
)
def test_what_is_refused(shell: Shell, arguments: list[str], said: str) -> None:
    code, _, err = shell("risk", "PureDP(1)", *arguments)
    assert code == 2
    assert said in err


def test_calibrations_to_mu_and_to_a_risk(shell: Shell) -> None:
    _, out, _ = shell("calibrate", "Gaussian(sigma=?) * 4", "--mu", "1", "--slack", "1e-6")
    assert out.startswith("sigma = 2 meets mu ≤ 1 at slack 1e-6 ✔ proved")
    arguments = ("--kind", "attribute", "--success", "0.05", "--prior", "0.01", "--digits", "3")
    _, out, _ = shell("calibrate", "PureDP(epsilon=?)", *arguments)
    assert out.startswith("epsilon = 1.6 meets attribute ≤ 0.05 at a prior of 0.01 ✔ proved")
