"""Hunt for jumps of epsilon over delta in random allocation: `python -m benchmarks.hunt_allocation [SETTINGS [SEED]]`.

Every setting is a random noise, number of steps and number of epochs with two deltas that are a factor 3 apart. A jump is an
epsilon that falls with delta, or that grows by more than the unamplified run does and by more than half of itself. Each answer
is also compared with its lower end and with one release per epoch.
"""

from __future__ import annotations

import random
import sys

import cumulant as cm


def setting(rng: random.Random) -> tuple[cm.Expression, cm.Expression, float]:
    """Draw a run, the same run without amplification, and a delta."""
    sigma = f"{10 ** rng.uniform(-0.5, 0.8):.3g}"
    steps, epochs = int(10 ** rng.uniform(0.31, 4)), rng.choice([1, 1, 2, 10, 100])
    kind = rng.choice(["gaussian", "gaussian", "laplace", "response"])
    base: cm.Mechanism
    if kind == "gaussian":
        base = cm.Gaussian(sigma=sigma)
    elif kind == "laplace":
        base = cm.Laplace(scale=sigma)
    else:
        base = cm.RandomizedResponse(p=f"{rng.uniform(0.55, 0.95):.3g}")
    return base @ cm.RandomAllocation(steps=steps) * epochs, base * epochs, 10 ** rng.uniform(-14, -3)


def found_in(rng: random.Random) -> str:
    """Return what is wrong with one setting; empty if nothing is."""
    run, plain, delta = setting(rng)
    first, second = (run.guarantee(delta=each) for each in (delta, delta / 3))
    if second.epsilon < first.epsilon * (1 - 1e-3):
        return f"{run} at {delta:.3g}: epsilon falls from {first.epsilon} to {second.epsilon}"
    room = max(plain.epsilon(delta / 3) - plain.epsilon(delta), 0.5 * first.epsilon) + 1e-9
    if second.epsilon > first.epsilon + room:
        return f"{run} at {delta:.3g}: epsilon jumps from {first.epsilon} to {second.epsilon}"
    for found, each in ((first, delta), (second, delta / 3)):
        if found.epsilon > plain.epsilon(each) * (1 + 1e-9):
            return f"{run} at {each:.3g}: {found.epsilon} is above one release per epoch"
        if found.lower is not None and found.lower > found.epsilon:
            return f"{run} at {each:.3g}: the lower end {found.lower} is above {found.epsilon}"
    return ""


def main(settings: int = 1000, seed: int = 0) -> int:
    """Hunt through so many settings and print what was found."""
    wrong = 0
    for number in range(settings):
        if told := found_in(random.Random(f"{seed} {number}")):
            wrong += 1
            print(f"{number}: {told}", flush=True)
    print(f"{settings} settings, {wrong} found")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in sys.argv[1:3])))
