"""Attack laws that need no truth: every registered mechanism on every kind of sample inside of every combinator.

    python -m benchmarks.hunt_laws [--instances 3000] [--seed 1] [--jobs 2] [--limit 20] [--minutes 8]

Of each run it is asked whether

* epsilon does not rise with delta, from 0 on, and delta not with epsilon; Rényi divergences do not fall with the order;
  the best answer is not above the one by Rényi divergences;
* what is printed holds: `run.check(epsilon=run.epsilon(delta), delta=delta)` is never "false", and "holds" where it is proved;
* equal runs have equal curves, a run is what its text says, and runs of two Python objects are two, whatever they are called.

Every fault is printed with its number, from which it is drawn again. A run that takes longer than the limit is counted as slow.
Exits with 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import cumulant as cm
from benchmarks.clock import Slow, limited, report, within
from benchmarks.settings import DRAWS, decimal
from cumulant.accounting.question import DEFAULT_ACCURACY
from cumulant.mechanisms.mechanism import Expression

DELTAS = ("0", "1e-300", "1e-12", "1e-6", "1e-3", "0.2")
EPSILONS = ("0", "0.01", "0.3", "1", "4")
ORDERS = (1.0, 1.5, 2.0, 5.0, 30.0, math.inf)
BETWEEN = ORDERS[1:-1]
ROUNDED = 1e-9
"""The part by which numbers that are the same up to rounding may differ."""

NEARLY = float(DEFAULT_ACCURACY) + ROUNDED
"""The part by which answers of a grid of this accuracy may differ."""

TWO_STEPS = 0.8
"""The part to which a bound on two steps may fall where that on one grows.

Derived: Mironov's Proposition 11 has (a - 1/2) / (a - 1) times the divergence of one step, and once the divergence itself:
2 + 1 / (2 (a - 1)) in all, which falls from 2.5 at order 2 to 2.
"""

Draw = Callable[[random.Random], Expression]
Wrap = Callable[[random.Random, Draw], Expression]


def rate(rng: random.Random) -> str:
    """A rate of samples, from rare to certain."""
    return decimal(rng, -4, -0.01)


SAMPLES: dict[str, Callable[[random.Random], Any] | None] = {
    "none": None,
    "Poisson": lambda rng: cm.Poisson(rate=rate(rng)),
    "Poisson, replaced": lambda rng: cm.Poisson(rate=rate(rng), relation="replace-one"),
    "Poisson, special": lambda rng: cm.Poisson(rate=rate(rng), relation="replace-special"),
    "WithoutReplacement": lambda rng: cm.WithoutReplacement(rate=rate(rng)),
    "WithoutReplacement, added": lambda rng: cm.WithoutReplacement(rate=rate(rng), relation="add-remove"),
    "WithReplacement": lambda rng: cm.WithReplacement(sample=rng.randint(1, 50), population=rng.randint(50, 5000)),
    "TruncatedPoisson": lambda rng: cm.TruncatedPoisson(
        rate=rate(rng), limit=rng.randint(1, 50), population=rng.randint(50, 500)
    ),
    "RandomAllocation": lambda rng: cm.RandomAllocation(steps=rng.randint(2, 100)),
}


def part(rng: random.Random, draw: Draw) -> Expression:
    """One more of what is drawn, or any mechanism: what runs beside it."""
    return draw(rng) if rng.random() < 0.5 else DRAWS[rng.choice(sorted(DRAWS))](rng)


COMBINATORS: dict[str, Wrap] = {
    "alone": lambda rng, draw: draw(rng),
    "repeated": lambda rng, draw: draw(rng) * rng.choice((2, 30, 1000)),
    "composed": lambda rng, draw: draw(rng) * 3 + part(rng, draw),
    "grouped": lambda rng, draw: draw(rng) * rng.choice((1, 10)) @ cm.Group(size=rng.randint(2, 5)),
    "selected": lambda rng, draw: draw(rng) @ cm.RepeatAndSelect(mean=rng.randint(2, 20), shape=rng.choice((0, 1, 1))),
    "selected of a Poisson number": lambda rng, draw: (
        draw(rng) @ cm.RepeatAndSelect(mean=rng.randint(1, 20), number="poisson")
    ),
    "shuffled": lambda rng, draw: draw(rng) @ cm.Shuffle(reports=rng.randint(2, 1000)),
    "parallel": lambda rng, draw: cm.parallel(draw(rng), part(rng, draw)),
    "parallel by position": lambda rng, draw: cm.parallel(draw(rng), part(rng, draw), by="position"),
    "parallel, moved": lambda rng, draw: cm.parallel(draw(rng), part(rng, draw), relation="replace-one"),
}
PLACES = [(name, sample, combinator) for combinator in COMBINATORS for sample in SAMPLES for name in sorted(DRAWS)]
"""Every mechanism on every kind of sample inside of every combinator."""


def place(number: int) -> tuple[str, str, str]:
    """Mechanism, sample and combinator of a number; neighbouring numbers are far apart."""
    return PLACES[number * 7919 % len(PLACES)]


def drawn(number: int) -> Expression:
    """The run of this number; the same place comes again after all others, with other parameters."""
    name, sample, combinator = place(number)
    return COMBINATORS[combinator](random.Random(number), _inner(name, sample))


def _inner(name: str, sample: str) -> Draw:
    scheme = SAMPLES[sample]
    return DRAWS[name] if scheme is None else lambda rng: DRAWS[name](rng) @ scheme(rng)


# ---- laws


def doublings(run: Expression) -> int:
    """How often a bound on one step is doubled: for groups, and for a record that moves between parts."""
    moves = 'relation="replace-one"' in str(run) and "parallel" in str(run)
    return math.ceil(math.log2(run.records_changed)) + moves


def disorder(run: Expression) -> Iterator[str]:
    """Numbers that rise where they must not, or fall."""
    epsilons = [float(x) for x in run.epsilon(DELTAS)]
    for (small, more), (large, less) in pairwise(zip(DELTAS, epsilons, strict=True)):
        if less > more * (1 + NEARLY) + 1e-12:
            yield f"epsilon({small}) = {more!r}, epsilon({large}) = {less!r}"
    deltas = [float(x) for x in run.delta(EPSILONS)]
    for (small, more), (large, less) in pairwise(zip(EPSILONS, deltas, strict=True)):
        if less > more * (1 + NEARLY) + 1e-300:
            yield f"delta({small}) = {more!r}, delta({large}) = {less!r}"
    curve = np.asarray(run.rdp(ORDERS))
    if not (curve[1:] >= curve[:-1] * (TWO_STEPS ** doublings(run) - ROUNDED)).all():
        yield f"rdp({list(ORDERS)}) = {curve.tolist()}"
    for delta, best, divergence in zip(DELTAS, epsilons, run.epsilon(DELTAS, method="rdp"), strict=True):
        if best > float(divergence) * (1 + ROUNDED):
            yield f'epsilon({delta}) = {best!r}, by method="rdp" {float(divergence)!r}'


def printed(run: Expression) -> Iterator[str]:
    """Answers that do not hold as they are printed."""
    claims = [(repr(run.epsilon(delta)), delta) for delta in ("0", "1e-6", "0.03")]
    claims += [(epsilon, repr(run.delta(epsilon))) for epsilon in ("0.05", "1")]
    for epsilon, delta in claims:
        if epsilon == "inf" or float(delta) >= 1:
            continue
        found = run.check(epsilon=epsilon, delta=delta)
        proved = found.rigour == "proved" and float(delta) > 0 and not run.estimated
        if found.verdict == "false" or (found.verdict == "open" and proved):
            yield f"check(epsilon={epsilon}, delta={delta}), as answered, is {found}"


def unequal(number: int, run: Expression) -> Iterator[str]:
    """Runs that are equal and not the same, or the same and not equal."""
    name, sample, combinator = place(number)
    if run.frozen and (again := cm.parse(run.notation())) != run:
        yield f"{again} is read from the text of it"
    others = [drawn(number), _changed(combinator, name, sample, number)]
    for other in (each for each in others if each is not None and each == run):
        same = np.array_equal(values(run), values(other))
        if not same or hash(other) != hash(run) or (run.relation, run.sized) != (other.relation, other.sized):
            yield f"{other} is equal to it, with rdp {values(other)} for {values(run)}"
    with suppress(cm.CumulantError):
        small, large = (_foreign(combinator, sample, number, factor) for factor in (1, 1000))
        both = values(small + large), values(large + small)
        if small == large or not np.allclose(*both, rtol=ROUNDED) or (both[0] < values(large)).any():
            yield f"{small} of two functions: equal is {small == large}, rdp of the sum {both}"


def values(run: Expression) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Rényi divergences from the curves alone, because dominating pairs take long to build."""
    curves = [(mechanism.own_curve("best"), times) for mechanism, times in run.terms.items()]
    return np.asarray(sum(times * np.asarray(curve.rdp(list(BETWEEN))) for curve, times in curves))


def _changed(combinator: str, name: str, sample: str, number: int) -> Expression | None:
    """The same place with other parameters."""
    try:
        return COMBINATORS[combinator](random.Random(number + 1), _inner(name, sample))
    except cm.CumulantError:
        return None


def _foreign(combinator: str, sample: str, number: int, factor: int) -> Expression:
    """The same place with a Python function, which has one name whatever it says."""
    kind, scheme = number % 3, SAMPLES[sample]

    def draw(rng: random.Random) -> Expression:
        if kind == 0:
            mine: Expression = cm.from_rdp(rdp=lambda order: order * factor / 10**5, name="mine")
        elif kind == 1:
            mine = cm.ExponentialFamilyMechanism(diameter="0.01", hessian=lambda radius: factor * (1 + 0 * radius))
        else:
            mine = cm.from_rdp(rdp=lambda order: order * factor / 10**5, name="mine") * 2
        return mine if scheme is None else mine @ scheme(rng)

    rng = random.Random(number)
    return draw(rng) if combinator == "composed" else COMBINATORS[combinator](rng, draw)


# ---- the hunt


def instance(number: int, limit: int = 0) -> tuple[str, list[str]]:
    """What became of a run, and which laws it breaks."""
    run: Expression | None = None
    try:
        with limited(limit):
            run = drawn(number)
            found = [*disorder(run), *printed(run), *unequal(number, run)]
    except cm.CumulantError as refused:
        return f"refused: {type(refused).__name__}", []
    except Slow:
        return "slow", []
    except Exception as error:  # whatever else it raises is a fault
        found = [f"raises {type(error).__name__}: {error}"]
    return "asked", [f"{number}: {run}: {fault}" for fault in found]


def main() -> int:
    """Hunt, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=0, help="after which the rest is left out; 0 is no limit")
    given = parser.parse_args()
    start, wrong = time.perf_counter(), 0
    outcomes: Counter[str] = Counter()
    numbers = range(given.seed * 10**6, given.seed * 10**6 + given.instances)
    print(f"laws of runs, numbers {numbers.start} to {numbers.stop - 1}", flush=True)
    with multiprocessing.Pool(given.jobs) as pool:
        for outcome, found in within(
            pool.imap_unordered(partial(instance, limit=given.limit), numbers, chunksize=4), given.minutes
        ):
            outcomes[outcome] += 1
            report(outcomes.total(), len(numbers))
            wrong += bool(found)
            for line in found[:3]:
                print(line, flush=True)
    print(f"{dict(outcomes)}; {wrong} with a fault; {time.perf_counter() - start:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
