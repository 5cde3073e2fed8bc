"""Squared sensitivities of matrices: against explicit vectors, and the norms of other formulas."""

from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.numerics.matrices import largest_square


def drawn(rng: np.random.Generator, size: int, band: int) -> Any:
    whole = rng.integers(-3, 4, (size, size)) + np.eye(size, dtype=int) * 4
    rows, columns = np.indices((size, size))
    return np.where((rows >= columns) & (rows - columns < band), whole, 0)


def patterns(size: int, participation: Any) -> list[tuple[int, ...]]:
    """Every set of steps, by its definition."""
    every = [steps for k in range(1, size + 1) for steps in combinations(range(size), k)]
    if participation == "once":
        return [steps for steps in every if len(steps) == 1]
    if participation[0] == "every":
        return [steps for steps in every if len({step % participation[1] for step in steps}) == 1]
    _, apart, times = participation
    return [s for s in every if len(s) <= times and all(b - a >= apart for a, b in pairwise(s))]


@pytest.mark.parametrize("participation", ["once", ("every", 2), ("every", 3), ("apart", 2, 2), ("apart", 3, 9)])
def test_explicit_vectors(participation: Any) -> None:
    """No unit vectors in the steps of any pattern move C x further; where C^T C >= 0 some move it as far."""
    rng, reached = np.random.default_rng(5), 0.0
    for i in range(100):
        band = participation[1] if participation[0] == "apart" else 5
        matrix = drawn(rng, 5, band)
        matrix = np.abs(matrix) if i % 2 else matrix
        square = float(largest_square(matrix, participation))
        for steps in patterns(5, participation):
            for d in (rng.normal(size=(len(steps), 2)), np.tile([[1.0, 0.0]], (len(steps), 1))):
                unit = d / np.linalg.norm(d, axis=1, keepdims=True)
                moved = float(np.square(matrix[:, list(steps)] @ unit).sum())
                assert moved <= square * (1 + 1e-12)
                reached = max(reached, moved / square)
    assert reached > 1 - 1e-12


def test_exact_and_replaced() -> None:
    run = cm.Gaussian.from_matrix([["1/3", 0], ["1/7", 1]], sigma=1, relation="add-remove")
    assert run == cm.Gaussian(sigma=1, relation=cm.Relation.ADD_REMOVE, correlated=True)  # the second column
    run = cm.Gaussian.from_matrix([[1, 0], ["1/7", 1]], sigma=3, participation=("every", 1), relation="replace-one")
    assert run.squared_sensitivity == 4 * Fraction(1 + Fraction(1, 49) + 1 + Fraction(2, 7))
    assert run.relation is cm.Relation.REPLACE_ONE
    prefix = np.tril(np.ones((16, 16)))
    assert cm.Gaussian.from_matrix(prefix, sigma=1, relation="add-remove").sensitivity == 4
    long = largest_square(np.tril(np.full((9, 9), 1 / 3)), ("every", 4))
    square = Fraction("0.3333333333333333") ** 2
    exact = max(sum(square * (9 - max(s, t)) for s in steps for t in steps) for steps in ((0, 4, 8), (1, 5)))
    assert exact <= long <= exact * (1 + Fraction(1, 10**30))


@pytest.mark.parametrize(
    ("matrix", "participation", "said"),
    [
        ([[1, 2], [0, 1]], "once", "lower triangular"),
        ([[1, 0]], "once", "square"),
        ([], "once", "square"),
        ([[0]], "once", "nothing is released"),
        ([[1, 0], [1, 1]], "twice", '"once"'),
        ([[1, 0], [1, 1]], ("every", 0), "b=0 must be an integer"),
        ([[1, 0], [1, 1]], ("apart", 1, 2), "1-banded"),
        ([[1, 0], [1, 1]], ("apart", 1), '"once"'),
        ([[1, 0], ["x", 1]], "once", "not a number"),
        (7, "once", "list of numbers"),
    ],
)
def test_refused(matrix: Any, participation: Any, said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        cm.Gaussian.from_matrix(matrix, sigma=1, participation=participation, relation="add-remove")
    with pytest.raises(cm.InputError, match="does not fix"):
        cm.Gaussian.from_matrix([[1]], sigma=1, relation="any")
