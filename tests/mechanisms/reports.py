"""Shuffled reports of a few users from the definition: every list of reports, every data set."""

from __future__ import annotations

import itertools
import math

Laws = list[list[float]]


def histograms(laws: Laws, data: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """The law of the multiset of reports: every list of reports with its probability."""
    found: dict[tuple[int, ...], float] = {}
    for reports in itertools.product(range(len(laws[0])), repeat=len(data)):
        key = tuple(sorted(reports))
        found[key] = found.get(key, 0.0) + math.prod(laws[x][y] for x, y in zip(data, reports, strict=True))
    return found


def needed_delta(laws: Laws, reports: int, epsilon: float) -> float:
    """The largest delta of all neighbouring data sets of so many users."""
    most = 0.0
    inputs = range(len(laws))
    for others in itertools.combinations_with_replacement(inputs, reports - 1):
        found = [histograms(laws, (own, *others)) for own in inputs]
        for p, q in itertools.permutations(found, 2):
            most = max(most, sum(max(p[key] - math.exp(epsilon) * q[key], 0.0) for key in p))
    return most
