"""Hunt for jumps of epsilon over delta in random allocation: `python -m benchmarks.hunt_allocation [SETTINGS [SEED]]`.

A run is a random noise, number of steps and number of epochs; ten deltas of it, a factor 3 apart, are ten settings that share
its laws. A jump is an epsilon that falls with delta, or that rises by more than three times what it rose before: the rises of a
smooth run fall slowly. Each answer is also compared with one release per epoch, and every tenth with its lower end.
"""

from __future__ import annotations

import random
import sys
import time

import cumulant as cm

DELTAS = 10
"""Deltas of one run; convention."""
APART = 3.0
"""The factor between neighbouring deltas; convention."""
STEEPER = 3.0
"""A rise over the one before it that counts as a jump; chosen by hand, because rises of smooth runs fall."""
ROUGH = 0.01
"""The part of epsilon that may be due to the accuracy of the answers, 1e-3 by default, and to a largest loss."""


def setting(rng: random.Random) -> tuple[cm.Expression, cm.Expression, float]:
    """Draw a run, the same run without amplification, and the largest delta."""
    sigma = f"{10 ** rng.uniform(-0.5, 0.8):.3g}"
    steps, epochs = int(10 ** rng.uniform(0.31, 4)), rng.choice([1, 1, 1, 2, 10, 100])
    kind = rng.choice(["gaussian", "gaussian", "laplace", "response"])
    base: cm.Mechanism
    if kind == "gaussian":
        base = cm.Gaussian(sigma=sigma)
    elif kind == "laplace":
        base = cm.Laplace(scale=sigma)
    else:
        base = cm.RandomizedResponse(p=f"{rng.uniform(0.55, 0.95):.3g}")
    return base @ cm.RandomAllocation(steps=steps) * epochs, base * epochs, 10 ** rng.uniform(-9, -3)


def found_in(rng: random.Random) -> list[str]:
    """Return what is wrong with the ten settings of one run."""
    run, plain, largest = setting(rng)
    deltas = [largest / APART**i for i in range(DELTAS)]
    epsilons, most = [run.epsilon(delta) for delta in deltas], [plain.epsilon(delta) for delta in deltas]
    wrong = []
    for i, (delta, epsilon) in enumerate(zip(deltas, epsilons, strict=True)):
        if epsilon > most[i] * (1 + 1e-9):
            wrong.append(f"{run} at {delta:.3g}: {epsilon} is above one release per epoch, {most[i]}")
        if i and epsilon < epsilons[i - 1] * (1 - 1e-3):
            wrong.append(f"{run} at {delta:.3g}: epsilon falls from {epsilons[i - 1]} to {epsilon}")
        if i > 1 and epsilons[i - 2] > 0 and epsilon - epsilons[i - 1] > _most_rise(epsilons[i - 2], epsilons[i - 1]):
            needed = run.guarantee(delta=delta).lower  # few outputs have few losses, and what is needed jumps, too
            if needed is None or needed < epsilon * (1 - ROUGH):
                wrong.append(f"{run} at {delta:.3g}: epsilon jumps from {epsilons[i - 1]} to {epsilon}")
    asked = rng.choice(deltas)
    lower = run.guarantee(delta=asked).lower
    if lower is not None and lower > epsilons[deltas.index(asked)]:
        wrong.append(f"{run} at {asked:.3g}: the lower end {lower} is above {epsilons[deltas.index(asked)]}")
    return wrong


def _most_rise(before: float, last: float) -> float:
    """Return the rise that is not yet a jump; small ones are within the accuracy of an answer."""
    return STEEPER * max(last - before, 0.0) + ROUGH * last + 1e-9


def main(settings: int = 1000, seed: int = 0) -> int:
    """Hunt through so many settings and print what was found."""
    wrong, start = 0, time.process_time()
    for number in range(-(-settings // DELTAS)):
        for told in found_in(random.Random(f"{seed} {number}")):
            wrong += 1
            print(f"{number}: {told}", flush=True)
    print(f"{settings} settings, {wrong} found, {time.process_time() - start:.0f} s of processor time")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in sys.argv[1:3])))
