"""Attack the whole notation: expressions of a grammar, up to three combinators deep, held against each other.

    python -m benchmarks.hunt_notation [--expressions 20000] [--first 1000000] [--jobs 2] [--limit 60] [--minutes 8]

A number draws one expression: any registered mechanism, with parameters of every size, inside of up to three combinators:
samples, `+`, `* n`, parallel parts, groups, users, shuffles, passes, participations, the best of several runs. Its laws:

* every answer lies above every lower end: of the same run, of what runs inside of it, of one with more noise or a smaller rate;
  by every method ("best", "rdp", "exact") and question (epsilon, delta, an array, many counts, mu, an attack);
* epsilon falls with delta, delta with epsilon, and neither goes below the other's lower end; Rényi divergences rise with the
  order; "best" is not above "rdp" or "exact";
* `run.check` of an answer as it is printed is never "false", and "holds" where it is proved; `verify()` holds, also after JSON;
* `parse(str(run)) == run`; A + B and B + A are equal and have one answer; runs of two Python functions are two;
* an exception is a CumulantError with a readable sentence; an expression with all its questions ends within `--limit` seconds
  of a processor of reference (benchmarks/clock.py): more is a hang.

Every fault is printed with the number that draws it again, by `--first NUMBER --expressions 1`. A hunt that was stopped goes on
with `--first`, from the number that it printed last. Exits with 1 if there is a fault. A bound above that of a less private run
holds, so it is printed and counted as loose, and is no fault. An expression that takes more than 10 s is printed as slow.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

import cumulant as cm
from benchmarks.clock import Slow, limited, report, scaled, within
from benchmarks.settings import DRAWS, decimal
from cumulant.accounting.question import DEFAULT_ACCURACY
from cumulant.domains import spelling
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

MOST_MEMORY = 4 * 2**30
"""Bytes of one process; convention: half of the memory of a small machine."""

MOST_DRAWS = 200
"""Attempts at one number until the library takes an expression (measured: 12 on average)."""

SETTINGS = 30
"""Of each mechanism, so that curves are known from other expressions (measured: a third of the time)."""

LONGEST_SENTENCE = 3000
"""Characters of a refusal with the expressions that it quotes; convention."""

LOOSE = "loose, "
"""How a bound is called that holds and is above that of a run which is less private."""

SLOW = "slow, "
"""How an expression is called whose answers came, but late."""

REMARKS = LOOSE, SLOW
"""What is printed and counted, and breaks no law."""

LIMITS_PER_SLOW = 6
"""Part of the limit after which an expression is slow: 10 of 60 seconds, for about twenty questions. Chosen by hand."""

Leaf = Callable[[random.Random], Expression]


# ---- the grammar


def rate(rng: random.Random) -> str:
    """A rate of samples, from rare to certain, and both ends."""
    return rng.choice(("0", "1", "1/2", *6 * (decimal(rng, -4, -0.01),)))


def count(rng: random.Random, most: int) -> int:
    """A whole number of any size, often a small one."""
    return rng.choice((1, 2, rng.randint(1, most), rng.randint(1, most)))


def population(rng: random.Random) -> tuple[int, int]:
    """How many of how many are drawn, all and one included."""
    records = rng.choice((1, 2, 3, rng.randint(2, 100), rng.randint(50, 5000)))
    return rng.choice((1, records, rng.randint(1, records), min(records, rng.randint(1, 20)))), records


def _sample_of(scheme: Any, **given: Any) -> Callable[[random.Random], Any]:
    def draw(rng: random.Random) -> Any:
        if rng.random() < 0.7:
            return scheme(rate=rate(rng), **given)
        sample, records = population(rng)
        return scheme(sample=sample, population=records, **given)

    return draw


def _with_replacement(rng: random.Random) -> Any:
    sample, records = population(rng)
    return cm.WithReplacement(sample=min(sample, 50), population=records)


def _truncated(rng: random.Random) -> Any:
    limit, records = population(rng)
    return cm.TruncatedPoisson(rate=rate(rng), limit=min(limit, 50), population=min(records, 500))


def _allocation(rng: random.Random) -> Any:
    steps = rng.choice((1, 2, 3, rng.randint(2, 100)))
    return cm.RandomAllocation(steps=steps, picks=rng.choice((1, 1, 1, rng.randint(1, steps))))


SAMPLES: dict[str, Callable[[random.Random], Any]] = {
    "Poisson": _sample_of(cm.Poisson),
    "Poisson, replaced": _sample_of(cm.Poisson, relation="replace-one"),
    "Poisson, special": _sample_of(cm.Poisson, relation="replace-special"),
    "WithoutReplacement": _sample_of(cm.WithoutReplacement),
    "WithoutReplacement, added": _sample_of(cm.WithoutReplacement, relation="add-remove"),
    "WithReplacement": _with_replacement,
    "TruncatedPoisson": _truncated,
    "RandomAllocation": _allocation,
}


def _passes(rng: random.Random) -> Any:
    """Batches of a permutation, known or not."""
    if rng.random() < 0.3:
        return cm.ShuffledBatches()
    if rng.random() < 0.5:
        return cm.ShuffledBatches(batches=rng.randint(1, 30), fresh=rng.randint(0, 1))
    records = rng.randint(2, 60)
    return cm.ShuffledBatches(batch=rng.randint(1, records), records=records, drop_last=rng.randint(0, 1))


def _select(rng: random.Random) -> Any:
    if rng.random() < 0.3:
        return cm.RepeatAndSelect(mean=rng.randint(1, 20), number="poisson")
    return cm.RepeatAndSelect(mean=rng.randint(2, 20), shape=rng.choice((0, "1/2", 1, 1, 2)))


AROUND: dict[str, Callable[[random.Random], Any]] = {
    "Group": lambda rng: cm.Group(size=rng.choice((1, 2, 3, rng.randint(2, 20)))),
    "User": lambda rng: cm.User(records=rng.choice((1, 2, 3, rng.randint(2, 8)))),
    "Shuffle": lambda rng: cm.Shuffle(reports=rng.choice((1, 2, 3, rng.randint(2, 1000)))),
    "ShuffledBatches": _passes,
    "RepeatAndSelect": _select,
}
"""Whatever else is written with @."""


def matrix(rng: random.Random) -> Expression:
    """A run with correlated noise of a few steps, with every way to take part."""
    steps, bands = rng.randint(1, 12), rng.randint(1, 3)
    sign = rng.choice((1, 1, -1))
    column = ["1", *(spelling(Fraction(sign * rng.randint(0, 9), 10)) for _ in range(bands - 1))]
    noise = {rng.choice(("sigma", "sigma", "noise_multiplier")): decimal(rng, -0.5, 2)}
    relation = rng.choice(("add-remove", "add-remove", "replace-one"))
    run = cm.MatrixMechanism(bands=column, steps=steps, relation=relation, **noise)
    part = rng.randint(1, 4)
    schemes: list[Callable[[], Any]] = [
        lambda: cm.BallsInBins(bins=part),
        lambda: cm.CyclicPoisson(cycle=part, rate=rate(rng)),
        lambda: cm.FixedOrder(epochs=part),
        lambda: cm.FixedOrder(every=part),
        lambda: cm.MinSep(separation=part),
        lambda: cm.MinSep(separation=part, most=rng.randint(1, 3)),
        lambda: cm.MinSep(separation=part, rate=rate(rng)),
    ]
    return run if rng.random() < 0.2 else run @ rng.choice(schemes)()


def last_iterate(rng: random.Random) -> Expression:
    """The last of a few gradient steps."""
    return cm.last_iterate(
        steps=rng.randint(1, 50),
        step_size=decimal(rng, -2, 0),
        noise=decimal(rng, -3, 0),
        lipschitz=1,
        smoothness=decimal(rng, -2, 0),
        strong_convexity=rng.choice(("0", decimal(rng, -3, -1))),
        records=100,
        batches=rng.choice((1, 1, 4)),
        relation=rng.choice(("add-remove", "replace-one")),
    )


def stated(rng: random.Random) -> Expression:
    """Noise of a stated relation, geometry or divisor, with few digits."""
    relation: Any = rng.choice(("add-remove", "replace-one", "replace-special", "any"))
    size = rng.choice(("0.5", "1", "2", "3", "20"))
    choices: list[Callable[[], Expression]] = [
        lambda: cm.Gaussian(noise_multiplier=size, clip=1, relation=relation),
        lambda: cm.Gaussian(sigma=size, geometry="ball", relation=relation),
        lambda: cm.Gaussian(sigma=size, squared_sensitivity="2", relation=relation),
        lambda: cm.Laplace(scale=size, relation=relation, dimension=rng.choice((None, 1, 3))),
        lambda: cm.DiscreteLaplace(scale=size, relation=relation),
        lambda: cm.DiscreteGaussian(sigma=size, dimension=1, relation=relation),
        lambda: cm.GaussianDP(mu=size, relation=relation),
        lambda: cm.Skellam(variance=size, dimension=1, relation=relation),
    ]
    return rng.choice(choices)()


LEAVES: dict[str, Leaf] = {
    **DRAWS,
    "MatrixMechanism": matrix,
    "last_iterate": last_iterate,
    "stated": stated,
}


def any_leaf(rng: random.Random) -> Expression:
    """Any mechanism with one of its settings."""
    name = rng.choice(sorted(LEAVES))
    return LEAVES[name](random.Random(f"{name} {rng.randrange(SETTINGS)}"))


def tree(rng: random.Random, depth: int, leaf: Leaf, within_it: list[Expression]) -> Expression:
    """An expression with so many combinators around a mechanism; runs that are as private are noted in `within_it`."""
    if depth == 0:
        return leaf(rng)
    inner = tree(rng, depth - 1, leaf, [])
    kind = rng.random()
    if kind < 0.36:
        name = rng.choice(sorted(SAMPLES))
        sampled: Expression = inner @ SAMPLES[name](rng)
        return sampled
    if kind < 0.62:
        name = rng.choice(sorted(AROUND))
        scheme = AROUND[name](rng)
        if name in ("Group", "User") or (name == "RepeatAndSelect" and "poisson" not in str(scheme)):
            within_it.append(inner)
        around: Expression = inner @ scheme
        return around
    if kind < 0.75:
        within_it.append(inner)
        return inner * rng.choice((1, 2, 3, rng.randint(2, 100), 10 ** rng.randint(2, 9)))
    other = inner if rng.random() < 0.3 else tree(rng, rng.randint(0, depth - 1), leaf, [])
    within_it += [inner, other]
    if kind < 0.87:
        return inner + other
    if kind < 0.93:
        return cm.parallel(inner, other)
    if kind < 0.97:
        return cm.parallel(inner, other, by="position")
    return cm.parallel(inner, other, relation="replace-one")


@dataclass(frozen=True, slots=True)
class Drawn:
    """An expression, runs that are at least as private, and the expressions that the library refused before."""

    run: Expression
    within: tuple[Expression, ...]
    refused: tuple[Exception, ...]


def drawn(number: int, leaf: Leaf = any_leaf) -> Drawn:
    """The expression of this number: one to three combinators deep, of which refused ones are drawn again."""
    refused: list[Exception] = []
    for attempt in range(MOST_DRAWS):
        rng = random.Random(f"{number} {attempt}")
        inside: list[Expression] = []
        try:
            run = tree(rng, rng.choice((1, 2, 2, 3)), leaf, inside)
        except cm.CumulantError as said:
            refused.append(said)
            continue
        return Drawn(run, tuple(inside), tuple(refused))
    raise AssertionError(f"{number}: nothing was taken in {MOST_DRAWS} draws")


# ---- runs that are at least as private

_NUMBER = r"=(\d[\d.]*(?:e-?\d+)?)(?=[,)])"
_PLACES = [
    re.compile(rf"\b(?:{names})\(({words}){_NUMBER}")
    for names, words in (
        ("Gaussian|Laplace", "sigma|scale"),
        ("PureDP|ApproximateDP|ExponentialMechanism|GaussianDP|ZeroConcentrated", "epsilon|mu|rho"),
        ("Poisson|WithoutReplacement", "rate"),
    )
]
"""Parameters in which privacy is monotone: more noise can be added to what was released, a rare sample is one of a sample."""


def more_private(run: Expression, rng: random.Random) -> Expression | None:
    """The same with more noise, or a smaller rate, at one place; None if there is no such place."""
    text = str(run)
    places = [found for pattern in _PLACES for found in pattern.finditer(text)]
    if not places:
        return None
    place = rng.choice(places)
    factor = Fraction(rng.choice((3, 10, 1000)), 2)
    value = Fraction(place[2])
    changed = spelling(value * factor if place[1] in ("sigma", "scale") else value / factor)
    return cm.parse(text[: place.start(2)] + changed + text[place.end(2) :])


# ---- laws


def doublings(run: Expression) -> int:
    """How often a bound on one step is doubled: for groups, and for a record that moves between parts."""
    moves = 'relation="replace-one"' in str(run) and "parallel" in str(run)
    return math.ceil(math.log2(run.records_changed)) + moves


def disorder(run: Expression) -> Iterator[str]:
    """Numbers that rise where they must not, or fall."""
    epsilons = [float(x) for x in run.epsilon(DELTAS)]
    for (small, more), (large, less) in pairwise(zip(DELTAS, epsilons, strict=True)):
        if not less <= more * (1 + NEARLY) + 1e-12:
            yield f"epsilon({small}) = {more!r}, epsilon({large}) = {less!r}"
    deltas = [float(x) for x in run.delta(EPSILONS)]
    for (small, more), (large, less) in pairwise(zip(EPSILONS, deltas, strict=True)):
        if not less <= more * (1 + NEARLY) + 1e-300:
            yield f"delta({small}) = {more!r}, delta({large}) = {less!r}"
    for delta, best, divergence in zip(DELTAS, epsilons, run.epsilon(DELTAS, method="rdp"), strict=True):
        if not best <= float(divergence) * (1 + ROUNDED):
            yield f'epsilon({delta}) = {best!r}, by method="rdp" {float(divergence)!r}'


def falling(run: Expression) -> Iterator[str]:
    """Rényi divergences that fall with the order."""
    curve = np.asarray(run.rdp(ORDERS))
    if not (curve[1:] >= curve[:-1] * (TWO_STEPS ** doublings(run) - ROUNDED)).all():
        yield f"rdp({list(ORDERS)}) = {curve.tolist()}"


def printed(run: Expression) -> Iterator[str]:
    """Answers that do not hold as they are printed."""
    claims = [(repr(run.epsilon(delta)), delta) for delta in ("0", "1e-6", "0.03")]
    claims += [(epsilon, repr(run.delta(epsilon))) for epsilon in ("0.05", "1")]
    for epsilon, delta in claims:
        yield from _unproved(run, epsilon, delta)


def _unproved(run: Expression, epsilon: str, delta: str) -> Iterator[str]:
    if epsilon == "inf" or float(delta) >= 1:
        return
    found = run.check(epsilon=epsilon, delta=delta)
    proved = found.rigour == "proved" and float(delta) > 0 and not run.estimated
    if found.verdict == "false" or (found.verdict == "open" and proved):
        yield f"check(epsilon={epsilon}, delta={delta}), as answered, is {found}"


@dataclass(frozen=True, slots=True)
class Floor:
    """What explicit data sets need: an epsilon at a delta."""

    run: Expression
    delta: str
    lower: float

    def exceeds(self, epsilon: float, what: str) -> Iterator[str]:
        """A fault if this is more than what is claimed to be enough."""
        if not self.lower <= epsilon * (1 + ROUNDED) + 1e-12:
            yield f"{what} is {epsilon!r}, and {self.lower!r} is needed at delta {self.delta} by {self.run}"


def floor(run: Expression, delta: str) -> Floor | None:
    """The lower end of a run; None where it has none."""
    found = run.guarantee(delta=delta).lower
    return None if not found else Floor(run, delta, found)


def interval(run: Expression, rng: random.Random) -> Iterator[str]:
    """One guarantee: both ends, other methods, its text, its proof."""
    delta = rng.choice(("1e-300", "1e-12", "1e-6", "1e-3", "0.2", decimal(rng, -9, -0.01)))
    found = run.guarantee(delta=delta)
    if math.isnan(found.epsilon) or found.epsilon < 0:
        yield f"epsilon({delta}) = {found.epsilon!r}"
    yield from _unproved(run, repr(found.epsilon), delta)
    low = Floor(run, delta, found.lower or 0.0)
    yield from low.exceeds(found.epsilon, "epsilon")
    for method in ("rdp", "exact"):
        other = run.epsilon(delta, method=method)
        yield from low.exceeds(other, f'epsilon(method="{method}")')
        if not found.epsilon <= other * (1 + (ROUNDED if method == "rdp" else NEARLY)) + 1e-12:
            yield f'epsilon({delta}) = {found.epsilon!r}, by method="{method}" {other!r}'
    if 0 < low.lower < math.inf:
        claimed = run.delta(repr(0.999 * low.lower))
        if not claimed >= Fraction(delta) * Fraction(999999999, 10**9):
            yield f"lower is {low.lower!r} at delta {delta}, but delta({0.999 * low.lower!r}) is {claimed!r}"
        below = run.check(epsilon=repr(0.99 * low.lower), delta=delta)
        if below.verdict == "holds":
            yield f"lower is {low.lower!r}, and {below}"
    again = cm.Guarantee.from_json(found.to_json()) if run.frozen else found
    if again != found or again.to_json() != found.to_json():
        yield f"{found!r} is read from JSON as {again!r}"
    if rng.random() < 0.3 and found.rigour != "estimated" and math.isfinite(found.epsilon):
        verdict = again.verify()
        if not verdict:
            yield f"{found!r}.verify() is {verdict!r}"


def deltas_of(run: Expression, rng: random.Random) -> Iterator[str]:
    """One guarantee that is asked by epsilon."""
    epsilon = rng.choice(("0", "1e-6", "0.1", "1", "5", decimal(rng, -4, 2)))
    found = run.guarantee(epsilon=epsilon)
    if not 0 <= found.delta <= 1:
        yield f"delta({epsilon}) = {found.delta!r}"
    low = found.lower or 0.0
    yield from _unproved(run, epsilon, repr(found.delta))
    known = {
        "delta": found.delta,
        'delta(method="rdp")': run.delta(epsilon, method="rdp"),
        'delta(method="exact")': run.delta(epsilon, method="exact"),
        "an array": float(run.delta([epsilon, "7"])[0]),
        "gaussian_mu": gaussian_profile(run.gaussian_mu(), float(epsilon)),
    }
    if float(epsilon) == 0:
        known["advantage()"] = run.advantage()
    for what, claimed in known.items():
        if not low <= claimed * (1 + 1e-6) + 1e-15:
            yield f"{what} at epsilon {epsilon} is {claimed!r}, and {low!r} is needed"
    by_order = known['delta(method="rdp")']
    if not found.delta <= by_order * (1 + ROUNDED) + 1e-300:
        yield f"delta({epsilon}) = {found.delta!r}, by method='rdp' {by_order!r}"
    if low > 1e-300:  # a smaller delta needs a larger epsilon
        smaller = repr(0.99 * low)
        for method in ("best", "exact"):
            needed = run.epsilon(smaller, method=method)
            if not (needed >= float(epsilon) * (1 - ROUNDED) and needed > 0):
                yield f"epsilon({smaller}, method={method!r}) is {needed!r}, and delta {low!r} is needed at epsilon {epsilon}"
    if rng.random() < 0.3 and found.rigour != "estimated" and found.delta < 1:
        verdict = found.verify()
        if not verdict:
            yield f"{found!r}.verify() is {verdict!r}"


def gaussian_profile(mu: float, epsilon: float) -> float:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)."""
    if not 0 < mu < 1e8 or epsilon > 700:
        return float(mu > 0)
    far = special.log_ndtr(-mu / 2 - epsilon / mu) + epsilon
    return float(special.ndtr(mu / 2 - epsilon / mu) - math.exp(far))


def one_direction(run: Expression, rng: random.Random) -> Iterator[str]:
    """The losses of one direction, of which the larger one is the answer."""
    if run.relation is not cm.Relation.ADD_REMOVE:
        return
    epsilon = rng.choice(("0.1", "1", "3"))
    low = run.guarantee(epsilon=epsilon).lower or 0.0
    ways = [float(run.privacy_loss(way).hockey_stick(float(epsilon))) for way in ("remove", "add")]
    if not low <= max(ways) * (1 + 1e-6) + 1e-15:
        yield f"privacy_loss of both directions at {epsilon} is {ways}, and {low!r} is needed"


def contained(number: int, found: Drawn, rng: random.Random) -> Iterator[str]:
    """Runs that are at least as private as this one must not need more than is claimed of it."""
    run, delta = found.run, rng.choice(("1e-12", "1e-6", "1e-3", "0.1"))
    others = [*found.within]
    with suppress(cm.CumulantError):
        if (private := more_private(run, rng)) is not None:
            others.append(private)
    claimed = run.epsilon(delta)
    for other in others[:2]:
        if (low := floor(other, delta)) is not None:
            yield from low.exceeds(claimed, f"epsilon({delta})")
        loose = other.epsilon(delta)
        if claimed < loose / (1 + NEARLY) - 1e-12:
            yield f"{LOOSE}epsilon({delta}) is {claimed!r}, and {loose!r} for {other}, which is as private"


def many_counts(run: Expression, rng: random.Random) -> Iterator[str]:
    """More rounds need more, however they are asked."""
    delta, counts = rng.choice(("1e-9", "1e-5", "0.01")), (1, 2, rng.choice((3, 10, 50)))
    together = [float(each) for each in run.epsilon_over(counts, delta=delta)]
    for (few, less), (many, more) in pairwise(zip(counts, together, strict=True)):
        if not less <= more * (1 + NEARLY) + 1e-12:
            yield f"epsilon_over({few}, delta={delta}) = {less!r}, epsilon_over({many}) = {more!r}"
    if (low := floor(run * counts[-1], delta)) is not None:
        yield from low.exceeds(together[-1], f"epsilon_over({counts[-1]})")
    alone = (run * counts[-1]).epsilon(delta)
    if not math.isclose(alone, together[-1], rel_tol=2 * NEARLY, abs_tol=1e-9):
        yield f"epsilon_over({counts[-1]}, delta={delta}) = {together[-1]!r}, alone {alone!r}"


def arrays(run: Expression, rng: random.Random) -> Iterator[str]:
    """Arrays in floats against one number in balls."""
    delta = rng.choice(DELTAS)
    one, many = run.epsilon(delta), [float(each) for each in run.epsilon([delta, "1e-4"])]
    if not math.isclose(one, many[0], rel_tol=2 * NEARLY, abs_tol=1e-9):
        yield f"epsilon({delta}) = {one!r}, in an array {many[0]!r}"


def same(number: int, found: Drawn, rng: random.Random, leaf: Leaf = any_leaf) -> Iterator[str]:
    """Runs that are equal and not the same, or the same and not equal."""
    run = found.run
    if run.frozen:
        again = cm.parse(run.notation())
        if again != run or hash(again) != hash(run) or str(again) != str(run):
            yield f"{again} is read from the text of it"
    twin = drawn(number, leaf).run
    if twin != run or hash(twin) != hash(run) or not np.array_equal(values(run), values(twin)):
        yield f"{twin} is drawn once more, and is another"
    for other in found.within[-1:]:
        with suppress(cm.RelationError):
            both, turned = run + other, other + run
            if both != turned or hash(both) != hash(turned) or both.epsilon("1e-5") != turned.epsilon("1e-5"):
                yield f"{both} and {turned} differ: {both.epsilon('1e-5')!r}, {turned.epsilon('1e-5')!r}"


def foreign(number: int) -> Iterator[str]:
    """The same shape with a Python function, which has one name whatever it says."""

    def leaf(factor: int, rng: random.Random) -> Expression:
        if rng.random() < 0.5:
            return cm.from_rdp(rdp=lambda order: order * factor / 10**5, name="mine")
        return cm.ExponentialFamilyMechanism(diameter="0.01", hessian=lambda radius: factor * (1 + 0 * radius))

    yield from two_functions(*(drawn(number, partial(leaf, factor)).run for factor in (1, 1000)))


def two_functions(small: Expression, large: Expression) -> Iterator[str]:
    """Runs of two functions of one name that are equal, or whose sum depends on their order."""
    with suppress(cm.CumulantError):  # relations that do not mix, theorems that need a pair
        both = values(small + large), values(large + small)
        if small == large or not np.allclose(*both, rtol=ROUNDED) or (both[0] < values(large)).any():
            yield f"{small} of two functions: equal is {small == large}, rdp of the sum {both}"


def values(run: Expression) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Rényi divergences from the curves alone, because dominating pairs take long to build."""
    curves = [(mechanism.own_curve("best"), times) for mechanism, times in run.terms.items()]
    return np.asarray(sum(times * np.asarray(curve.rdp(list(BETWEEN))) for curve, times in curves))


def unreadable(refused: Exception) -> Iterator[str]:
    """What a person could not read in a refusal."""
    text = str(refused)
    machine = re.search(r"\n|object at 0x|<class |<Relation|Fraction\(|\bNone\b", text)
    if not text.strip() or machine or len(text) > LONGEST_SENTENCE:
        yield f"{type(refused).__name__} says {text!r}"


LAWS: dict[str, Callable[[int, Drawn, random.Random], Iterator[str]]] = {
    "interval": lambda number, found, rng: interval(found.run, rng),
    "deltas": lambda number, found, rng: deltas_of(found.run, rng),
    "disorder": lambda number, found, rng: disorder(found.run),
    "falling": lambda number, found, rng: falling(found.run),
    "direction": lambda number, found, rng: one_direction(found.run, rng),
    "contained": contained,
    "counts": lambda number, found, rng: many_counts(found.run, rng),
    "arrays": lambda number, found, rng: arrays(found.run, rng),
    "same": lambda number, found, rng: same(number, found, rng),
    "foreign": lambda number, found, rng: foreign(number),
}
EACH = 1
"""Laws besides its interval that one expression is held against (measured: 0.6 s of the processor each)."""


# ---- the hunt


def instance(number: int, limit: int = 0, laws: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """What became of an expression, and which laws it breaks."""
    rng = random.Random(number)
    chosen = laws or ("interval", *(rng.choice(sorted(LAWS)) for _ in range(EACH)))
    run, name, faults = None, "drawn", list[str]()
    outcome = "asked"
    start = time.process_time()
    try:
        with limited(limit):
            found = drawn(number)
            run = found.run
            faults += [fault for said in found.refused for fault in unreadable(said)]
            for name in dict.fromkeys(chosen):
                try:
                    faults += LAWS[name](number, found, rng)
                except cm.CumulantError as said:
                    outcome = f"asked, some refused: {type(said).__name__}"
                    faults += unreadable(said)
    except Slow:
        outcome, faults = "hang", [*faults, f"takes more than {limit} s in {name!r}"]
    except MemoryError:
        faults.append(f"takes more than {MOST_MEMORY / 2**30:g} GB in {name!r}")
    except Exception as error:  # whatever else it raises is a fault
        faults.append(f"raises {type(error).__name__} in {name!r}: {error}")
    taken = time.process_time() - start
    if limit and outcome != "hang" and taken > limit / LIMITS_PER_SLOW:
        faults.append(f"{'took ' if taken > limit + 1 else SLOW}{taken:.1f} s, the last in {name!r}")
    return outcome, [f"{number}: {run}: {fault}" for fault in faults]


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def main() -> int:
    """Hunt, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expressions", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=10**6, help="the number of the first expression")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=60, help="seconds of a processor of reference for one expression")
    parser.add_argument("--minutes", type=float, default=0, help="after which the rest is left out; 0 is no limit")
    parser.add_argument("--laws", default="", help="those to ask for, such as interval,counts")
    given = parser.parse_args()
    limit = scaled(given.limit)
    start, wrong = time.perf_counter(), 0
    outcomes: Counter[str] = Counter()
    done = 0
    numbers = range(given.first, given.first + given.expressions)
    laws = tuple(given.laws.split(",")) if given.laws else ()
    print(f"expressions {numbers.start} to {numbers.stop - 1}", flush=True)
    with multiprocessing.Pool(given.jobs, _bounded) as pool:
        task = partial(instance, limit=limit, laws=laws)
        for outcome, found in within(pool.imap(task, numbers, chunksize=8), given.minutes):
            outcomes[outcome] += 1
            done += 1
            report(done, len(numbers))
            wrong += any(all(remark not in line for remark in REMARKS) for line in found)
            for remark in REMARKS:
                outcomes[remark.strip(", ")] += any(remark in line for line in found)
            for line in found[:3]:
                print(line, flush=True)
    print(f"{dict(outcomes)}; {wrong} with a fault; {time.perf_counter() - start:.0f} s")
    print(f"go on with --first {numbers.start + done}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
