"""`cumulant audit` and `cumulant conformance`: verdicts, pictures and exit codes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cumulant.cli.app import answer
from cumulant.training import BallsInBinsSampler, FixedSizeSampler


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = answer(list(words))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


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


@pytest.mark.parametrize("spelling", [("0", "1"), ("0.000e+00", "1.0"), ("False", "True"), (" 0 ", " 1")])
def test_a_coin_is_read_however_it_was_written(
    scores: Path, capsys: pytest.CaptureFixture[str], spelling: tuple[str, str]
) -> None:
    lines = scores.read_text(encoding="utf-8").splitlines()[:200]
    respelled = [lines[0], *(spelling[int(line[0])] + line[1:] for line in lines[1:])]
    words = ("audit", str(scores), "Gaussian(sigma=1)", "--delta", "1e-3", "--json")
    scores.write_text("\n".join(lines), encoding="utf-8")
    plain = asked(capsys, *words)
    scores.write_text("\n".join(respelled), encoding="utf-8")
    assert asked(capsys, *words) == plain
    scores.write_text("member,score\n0.5,1\n", encoding="utf-8")
    code, _, err = asked(capsys, *words)
    assert (code, "line 2 of" in err) == (2, True)


def test_conformance_to_other_laws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sampler = BallsInBinsSampler(population=200, steps=10, key=bytes(32))
    file = tmp_path / "passes.txt"
    file.write_text("".join(f"{' '.join(map(str, batch))}\n" for _ in range(20) for batch in sampler), encoding="utf-8")
    words = ["conformance", str(file), "--population", "200"]
    assert asked(capsys, *words, "--steps", "10", "--quiet")[:2] == (0, "consistent\n")
    code, out, _ = asked(capsys, *words, "--rate", "1/10")
    assert code == 1
    assert "REFUTED by" in out
    assert asked(capsys, *words, "--rate", "1", "--cycle", "10", "--quiet")[:2] == (1, "refuted\n")  # parts change
    assert asked(capsys, *words, "--steps", "10", "--out", str(tmp_path / "x.png"))[0] == 2
