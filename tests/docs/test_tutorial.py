"""The code in the documentation runs, and the numbers written behind it are the ones it returns."""

import ast
import json
import re
import runpy
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from cumulant.accounting.text import doubled
from cumulant.cli.app import answer
from cumulant.notation import parse
from cumulant.web.questions import answer_question

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WITH_FRAMEWORKS = {"accounted-loops", "how-to-train", "how-to-train-jax", "training-loops"}
"""Pages whose code needs torch or JAX; tests/integrations runs it."""
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"#\s+(\d+(?:\.(\d+))?(?:e([+-]?\d+))?)(?=$|[:;, ])")
ELSEWHERE = {
    ("how-to-ledger", "shell"): "test_ledger_pages.py",
    ("how-to-operate-a-ledger", "shell"): "test_ledger_pages.py",
    ("how-to-operate-a-ledger", "sql"): "roles and policies: tests/ledger/test_postgres.py",
    (
        "how-to-operate-a-ledger",
        "text",
    ): "an upgrade in PostgreSQL: tests/ledger/test_postgres.py; the form of a file of keys",
    ("model-card", "markdown"): "what the code prints: test_model_card.py",
    ("model-card", "latex"): "what the code prints: test_model_card.py",
    ("cli", "text"): "what the shell prints: test_cli_page.py",
    ("README", "text"): "what a command prints: test_generated.py",
    ("index", "text"): "what a command prints: test_generated.py",
    ("faq", "text"): "a claim that is false: test_a_false_claim_of_a_page; a state of Opacus: tests/cli/test_dpsgd.py",
    ("reviewers-checklist", "text"): "a claim that is false: test_a_false_claim_of_a_page",
    ("explanation", "text"): "three words and two arrows",
    ("CONTRIBUTING", "text"): "three words and two arrows",
    ("CONTRIBUTING", "py"): "a file of its own, run in a process of its own: test_contributing.py",
}
"""Blocks that are run by another test, or that are no code."""

FILES = {"how-to-report": "setting.json", "faq": "state.json"}
"""The file that the JSON block of a page shows."""


def blocks(page: Path, kind: str) -> list[str]:
    return [text for each, text in found(page) if each == kind]


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


def found(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page in their order, as kind and text."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


RUN_HERE = [page for page in PAGES if {kind for kind, _ in found(page)} & {"python", "console", "http"}]


@pytest.fixture
def in_a_folder(tmp_path: Path) -> Iterator[Path]:
    """Run a test in a new folder, on a terminal of 120 columns.

    The fixture `monkeypatch` would forget all answers, and pages ask some questions again.
    """
    with chdir(tmp_path), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        yield tmp_path


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())
def test_every_block_runs_in_its_order(page: Path, in_a_folder: Path) -> None:
    """Python as a script, commands as the shell would, questions as the page answers them; numbers behind # are checked."""
    names: dict[str, Any] = {"_agrees": agrees}
    for number, (kind, source) in enumerate(found(page)):
        if kind == "python" and page.stem not in WITH_FRAMEWORKS:
            script = in_a_folder / f"block_{number}.py"
            script.write_text(checked(source), encoding="utf-8")
            names = runpy.run_path(str(script), names)
        elif kind == "console":
            for line in source.splitlines():
                carried_out(line)
        elif kind == "json":
            Path(FILES[page.stem]).write_text(json.dumps(json.loads(source)), encoding="utf-8")
        elif kind == "http":
            for line in source.splitlines():
                asked = re.fullmatch(r"POST /api/(\w+) +(\{.*\})", line)
                assert asked is not None, line
                assert answer_question(asked[1], json.loads(asked[2]))[0] == 200, line


def carried_out(line: str) -> None:
    """A line of the shell, as it stands; installing and building are looked up and not done again."""
    assert line.startswith("$ "), line
    command, _, out = line[2:].partition(" > ")
    words = shlex.split(command, comments=True)
    if words[:2] == ["pip", "install"]:
        extras = re.findall(r"\[([\w,-]+)\]", command)
        assert {each for some in extras for each in some.split(",")} <= EXTRAS, line
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
    elif words[0].endswith("bin/python"):
        assert (ROOT / words[1]).is_file(), line
    elif words[0] != "cumulant":
        assert (ROOT / words[0]).is_file(), line
    else:
        with redirect_stdout(StringIO()) as said:
            assert answer(words[1:]) == 0, line
        assert said.getvalue(), line
        if out:
            Path(out).write_text(said.getvalue(), encoding="utf-8")


EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_every_block_is_run_or_says_why_not() -> None:
    lost = []
    for page in PAGES:
        kinds = {kind for kind, _ in found(page)} - {"python", "console", "http", "json"}
        lost += [f"{page.stem}: {kind or 'no kind'}" for kind in kinds if (page.stem, kind) not in ELSEWHERE]
    assert lost == []
    known = {(page.stem, kind) for page in PAGES for kind, _ in found(page)}
    assert ELSEWHERE.keys() <= known


@pytest.mark.parametrize("name", ["faq", "reviewers-checklist"])
def test_a_false_claim_of_a_page(name: str) -> None:
    """Commands with a claim end with the code of their verdict, so that they are no console blocks."""
    lines = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").splitlines()
    claims = [shlex.split(line[2:])[1:] for line in lines if line.startswith("$ cumulant") and "--claim" in line]
    assert claims
    for claim in claims:
        with redirect_stdout(StringIO()) as said:
            assert answer(claim) == 1, claim
        assert "any-order false: at least" in " ".join(said.getvalue().split())


def test_the_check_can_fail() -> None:
    agrees(1.2345, "# 1.235")
    agrees(1.2345, "# 1.234: to nearest")
    for wrong in ("# 1.233", "# 1.236", "# 1.4"):
        with pytest.raises(AssertionError):
            agrees(1.2345, wrong)
    assert "_agrees(f(x), '# 3')" in checked("f(x)  # 3")


# ---- what people see first

PAPER = "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001)"
OPENINGS = (
    "README.md",
    "Makefile",
    "docs/index.md",
    "docs/explanation.md",
    "docs/how-to-calibrate.md",
    "docs/how-to-check.md",
)
COMMANDS = ("", "epsilon", "delta", "check", "calibrate", "sweep", "plot", "archive")
EXPRESSION = re.compile(
    r"(?:(?:cm\.)?(?:Gaussian|Laplace|PureDP|RandomizedResponse)\((?:[^()]|\([^()]*\))*\)"
    r"(?: @ (?:cm\.)?\w+\((?:[^()]|\([^()]*\))*\))?)"
)


def written(text: str) -> list[str]:
    """Every mechanism on a sample, or alone, in a text; what is looked for counts as 1."""
    found = [" ".join(re.sub(r"\?\w*", "1", each.replace("cm.", "")).split()) for each in EXPRESSION.findall(text)]
    return [re.sub(r"\{\w+\}", "1", each) for each in found]


def careful(text: str) -> bool:
    return bool(doubled(parse(text).record()))


def opening(name: str) -> str:
    if name in OPENINGS:
        return (ROOT / name).read_text(encoding="utf-8")
    out = StringIO()
    with redirect_stdout(out):
        assert answer([*name.split(), "--help"]) == 0
    return re.sub(r"\n +(?=@ )", " ", out.getvalue())  # examples that are folded before an '@'


@pytest.mark.parametrize("name", [*OPENINGS, *COMMANDS])
def test_what_people_see_first_is_dp_sgd_without_a_warning(name: str) -> None:
    """The flagship example was answered by "CAREFUL, FACTOR 2 … this number is too small"."""
    found = written(opening(name))
    assert found
    assert "noise_multiplier" in found[0] or "relation=" in found[0]
    assert "@ Poisson" in found[0]
    assert not careful(found[0])
    for each in found:
        assert not careful(each) or each.startswith((PAPER, "Gaussian(sigma=1) @ WithoutReplacement(rate=0.001)")), each


def test_the_package_opens_with_dp_sgd() -> None:
    import cumulant

    assert not careful(written(cumulant.__doc__ or "")[0])
    assert "noise_multiplier" in written(cumulant.__doc__ or "")[0]
