"""Divergences of explicit finite laws, from their definitions; what every formula of a mechanism is held against."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import cumulant as cm
from cumulant.pairs.pair import Pair

Law = Any
SLIP = 1 + 1e-9


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """SUM (p - e^epsilon q)_+."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def renyi(p: Law, q: Law, order: float) -> float:
    """log SUM p^a q^(1-a) / (a - 1)."""
    kept = p > 0
    with np.errstate(divide="ignore"):
        exponents = order * np.log(p[kept]) + (1 - order) * np.log(q[kept])
    top = exponents.max()
    return float(top + math.log(np.exp(exponents - top).sum())) / (order - 1)


def product(laws: Sequence[Law]) -> Law:
    """The law of independent outputs."""
    found = np.ones(1)
    for law in laws:
        found = np.multiply.outer(found, law).ravel()
    return found


def ordered(laws: Iterable[Law]) -> Iterable[tuple[Law, Law]]:
    """Every ordered pair of different laws."""
    return itertools.permutations(list(laws), 2)


def violations(
    mechanism: cm.Mechanism, pairs: Iterable[tuple[Law, Law]], epsilons: Sequence[float], orders: Sequence[float]
) -> tuple[int, float]:
    """How often an explicit pair needs more than is claimed of one round, and the largest share of delta that is needed."""
    pair: Pair | None = mechanism.pair()
    curve = mechanism.curve()
    deltas = None if pair is None else pair.profile(np.array(epsilons))
    divergences = curve.rdp(orders)
    wrong, share = 0, 0.0
    for p, q in pairs:
        for i, epsilon in enumerate(epsilons):
            if deltas is not None:
                needed = hockey_stick(p, q, epsilon)
                wrong += needed > deltas[i] * SLIP + 1e-14
                share = max(share, needed / deltas[i]) if deltas[i] > 1e-9 else share
        wrong += sum(renyi(p, q, a) > d * SLIP + 1e-12 for a, d in zip(orders, divergences, strict=True))
    return wrong, share
