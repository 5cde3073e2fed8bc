"""The card: one layout for terminals of every width, for pipes, and for encodings without Greek letters."""

from __future__ import annotations

import io
import sys

import pytest

from cumulant.cli import app
from cumulant.cli.card import Card, as_shown, columns_of_output, print_card, wrap_value

RUN = "Gaussian(sigma=1, relation='add-remove') @ Poisson(rate=512/50000) * 5860"


def test_the_answer_of_the_readme(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The number first and rounded up, the lower end rounded down, the run as it can be pasted back."""
    monkeypatch.setenv("COLUMNS", "100")
    assert app.answer(["epsilon", RUN, "--delta", "1e-5"]) == 0
    assert capsys.readouterr().out == (
        "  ε = 4.711   at δ = 1e-5      ✔ proved; no accountant can report less than 4.71\n"
        "\n"
        "  Protects     one record added or removed\n"
        "  Means        an attacker with 1 % false alarms finds at most 9.75 % of members (chance: 1 %)\n"
        '  Run          Gaussian(sigma=1, relation="add-remove") @ Poisson(rate="512/50000") * 5860\n'
        "  Check these  ▸ each record is sampled independently, in secret\n"
        "               ▸ one record moves a sum clipped to norm C by at most C\n"
        "               ▸ all parameters were fixed in advance\n"
        "  More         --explain  --json\n"
    )


@pytest.mark.parametrize("columns", ["80", "120"])
def test_lines_fit_the_columns_and_are_few(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for line in (
        [
            "epsilon",
            "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000",
            "--delta",
            "1e-8",
            "--method",
            "rdp",
        ],
        ["delta", "Laplace(2) * 3", "--epsilon", "1"],
        ["check", "Gaussian(sigma=1)", "--epsilon", "4", "--delta", "1e-5"],
        ["mu", "Gaussian(sigma=2)"],
        ["risk", "PureDP(1)", "--kind", "membership", "--fpr", "0.01"],
        ["calibrate", "Gaussian(sigma=?)", "--epsilon", "1", "--delta", "1e-5"],
    ):
        assert app.answer(line) in (0, 1)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= int(columns), line
        assert len(lines) <= 12, line
        assert any(sign.isdigit() for sign in lines[0])


def test_colour_is_forced_and_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card("ε = 1   at δ = 0", "proved", rows=[("Run", "PureDP(epsilon=1)")])
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_card(card)
    coloured = capsys.readouterr().out
    assert "\x1b[32m✔ proved" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    print_card(card)
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    assert (
        "".join(part.partition("m")[2] if number else part for number, part in enumerate(coloured.split("\x1b[")))
        == plain
    )


def test_ascii_where_the_encoding_has_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    print_card(Card("ε = 1   at δ = 0", "proved", rows=[("Check these", ["a Rényi order ≥ 1", "b"])]))
    sys.stdout.flush()
    assert raw.getvalue().decode("ascii") == (
        "  epsilon = 1   at delta = 0      ok: proved\n\n  Check these  - a Renyi order >= 1   - b\n"
    )
    assert as_shown("ε", "no-such-encoding") == "epsilon"


def test_a_verdict_that_does_not_fit_gets_a_line_of_its_own() -> None:
    card = Card("number = 123456789", "a verdict of some length that is broken at spaces", "bad")
    lines = ["".join(text for text, _ in line) for line in card.lines(40)]
    assert lines == ["  number = 123456789", "  ✘ a verdict of some length that is", "  broken at spaces"]


def test_items_stand_side_by_side_where_they_fit() -> None:
    assert wrap_value(["one", "two", "three"], 16) == ["▸ one   ▸ two", "▸ three"]
    assert wrap_value(["a long item"], 8) == ["▸ a long", "  item"] or wrap_value(["a long item"], 8) == [
        "▸ a",
        "  long",
        "  item",
    ]


def test_columns_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, used in (("10", 40), ("80", 80), ("500", 120)):
        monkeypatch.setenv("COLUMNS", given)
        assert columns_of_output() == used
