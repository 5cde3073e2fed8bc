"""Run a notebook of the documentation without Jupyter, and compare what it shows with what is stored."""

from __future__ import annotations

import ast
import json
import re
import runpy
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
HASH = re.compile(r"\b[0-9a-f]{12,64}\b")
NUMBER = re.compile(r"\d+\.\d{5,}(?:e[+-]?\d+)?|\d+(?:\.\d+)?e[+-]?\d+")
SHOWN = "_shown"


def comparable(text: str | list[str]) -> str:
    """The text with hashes left out, which depend on the time, and numbers rounded to five digits."""
    joined = text if isinstance(text, str) else "".join(text)
    return NUMBER.sub(lambda found: f"{float(found[0]):.5g}", HASH.sub("#", joined))


def as_script(source: str) -> str:
    """The cell with its last expression assigned to a name, as a notebook shows it."""
    tree = ast.parse(source)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.Assign([ast.Name(SHOWN, ast.Store())], last.value)
    return ast.unparse(ast.fix_missing_locations(tree))


def rerun(path: Path, folder: Path) -> int:
    """Run every cell in its order, compare its outputs with those that are stored, and count these."""
    names: dict[str, Any] = {}
    count = 0
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        script = folder / f"cell_{number}.py"
        script.write_text(as_script("".join(cell["source"])), encoding="utf-8")
        with redirect_stdout(StringIO()) as printed:
            names = runpy.run_path(str(script), {name: each for name, each in names.items() if name != SHOWN})
        stored = cell["outputs"]
        streams = "".join("".join(each["text"]) for each in stored if each["output_type"] == "stream")
        assert comparable(printed.getvalue()) == comparable(streams), cell["source"]
        results = [each["data"] for each in stored if each["output_type"] == "execute_result"]
        assert (names.get(SHOWN) is not None) == bool(results), cell["source"]
        for data in results:
            check_result(names[SHOWN], data)
        count += len(stored)
    return count


def check_result(shown: Any, data: dict[str, Any]) -> None:
    """The value shows what is stored: its text, its HTML, and a picture where there is one."""
    assert comparable(repr(shown)) == comparable(data["text/plain"])
    if "text/html" in data:
        assert comparable(shown._repr_html_()) == comparable(data["text/html"])
    if "image/png" in data:
        assert shown._repr_png_().startswith(b"\x89PNG")
    for kind, name in (("image/png", "_repr_png_"), ("text/html", "_repr_html_")):
        assert (kind in data) == (getattr(shown, name, lambda: None)() is not None)
