"""Quadrature in log space, against closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.logspace import log_sum
from cumulant.numerics.quadrature import log_concave, log_integrals


def test_log_concave_is_the_gamma_function() -> None:
    power = np.array([1.0, 2.0, 10.0, 1000.0, 1e6])

    def log_f(x: Array, rows: Any) -> Array:
        return np.asarray(power[rows, None] * np.log(x) - x)

    value = log_concave(log_f, power, np.sqrt(power), 0.0, np.inf)
    assert np.max(np.abs(value - gammaln(power + 1)) / np.maximum(1, value)) < 1e-13


def test_log_integrals_of_a_kinked_and_of_a_two_peaked_function() -> None:
    place = np.array([0.1234, 3.0])

    def log_f(x: Array, rows: Any) -> Array:
        return np.asarray(np.logaddexp(-np.abs(x - place[rows, None]), -(((x + 10) / 0.01) ** 2)))

    value = np.exp(log_integrals(log_f, 2, np.linspace(-60, 60, 20_001)))
    assert value == pytest.approx(2 + 0.01 * math.sqrt(math.pi), rel=1e-10)


def test_a_kink_close_to_the_end_of_a_panel_is_seen() -> None:
    # the first panels end at multiples of 0.24: a kink just inside one is missed by the panel and by its halves alike
    kinks = np.array([0.0, 1e-6, 1e-4, 3e-4, 6e-4, 1e-3, 0.1])

    def log_f(x: Array, rows: Any) -> Array:
        return np.asarray(-np.abs(x - 5) - np.abs(x - kinks[rows, None]) / 2)

    value = np.exp(log_integrals(log_f, len(kinks), np.linspace(-60, 60, 20_001)))
    # three exponential pieces, cut at the kink and at the mode
    left, right = np.exp(kinks - 5) / 1.5, np.exp(kinks / 2 - 2.5) / 1.5
    middle = 2 * np.exp(kinks / 2 - 5) * (math.exp(2.5) - np.exp(kinks / 2))
    assert value == pytest.approx(left + middle + right, rel=1e-11)


def test_log_integrals_reports_what_does_not_converge() -> None:
    grid = np.linspace(-50, 50, 2001)
    flat = log_integrals(lambda x, rows: np.zeros_like(x) + 0 * rows[:, None], 1, grid)
    growing = log_integrals(lambda x, rows: x + 0.0 * rows[:, None], 1, grid)
    undefined = log_integrals(lambda x, rows: -x * x + np.where(x > 1, np.nan, 0.0) * (rows[:, None] + 1), 1, grid)
    assert (flat[0], growing[0], undefined[0]) == (np.inf, np.inf, np.inf)


def test_log_sum_of_nothing() -> None:
    assert log_sum(np.zeros(0)) == -np.inf
    assert log_sum(np.array([-np.inf, -np.inf])) == -np.inf
    assert log_sum(np.array([1000.0, 1000.0])) == pytest.approx(1000 + math.log(2))
