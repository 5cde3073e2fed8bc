"""The page on federated averaging: its loop learns, within the epsilon that it prints."""

import runpy
from pathlib import Path

from tests.docs.test_tutorial import ROOT, agrees, blocks, checked


def test_the_loop_learns_within_its_budget(tmp_path: Path) -> None:
    (loop, *_) = blocks(ROOT / "docs" / "how-to-fedavg.md", "python")
    assert len(loop.splitlines()) <= 50
    script = tmp_path / "loop.py"
    script.write_text(checked(loop), encoding="utf-8")
    names = runpy.run_path(str(script), {"_agrees": agrees})
    assert names["error"] < 0.3
    assert names["plan"].epsilon("1e-5") < 2.25
    assert names["sampler"].law == type(names["sampler"].law)(rate="1/20")
