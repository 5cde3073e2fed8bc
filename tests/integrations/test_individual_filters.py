"""The page about budgets for every record runs with torch: its loop, on gradients of torch.func."""

import re
import runpy
from pathlib import Path

import torch

PAGE = Path(__file__).parents[2] / "docs" / "individual-filters.md"


def test_the_loops_of_the_page_run(tmp_path: Path) -> None:
    source = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", source, re.MULTILINE | re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    names = runpy.run_path(str(script))
    assert isinstance(names["w"], torch.Tensor)
    assert torch.isfinite(names["w"]).all()
    assert names["w"].abs().sum() > 0
    assert names["budget"].guarantee() == (2.0, 1e-6, "add-remove")
