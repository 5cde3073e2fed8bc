"""The proofs and their page: names that are there, numbers of the instances from the library, nothing left open."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import Step
from cumulant.filters.mixture import PARTS, Mixture

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


def test_every_definition_is_printed_beside_the_statements() -> None:
    printed = set(re.findall(r"^(\w+) = ", ASSUMPTIONS, re.MULTILINE))
    defined = {
        name for text in SOURCES.values() for name in re.findall(r"^(?:Definition|Fixpoint) (\w+)", text, re.MULTILINE)
    }
    assert len(defined) > 50
    assert defined == printed


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


def test_the_delta_of_the_ledger_instance_is_that_of_the_library() -> None:
    """One order, randomized response without its pure epsilon: the rule needs delta = 7/24 at e^epsilon = 2.

    A request for the raw data, whose charge is infinite, is refused with any delta.
    """
    assert "+ 7%:R / 24%:R." in SOURCES["instances.v"]
    mechanism = cm.RandomizedResponse(p="0.75")
    step = Step(mechanism, str(mechanism), mechanism.curve(), mechanism.pair())
    for factor, accepted in (("1.000001", True), ("0.999999", False)):
        rule = Mixture(
            epsilon=Fraction(math.log(2)),
            delta=Fraction(7, 24) * Fraction(factor),
            slack=Fraction(0),
            orders=(Fraction(1),),
            weights=(Fraction(1),),
        )
        charge = rule.exact_charge([(rule.price(step).upper, 1)]).at(0)
        assert rule.proves(Amounts.of([charge, None, 0]), (PARTS,)) is accepted
        assert not rule.proves(Amounts.of([None, None, 0]), (PARTS,))
