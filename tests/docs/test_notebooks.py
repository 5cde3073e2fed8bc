"""The notebooks of the documentation run, and show what is stored in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.notebooks import FOLDER, comparable, rerun

NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
WITH_OPACUS = "account-for-my-opacus-run"
"""tests/integrations/test_notebook.py runs it."""


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name != WITH_OPACUS])
def test_a_notebook_shows_what_is_stored(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rerun(FOLDER / f"{name}.ipynb", tmp_path) >= 3


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_small_and_without_errors(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < 100_000
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(each["output_type"] != "error" for cell in cells for each in cell.get("outputs", []))
    assert cells[0]["source"][0].startswith("# ")


def test_a_changed_number_would_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "wrong.ipynb"
    wrong = {"output_type": "execute_result", "data": {"text/plain": "3"}}
    cell = {"cell_type": "code", "source": "1 + 1", "outputs": [wrong]}
    path.write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(AssertionError):
        rerun(path, tmp_path)
    assert comparable("1.2345678901 of abcdef0123456789") == "1.2346 of #"
    assert comparable("1.2345678901") != comparable("1.2355678901")
