"""Correlated noise of training loops: its covariance is that of sigma^2 C^-1 C^-T; integers are those of the ideal release."""

from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.training import CorrelatedIntegers, CorrelatedNoise


def dense(column: list[float], steps: int) -> np.ndarray[Any, Any]:
    rows = range(steps)
    return np.array([[column[i - t] if 0 <= i - t < len(column) else 0.0 for t in rows] for i in rows])


def blt_column(weights: list[float], decays: list[float], steps: int) -> list[float]:
    return [1.0] + [sum(w * th ** (i - 1) for w, th in zip(weights, decays, strict=True)) for i in range(1, steps)]


CASES = {
    "bands": ({"bands": [1, 0.5, 0.25]}, [1, 0.5, 0.25]),
    "one band": ({"bands": [2]}, [2.0]),
    "signed": ({"bands": [1, -0.7]}, [1, -0.7]),
    "blt": ({"blt": [[0.3, 0.1], [0.9, -0.5]]}, blt_column([0.3, 0.1], [0.9, -0.5], 6)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rows_times_the_matrix_are_independent(name: str) -> None:
    given, column = CASES[name]
    steps, size = 6, 40_000
    noise = CorrelatedNoise(size=size, sigma=3, seed=7, **given)  # type: ignore[arg-type]
    rows = np.stack([noise.next_row() for _ in range(steps)])
    matrix = dense(column, steps)
    white = matrix @ rows / 3
    covariance = white @ white.T / size
    assert np.abs(covariance - np.eye(steps)).max() < 6 / np.sqrt(size)
    inverse = np.linalg.inv(matrix)
    truth = 9 * inverse @ inverse.T
    assert np.abs(rows @ rows.T / size - truth).max() < 8 * truth.max() / np.sqrt(size)


def test_memory_is_one_row_for_each_band() -> None:
    noise = CorrelatedNoise(size=1000, sigma=1, bands=[1, 0.5, 0.25, 0.125], seed=1)
    assert noise._past.shape == (3, 1000)
    for _ in range(10):
        noise.next_row()
    assert noise._past.shape == (3, 1000)


def test_without_a_seed_no_two_runs_agree() -> None:
    first, second = (CorrelatedNoise(size=4, sigma=1, bands=[1]).next_row() for _ in range(2))
    assert not np.array_equal(first, second)


def test_integers_are_the_inverse_of_rounded_rows() -> None:
    """C times what is returned is round(C x + sigma z): near C x, with the variance of z, and integers throughout."""
    size, steps, sigma = 20_000, 5, 40
    noisy = CorrelatedIntegers(size=size, sigma=sigma, bands=[1, 2, -1])
    sums = [np.full(size, 100 * t, dtype=np.int64) for t in range(steps)]
    rows = np.stack([noisy.release(each) for each in sums])
    assert rows.dtype == np.int64
    matrix = dense([1, 2, -1], steps)
    rest = matrix @ (rows - np.stack(sums))
    covariance = rest @ rest.T / size
    assert np.abs(covariance / sigma**2 - np.eye(steps)).max() < 6 / np.sqrt(size)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CorrelatedNoise(size=2, sigma=1),
        lambda: CorrelatedNoise(size=2, sigma=1, bands=[1], blt=[[1], [0]]),
        lambda: CorrelatedNoise(size=2, sigma=1, bands=[0, 1]),
        lambda: CorrelatedNoise(size=2, sigma=0, bands=[1]),
        lambda: CorrelatedNoise(size=2, sigma=1, blt=[[1, 2], [0.5]]),
        lambda: CorrelatedNoise(size=2, sigma=1, blt=[[1], [1]]),
        lambda: CorrelatedIntegers(size=2, sigma=1, bands=[2, 1]),
        lambda: CorrelatedIntegers(size=2, sigma=1, bands=[1, 0.5]),  # type: ignore[list-item]
        lambda: CorrelatedIntegers(size=2, sigma=1, bands=[1]).release([0.5, 1]),
        lambda: CorrelatedIntegers(size=2, sigma=1, bands=[1]).release([1]),
    ],
)
def test_bad_input_is_refused(make: Any) -> None:
    with pytest.raises(cm.InputError):
        make()
