"""The corners: questions that once took long or much memory, each in a process of its own.

    python -m benchmarks.corners [--json]

Processor seconds of the question alone, and the peak memory of its process, Python and its libraries included (import alone
is the first row). No question should take more than 5 seconds or 500 MB; exits with 1 if one does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

MOST_SECONDS, MOST_MEGABYTES = 5.0, 500.0
PAPER = "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000"
SGD = "Gaussian(sigma=1) @ Poisson(rate=256/60000) * 23400"
MIXED = "Gaussian(sigma=1000) @ Poisson(rate=0.01) * 1000000 + Gaussian(sigma=0.5) @ Poisson(rate=0.01) * 10"

PARSED = "cm.parse({text!r}).{question}"
MASSES = "(cm.from_masses(law(997, {size}), law(991, {size})) * 100).epsilon('1e-6')"


def masses(size: int) -> str:
    """A law of so many atoms, whose losses all differ."""
    return MASSES.format(size=size)


def parsed(text: str, question: str) -> str:
    """A question about a run that is written down."""
    return PARSED.format(text=text, question=question)


CORNERS = {
    "import": "None",
    "paper, accuracy 1e-5": parsed(PAPER, "epsilon('1e-8', accuracy='1e-5')"),
    "paper, accuracy 1e-6": parsed(PAPER, "epsilon('1e-8', accuracy='1e-6')"),
    "paper, accuracy 1e-12": parsed(PAPER, "epsilon('1e-8', accuracy='1e-12')"),
    "paper, guarantee, accuracy 1e-6": parsed(PAPER, "guarantee('1e-8', accuracy='1e-6')"),
    "from_masses, 200 atoms x 100": masses(200),
    "from_masses, 1000 atoms x 100": masses(1000),
    "Poisson, sigma 1000 x 1e6 + sigma 0.5 x 10": parsed(MIXED, "epsilon('1e-6')"),
    "the same, guarantee": parsed(MIXED, "guarantee('1e-6')"),
    "Poisson, 23,400 rounds, accuracy 1e-6": parsed(SGD, "epsilon('1e-5', accuracy='1e-6')"),
    "without replacement, 1e7 rounds": parsed(PAPER.replace("600000", "10000000"), "epsilon('1e-8')"),
    "Poisson, 1e7 rounds": parsed(SGD.replace("23400", "10000000"), "epsilon('1e-5')"),
    "Poisson, 1e8 rounds": parsed(SGD.replace("23400", "100000000"), "epsilon('1e-5')"),
    "sigma 0.3, rate 0.001, 600,000 rounds": parsed(PAPER.replace("sigma=5", "sigma=0.3"), "epsilon('1e-8')"),
    "sigma 0.3, rate 0.5, 1,000 rounds": parsed(
        "Gaussian(sigma=0.3) @ WithoutReplacement(rate=0.5) * 1000", "epsilon('1e-8')"
    ),
    "paper, delta 0.1": parsed(PAPER, "epsilon('0.1')"),
    "paper, delta 1e-30": parsed(PAPER, "epsilon('1e-30')"),
    "Laplace(0.02), 1,000 rounds": parsed(
        "Laplace(scale=0.02) @ WithoutReplacement(rate=0.01) * 1000", "epsilon('1e-6')"
    ),
    "Laplace(1e4) x 1e5 + Laplace(0.1)": parsed(
        "Laplace(scale=10000) @ Poisson(rate=0.01) * 100000 + Laplace(scale=0.1) @ Poisson(rate=0.01)",
        "epsilon('1e-6')",
    ),
    "100 kinds of pure privacy": parsed(
        " + ".join(f"PureDP(epsilon={(100 + i) / 10000}) * 10" for i in range(100)), "epsilon('1e-6')"
    ),
    "paper's round twice": parsed(PAPER.replace("600000", "2"), "epsilon('1e-8')"),
    "paper's round 10 times": parsed(PAPER.replace("600000", "10"), "epsilon('1e-8')"),
}

_PROCESS = """
import resource, time
from fractions import Fraction
import cumulant as cm

def law(modulus, size):
    parts = [modulus + (i * i * i + 7 * i) % modulus for i in range(size)]
    return [Fraction(part, sum(parts)) for part in parts]

start = time.process_time()
found = {question}
seconds = time.process_time() - start
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, getattr(found, "epsilon", found))
"""


def main() -> int:
    """Ask each, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, bad = [], 0
    if not options.json:
        print("| corner | seconds | MB | epsilon |\n|---|---|---|---|", flush=True)
    for name, question in CORNERS.items():
        command = [sys.executable, "-c", _PROCESS.format(question=question)]
        seconds, memory, value = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        rows.append({"corner": name, "seconds": float(seconds), "megabytes": float(memory), "epsilon": value})
        bad += float(seconds) > MOST_SECONDS or float(memory) > MOST_MEGABYTES
        if not options.json:
            print(f"| {name} | {float(seconds):.2f} | {float(memory):.0f} | {value} |", flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
