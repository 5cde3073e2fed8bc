"""Importing the library stays light, and what it gives back has a name in it."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import cumulant as cm
from benchmarks import road
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.sampling.scheme import SCHEMES


def test_heavy_modules_are_not_loaded() -> None:
    heavy = [
        "flint",
        "typer",
        "rich",
        "scipy.optimize",
        "scipy.integrate",
        "scipy.fft",
        "matplotlib",
        "sqlite3",
        "psycopg",
    ]
    code = f"import sys, cumulant; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_and_usage_errors_load_no_numpy() -> None:
    """What makes `--help` slow is what it loads; the library behind a public name is loaded with the first name."""
    lines = [["--help"], ["--version"], ["ledger", "spend", "--help"], ["espilon"], ["dpsgd", "--nonsense"]]
    code = (
        "import sys, cumulant.cli.app as app\n"
        f"for line in {lines!r}:\n    app.answer(line)\n"
        "print([name for name in ('numpy', 'scipy', 'flint', 'rich', 'sqlite3') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_a_closed_form_loads_no_engine() -> None:
    """One Gaussian, in the shell with its sentence about an attacker: no line, no grid, no other mechanism, no scipy."""
    code = (
        "import sys\nsys.argv = ['cumulant', 'epsilon', 'Gaussian(sigma=5)', '--delta', '1e-6']\n"
        "from cumulant.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert any("an attacker with 1 %" in line for line in found)
    assert "cumulant.exact.closed_form" in found
    unwanted = (
        "typer",
        "rich",
        "scipy",
        "cumulant.exact.answer",
        "cumulant.exact.adaptive",
        "cumulant.exact.grid",
        "cumulant.exact.inversion",
        "cumulant.accounting.verification",
        "cumulant.pairs.laplace",
        "cumulant.pairs.response",
    )
    assert [each for each in found if each.startswith(unwanted)] == []
    own = [each for each in found if each.startswith("cumulant.mechanisms.")]
    assert own == ["cumulant.mechanisms.mechanism", "cumulant.mechanisms.gaussian"]


LONGEST_ROADS = {
    "paper, epsilon": (315, 40),
    "Poisson, guarantee": (320, 40),
    "closed form, epsilon": (86, 22),
    "paper, shell": (519, 58),
    "ledger, spend": (228, 31),
    "page, epsilon": (179, 28),
}
"""Functions and files of one answer, at most; whoever shortens a road lowers its limit."""


@pytest.mark.parametrize("question", list(road.QUESTIONS))
def test_the_road_of_one_answer_gets_no_longer(question: str) -> None:
    functions, files = road.road(question)
    most_functions, most_files = LONGEST_ROADS[question]
    assert 0 < functions <= most_functions
    assert 0 < files <= most_files


def test_a_function_is_not_hidden_by_the_module_of_its_name() -> None:
    code = (
        "import cumulant.calibrate, cumulant.sweep, cumulant as cm\n"
        "print(callable(cm.calibrate), callable(cm.sweep), cm.Gaussian(sigma=1))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "True True Gaussian(sigma=1)\n"


def test_a_name_is_what_type_checkers_think_it_is() -> None:
    """The imports that only type checkers read bind the same objects as the names that are loaded on demand."""
    seen = set()
    for node in ast.walk(ast.parse(Path(cm.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                for alias in statement.names:
                    assert getattr(cm, alias.name) is getattr(import_module(statement.module or ""), alias.name)
                    seen.add(alias.name)
    assert seen == set(cm.__all__) - {"__version__"}


def test_every_result_has_a_public_name() -> None:
    """What a public question returns can be named in an annotation, and says what it is by an example."""
    found = cm.PureDP(1).guarantee(delta=0)
    results = [
        found,
        found.evidence.terms[0],
        found.verify(),
        cm.calibrate("PureDP(?)", epsilon=1, delta=0),
        cm.BOUNDS["theorem9"],
    ]
    for result in results:
        name = type(result).__name__
        assert name in cm.__all__
        assert getattr(cm, name) is type(result)
        assert type(result).__doc__


def test_the_list_of_public_names_is_complete() -> None:
    """A public name is in the table of modules or registered by its file; asking for all of them binds nothing else."""
    differ = {*cm._MODULES, *MECHANISMS, *SCHEMES} ^ (set(cm.__all__) - {"__version__"})
    assert not differ, (
        f"{differ} differs; name it in cumulant/__init__.py, by its import and in __all__, see CONTRIBUTING"
    )
    for name in set(cm.__all__) - {"BOUNDS", "__version__"}:
        assert getattr(cm, name).__name__ == name
    assert cm.BOUNDS is cm.BOUNDS
    public = {name for name, value in vars(cm).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public - {"Any", "ModuleType", "TYPE_CHECKING", "import_module"} == set(cm.__all__) - {"__version__"}
