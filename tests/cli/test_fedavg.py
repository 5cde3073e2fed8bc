"""`cumulant fedavg` and the rows of correlated noise in `cumulant dpsgd`."""

import json

import pytest
from typer.testing import CliRunner

from cumulant.cli.app import app
from cumulant.cli.fedavg import NOISE_NAMES, SAMPLING_NAMES
from cumulant.training.fedavg import NOISES, SAMPLINGS


def ask(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, list(words))
    return found.exit_code, found.output


def test_both_ways_to_sample_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    plan = [
        "fedavg",
        "--clients",
        "60000",
        "--clients-per-round",
        "256",
        "--rounds",
        "4687",
        "--noise-multiplier",
        "2",
        "--delta",
        "1e-5",
    ]
    code, text = ask(*plan)
    assert code == 0
    said = " ".join(text.split())
    assert "poisson ε = " in said
    assert "one client added or removed fixed-size ε = " in said
    assert "? depends on how clients are sampled" in said
    assert max(map(len, text.splitlines())) <= 80
    code, text = ask(*plan, "--quiet")
    assert code == 0
    assert [line.split(" ")[0] for line in text.splitlines()] == ["poisson", "fixed-size"]
    code, text = ask(*plan, "--quiet", "--sampling", "fixed-size")
    assert 1.568 <= float(text) <= 1.617
    code, text = ask(*plan, "--sampling", "fixed-size", "--json")
    (row,) = json.loads(text)["rows"]
    assert 1.568 <= row["epsilon"] <= 1.617
    assert row["relation"] == "replace-one"


def test_the_help_names_every_sampling_and_noise() -> None:
    assert SAMPLING_NAMES.split(", ") == list(SAMPLINGS)
    assert NOISE_NAMES.split(", ") == list(NOISES)


def test_noise_is_found_and_shares_are_named() -> None:
    plan = ["fedavg", "--clients", "1000", "--clients-per-round", "50", "--rounds", "20", "--delta", "1e-5"]
    code, text = ask(*plan, "--epsilon", "2", "--sampling", "poisson", "--json")
    assert code == 0
    assert json.loads(text)["rows"][0]["epsilon"] <= 2
    code, text = ask(*plan, "--noise-multiplier", "0.3", "--survivors", "30")
    assert code == 0
    assert "at least 30 honest clients" in " ".join(text.split())


@pytest.mark.parametrize(
    "words", [[], ["--noise-multiplier", "1", "--epsilon", "1"], ["--epsilon", "1", "--sampling", "x"]]
)
def test_wrong_usage_is_refused(words: list[str]) -> None:
    code, _ = ask(
        *["fedavg", "--clients", "1000", "--clients-per-round", "50", "--rounds", "20", "--delta", "1e-5"], *words
    )
    assert code != 0


def test_rows_of_correlated_noise() -> None:
    plan = [
        "dpsgd",
        "--batch",
        "60",
        "--records",
        "6000",
        "--epochs",
        "10",
        "--noise-multiplier",
        "4",
        "--delta",
        "1e-6",
        "--noise-bands",
        "1,0.5",
    ]
    code, text = ask(*plan, "--sampling", "cyclic-poisson", "--json")
    assert code == 0
    (row,) = json.loads(text)["rows"]
    assert row["run"] == "MatrixMechanism(bands=[1, 0.5], steps=1000, sigma=4) @ CyclicPoisson(cycle=2, rate=0.02)"
    assert 0.5 < row["epsilon"] < 0.6
    code, text = ask(*plan, "--quiet")
    assert code == 0
    assert [line.rsplit(" ", 1)[0] for line in text.splitlines()] == [
        "balls-in-bins, one draw",
        "cyclic-poisson",
        "fixed-order",
        "min-sep",
    ]
