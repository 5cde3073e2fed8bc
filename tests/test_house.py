"""Rules of the tree: no circles of imports, tests where the code is, plain first lines, documented constants."""

import ast
import json
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.tree

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "cumulant", ROOT / "tests"
MODULES = {
    ".".join(("cumulant", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}

RATCHET = json.loads((TESTS / "house.json").read_text(encoding="utf-8"))
"""What is still to be done, file by file: these numbers may fall and never rise."""

ABOUT_SEVERAL = {"browser", "docs", "laws", "oracles", "pinned"}
"""Folders of tests that are about no one file: laws over everything registered, reference values, pages, older peers."""

ABOUT_EVERYTHING = {"api", "house", "import", "input", "threads", "wrong_types"}
"""Tests about no one file that stand beside the folders or in one."""

ABOUT_A_PACKAGE = {
    "cli": {"mistakes"},
    "integrations": {
        "audited_loops",
        "hostile_loops",
        "how_to_train",
        "how_to_train_jax",
        "individual_descent",
        "individual_filters",
        "noisy_gradients",
        "notebook",
        "training_loops",
    },
    "ledger": {"adversary", "concurrency", "disturbance", "forgery", "kill", "model", "schema", "tamper"},
    "mechanisms": {"correlated", "local_reports", "promises"},
}
"""Attacks on a whole package, and documents that use it."""

BANNED_OPENINGS = ("The same", "What ", "Whether", "Who ", "Of ", "That of", "Where ", "How ", "Which ")
"""First words of a docstring that leave the reader without a subject."""

SHORT = ("losses", "pairs", "numerics", "curves", "conversion")
"""Packages in which every first line has at most 90 characters."""

EXPLAINED = (
    "exact",
    "losses",
    "pairs",
    "numerics",
    "curves",
    "bounds",
    "conversion",
    "accounting",
    "filters",
    "sampling",
)
"""Packages in which every module constant has a reason."""


@cache
def parsed(text: str) -> ast.Module:
    """Return the tree of a file, which several rules read."""
    return ast.parse(text)


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of the library that a file imports when it runs, inside of functions too."""
    waiting: list[ast.AST] = [parsed(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                deep = f"{node.module}.{alias.name}"
                yield deep if deep in MODULES else node.module
        waiting.extend(ast.iter_child_nodes(node))


def docstrings(text: str) -> Iterator[str]:
    """Yield the docstrings of a module, of its classes, functions, constants and attributes."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
            for named, after in pairwise(node.body):
                if isinstance(named, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                    found = after.value.value if isinstance(after.value, ast.Constant) else None
                    yield found if isinstance(found, str) else ""


def banned_openings(text: str) -> list[str]:
    """Return the first lines of docstrings that begin with a banned opening."""
    return [found.split("\n")[0] for found in docstrings(text) if found.startswith(BANNED_OPENINGS)]


def undocumented_constants(text: str) -> list[str]:
    """Return the module constants without a docstring or comment of their own; several on one line share none."""
    lines, body, found = text.splitlines(), parsed(text).body, []
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        constants = [name for name in names if name.isupper()]
        explained = (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        )
        explained |= "#" in lines[node.lineno - 1] or lines[node.lineno - 2].lstrip().startswith("#")
        if constants and (not explained or len(constants) > 1):
            found += constants
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even by imports inside of functions: those only load late what few need."""
    graph = {name: {each for each in imported(path) if each in MODULES} - {name} for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_a_circle_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    file.write_text("def late():\n    from cumulant.pairs import pair\n    import cumulant.relation\n")
    assert set(imported(file)) == {"cumulant.pairs.pair", "cumulant.relation"}


def mirrored(path: Path) -> Path | None:
    """Return the module that a test file is about: test_file.py, or test_file_topic.py for one topic of it."""
    folder, words = SOURCE / path.relative_to(TESTS).parent, path.stem.removeprefix("test_").split("_")
    for size in range(len(words), 0, -1):
        module = folder / f"{'_'.join(words[:size])}.py"
        if module.exists():
            return module
    return None


def test_every_test_file_mirrors_a_module() -> None:
    """tests/package/test_file.py is about src/cumulant/package/file.py."""
    lost = []
    for path in sorted(TESTS.rglob("test_*.py")):
        folder, name = path.relative_to(TESTS).parent, path.stem.removeprefix("test_")
        known = ABOUT_EVERYTHING | ABOUT_A_PACKAGE.get(folder.name, set())
        if name not in known and folder.name not in ABOUT_SEVERAL and mirrored(path) is None:
            lost.append(str(path.relative_to(TESTS)))
    assert lost == []


def test_every_module_is_mirrored_by_a_test_file() -> None:
    """Or stands in a list, with the reason."""
    tested = {mirrored(path) for path in TESTS.rglob("test_*.py")}
    alone = {str(path.relative_to(SOURCE)) for path in MODULES.values() if path.stem[:2] != "__" and path not in tested}
    elsewhere = RATCHET["tested_elsewhere"]
    assert sorted(alone - elsewhere.keys()) == []
    assert all(elsewhere.values())


def test_every_docstring_begins_with_a_subject_or_a_verb() -> None:
    found = {str(path.relative_to(ROOT)): len(banned_openings(path.read_text("utf-8"))) for path in MODULES.values()}
    allowed = RATCHET["banned_openings"]
    assert {file: count for file, count in found.items() if count > allowed.get(file, 0)} == {}


@pytest.mark.parametrize("package", SHORT)
def test_every_first_line_is_short(package: str) -> None:
    """A first line is read in a list of names: it has at most 90 characters, and its sentence ends there."""
    long = []
    for path in sorted((SOURCE / package).rglob("*.py")):
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                first, *rest = (ast.get_docstring(node) or "").split("\n")
                if len(first) > 90 or (rest and rest[0]):
                    long.append(f"{path.name}: {first}")
    assert long == []


def test_every_constant_has_a_reason() -> None:
    files = [path for package in EXPLAINED for path in (SOURCE / package).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): len(undocumented_constants(path.read_text("utf-8"))) for path in files}
    allowed = RATCHET["undocumented_constants"]
    assert {file: count for file, count in found.items() if count > allowed.get(file, 0)} == {}


def test_the_rules_of_language_can_fail() -> None:
    assert banned_openings('"""Return it."""\ndef f():\n    """What it is."""\n') == ["What it is."]
    attribute = 'A = 1\n"""Of bits."""\nclass C:\n    b: int = 2\n    """How many."""\n'
    assert banned_openings(attribute) == ["Of bits.", "How many."]
    assert undocumented_constants('A = 1\nB, _C = 1, 2\n"""Why."""\nD = 3  # bits; convention\n') == ["A", "B", "_C"]


@pytest.mark.parametrize("package", ["pairs", "sampling", "mechanisms"])
def test_nobody_asks_for_the_type_of_what_answers_for_itself(package: str) -> None:
    """No isinstance and no match on the classes of these packages outside of their own files."""
    classes: dict[str, Path] = {}
    for path in sorted((SOURCE / package).glob("*.py")):
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes[node.name] = path
    for general in (
        "Mechanism",
        "Expression",
        "Run",
        "Sampled",
        "Scheme",
        "Pair",
    ):  # what is no one of them at all is refused
        classes.pop(general, None)
    asked = []
    for name, path in MODULES.items():
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                wanted = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
            elif isinstance(node, ast.MatchClass):
                wanted = {each.id for each in ast.walk(node.cls) if isinstance(each, ast.Name)}
            else:
                continue
            asked += [f"{name}:{node.lineno} {each}" for each in wanted & classes.keys() if classes[each] != path]
    assert asked == []
