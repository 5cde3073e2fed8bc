"""The commands as the shell sees them: what is printed where, and the exit code."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from scipy import special

import cumulant as cm
from cumulant.accounting.choices import Method
from cumulant.bounds.table import BOUNDS
from cumulant.cli import answer as answering
from cumulant.cli import app
from cumulant.conversion.query import Query
from cumulant.errors import CertificateError
from cumulant.exact import answer as two_sided
from cumulant.exact.rounds import Rounds

PAPER = "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000"
STEP = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="0.001")

Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs a command line in this process: exit code, stdout with white space collapsed, stderr."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = app.answer(arguments)
        out, err = capsys.readouterr()
        return int(code), " ".join(out.split()), err

    return command


# ---- answers


def test_the_run_of_the_paper_in_words(shell: Shell) -> None:
    # 2.02701...: eq. (3) with Theorem 9, the value of the certified reference rounded up to four digits
    code, out, err = shell("epsilon", PAPER, "--delta", "1e-8", "--method", "paper", "--explain")
    assert (code, err) == (0, "")
    card, _, out = out.partition(" More --json ")
    assert card.startswith("ε = 2.028 at δ = 1e-8 ✔ proved Protects one record replaced by another Means an attacker ")
    assert "Careful If sigma is a noise multiplier (DP-SGD), a factor 2 is missing" in card
    order = (STEP * 600_000).guarantee(delta="1e-8", method="paper").evidence.order
    caught, right, advantage = re.findall(r"at most ([\d.]+) %.*at most ([\d.]+) %.*advantage ([\d.]+) %", out)[0]
    # the least of delta + 0.01 e^epsilon and of (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), on a fine grid
    grid = np.linspace(0, 2.5, 501)
    deltas = (STEP * 600_000).delta(grid, method="paper")
    share = 100 * np.min((np.expm1(grid) + 2 * deltas) / (np.exp(grid) + 1))
    for shown, least in (
        (caught, 100 * np.min(deltas + 0.01 * np.exp(grid))),
        (right, 50 + share / 2),
        (advantage, share),
    ):
        assert least <= float(shown) <= 1.01 * least
    assert out.startswith(
        "epsilon = 2.028 (rounded up) at delta = 1e-8, for replace-one neighbours: "
        "data sets of the same size that differ in one record. "
        "CAREFUL, FACTOR 2: Gaussian(sigma=5) has sensitivity 1 for replace-one neighbours. If its sigma is the noise "
        "multiplier of clipped gradients (DP-SGD), replacing a record moves their sum by twice the clipping norm, and this "
        'number is too small: ask about Gaussian(sigma=5, sensitivity=2, geometry="ball"), or use cumulant dpsgd. '
        f"An attacker who accepts 1 % false alarms finds at most {caught} % of the members; blind guessing finds 1 %. "
        f"Whether one record or another in its place was in the data is guessed right at most {right} % of the time "
        f"(advantage {advantage} %); a coin is right 50 %. "
        "What ran: Gaussian(sigma=5) runs 600,000 times, each time on a fresh sample drawn by "
        "WithoutReplacement(rate=0.001). "
        "Proved by Wang, Balle, Kasiviswanathan 2019, Theorem 9; "
        f"converted at order {order:g} by eq. (3) of the paper. "
        "Assumed: every sample is uniform, smaller than the data set, and shuffled unless the mechanism ignores its order; "
        "sensitivities are replace-one, so clipping to norm C counts as 2C; "
        "all parameters were fixed in advance, not chosen from earlier outputs."
    )


def test_lines_fit_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert app.answer(["epsilon", PAPER, "--delta", "1e-8"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 70


def test_a_sampled_composition_is_said_in_words(shell: Shell) -> None:
    _, out, _ = shell("epsilon", "3 * Laplace(2) @ WithoutReplacement(0.1)", "--delta", "1e-5", "--explain")
    assert "What ran: one sample on which Laplace(scale=2) runs 3 times, drawn by WithoutReplacement(rate=0.1). " in out
    _, out, _ = shell(
        "epsilon", "(PureDP(1) * 3 + Laplace(2)) @ WithoutReplacement(0.1) * 7 + PureDP(2)", "--delta", "0", "--explain"
    )
    assert (
        "What ran: one sample on which PureDP(epsilon=1) runs 3 times and Laplace(scale=2) runs once, "
        "drawn afresh 7 times by WithoutReplacement(rate=0.1); PureDP(epsilon=2) runs once. "
    ) in out
    assert "Proved by pure differential privacy (order infinity), which adds up; for the samples by Wang, Balle" in out


def test_many_terms_are_summed_up(shell: Shell) -> None:
    code, out, _ = shell("epsilon", "+".join(f"PureDP(0.0{k})" for k in range(100, 120)), "--delta", "0", "--explain")
    assert code == 0
    assert "and 12 further mechanisms" in out


@pytest.mark.parametrize(
    ("expression", "bound", "cited"),
    [
        (PAPER, "theorem9", BOUNDS["theorem9"].citation),
        (PAPER, "best", BOUNDS["gaussian-diameter"].citation),
        ("ApproximateDP(0.1, 1e-7) @ WithoutReplacement(0.1) * 3", "caps", BOUNDS["caps"].citation),
        ("Gaussian(sigma=1) * 3", "best", "the Rényi divergences of the mechanisms, which add up"),
    ],
)
def test_the_theorem_is_cited(shell: Shell, expression: str, bound: str, cited: str) -> None:
    _, out, _ = shell("epsilon", expression, "--delta", "1e-4", "--bound", bound, "--explain")
    assert f"Proved by {cited}; " in out


@pytest.mark.parametrize(
    ("expression", "delta", "reason"),
    [
        ("Gaussian(1)", "0", "delta = 0 asks for pure differential privacy, which not every mechanism in the run has"),
        ("ApproximateDP(1, 1e-6)", "9e-7", "the promises in the run may already fail with probability 1e-6"),
        ("from_masses(p=[0, 1], q=[1, 0])", "0.1", "the bound is infinite at every order"),
    ],
)
def test_an_infinite_epsilon_is_explained(shell: Shell, expression: str, delta: str, reason: str) -> None:
    code, out, err = shell("epsilon", expression, "--delta", delta)
    assert (code, err) == (1, "")
    assert out.startswith(f"ε = inf at δ = {delta} ✘ no finite epsilon is known to hold: {reason}")
    code, out, _ = shell("epsilon", expression, "--delta", delta, "--json")
    assert (code, json.loads(out)["epsilon"]) == (1, "inf")


def test_a_delta_of_one_protects_nobody(shell: Shell) -> None:
    assert "protects nobody" in shell("epsilon", "Gaussian(1)", "--delta", "1")[1]
    assert "no delta below 1 is known to hold" in shell("delta", "from_masses(p=[0, 1], q=[1, 0])", "--epsilon", "1")[1]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_relation_is_that_of_the_run(shell: Shell, relation: str) -> None:
    _, out, _ = shell("epsilon", f"Gaussian(1, relation='{relation}')", "--delta", "0.1", "--explain")
    assert f"Protects {cm.Relation(relation).protected_for(1)} Means" in out
    assert f"for {relation} neighbours: {cm.Relation(relation).meaning}" in out
    assert f"sensitivities are {relation}, so clipping to norm C counts as" in out


# ---- JSON


def test_epsilon_as_json_is_the_guarantee(shell: Shell) -> None:
    code, out, err = shell("epsilon", PAPER, "--delta", "1e-8", "--conversion", "classic", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == (STEP * 600_000).guarantee(delta="1e-8", conversion="classic").to_dict()


def test_a_proof_may_be_asked_for(shell: Shell) -> None:
    question = ["epsilon", "Laplace(scale=1) * 20", "--delta", "1e-6", "--method", "exact", "--json"]
    code, out, _ = shell(*question, "--prove")
    assert (code, json.loads(out)["rigour"]) == (0, "proved")
    assert json.loads(out)["epsilon"] == (cm.Laplace(scale=1) * 20).epsilon("1e-6", method="exact", prove=True)
    code, _, err = shell("delta", "PureDP(1)", "--epsilon", "1", "--method", "paper", "--prove")
    assert code == 2
    assert 'prove=True is for method="exact"' in " ".join(err.split())


def test_explain_says_theorem_order_arithmetic_and_rigour(shell: Shell) -> None:
    code, out, err = shell("epsilon", PAPER, "--delta", "1e-8", "--method", "paper", "--explain")
    assert (code, err) == (0, "")
    assert "by theorem9: eps'(a) <= log(1 + g^2 C(a,2) min{4(e^eps(2)-1)" in out
    assert "Conversion: classic, at order 19, by eq. (3) of the paper." in out
    assert "in balls of 128 bits" in out
    assert "Exact inputs: delta = 1/100000000; order = 19; rate = 1/1000; " in out
    assert "Rigour: proved, which means" in out


def test_explain_as_json_is_one_more_key(shell: Shell) -> None:
    _, out, _ = shell("epsilon", PAPER, "--delta", "1e-8", "--explain", "--json")
    found = (STEP * 600_000).guarantee(delta="1e-8")
    assert json.loads(out) == found.to_dict() | {"explanation": found.explain()}


@pytest.mark.parametrize("method", ["best", "rdp", "paper"])
def test_delta_as_json_is_the_guarantee_for_that_epsilon(shell: Shell, method: Method) -> None:
    code, out, err = shell("delta", PAPER, "--epsilon", "0.8", "--method", method, "--json")
    assert (code, err) == (0, "")
    found, run = json.loads(out), STEP * 600_000
    assert found == run.guarantee(epsilon="0.8", method=method).to_dict()
    assert (found["asked"], found["epsilon"], found["delta"]) == ("epsilon", 0.8, run.delta("0.8", method=method))
    assert found.keys() == run.guarantee(delta=1e-8).to_dict().keys()
    if method != "best":
        bound = {"rdp": "best", "paper": "theorem9"}[method]
        assert found["delta"] == pytest.approx(_delta_at(run, found["evidence"]["order"], bound), rel=1e-9, abs=0)


def _delta_at(run: cm.Expression, order: float, bound: str) -> float:
    """Eq. (4), or for the best bound Canonne, Kamath, Steinke, at one order, written out."""
    lam = order - 1
    correction = lam * math.log(lam / order) - math.log(order) if bound == "best" else 0.0
    return math.exp(run.cgf(lam, bound=bound) - lam * 0.8 + correction)


def test_delta_in_words(shell: Shell) -> None:
    code, out, _ = shell("delta", "Gaussian(sigma=2)", "--epsilon", "1", "--method", "paper", "--explain")
    # eq. (4): delta = exp(-(epsilon - rho)^2 / (4 rho)) with rho = 1/8: exp(-49/32) = 0.216265...
    assert code == 0
    assert out.startswith("δ = 0.2163 at ε = 1 ✔ proved Protects one record")
    assert "converted at order 4.5 by eq. (4) of the paper." in out


def test_delta_has_an_interval_and_an_explanation(shell: Shell) -> None:
    """Phi(-3/4) - e Phi(-5/4) at a shift of 1/2 and epsilon = 1."""
    truth = special.ndtr(0.25 - 2) - math.e * special.ndtr(-0.25 - 2)
    code, out, _ = shell("delta", "Gaussian(sigma=2)", "--epsilon", "1", "--explain")
    interval = re.search(
        r"The true delta lies in \[([^,]*), ([^]]*)\]\. No accountant can report less than \1 for this run\.", out
    )
    assert interval is not None
    assert out.startswith(f"δ = {interval[2]} at ε = 1 ✔ proved; no accountant can report less than {interval[1]} ")
    low, high = map(float, interval.groups())
    assert low <= truth <= high <= low * 1.001
    assert code == 0
    found = cm.Gaussian(sigma=2).guarantee(epsilon=1)
    assert f"delta = {interval[2]} (rounded up from {found.delta!r}) at epsilon = 1, for " in out
    assert all(" ".join(line.split()) in out for line in found.explain().splitlines())
    assert f"No claim below {interval[1]} is true" in out
    _, out, _ = shell("delta", "Gaussian(sigma=2)", "--epsilon", "1", "--explain", "--json")
    assert json.loads(out) == found.to_dict() | {"explanation": found.explain()}


def test_delta_asks_for_no_epsilon(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof that is printed is the one of that delta, and costs no second search."""

    for name in ("upper_end", "lower_end"):
        original = getattr(two_sided, name)

        def watched(rounds: Rounds, query: Query, *given: Any, original: Any = original) -> Any:
            assert not query.wants_epsilon, "another statement"
            return original(rounds, query, *given)

        monkeypatch.setattr(two_sided, name, watched)
    code, out, _ = shell("delta", PAPER, "--epsilon", "0.8", "--explain")
    assert code == 0
    assert re.search("(Proved|Bounded) by Theorem B", out)


def test_rdp(shell: Shell) -> None:
    code, out, _ = shell("rdp", "Gaussian(5)", "--orders", "1, 2,64.5,inf", "--json")
    assert code == 0
    assert json.loads(out) == {
        "orders": [1, 2, 64.5, "inf"],
        "values": [pytest.approx(0.02), pytest.approx(0.04), pytest.approx(1.29), "inf"],
        "bound": "best",
        "relation": "any",
        "run": "Gaussian(sigma=5)",
    }
    code, out, _ = shell("rdp", PAPER, "--orders", "2,inf", "--bound", "theorem9")
    assert code == 0
    assert "The bound on samples is Wang, Balle, Kasiviswanathan 2019, Theorem 9." in out


@pytest.mark.parametrize("scheme", ["WithoutReplacement", "Poisson"])
def test_every_line_of_all_bounds_says_what_it_is(shell: Shell, scheme: str) -> None:
    code, out, _ = shell("rdp", f"Gaussian(sigma=1) @ {scheme}(rate=0.01)", "--orders", "2", "--bound", "all")
    assert code == 0
    lines = dict(re.findall(r"│ (\S+) │ ([<>]=) │", out))
    assert list(lines) == list(BOUNDS)
    assert [name for name, side in lines.items() if side == ">="] == ["lower"]
    assert "the last line" not in out


def test_bounds_lists_the_table(shell: Shell) -> None:
    code, out, _ = shell("bounds", "--json")
    assert code == 0
    assert [row["name"] for row in json.loads(out)] == list(BOUNDS)
    assert json.loads(out)[0]["citation"] == BOUNDS[json.loads(out)[0]["name"]].citation
    code, out, _ = shell("bounds")
    assert code == 0
    assert all(name in out for name in BOUNDS)
    for row in BOUNDS.values():  # at 80 columns the table cut formulas with a sign of omission
        assert row.statement in out
    assert "…" not in out


# ---- help and version


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_shows_the_run_of_the_paper(shell: Shell, arguments: list[str]) -> None:
    code, out, err = shell(*arguments)
    assert (code, err) == (0, "")
    assert f'cumulant epsilon "{PAPER}" --delta 1e-8' in out
    assert all(command in out for command in ("epsilon", "delta", "rdp", "bounds"))


@pytest.mark.parametrize("command", ["epsilon", "delta", "rdp", "bounds", "plot"])
def test_every_command_has_examples(shell: Shell, command: str) -> None:
    code, out, _ = shell(command, "--help")
    assert code == 0
    assert f"cumulant {command} " in out.partition("Example")[2]


def test_version(shell: Shell) -> None:
    code, out, err = shell("--version")
    assert (code, err) == (0, "")
    assert out.startswith(f"cumulant {version('cumulant')}")


# ---- refusals: one sentence on stderr, nothing on stdout

NUMBER = "write it like 5, 0.001, 1e-5 or 256/60000"
USAGE = {
    ("epsilon", "Gausian(1)", "--delta", "0.1"): "unknown name 'Gausian' at position 0; did you mean 'Gaussian'?",
    ("epsilon", "Gaussian(sigma=-1)", "--delta", "0.1"): "sigma=-1 must be a number in [0, inf)",
    (
        "epsilon",
        "PureDP(1)",
        "--delta",
        "nan",
    ): f"delta='nan' must be a number in [0, 1]: 'nan' is not a number; {NUMBER}",
    (
        "epsilon",
        "PureDP(1)",
        "--delta",
        "inf",
    ): f"delta='inf' must be a number in [0, 1]: 'inf' is not a number; {NUMBER}",
    ("epsilon", "PureDP(1)", "--delta", ""): f"delta='' must be a number in [0, 1]: '' is not a number; {NUMBER}",
    ("epsilon", "PureDP(1)", "--delta", "-1"): "delta=-1 must be a number in [0, 1]; delta is a probability; about an "
    "epsilon ask run.delta(epsilon=…), or cumulant delta",
    (
        "epsilon",
        "PureDP(1)",
        "--delta",
        "1.5",
    ): "delta=1.5 must be a number in [0, 1]; delta is a probability; about an "
    "epsilon ask run.delta(epsilon=…), or cumulant delta",
    ("calibrate", "PureDP(?)", "--epsilon", "1", "--delta", "3"): "delta=3 must be a number in [0, 1]; delta is a "
    "probability; about an epsilon ask run.delta(epsilon=…), or cumulant delta",
    ("epsilon", "PureDP(1)", "--delta", "1", "--method", "x"): "method='x' is unknown; "
    "choose one of best, exact, rdp, paper, naive, strong, optimal",
    ("epsilon", "PureDP(1)", "--delta", "0.1", "--conversion", "x"): "conversion='x' is unknown; "
    "choose one of classic, cks",
    (
        "epsilon",
        "PureDP(1)",
        "--delta",
        "0.1",
        "--method",
        "paper",
        "--bound",
        "best",
    ): 'method="paper" fixes bound and conversion; use method="rdp" to choose them',
    ("epsilon", PAPER, "--delta", "0.1", "--bound", "x"): f"bound='x' is unknown; choose one of {', '.join(BOUNDS)}",
    ("rdp", "ApproximateDP(1, 0.1) @ WithoutReplacement(0.1)", "--orders", "2", "--bound", "theorem9"): "theorem9 does "
    "not apply to ApproximateDP(epsilon=1, delta=0.1): it is not proved for a mechanism that carries slack; "
    'use bound="best"',
    ("delta", "PureDP(1)", "--epsilon", "-1"): (
        "epsilon=-1 must be a number in [0, inf); guarantees are about epsilon >= 0; "
        "below it run.delta(epsilon=…) has the delta"
    ),
    ("delta", "PureDP(?)", "--epsilon", "1"): "unexpected '?' at position 7: it stands for an unknown, "
    "which only calibrate solves; write a number",
    ("rdp", "PureDP(1)", "--orders", "2,nan"): f"orders: 'nan' is not a number; {NUMBER}; "
    "separate orders by commas, like 2,3,64 or 2,inf",
    ("rdp", "PureDP(1)", "--orders", "2,,3"): f"orders: '' is not a number; {NUMBER}; "
    "separate orders by commas, like 2,3,64 or 2,inf",
    ("rdp", "PureDP(1)", "--orders", "0.5"): "order=0.5 must be at least 1; order 1 is KL and inf is pure",
}


@pytest.mark.parametrize(("arguments", "sentence"), USAGE.items(), ids=lambda value: " ".join(value)[:50])
def test_bad_input(shell: Shell, arguments: tuple[str, ...], sentence: str) -> None:
    for asked in (arguments, (*arguments, "--json")):
        code, out, err = shell(*asked)
        assert (code, out, err.splitlines()[0]) == (2, "", f"error: {sentence}")


@pytest.mark.parametrize(
    "arguments",
    [
        ("espilon",),
        ("epsilon",),
        ("epsilon", "PureDP(1)"),
        ("epsilon", "PureDP(1)", "--delta"),
        ("epsilon", "PureDP(1)", "PureDP(1)", "--delta", "0"),
        ("epsilon", "PureDP(1)", "--delta", "0", "--frobnicate"),
        ("rdp", "PureDP(1)"),
        ("--frobnicate",),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_sentence(shell: Shell, arguments: tuple[str, ...]) -> None:
    code, out, err = shell(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert re.search("; see cumulant (epsilon |rdp )?--help\n$", err)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (RuntimeError("boom\nboom"), "unexpected RuntimeError: boom boom; please report it with the command"),
        (RecursionError("deep"), "unexpected RecursionError: deep; please report it with the command"),
        (CertificateError("the ball stayed too wide"), "the ball stayed too wide"),
    ],
    ids=repr,
)
def test_other_failures_exit_1(shell: Shell, monkeypatch: pytest.MonkeyPatch, raised: Exception, sentence: str) -> None:
    def fails(text: str) -> None:
        raise raised

    monkeypatch.setattr(answering, "parse", fails)
    code, out, err = shell("epsilon", "PureDP(1)", "--delta", "0")
    assert (code, out) == (1, "")
    assert err.strip() == f"error: {sentence}"


def test_an_interrupt_exits_as_in_the_shell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(answering, "parse", interrupted)
    assert shell("epsilon", "PureDP(1)", "--delta", "0")[:2] == (130, "")


# ---- as a process


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_python_dash_m() -> None:
    done = process("-m", "cumulant", "epsilon", "Laplace(2) * 3", "--delta", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("  ε = 1.5   at δ = 0      ✔ proved")
    assert len(done.stdout.splitlines()) <= 12
    assert "\x1b" not in done.stdout
    done = process("-m", "cumulant", "rdp", "Laplace(2)", "--orders", "2,3")
    assert "\x1b" not in done.stdout
    done = process("-m", "cumulant", "epsilon", "Laplace(1e999999999)", "--delta", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: scale='1e999999999' must be a number in [0, inf): "
        "1e999999999 is out of range; exponents go from -400 to 400\n"
        "  Laplace(1e999999999)\n"
        "          ^\n"
    )


def test_a_reader_that_leaves_is_no_traceback() -> None:
    code = (
        "import os, sys; from cumulant.cli import main; "
        "r, w = os.pipe(); os.close(r); os.dup2(w, 1); sys.argv = ['cumulant', 'bounds']; main()"
    )
    done = process("-c", code)
    assert (done.returncode, done.stderr) == (1, "")


def test_importing_the_command_line_loads_no_typer() -> None:
    done = process("-c", "import sys, cumulant.cli; print({'typer', 'rich', 'click'} & set(sys.modules))")
    assert done.stdout == "set()\n"
