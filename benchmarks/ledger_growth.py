"""How a ledger grows: processor time and memory of each operation at 1,000, 10,000 and 100,000 entries.

    python -m benchmarks.ledger_growth [--entries 1000 10000 100000] [--url sqlite|postgresql]

Every operation runs in a process of its own and prints a row of the table in docs/how-to-operate-a-ledger.md. Exits with 1 if
a bar is missed: a spend at the end 1.5 times one at the beginning, verify 20 s and 100 MB, history 100 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median

import cumulant as cm
from cumulant.cli.app import answer
from tests.ledger.kill import place

ENTRIES = (1_000, 10_000, 100_000)
BATCH = 1_000
MOST_SECONDS = 20.0
"""Processor time of verify at the largest number of entries."""
MOST_MEGABYTES = 100.0
SLOWER = 1.5
"""A spend at the largest number of entries, as a part of one at the smallest: it reads one row and writes one."""

MEASURED = """
import json, resource, sys, time
import cumulant as cm
from benchmarks.ledger_growth import OPERATIONS
operation = OPERATIONS[sys.argv[2]]
ledger = cm.Ledger(sys.argv[1])
begun = time.process_time()
count = operation(ledger)
seconds = (time.process_time() - begun) / count
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def _spend(ledger: cm.Ledger) -> int:
    account = ledger.account("a")
    for _ in range(50):
        account.spend("Gaussian(sigma=100000)")
    return 50


def _verify(ledger: cm.Ledger) -> int:
    assert ledger.verify()
    return 1


def _history(ledger: cm.Ledger) -> int:
    """As `cumulant ledger history` prints it, into nowhere."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        assert answer(["ledger", "history", ledger._store.url, "a"]) == 0
    return 1


def _status(ledger: cm.Ledger) -> int:
    assert ledger.account("a").status().entries
    return 1


def _open(ledger: cm.Ledger) -> int:
    assert ledger.account("a")
    return 1


OPERATIONS: dict[str, Callable[[cm.Ledger], int]] = {
    "spend": _spend,
    "open": _open,
    "status": _status,
    "verify": _verify,
    "history": _history,
}


def fill(url: str, entries: int) -> None:
    """Make an account with so many spends of a hundred different mechanisms."""
    rng = random.Random(1)
    some = [cm.Gaussian(sigma=rng.uniform(50_000, 90_000)) for _ in range(100)]
    account = cm.Ledger(url).create("a", epsilon=1, delta="1e-6")
    for start in range(0, entries, BATCH):
        account.spend_all([rng.choice(some) for _ in range(min(BATCH, entries - start))])


def measured(url: str, name: str) -> tuple[float, float]:
    """Seconds of processor time and megabytes of one operation, the median of three processes."""
    rows = []
    for _ in range(3 if name != "verify" else 1):
        command = [sys.executable, "-c", MEASURED, url, name]
        rows.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return median(row[0] for row in rows), median(row[1] for row in rows)


def table(kind: str, sizes: Sequence[int]) -> tuple[list[str], list[str]]:
    """The lines of the table, and the bars that were missed."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in OPERATIONS}
    for size in sizes:
        with ExitStack() as stack:
            url, _ = stack.enter_context(place(kind, crash=False))
            fill(url, size)
            for name in OPERATIONS:
                found[name].append(measured(url, name))
    lines = [
        f"| {kind} | {' | '.join(f'{size:,} entries' for size in sizes)} |",
        f"|---|{'---|' * len(sizes)}",
        *(
            f"| {name} | {' | '.join(f'{_seconds(seconds)}, {memory:.0f} MB' for seconds, memory in row)} |"
            for name, row in found.items()
        ),
    ]
    missed = [
        sentence
        for sentence, good in (
            ("a spend is slower at the end", found["spend"][-1][0] <= SLOWER * found["spend"][0][0]),
            ("verify takes too long", found["verify"][-1][0] <= MOST_SECONDS),
            ("verify takes too much memory", found["verify"][-1][1] <= MOST_MEGABYTES),
            ("history takes too much memory", found["history"][-1][1] <= MOST_MEGABYTES),
        )
        if not good
    ]
    return lines, missed


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.1f} s"


def main() -> int:
    """Print the table; 1 if a bar was missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, nargs="+", default=list(ENTRIES))
    parser.add_argument("--url", choices=["sqlite", "postgresql"], default="sqlite")
    given = parser.parse_args()
    lines, missed = table(given.url, given.entries)
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, *(f"! {sentence}" for sentence in missed)]))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
