"""Sums of ratios on grids: means kept and spread grown from above, masses of labels from below, all terms enumerated."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from cumulant.exact.grid.ratio_sums import GeometricGrid, LinearGrid, Masses, SumGrid, Trimmer, power

RNG = np.random.default_rng(5)
GRIDS: list[SumGrid] = [LinearGrid(0.25, 0.5), GeometricGrid(0.5, 0.3)]


def law(size: int, labels: bool) -> Masses:
    m = RNG.random(size)
    return Masses(0, m / m.sum(), RNG.random(size) if labels else None, 1)


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: type(grid).__name__)
@pytest.mark.parametrize("strike", [1.0, 3.0, 8.0])
def test_split_sums_are_above_in_convex_order(grid: SumGrid, strike: float) -> None:
    a, b = law(12, False), law(12, False)
    found = grid.product(a, b)
    x, y = grid.values(a), grid.values(b)
    sums = np.add.outer(x, y)
    masses = np.multiply.outer(a.m, b.m)
    values = grid.values(found)
    assert float(found.m.sum()) == pytest.approx(1)
    assert float(found.m @ values) == pytest.approx(float(np.sum(masses * sums)))
    exact = float(np.sum(masses * np.maximum(sums - strike, 0)))
    assert exact * (1 - 1e-12) <= float(found.m @ np.maximum(values - strike, 0)) <= exact + 0.1
    coarse, merged = grid.coarser(found)
    assert exact * (1 - 1e-12) <= float(merged.m @ np.maximum(coarse.values(merged) - strike, 0))
    assert float(merged.m @ coarse.values(merged)) == pytest.approx(float(found.m @ values))


def products_pair_by_pair(a: Masses, b: Masses, grid: GeometricGrid) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Every pair of points by itself: its sum is split to two points, or its label is the nearest one to i + G(d)."""
    out = np.zeros(4 * a.m.size + 8)
    for i, j in itertools.product(range(a.m.size), range(b.m.size)):
        top, gap = max(i, j), abs(i - j)
        over = math.log1p(math.exp(-gap * grid.width)) / grid.width
        if a.p is not None:
            out[top + round(over)] += a.m[i] * b.m[j]
            continue
        cell = math.floor(over)
        share = (math.exp(grid.width * (over - cell)) - 1) / math.expm1(grid.width)
        out[top + cell] += a.m[i] * b.m[j] * (1 - share)
        out[top + cell + 1] += a.m[i] * b.m[j] * share
    return out


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("width", [0.005, 0.04, 0.5, 3.0])
@pytest.mark.parametrize("same", [False, True])
def test_windows_add_every_pair_of_points_once(labels: bool, width: float, same: bool) -> None:
    """Masses fall to 1e-200, so that a difference of cumulative sums would have no digit left of the small ones."""
    size = 150
    falling = np.exp(-np.arange(size) * 460 / size)
    a = Masses(0, falling * RNG.random(size), RNG.random(size) if labels else None, 1)
    b = a if same else Masses(0, falling * RNG.random(size), RNG.random(size) if labels else None, 1)
    grid = GeometricGrid(1.0, width)
    found, expected = grid.product(a, b).m, products_pair_by_pair(a, b, grid)
    assert found == pytest.approx(expected[: found.size], rel=1e-9)
    assert not expected[found.size :].any()


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: type(grid).__name__)
def test_labels_carry_the_record_in_either_part(grid: SumGrid) -> None:
    """p of a sum of n and n' terms is (n p m' + n' m p')/(n + n'), for every pair of labels."""
    a, b = law(6, True), law(6, True)
    two = grid.product(a, a)
    found = grid.product(two, b)
    assert a.p is not None
    assert b.p is not None
    assert found.p is not None
    assert found.count == 3
    assert float(found.m.sum()) == pytest.approx(1)
    assert float(found.p.sum()) == pytest.approx((2 * float(a.p.sum()) + float(b.p.sum())) / 3)
    if isinstance(grid, LinearGrid):
        for place in range(found.m.size):
            terms = [t for t in itertools.product(range(6), repeat=3) if sum(t) == place]
            p = sum(a.p[i] * a.m[j] * b.m[k] + a.m[i] * a.p[j] * b.m[k] + a.m[i] * a.m[j] * b.p[k] for i, j, k in terms)
            assert found.p[place] == pytest.approx(p / 3)


def test_powers_are_repeated_sums_and_trimmed_mass_is_counted() -> None:
    grid, one = LinearGrid(0.0, 1.0), law(9, False)
    repeated = one
    for _ in range(12):
        repeated = grid.product(repeated, one)
    _, found, _ = power(grid, one, 13, Trimmer(13, 0.0), 1 << 12)
    assert found.m == pytest.approx(repeated.m)
    trimmer = Trimmer(13, 1e-3)
    _, cut, _ = power(grid, one, 13, trimmer, 1 << 12)
    lost = 1 - float(cut.m.sum())
    assert 0 < lost <= trimmer.leak_q
    assert trimmer.leak_p >= trimmer.leak_q
