"""`cumulant fedavg` and the rows of correlated noise in `cumulant dpsgd`."""

import json

import pytest
from typer.testing import CliRunner

from cumulant.cli.app import answer, app
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
    assert "Protects one client added or removed poisson ε = " in said
    assert "Protects one client replaced by another fixed-size ε = " in said
    assert "? depends on how clients are sampled" in said
    assert "(added or removed), " in said.partition(" at δ")[0]
    assert "(replaced)" in said.partition(" at δ")[0]
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


def test_a_claim_about_clients_is_judged_for_every_way_to_sample_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Samples of fixed size need at least 10.28, Poisson samples 1.327: 2.5 lies between."""
    plan = ["fedavg", "--clients", "10000", "--clients-per-round", "100", "--rounds", "500", "--noise-multiplier", "1"]
    plan += ["--delta", "1e-5", "--claim", "2.5"]
    assert answer([*plan, "--quiet"]) == 4
    assert capsys.readouterr().out == "poisson holds\nfixed-size false\n"
    assert answer([*plan, "--sampling", "poisson", "--quiet"]) == 0
    assert capsys.readouterr().out == "holds\n"
    assert answer([*plan, "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], [row["verdict"] for row in found["rows"]]) == ("depends", ["holds", "false"])
    assert answer(plan) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "? depends on groups of clients and neighbours: false for 1, holds for 1 " in said
    assert "Protects one client added or removed poisson holds" in said
    assert "Protects one client replaced by another fixed-size false" in said
    assert "Loop 100 of 10,000 clients" in said
    assert "not below" not in said
    for words in (["--sampling", "poisson"], []):
        assert answer([*plan[:-2], "--delta", "1e-4", *words]) == 0
        assert "Careful ▸ delta is not below 1 / clients" in " ".join(capsys.readouterr().out.split())
    assert "fixed-size false: at least 10.2" in said
    without = [word for word in plan if word not in ("--noise-multiplier", "1")]
    assert answer([*without, "--epsilon", "2"]) == 2
    assert "in place of --epsilon" in " ".join(capsys.readouterr().err.split())
