"""What `import cumulant` and a trivial question cost in a fresh interpreter."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from measure import Fact

_LIMIT = 1.3


def imports(quick: bool) -> Iterator[Fact]:
    """The two imports in turn, each in a fresh interpreter, so that a busy machine slows both alike."""
    repetitions = 7 if quick else 25
    modules = ("cumulant", "scipy.special")
    for module in modules:  # compile and warm the file cache
        _seconds(module)
    seconds: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(repetitions):
        for module in modules:
            seconds[module].append(_seconds(module))
    ours, theirs = (median(seconds[module]) for module in modules)
    detail = f"{ours * 1e3:.1f} ms and {theirs * 1e3:.1f} ms, medians of {repetitions} fresh interpreters"
    yield Fact("import cumulant / import scipy.special", ours / theirs, _LIMIT, detail)

    yield question(repetitions)


def question(repetitions: int) -> Fact:
    """A trivial question of the shell against the import, processor time of whole processes, taken in turn."""
    asked = ["-m", "cumulant", "epsilon", "Laplace(scale=2)", "--delta", "1e-6"]
    commands = {"question": asked, "import": ["-c", "import scipy.special"]}
    for command in commands.values():
        _spent(command)
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repetitions):
        for name, command in commands.items():
            seconds[name].append(_spent(command))
    ours, theirs = (median(seconds[name]) for name in commands)
    detail = f"{ours * 1e3:.0f} ms and {theirs * 1e3:.0f} ms of processor time, medians of {repetitions} processes"
    return Fact(
        "cumulant epsilon 'Laplace(scale=2)' --delta 1e-6 / python -c 'import scipy.special'",
        ours / theirs,
        1.5,
        detail,
    )


def _spent(command: list[str]) -> float:
    """Processor seconds of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True, env=_compiled())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _seconds(module: str) -> float:
    program = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=_compiled())
    return float(found.stdout)


def _compiled() -> dict[str, str]:
    """An environment in which what was compiled once is kept."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
