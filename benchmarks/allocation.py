"""Epochs of random allocation and shuffled reports, which no accountant among the peers has: numbers and seconds alone."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
from measure import Fact, LeftOut
from scipy.stats import binom

import cumulant as cm

DELTA = 1e-5
REPORTS, LOCAL, EPSILON = 1000, 1, "0.1"


def allocation(quick: bool) -> Iterator[Fact | LeftOut]:
    """Ten epochs of a hundred steps, from nothing; and delta of a thousand shuffled reports beside the clone of 2021."""
    run = cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=100) * 10
    start = time.perf_counter()
    found = run.epsilon(delta=DELTA)
    seconds = time.perf_counter() - start
    rdp, poisson = run.epsilon(delta=DELTA, method="rdp"), cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.01") * 1000
    detail = (
        f"epsilon {found:.4f}, by divergences {rdp:.4f}; Poisson samples of the same rate {poisson.epsilon(DELTA):.4f}, "
        f"ten releases {(cm.Gaussian(sigma=1) * 10).epsilon(DELTA):.2f}"
    )
    yield Fact("random allocation, sigma 1, 100 steps, 10 epochs, delta 1e-5: seconds, once", seconds, 5.0, detail)
    reports = cm.PureDP(LOCAL) @ cm.Shuffle(reports=REPORTS)
    start = time.perf_counter()
    delta = reports.delta(epsilon=EPSILON)
    seconds = time.perf_counter() - start
    older = clones(REPORTS, LOCAL, math.exp(-LOCAL), float(EPSILON))
    detail = f"delta {delta:.3e}, the clone of probability e^-eps0 (2021) {older:.3e}; {seconds:.2f} s"
    yield Fact("1000 shuffled reports, eps0 1, epsilon 0.1: our delta over that of 2021", delta / older, 0.25, detail)


def clones(n: int, e0: float, share: float, epsilon: float) -> float:
    """delta of n reports of which each other one is a clone of either kind with probability share / 2: the double sum."""
    e, total = math.exp(e0), 0.0
    for size in range(1, n + 1):
        a = np.arange(size + 1)
        ratio = e * a + size - a - math.exp(epsilon) * (a + e * (size - a))
        mass = binom.pmf(size - 1, n - 1, share) * binom.pmf(a, size, 0.5) * 2 / (size * (1 + e))
        total += float(np.sum(mass * np.maximum(ratio, 0)))
    return total
