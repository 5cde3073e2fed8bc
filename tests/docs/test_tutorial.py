"""The code in the documentation runs, and the numbers written behind it are the ones it returns."""

import ast
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        *(page for room in ("", "bounds", "mechanisms") for page in (ROOT / "docs" / room).glob("*.md")),
    ]
)
WITH_FRAMEWORKS = {"how-to-train"}
"""Pages whose code needs torch; tests/integrations runs it."""
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"#\s+(\d+(?:\.(\d+))?(?:e([+-]?\d+))?)(?=$|[:;, ])")
ELSEWHERE = (
    "$ cumulant audit",
    "$ cumulant conformance",
    "$ cumulant figures",
)
"""Commands that take long or read files, and have tests of their own."""


def blocks(page: Path, kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text(encoding="utf-8")) if found == kind]


def checked(source: str) -> str:
    """The block with every expression that a number follows turned into a comparison."""
    tree, lines = ast.parse(source), source.splitlines()
    for node in tree.body:
        number = NUMBER.search(lines[(node.end_lineno or 1) - 1])
        if isinstance(node, ast.Expr) and number:
            call = ast.Call(ast.Name("_agrees", ast.Load()), [node.value, ast.Constant(number[0])], [])
            node.value = ast.copy_location(call, node.value)
    return ast.unparse(ast.fix_missing_locations(tree))


def agrees(value: Any, comment: str) -> None:
    """The value, rounded to nearest or upward, is what the comment says."""
    number = NUMBER.search(comment)
    assert number is not None
    unit = 10.0 ** (int(number[3] or 0) - len(number[2] or ""))
    assert -0.5 * unit <= float(number[1]) - float(value) <= unit, f"{value} is not {number[1]}"


RUN_HERE = [page for page in PAGES if blocks(page, "python") and page.stem not in WITH_FRAMEWORKS]


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.stem)
def test_python(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"_agrees": agrees}
    for number, source in enumerate(blocks(page, "python")):
        script = tmp_path / f"{page.stem}_{number}.py"
        script.write_text(checked(source), encoding="utf-8")
        names = runpy.run_path(str(script), names)


def commands() -> list[str]:
    lines = [line for page in PAGES for block in blocks(page, "console") for line in block.splitlines()]
    return sorted({line for line in lines if line.startswith("$ cumulant") and not line.startswith(ELSEWHERE)})


@pytest.mark.parametrize("command", commands())
def test_console(command: str, tmp_path: Path) -> None:
    words = shlex.split(command.removeprefix("$ cumulant"))
    found = subprocess.run(
        [sys.executable, "-m", "cumulant", *words], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout


def test_the_check_can_fail() -> None:
    agrees(1.2345, "# 1.235")
    agrees(1.2345, "# 1.234: to nearest")
    for wrong in ("# 1.233", "# 1.236", "# 1.4"):
        with pytest.raises(AssertionError):
            agrees(1.2345, wrong)
    assert "_agrees(f(x), '# 3')" in checked("f(x)  # 3")
