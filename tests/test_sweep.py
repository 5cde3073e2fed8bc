"""A sweep: rows equal to single calls bit for bit on every executor, killed and resumed, one failure never the whole."""

import csv
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm
from cumulant.cli.app import answer

TEXT = "Gaussian(sigma={sigma}) @ WithoutReplacement(rate={rate}) * {steps}"
GRID: dict[str, Any] = {"sigma": [1, "2.5"], "rate": [0.01, "1/50"], "steps": [10, 3000]}


def alone(row: dict[str, Any]) -> float:
    run = cm.Gaussian(sigma=row["sigma"]) @ cm.WithoutReplacement(rate=row["rate"]) * int(row["steps"])
    return run.epsilon("1e-6")


@pytest.fixture(scope="module")
def here() -> cm.Sweep:
    return cm.sweep(TEXT, **GRID, delta="1e-6")


def test_each_row_is_the_answer_to_the_same_question_alone(here: cm.Sweep) -> None:
    assert len(here) == 8
    assert here.names == ("sigma", "rate", "steps", "run", "epsilon", "delta", "error")
    assert [row["steps"] for row in here] == ["10", "3000"] * 4
    for row in here:
        assert row["epsilon"] == alone(row)
        assert cm.parse(row["run"]).epsilon("1e-6") == row["epsilon"]


def test_the_same_bits_whatever_the_executor(here: cm.Sweep) -> None:
    with ThreadPoolExecutor(3) as threads:
        assert cm.sweep(TEXT, **GRID, delta="1e-6", executor=threads) == here
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert cm.sweep(TEXT, **GRID, delta="1e-6", executor=processes) == here


def test_delta_at_epsilon() -> None:
    found = cm.sweep("Laplace(scale={b}) * 3", b=[2, 4], epsilon=1)
    assert [row["delta"] for row in found] == [(cm.Laplace(scale=b) * 3).delta(1) for b in (2, 4)]
    assert [row["epsilon"] for row in found] == [1.0, 1.0]


def test_a_failing_setting_is_a_row_with_its_error() -> None:
    found = cm.sweep("Gaussian(sigma={sigma}) * 2", sigma=[1, -1, "abc", 3], delta="1e-6")
    assert [bool(row["error"]) for row in found] == [False, True, True, False]
    assert found.failures == 2
    assert found.rows[1]["epsilon"] is None
    assert "sigma" in found.rows[1]["error"]


class Breaking(Executor):
    """Every second part is lost, as with workers that die."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, function: Any, /, *given: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.count += 1
        if self.count % 2:
            future.set_result(function(*given, **named))
        else:
            future.set_exception(RuntimeError("the worker died"))
        return future


def test_what_a_lost_worker_leaves_is_asked_again_when_resumed(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    steps = list(range(1, 21))
    broken = cm.sweep("PureDP(0.1) * {k}", k=steps, delta="1e-6", executor=Breaking(), journal=journal)
    assert 0 < broken.failures < 20
    assert all("the worker died" in row["error"] for row in broken if row["error"])
    resumed = cm.sweep("PureDP(0.1) * {k}", k=steps, delta="1e-6", journal=journal)
    assert resumed == cm.sweep("PureDP(0.1) * {k}", k=steps, delta="1e-6")


def test_a_journal_is_keyed_by_exact_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journal.jsonl"
    first = cm.sweep("Gaussian(sigma={s})", s=["0.5", 2], delta="1e-6", journal=journal)
    monkeypatch.setattr(sys.modules["cumulant.sweep"], "_answers", None)  # nothing is left to do
    again = cm.sweep("Gaussian(sigma={s})", s=["1/2", "2.0"], delta="1e-6", journal=journal)
    assert [row["epsilon"] for row in again] == [row["epsilon"] for row in first]
    assert [row["s"] for row in again] == ["1/2", "2.0"]


def test_an_unfinished_line_is_cut_off_and_another_sweep_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    whole = cm.sweep("Gaussian(sigma={s})", s=[1, 2, 3], delta="1e-6", journal=journal)
    journal.write_bytes(journal.read_bytes()[:-20])
    assert cm.sweep("Gaussian(sigma={s})", s=[1, 2, 3], delta="1e-6", journal=journal) == whole
    assert len(journal.read_text().splitlines()) == 4
    with pytest.raises(cm.InputError, match="another sweep"):
        cm.sweep("Gaussian(sigma={s})", s=[1], delta="1e-5", journal=journal)
    journal.write_text("{}\n[]\n")
    with pytest.raises(cm.InputError, match="damaged"):
        cm.sweep("Gaussian(sigma={s})", s=[1], delta="1e-5", journal=journal)


KILLED = """
import sys
import cumulant as cm
cm.sweep("Laplace(scale={b}) @ Poisson(rate=0.1) * {k}", b=[1, 2], k=list(range(100, 200)), delta="1e-6", journal=sys.argv[1])
"""


def test_a_killed_sweep_continues_where_it_was(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(journal)])
    for _ in range(600):
        if journal.exists() and journal.read_bytes().count(b"\n") > 12:
            break
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = journal.read_bytes().count(b"\n") - 1
    assert 12 <= before < 200
    lines = journal.read_text().splitlines()
    known = {json.loads(line)["key"]: json.loads(line)["row"]["epsilon"] for line in lines[1 : before + 1]}
    text = "Laplace(scale={b}) @ Poisson(rate=0.1) * {k}"
    found = cm.sweep(text, b=[1], k=list(range(100, 140)), delta="1e-6", journal=journal)
    kept = [row for row in found if json.dumps({"b": "1", "k": row["k"]}) in known]
    assert kept
    for row in found.rows[::8]:
        assert row["epsilon"] == cm.parse(row["run"]).epsilon("1e-6")


def test_tables(tmp_path: Path, here: cm.Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    here.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["epsilon"]) for row in rows] == here.columns()["epsilon"]
    from pyarrow import parquet

    here.to_parquet(tmp_path / "table.parquet")
    assert parquet.read_table(tmp_path / "table.parquet").to_pydict() == here.columns()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(cm.InputError, match=r"cumulant\[parquet\]"):
        here.to_parquet(tmp_path / "other.parquet")


def test_settings_are_numbers_in_columns_and_as_spelled_in_rows(tmp_path: Path) -> None:
    text = 'Gaussian(sigma={s}, geometry="{where}") * {k}'
    table = cm.sweep(text, s=["1/3", 2], where=["ball", "line"], k=[1, 10**30], delta=1e-5)
    columns = table.columns()
    assert [row["s"] for row in table][:5] == ["1/3"] * 4 + ["2"]
    assert columns["s"] == [1 / 3] * 4 + [2.0] * 4
    assert columns["where"] == ["ball", "ball", "line", "line"] * 2
    assert columns["k"] == [1.0, 1e30] * 4  # too large for a column of whole numbers
    table.to_parquet(tmp_path / "table.parquet")
    assert cm.sweep("PureDP(epsilon=1) * {k}", k=["3", 4.0], delta=0).columns()["k"] == [3, 4]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"sigma": [1], "other": [2]}, "no place in the expression"),
        ({"sigma": [1], "delta": None}, "exactly one of delta and epsilon"),
        ({"sigma": [object()]}, "must be a number or a text"),
        ({"sigma": 3}, "sigma"),
    ],
    ids=["unused", "no question", "no number", "no list"],
)
def test_what_cannot_be_swept_is_refused_before_anything_runs(given: dict[str, Any], match: str) -> None:
    with pytest.raises(cm.InputError, match=match):
        cm.sweep("Gaussian(sigma={sigma})", **({"delta": "1e-6"} | given))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    arguments = ["sweep", "Gaussian(sigma={s}) * {k}", "--set", "s=1,2", "--set", "k=1,10", "--delta", "1e-6"]
    assert answer([*arguments, "--out", str(table)]) == 0
    assert "4 settings" in capsys.readouterr().out
    assert (tmp_path / "table.csv.jsonl").exists()
    assert answer([*arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["epsilon"] for row in rows] == [
        cm.parse(f"Gaussian(sigma={s}) * {k}").epsilon("1e-6") for s in (1, 2) for k in (1, 10)
    ]
    assert answer([*arguments[:3], "s=-1", *arguments[4:]]) == 1
    assert "sigma" in capsys.readouterr().out
    assert answer(["sweep", "Gaussian(sigma={s})", "--set", "s", "--delta", "1e-6"]) == 2
    assert answer([*arguments, "--out", "table.txt"]) == 2


# ---- pictures


def test_one_setting_is_a_line_and_two_are_a_heat_map(tmp_path: Path) -> None:
    line = cm.sweep("PureDP(0.5) * {k}", k=[1, 4, 400], delta=0).plot(tmp_path / "line.svg")
    (axes,) = line.axes
    (drawn,) = axes.get_lines()
    assert [list(each) for each in drawn.get_data()] == [[1, 4, 400], [0.5, 2, 200]]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()) == ("k", "epsilon", "log")
    table = cm.sweep("PureDP({e}) * {k}", e=["1/2", -1, 2], k=[1, 10], delta=0)
    heat = table.plot(tmp_path / "heat.png")
    (image,) = heat.axes[0].get_images()
    cells = image.get_array()
    assert cells.tolist() == [[0.5, None, 2], [5, None, 20]]  # rows are k, columns are e; -1 has no answer
    assert [text.get_text() for text in heat.axes[0].texts] == ["0.5", "–", "2", "5", "–", "20"]
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "heat.csv").open(newline="") as file:
        assert [row["epsilon"] for row in csv.DictReader(file)] == ["0.5", "5.0", "", "", "2.0", "20.0"]


def test_more_settings_are_panels_and_lines_are_told_apart_without_colour() -> None:
    table = cm.sweep("PureDP({e}) * {k} + PureDP({f})", e=[1, 2], k=[1, 2, 3], f=[1, 9], delta=0)
    panels = [axes for axes in table.plot().axes if axes.get_images()]
    assert [axes.get_title() for axes in panels] == ["f = 1", "f = 9"]
    for axes in table.plot(kind="lines").axes:
        looks = [(line.get_linestyle(), line.get_marker(), line._unscaled_dash_pattern) for line in axes.get_lines()]
        assert [line.get_label() for line in axes.get_lines()] == ["k = 1", "k = 2", "k = 3"]
        assert len({look[1] for look in looks}) == len({look[2] for look in looks}) == 3
    words = cm.sweep("Gaussian(1, geometry='{g}') * {k}", g=["diameter", "ball"], k=[1], delta="1e-6").plot()
    assert [label.get_text() for label in words.axes[0].get_xticklabels()] == ["diameter", "ball"]


def test_shades_grow_with_the_number() -> None:
    image = cm.sweep("PureDP({e}) * {k}", e=[1, 2, 3], k=[1, 7], delta=0).plot().axes[0].get_images()[0]
    shade = image.cmap(image.norm(sorted(image.get_array().ravel().tolist())))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert all(lighter > darker for lighter, darker in itertools.pairwise(shade))


@pytest.mark.parametrize(
    ("grid", "kind", "match"),
    [
        ({"e": [1], "k": [2]}, None, "nothing varies"),
        ({"e": [1, 2], "k": [2]}, "heat", "only e does"),
        ({"e": [1, 2], "k": [2]}, "pie", "choose one of lines, heat"),
        ({"e": [1, 2], "k": list(range(1, 20))}, "lines", "19 lines are more than 12"),
    ],
)
def test_what_cannot_be_drawn(grid: dict[str, Any], kind: str | None, match: str) -> None:
    with pytest.raises(cm.InputError, match=match):
        cm.sweep("PureDP({e}) * {k}", **grid, delta=0).plot(kind=kind)


def test_the_command_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", "PureDP({e}) * {k}", "--set", "e=1,2", "--set", "k=1,10", "--delta", "0", "--plot"]
    assert answer([*arguments, str(tmp_path / "heat.pdf")]) == 0
    assert f"the numbers are in {tmp_path / 'heat.csv'}" in capsys.readouterr().out
    assert (tmp_path / "heat.pdf").read_bytes().startswith(b"%PDF")
    assert answer([*arguments, str(tmp_path / "lines.svg"), "--lines", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4
    assert answer([*arguments, "heat.gif"]) == 2
    assert "--plot heat.gif must end in .png, .svg or .pdf" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")  # of servers that are closed, and of ports
def test_dask(here: cm.Sweep) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        client.get_executor() as executor,
    ):
        assert cm.sweep(TEXT, **GRID, delta="1e-6", executor=executor) == here
        failed = cm.sweep("Gaussian(sigma={s})", s=[1, 0], delta="1e-6", executor=executor)
        assert [math.isfinite(row["epsilon"] or math.inf) for row in failed] == [True, False]


def test_a_number_in_a_journal_that_was_edited_is_not_believed(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    whole = cm.sweep("Gaussian(sigma={s})", s=[1, 2], delta="1e-6", journal=journal)
    assert cm.sweep("Gaussian(sigma={s})", s=[1, 2], delta="1e-6", journal=journal) == whole
    head, first, second = journal.read_text().splitlines()
    smaller = json.loads(first)
    smaller["row"]["epsilon"] /= 2
    swapped = json.loads(first) | {"key": json.loads(second)["key"]}
    without = {name: value for name, value in json.loads(first).items() if name != "digest"}
    for line in (smaller, swapped, without):
        journal.write_text("\n".join([head, json.dumps(line), second]) + "\n")
        with pytest.raises(cm.InputError, match="is damaged"):
            cm.sweep("Gaussian(sigma={s})", s=[1, 2], delta="1e-6", journal=journal)
