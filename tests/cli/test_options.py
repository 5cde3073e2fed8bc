"""Shared options: names that are offered before anything is loaded are those of the tables."""

from __future__ import annotations

from typing import Any, get_args

from cumulant.accounting.choices import PICTURE_KINDS, RISK_KINDS
from cumulant.accounting.risk import KINDS
from cumulant.cli import options
from cumulant.plotting.charts import CHARTS


def offered(annotated: Any, incomplete: str = "") -> list[str]:
    return list(get_args(annotated)[1].autocompletion(incomplete))


def test_values_are_offered() -> None:
    assert offered(options.Method, "op") == ["optimal"]
    assert offered(options.Bound, "theorem9") == ["theorem9", "theorem9-max"]
    assert offered(options.Conversion) == ["classic", "cks"]
    assert offered(options.Run, "Skel") == ["Skellam("]


def test_names_that_are_written_out_are_those_of_the_tables() -> None:
    assert RISK_KINDS == KINDS
    assert ("all", *CHARTS) == PICTURE_KINDS
