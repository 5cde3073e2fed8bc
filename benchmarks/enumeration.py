"""Mechanisms and combinators as laws on tiny data sets, from their definitions: what every claim is held against.

A release is a function from a data set, a tuple of record values, to masses on finitely many outputs. `release` draws one that
an expression describes: which bit a response tells, what a sum adds up, how outputs are ranked. Noise on the real line is told
in bins, which loses a little and never gains. No formula of the library is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from scipy import special

import cumulant as cm
from cumulant.mechanisms.mechanism import Expression, Mechanism

Law = np.ndarray[Any, np.dtype[np.float64]]
Data = tuple[int, ...]
Release = Callable[[Data], Law]
Random = np.random.Generator

BINS = 16
"""Of noise on the real line; few, because steps and parts multiply."""

REACH = 4
"""The last bin begins so many deviations, or integers, from the origin."""

MOST_OUTPUTS = 20_000
"""Outputs of one release; larger products are not enumerated."""


class TooLarge(Exception):
    """Raised where a release has more outputs than are enumerated; the instance is left out and counted."""


@dataclass(frozen=True, slots=True)
class Tiny:
    """The domain of one instance: so many record values, and for which neighbours the release is drawn."""

    rng: Random
    values: int
    relation: cm.Relation

    def for_relation(self, relation: cm.Relation) -> Tiny:
        """The same domain, for what is stated under another relation."""
        return Tiny(self.rng, self.values, relation)

    def label(self, labels: int) -> Callable[[Data], int]:
        """An arbitrary function of the multiset of records."""
        known: dict[Data, int] = {}
        return lambda data: known.setdefault(tuple(sorted(data)), int(self.rng.integers(labels)))

    def total(self, whole: bool = False, ball: bool = False) -> Callable[[Data], float]:
        """A sum over the records that one neighbour changes by 1 at most; in a ball the values lie around 0."""
        replaced = self.relation is cm.Relation.REPLACE_ONE
        low, high = (-0.5, 0.5) if ball else (0.0, 1.0) if replaced else (-1.0, 1.0)
        weights = self.rng.uniform(low, high, self.values)
        extreme = self.rng.random(self.values) < 0.7
        weights = np.where(extreme, self.rng.choice([low, high], self.values), weights)
        weights = np.round(weights) if whole else weights
        return lambda data: float(sum(weights[value] for value in data))


# ---- mechanisms


def bins(edges: Law, cdf: Callable[[Law], Law]) -> Law:
    """Masses of a symmetric law between the edges and beyond the first and the last, each told from its nearer tail."""
    below, above = np.concatenate([[0.0], cdf(edges), [1.0]]), np.concatenate([[1.0], cdf(-edges), [0.0]])
    return np.asarray(np.where(below[:-1] > 0.5, above[:-1] - above[1:], below[1:] - below[:-1]))


def gaussian(tiny: Tiny, sigma: float, sensitivity: float, ball: bool = False) -> Release:
    """A sum with Gaussian noise."""
    f, edges = tiny.total(ball=ball), np.linspace(-REACH, REACH, BINS - 1) * max(sigma, sensitivity)
    return lambda data: bins((edges - sensitivity * f(data)) / sigma, lambda z: np.asarray(special.ndtr(z)))


def laplace(tiny: Tiny, scale: float, sensitivity: float) -> Release:
    """A sum with Laplace noise."""
    f, edges = tiny.total(), np.linspace(-REACH, REACH, BINS - 1) * max(scale, sensitivity)

    def cdf(z: Law) -> Law:
        return np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2)

    return lambda data: bins((edges - sensitivity * f(data)) / scale, cdf)


def integers(tiny: Tiny, log_mass: Callable[[Law], Law]) -> Release:
    """Noise on the integers around a count, outputs beyond the reach told as its ends."""
    f, far = tiny.total(whole=True), np.arange(-60, 61)
    mass = np.exp(log_mass(far.astype(float)))
    mass /= mass.sum()

    def law(data: Data) -> Law:
        told = np.clip(far + round(f(data)), -REACH, REACH) + REACH
        return np.asarray(np.bincount(told, mass, 2 * REACH + 1), dtype=np.float64)

    return law


def reports(tiny: Tiny, rows: Law) -> Release:
    """One row of the matrix for each value that is reported; which one is any function of the data."""
    label = tiny.label(len(rows))
    return lambda data: np.asarray(rows[label(data)])


def kary(values: int, odds: float) -> Law:
    """Row i tells i with `odds` times the mass of each other answer."""
    rows = np.ones((values, values)) + (odds - 1) * np.eye(values)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def pure(tiny: Tiny, epsilon: float) -> Release:
    """Any mechanism of this privacy: a report, or a count with two-sided geometric noise."""
    if tiny.rng.random() < 0.5:
        return reports(tiny, kary(int(tiny.rng.integers(2, 4)), math.exp(epsilon)))
    return integers(tiny, lambda x: -epsilon * np.abs(x))


def scores(tiny: Tiny, epsilon: float) -> Release:
    """The exponential mechanism on three candidates."""
    totals = [tiny.total() for _ in range(3)]

    def law(data: Data) -> Law:
        weights = np.exp(epsilon / 2 * np.array([total(data) for total in totals]))
        return np.asarray(weights / weights.sum())

    return law


def mostly(tiny: Tiny, usual: Release, leak: float) -> Release:
    """What runs, but with probability `leak` something else is told of the data."""
    label, none = tiny.label(4), np.zeros(4)

    def law(data: Data) -> Law:
        told = none.copy()
        told[label(data)] = leak
        return np.concatenate([(1 - leak) * usual(data), told])

    return law


def unary(values: int, p: float, q: float) -> Law:
    """Every vector of bits; the own one is 1 with probability p, each other with q."""
    outputs = np.array(list(itertools.product([0, 1], repeat=values)))
    rows = []
    for own in range(values):
        chance = np.where(np.arange(values) == own, p, q)
        rows.append(np.prod(np.where(outputs == 1, chance, 1 - chance), axis=1))
    return np.array(rows)


def subsets(values: int, size: int, odds: float) -> Law:
    """Every set of this size; one that holds the own value is `odds` times as likely as one that does not."""
    sets = list(itertools.combinations(range(values), size))
    rows = np.array([[odds if own in each else 1.0 for each in sets] for own in range(values)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def leaf(mechanism: Any, tiny: Tiny) -> Release:
    """An instance of a mechanism that is made of no other one."""
    match type(mechanism).__name__:
        case "Gaussian":
            sigma, moved = float(mechanism.sigma), float(mechanism.sensitivity)
            return gaussian(tiny, sigma, moved, mechanism.geometry == "ball")
        case "GaussianDP":
            return gaussian(tiny, 1 / float(mechanism.mu), 1.0)
        case "ZeroConcentrated":
            return gaussian(tiny, math.sqrt(0.5 / float(mechanism.rho)), 1.0)
        case "Laplace":
            return laplace(tiny, float(mechanism.scale), float(mechanism.sensitivity))
        case "DiscreteLaplace":
            return integers(tiny, lambda x: -np.abs(x) / float(mechanism.scale))
        case "DiscreteGaussian":
            return integers(tiny, lambda x: -(x**2) / (2 * float(mechanism.sigma) ** 2))
        case "PureDP":
            return pure(tiny, float(mechanism.loss))
        case "ApproximateDP":
            return mostly(tiny, pure(tiny, float(mechanism.loss)), float(mechanism.failure))
        case "ExponentialMechanism":
            return scores(tiny, float(mechanism.loss))
        case "RandomizedResponse":
            return reports(tiny, kary(2, float(mechanism.p / (1 - mechanism.p))))
        case "KaryResponse":
            others = int(mechanism.values) - 1
            return reports(tiny, kary(others + 1, float(mechanism.p * others / (1 - mechanism.p))))
        case "UnaryEncoding":
            return reports(tiny, unary(3, float(mechanism.p), float(mechanism.q)))
        case "SubsetSelection":
            return reports(tiny, subsets(int(mechanism.values), int(mechanism.size), math.exp(float(mechanism.loss))))
        case "LocalRandomizer":
            return reports(tiny, np.array([[float(x) for x in law] for law in mechanism.laws]))
        case "ByMasses":
            laws = np.array([[float(x) for x in each] for each in (mechanism.p, mechanism.q)])
            return reports(tiny, laws / laws.sum(axis=1, keepdims=True))
    raise NotImplementedError(type(mechanism).__name__)


# ---- combinators


def product(laws: list[Law]) -> Law:
    """The law of independent outputs."""
    if math.prod(law.size for law in laws) > MOST_OUTPUTS:
        raise TooLarge
    return reduce(lambda x, y: np.multiply.outer(x, y).ravel(), laws, np.ones(1))


def release(expression: Expression, tiny: Tiny) -> Release:
    """An instance of the expression: every mechanism of it drawn, and afresh for every time that it runs."""
    drawn = [_made(each, tiny) for each, times in expression.terms.items() for _ in range(times)]
    found = drawn[0] if len(drawn) == 1 else lambda data: product([each(data) for each in drawn])
    known: dict[Data, Law] = {}

    def law(data: Data) -> Law:
        if data not in known:
            known[data] = found(data)
        return known[data]

    return law


def _made(mechanism: Mechanism, tiny: Tiny) -> Release:
    made: Any = mechanism
    match type(mechanism).__name__:
        case "Sampled":
            return sampled(made.inner, made.scheme, tiny)
        case "Grouped" | "UserMechanism":
            return release(made.inner, tiny)
        case "ShuffledPass":
            return permuted(made.inner, made.scheme, tiny)
        case "Selected":
            return selected(release(made.inner, tiny), made.scheme, tiny)
        case "Shuffled":
            return shuffled(release(made.inner, tiny), int(made.scheme.reports))
        case "Parallel":
            return parallel(made, tiny)
    return leaf(mechanism, tiny)


def sampled(inner: Expression, scheme: Any, tiny: Tiny) -> Release:
    """Every sample with its probability; what runs ignores the order of its sample."""
    below = tiny.for_relation(scheme.takes)
    if type(scheme).__name__ == "RandomAllocation":
        return allocated([release(inner, below) for _ in range(int(scheme.steps))])
    one, needed = release(inner, below), records(inner)

    def law(data: Data) -> Law:
        found: dict[Data, float] = {}
        for sample, chance in samples(scheme, data, needed):
            key = tuple(sorted(sample))
            found[key] = found.get(key, 0.0) + chance
        return np.asarray(sum(chance * one(sample) for sample, chance in found.items()))

    return law


def samples(scheme: Any, data: Data, needed: int | None) -> Iterator[tuple[Data, float]]:
    """The samples of a data set and their probabilities, from the definition; what runs may need one size of them."""
    places = range(len(data))
    match type(scheme).__name__:
        case "WithoutReplacement":
            size = needed or int(scheme.sample or scheme.rate * larger_size(scheme, needed))
            drawn = list(itertools.combinations(places, size))
            yield from ((tuple(data[i] for i in each), 1 / len(drawn)) for each in drawn)
        case "WithReplacement":
            draws = list(itertools.product(places, repeat=int(scheme.sample)))
            yield from ((tuple(data[i] for i in each), 1 / len(draws)) for each in draws)
        case "Poisson" | "TruncatedPoisson":
            rate = float(scheme.rate)
            most = int(scheme.limit) if hasattr(scheme, "limit") else len(data)
            for count in range(len(data) + 1):
                for each in itertools.combinations(places, count):
                    chance = rate**count * (1 - rate) ** (len(data) - count)
                    cut = list(itertools.combinations(each, min(count, most)))
                    yield from ((tuple(data[i] for i in kept), chance / len(cut)) for kept in cut)
        case _:
            raise NotImplementedError(type(scheme).__name__)


def larger_size(scheme: Any, needed: int | None) -> int:
    """The number of records of the larger data set of a sample of fixed size that is given by its rate."""
    size = scheme.population or (scheme.rate.denominator if needed is None else needed / scheme.rate)
    if size != int(size):
        raise NotImplementedError(f"{needed} records by {scheme}")
    return int(size)


def allocated(steps: list[Release]) -> Release:
    """Every record is in one of the steps, uniformly and for it alone."""

    def law(data: Data) -> Law:
        total: Any = 0.0
        for places in itertools.product(range(len(steps)), repeat=len(data)):
            seen = [tuple(sorted(v for v, at in zip(data, places, strict=True) if at == i)) for i in range(len(steps))]
            total = total + product([step(part) for step, part in zip(steps, seen, strict=True)])
        return np.asarray(total / len(steps) ** len(data))

    return law


def permuted(inner: Expression, scheme: Any, tiny: Tiny) -> Release:
    """Every cut of the records into batches of the stated sizes; each batch has a release of its own."""
    cuts = batch_sizes(scheme)
    steps = [release(inner, tiny) for _ in cuts]

    def law(data: Data) -> Law:
        total: Any = 0.0
        orders = set(itertools.permutations(data)) if scheme.cut() is not None else {data}
        for order in orders:
            ends = list(itertools.accumulate(cuts, initial=0))
            seen = [tuple(sorted(order[i:j])) for i, j in itertools.pairwise(ends)]
            total = total + product([step(part) for step, part in zip(steps, seen, strict=True)])
        return np.asarray(total / len(orders))

    return law


def batch_sizes(scheme: Any) -> list[int]:
    """The sizes of the batches of a pass; of one record each where nothing is said."""
    if scheme.batch is None:
        return [1] * int(scheme.batches or 2)
    full, rest = divmod(int(scheme.records), int(scheme.batch))
    return [int(scheme.batch)] * full + ([rest] if rest and not scheme.drop_last else [])


def selected(one: Release, scheme: Any, tiny: Tiny) -> Release:
    """The best of K outputs in a fixed order: P(best <= x) = E F(x)^K, and nothing is told where K = 0."""
    ranks: list[Any] = []

    def law(data: Data) -> Law:
        masses = one(data)
        if not ranks:
            ranks.append(tiny.rng.permutation(masses.size))
        each = masses[ranks[0]] / masses.sum()
        below = np.minimum(np.concatenate([[0.0], np.cumsum(each)[:-1]]), 1.0)
        return np.concatenate([generating(scheme, np.zeros(1)), risen(scheme, below, each)])

    return law


def generating(scheme: Any, x: Law) -> Law:
    """E x^K: Poisson, or the truncated negative binomial law of Papernot and Steinke with this mean and shape."""
    if scheme.number == "poisson":
        return np.asarray(np.exp(float(scheme.mean) * (x - 1)))
    return risen(scheme, np.zeros(len(x)), x)


def risen(scheme: Any, x: Law, mass: Law) -> Law:
    """E (x + mass)^K - E x^K with all its digits, also where the mass is tiny beside x."""
    mean, shape = float(scheme.mean), float(scheme.shape)
    if scheme.number == "poisson":
        return np.asarray(np.exp(mean * (x - 1)) * np.expm1(mean * mass))
    g = success(mean, shape)
    left = 1 - (1 - g) * x
    step = np.log1p(-(1 - g) * mass / left)
    if not shape:
        return np.asarray(step / math.log(g))
    return np.asarray(left**-shape * np.expm1(-shape * step) / (g**-shape - 1))


def success(mean: float, shape: float) -> float:
    """The parameter of the truncated negative binomial law with this mean, by bisection."""

    def expected(g: float) -> float:
        if not shape:
            return (1 / g - 1) / math.log(1 / g)
        return float(shape * (1 - g) / (g * (1 - g**shape)))

    low, high = 1e-12, 1 - 1e-12
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) > mean else (low, middle)
    return low


def shuffled(one: Release, reports: int) -> Release:
    """How often each answer was given by so many users, one record each, all with the same randomizer."""

    def law(data: Data) -> Law:
        if len(data) != reports:
            raise NotImplementedError(f"{reports} reports of {len(data)} records")
        found: dict[Data, float] = {}
        rows = [one((value,)) for value in data]
        if rows[0].size ** reports > MOST_OUTPUTS:
            raise TooLarge
        for answers in itertools.product(range(rows[0].size), repeat=reports):
            key = tuple(sorted(answers))
            found[key] = found.get(key, 0.0) + math.prod(row[a] for row, a in zip(rows, answers, strict=True))
        return np.array([found[key] for key in sorted(found)])

    return law


def parallel(run: Any, tiny: Tiny) -> Release:
    """The outputs of all parts: a record goes to one by its value, or by its place in blocks that are public."""
    below = tiny.for_relation(cm.Relation.ADD_REMOVE) if run.by == "value" else tiny
    parts = [release(part, below) for part in run.parts]
    blocks = [records(part) or 1 for part in run.parts]
    owner = [i for i, size in enumerate(blocks) for _ in range(size)]

    def law(data: Data) -> Law:
        if run.by == "value":
            seen = [tuple(sorted(v for v in data if v % len(parts) == i)) for i in range(len(parts))]
        else:
            places = enumerate(data)
            at = [(owner[place] if place < len(owner) else len(parts) - 1, v) for place, v in places]
            seen = [tuple(sorted(v for part, v in at if part == i)) for i in range(len(parts))]
        return product([part(each) for part, each in zip(parts, seen, strict=True)])

    return law


# ---- neighbours


def records(expression: Expression) -> int | None:
    """The number of records of the data set that an expression is stated for; None if any number will do."""
    found = {size for mechanism in expression.terms if (size := _records(mechanism)) is not None}
    if len(found) > 1:
        raise NotImplementedError(f"{expression} is stated for {found} records")
    return found.pop() if found else None


def _records(mechanism: Any) -> int | None:
    match type(mechanism).__name__:
        case "Sampled":
            scheme = mechanism.scheme
            if type(scheme).__name__ == "WithoutReplacement":
                return larger_size(scheme, records(mechanism.inner))
            size: Fraction | None = scheme.sizes()[1]
            return None if size is None else int(size)
        case "Grouped" | "Selected" | "UserMechanism":
            return records(mechanism.inner)
        case "ShuffledPass":
            return int(mechanism.scheme.records or sum(batch_sizes(mechanism.scheme)))
        case "Shuffled":
            return int(mechanism.scheme.reports)
        case "Parallel":
            sizes = [records(part) for part in mechanism.parts]
            if mechanism.by == "value" and any(sizes):
                raise NotImplementedError("parts by value have sizes of their own")
            return sum(size or 1 for size in sizes) if any(sizes) else None
    return None


def grows(expression: Expression) -> bool:
    """Whether the stated number of records may also be that of the smaller data set."""
    return "TruncatedPoisson" in str(expression)


Pairs = list[tuple[Data, Data]]


def neighbours(expression: Expression, relation: cm.Relation, values: int, size: int, most: int) -> Pairs:
    """All ordered pairs of data sets that differ in `size` records; under add/remove the first has more, or as many.

    Both orders are asked of each pair by the caller.
    """
    stated = records(expression)
    if relation is cm.Relation.REPLACE_ONE:
        count = stated or max(size, min(most, 3))
        sets = list(itertools.product(range(values), repeat=count))
        return [(x, y) for x in sets for y in sets if x < y and sum(a != b for a, b in zip(x, y, strict=True)) == size]
    user = "User(" in str(expression)  # joins or leaves as a whole
    counts = range(max(most, size) + 1)
    if stated is not None:
        counts = range(stated - (size if user else 1), stated + 1 + grows(expression))
    sets = [each for n in counts for each in itertools.combinations_with_replacement(range(values), n)]
    tallies = {each: np.bincount(each, minlength=values) if each else np.zeros(values, int) for each in sets}
    return [
        (x, y)
        for x in sets
        for y in sets
        if len(x) >= len(y)
        and x != y
        and int(np.abs(tallies[x] - tallies[y]).sum()) == size
        and not (user and len(x) - len(y) != size)
    ]
