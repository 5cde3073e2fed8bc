"""Random triples of output laws and what Theorem W asks of them, from their definitions and without the library."""

from __future__ import annotations

import math
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


def random_l1_triples(rng: np.random.Generator, shift: float, count: int, dimension: int) -> tuple[Laws, Laws, Laws]:
    """Three points at pairwise L1 distance at most this, many of them exactly so, one triple per row."""
    points = rng.laplace(size=(3, count, dimension)) * (rng.uniform(size=(3, count, dimension)) < 0.6)
    star = np.zeros((3, count, dimension))
    star[1, :, 0] = star[2, :, 0] = 0.5
    star[1, :, -1], star[2, :, -1] = 0.5, -0.5 if dimension > 1 else 0.0
    points = np.where(rng.uniform(size=(1, count, 1)) < 0.3, star + 0.1 * points, points)
    far = np.max([np.abs(points[i] - points[j]).sum(axis=1) for i, j in ((0, 1), (0, 2), (1, 2))], axis=0)
    points *= (shift / np.maximum(far, 1e-12))[None, :, None]
    return points[0], points[1], points[2]


def laplace_square(r: Laws, p: Laws, q: Laws) -> Laws:
    """E_R (P/R - Q/R)^2 with unit Laplace noise around the points, by integrals between kinks, coordinate by coordinate."""

    def product(one: Laws, other: Laws) -> Laws:
        # INT e^{-|x-one| - |x-other| + |x-r|} / 2 between the three kinks, where the exponent is linear
        kinks = np.sort(np.stack([one, other, r]), axis=0)
        edges = np.concatenate([kinks[:1] - 80.0, kinks, kinks[-1:] + 80.0])
        value = -np.abs(edges - one) - np.abs(edges - other) + np.abs(edges - r)
        low, rise, width = value[:-1], np.diff(value, axis=0), np.diff(edges, axis=0)
        slope = np.where(np.abs(rise) > 1e-9, np.expm1(rise) / np.where(np.abs(rise) > 1e-9, rise, 1.0), 1 + rise / 2)
        return np.asarray(((np.exp(low) * width * slope).sum(axis=0) / 2).prod(axis=-1))

    return np.asarray(product(p, p) + product(q, q) - 2 * product(p, q))


def binned_laplace(points: Laws, bins: int) -> Laws:
    """The masses of the same boxes of outputs under unit Laplace noise around each point, row by row, in any dimension."""

    def masses(centres: Laws) -> Laws:
        inner = np.unique(np.concatenate([np.linspace(centres.min(), centres.max(), bins), centres]))
        edges = np.concatenate([[-np.inf], inner, [np.inf]])
        z = edges - centres[:, None]
        below = np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2)
        return np.asarray(np.diff(below, axis=1))

    found = np.ones((points.shape[0], 1))
    for along in points.T:
        found = (found[:, :, None] * masses(along)[:, None, :]).reshape(points.shape[0], -1)
    return found


def test_function(order: float, y: Laws) -> Laws:
    """f_n(y) = INT_1^y (y - s) s^{-n-1} ds, as it is written."""
    value = (y - order / (order - 1) + y ** (1 - order) / (order - 1)) / order
    return np.asarray(np.where(y > 1, value, 0.0))


def demanded(order: float, x0: float, a: Laws, b: Laws) -> Laws:
    """G(x0) = s0^{1-n} [E_b f_n(t/s0) - f_n(1/s0)], s0 = e^x0, for each row of laws."""
    s0 = math.exp(x0)
    return np.asarray(
        s0 ** (1 - order)
        * ((b * test_function(order, a / b / s0)).sum(axis=-1) - test_function(order, np.array(1 / s0)))
    )
