"""How the house is built: no circles of imports, and tests where the code is."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.tree

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "cumulant", ROOT / "tests"
MODULES = {
    ".".join(("cumulant", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}

ABOUT_SEVERAL = {"browser", "laws", "oracles", "docs", "pinned"}
"""Rooms of tests that are about no one file: laws over everything registered, reference values, pages, older peers."""

ABOUT_EVERYTHING = {"house", "import", "input", "threads", "wrong_types"}
"""Tests about no one file that stand beside the rooms or in one."""

ABOUT_A_ROOM = {
    "cli": {"mistakes"},
    "integrations": {"audited_loops", "hostile_loops", "how_to_train", "how_to_train_jax", "training_loops"},
    "ledger": {"adversary", "concurrency", "disturbance", "forgery", "kill", "model", "schema", "tamper"},
    "mechanisms": {"correlated", "local_reports", "promises"},
}
"""Attacks on a whole room, and documents that use it."""


def imported(path: Path) -> Iterator[str]:
    """The modules of the library that a file imports when it runs, inside of functions too."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
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


def test_the_tests_mirror_the_code() -> None:
    """tests/room/test_file.py is about src/cumulant/room/file.py."""
    lost = []
    for path in sorted(TESTS.rglob("test_*.py")):
        room, name = path.relative_to(TESTS).parent, path.stem.removeprefix("test_")
        mirrored = (SOURCE / room / f"{name}.py").exists()
        known = ABOUT_EVERYTHING | ABOUT_A_ROOM.get(room.name, set())
        if not mirrored and name not in known and room.name not in ABOUT_SEVERAL:
            lost.append(str(path.relative_to(TESTS)))
    assert lost == []


def test_every_room_has_tests() -> None:
    rooms = {path.relative_to(SOURCE).parts[0] for path in MODULES.values() if path.parent != SOURCE}
    assert {room for room in rooms if not list((TESTS / room).glob("test_*.py"))} <= {
        "figures"
    }  # tested by their command


@pytest.mark.parametrize("room", ["pairs", "sampling", "mechanisms"])
def test_nobody_asks_for_the_type_of_what_answers_for_itself(room: str) -> None:
    """No isinstance and no match on the classes of these rooms outside of their own files."""
    classes: dict[str, Path] = {}
    for path in sorted((SOURCE / room).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                wanted = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
            elif isinstance(node, ast.MatchClass):
                wanted = {each.id for each in ast.walk(node.cls) if isinstance(each, ast.Name)}
            else:
                continue
            asked += [f"{name}:{node.lineno} {each}" for each in wanted & classes.keys() if classes[each] != path]
    assert asked == []
