"""`cumulant dpsgd --statement` and `--claim` as the shell sees them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from cumulant.cli import app
from cumulant.cli.app import answer

Shell = Callable[..., tuple[int, str, str]]
LOOP = ("--batch", "64", "--records", "1797", "--steps", "50", "--noise-multiplier", "4", "--delta", "1e-5")
SAID = {"unit": "one image", "released": "weights", "tuning": "none", "not-covered": "nothing"}
SAID |= {"noise": "exact", "sampler": "mine"}
WORDS = [word for name, value in SAID.items() for word in (f"--{name}", value)]
DEPLOYMENT = {
    "url_slug": "uni_taps",
    "name": "taps",
    "data_curators": ["us"],
    "description": "d",
    "intended_use": "u",
    "data_product_type": "Machine learning model",
    "data_product_region": "r",
    "publication_date": "2026-11-17",
    "registry_authors": ["a"],
}


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs `cumulant dpsgd`: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = app.answer(["dpsgd", *LOOP, *arguments])
        out, err = capsys.readouterr()
        return int(code), out, err

    return command


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_what_is_unknown_is_to_do(shell: Shell, form: str) -> None:
    code, out, err = shell("--sampling", "poisson", "--statement", form, "--unit", "one image")
    assert code == 0
    assert "one image" in out
    assert "slack" in out
    assert ("TODO" in out) == (form != "latex")
    assert err == "TODO: only you know released, tuning, not_covered, noise, sampler\n"


def test_a_card_leaves_nothing_open(shell: Shell, tmp_path: Path) -> None:
    code, out, err = shell("--sampling", "poisson", "--statement", "card", "--unit", "one image")
    assert (code, out) == (2, "")
    for word in ("--released", "--tuning", "--not-covered", "--noise", "--sampler", "--model", "--task", "--dataset"):
        assert word in err
    assert '--setting FILE with {"released": "…", "tuning": "…"' in err
    card = ("--sampling", "poisson", "--statement", "card", *WORDS, "--task", "t", "--dataset", "d")
    code, out, err = shell(*card)
    assert (code, out) == (2, "")
    assert 'these are missing: --model; give them, or --setting FILE with {"model": "…"}' in err
    code, out, _ = shell(*card, "--model", "resnet")
    assert code == 0
    assert '"name": "resnet"' in out
    setting = tmp_path / "setting.json"
    setting.write_text(json.dumps({"model": "m", "task": "t", "dataset": "d"}))
    code, out, err = shell("--sampling", "poisson", "--statement", "card", *WORDS, "--setting", str(setting))
    assert (code, err) == (0, "")
    assert out.startswith("---\ntags:")


def test_a_statement_about_the_rate_of_opacus(capsys: pytest.CaptureFixture[str]) -> None:
    """Opacus draws at 1/196 in 3,920 steps, not 256/50000 in 3,907: the statement has that run."""
    plan = ["dpsgd", "--batch", "256", "--records", "50000", "--epochs", "20", "--noise-multiplier", "0.9"]
    assert answer([*plan, "--delta", "1e-5", "--rate", "opacus", "--statement", "markdown", *WORDS]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "* 3920" in said
    assert "2.166" in said
    assert "50,000" not in said


def test_prose_has_a_rate_that_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    """LaTeX had a rate of 24 digits; Markdown keeps what was accounted exactly."""
    plan = ["dpsgd", "--batch", "512", "--records", "45000", "--epochs", "1", "--noise-multiplier", "0.9"]
    for form, shown in (
        ("latex", "rate=0.0113637) * 88} (in 6 digits)"),
        ("text", "rate=0.0113637) * 88 (in 6 digits)"),
    ):
        assert answer([*plan, "--delta", "1e-5", "--rate", "opacus", "--statement", form]) == 0
        assert shown in capsys.readouterr().out
    assert answer([*plan, "--delta", "1e-5", "--rate", "opacus", "--statement", "markdown"]) == 0
    assert "Poisson(rate=0.011363685131072998046875) * 88` with" in capsys.readouterr().out


def test_a_delta_has_one_spelling(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    """Markdown had 1e-05 in its table beside 1e-5 in its sentence, and so had check --explain."""
    _, out, _ = shell("--sampling", "shuffled", "--statement", "markdown")
    assert "| 1e-5 |" in out
    assert "1e-05" not in out
    answer(["check", "Gaussian(sigma=1)", "--epsilon", "2", "--delta", "1e-5", "--explain"])
    out = capsys.readouterr().out
    assert "(2, 1e-5)-differential privacy" in out
    assert "  --json" in out
    assert "--explain" not in out  # it was offered above itself
    assert "1e-05" not in out


def test_a_statement_names_its_accountant_and_its_caveats(shell: Shell) -> None:
    words = ("--sampling", "poisson", "--noise", "float", "--sampler", "my own loader")
    code, out, _ = shell(*words, "--statement", "text")
    assert code == 0
    assert "-differential privacy in the central model for add-remove neighbours" in out
    assert "The training satisfies (ε = 0." in out
    assert ", δ = 1e-5)-differential" in out
    assert out.splitlines()[-1].startswith("Accounted with cumulant ")
    assert out.splitlines()[-1].endswith(" * 50")
    _, out, _ = shell(*words, "--statement", "latex")
    assert "Batches: my own loader. Caveat: noise was added in floating point: the guarantee is for ideal noise." in out
    _, out, _ = shell(*words[:2], "--statement", "latex")
    assert "Batches" not in out


def test_one_way_to_form_batches_is_explained_with_its_proof_and_rate(shell: Shell) -> None:
    code, out, _ = shell("--rate", "opacus", "--explain")
    said = " ".join(out.split())
    assert code == 0
    assert "Proved " in said
    assert "independently with probability 0.03448277712" in said  # above 1 / 29 by rounding to float32
    assert "batch / records" not in said
    assert "probability batch / records" in " ".join(shell("--sampling", "poisson", "--explain")[1].split())


def test_an_entry_for_the_registry(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "deployment.json"
    file.write_text(json.dumps(DEPLOYMENT))
    code, out, _ = shell("--sampling", "poisson", "--statement", "registry", *WORDS, "--deployment", str(file))
    assert code == 0
    schema = json.loads((Path(__file__).parents[1] / "oracles" / "deployments-schema.json").read_text())
    entry = importlib.import_module("yaml").safe_load(out)
    jsonschema.validate(entry, schema)
    assert "slack" in entry["deployment"]["privacy_loss"]["privacy_parameters_details"]
    code, _, err = shell("--sampling", "poisson", "--statement", "registry", *WORDS)
    assert code == 2
    assert "--deployment FILE" in err


def test_a_slow_claim_shows_which_row_is_judged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was silent for half a minute; nothing is shown unless stderr is a terminal."""
    loop = ["dpsgd", "--batch", "64", "--records", "1800", "--epochs", "2", "--delta", "1e-5", "--claim", "0.4"]
    monkeypatch.setattr("cumulant.cli.card.PATIENCE", 1e-3)
    answer([*loop, "--noise-multiplier", "3"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    answer([*loop, "--noise-multiplier", "3.1"])
    said = capsys.readouterr().err
    assert "judging fixed-size, 1 of 5 …" in said
    assert said.endswith("\x1b[K")


def test_verdicts_and_exit_codes(shell: Shell) -> None:
    code, out, _ = shell("--claim", "0.4")
    assert code == 4  # rows differ: nobody knows yet whether the claim is false
    said = " ".join(out.split())
    headline = "Claim: ε = 0.4 at δ = 1e-5 ? depends on batches and neighbours: false for 1, open for 2, holds for 2 "
    assert said.startswith(headline)
    assert said.index("Protects one record added or removed (compare only these rows) poisson holds") < said.index(
        "Protects one record replaced by another (compare only these rows) fixed-size false"
    )
    assert "fixed-size false: at least 0.5" in said
    assert "poisson holds: ε = 0.2" in said
    assert "shuffled open: ε = " in said
    assert "any-order open: ε = " in said
    assert "Ask them ▸ How were batches formed, and who saw them?" in said
    assert said.count("1 % false alarms find at most") == 4  # a claim that is false limits no attacker
    assert "find" not in said.partition("fixed-size ")[2].partition(" shuffled ")[0]
    _, weak, _ = shell("--claim", "1000", "--noise-multiplier", "0.1", "--sampling", "any-order")
    assert "any-order holds: ε = " in " ".join(weak.split())
    assert "100 %" not in weak
    code, out, _ = shell("--claim", "0.4", "--sampling", "poisson", "--json")
    assert (code, json.loads(out)["rows"][0]["verdict"]) == (0, "holds")
    assert "run" in json.loads(out)["rows"][0]
    code, out, _ = shell("--claim", "0.4", "--sampling", "poisson")
    said = " ".join(out.split())
    assert "Run Gaussian(sigma=" in said  # what `cumulant check` and `cumulant archive` take
    assert "Protects one record added or removed poisson holds" in said
    assert "Check these ▸ each record is sampled independently, in secret" in said
    assert "Ask them ▸ Is a neighbour added or replaced?" in said
    assert "--sampling NAME" not in out
    assert shell("--claim", "1", "--sampling", "shuffled", "--quiet") == (4, "open\n", "")


SMALL = ["--batch", "10", "--records", "100", "--epochs", "2", "--noise-multiplier", "4", "--delta", "1e-5"]


def test_a_claim_is_false_or_holds_where_all_rows_agree(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code of rows that differ is that of an open claim: a script must not archive "false"."""
    monkeypatch.setenv("COLUMNS", "80")
    for claim, code, verdict, shown in (
        ("0.01", 1, "false", "✘ false for all 5 ways to form batches"),
        ("9", 0, "holds", "✔ holds for all 5 ways to form batches"),
        ("0.5", 4, "depends", "? depends on batches and neighbours: "),
    ):
        assert answer(["dpsgd", *SMALL, "--claim", claim]) == code
        said = " ".join(capsys.readouterr().out.split())
        assert shown in said
        assert "Ask them ▸ How were batches formed, and who saw them?" in said
        assert answer(["dpsgd", *SMALL, "--claim", claim, "--json"]) == code
        assert json.loads(capsys.readouterr().out)["verdict"] == verdict


def test_a_delta_that_publishes_a_record_is_warned_of(shell: Shell) -> None:
    """1e-3 is above 1 / 1797: publishing one record at random would satisfy it."""
    for words in ((), ("--claim", "3"), ("--sampling", "poisson"), ("--rate", "opacus")):
        assert "Careful ▸ delta is not below 1 / records" in " ".join(shell(*words, "--delta", "1e-3")[1].split())
        assert "not below" not in shell(*words)[1]


MNIST = ["--batch", "256", "--records", "60000", "--epochs", "30", "--delta", "1e-5"]


def test_a_loader_of_torch_does_not_get_the_verdict_of_a_secret_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret order needs 1.198 with noise 6, a known one 8.941: a claim of 3 was said to hold for everything."""
    monkeypatch.setenv("COLUMNS", "120")  # a narrow terminal folds lines
    line = ["dpsgd", *MNIST, "--noise-multiplier", "6", "--claim", "3"]
    assert answer([*line, "--quiet"]) == 4
    rows = dict(row.split(" ") for row in capsys.readouterr().out.splitlines())
    assert rows == {
        **dict.fromkeys(("fixed-size", "poisson", "balls-in-bins", "shuffled"), "holds"),
        "any-order": "open",
    }
    assert answer(line) == 4
    out = capsys.readouterr().out
    said = " ".join(out.split())
    assert "Careful ▸ if Opacus drew the batches, add --rate opacus" in said
    assert "DataLoader(shuffle=True) promises no secret order: it is any-order, not shuffled" in said
    assert answer([*line, "--sampling", "any-order", "--quiet"]) == 4
    assert capsys.readouterr().out == "open\n"
    assert answer(["dpsgd", *MNIST, "--noise-multiplier", "1.1", "--claim", "3"]) == 4
    out = capsys.readouterr().out
    assert " ".join(out.split()).count("false: at least") >= 3  # fixed-size, shuffled, and so any order
    assert "any-order false: at least 9.985, even if the order was secret" in " ".join(out.split())
    assert (
        answer(["dpsgd", *MNIST, "--noise-multiplier", "1.1", "--claim", "3", "--sampling", "any-order", "--quiet"])
        == 1
    )
    assert capsys.readouterr().out == "false\n"
    assert len(out.splitlines()) <= 12


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--statement", "text"], "give --sampling"),
        (["--statement", "poem", "--sampling", "poisson"], "choose one of text"),
        (["--claim", "3", "--statement", "text", "--sampling", "poisson"], "neither --epsilon"),
        (["--claim", "-3"], "claim"),
        (["--claim", "3", "--explain"], "cumulant check --explain"),
        (["--unit", "one image"], "give --statement"),
        (["--statement", "text", "--sampling", "poisson", "--setting", "nowhere.json"], "cannot be read"),
    ],
)
def test_what_is_refused(shell: Shell, arguments: list[str], said: str) -> None:
    code, _, err = shell(*arguments)
    assert code == 2
    assert said in err
