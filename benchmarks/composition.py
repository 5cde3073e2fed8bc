"""What a composition costs while the number of distinct mechanisms grows: the fastest of five batches, and memory.

python benchmarks/composition.py [MOST]
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from fractions import Fraction

import cumulant as cm

STEPS = (10, 100, 1000, 4000, 10_000, 40_000, 100_000)
BATCH = 200
REPETITIONS = 5


def mechanisms(first: int, last: int) -> list[cm.Expression]:
    """Distinct sampled mechanisms, made before the clock starts."""
    sample = cm.WithoutReplacement(rate="0.01")
    return [cm.Gaussian(sigma=Fraction(number, 97)) @ sample for number in range(first, last)]


def composed(size: int) -> tuple[cm.Accountant, int]:
    """An accountant of so many distinct mechanisms, and the bytes that it and they take."""
    tracemalloc.start()
    accountant = cm.Accountant()
    for each in mechanisms(1, 1 + size):
        accountant.compose(each)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()  # or it would be timed
    return accountant, held


def main(most: int = STEPS[-1]) -> None:
    """One line for each number of mechanisms up to `most`."""
    print(f"{'distinct':>9} {'compose new':>12} {'compose old':>12} {'bytes each':>11}")
    for size in (step for step in STEPS if step <= most):
        accountant, held = composed(size)
        seconds: dict[str, list[float]] = {"new": [], "old": []}
        for repetition in range(REPETITIONS):
            batch = mechanisms(1 + size + repetition * BATCH, 1 + size + (repetition + 1) * BATCH)
            for kind in seconds:  # the same ones again are old
                start = time.perf_counter()
                for each in batch:
                    accountant.compose(each)
                seconds[kind].append((time.perf_counter() - start) / BATCH)
        new, old = (1e6 * min(each) for each in seconds.values())
        print(f"{size:>9,} {new:>9.2f} µs {old:>9.2f} µs {held / size:>11,.0f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
