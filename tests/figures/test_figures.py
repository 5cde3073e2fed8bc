"""`cumulant figures`: every file, numbers against the reference, every claim. Fewer round counts than in a real run."""

import csv
import math
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from cumulant.cli.app import answer
from cumulant.figures import series
from cumulant.figures.panels import PANELS, Panel
from tests.oracles.reference import load

FIGURE1, FIGURE2 = load("figure1"), load("figure2")
LOG = -math.log(FIGURE2["delta"])


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("figures") / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(series, "COUNTS", np.array([1, 10, 20, 100, 1000, 10_000, 100_000, 600_000]))
        patch.setattr(series, "INTERVALS", (1, 10_000, 600_000))
        assert answer(["figures", "--out", str(directory)]) == 0
    return directory


def column(path: Path, axis: str, name: str) -> dict[int, float]:
    with path.open(newline="") as file:
        return {int(float(row[axis])): float(row[name]) for row in csv.DictReader(file)}


def test_every_file_is_there(out: Path) -> None:
    pictures = {f"{name}{version}" for name in ("figure1", "figure2") for version in ("", "-extended")}
    tables = {f"{figure}_{panel.name}.csv" for figure in ("figure1", "figure2") for panel in PANELS}
    expected = {f"{name}.{kind}" for name in pictures for kind in ("png", "svg")} | tables | {"claims.md"}
    assert {path.name for path in out.iterdir()} == expected
    for name in pictures:
        png = (out / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG")
        assert len(png) > 50_000
        assert ElementTree.parse(out / f"{name}.svg").getroot().tag.endswith("svg")


def test_panel_d_is_drawn_for_both_values() -> None:
    assert [panel.sigma for panel in PANELS if panel.letter == "d"] == [0.5, 1.0]
    assert "".join(sorted(panel.letter for panel in PANELS)) == "abcddef"


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
@pytest.mark.parametrize(("name", "key"), [("upper", "upper"), ("lower", "lower"), ("theorem27", "tight")])
def test_figure1_is_the_reference(out: Path, panel: Panel, name: str, key: str) -> None:
    found = column(out / f"figure1_{panel.name}.csv", "order", name)
    reference = FIGURE1["panels"][panel.name.split("_", 1)[1]]["alpha"]
    for order, row in reference.items():
        if order != "1":
            assert found[int(order)] == pytest.approx(float(row[key]), rel=1e-9)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_figure2_is_the_reference(out: Path, panel: Panel) -> None:
    path = out / f"figure2_{panel.name}.csv"
    names = ("naive", "strong", "optimal", "upper", "lower", "best")
    naive, strong, optimal, upper, lower, best = (column(path, "rounds", name) for name in names)
    reference = FIGURE2["panels"][panel.name]
    for text, row in reference["k"].items():
        k = int(text)
        assert naive[k] == pytest.approx(row["naive"], rel=1e-6)
        assert strong[k] == pytest.approx(row["strong_simplified"], rel=1e-3)
        assert optimal[k] == pytest.approx(row["strong_exact"], rel=1.2e-3)
        for found, key in ((upper, "rdp_upper"), (lower, "rdp_lower")):
            least = min(row[key], row.get("eps_inf_k", math.inf))
            assert found[k] <= least * (1 + 1e-9)
            order = row[f"{key}_alpha"]
            if order < reference["alpha_max_arb"] and least == row[key]:  # above 400 the reference skips orders
                assert found[k] == pytest.approx(least, rel=1e-9 if order < 400 else 1e-4)
        assert best[k] <= upper[k]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_figure2_encloses_the_true_epsilon(out: Path, panel: Panel) -> None:
    path = out / f"figure2_{panel.name}.csv"
    upper, lower, best = (column(path, "rounds", name) for name in ("true_upper", "true_lower", "best"))
    assert {k for k, value in upper.items() if not math.isnan(value)} == {1, 10_000, 600_000}
    _, name, parameter = panel.name.split("_")
    assert all(lower[k] <= upper[k] for k in (1, 10_000, 600_000))
    assert all(upper[k] <= best[k] * 1.005 for k in (1, 10_000, 600_000))
    compared = 0
    for row in load("two_sided")["values"]:
        ((key, value),) = row["params"].items()
        same = name.startswith(row["mechanism"][:4]) and parameter in (f"{key}{value:g}", f"{key}{value}")
        if same and row["gamma"] == 0.001 and row["delta"] == 1e-8 and row["k"] in (1, 10_000, 600_000):
            compared += 1
            assert upper[row["k"]] <= row["eps_upper"] * 1.005
            if name != "randresp":  # those rows are about all mechanisms with its pure epsilon
                assert upper[row["k"]] >= row["eps_lower"]
                assert lower[row["k"]] >= row.get("eps_lower_paper_pair", row["eps_lower"]) * 0.99
    assert compared or panel.sigma != 5


@pytest.mark.parametrize("panel", [panel for panel in PANELS if panel.sigma], ids=lambda panel: panel.name)
def test_good_data_in_closed_form(out: Path, panel: Panel) -> None:
    """D_a = c a, so eq. (3) is k c + 2 sqrt(k c log(1/delta))."""
    assert panel.sigma
    c = 1e-6 / (2 * panel.sigma**2 + 50)
    for k, found in column(out / f"figure2_{panel.name}.csv", "rounds", "good").items():
        assert found == pytest.approx(k * c + 2 * math.sqrt(k * c * LOG), rel=1e-6)


CLAIMS = {
    "multiplicative constant at every order": "yes: Theorem 27; no: Theorem 9",
    "up to an additive term": "13.0860 and 13.0853",
    "Phase transition": "said 110, jump after order 346",
    "linear in the order, then flat": "| yes |",
    "bad-data approximation": "no: d (σ = 0.5)",
    "good-data approximation": "a 0.49, d (σ = 0.5) 0.000739, d (σ = 1) 0.0224 | yes |",
    "grow like √k": "no: strong d (σ = 0.5), strong d (σ = 1)",
    "Naive composition grows like k": "| yes |",
    "RDP is worse at first": "a 28, d (σ = 0.5) 2, d (σ = 1) 6 | yes |",
    "order of magnitude better than strong": "9.2 times as much; exact optimal composition 8.4 times",
    "five orders of magnitude": "d (σ = 0.5) 4.82, d (σ = 1) 4.4;",
    "about the same or better": "yes: e, f; no: b, c",
    "certifies a limitation of RDP": "yes: for eq. (3); no: for the true",
}


def test_every_claim_has_its_verdict(out: Path) -> None:
    rows = [line for line in (out / "claims.md").read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(CLAIMS)
    for row, (statement, found) in zip(rows, CLAIMS.items(), strict=True):
        assert statement in row.split("|")[1]
        assert found in row


def test_nothing_but_one_line_on_a_pipe(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "a file"
    target.touch()
    assert answer(["figures", "--out", str(target)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: --out {target} cannot be made a directory")
    assert len(captured.err.splitlines()) == 1


def test_without_matplotlib_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert answer(["figures", "--out", str(tmp_path / "new")]) == 1
    assert "pip install 'cumulant[plot]'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
