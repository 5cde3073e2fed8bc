"""The page on training runs as it stands, with the real torch and Opacus on the digits data."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.docs.test_tutorial import ROOT, agrees, blocks, checked


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    directory = tmp_path_factory.mktemp("train")
    found: dict[str, Any] = {"_agrees": agrees}
    for number, source in enumerate(blocks(ROOT / "docs" / "how-to-train.md", "python")):
        script = Path(directory / f"block_{number}.py")
        script.write_text(checked(source), encoding="utf-8")
        found = runpy.run_path(str(script), found)
    return found


def test_it_learns(names: dict[str, Any]) -> None:
    assert 0.78 < names["accuracy"] < 0.96


def test_what_is_spent_grows_and_stays_within_the_plan(names: dict[str, Any]) -> None:
    spent = [row["epsilon"] for row in names["log"]]
    assert [row["step"] for row in names["log"]] == [40, 80, 120, 160, 200]
    assert spent == sorted(spent)
    assert names["budget"].taken == names["sampler"].step == 200
    assert names["found"].lower <= names["found"].epsilon <= 3


def test_opacus_accounts_for_the_same_run(names: dict[str, Any]) -> None:
    assert names["engine"].accountant.run() == names["plan"].after(60)


def test_the_statement_is_about_the_plan(names: dict[str, Any]) -> None:
    assert names["statement"]["run"] == str(names["plan"].run)
    assert "one image" in names["card"]
    assert "one image" in names["sentence"]
