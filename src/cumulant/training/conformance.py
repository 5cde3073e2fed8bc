"""Tests of batches against the law that is accounted: uniform samples of a fixed size, or Poisson samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import special

from cumulant.domains import COUNT, RATE, Number, listed
from cumulant.errors import InputError

PER_BIN = 20
"""First elements per bin of their ranks, at least, so that counts are nearly normal."""

Integers = np.ndarray[Any, np.dtype[np.int64]]


def conformance(
    batches: Iterable[Iterable[int]], population: int, sample: int | None = None, *, rate: Number | None = None
) -> dict[str, float]:
    """p-values of tests of whether batches are fresh samples: of the size `sample`, or Poisson samples of `rate`.

    Wrap the data set so that the loader returns record numbers from 0 to population - 1, and give its batches in the order in
    which they came, at least some hundred. Small values refute:

    * `size`: every batch has `sample` distinct records; 0 if one has not, else 1. With `rate` the sizes are tested against
      the binomial law, in their sum and in their spread; 0 if a batch has a record twice.
    * `coverage`: how often each record was drawn, by chi-square, two-sided. Shuffled epochs are too even.
    * `overlap`: how many records consecutive batches share, against the hypergeometric law. Shuffled epochs share none.
    * `order`: the rank of the first record within its batch. Sorted batches begin with the smallest. A Poisson sample is a
      set, so `order` is not tested with `rate`.

    The p-values are approximate, by the normal and chi-square laws, and what is not refuted is not proved: a loader may pass
    and be predictable all the same.

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
    """
    records = int(COUNT.check("population", population))
    if (sample is None) == (rate is None):
        raise InputError("give sample=… for samples of fixed size, or rate=… for Poisson samples, one of them")
    size = None if sample is None else int(COUNT.check("sample", sample))
    if size is not None and size > records:
        raise InputError(f"sample={size} must be at most population={records}")
    probability = None if rate is None else float(RATE.check("rate", rate))
    drawn = [_batch(batch, records, number) for number, batch in enumerate(listed("batches", batches))]
    if len(drawn) < 2:
        raise InputError(f"{len(drawn)} batches are too few to test; give at least 2, better some hundred")
    distinct = [np.unique(batch) for batch in drawn]
    once = all(len(batch) == len(set_) for batch, set_ in zip(drawn, distinct, strict=True))
    uniform = {"coverage": _coverage(distinct, records), "overlap": _overlap(distinct, records)}
    if probability is not None:
        sizes = np.array([len(batch) for batch in drawn])
        return {"size": _binomial(sizes, records, probability) if once else 0.0, **uniform}
    exact = once and all(len(batch) == size for batch in drawn)
    return {"size": float(exact), **uniform, "order": _order(drawn)}


def _binomial(sizes: Integers, records: int, rate: float) -> float:
    """Sizes against the binomial law: the exact law of their sum, and SUM (m - nq)^2 / (nq (1-q)) by chi-square; the smaller
    of the two p-values, twice."""
    total, trials = int(sizes.sum()), records * len(sizes)
    if rate == 1:
        return float(total == trials)
    sums = _two_sided(
        float(special.bdtr(total, trials, rate)), float(special.bdtrc(total - 1, trials, rate)) if total else 1.0
    )
    statistic = float(np.sum((sizes - records * rate) ** 2)) / (records * rate * (1 - rate))
    spread = _two_sided(float(special.chdtr(len(sizes), statistic)), float(special.chdtrc(len(sizes), statistic)))
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
    """Given their sizes m_t, the counts of records have variance V = SUM q_t (1 - q_t), q_t = m_t / n, and a fixed sum; so
    (n-1)/n SUM (c - mean)^2 / V is chi-square of n - 1 degrees of freedom for many batches."""
    counts = np.bincount(np.concatenate(batches), minlength=records)
    rates = np.array([len(batch) for batch in batches]) / records
    variance = float(np.sum(rates * (1 - rates)))
    if variance == 0:  # every batch is everything, or nothing
        return 1.0
    statistic = (records - 1) / records * float(np.sum((counts - rates.sum()) ** 2)) / variance
    return _two_sided(float(special.chdtr(records - 1, statistic)), float(special.chdtrc(records - 1, statistic)))


def _overlap(batches: list[Integers], records: int) -> float:
    """Given their sizes, the overlap of independent samples is hypergeometric, and consecutive overlaps are uncorrelated:
    given the batch that two of them share, they are independent with means that do not depend on it."""
    total = mean = variance = 0.0
    for one, other in itertools.pairwise(batches):
        a, b = len(one), len(other)
        total += len(np.intersect1d(one, other, assume_unique=True))
        mean += a * b / records
        if records > 1:
            variance += a * b * (records - a) * (records - b) / (records**2 * (records - 1))
    if variance == 0:
        return 1.0
    z = (total - mean) / math.sqrt(variance)
    return _two_sided(float(special.ndtr(z)), float(special.ndtr(-z)))


def _order(batches: list[Integers]) -> float:
    """Ranks of first elements, as numbers in (0, 1) that are uniform given the sizes, in bins of equal probability."""
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
