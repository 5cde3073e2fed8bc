"""Boxes for notebooks escape what they show, and bars stay inside."""

from __future__ import annotations

import pytest

from cumulant.html_box import facts_box, spent_bar, table_box


def test_texts_are_escaped_and_empty_facts_left_out() -> None:
    box = facts_box("<a>", {"<b>": "<c>", "nothing": ""}, note="<d>")
    for sign in "abcd":
        assert f"&lt;{sign}&gt;" in box
        assert f"<{sign}>" not in box.replace("<b>&lt;a&gt;</b>", "")
    assert "nothing" not in box


def test_a_table_has_a_cell_per_value() -> None:
    table = table_box("x", ["one", "two"], [["1", "<2>"], ["3", "4"]])
    assert (table.count("<th "), table.count("<td "), table.count("<tr>")) == (2, 4, 3)
    assert "&lt;2&gt;" in table


@pytest.mark.parametrize(("share", "width"), [(-1.0, "0.000"), (0.25, "25.000"), (7.0, "100.000")])
def test_a_bar_ends_with_the_budget(share: float, width: str) -> None:
    assert f"width='{width}%'" in spent_bar(share)
