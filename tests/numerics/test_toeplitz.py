"""Sensitivities and Gram matrices of Toeplitz matrices, against enumeration."""

import random
from fractions import Fraction
from itertools import combinations, pairwise

import pytest

from cumulant.numerics.dense_factor import DenseFactor
from cumulant.numerics.toeplitz import ToeplitzFactor

F = Fraction
Rows = list[list[Fraction]]


def column(generator: random.Random, bands: int, least: int) -> list[Fraction]:
    rest = [F(generator.randint(least, 9), generator.randint(1, 5)) for _ in range(bands - 1)]
    return [F(generator.randint(1, 9), generator.randint(1, 5)), *rest]


def rows_of(first: list[Fraction], steps: int) -> Rows:
    return [[first[i - t] if 0 <= i - t < len(first) else F(0) for t in range(steps)] for i in range(steps)]


def products(rows: Rows) -> Rows:
    steps = range(len(rows))
    return [[abs(sum((row[s] * row[t] for row in rows), F(0))) for t in steps] for s in steps]


def gram_of_bins(rows: Rows, bins: int) -> Rows:
    """Of |C|, from the definition: sums of every bins-th column."""
    modes = [[sum((abs(each) for each in row[j::bins]), F(0)) for row in rows] for j in range(bins)]
    return [[sum((a * b for a, b in zip(u, v, strict=True)), F(0)) for v in modes] for u in modes]


def best_apart(rows: Rows, gap: int, most: int) -> Fraction:
    found, square = F(0), products(rows)
    for size in range(1, most + 1):
        for chosen in combinations(range(len(rows)), size):
            if all(b - a >= gap for a, b in pairwise(chosen)):
                found = max(found, sum((square[s][t] for s in chosen for t in chosen), F(0)))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_toeplitz_matrices_agree_with_enumeration(seed: int) -> None:
    generator = random.Random(seed)
    steps = generator.randint(1, 12)
    bands, gap, most = generator.randint(1, steps), generator.randint(1, steps), generator.randint(1, 4)
    first = column(generator, bands, -3 if seed % 2 else 0)
    rows, factor = rows_of(first, steps), ToeplitzFactor.from_bands(first, steps)
    square = products(rows)
    assert factor.column_square().upper == factor.column_square().lower == max(square[t][t] for t in range(steps))
    gram, bins = gram_of_bins(rows, gap), factor.bins(gap)
    assert bins.diagonal == factor.periodic_square(gap).upper == max(gram[j][j] for j in range(gap))
    assert bins.least_diagonal == min(gram[j][j] for j in range(gap))
    for distance in range(1, gap):
        pairs = [gram[j][j + distance] for j in range(gap - distance)]
        assert bins.by_distance.get(distance, 0) == max(pairs)
    if gap > 1:
        assert bins.least_product == min(gram[j][k] for j in range(gap) for k in range(gap) if j != k)
    for classes in range(1, gap):  # the wrap-around is part of the modes
        same = [gram[j][k] for j in range(gap) for k in range(gap) if j != k and (j - k) % classes == 0]
        assert bins.largest_product(classes) == max(same)
    truth, found = best_apart(rows, gap, most), factor.separated_square(gap, most)
    assert found.lower <= truth <= found.upper
    falling = all(a >= b >= 0 for a, b in pairwise(first))
    assert not falling or found.upper == truth


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("exact", [True, False])
def test_dense_matrices_agree_with_enumeration(seed: int, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cumulant.numerics.dense_factor._LARGEST_EXACT", 96 if exact else 0)
    generator = random.Random(seed)
    steps = generator.randint(1, 9)
    bands, gap, most = generator.randint(1, steps), generator.randint(1, steps), generator.randint(1, 3)
    rows = rows_of(column(generator, bands, 0), steps)
    for i in range(steps):
        for t in range(max(0, i - bands + 1), i):
            rows[i][t] = F(generator.randint(-3 if seed % 2 else 0, 9), 4)
    factor, square, gram = DenseFactor.from_rows(rows), products(rows), gram_of_bins(rows, gap)
    near = 1 + F(1, 10**9)
    largest = max(square[t][t] for t in range(steps))
    assert factor.column_square().lower <= largest <= factor.column_square().upper <= largest * near
    every = max(sum(square[s][t] for s in range(j, steps, gap) for t in range(j, steps, gap)) for j in range(gap))
    assert factor.periodic_square(gap).lower <= every <= factor.periodic_square(gap).upper <= every * near
    apart = factor.separated_square(gap, most)
    assert apart.lower <= best_apart(rows, gap, most) <= apart.upper
    bins = factor.bins(gap)
    assert max(gram[j][j] for j in range(gap)) <= bins.diagonal
    assert bins.least_diagonal <= min(gram[j][j] for j in range(gap))
    for distance in range(1, gap):
        assert max(gram[j][j + distance] for j in range(gap - distance)) <= bins.by_distance.get(distance, 0)
    if exact:
        assert factor.column_square().exact
        assert bins.diagonal == max(gram[j][j] for j in range(gap))


def test_a_blt_is_the_matrix_of_its_powers() -> None:
    weights, decays, steps = (F(1, 10), F(1, 4)), (F(9, 10), F(-1, 2)), 40
    first = [F(1)] + [
        sum((w * th ** (i - 1) for w, th in zip(weights, decays, strict=True)), F(0)) for i in range(1, steps)
    ]
    exact, found = ToeplitzFactor.from_bands(first, steps), ToeplitzFactor.from_blt(weights, decays, steps)
    for gap in (1, 3, 7):
        truth = sum((x * x for x in _mode([abs(each) for each in first], gap)), F(0))
        assert (
            found.periodic_square(gap).lower <= truth <= found.periodic_square(gap).upper <= truth * (1 + F(1, 10**30))
        )
        assert exact.periodic_square(gap).upper >= truth
    # one step: 1 + SUM w_r w_s (1 - (th_r th_s)^(n-1)) / (1 - th_r th_s)
    closed = 1 + sum(
        w * v * (1 - (a * b) ** (steps - 1)) / (1 - a * b)
        for w, a in zip(weights, decays, strict=True)
        for v, b in zip(weights, decays, strict=True)
    )
    assert found.column_square().lower <= closed <= found.column_square().upper


def _mode(first: list[Fraction], gap: int) -> list[Fraction]:
    return [sum((first[i - t] for t in range(0, i + 1, gap)), F(0)) for i in range(len(first))]


def test_a_long_run_needs_no_dense_matrix() -> None:
    """Ten million steps: m_0 repeats itself, so that only its head is kept."""
    factor = ToeplitzFactor.from_bands((F(1), F(1, 2), F(1, 4)), 10**7)
    assert factor.periodic_square(1000).upper == 10**4 * F(21, 16)
    assert len(factor._mode(factor.upper, 1000)) < 4000
    blt = ToeplitzFactor.from_blt((F(1, 10),), (F(99, 100),), 10**4)
    assert blt.periodic_square(100).upper - blt.periodic_square(100).lower < F(1, 10**30)


def test_projections_are_not_above_the_modes() -> None:
    first, steps, count = [F(1), F(1, 2), F(1, 4)], 30, 6
    gram = gram_of_bins(rows_of(first, steps), count)
    onto_first, onto_sum = ToeplitzFactor.from_bands(first, steps).bins(count).projections
    truth = sorted((float(gram[0][j]) / float(gram[0][0]) ** 0.5 for j in range(count)), reverse=True)
    shown = [float(shift) for shift, number in onto_first for _ in range(number)]
    assert shown == pytest.approx(truth, rel=1e-12)
    whole = sum(map(sum, gram)) ** 0.5
    rows = sorted(float(sum(row)) / float(whole) for row in gram)
    found = sorted(float(shift) for shift, number in onto_sum for _ in range(number))
    assert all(low <= high * (1 + 1e-12) for low, high in zip(found, rows, strict=True))
    assert found == pytest.approx(rows, rel=0.2)
