"""Tests of batches against the law that is accounted.

Fixed-size, Poisson, cyclic Poisson samples, balls in bins or shuffled passes.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import special

from cumulant.domains import COUNT, RATE, Number, listed
from cumulant.errors import InputError, shown

PER_BIN = 20
"""First elements per bin of their ranks, at least, so that counts are nearly normal."""
FEW_COUNTS = 20
"""Degrees of freedom up to which equal counts are not rare; measured by simulation of right loaders."""
FEW_EXPECTED = 5
"""Expected count below which chi-square needs many coincidences; convention: the usual rule for chi-square."""
FEW_PAIRS = 100
"""Expected pairs of equal draws that small counts need; derived: the tail at 1e-3 is off by a factor of 1.7 there."""
FEW_DEGREES = 50.0
"""Degrees of freedom that rare sizes need for the law of their spread; measured by simulation of right loaders."""
LARGE_VARIANCE = 1000.0
"""Variance of a sum of overlaps from which the normal law is used; derived: its tail at 1e-4 is off by a fifth there."""
FAR_DEVIATIONS = 15.0
"""Standard deviations from the mean of an overlap that its law reaches; derived: less than 1e-17 lies beyond."""
FAR_RECORDS = 40
"""Records by which the law of an overlap reaches further; derived: Poisson tails of a small mean are below 1e-17 there."""
NO_MASS = 1e-30
"""A mass below it changes no p-value of an overlap."""

Integers = np.ndarray[Any, np.dtype[np.int64]]
Law = tuple[int, np.ndarray[Any, np.dtype[np.float64]]]
"""The least value of a random number, and the masses of this value and the next ones."""


def conformance(
    batches: Iterable[Iterable[int]],
    population: int,
    sample: int | None = None,
    *,
    rate: Number | None = None,
    cycle: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    drop_last: bool = False,
) -> dict[str, float]:
    """Return p-values of tests of whether batches follow a law.

    Give `sample`, `rate`, `rate` and `cycle`, `steps`, or `batch`.

    `sample` means uniform samples of this size, `rate` Poisson samples, with `cycle` from so many parts of the data in turn,
    `steps` balls in bins: passes of so many steps in which each record is once, drawn afresh in every pass, and `batch`
    shuffled passes: a fresh permutation in every pass, cut into batches of this size; `drop_last` says that a short last one is
    left out.

    Wrap the data set so that the loader returns record numbers from 0 to population - 1, and give its batches in the order in
    which they came, at least some hundred. Small values refute:

    * `size`: every batch has `sample` distinct records; 0 if one has not, else 1. With `rate` the sizes are tested against
      the binomial law, in their sum and in their spread; 0 if a batch has a record twice.
    * `coverage`: how often each record was drawn, by chi-square, two-sided. Shuffled epochs are too even.
    * `overlap`: how many records consecutive batches share, against the hypergeometric law. Shuffled epochs share none.
    * `order`: the rank of the first record within its batch. Sorted batches begin with the smallest. A Poisson sample is a
      set, so `order` is not tested with `rate`.

    With `cycle`, the batches of one cycle together are tested as a Poisson sample of `rate`, and `parts` is 0 if a record was
    drawn from two parts. With `steps` the tests are about whole passes: `coverage` is 0 unless every record is in every pass
    once; `size` tests the sizes against the multinomial law, from which shuffled batches of equal sizes differ; `overlap`
    compares the step of each record with its step in the pass before, which refutes one draw for all passes; `order` looks
    for a trend of steps with record numbers. With `batch` the same four are tested: `size` is 0 unless all batches have their
    fixed sizes, and `overlap` refutes a permutation that is used again, shifted or turned around.

    The p-values are approximate, by the normal and chi-square laws, and what is not refuted is not proved: a loader may pass
    and be predictable all the same. A test that needs more batches than it has returns 1: that of how evenly records or sizes
    are spread, where counts below 5 and fewer than 100 pairs of equal draws are expected.

    >>> import cumulant as cm
    >>> fresh = cm.training.FixedSizeSampler(population=500, sample=20, steps=400, key=bytes(32))
    >>> min(conformance(fresh, 500, 20).values()) > 0.01
    True
    >>> sequential = [range(20 * (t % 25), 20 * (t % 25) + 20) for t in range(400)]
    >>> {test for test, p in conformance(sequential, 500, 20).items() if p < 0.01} == {"coverage", "overlap", "order"}
    True
    >>> poisson = cm.training.PoissonSampler(population=500, rate="1/25", steps=400, key=bytes([3]) * 32)
    >>> min(conformance(poisson, 500, rate="1/25").values()) > 0.01
    True
    >>> allocated = cm.training.BallsInBinsSampler(population=500, steps=25, key=bytes(32))
    >>> passes = [batch for _ in range(20) for batch in allocated]
    >>> min(conformance(passes, 500, steps=25).values()) > 0.01
    True
    >>> conformance(passes[:25] * 20, 500, steps=25)["overlap"]
    0.0
    >>> shuffled = cm.training.ShuffledSampler(population=500, batch=20, key=bytes(32))
    >>> passes = [batch for _ in range(20) for batch in shuffled]
    >>> min(conformance(passes, 500, batch=20).values()) > 0.01
    True
    """
    records = int(COUNT.check("population", population))
    if sum(given is not None for given in (sample, rate, steps, batch)) != 1:
        raise InputError(
            "give sample=… (fixed size), rate=… (Poisson), steps=… (balls in bins) or batch=… (shuffled passes), one of them"
        )
    if drop_last and batch is None:
        raise InputError("drop_last=True is for shuffled passes; give their batch=… as well")
    if cycle is not None and rate is None:
        raise InputError(f"cycle={shown(cycle)} is for Poisson samples from parts in turn; give their rate=… as well")
    size = None if sample is None else int(COUNT.check("sample", sample))
    if size is not None and size > records:
        raise InputError(f"sample={size} must be at most population={records}")
    probability = None if rate is None else float(RATE.check("rate", rate))
    drawn = [_batch(each, records, number) for number, each in enumerate(listed("batches", batches))]
    if len(drawn) < 2:
        raise InputError(f"{len(drawn)} batches are too few to test; give at least 2, better some hundred")
    if steps is not None:
        return _allocation(drawn, records, int(COUNT.check("steps", steps)))
    if batch is not None:
        length = int(COUNT.check("batch", batch))
        if length > records:
            raise InputError(f"batch={length} must be at most population={records}")
        return _shuffled(drawn, records, length, drop_last)
    if probability is not None:
        whole = 1 if cycle is None else int(COUNT.check("cycle", cycle))
        return _poisson(drawn, records, probability) if whole == 1 else _cycles(drawn, records, probability, whole)
    distinct = [np.unique(batch) for batch in drawn]
    once = all(len(batch) == len(set_) for batch, set_ in zip(drawn, distinct, strict=True))
    uniform = {"coverage": _coverage(distinct, records), "overlap": _overlap(distinct, records)}
    exact = once and all(len(batch) == size for batch in drawn)
    return {"size": float(exact), **uniform, "order": _order(drawn)}


def _poisson(drawn: list[Integers], records: int, rate: float) -> dict[str, float]:
    """Test Poisson samples."""
    distinct = [np.unique(batch) for batch in drawn]
    sizes = np.array([len(batch) for batch in drawn])
    once = all(len(batch) == len(set_) for batch, set_ in zip(drawn, distinct, strict=True))
    return {
        "size": _binomial(sizes, records, rate) if once else 0.0,
        "coverage": _coverage(distinct, records),
        "overlap": _overlap(distinct, records),
    }


def _cycles(drawn: list[Integers], records: int, rate: float, cycle: int) -> dict[str, float]:
    """Test Poisson samples from parts in turn.

    All draws of one cycle are a Poisson sample, and parts are disjoint.
    """
    whole = len(drawn) // cycle
    if whole < 2:
        raise InputError(
            f"{len(drawn)} batches have {whole} whole cycles of {cycle}; give at least 2, better some hundred"
        )
    merged = [np.concatenate(drawn[cycle * t : cycle * (t + 1)]) for t in range(whole)]
    parts = [np.unique(np.concatenate(drawn[part::cycle])) for part in range(cycle)]
    disjoint = sum(map(len, parts)) == len(np.unique(np.concatenate(parts)))
    return {**_poisson(merged, records, rate), "parts": float(disjoint)}


def _allocation(drawn: list[Integers], records: int, steps: int) -> dict[str, float]:
    """Test balls in bins, drawn afresh in every pass.

    Batches after the last whole pass are left out.
    """
    whole = len(drawn) // steps
    if whole < 2:
        raise InputError(f"{len(drawn)} batches have {whole} whole passes of {steps} steps; give at least 2")
    passes = [drawn[steps * t : steps * (t + 1)] for t in range(whole)]
    sizes = np.array([[len(batch) for batch in batches] for batches in passes])
    together = [np.concatenate(batches) for batches in passes]
    if not all(np.array_equal(np.sort(each), np.arange(records)) for each in together):
        return {"size": 1.0, "coverage": 0.0, "overlap": 1.0, "order": 1.0}
    places = np.empty((whole, records), dtype=np.int64)
    for row, numbers, lengths in zip(places, together, sizes, strict=True):
        row[numbers] = np.repeat(np.arange(steps), lengths)
    if steps == 1:
        return {"size": 1.0, "coverage": 1.0, "overlap": 1.0, "order": 1.0}
    # steps of one record in two passes differ, modulo `steps`, by a uniform number, independently for all pairs of passes
    moved = np.bincount(np.mod(np.diff(places, axis=0), steps).ravel(), minlength=steps)
    trend = float(np.sum((places - (steps - 1) / 2) @ (np.arange(records) - (records - 1) / 2)))
    variance = whole * (steps**2 - 1) / 12 * records * (records**2 - 1) / 12
    z = trend / math.sqrt(variance) if variance else 0.0
    together_by_chance = whole * records * (records - 1) / (2 * steps)
    return {
        "size": _test_evenness(sizes.ravel(), records / steps, whole * (steps - 1), together_by_chance),
        "coverage": 1.0,
        "overlap": _test_evenness(
            moved, (whole - 1) * records / steps, steps - 1, ((whole - 1) * records) ** 2 / (2 * steps)
        ),
        "order": _two_sided(float(special.ndtr(z)), float(special.ndtr(-z))),
    }


def _shuffled(drawn: list[Integers], records: int, length: int, drop_last: bool) -> dict[str, float]:
    """Test passes over a fresh permutation that is cut into batches of this length.

    Batches after the last whole pass are left out.
    """
    full, rest = divmod(records, length)
    sizes = [length] * full + ([rest] if rest and not drop_last else [])
    whole = len(drawn) // len(sizes)
    if whole < 2:
        raise InputError(f"{len(drawn)} batches have {whole} whole passes of {len(sizes)} batches; give at least 2")
    passes = [drawn[len(sizes) * t : len(sizes) * (t + 1)] for t in range(whole)]
    once = all(len(np.unique(np.concatenate(each))) == sum(map(len, each)) for each in passes)
    fixed = all([len(batch) for batch in each] == sizes for each in passes)
    if not (once and fixed) or len(sizes) == 1:
        return {"size": float(fixed), "coverage": float(once), "overlap": 1.0, "order": 1.0}
    places = np.full((whole, records), len(sizes))  # a record that is dropped comes after all batches
    for row, each in zip(places, passes, strict=True):
        row[np.concatenate(each)] = np.repeat(np.arange(len(sizes)), sizes)
    centred = places - places.mean(axis=1, keepdims=True)
    numbers = np.arange(records) - (records - 1) / 2
    variance = float(np.sum(centred**2)) * float(np.sum(numbers**2)) / (records - 1)
    z = float(np.sum(centred @ numbers)) / math.sqrt(variance)
    return {
        "size": 1.0,
        "coverage": 1.0,
        "overlap": _places_in_turn(places, records),
        "order": _two_sided(float(special.ndtr(z)), float(special.ndtr(-z))),
    }


def _places_in_turn(places: Integers, records: int) -> float:
    """Test whether places of records follow from those in the pass before.

    A short last place goes to the one before it. Of two places with few records one has its exact law.
    """
    last = int(places.max())
    if np.sum(places[0] == last) ** 2 < FEW_EXPECTED * records and last > 1:
        last -= 1
        places = np.minimum(places, last)
    if last == 1 and min(np.sum(places[0] == place) for place in (0, 1)) ** 2 < FEW_EXPECTED * records:
        return _overlap([np.flatnonzero(row) for row in places], records)
    turned = np.exp(2j * math.pi * places / (last + 1))
    turned -= turned.mean(axis=1, keepdims=True)
    same = [_test_turns(turned[:-1] * np.conj(turned[1:]), turned), _test_turns(turned[:-1] * turned[1:], turned)]
    return min(1.0, 2 * min(same))


def _test_turns(products: Any, turned: Any) -> float:
    """Test whether the places of records in consecutive passes, as points of a circle, turn together.

    For a fresh permutation a sum of products of centred numbers has E|S|^2 = SUM|u|^2 SUM|v|^2/(n-1). With three places or
    more |S|^2 over that is exponential for many records, with two it is chi-square.
    """
    size = np.sum(np.abs(turned) ** 2, axis=1)
    squares = np.abs(products.sum(axis=1)) ** 2 * (turned.shape[1] - 1) / (size[:-1] * size[1:])
    total, count = float(squares.sum()), len(squares)
    real = not np.any(np.abs(turned.imag) > 1e-9)
    return float(special.chdtrc(count, total) if real else special.gammaincc(count, total))


def _test_evenness(counts: Integers, expected: float, freedom: int, pairs: float) -> float:
    """Test counts against equal expectations, two-sided: too even is wrong too; 1 if too few pairs are expected in them.

    The exact law for two counts of a fixed sum, else chi-square. Its lower tail has no mass at 0, but a few counts are equal
    with a probability that is not small; so half a record is added to every difference there.
    """
    if freedom == 1 and len(counts) == 2:
        total, least = int(counts.sum()), int(counts.min())
        unlike = 2 * float(special.bdtr(least, total, 0.5))
        return _two_sided(1 - 2 * float(special.bdtr(least - 1, total, 0.5)) if least else 1.0, unlike)
    if expected < FEW_EXPECTED and pairs < FEW_PAIRS:
        return 1.0
    away = np.abs(counts - expected)
    statistic = float(np.sum(away**2) / expected)
    below = float(np.sum((away + 0.5) ** 2) / expected) if freedom <= FEW_COUNTS else statistic
    return _two_sided(float(special.chdtr(freedom, below)), float(special.chdtrc(freedom, statistic)))


def _binomial(sizes: Integers, records: int, rate: float) -> float:
    """Test sizes against the binomial law.

    The exact law of their sum, and SUM (m - nq)^2 / (nq (1-q)) by chi-square; the smaller of the two p-values, twice. The
    sum of squares has the mean T and the variance T (2 + (1/(q (1-q)) - 6) / n) for T sizes, and chi-square is scaled to both.
    """
    total, trials = int(sizes.sum()), records * len(sizes)
    if rate == 1:
        return float(total == trials)
    sums = _two_sided(
        float(special.bdtr(total, trials, rate)), float(special.bdtrc(total - 1, trials, rate)) if total else 1.0
    )
    variance = records * rate * (1 - rate)
    scale = 2 / (2 + 1 / variance - 6 / records)
    freedom, statistic = scale * len(sizes), scale * float(np.sum((sizes - records * rate) ** 2)) / variance
    if variance < FEW_EXPECTED and freedom < FEW_DEGREES:
        return sums
    spread = _two_sided(float(special.chdtr(freedom, statistic)), float(special.chdtrc(freedom, statistic)))
    return min(1.0, 2 * min(sums, spread))


def _batch(batch: Iterable[int], records: int, number: int) -> Integers:
    try:
        found = np.asarray(batch if isinstance(batch, np.ndarray) else list(batch))
        if found.size == 0:
            return np.empty(0, dtype=np.int64)
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise TypeError("it is no flat sequence of record numbers")
        if found.min() < 0 or found.max() >= records:
            raise ValueError(f"it has the record {found[(found < 0) | (found >= records)][0]}")
    except Exception as error:  # the loader may be the user's own
        raise InputError(
            f"batch {number} must be record numbers from 0 to {records - 1}: {error}; wrap the data set so that it "
            "returns its indices"
        ) from error
    return found.astype(np.int64)


def _coverage(batches: list[Integers], records: int) -> float:
    """Test how evenly the batches cover the records.

    Given their sizes m_t, the counts of records have variance V = SUM q_t (1 - q_t), q_t = m_t / n, and a fixed sum; so
    (n-1)/n SUM (c - mean)^2 / V is chi-square of n - 1 degrees of freedom for many batches. Two records have the exact law
    of two counts, and with few records half a record is added below, as in `_test_evenness`.
    """
    if records == 2:
        each = np.bincount(
            np.concatenate([batch for batch in batches if len(batch) == 1] or [batches[0][:0]]), minlength=2
        )
        return _test_evenness(each, float(each.sum()) / 2, 1, math.inf) if each.any() else 1.0
    counts = np.bincount(np.concatenate(batches), minlength=records)
    rates = np.array([len(batch) for batch in batches]) / records
    variance = float(np.sum(rates * (1 - rates)))
    if variance == 0:  # every batch is everything, or nothing
        return 1.0
    # a batch of more than half of the records is known by those that it leaves out
    small = records * np.minimum(rates, 1 - rates)
    pairs = float(small.sum() ** 2 - np.sum(small**2)) / (2 * records)
    if small.sum() < FEW_EXPECTED * records and pairs < FEW_PAIRS:
        return 1.0
    away, scale = np.abs(counts - rates.sum()), (records - 1) / records / variance
    statistic = scale * float(np.sum(away**2))
    below = scale * float(np.sum((away + 0.5) ** 2)) if records - 1 <= FEW_COUNTS else statistic
    return _two_sided(float(special.chdtr(records - 1, below)), float(special.chdtrc(records - 1, statistic)))


def _overlap(batches: list[Integers], records: int) -> float:
    """Test the overlaps of consecutive batches.

    Given their sizes, the overlap of a sample with the one before it is hypergeometric, whatever the samples before were: so
    the overlaps are independent. Their sum has its exact law here if it varies little, else the normal one.
    """
    total = 0
    mean = variance = 0.0
    pairs: Counter[tuple[int, int]] = Counter()
    for one, other in itertools.pairwise(batches):
        a, b = len(one), len(other)
        total += len(np.intersect1d(one, other, assume_unique=True))
        pairs[min(a, b), max(a, b)] += 1
        mean += a * b / records
        if records > 1:
            variance += a * b * (records - a) * (records - b) / (records**2 * (records - 1))
    if variance == 0:
        return 1.0
    if variance > LARGE_VARIANCE:
        z = (total - mean) / math.sqrt(variance)
        return _two_sided(float(special.ndtr(z)), float(special.ndtr(-z)))
    law: Law = 0, np.ones(1)
    for (a, b), count in pairs.items():
        law = _add_laws(law, _repeat_law(_hypergeometric(a, b, records), count))
    least, masses = law
    values = least + np.arange(len(masses))
    return _two_sided(float(masses[values <= total].sum()), float(masses[values >= total].sum()))


def _hypergeometric(a: int, b: int, records: int) -> Law:
    """Return the law of the records that two uniform samples of these sizes have in common."""
    mean = a * b / records
    variance = mean * (records - a) * (records - b) / (records * max(1, records - 1))
    reach = FAR_DEVIATIONS * math.sqrt(variance) + FAR_RECORDS
    least, most = max(0, a + b - records, math.floor(mean - reach)), min(a, b, math.ceil(mean + reach))
    k = np.arange(least, most, dtype=float)
    # p(k + 1) / p(k) = (a - k)(b - k) / ((k + 1)(n - a - b + k + 1))
    steps = np.log(a - k) + np.log(b - k) - np.log(k + 1) - np.log(records - a - b + k + 1)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    masses = np.exp(logs - logs.max())
    return least, masses / masses.sum()


def _add_laws(one: Law, other: Law) -> Law:
    """Return the law of the sum of two independent numbers, without masses that no p-value sees."""
    masses = np.convolve(one[1], other[1])
    seen = np.flatnonzero(masses > NO_MASS)
    return one[0] + other[0] + int(seen[0]), masses[seen[0] : seen[-1] + 1]


def _repeat_law(law: Law, count: int) -> Law:
    """Return the law of the sum of so many independent numbers of one law."""
    found: Law = 0, np.ones(1)
    while count:
        if count % 2:
            found = _add_laws(found, law)
        law, count = _add_laws(law, law), count // 2
    return found


def _order(batches: list[Integers]) -> float:
    """Test the order within batches by the ranks of first elements.

    As numbers in (0, 1) they are uniform given the sizes, in bins of equal probability.
    """
    first = [(int(np.sum(batch < batch[0])), len(batch)) for batch in batches if len(batch) > 1]
    if not first:
        return 1.0
    bins = min(min(size for _, size in first), max(2, len(first) // PER_BIN))
    counts, expected = np.zeros(bins), np.zeros(bins)
    for rank, size in first:
        counts[rank * bins // size] += 1
        edges = -(-np.arange(bins + 1) * size // bins)  # ranks r with r * bins // size = i
        expected += np.diff(edges) / size
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    return float(special.chdtrc(bins - 1, statistic))


def _two_sided(below: float, above: float) -> float:
    return min(1.0, 2 * min(below, above))
