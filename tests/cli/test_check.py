"""`cumulant check` and `cumulant verify`: verdicts, exit codes, files that are no guarantees."""

import io
import json
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.cli.app import answer

PAPER = "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 6000"
RUN = cm.parse(PAPER).guarantee(delta="1e-8")
BETWEEN = str((RUN.epsilon + (RUN.lower or 0.0)) / 2)
MIXED = "Gaussian(sigma=1) @ Poisson(rate=0.1) + Laplace(2) @ WithoutReplacement(0.1)"


def check(*claim: str) -> int:
    return answer(["check", PAPER, "--epsilon", claim[0], "--delta", claim[1], *claim[2:]])


@pytest.mark.parametrize(
    ("epsilon", "code", "first"),
    [("1.74", 0, "Holds:"), ("0.01", 1, "False:"), (str((RUN.epsilon + RUN.lower) / 2), 4, "Open:")],  # type: ignore[operator]
)
def test_the_exit_code_is_the_verdict(capsys: pytest.CaptureFixture[str], epsilon: str, code: int, first: str) -> None:
    assert check(epsilon, "1e-8") == code
    assert capsys.readouterr().out.startswith(f"  {first} ε = {float(epsilon):.5g}"[:-1])
    assert check(epsilon, "1e-8", "--json") == code
    fields = json.loads(capsys.readouterr().out)
    assert fields["verdict"] == first[:-1].lower()
    assert {"epsilon", "lower", "slack", "witness"} <= fields.keys()


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "Gaussian(sigma=", "--epsilon", "1", "--delta", "1e-8"],
        ["check", PAPER, "--epsilon", "-1", "--delta", "1e-8"],
        ["check", PAPER, "--epsilon", "1", "--delta", "2"],
        ["check", PAPER, "--epsilon", "1"],
        ["check", PAPER, "--epsilon", "1", "--delta", "1e-8", "--accuracy", "0"],
        [
            "check",
            "Gaussian(sigma=1) @ Poisson(rate=0.1) + Laplace(2) @ WithoutReplacement(0.1)",
            "--epsilon",
            "1",
            "--delta",
            "0.1",
        ],
    ],
)
def test_what_is_no_verdict_exits_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert answer(arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_failure_of_the_library_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    for raised in (cm.CertificateError("wide"), ZeroDivisionError("by zero")):

        def fails(*_: object, raised: Exception = raised, **__: object) -> None:
            raise raised

        monkeypatch.setattr(cm.Expression, "check", fails)
        assert check("1", "1e-8") == 2


def test_what_was_stored_is_proved_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "guarantee.json"
    assert answer(["epsilon", PAPER, "--delta", "1e-8", "--json", "--explain"]) == 0
    file.write_text(capsys.readouterr().out)
    assert answer(["verify", str(file), "--explain"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"  Confirmed: ε = {RUN.epsilon}   at δ = 1e-8")
    assert "by an independent computation at higher precision" in shown
    assert "Confirmed: delta = 1e-08" in shown
    assert "Assumed: every sample is uniform" in " ".join(shown.split())
    assert "is confirmed too" in " ".join(shown.split())
    assert answer(["verify", str(file), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert (fields["holds"], fields["independent"], fields["lower_confirmed"]) == (True, True, True)
    assert fields["run"] == PAPER


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": 0.01}, "False: ε = 0.01 at δ = 1e-8 ✘ at least 0.07123 is needed Lower end 0.07123 is confirmed "),
        ({"epsilon": 0.0}, "False: ε = 0 at δ = 1e-8 ✘ at least 0.07123 is needed"),
        (
            {"lower": 0.1, "epsilon": 0.2},
            "Not confirmed: lower end 0.1 at δ = 1e-8 ✘ ε = 0.2 is confirmed; its lower end is",
        ),
        (
            {"lower": 0.05, "epsilon": 0.0713},
            "Not confirmed: ε = 0.0713 at δ = 1e-8 ✘ the second computation does not reach",
        ),
    ],
)
def test_what_was_changed_is_not_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, float], said: str
) -> None:
    file = tmp_path / "guarantee.json"
    file.write_text(json.dumps(RUN.to_dict() | change))
    assert answer(["verify", str(file)]) == 1
    assert said in " ".join(capsys.readouterr().out.split()) + " "


def test_a_raised_rigour_is_not_confirmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "guarantee.json"
    stored = cm.parse("Laplace(scale=2) @ Poisson(rate=0.01) * 100").guarantee(delta="1e-6").to_dict()
    file.write_text(json.dumps(stored | {"rigour": "proved"}))
    assert answer(["verify", str(file)]) == 1
    assert "✘ it says proved, and no proof of this number was found" in " ".join(capsys.readouterr().out.split())


def test_rows_of_a_loop_are_no_guarantee(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = ["--batch", "6", "--records", "60", "--epochs", "1", "--noise-multiplier", "4", "--delta", "1e-5"]
    assert answer(["dpsgd", *loop, "--sampling", "poisson", "--json"]) == 0
    file = tmp_path / "rows.json"
    file.write_text(capsys.readouterr().out)
    assert answer(["verify", str(file)]) == 2
    assert (
        "the output of dpsgd or fedavg, not a guarantee; give one of its runs to cumulant epsilon"
        in capsys.readouterr().err
    )


def test_a_delta_that_was_not_asked_for_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The question is part of the file, so that another delta contradicts it."""
    file = tmp_path / "guarantee.json"
    file.write_text(json.dumps(RUN.to_dict() | {"delta": 1e-10}))
    assert answer(["verify", str(file)]) == 2
    assert "delta of this guarantee is not what its run and its plan lead to" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(RUN.to_json()))
    assert answer(["verify", "-"]) == 0


def test_a_file_that_is_no_guarantee_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (b"", b"{}", b"[1]", b"\xff\xfe", b'{"epsilon": 1}'):
        file = tmp_path / "other.json"
        file.write_bytes(content)
        assert answer(["verify", str(file)]) == 2
        assert capsys.readouterr().err.startswith("error: ")
    assert answer(["verify", str(tmp_path / "missing.json")]) == 2
    assert answer(["verify", str(tmp_path)]) == 2


def test_what_proves_nothing_cannot_be_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "guarantee.json"
    file.write_text(cm.parse(PAPER).guarantee(delta="1e-8", method="naive").to_json())
    assert answer(["verify", str(file)]) == 1
    assert "only a bound at one order can be verified" in capsys.readouterr().err


def test_replaced_records_are_the_witness_of_replace_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["check", "Gaussian(sigma=1, relation='replace-one')", "--epsilon", "0.1", "--delta", "1e-5"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Shown by data sets in which one record that counts is replaced by another" in said
    assert "with and without" not in said


def test_users_are_the_witness_of_users(capsys: pytest.CaptureFixture[str]) -> None:
    """A run about one user was refuted "with and without one record that counts"."""
    run = "Gaussian(sigma=1, relation='add-remove') @ Poisson(rate=1%) @ User(records=3) * 10"
    for words in (["check", run, "--epsilon", "0.01"], ["epsilon", run]):
        answer([*words, "--delta", "1e-5", "--explain"])
        said = " ".join(capsys.readouterr().out.split())
        assert "data sets with and without one user" in said
        assert "with and without one record" not in said


def test_the_witness_has_the_same_words_in_python() -> None:
    run = cm.Gaussian(sigma=1, relation="replace-one")
    words = "data sets in which one record that counts is replaced by another (Proposition 11)"
    assert run.check(epsilon="0.1", delta="1e-5").witness == words
    found = run.guarantee(delta="1e-5")
    assert found.witness == found.to_dict()["witness"] == words
    earlier = {**found.to_dict(), "witness": "data sets with and without one record that counts (Proposition 11)"}
    assert cm.Guarantee.from_json(json.dumps(earlier)).lower_confirmed() is True  # as an earlier release wrote it


def test_a_claim_that_fails_comes_with_questions(capsys: pytest.CaptureFixture[str]) -> None:
    """The questions of `dpsgd --claim` stand beside every verdict that is no."""

    def said(run: str, epsilon: str, delta: str) -> str:
        answer(["check", run, "--epsilon", epsilon, "--delta", delta])
        return " ".join(capsys.readouterr().out.split())

    false = said("Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000", "1", "1e-6")
    assert "Ask them ▸ How were samples drawn, and who saw them? ▸ Is a neighbour added or replaced?" in false
    assert "Is the noise on the sum, in units of the clipping norm?" in false
    assert "Check these" not in false
    laplace = said("Laplace(scale=2) * 3", "1", "0")
    assert "How far does one record move each answer?" in laplace
    assert "clip" not in laplace
    unclear = said("Laplace(scale=2) @ WithoutReplacement(rate=0.01) * 900", "0.6", "1e-6")
    assert "Open" in unclear
    assert "Check these" in unclear
    assert "Ask them" in unclear
    assert "Ask them" not in said("Laplace(scale=2) * 3", "2", "0")


def test_no_word_about_clipping_where_nothing_is_clipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["check", "Laplace(scale=2) * 3", "--epsilon", "1", "--delta", "0", "--explain"]) == 1
    assert "clip" not in capsys.readouterr().out
    assert answer(["check", "Gaussian(sigma=2) * 3", "--epsilon", "1", "--delta", "1e-6", "--explain"]) == 1
    assert "clipping to norm C has sensitivity 2C" in " ".join(capsys.readouterr().out.split())


def test_a_verdict_is_no_guarantee(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A verdict has an epsilon too; the error names the command whose folder can be verified."""
    loop = ["dpsgd", "--rate", "1%", "--steps", "100", "--noise-multiplier", "4", "--delta", "1e-5", "--claim", "1"]
    for command in (["check", "PureDP(1)", "--epsilon", "1", "--delta", "0"], loop):
        assert answer([*command, "--json"]) == 0
        file = tmp_path / "verdict.json"
        file.write_text(capsys.readouterr().out)
        assert answer(["verify", str(file)]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "this is a verdict, not a guarantee; use cumulant archive --claim" in said


def test_a_smaller_accuracy_is_advised_only_where_it_can_decide(capsys: pytest.CaptureFixture[str]) -> None:
    """Between the ends of shuffled passes no grid decides; between those of a grid one may."""
    shuffled = 'Gaussian(sigma=1.1, sensitivity=2, geometry="ball") @ ShuffledBatches(batch=256, records=60000) * 20'
    assert answer(["check", shuffled, "--epsilon", "20", "--delta", "1e-5", "--accuracy", "1/1000"]) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "no --accuracy closes this gap: what is true between its ends is not known" in said
    assert "smaller --accuracy" not in said


def test_a_false_any_order_names_a_run_with_the_same_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    loop = ["--batch", "256", "--records", "60000", "--epochs", "20", "--noise-multiplier", "1.1", "--delta", "1e-5"]
    assert answer(["dpsgd", *loop, "--sampling", "any-order", "--claim", "2", "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["verdict"] == "false"
    assert answer(["check", row["run"], "--epsilon", "2", "--delta", "1e-5", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["lower"] == row["epsilon_lower"]
