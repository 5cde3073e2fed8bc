"""Importing the library stays light."""

import subprocess
import sys


def test_heavy_modules_are_not_loaded() -> None:
    heavy = ["flint", "typer", "rich", "scipy.optimize", "scipy.integrate", "scipy.fft", "matplotlib"]
    code = f"import sys, cumulant; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
