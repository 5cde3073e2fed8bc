"""Count the functions and files that one answer runs through: python -m benchmarks.road

Each question is asked in a fresh process under `sys.setprofile`. Only functions of `cumulant` count, each once; the bodies of
modules and classes, and what they call when they are imported, do not. A short road is one that a reader can follow.
"""

from __future__ import annotations

import json
import subprocess
import sys

QUESTIONS = {
    "paper, epsilon": "(cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate='0.001') * 600_000).epsilon(1e-8)",
    "Poisson, guarantee": "(cm.Gaussian(sigma='1.1') @ cm.Poisson(rate='0.01') * 1000).guarantee(delta=1e-6)",
    "closed form, epsilon": "cm.Gaussian(sigma=5).epsilon(1e-6)",
    "paper, shell": "main(['epsilon', 'Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000', '--delta', '1e-8'])",
    "ledger, spend": "account.spend(cm.Gaussian(sigma=20), key='a')",
    "page, epsilon": "answer('epsilon', {'run': 'Gaussian(sigma=5) * 10', 'delta': '1e-6'})",
}
"""A question by its name, as Python; `PREPARATION` runs before the count starts."""

PREPARATION = {
    "paper, shell": "from cumulant.cli.app import answer as main",
    "ledger, spend": "import tempfile; account = cm.Ledger(f'sqlite:///{tempfile.mkdtemp()}/budget.db').create("
    "'a', epsilon=1, delta=1e-6, unit='person')",
    "page, epsilon": "from cumulant.web.questions import answer_question as answer",
}

TRACER = """
import contextlib, io, json, os, sys
import cumulant as cm
cm.Gaussian, cm.WithoutReplacement, cm.Poisson  # a name is loaded when it is first used
{preparation}
home = os.path.dirname(cm.__file__)
seen = set()
def count(frame, event, argument):
    code = frame.f_code
    # a function has its own local names; the bodies of modules and classes run without this flag
    if event == "call" and code.co_filename.startswith(home) and code.co_flags & 2 and not imported(frame.f_back):
        seen.add((code.co_filename, code.co_qualname))
def imported(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(home):
            return True
        frame = frame.f_back
    return False
with contextlib.redirect_stdout(io.StringIO()):
    sys.setprofile(count)
    {question}
    sys.setprofile(None)
print(json.dumps([len(seen), len({{file for file, _ in seen}})]))
"""


def road(name: str) -> tuple[int, int]:
    """Return how many functions and files one question runs through."""
    script = TRACER.format(preparation=PREPARATION.get(name, ""), question=QUESTIONS[name])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    functions, files = json.loads(done.stdout.splitlines()[-1])
    return functions, files


def main() -> None:
    """Print one line per question."""
    print(f"{'question':<24}{'functions':>10}{'files':>8}")
    for name in QUESTIONS:
        functions, files = road(name)
        print(f"{name:<24}{functions:>10}{files:>8}")


if __name__ == "__main__":
    main()
