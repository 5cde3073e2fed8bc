"""Gaussian approximations of the subsampled Gaussian mechanism for large data sets (item 45, Examples 28 and 29).

These are what the central limit theorem suggests for one particular pair of data sets. They are neither upper nor lower
bounds and never enter a guarantee; they exist to reproduce the paper's figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.domains import orders as read_orders
from cumulant.paper.normal import aligned_divergence


def good_data_approximation(orders: Any, sigma: float, rate: float, population: float) -> Any:
    """Example 29, half of the records at each end: D_a ~ a g^2 / (2 sigma^2 + g (n - 1/n) / 2). Not a bound.

    >>> good_data_approximation(2, sigma=5, rate=0.001, population=100_000)
    2.00000000...e-08
    """
    array, scalar = read_orders(orders)
    value = array * rate**2 / (2 * sigma**2 + rate * (population - 1 / population) / 2)
    return float(value[0]) if scalar else value


def bad_data_approximation(orders: Any, sigma: float, rate: float, population: float) -> Any:
    """Example 28, all records but one at one end: N(g, sigma^2 + g (n-1)/n) from N(0, sigma^2). Not a bound.

    With a* = 1 + sigma^2 n / (g (n-1)), corrected (E-5):
    D_a ~ (a g^2 / (2 sigma^2)) (a*-1)/(a*-a) + log((a*-1)/a*) / 2 + log((a*-1)/(a*-a)) / (2 (a-1)); +inf from a* on.

    >>> bad_data_approximation(2, sigma=5, rate=0.001, population=100_000)
    4.0801584...e-08
    """
    array, scalar = read_orders(orders)
    # in units of the second law: 1 + w = variance ratio = a*/(a*-1), z = g / sigma
    gap = rate * (1 - 1 / population) / sigma**2
    value = aligned_divergence(np.array([gap]), np.array([rate / sigma]), array)
    return float(value[0]) if scalar else value
