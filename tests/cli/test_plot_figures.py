"""`cumulant figures`: every file, numbers against the reference, every claim. Fewer round counts than in a real run."""

import csv
import math
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import optimize, special

from cumulant.cli.app import answer
from cumulant.paper.figures import series
from cumulant.paper.figures.settings import PANELS, Panel
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
    "Captions: the base mechanism": "a 1.021, b 0.5, c 0.4055, d (σ = 0.5) 12.75, d (σ = 1) 5.776, e 2, f 2.197",
    "Section 4: the mechanisms are": "c 0.4055, d (σ = 1) 6.106, e 2, f 2.197; least that is true: a 1.021,",
    "multiplicative constant at every order": "yes: on the panels (10.7), Theorem 27 uniformly in σ; no: Theorem 9 u",
    "Θ(γ²α exp(ε(2)))": "yes: γ²α (exp(ε(2)) − 1); no: γ²α exp(ε(2)) |",
    "α/(α−1) log(1/(1−γ)) + log 2/(α−1)": "| at most 1 | yes |",
    "up to an additive term": "13.0860 and 13.0853",
    "Phase transition": "said 110.3, jump after order 346 (lower bound 346)",
    "converge to the curve of the base": "d (σ = 1) 6.914; it tends to log(1/γ) = 6.908 | the difference is below 0.1 | no |",
    "linear in the order, then flat": "| yes |",
    "taper off at O(γ ε(∞))": "yes: b, c; no: e, f |",
    "bad-data approximation": "yes: a; no: d (σ = 0.5), d (σ = 1) |",
    "good-data approximation": "a 0.4901, d (σ = 0.5) 0.0007389, d (σ = 1) 0.02238 |",
    "γn times smaller": "a 2.04, d (σ = 0.5) 303.4, d (σ = 1) 39.03 | within a factor 2 of γn | no |",
    "tighter than that of Abadi et al.": "a 2.038, d (σ = 1) 2.716; over the moments they integrate: a 4, d (σ = 1) 3.164",
    "grow like √k": "no: strong d (σ = 0.5), strong d (σ = 1)",
    "Naive composition grows like k": "| yes |",
    "RDP is worse at first": "a 28, d (σ = 0.5) 2, d (σ = 1) 6 |",
    "order of magnitude better than strong": "9.2 times as much; exact optimal composition 8.4 times",
    "five orders of magnitude": "d (σ = 0.5) 4.817, d (σ = 1) 4.395;",
    "about the same or better": "yes: e, f; no: b, c",
    "certifies a limitation of RDP": "yes: for eq. (3); no: for the true",
}


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_claim_has_its_number_its_criterion_and_its_verdict(out: Path) -> None:
    text = (out / "claims.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(lines) == len(CLAIMS)
    for line, (statement, found) in zip(lines, CLAIMS.items(), strict=True):
        assert statement in line.split(" | ")[0]
        assert found in line
    for _, found, criterion, verdict in rows(text):
        assert any(digit in found for digit in "0123456789")
        assert criterion
        assert verdict.startswith(("yes", "no"))


def test_the_page_of_claims_is_what_is_written(out: Path) -> None:
    """docs/claims.md is from a run with every count; the verdicts do not depend on it."""
    page = rows((Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8"))
    found = rows((out / "claims.md").read_text(encoding="utf-8"))
    assert [(row[0], row[2], row[3]) for row in page] == [(row[0], row[2], row[3]) for row in found]


def gaussian_epsilon(sigma: float, delta: float) -> float:
    """The exact epsilon of Gaussian noise (Balle and Wang): a root of their formula, with scipy."""

    def log_excess(epsilon: float) -> float:
        first, second = (special.log_ndtr(sign / (2 * sigma) - epsilon * sigma) for sign in (1, -1))
        return float(first + np.log(-np.expm1(epsilon + second - first)) - math.log(delta))

    return float(optimize.brentq(log_excess, 0.1, 40, xtol=1e-13))


def test_numbers_of_claims_from_elsewhere(out: Path) -> None:
    """Closed forms and the reference of Figure 1, written out here."""
    text = (out / "claims.md").read_text(encoding="utf-8")
    panels, rate = FIGURE1["panels"], 0.001
    for sigma, letter in (("5", "a"), ("0.5", "d (σ = 0.5)"), ("1", "d (σ = 1)")):
        s, row = float(sigma), panels[f"gaussian_sigma{sigma}"]["alpha"]
        upper, lower = float(row["2"]["upper"]), float(row["2"]["lower"])
        assert f"{letter} {gaussian_epsilon(s, 1e-8):.4g}" in text
        stated = f"{letter} {math.sqrt(2 * math.log(1.25e8)) / s:.4g}"
        assert (stated in text) == (sigma != "0.5")  # as Section 4 states it, which speaks of sigma 5 and 1
        assert f"{letter} {1000 / (2 * s * s) - float(row['1000']['upper']):.4g}" in text  # past the transition
        assert f"σ = {sigma} {lower / (2e-6 * math.exp(1 / s**2)):.4g}" in text
        if s >= 1:
            assert f"{letter} {upper / (2e-6 / (0.999 * s * s)):.4g}" in text
            assert f"{letter} {upper / lower:.4g}" in text
        # Examples 28 and 29 at order 2, n = 100,000, from the variances of the two normal laws
        first, second = s * s + rate * (1 - 1e-5), s * s
        mixed = 2 * second - first
        bad = rate**2 / mixed - math.log(mixed / (second * second / first)) / 2
        good = 2 * rate**2 / (2 * s * s + rate * (1e5 - 1e-5) / 2)
        assert f"{letter} {bad / good:.4g}" in text
        assert f"{bad / lower:.4g} at order 2" in text
    for letter, pure in (("b", 0.5), ("c", math.log(1.5)), ("e", 2.0), ("f", math.log(9))):
        assert f"{letter} {math.log1p(rate * math.expm1(pure)) / (rate * pure):.4g}" in text


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
