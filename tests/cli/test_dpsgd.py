"""`cumulant dpsgd`, `audit` and `conformance`: what they print, and their exit codes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.cli.app import answer
from cumulant.training import FixedSizeSampler

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


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    member = rng.integers(0, 2, 4000)
    lines = [f"{bit},{value}" for bit, value in zip(member, member + rng.normal(size=4000), strict=True)]
    file = tmp_path / "scores.csv"
    file.write_text("\n".join(["member,score", *lines]), encoding="utf-8")
    return file


def test_an_audit_of_many_runs(scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("audit", str(scores))
    code, out, _ = asked(capsys, *words, "Gaussian(sigma=1)", "--delta", "1e-3", "--json")
    found = json.loads(out)
    assert code == 0
    assert not found["refuted"]
    assert found["epsilon_lower"] <= found["claim"][0] <= found["claim"][1]
    picture = tmp_path / "audit.png"
    code, out, _ = asked(capsys, *words, "Gaussian(sigma=3)", "--delta", "1e-3", "--out", str(picture))
    assert code == 1
    assert out.startswith("REFUTED")
    assert "verified" not in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_audit_of_one_run(scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("audit", str(scores), "--trials", "one", "--guesses", "50,200")
    picture = tmp_path / "one.svg"
    code, out, _ = asked(capsys, *words, "Gaussian(sigma=1)", "--out", str(picture))
    assert code == 0
    assert "consistent" in out
    assert "weak test" in out
    assert "<svg" in picture.read_text(encoding="utf-8")
    code, out, _ = asked(capsys, *words, "Gaussian(sigma=10)", "--json")
    found: dict[str, Any] = json.loads(out)
    assert code == 1
    assert found["refuted"]
    assert found["guesses"] == [50, 200]


def test_conformance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fresh, ordered, picture = tmp_path / "fresh.txt", tmp_path / "ordered.txt", tmp_path / "batches.png"
    batches = list(FixedSizeSampler(200, 10, steps=400, key=bytes(32)))
    fresh.write_text("\n".join(",".join(map(str, batch)) for batch in batches), encoding="utf-8")
    ordered.write_text("\n".join(" ".join(map(str, sorted(batch))) for batch in batches), encoding="utf-8")
    words = ("--population", "200", "--sample", "10")
    code, out, _ = asked(capsys, "conformance", str(fresh), *words, "--out", str(picture))
    assert code == 0
    assert "consistent" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, out, _ = asked(capsys, "conformance", str(ordered), *words, "--json")
    assert code == 1
    assert json.loads(out)["by"] == ["order"]


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "missing.csv", "Gaussian(sigma=1)"],
        ["audit", "bad.txt", "Gaussian(sigma=1)"],
        ["audit", "bad.txt", "Gaussian(sigma=1)", "--trials", "few"],
        ["audit", "bad.txt", "Gaussian(sigma=1)", "--trials", "one"],
        ["audit", "bad.txt", "Gaussian(sigma=1)", "--guesses", "5"],
        ["conformance", "bad.txt", "--population", "10", "--sample", "2"],
        ["conformance", "missing.txt", "--population", "10", "--sample", "2"],
    ],
)
def test_bad_input(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.txt").write_text("one,two\n3,x\n", encoding="utf-8")
    code, out, err = asked(capsys, *words)
    assert (code, out) == (2, "")
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
