"""The proofs and their page: names that are there, numbers of the instances from the library, nothing left open."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import cumulant as cm

pytestmark = pytest.mark.tree

PROOFS = Path(__file__).parents[2] / "proofs"
README = (PROOFS / "README.md").read_text(encoding="utf-8")
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in PROOFS.glob("*.v")}
ASSUMPTIONS = (PROOFS / "assumptions.txt").read_text(encoding="utf-8")


def test_every_name_of_the_table_is_proved_in_its_file() -> None:
    rows = re.findall(r"^\| [^|]*(?:\\\|[^|]*)* \| (`[^|]+`) \| (\w+\.v) \|$", README, re.MULTILINE)
    assert len(rows) >= 14
    for names, file in rows:
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(Theorem|Lemma|Corollary) {name}\b", SOURCES[file], re.MULTILINE), (name, file)


def test_every_file_is_compiled_and_nothing_is_left_open() -> None:
    listed = re.findall(r"^(\w+\.v)$", (PROOFS / "_CoqProject").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == SOURCES.keys() - {"assumptions.v"}
    for name, text in SOURCES.items():
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture)\b", text), name


def test_theorem_9_and_the_instances_assume_nothing() -> None:
    """In assumptions.txt a statement is followed by what it assumes; only logarithms need mathcomp's real numbers."""
    axioms = set(re.findall(r"^(\w+\.\w+)", ASSUMPTIONS, re.MULTILINE))
    assert axioms == {
        "boolp.propositional_extensionality",
        "boolp.functional_extensionality_dep",
        "boolp.constructive_indefinite_description",
    }
    for name in ("theorem9_symmetric", "theorem9_rounds", "lemma3", "proposition11", "mixture_filter", "two_of_four"):
        stated = re.search(rf"^{name}$", ASSUMPTIONS, re.MULTILINE)
        assert stated is not None
        follows = re.search(r"^(Closed under the global context|Axioms:)", ASSUMPTIONS[stated.end() :], re.MULTILINE)
        assert follows is not None
        assert follows[1] == "Closed under the global context", name


@pytest.mark.parametrize(
    ("sample", "population", "order", "moment"), [(1, 2, 2, "13%:Q / 6%:Q"), (2, 4, 3, "223%:Q / 36%:Q")]
)
def test_the_numbers_of_the_instances_are_those_of_the_library(
    sample: int, population: int, order: int, moment: str
) -> None:
    run = cm.RandomizedResponse(p="0.75") @ cm.WithoutReplacement(sample=sample, population=population)
    assert f"<= {moment}." in SOURCES["instances.v"]
    top, bottom = map(int, re.findall(r"(\d+)%:Q", moment))
    assert math.exp((order - 1) * run.rdp(order, bound="theorem9")) == pytest.approx(top / bottom, rel=1e-12)
    if sample == 1:
        assert math.exp(run.rdp(2, bound="lower")) == pytest.approx(4 / 3, rel=1e-12)
