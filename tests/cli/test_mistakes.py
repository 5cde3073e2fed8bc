"""What the shell says to sixty typical mistakes: one table. The first line says what is wrong and what to do about it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cumulant.cli import app
from cumulant.cli.failures import point_at

# what is typed, what is said in the first line, and the column of the caret (None: no place in an expression)
MISTAKES: list[tuple[str, str, int | None]] = [
    # names
    ("epsilon 'Gausian(sigma=1)' --delta 1e-6", "did you mean 'Gaussian'?", 0),
    ("epsilon 'gaussian(sigma=1)' --delta 1e-6", "did you mean 'Gaussian'?", 0),
    ("epsilon 'GAUSSIAN(sigma=1)' --delta 1e-6", "did you mean 'Gaussian'?", 0),
    ("epsilon 'Normal(sigma=1)' --delta 1e-6", "did you mean 'Gaussian'?", 0),
    ("epsilon 'Laplacian(2)' --delta 1e-6", "did you mean 'Laplace'?", 0),
    ("epsilon 'zCDP(rho=1)' --delta 1e-6", "did you mean 'ZeroConcentrated'?", 0),
    ("epsilon 'RandomisedResponse(p=0.6)' --delta 1e-6", "did you mean 'RandomizedResponse'?", 0),
    ("epsilon 'Gaussian(1) @ Subsample(0.1)' --delta 1e-6", "did you mean 'WithoutReplacement'?", 14),
    ("epsilon 'Gaussian(1) @ Poison(0.1)' --delta 1e-6", "did you mean 'Poisson'?", 14),
    ("epsilon 'Xyzzy(1)' --delta 1e-6", "known are ", 0),
    # parameters
    ("epsilon 'Gaussian(std=1)' --delta 1e-6", "did you mean 'sigma'?", 9),
    ("epsilon 'Gaussian(sgma=1)' --delta 1e-6", "did you mean 'sigma'?", 9),
    ("epsilon 'Gaussian(z=1)' --delta 1e-6", "did you mean 'noise_multiplier'?", 9),
    ("epsilon 'Gaussian(noise_multiplier=1, max_grad_norm=1)' --delta 1e-6", "did you mean 'clip'?", 29),
    ("epsilon 'PureDP(eps=1)' --delta 1e-6", "did you mean 'epsilon'?", 7),
    ("epsilon 'Gaussian(1) @ Poisson(q=0.1)' --delta 1e-6", "did you mean 'rate'?", 22),
    ("epsilon 'Gaussian(1) @ WithoutReplacement(batch_size=9)' --delta 1e-6", "did you mean 'sample'?", 33),
    ("epsilon 'Gaussian()' --delta 1e-6", "Gaussian needs sigma=…, or noise_multiplier=…", 0),
    ("epsilon 'Laplace()' --delta 1e-6", "needs scale; write Laplace(scale=...)", 0),
    ("epsilon 'Gaussian(noise_multiplier=1.1)' --delta 1e-6", 'add relation="add-remove" (Poisson samples, Opacus', 9),
    ("epsilon 'Gaussian(1.1, clip=1)' --delta 1e-6", "clip='1' needs a noise_multiplier=… beside it", 14),
    ("epsilon 'Gaussian(1, noise_multiplier=2)' --delta 1e-6", "leave those out", None),
    ("epsilon 'Gaussian(sigma=1, sigma=2)' --delta 1e-6", "is given twice", 18),
    ("epsilon 'Gaussian(sigma=1, 2)' --delta 1e-6", "write name=value", 18),
    ("epsilon 'PureDP(1, 2)' --delta 1e-6", "is one too many", 10),
    ("epsilon 'Gaussian(sigma: 1)' --delta 1e-6", "a parameter is given by =", 14),
    ("epsilon 'Gaussian(1, relation=add-remove)' --delta 1e-6", "a word is quoted", 21),
    (
        "epsilon 'Gaussian(1, relation=\"add\")' --delta 1e-6",
        "choose 'replace-one', 'add-remove' or 'replace-special'",
        12,
    ),
    # numbers
    ("epsilon 'Gaussian(sigma=-1)' --delta 1e-6", "sigma=-1 must be a number in [0, inf)", 9),
    ("epsilon 'Gaussian(sigma=-1)' --delta 1e-6", "sigma=-1 must be a number in [0, inf)", 9),
    ("epsilon 'PureDP(10^-5)' --delta 1e-6", "there are no powers; write 1e-5", 9),
    ("epsilon 'PureDP(−5)' --delta 1e-6", "this is a typographic minus sign", 7),
    ("epsilon 'Gaussian(1) @ Poisson(rate=5)' --delta 1e-6", "rate=5 must be a number in [0, 1]", 22),
    ("epsilon 'Gaussian(1) @ Poisson(rate=500%)' --delta 1e-6", "rate=5 must be a number in [0, 1]", 22),
    ("epsilon 'Gaussian(1) @ WithoutReplacement(sample=9, population=3)' --delta 1e-6", "at most population=3", 33),
    ("epsilon 'RandomizedResponse(p=0.3)' --delta 1e-6", "p is the probability of the true answer", 19),
    # signs
    ("epsilon 'Gaussian(1) × 3' --delta 1e-6", "repetitions are written with *", 12),
    ("epsilon 'Gaussian(1)^3' --delta 1e-6", "for a thousand repetitions", 11),
    ("epsilon 'Gaussian(1)**3' --delta 1e-6", "there are no powers", 12),
    ("epsilon 'Gaussian(1) * 1,000' --delta 1e-6", "write 600000 or 600_000", 15),
    ("epsilon 'Gaussian(1) * 1.5' --delta 1e-6", "a whole number >= 1", 14),
    ("epsilon 'Gaussian(1) * 0' --delta 1e-6", "times=0 must be an integer", 14),
    ("epsilon 'Gaussian(1) * Gaussian(1)' --delta 1e-6", "after '*' comes a number of repetitions", 14),
    ("epsilon 'Gaussian(1) @ Gaussian(1)' --delta 1e-6", "after '@' comes a sampling scheme", 14),
    ("epsilon 'Poisson(0.1) @ Gaussian(1)' --delta 1e-6", "write mechanism @ Poisson(...)", 0),
    ("epsilon 'Gaussian(1) & Laplace(1)' --delta 1e-6", "what ran is joined by +", 12),
    ("epsilon 'Gaussian(1' --delta 1e-6", "after a parameter ')' or ',' is expected", 10),
    ("epsilon 'cm.Gaussian(1)' --delta 1e-6", "names have no parts", 2),
    ("epsilon '' --delta 1e-6", "the expression is empty", None),
    ("epsilon 'PureDP(?)' --delta 1e-6", "which only calibrate solves", 7),
    ("epsilon 'Gaussian(1, relation=“add-remove”)' --delta 1e-6", "these are typographic quotes", 21),
    # other mechanisms and schemes
    ("epsilon 'Laplace(epsilon=0.5)' --delta 0", "Laplace(scale=S/epsilon) is epsilon-DP", 8),
    ("epsilon 'Gaussian(sigma=1, delta=1e-5)' --delta 0", "a delta is asked at", 18),
    ("epsilon 'Gaussian(sigma=1, steps=100)' --delta 1e-5", "repetitions are written with *", 18),
    ("epsilon 'BoundedLaplace(scale=1)' --delta 1e-6", "write BoundedLaplace(scale=..., bound=...)", 0),
    ("epsilon 'BoundedLaplace(scale=1, bound=-2)' --delta 1e-6", "bound=-2 must be a number", 24),
    ("epsilon 'Skellam(sigma=3)' --delta 1e-6", "known are variance, sensitivity", 8),
    ("epsilon 'Skellam(variance=0)' --delta 1e-6", "variance=0 must be a number in (0, inf)", 8),
    ("epsilon 'Gaussian(1) @ RandomAllocation(100.5)' --delta 1e-6", "steps=100.5 must be an integer", 31),
    ("epsilon 'Gaussian(1) @ RandomAllocation(rate=0.1)' --delta 1e-6", "known are steps, picks", 31),
    ("epsilon 'Gaussian(1) @ Shuffled(0.1)' --delta 1e-6", "ShuffledBatches(batches=", 14),
    ("epsilon 'Gaussian(1) @ Group(size=0)' --delta 1e-6", "size=0 must be an integer", 20),
    ("epsilon 'KaryResponse(values=4)' --delta 0", "KaryResponse", None),
    ("epsilon 'from_masses(p=[1/2, 1/2], q=[1/2, 1/3])' --delta 0", "the masses of q must sum to 1", 0),
    ("epsilon 'Gaussian(1) @ Shuffle(rate=0.01)' --delta 1e-5", "known are reports", 22),
    ("epsilon 'PureDP(1) @ Shuffle(reports=1.5)' --delta 1e-5", "reports=1.5 must be an integer", 20),
    (
        "epsilon 'ZeroConcentrated(1) @ Shuffle(reports=100)' --delta 1e-5",
        "nothing is known of shuffled reports of ZeroConcentrated",
        None,
    ),
    ("epsilon 'Gaussian(1) @ WithReplacement(rate=0.1)' --delta 1e-5", "known are sample, population", 30),
    ("epsilon 'Gaussian(1) @ WithReplacement(sample=5)' --delta 1e-5", "(sample=..., population=...)", 14),
    ("epsilon 'Gaussian(1) @ TruncatedPoisson(rate=0.1)' --delta 1e-5", "needs limit and population", 14),
    ("epsilon 'GaussianMixture(sigma=1)' --delta 1e-5", "(sigma=..., shifts=..., weights=...)", 0),
    ("epsilon 'GaussianMixture(1, [0, 1], [1/2, 1/3])' --delta 1e-5", "must sum to 1, not 5/6", 27),
    # commands and options
    ("espilon 'PureDP(1)' --delta 1e-6", "did you mean cumulant epsilon?", None),
    ("'PureDP(1)' --delta 1e-6", 'did you mean cumulant epsilon "PureDP(1)" --delta 1e-6?', None),
    ("epsilon 'PureDP(1)'", "epsilon is found at a given delta, such as --delta 1e-6", None),
    ("epsilon 'PureDP(1)' --epsilon 1", "epsilon is what `cumulant epsilon` finds; give --delta", None),
    ("delta 'PureDP(1)' --delta 1e-6", "delta is what `cumulant delta` finds; give --epsilon", None),
    ("epsilon PureDP(1) + PureDP(1) --delta 0", "an expression is one argument, so put it in quotes", None),
    ("epsilon 'PureDP(1)' --delta 3", "delta is a probability; about an epsilon ask", None),
    ("epsilon 'PureDP(1)' --delta 10^-6", "powers of ten are written with e", None),
    ("epsilon 'PureDP(1)' --delta 0,001", "a decimal has a point", None),
    ("check 'PureDP(1)' --epsilon 1e-6 --delta 4", "delta is a probability", None),
    ("epsilon 'PureDP(1)' --delta 0 --method exat", "choose one of best, exact", None),
    ("rdp 'PureDP(1)' --orders 2;3", "separate orders by commas", None),
    ("rdp 'PureDP(1)' --orders 2 --bound theorem_9", "did you mean 'theorem9'?", None),
    ("epsilon 'PureDP(1)' --delta 0 --eps 3", "epsilon is what `cumulant epsilon` finds; give --delta", None),
    ("epsilon 'PureDP(1)' -d 1e-6", "options are written out, such as --delta 1e-6", None),
    ("dpsgd --batch 9 --records 60k --steps 1 --noise-multiplier 1 --delta 1e-5", "must be a whole number", None),
    (
        "dpsgd --batch 9 --records 99 --steps 1 --epsilon 1 --delta 1e-5 --sampling poison",
        "did you mean 'poisson'?",
        None,
    ),
    ("sweep 'PureDP({e})' --set e=1..4 --delta 0", "write every value, such as --set e=1,2,3,4", None),
    ("sweep 'PureDP({e})' --set e=1,2 --delta 0 --plot a.gif", "--plot a.gif must end in", None),
    ("calibrate 'Gaussian(1)' --epsilon 1 --delta 1e-6", "write ? for the number that is looked for", None),
]


@pytest.mark.parametrize(("line", "said", "column"), MISTAKES, ids=[line for line, _, _ in MISTAKES])
def test_mistakes(capsys: pytest.CaptureFixture[str], line: str, said: str, column: int | None) -> None:
    arguments = shlex.split(line)
    assert app.answer(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, *shown = err.splitlines()
    assert first.startswith("error: ")
    assert said in first
    assert "Traceback" not in err
    if column is not None:
        assert shown == [f"  {arguments[1]}", f"  {' ' * column}^"]


@pytest.mark.parametrize(
    "line",
    [
        "verify {name}",
        "plot 'Gaussian(sigma=4)' --delta 1e-6 --out {name}.png",
        "archive 'Gaussian(sigma=4)' --delta 1e-6 --out {name}",
        "ledger export {ledger} --out {name}",
        "ledger verify {ledger} --keys {name}",
        "ledger verify {ledger} --receipts {name}",
    ],
)
def test_a_name_that_no_file_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    """Some commands asked to report an unexpected OSError, others printed its number and the name twice."""
    ledger, name = tmp_path / "budget.db", "n" * 300
    assert app.answer(["ledger", "create", str(ledger), "a", "--epsilon", "1", "--delta", "1e-6"]) == 0
    capsys.readouterr()
    assert app.answer(shlex.split(line.format(ledger=ledger, name=tmp_path / name))) == 2
    said = capsys.readouterr().err
    assert "ile name too long" in said
    assert "unexpected" not in said
    assert "Errno" not in said
    assert said.count(name) < 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("verify /dev/zero", "/dev/zero is larger than 100 MB; name a smaller file"),
        ("ledger verify {ledger} --receipts /dev/zero", "/dev/zero is larger than 100 MB; name a smaller file"),
        ("ledger verify {ledger} --keys /dev/zero", "/dev/zero is larger than 1 MB; name a smaller file"),
        ("ledger import {ledger}.copy /dev/zero", "a line of /dev/zero is longer than 10 MB"),
    ],
)
@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no file without an end")
def test_a_file_without_an_end_is_not_read_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    """It ended with a MemoryError that was to be reported."""
    ledger = tmp_path / "budget.db"
    assert app.answer(["ledger", "create", str(ledger), "a", "--epsilon", "1", "--delta", "1e-6"]) == 0
    capsys.readouterr()
    assert app.answer(shlex.split(line.format(ledger=ledger))) == 2
    assert capsys.readouterr().err == f"error: {said}\n"


def test_memory_that_is_used_up_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise MemoryError

    monkeypatch.setattr(app, "_run_line", fail)
    assert app.answer(["epsilon"]) == 1
    assert (
        capsys.readouterr().err == "error: there is not enough memory for this; ask for less, or name a smaller file\n"
    )


@pytest.mark.parametrize("line", ["ledger export budget.db x", "ledger upgrade budget.db 3", "verify a.json b.json"])
def test_a_command_without_an_expression_speaks_of_none(capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert app.answer(line.split()) == 2
    said = capsys.readouterr().err
    assert "unexpected extra argument" in said
    assert "expression" not in said


def test_the_table_is_long_enough() -> None:
    assert len(MISTAKES) >= 60


def test_a_usage_error_of_the_ledger_leads_to_the_help_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    """It led to the list of all commands of the ledger."""
    assert app.answer(["ledger", "history", "budget.db"]) == 2
    assert "Missing argument 'NAME'; see cumulant ledger history --help" in capsys.readouterr().err
    assert app.answer(["ledger", "histroy", "budget.db"]) == 2
    assert "see cumulant ledger --help" in capsys.readouterr().err


def test_a_caret_in_a_long_or_broken_text() -> None:
    long = "PureDP(1) + " * 40 + "Pure(2) + " + "PureDP(1) + " * 40 + "PureDP(3)"
    line, caret = point_at(long, 480).splitlines()
    assert len(line) < 82
    assert line[caret.index("^") :].startswith("Pure(2)")
    assert point_at("PureDP(1)\n + Pure(2)\n+ PureDP(1)", 13) == "   + Pure(2)\n     ^\n"


@pytest.mark.parametrize(
    ("line", "out"),
    [
        ("epsilon 'PureDP(1) * 1e1' --delta 0 --quiet", "10\n"),
        ("delta 'PureDP(1)' --epsilon 1 --quiet", "0\n"),
        ("check 'PureDP(1)' --epsilon 1 --delta 0 --quiet", "holds\n"),
        ("calibrate 'PureDP(0.125) * ?' --epsilon 1 --delta 0 --quiet", "8\n"),
    ],
)
def test_quiet_is_the_answer_alone(capsys: pytest.CaptureFixture[str], line: str, out: str) -> None:
    assert app.answer(shlex.split(line)) == 0
    assert capsys.readouterr() == (out, "")


def test_numbers_that_look_swapped_are_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.answer(shlex.split("check 'Laplace(1)' --epsilon 1e-6 --delta 0.7")) == 0
    assert "are epsilon and delta swapped?" in capsys.readouterr().err
    assert app.answer(shlex.split("check 'Laplace(1)' --epsilon 1 --delta 1e-6")) == 0
    assert capsys.readouterr().err == ""


def test_short_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["-h"], ["epsilon", "-h"]):
        assert app.answer(arguments) == 0
        assert "--delta 1e-8" in capsys.readouterr().out


def test_a_short_question_loads_little() -> None:
    """What makes a command slow to start is what it loads; time itself is not asserted."""
    heavy = ["typer", "click", "pydantic", "rich", "scipy.special", "scipy.fft", "sqlite3", "cumulant.training"]
    code = (
        "import sys\nfrom cumulant.cli import main\nsys.argv = ['cumulant', 'epsilon', 'Laplace(2)', '--delta', '1e-6']\n"
        f"try:\n    main()\nexcept SystemExit as end:\n    print(end.code, [name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_both_readers_of_a_line_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """The direct one takes what it is sure of; typer takes the rest."""
    from cumulant.cli.direct import read_question

    for line in ("epsilon 'PureDP(1)' --delta=0 --json", "delta 'PureDP(1)' --epsilon 1 --method rdp --quiet"):
        done = subprocess.run(
            [sys.executable, "-m", "cumulant", *shlex.split(line)], capture_output=True, text=True, check=True
        )
        assert read_question(shlex.split(line)) is not None
        assert app.answer(shlex.split(line)) == 0
        assert capsys.readouterr().out == done.stdout
    for line in (
        "epsilon",
        "epsilon 'PureDP(1)'",
        "epsilon 'PureDP(1)' --delta -1",
        "epsilon -h",
        "rdp 'PureDP(1)' --orders 2",
    ):
        assert read_question(shlex.split(line)) is None


def test_the_shell_completes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cumulant"],
        env=os.environ | {"_CUMULANT_COMPLETE": "complete_bash", "COMP_WORDS": "cumulant eps", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "epsilon" in done.stdout
