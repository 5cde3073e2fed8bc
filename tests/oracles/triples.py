"""Random triples of output laws, from their definitions and without the library."""

from __future__ import annotations

from typing import Any

import numpy as np

Laws = np.ndarray[Any, np.dtype[np.float64]]


def random_pure_triples(
    rng: np.random.Generator, epsilon: float, count: int, outputs: int = 6
) -> tuple[Laws, Laws, Laws]:
    """Three laws R, P, Q on up to so many outputs with pairwise log ratios in [-epsilon, epsilon], one triple per row.

    Weights e^{u epsilon}, u in [0, 1], have ratios of at most e^epsilon; normalised they may leave that range, so all of
    them are drawn towards their common mean until they fit.
    """
    extreme = rng.integers(0, 2, size=(3, count, outputs)).astype(float)
    soft = rng.uniform(size=(3, count, outputs))
    u = np.where(rng.uniform(size=(1, count, 1)) < 0.6, extreme, soft)
    weight = rng.exponential(size=(1, count, outputs)) ** 2 * (rng.uniform(size=(1, count, outputs)) < 0.8) + 1e-9
    laws = weight * np.exp(epsilon * u)
    laws /= laws.sum(axis=2, keepdims=True)
    middle = laws.mean(axis=0, keepdims=True)

    def fits(share: Laws) -> Laws:
        mixed = share[None, :, None] * laws + (1 - share[None, :, None]) * middle
        return np.asarray((np.log(mixed.max(axis=0) / mixed.min(axis=0))).max(axis=1) <= epsilon)

    low, high = np.zeros(count), np.ones(count)
    share = np.where(fits(high), high, low)
    for _ in range(50):
        trial = (low + high) / 2
        good = fits(trial)
        low, high = np.where(good, trial, low), np.where(good, high, trial)
    share = np.where(share == 1, 1.0, low)
    r, p, q = share[None, :, None] * laws + (1 - share[None, :, None]) * middle
    return r, p, q
