"""The notebook about a run with Opacus shows what is stored in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.notebooks import FOLDER, rerun


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_about_opacus_shows_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rerun(FOLDER / "account-for-my-opacus-run.ipynb", tmp_path) >= 5
