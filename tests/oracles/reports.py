"""Adaptive rounds of reports from their definitions: the laws of all outputs, and the best policy by exact ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations

import numpy as np

import cumulant as cm
from cumulant.pairs.pair import Pair
from cumulant.pairs.worst_triples import Extremes

Laws = tuple[np.ndarray, np.ndarray]
"""a and b of one round, output by output."""


def report_laws(values: int, size: int, odds: float) -> list[np.ndarray]:
    """The output law of each of the first three inputs of subset selection, set by set, from its definition."""
    sets = list(combinations(range(values), size))
    found = []
    for own in range(min(values, 3)):
        weight = np.array([odds if own in each else 1.0 for each in sets])
        found.append(weight / weight.sum())
    return found


def rounds_of(values: int, size: int, odds: float, rate: float) -> list[Laws]:
    """All rounds that inputs can make: a and b for every choice of r, p, q."""
    laws = report_laws(values, size, odds)
    if len(laws) < 3:
        laws.append(laws[0])
    found = []
    for r, p, q in ((1, 0, 1), (0, 0, 1), (2, 0, 1)):
        if values > 2 or r < 2:
            found.append(((1 - rate) * laws[r] + rate * laws[p], (1 - rate) * laws[r] + rate * laws[q]))
    return found


def pure_rounds(odds: float, rate: float) -> list[Laws]:
    """The three worst rounds of all mechanisms with these odds: binary response in both orders, and three of three inputs."""
    return [*rounds_of(2, 1, odds, rate), rounds_of(3, 1, odds, rate)[2]]


def optimum(
    kinds: Sequence[tuple[Sequence[Laws], int]], epsilon: float, order: Callable[[Iterable[float]], float] = max
) -> float:
    """delta of the best policy, by recursion over the exact ratios that have occurred; `order` says which kind comes next."""
    merged = []
    for rounds, _ in kinds:
        every = []
        for a, b in rounds:
            places = np.round(np.log(a / b), 13)
            every.append([(float(loss), float(b[places == loss].sum())) for loss in np.unique(places)])
        merged.append(every)

    @cache
    def value(left: tuple[int, ...], log_ratio: float) -> float:
        if not any(left):
            return max(math.exp(log_ratio) - math.exp(epsilon), 0.0)
        return order(
            max(
                sum(m * value((*left[:i], left[i] - 1, *left[i + 1 :]), round(log_ratio + loss, 12)) for loss, m in one)
                for one in merged[i]
            )
            for i in range(len(left))
            if left[i]
        )

    return value(tuple(times for _, times in kinds), 0.0)


PAIRS: dict[str, tuple[Pair | None, tuple[int, int, float]]] = {
    "RandomizedResponse": (cm.RandomizedResponse(p="0.8").pair(), (2, 1, 4.0)),
    "PureDP": (cm.PureDP("1.2").pair(), (3, 1, math.exp(1.2))),
    "KaryResponse": (cm.KaryResponse(values=5, epsilon=2).pair(), (5, 1, math.exp(2))),
    "KaryResponse by p": (cm.KaryResponse(values=4, p="1/2").pair(), (4, 1, 3.0)),
    "KaryResponse that lies": (cm.KaryResponse(values=4, p="1/10").pair(), (4, 1, 1 / 3)),
    "SubsetSelection": (cm.SubsetSelection(values=6, size=2, epsilon=1).pair(), (6, 2, math.exp(1))),
}


def extremes_of(name: str) -> Extremes:
    pair = PAIRS[name][0]
    found = None if pair is None else pair.extremes()
    assert found is not None
    return found
