"""Attack combinators of combinators: every claim about them against enumeration on tiny data sets.

    python -m benchmarks.hunt_combinators [--instances 10000] [--seed 1] [--jobs 2] [--limit 10] [--minutes 12]

An instance is an expression two combinators deep (group, parallel by value, by position and for a record that moves, every
sample, best of several runs, shuffle) and a release that it describes (benchmarks/enumeration.py). First come all samples of
samples, then expressions that are drawn. No neighbouring pair may need more than is claimed: delta at some epsilons, epsilon at
some deltas and at 0, Rényi divergences, the mu of Gaussian privacy, and the losses of one direction. An expression that takes
longer than the limit is left out. Every fault is printed with the number that draws it again; exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy import special

import cumulant as cm
from benchmarks.clock import Slow, limited, report, scaled, within
from benchmarks.enumeration import Law, Random, Tiny, TooLarge, neighbours, release
from cumulant.accounting.choices import Method
from cumulant.mechanisms.mechanism import Expression
from cumulant.sampling.scheme import Scheme

EPSILONS = (0.0, 0.2, 0.7, 1.5, 3.0)
DELTAS = ("1e-3", "0.05")
RELEASES = 8
"""Of every expression: what is claimed of it takes longer than what it is held against."""

ORDERS = (1.5, 2.0, 5.0)
SLIP, LEAST = 1e-9, 1e-12
"""What the floats of an enumeration may be wrong by: a part of the number, and beside it."""

LEAVES: tuple[Expression, ...] = (
    cm.RandomizedResponse(p="0.75"),
    cm.KaryResponse(values=3, p="0.6"),
    cm.SubsetSelection(values=4, size=2, epsilon=1),
    cm.UnaryEncoding(p="0.7", q="0.3"),
    cm.PureDP("0.8"),
    cm.ApproximateDP("0.5", "0.02"),
    cm.ExponentialMechanism(1),
    cm.DiscreteLaplace(scale=2),
    cm.DiscreteGaussian(sigma=1, dimension=1),
    cm.Laplace(scale=1),
    cm.Gaussian(sigma=1),
    cm.Gaussian(sigma=1, sensitivity=2, geometry="ball"),
    cm.GaussianDP(mu="0.7"),
    cm.from_masses(["0.6", "0.3", "0.1"], ["0.2", "0.3", "0.5"]),
    cm.LocalRandomizer(3, ["0.6", "0.3", "0.1", "0.2", "0.2", "0.6", "0.25", "0.5", "0.25"]),
)
SAMPLES: tuple[Scheme, ...] = (
    cm.Poisson(rate="0.4"),
    cm.Poisson(rate="0.7", relation="replace-one"),
    cm.WithoutReplacement(sample=1, population=2),
    cm.WithoutReplacement(sample=2, population=3),
    cm.WithoutReplacement(sample=1, population=2, relation="add-remove"),
    cm.WithoutReplacement(rate="2/3", relation="add-remove"),
    cm.WithReplacement(sample=2, population=2),
    cm.WithReplacement(sample=2, population=3),
    cm.TruncatedPoisson(rate="0.6", limit=1, population=2),
    cm.TruncatedPoisson(rate="0.9", limit=1, population=1),
    cm.RandomAllocation(steps=2),
    cm.RandomAllocation(steps=3, picks=2),
)
OTHERS: tuple[Scheme, ...] = (
    cm.Group(size=2),
    cm.RepeatAndSelect(mean=2),
    cm.RepeatAndSelect(mean=2, shape=0),
    cm.RepeatAndSelect(mean="1.5", number="poisson"),
    cm.Shuffle(reports=2),
    cm.Shuffle(reports=3),
    cm.User(records=2),
    cm.User(records=3),
    cm.ShuffledBatches(batches=2),
    cm.ShuffledBatches(batch=2, records=3),
    cm.ShuffledBatches(batch=2, records=4),
    cm.ShuffledBatches(batch=1, records=3, drop_last=1),
    cm.ShuffledBatches(batch=2, records=3, drop_last=1),
)


def wrapped_by(inner: Expression, scheme: Scheme) -> Expression:
    """The expression on a sample, or in what else is written with @."""
    return inner @ scheme


def wrapped(inner: Expression, rng: Random) -> Expression:
    """The expression inside of one combinator."""
    kind = rng.random()
    if ("Select" in str(inner) or "Shuffle" in str(inner)) and "Randomized" not in str(inner):
        kind *= 0.7  # such parts in parallel take a minute
    if kind < 0.3:
        return wrapped_by(inner, SAMPLES[rng.integers(len(SAMPLES))])
    if kind < 0.6:
        return wrapped_by(inner, OTHERS[rng.integers(len(OTHERS))])
    if kind < 0.7:
        return inner + LEAVES[rng.integers(len(LEAVES))] if rng.random() < 0.5 else inner * 2
    other = inner if rng.random() < 0.5 else LEAVES[rng.integers(len(LEAVES))]
    if kind < 0.8:
        return cm.parallel(inner, other)
    if kind < 0.9:
        return cm.parallel(inner, other, by="position")
    return cm.parallel(inner, other, relation="replace-one")


def drawn(number: int) -> Expression:
    """A leaf inside of two combinators, or of one; each number is one expression, of which refused ones are drawn again."""
    for attempt in itertools.count():
        rng = np.random.default_rng([number, attempt])
        try:
            run = wrapped(LEAVES[rng.integers(len(LEAVES))], rng)
            run = wrapped(run, rng) if rng.random() < 0.9 else run
        except cm.CumulantError:
            continue
        return run
    raise AssertionError("unreachable")


def nested(number: int) -> Expression:
    """A leaf on a sample of a sample; there are NESTED of them."""
    rest, inner = divmod(number, len(SAMPLES))
    leaf, outer = divmod(rest, len(SAMPLES))
    return wrapped_by(wrapped_by(LEAVES[leaf], SAMPLES[inner]), SAMPLES[outer])


NESTED = len(LEAVES) * len(SAMPLES) ** 2

# ---- claims


@dataclass(frozen=True, slots=True)
class Claims:
    """What the library says of one expression; of one direction only under add/remove."""

    deltas: Law
    epsilons: tuple[float, ...]
    pure: float
    rdp: Law
    mu: float
    directed: dict[str, Law]


@cache
def claims(run: Expression) -> Claims:
    """All that is claimed of an expression."""
    method: Method = "rdp" if _slow(run) else "best"
    directed = {}
    if run.relation is cm.Relation.ADD_REMOVE and "Selec" not in str(run) and "Group" not in str(run):
        directed = {way: np.asarray(run.privacy_loss(way).hockey_stick(EPSILONS[1:4])) for way in ("remove", "add")}
    return Claims(
        np.asarray(run.delta(EPSILONS, method=method)),
        tuple(float(x) for x in run.epsilon(DELTAS, method=method)),
        run.epsilon(0),
        np.asarray(run.rdp(ORDERS)),
        run.gaussian_mu(),
        directed,
    )


def _slow(run: Expression) -> bool:
    """The polygon of a parallel run takes a hundred questions about each part, and the best of several as many again."""
    text = str(run)
    return text.count("Select") > 1 or ("Select" in text and ("|" in text or "parallel" in text))


# ---- truths


def hockey_sticks(p: Law, q: Law, epsilon: float) -> Law:
    """Of many pairs, a row each."""
    return np.asarray(np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=1))


def divergences(p: Law, q: Law, order: float) -> Law:
    """Rényi divergences of many pairs, a row each."""
    with np.errstate(divide="ignore"):
        logs = np.where(p > 0, order * np.log(np.where(p > 0, p, 1.0)) + (1 - order) * np.log(q), -np.inf)
        return np.asarray(special.logsumexp(logs, axis=1) / (order - 1))


def largest_ratio(p: Law, q: Law) -> float:
    """log max p/q over all outputs."""
    kept = p > 0
    with np.errstate(divide="ignore"):
        return float(np.max(np.log(p[kept]) - np.log(q[kept]))) if kept.any() else 0.0


def gaussian_profile(mu: float, epsilon: float) -> float:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)."""
    if not 0 < mu < math.inf:
        return float(mu > 0)
    return float(special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu))


def exceeded(needed: float, claimed: float) -> bool:
    """Whether the truth is more than is claimed, and more than rounding."""
    return needed > claimed * (1 + SLIP) + LEAST


def instances(number: int, source: Callable[[int], Expression], releases: int, limit: int = 0) -> tuple[str, list[str]]:
    """What became of one expression, and what is wrong with what is claimed of it, by so many releases."""
    try:
        with limited(limit):
            run = source(number)
            known = claims(run)
            found = [fault for i in range(releases) for fault in faults(run, known, number, i)]
    except cm.CumulantError as refused:
        return f"refused: {type(refused).__name__}", []
    except (Slow, TooLarge, NotImplementedError) as left:
        return f"left out: {type(left).__name__}", []
    return "enumerated", found


def faults(run: Expression, known: Claims, number: int, instance: int) -> list[str]:
    """What one release needs beyond what is claimed of all that are described as it is."""
    rng = np.random.default_rng([number, instance])
    text, relation, size = str(run), run.relation, run.records_changed
    if relation is cm.Relation.ANY:
        relation = cm.Relation.REPLACE_ONE if rng.random() < 0.5 else cm.Relation.ADD_REMOVE
    values = 4 if "|" in text or "parallel" in text else int(rng.integers(2, 4))
    pairs = neighbours(run, relation, values, size, most=2 + (values < 4))
    if not pairs:
        raise TooLarge("data sets of so few records have no such neighbours")
    law = release(run, Tiny(rng, values, relation))
    firsts, seconds = (np.array([law(pair[i]) for pair in pairs]) for i in (0, 1))
    found = []

    def compare(what: str, needed: float, claimed: float) -> None:
        if exceeded(needed, claimed):
            found.append(
                f"{number}, release {instance}: {text} ({relation}): {what} is {claimed:.9g}, and {needed:.9g} is needed"
            )

    for p, q, way in ((firsts, seconds, "remove"), (seconds, firsts, "add")):
        for i, epsilon in enumerate(EPSILONS):
            needed = float(hockey_sticks(p, q, epsilon).max())
            compare(f"delta({epsilon})", needed, float(known.deltas[i]))
            compare(f"delta({epsilon}) by gaussian_mu={known.mu:g}", needed, gaussian_profile(known.mu, epsilon))
            if way in known.directed and 0 < i < 4:
                compare(f'privacy_loss("{way}").hockey_stick({epsilon})', needed, float(known.directed[way][i - 1]))
        for delta, epsilon in zip(DELTAS, known.epsilons, strict=True):
            if epsilon < 700:
                compare(f"delta({epsilon}), asked by delta,", float(hockey_sticks(p, q, epsilon).max()), float(delta))
        for order, claimed in zip(ORDERS, known.rdp, strict=True):
            compare(f"rdp({order})", float(divergences(p, q, order).max()), float(claimed))
        compare("epsilon(0)", largest_ratio(p, q), known.pure + 1e-9)
    return found


def main() -> int:
    """Hunt, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=0, help="after which the rest is left out; 0 is no limit")
    given = parser.parse_args()
    limit = scaled(given.limit)
    start, wrong = time.perf_counter(), 0
    outcomes: Counter[str] = Counter()
    first = given.seed * 10**6
    drawn_ones = range(first, first + -(-given.instances // RELEASES))
    print(f"{NESTED} samples of samples, and combinators {drawn_ones.start} to {drawn_ones.stop - 1}", flush=True)
    with multiprocessing.Pool(given.jobs) as pool:
        for source, numbers in ((nested, range(NESTED)), (drawn, drawn_ones)):
            task = partial(instances, source=source, releases=RELEASES, limit=limit)
            for outcome, found in within(pool.imap_unordered(task, numbers, chunksize=4), given.minutes / 2):
                outcomes[outcome] += 1
                report(outcomes.total(), NESTED + len(drawn_ones))
                wrong += bool(found)
                for line in found[:3]:
                    print(line, flush=True)
    print(f"{RELEASES} releases each; {dict(outcomes)}; {wrong} with a fault; {time.perf_counter() - start:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
