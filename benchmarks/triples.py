"""Pure mechanisms, reports and Laplace noise on samples of fixed size: both ends, their quotient, and what they cost.

    python -m benchmarks.triples

Every row is a process of its own; seconds are its processor time without the import: of epsilon alone, of the lower end
besides it, and of verifying both. Exits with 1 if an upper end is more than 0.2 % above what it was measured to be at first, a
lower end below that, or a row takes longer than is wanted.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context

import cumulant as cm


@dataclass(frozen=True, slots=True)
class Row:
    """A run, what is known of it, and how long its epsilon may take, in seconds."""

    run: str
    delta: str
    lower: float
    upper: float
    seconds: float | None = None


def _row(
    mechanism: str, rate: str, times: int, delta: str, lower: float, upper: float, seconds: float | None = None
) -> Row:
    return Row(f"{mechanism} @ WithoutReplacement(rate={rate}) * {times}", delta, lower, upper, seconds)


ROWS = (
    _row("PureDP(1)", "0.01", 1000, "1e-6", 1.5366, 1.5372, 0.5),
    _row("PureDP(1)", "0.001", 600_000, "1e-8", 4.9260, 4.947, 2.0),
    _row("PureDP(4)", "0.001", 10_000, "1e-8", 5.76145, 5.76147),
    _row("Laplace(scale=0.5)", "0.001", 600_000, "1e-8", 10.3406, 10.492, 3.0),
    _row("Laplace(scale=0.5, dimension=1)", "0.001", 600_000, "1e-8", 9.4025, 9.531),
    _row("Laplace(scale=0.5)", "0.001", 1000, "1e-8", 0.3315, 0.3569),
    _row("Laplace(scale=0.5)", "0.001", 10_000, "1e-8", 1.107, 1.148),
    _row("Laplace(scale=0.5)", "0.001", 100_000, "1e-8", 3.793, 3.872),
    _row("Laplace(scale=1)", "0.01", 10_000, "1e-6", 4.645, 4.812),
    _row("Laplace(scale=2)", "0.001", 600_000, "1e-8", 1.952, 1.992),
    _row("Laplace(scale=0.25)", "0.001", 10_000, "1e-8", 3.841, 4.054),
    _row("Laplace(scale=0.25)", "0.001", 100_000, "1e-8", 13.713, 14.467),
    _row("RandomizedResponse(p=0.9)", "0.01", 1000, "1e-6", 4.2287, 4.2401),
    _row("RandomizedResponse(p=0.9)", "0.001", 600_000, "1e-8", 13.273, 13.390),
)


ROUNDED = 3e-4
"""Of the lower ends above: they have four digits."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a process has found, and the seconds of epsilon, of both ends and of their verification."""

    epsilon: float
    lower: float
    by: str
    rigour: str
    checked: str
    seconds: tuple[float, float, float]


def measured(row: Row) -> Measured:
    """In this process, from nothing."""
    run = cm.parse(row.run)
    marks = [time.process_time()]
    epsilon = run.epsilon(delta=row.delta)
    marks.append(time.process_time())
    found = run.guarantee(delta=row.delta)
    marks.append(time.process_time())
    check = found.verify()
    marks.append(time.process_time())
    first, second, third = (after - before for before, after in pairwise(marks))
    checked = ("" if check.holds else "NOT ") + check.arithmetic
    return Measured(epsilon, found.lower or 0.0, found.route, found.rigour, checked, (first, second, third))


def missed(row: Row, found: Measured) -> list[str]:
    """Which of its bars it misses."""
    ends = found.epsilon <= row.upper * 1.002, found.lower >= row.lower * (1 - ROUNDED), found.lower <= found.epsilon
    wrong = [name for name, met in zip(("upper end", "lower end", "order of the ends"), ends, strict=True) if not met]
    if row.seconds is not None and found.seconds[0] > row.seconds:
        wrong.append(f"{row.seconds} s")
    return wrong + (["verification"] if found.checked.startswith("NOT") else [])


def main() -> int:
    """The table, row by row."""
    print("| run, delta | lower | upper | quotient | by | rigour | epsilon, s | lower end, s | verified by | s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    everything = True
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for row, found in zip(ROWS, pool.map(measured, ROWS), strict=True):
            first, second, third = (f"{each:.2f}" for each in found.seconds)
            quotient = f"{found.epsilon / found.lower:.4f}" if found.lower else ""
            ends = f"{found.lower:.5g} | {found.epsilon:.5g} | {quotient} | {found.by} | {found.rigour}"
            wrong = missed(row, found)
            everything = everything and not wrong
            note = f" missed: {', '.join(wrong)}" if wrong else ""
            print(
                f"| {row.run}, {row.delta} | {ends} | {first} | {second} | {found.checked} | {third} |{note}",
                flush=True,
            )
    return 0 if everything else 1


if __name__ == "__main__":
    sys.exit(main())
