"""`cumulant dpsgd`: every way to form batches, the search for noise, and the factor 2."""

import json

import pytest

import cumulant as cm
from cumulant.cli.app import answer

DIGITS = ["--batch", "64", "--records", "1797", "--delta", "1e-5"]


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = answer(list(words))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_all_samplings_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("dpsgd", *DIGITS, "--epochs", "3", "--noise-multiplier", "4")
    code, out, _ = asked(capsys, *words)
    assert code == 0
    assert out.startswith("The factor 2")
    for name in ("fixed-size", "poisson", "balls-in-bins", "shuffled", "replace-one", "add-remove", "assumes"):
        assert name in out
    code, out, _ = asked(capsys, *words, "--json", "--per-epoch")
    rows = {row["sampling"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    assert rows["fixed-size"]["epsilon"] == cm.NoisySGD(64, 1797, 4, 3).epsilon(1e-5)
    assert rows["fixed-size"]["epsilon_lower"] <= rows["fixed-size"]["epsilon"]
    assert rows["shuffled"]["epsilon_lower"] is None
    assert len(rows["poisson"]["per_epoch"]) == 3
    assert cm.parse(rows["poisson"]["run"]).relation == rows["poisson"]["relation"] == "add-remove"


def test_nothing_is_proved_at_delta_0(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--batch", "64", "--records", "1797", "--delta", "0", "--epochs", "1", "--noise-multiplier", "4")
    code, out, _ = asked(capsys, "dpsgd", *words)
    assert code == 1
    assert "inf" in out
    code, out, _ = asked(capsys, "dpsgd", *words, "--json")
    assert code == 1
    assert {row["epsilon"] for row in json.loads(out)["rows"]} == {"inf"}


def test_calibration(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("dpsgd", *DIGITS, "--steps", "560", "--epsilon", "3", "--sampling", "fixed-size", "--json")
    code, out, _ = asked(capsys, *words)
    (row,) = json.loads(out)["rows"]
    assert code == 0
    assert row["epsilon"] <= 3
    assert row["noise_multiplier"] == pytest.approx(2.889, rel=5e-3)


@pytest.mark.parametrize(
    "words",
    [
        ["--epochs", "3"],
        ["--epochs", "3", "--noise-multiplier", "1", "--epsilon", "1"],
        ["--noise-multiplier", "1"],
        ["--epochs", "3", "--noise-multiplier", "1", "--sampling", "none"],
        ["--epochs", "3", "--noise-multiplier", "zero"],
    ],
)
def test_bad_input_of_dpsgd(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = asked(capsys, "dpsgd", *DIGITS, *words)
    assert code == 2
    assert err.startswith("error: ")


@pytest.mark.parametrize("explain", [[], ["--explain"]], ids=["answer", "explain"])
def test_a_noise_multiplier_meets_the_factor_two(explain: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In the first lines of the answer, and only where a noise multiplier may have been taken for sigma."""
    sampled = "@ WithoutReplacement(sample=256, population=60000) * 100"
    _, out, _ = asked(capsys, "epsilon", f"Gaussian(sigma=1.1) {sampled}", "--delta", "1e-5", *explain)
    first = " ".join(out.split())[:700]
    assert "CAREFUL, FACTOR 2" in first
    assert 'Gaussian(sigma=1.1, sensitivity=2, geometry="ball")' in first
    for honest in (
        f'Gaussian(sigma=1.1, sensitivity=2, geometry="ball") {sampled}',
        "Gaussian(sigma=1.1) @ Poisson(rate=0.01) * 100",
        "Gaussian(sigma=1.1)",
        f"Laplace(scale=2) {sampled}",
    ):
        _, out, _ = asked(capsys, "epsilon", honest, "--delta", "1e-5", *explain)
        assert "FACTOR 2" not in out
