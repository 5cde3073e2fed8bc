"""Formulas of the pages, set by a browser: what is written is what is shown, and what cannot be read is an error."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def formulas() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "formulas.py"))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("e^eps", "<msup><mi>e</mi><mi>ε</mi></msup>"),
        ("x_2^j", "<msubsup><mi>x</mi><mn>2</mn><mi>j</mi></msubsup>"),
        ("a/b", "<mfrac><mi>a</mi><mi>b</mi></mfrac>"),
        ("1/(a-1)", "<mfrac><mn>1</mn><mrow><mi>a</mi><mo>−</mo><mn>1</mn></mrow></mfrac>"),
        ("a / b", "<mi>a</mi><mo>/</mo><mi>b</mi>"),
        ("e^-x", "<msup><mi>e</mi><mrow><mo>−</mo><mi>x</mi></mrow></msup>"),
        ("R0", "<msub><mi>R</mi><mn>0</mn></msub>"),
        ("sB", "<mi>s</mi><mi>B</mi>"),
        ("a <= b", "<mi>a</mi><mo>≤</mo><mi>b</mi>"),
        ("SUM_j x", "<munder><mo largeop=\"true\">∑</mo><mi>j</mi></munder><mi>x</mi>"),
        ("sqrt(x)", "<msqrt><mi>x</mi></msqrt>"),
        ("|x|^2", "<msup><mrow><mo>|</mo><mi>x</mi><mo>|</mo></mrow><mn>2</mn></msup>"),
        ("floor(x)", "<mrow><mo>⌊</mo><mi>x</mi><mo>⌋</mo></mrow>"),
        ("K'", '<mrow><mi>K</mi><mo lspace="0" rspace="0">′</mo></mrow>'),
        ("c_2 as in Theorem 9", "<msub><mi>c</mi><mn>2</mn></msub><mtext>&nbsp;as in Theorem&nbsp;</mtext><mn>9</mn>"),
    ],
)  # fmt: skip
def test_what_is_written_is_what_is_shown(formulas: dict[str, Any], written: str, shown: str) -> None:
    assert formulas["inline"](written) == f"<math>{shown}</math>"


def test_a_binomial_coefficient_has_no_line(formulas: dict[str, Any]) -> None:
    assert '<mfrac linethickness="0"><mrow><mi>a</mi></mrow><mrow><mi>j</mi></mrow></mfrac>' in formulas["inline"](
        "C(a,j)"
    )


@pytest.mark.parametrize("wrong", ["(a", "a)", "e^", "|x", "T/2pi", "a^/b"])
def test_what_cannot_be_read_is_an_error(formulas: dict[str, Any], wrong: str) -> None:
    with pytest.raises(formulas["Unset"]):
        formulas["inline"](wrong)


def test_every_formula_of_the_pages_keeps_all_its_letters(formulas: dict[str, Any]) -> None:
    """As XML, with its text beside it; no letter, number or bracket is lost or added on the way."""
    count = 0
    for page in sorted(DOCS.rglob("*.md")):
        for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
            if token.type != "code_block":
                continue
            count += 1
            found = ElementTree.fromstring(formulas["block"](token.content).replace("&nbsp;", " "))
            written = found.find(".//annotation")
            assert written is not None
            assert written.text == token.content.rstrip()
            shown = " ".join(text for each in found.iter("mtable") for text in each.itertext())
            numbers = re.findall(r"\d+", token.content)
            assert sorted("".join(numbers)) == sorted(re.sub(r"\D", "", shown)), token.content
            for letter in "PQRSTabgqr":
                assert _alone(token.content).count(letter) == _alone(shown).count(letter), (letter, token.content)
    assert count > 40


def _alone(text: str) -> str:
    """Letters that are no part of a word or of the name of a sign."""
    return re.sub(r"[A-Za-z]{3,}|[^A-Za-z]", " ", re.sub(r"\b(SUM|INT|PROD|sqrt|floor|ceil)\b", " ", text))
