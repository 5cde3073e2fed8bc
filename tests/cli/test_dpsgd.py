"""`cumulant dpsgd`: every way to form batches, the search for noise, and the factor 2."""

import json
import shlex
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.accounting.numbers import rounded_up
from cumulant.cli.app import answer
from cumulant.training.sgd import CORRELATED, SAMPLINGS

DIGITS = ["--batch", "64", "--records", "1797", "--delta", "1e-5"]


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = answer(list(words))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_all_samplings_side_by_side(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("dpsgd", *DIGITS, "--epochs", "3", "--noise-multiplier", "4")
    code, out, _ = asked(capsys, *words)
    assert code == 0
    assert out.startswith("  ε = 0.")
    assert len(out.splitlines()) <= 13
    assert "More " in out
    assert "if Opacus got the loader, it is Poisson: add --rate opacus" in out
    for name in ("fixed-size", "poisson", "balls-in-bins", "shuffled"):
        (row,) = [line for line in out.splitlines() if line.startswith(f"  {name}  ")]
        assert row.count("ε = ") == 1
    code, out, _ = asked(capsys, *words, "--explain")
    for said in ("The factor 2", "replace-one", "add-remove", "What each assumes of the loop"):
        assert said in out
    assert "--explain" not in out  # it is there already
    code, out, _ = asked(capsys, *words, "--json", "--per-epoch")
    rows = {row["sampling"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    assert rows["fixed-size"]["epsilon"] == cm.NoisySGD(64, 1797, 4, 3).epsilon(1e-5)
    assert rows["fixed-size"]["epsilon_lower"] <= rows["fixed-size"]["epsilon"]
    assert rows["shuffled"]["epsilon_lower"] < rows["shuffled"]["epsilon"]
    assert rows["shuffled"]["amplified"] is True
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
    sampled = "@ WithoutReplacement(sample=256, population=60000) * 10"
    _, out, _ = asked(capsys, "epsilon", f"Gaussian(sigma=1.1) {sampled}", "--delta", "1e-5", *explain)
    first = " ".join(out.split())[:900]
    assert "Careful If sigma is a noise multiplier (DP-SGD), a factor 2 is missing" in first
    assert 'Gaussian(sigma=1.1, sensitivity=2, geometry="ball")' in first
    for honest in (
        f'Gaussian(sigma=1.1, sensitivity=2, geometry="ball") {sampled}',
        "Gaussian(sigma=1.1) @ Poisson(rate=0.01) * 100",
        "Gaussian(sigma=1.1)",
        f"Laplace(scale=2) {sampled}",
    ):
        _, out, _ = asked(capsys, "epsilon", honest, "--delta", "1e-5", *explain)
        assert "actor 2" not in out
        assert "FACTOR 2" not in out


# ---- one epsilon for one run

PLAN = ("--batch", "256", "--records", "60000", "--epochs", "5", "--delta", "1e-5")


@pytest.mark.parametrize("sampling", ["fixed-size", "poisson", "balls-in-bins", "shuffled"])
def test_one_run_has_one_epsilon(sampling: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Table, --per-epoch, --json and --quiet of dpsgd, and `cumulant epsilon`; the last epoch said 5.135 below 4.711."""
    words = ("dpsgd", *PLAN, "--noise-multiplier", "1.1", "--sampling", sampling)
    _, out, _ = asked(capsys, *words, "--json", "--per-epoch")
    (row,) = json.loads(out)["rows"]
    assert row["per_epoch"][-1]["epsilon"] == row["epsilon"]
    _, out, _ = asked(capsys, *words, "--per-epoch")
    shown = rounded_up(row["epsilon"])
    assert out.startswith(f"  ε = {shown}   at δ = 1e-5")
    assert out.rstrip().endswith(f"epsilon {shown}")
    _, quiet, _ = asked(capsys, *words, "--quiet")
    _, alone, _ = asked(capsys, "epsilon", row["run"], "--delta", "1e-5", "--quiet")
    assert quiet == alone
    assert len(quiet.strip().replace(".", "").lstrip("0")) >= 9


def test_random_allocation_is_led_to_balls_in_bins(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("dpsgd", *DIGITS, "--epochs", "3", "--noise-multiplier", "4", "--sampling")
    code, out, err = asked(capsys, *words, "random-allocation")
    assert (code, out) == (2, "")
    assert "(balls-in-bins is random allocation with one step in each pass)" in err
    code, out, _ = asked(capsys, *words, "balls-in-bins")
    assert code == 0
    assert "@ RandomAllocation(steps=28) * 3" in " ".join(out.split())  # with the default of one pick


def test_epochs_of_all_ways_are_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    """There were five lists below each other, in another order than the rows above them."""
    words = (
        "dpsgd",
        "--batch",
        "64",
        "--records",
        "1797",
        "--delta",
        "1e-5",
        "--epochs",
        "3",
        "--noise-multiplier",
        "1",
    )
    _, out, _ = asked(capsys, *words, "--json", "--per-epoch")
    spent = {
        row["sampling"]: [rounded_up(each["epsilon"]) for each in row["per_epoch"]] for row in json.loads(out)["rows"]
    }
    _, out, _ = asked(capsys, *words, "--per-epoch")
    title, head, *rows = out.splitlines()[-5:]
    assert title == "epsilon after each epoch (rounded up):"
    assert head.split() == ["epoch", "poisson", "balls-in-bins", "fixed-size", "shuffled;", "any-order"]
    shown = ("poisson", "balls-in-bins", "fixed-size", "any-order")
    for epoch, row in enumerate(rows):
        assert row.split() == [str(epoch + 1), *(spent[name][epoch] for name in shown)]
    assert spent["shuffled"] == spent["any-order"]
    for other in (("--statement", "text", "--sampling", "poisson"), ("--claim", "1")):
        code, out, err = asked(capsys, *words, "--per-epoch", *other)
        assert (code, out) == (2, "")
        assert f"--per-epoch and {other[0]} print different things; give one of them" in err


def test_steps_are_those_of_each_way(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One number of steps stood beside rows of 7032, 7020 and 7050; passes that keep a short batch lost it."""
    monkeypatch.setenv("COLUMNS", "120")
    loop = (
        "dpsgd",
        "--batch",
        "256",
        "--records",
        "60000",
        "--epochs",
        "3",
        "--noise-multiplier",
        "4",
        "--delta",
        "1e-5",
    )
    for bands, ways in (([], SAMPLINGS), (["--noise-bands", "1,0.5"], CORRELATED)):
        _, out, _ = asked(capsys, *loop, *bands, "--explain")
        assert "702 to 705 steps with batches of 256 of 60,000" in out
        steps_of = ("704", "704", "702", "705", "705") if not bands else ("702", "704", "705", "705")
        for name, steps in zip(ways, steps_of, strict=True):
            (line,) = [each for each in out.splitlines() if each.startswith(f"{name}  ") and "@" in each]
            assert f"  {steps}  " in line
    _, out, _ = asked(capsys, *loop, "--per-epoch", "--sampling", "any-order")
    assert [line.split()[3] for line in out.splitlines()[-3:]] == ["235", "470", "705"]


@pytest.mark.parametrize("sampling", ["poisson", "shuffled"])
def test_dpsgd_and_calibrate_find_the_same_noise(sampling: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("dpsgd", *PLAN, "--epsilon", "3", "--sampling", sampling)
    _, out, _ = asked(capsys, *words, "--json")
    (row,) = json.loads(out)["rows"]
    _, quiet, _ = asked(capsys, *words, "--quiet")
    run = {
        "poisson": "Gaussian(noise_multiplier=?, relation='add-remove') @ Poisson(rate=256/60000) * 1172",
        "shuffled": "Gaussian(noise_multiplier=?, relation='replace-one') @ ShuffledBatches(batch=256, records=60000) * 5",
    }
    _, found, _ = asked(capsys, "calibrate", run[sampling], "--epsilon", "3", "--delta", "1e-5", "--quiet")
    assert found == quiet
    assert float(found) == row["noise_multiplier"]


def test_quiet_has_ten_digits_in_every_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = "Gaussian(sigma=1.1) @ Poisson(rate=1%) * 100"
    _, expected, _ = asked(capsys, "epsilon", run, "--delta", "1e-5", "--quiet")
    assert len(expected.strip().replace(".", "").lstrip("0")) == 10
    _, swept, _ = asked(capsys, "sweep", run.replace("100", "{k}"), "--set", "k=100", "--delta", "1e-5", "--quiet")
    assert swept == expected
    folder = str(tmp_path / "release")
    _, stored, _ = asked(capsys, "archive", run, "--delta", "1e-5", "--out", folder, "--no-plot", "--quiet")
    assert stored == expected


# ---- sentences that misled


def test_the_truth_0_is_said_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    """It was "[0, 0]: a smaller claim than its lower end is false for any data sets"."""
    for words in (("epsilon", "Gaussian(sigma=1e6)", "--delta", "0.1"), ("delta", "PureDP(1)", "--epsilon", "2")):
        for more in ((), ("--explain",)):
            _, out, _ = asked(capsys, *words, *more)
            told = " ".join(out.split())
            assert f"the true {words[0]} is 0" in told
            assert "[0, 0]" not in told
            assert "any data sets" not in told
            assert "below 0" not in told


def test_pure_privacy_is_not_said_to_come_from_divergences(capsys: pytest.CaptureFixture[str]) -> None:
    """ "known by its curve only, so the answer comes from Renyi divergences" stood below "Proved by pure …"."""
    run = "PureDP(1) @ Poisson(rate=0.5) @ Group(size=2)"
    found = cm.parse(run).guarantee(delta="1e-12")
    assert found.evidence.order == float("inf")
    _, out, _ = asked(capsys, "epsilon", run, "--delta", "1e-12", "--explain")
    told = " ".join(out.split())
    assert "pure differential privacy" in told
    assert "curve only" not in told
    assert found.note == ""


def test_lemma_3_is_not_cited_for_random_allocation(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = asked(capsys, "epsilon", "PureDP(0.5) @ RandomAllocation(steps=3)", "--delta", "0", "--explain")
    assert "Lemma 3" not in out


def test_the_help_names_every_sampling(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["dpsgd", "--help"]) == 0
    assert ", ".join(SAMPLINGS) in " ".join(capsys.readouterr().out.split())


# ---- rates, and histories of Opacus


def test_a_rate_in_place_of_batch_and_records(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("dpsgd", "--rate", "1%", "--steps", "50", "--noise-multiplier", "1.1", "--delta", "1e-5", "--json")
    _, out, _ = asked(capsys, *words)
    (row,) = json.loads(out)["rows"]
    assert row["run"] == 'Gaussian(sigma=1.1, relation="add-remove") @ Poisson(rate=0.01) * 50'


def test_the_rate_of_stock_opacus(capsys: pytest.CaptureFixture[str]) -> None:
    """A loader of ceil(1797 / 64) = 29 batches; torch.rand < float32(1/29) has the probability k / 2^24, rounded up."""
    words = ("dpsgd", *DIGITS, "--epochs", "2", "--noise-multiplier", "4", "--rate", "opacus", "--json")
    _, out, _ = asked(capsys, *words)
    (row,) = json.loads(out)["rows"]
    assert row["steps"] == 58
    poisson = cm.parse(row["run"])
    assert poisson == cm.parse(
        f'Gaussian(sigma=4, relation="add-remove") @ Poisson(rate="{-(-(2**24) // 29)}/{2**24}") * 58'
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--rate", "1%", "--steps", "5", "--noise-multiplier", "1", *DIGITS],
            "takes the place of --batch and --records",
        ),
        (
            ["--rate", "opacus", "--steps", "5", "--noise-multiplier", "1", "--delta", "1e-5"],
            "give --batch and --records",
        ),
        (["--rate", "0", "--steps", "5", "--noise-multiplier", "1", "--delta", "1e-5"], "draws no record"),
        (
            ["--rate", "1%", "--steps", "5", "--noise-multiplier", "1", "--delta", "1e-5", "--sampling", "shuffled"],
            "--rate is for Poisson samples; leave --rate away for shuffled",
        ),
        (
            ["--from-opacus", "state.json", "--steps", "5", "--delta", "1e-5"],
            "beside it go --delta, --claim, and --statement",
        ),
        (["--from-opacus", "nowhere.json", "--delta", "1e-5"], "cannot be read"),
    ],
)
def test_what_rates_and_histories_refuse(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = asked(capsys, "dpsgd", *words)
    assert (code, out) == (2, "")
    assert said in err


def test_a_history_of_opacus(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"mechanism": "prv", "history": [[2.0, 0.125, 58], [1.5, 0.0625, 3]]}))
    words = ("dpsgd", "--from-opacus", str(file), "--delta", "1e-5")
    code, out, _ = asked(capsys, *words)
    assert code == 0
    run = cm.parse(
        'Gaussian(sigma=2, relation="add-remove") @ Poisson(rate=0.125) * 58'
        ' + Gaussian(sigma=1.5, relation="add-remove") @ Poisson(rate=0.0625) * 3'
    )
    assert out.startswith(f"  ε = {rounded_up(run.epsilon(1e-5))}   at δ = 1e-5")
    assert "with poisson_sampling=False, something else ran" in " ".join(out.split())
    code, out, err = asked(capsys, *words, "--statement", "latex", "--unit", "one image")
    assert code == 0
    assert "with one image as the unit of privacy" in out
    assert "Caveat: the history says what was accounted;" in out
    assert err.startswith("TODO: only you know released")
    for claim, expected, verdict in (
        ("9", 0, "✔ holds for poisson"),
        ("0.01", 1, "✘ false for poisson, if one record is added or removed"),
    ):
        code, out, _ = asked(capsys, *words, "--claim", claim)
        assert code == expected
        assert verdict in out
        assert "Careful ▸ the history says what was accounted;" in " ".join(out.split())
    assert asked(capsys, *words, "--unit", "one image")[0] == 2
    file.write_text(json.dumps({"history": [[2.0, 0.125, 58]]}))
    code, _, err = asked(capsys, *words)
    assert code == 2
    assert "'mechanism' is missing" in err
    file.write_text(json.dumps({"mechanism": "prv", "history": [[2.0, 0.125]]}))
    code, _, err = asked(capsys, *words)
    assert code == 2
    assert "a step is [noise multiplier, rate, steps]" in err


def test_a_secret_order_is_not_taken_for_granted(capsys: pytest.CaptureFixture[str]) -> None:
    """Noise for shuffled batches needs a secret permutation; a card says what DataLoader(shuffle=True) has with it."""
    words = (
        "dpsgd",
        "--batch",
        "10",
        "--records",
        "10000",
        "--epochs",
        "1",
        "--noise-multiplier",
        "4",
        "--delta",
        "1e-6",
    )
    plain = cm.Gaussian(noise_multiplier=4, relation="replace-one").epsilon("1e-6")
    assert 2.254 < plain < 2.255
    for more in ([], ["--sampling", "shuffled"]):
        code, out, _ = asked(capsys, *words, *more)
        assert code == 0
        assert "ε = 0.2588" in out
        assert "DataLoader(shuffle=True)" in out
        assert "ε = 2.255" in out
    secret = ("--noise-multiplier", "1", "--delta", "1e-6", "--sampling", "shuffled")
    code, out, _ = asked(capsys, *words[:-4], *secret)
    assert code == 0
    assert "DataLoader" not in out


def test_numbers_for_different_neighbours_stand_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The headline was one range from a Poisson epsilon to a replace-one epsilon, which are different promises."""
    monkeypatch.setenv("COLUMNS", "80")
    words = ("dpsgd", *DIGITS, "--epochs", "3", "--noise-multiplier", "4")
    _, out, _ = asked(capsys, *words, "--json")
    rows = {row["sampling"]: rounded_up(row["epsilon"]) for row in json.loads(out)["rows"]}
    assert list(rows) == list(SAMPLINGS)  # with a row for a loader in any order
    _, out, _ = asked(capsys, *words)
    first = out.splitlines()[0]
    added = sorted((rows["poisson"], rows["balls-in-bins"]), key=float)
    replaced = sorted((rows[name] for name in ("fixed-size", "shuffled", "any-order")), key=float)
    assert f"ε = {' to '.join(added)} (added or removed), {replaced[0]} to {replaced[-1]} (replaced) " in first
    lines = [line.split() for line in out.splitlines()]
    labels = [line[0] for line in lines if line and line[0] in ("Protects", *SAMPLINGS)]
    assert labels == ["Protects", "poisson", "balls-in-bins", "Protects", "fixed-size", "shuffled", "any-order"]
    assert out.count("(compare only these rows)") == 2


CIFAR = ("dpsgd", "--batch", "512", "--records", "45000", "--noise-multiplier", "0.9", "--delta", "1e-5")


def test_a_loader_in_any_order_gets_plain_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two epochs need 8.88 even in a secret order; 176 steps may be three passes of 87."""
    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = asked(capsys, *CIFAR, "--epochs", "2", "--sampling", "any-order")
    assert "proved; at least 8.88, even if the order was secret" in out
    assert "passes" not in out
    assert "if Opacus' make_private got this loader, it replaced it: your run is Poisson (--rate opacus)" in out
    _, out, _ = asked(capsys, *CIFAR, "--steps", "176", "--sampling", "any-order")
    said = "176 steps count as 3 passes, as the last batch may be dropped; if all batches ran, say --epochs 2"
    assert said in " ".join(out.split())
    assert "no lower end is known" in out  # the last pass may have been broken off
    _, out, _ = asked(capsys, *CIFAR, "--epochs", "40")
    assert "any-order      ε = 157.9, no useful guarantee: DataLoader(shuffle=True)" in out
    assert len(out.splitlines()) <= 13
    assert "More " in out


def test_poisson_samples_with_one_record_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside replace-one rows the add-remove number of Poisson samples cannot be compared."""
    _, out, _ = asked(capsys, *CIFAR, "--epochs", "40", "--sampling", "poisson", "--explain")
    run = cm.Gaussian(noise_multiplier="0.9", relation="replace-one") @ cm.Poisson(
        rate="512/45000", relation="replace-one"
    )
    replaced = rounded_up((run * 3516).epsilon(delta="1e-5"))
    assert f"the same samples have epsilon {replaced} if one record is replaced by another" in out


def test_the_noise_of_different_neighbours_stands_apart(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = asked(capsys, *BANDED[:-4], "--epsilon", "2", "--delta", "1e-6", "--noise-bands", "1,0.5")
    said = " ".join(out.split())
    assert said.startswith("noise multiplier = ")
    assert "(added or removed), " in said
    assert "(made empty) meets ε ≤ 2 at δ = 1e-6 ? depends on how batches are formed" in said


@pytest.mark.parametrize("sampling", ["shuffled", "any-order"])
def test_an_explanation_has_the_lower_end_of_its_headline(sampling: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The headline had a lower end, and the first lines below it said that none is known."""
    _, out, _ = asked(capsys, *CIFAR, "--epochs", "2", "--sampling", sampling, "--explain")
    said = " ".join(out.split())
    assert "8.88" in out.splitlines()[0]
    assert "No lower end is known" not in said
    assert "No accountant can report less than 8.88" in said or "At least 8.88, even if the order was secret." in said
    _, out, _ = asked(capsys, *CIFAR, "--steps", "176", "--sampling", sampling, "--explain")
    assert "No lower end is known: the run may be more private than this." in " ".join(out.split())


def test_a_number_that_limits_nobody_is_not_called_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """ "Finds at most 100 % of members" reads as a limit and is none."""
    weak = ("--batch", "64", "--records", "1797", "--delta", "1e-5", "--epochs", "9", "--noise-multiplier", "0.3")
    for more in ((), ("--explain",)):
        _, out, _ = asked(capsys, "dpsgd", *weak, "--sampling", "any-order", *more)
        said = " ".join(out.split())
        assert "100 % of" not in said
        assert "an attacker with 1 % false alarms may find all members" in said


BANDED = ["dpsgd", "--batch", "60", "--records", "600", "--epochs", "2", "--noise-multiplier", "4", "--delta", "1e-6"]


def test_a_claim_about_correlated_noise_is_judged_with_its_bands(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*BANDED, "--noise-bands", "1,0.5", "--claim", "1.7")
    code, out, _ = asked(capsys, *words, "--quiet", "--sampling", "fixed-order")
    # squared sensitivity 2 (1 + 1/4) = 2.5 over sigma 4: epsilon 1.7423; independent noise of 2 passes needs 1.5491
    assert (code, out) == (1, "false\n")
    code, out, _ = asked(capsys, *words, "--sampling", "fixed-order", "--json")
    (row,) = json.loads(out)["rows"]
    assert row["run"].startswith("MatrixMechanism(bands=[1, 0.5]")
    assert row["mu"] == pytest.approx(2.5**0.5 / 4)
    code, out, _ = asked(capsys, *BANDED, "--noise-bands", "1,0.5", "--sampling", "fixed-order", "--statement", "latex")
    assert code == 0
    assert "MatrixMechanism(bands=[1, 0.5]" in out
    code, _, err = asked(capsys, *BANDED, "--noise-bands", "1,0.5", "--statement", "latex")
    assert code == 2
    assert "cyclic-poisson, fixed-order" in err


def test_the_norm_of_correlated_noise_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, *BANDED, "--noise-bands", "1,0.5", "--sampling", "fixed-order")
    assert code == 0
    assert "JAX Privacy states it over the column norm: divide by 1.118" in " ".join(out.split())  # sqrt(5/4), down
    _, out, _ = asked(capsys, *BANDED, "--sampling", "poisson")
    assert "column norm" not in out


def test_a_folder_is_written_by_another_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`--out` was an unknown option; the error has the command, and that command works."""
    loop = [
        "dpsgd",
        "--batch",
        "64",
        "--records",
        "1797",
        "--steps",
        "280",
        "--delta",
        "1e-5",
        "--out",
        str(tmp_path / "a"),
    ]
    noisy = [*loop, "--noise-multiplier", "4", "--claim", "1"]
    assert answer(noisy) == 2
    assert "--out keeps one run; add --sampling NAME" in capsys.readouterr().err
    assert answer([*loop, "--epsilon", "1", "--sampling", "poisson"]) == 2
    assert "give --noise-multiplier in place of --epsilon" in capsys.readouterr().err
    assert answer([*noisy, "--sampling", "poisson", "--unit", "image"]) == 2
    command = capsys.readouterr().err.strip().partition("another command: ")[2]
    assert shlex.split(command)[0] == "cumulant"
    assert answer([*shlex.split(command)[1:], "--no-plot"]) == 0
    assert "one record is one image" in capsys.readouterr().out
    assert (
        answer(
            [
                "fedavg",
                "--clients",
                "1000",
                "--clients-per-round",
                "20",
                "--rounds",
                "50",
                "--noise-multiplier",
                "1",
                "--delta",
                "1e-5",
                "--sampling",
                "poisson",
                "--out",
                "b",
            ]
        )
        == 2
    )
    assert capsys.readouterr().err.strip().endswith("--delta 1e-5 --unit client --out b")


def test_a_statement_of_opacus_says_which_rate_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    loop = [*DIGITS, "--epochs", "1", "--noise-multiplier", "4"]
    assert answer(["dpsgd", *loop, "--rate", "opacus", "--statement", "text"]) == 0
    said = capsys.readouterr().out
    assert "Caveat: the rate is that of Opacus, 1 / 29 as its loader has 29 batches, not 64 / 1797;" in said
    assert answer(["dpsgd", *loop, "--sampling", "poisson", "--statement", "text"]) == 0
    assert "Opacus" not in capsys.readouterr().out
