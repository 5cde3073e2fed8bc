"""docs/paper.md: every row names code, a test and an erratum that are there, nothing of the paper is missing, and its numbers.

The numbers are computed here from definitions and printed formulas, in 200 bits or by brute force; the library is not asked.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flint
import pytest
from scipy import integrate, stats

import cumulant
from cumulant.paper.figures import divergence_claims, epsilon_claims

ROOT = Path(__file__).parents[2]
SOURCE = Path(cumulant.__file__).parent
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ERRATA = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
CLAIMS = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
WRITTEN = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


ROWS = rows()


def test_every_row_is_whole() -> None:
    assert len(ROWS) > 80
    assert all(len(row) == 6 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}-{number}" for number, row in enumerate(ROWS)])
def test_every_name_is_there(row: list[str]) -> None:
    _, _, _, code, tests, corrected = row
    places, names = re.findall(r"`([^`]+)`", code), re.findall(r"`([^`]+)`", tests)
    assert places
    assert names
    for place in places:
        file, _, name = place.partition("::")
        assert (SOURCE / file).is_file(), place
        found: Any = importlib.import_module(".".join(("cumulant", *Path(file).with_suffix("").parts)))
        for part in name.split(".") if name else ():
            assert hasattr(found, part), place
            found = getattr(found, part)
    for name in names:
        assert f"def {name}(" in WRITTEN, name
    assert corrected == "no" or re.search(rf"^##? {corrected}: ", ERRATA, re.MULTILINE), corrected


def test_nothing_is_missing() -> None:
    """Every item, every number of Part A of the errata, every erratum, every claim."""
    assert {int(row[0]) for row in ROWS} == set(range(1, 51))
    said = " ".join(row[1] for row in ROWS)
    numbered = re.findall(
        r"^\| ((?:Definition|Theorem|Lemma|Remark|Corollary|Proposition|Example)s? [^|]+?) \|", ERRATA, re.MULTILINE
    )
    assert len(numbered) >= 32
    for label in numbered:
        for number in re.findall(r"\d+", label):
            assert re.search(rf"\b{number}\b", said), label
    for equation in range(1, 10):
        assert re.search(rf"eq\. \({equation}\)|\({equation}\)", said), equation
    corrected = {row[5] for row in ROWS}
    assert corrected >= {f"E-{number}" for number in range(1, 26)}
    # one row for each function that judges a claim, and as many as claims.md has
    judges = {
        f"paper/figures/{module.__name__.rsplit('.', 1)[1]}.py::{name}"
        for module in (divergence_claims, epsilon_claims)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if inspect.signature(function).return_annotation == "Claim" and function.__module__ == module.__name__
    }
    listed = {place for row in ROWS if row[0] == "50" for place in re.findall(r"`([^`]+)`", row[3])}
    assert listed == judges
    assert len(judges) == len([line for line in CLAIMS.splitlines() if line.startswith("| ")]) - 1


# ---- the numbers of the third column


def gaussian_delta(epsilon: float) -> float:
    return float(stats.norm.cdf(0.5 - epsilon) - math.exp(epsilon) * stats.norm.cdf(-0.5 - epsilon))


def theorem9(order: int) -> float:
    """s = 5, g = 0.001: every term in 200 bits."""
    with flint.ctx.workprec(200):
        total = flint.arb(0)
        for j in range(2, order + 1):
            moment = (flint.arb(j * (j - 1)) / 50).exp()
            coefficient = 4 * (flint.arb(1) / 25).expm1() if j == 2 else 2 * moment
            total += math.comb(order, j) * coefficient / flint.arb(1000) ** j
        return float((1 + total).log() / (order - 1))


def laplace(order: float, scale: float) -> float:
    near, far = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    return math.log(near * math.exp((order - 1) / scale) + far * math.exp(-order / scale)) / (order - 1)


def bad_data(order: float) -> float:
    """Two normal laws, N(g, s^2 + g (n-1)/n) from N(0, s^2), s = 5, g = 0.001, n = 100,000, in 200 bits."""
    with flint.ctx.workprec(200):
        second = flint.arb(25)
        first = second + flint.arb(1) / 1000 * 99_999 / 100_000
        mixed = order * second + (1 - order) * first
        log = mixed.log() - (1 - order) * first.log() - order * second.log()
        return float(order * (flint.arb(1) / 1000) ** 2 / (2 * mixed) - log / (2 * (order - 1)))


def half_moment() -> float:
    """xi(2.5) of Gaussian noise, s = 1, by quadrature."""
    pieces = [(-12.0, 0.5), (0.5, 3.0), (3.0, 15.0)]
    total = sum(
        integrate.quad(lambda x: stats.norm.pdf(x) * abs(math.exp(x - 0.5) - 1) ** 2.5, *ends, epsrel=1e-11)[0]
        for ends in pieces
    )
    return float(total**0.4)


def two_tables() -> float:
    total = 2 * (0.02 + 4 * (0.56 - 0.02) / 6) + 2 * 0.30
    return total / 5 + math.log(5 / 6) - (math.log(1e-3) + math.log(6)) / 5


def lemma31() -> float:
    """A two-point law attains the corrected bound: xi^2 (a-1)^{a-1} / (a^a t^{a-1}) at a = 2, t = e^3 - 1."""
    return 0.145718 / (4 * math.expm1(3))


LOG = math.log(1e8)
NUMBERS: dict[str, tuple[str, Callable[[], float]]] = {
    "Definition 1": ("0.126937", lambda: gaussian_delta(1)),
    "Section 2, privacy loss": ("0.125", lambda: 1 / (2 * 2**2)),
    "Lemma 3": ("6.485109e-4", lambda: math.log1p(0.001 * math.expm1(0.5))),
    "Lemma 6, eq. (3)": ("1.233942", lambda: 1 / 50 + math.sqrt(2 * LOG) / 5),
    "Remark 8, zCDP": ("0.462117", lambda: math.tanh(0.5)),
    "Lemma 36": ("-0.026856", lambda: math.log1p(0.25) - 0.25),
    "Theorem 9": ("1.632431e-7", lambda: theorem9(2)),
    "Section 3.1, Gaussian": ("1.201122", lambda: 1 / math.sqrt(math.log(2))),
    "Proposition 11": ("4.081077e-8", lambda: math.log1p(1e-6 * math.expm1(0.04))),
    "Section 3, the gap": ("0.001695", lambda: (1000 * -math.log(0.999) + math.log(2)) / 999),
    "Sections 1 and 4, phase transition": ("345.4", lambda: 50 * math.log(1000)),
    "Theorem 27": (
        "6.126389e-3",
        lambda: math.fsum((-1) ** i * math.comb(4, i) * math.exp(i * (i - 1) / 50) for i in range(5)),
    ),
    "Definition 14; Definition 15, eq. (5)": ("1.788195", half_moment),
    "Lemma 31": ("1.908749e-3", lemma31),
    "Proposition 34, queries": ("30.348543", lambda: 5 * math.sqrt(2 * LOG)),
    "Proposition 35, projection": ("1.112878", two_tables),
    "Section 3.3, comparison": ("2.062068", lambda: 11 / 50 + LOG / 10),
    "Section 4, Laplace": ("0.200304", lambda: laplace(2, 2)),
    "Section 4, randomized response": ("0.154151", lambda: math.log(0.36 / 0.4 + 0.16 / 0.6)),
    "Appendix I, exponential family": ("0.318454", lambda: math.log(0.3**2 / 0.6 + 0.7**2 / 0.4)),
    "Example 28, bad data": ("4.080158e-8", lambda: bad_data(2)),
    "Example 29, good data": ("2.0e-8", lambda: 2e-6 / (50 + 0.001 * (1e5 - 1e-5) / 2)),
    "Theorem 13": ("1.862258", lambda: 0.01 * math.sqrt(2 * 1000 * math.log(1e6)) + 2 * 1000 * 0.01**2),
}


@pytest.mark.parametrize("label", NUMBERS)
def test_the_numbers(label: str) -> None:
    shown, compute = NUMBERS[label]
    (row,) = [row for row in ROWS if row[1] == label]
    assert re.search(rf"(?<![\d.]){re.escape(shown)}(?![\d])", row[2])
    mantissa = shown.lstrip("-").split("e")[0]
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(shown.partition("e")[2] or 0) - digits)
    assert abs(float(shown) - compute()) <= 0.51 * unit


def test_every_number_of_the_table_is_computed() -> None:
    """What looks like a measured number, with at least five digits, is in the list above."""
    for row in ROWS:
        for number in re.findall(r"(?<![\w.])-?\d+\.\d{5,}(?:e-?\d+)?", row[2]):
            known = {
                NUMBERS.get(row[1], ("", None))[0],
                "1.194127e-5",
                "0.145718",
            }  # order 100 below, and what is given
            assert number in known, (row[1], number)
    assert theorem9(100) == pytest.approx(1.194127e-5, rel=1e-6)


def test_item_17_where_the_second_coefficient_switches() -> None:
    """min{4 (e^{1/s^2} - 1), 2 e^{1/s^2}}: equal where e^{1/s^2} = 2; the library uses the smaller one on each side."""
    switch = 1 / math.sqrt(math.log(2))
    assert switch == pytest.approx(1.201122, abs=5e-7)
    for sigma in (0.5, 1.2, 1.21, 5.0):
        square = 1 / sigma**2
        smaller = 4 * math.expm1(square) if sigma > switch else 2 * math.exp(square)
        run = cumulant.Gaussian(sigma=sigma) @ cumulant.WithoutReplacement(rate="0.001")
        assert run.rdp(2, bound="theorem9") == pytest.approx(math.log1p(1e-6 * smaller), rel=1e-9)


def test_no_law_has_a_polynomial_cgf_of_higher_degree() -> None:
    """Item 13: exp(-t^2/2 - t^4/10), the transform of a law with a CGF of degree 4, would have a negative density."""

    def density(x: float) -> float:
        transform = integrate.quad(lambda t: math.exp(-(t**2) / 2 - t**4 / 10) * math.cos(t * x), 0, 12, limit=200)
        return float(transform[0]) / math.pi

    assert min(density(x / 10) for x in range(30, 60)) < -1e-5
    assert cumulant.Gaussian(sigma=2).rdp([2, 40]).tolist() == pytest.approx([2 / 8, 40 / 8])


def test_truncated_concentration_ends_at_omega() -> None:
    """Item 13: (rho, omega)-tCDP, orders below omega only; eq. (3) takes the best of them."""
    truncated, whole = cumulant.ZeroConcentrated(rho="0.1", omega=5), cumulant.ZeroConcentrated(rho="0.1")
    assert truncated.rdp(4) == pytest.approx(0.4)
    assert truncated.rdp(6) == math.inf
    by_hand = min(0.1 * a + math.log(1e9) / (a - 1) for a in (4 + i / 1000 for i in range(1000)))
    found = truncated.epsilon("1e-9", method="rdp", conversion="classic")
    assert found == pytest.approx(by_hand, rel=1e-3)
    assert found > whole.epsilon("1e-9", method="rdp", conversion="classic")
