"""What `import cumulant` costs in a fresh interpreter."""

from __future__ import annotations

import os
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


def _seconds(module: str) -> float:
    program = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=compiled)
    return float(found.stdout)
