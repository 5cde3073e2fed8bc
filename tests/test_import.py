"""Importing the library stays light, and what it gives back has a name in it."""

import inspect
import subprocess
import sys

import cumulant as cm


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
    public = {name for name, value in vars(cm).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public - {"Any", "TYPE_CHECKING"} == set(cm.__all__) - {"__version__", *cm._LATER}
    assert all(getattr(cm, name).__name__ == name for name in cm._LATER)
    assert set(cm._LATER) <= set(cm.__all__)
