"""Gaussian approximations of the subsampled Gaussian mechanism for large data sets.

Item 45, Appendix C, Examples 28 and 29.

These are what the central limit theorem suggests for one particular pair of data sets. They are neither upper nor lower
bounds and never enter a guarantee; they exist to reproduce the paper's figures, and to look at data of one's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.domains import COUNT, POSITIVE, RATE, Exact, Number
from cumulant.domains import orders as read_orders
from cumulant.errors import InputError
from cumulant.paper.normal import aligned_divergence


def data_approximation(orders: Any, values: Any, record: Number, other: Number, sigma: Number, rate: Number) -> Any:
    """Approximate the divergence of two given data sets by Appendix C: two normal laws.

    It is not a bound and no guarantee.

    They are the sum over a sample of the numbers `values` and `record`, plus N(0, sigma^2), and the same with `other` in place
    of `record`. A sum over a share g of n numbers has mean g SUM x and variance g SUM (x - mean)^2, without the factor 1 - g,
    as the paper has it. The larger of both directions. It depends on the data, so publishing it reveals something of them.

    >>> from math import isclose
    >>> zeros = np.zeros(99_999)
    >>> isclose(
    ...     data_approximation(2, zeros, 1, 0, 5, 0.001), bad_data_approximation(2, 5, 0.001, 100_000), rel_tol=1e-9
    ... )
    True
    """
    array, scalar = read_orders(orders)
    sigma, rate = float(POSITIVE.check("sigma", sigma)), float(RATE.check("rate", rate))
    record, other = float(Exact(record)), float(Exact(other))
    try:
        data = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise InputError("values must be finite numbers") from None
    if not np.isfinite(data).all():
        raise InputError("values must be finite numbers")
    means, variances = [], []
    for changed in (record, other):
        all_data = np.append(data, changed)
        means.append(rate * float(np.sum(all_data)))
        variances.append(sigma**2 + rate * float(np.sum((all_data - np.mean(all_data)) ** 2)))
    value = np.maximum(
        *(
            aligned_divergence(
                np.array([variances[a] / variances[b] - 1]),
                np.array([(means[a] - means[b]) / variances[b] ** 0.5]),
                array,
            )
            for a, b in ((0, 1), (1, 0))
        )
    )
    return float(value[0]) if scalar else value


def good_data_approximation(orders: Any, sigma: Number, rate: Number, population: Number) -> Any:
    """Approximate Example 29: D_a ~ a g^2 / (2 sigma^2 + g (n - 1/n) / 2). Not a bound.

    Half of the records are at each end.

    >>> good_data_approximation(2, sigma=5, rate=0.001, population=100_000)
    2.00000000...e-08
    """
    array, scalar = read_orders(orders)
    sigma, rate, population = _read(sigma, rate, population)
    value = array * rate**2 / (2 * sigma**2 + rate * (population - 1 / population) / 2)
    return float(value[0]) if scalar else value


def bad_data_approximation(orders: Any, sigma: Number, rate: Number, population: Number) -> Any:
    """Approximate Example 28: N(g, sigma^2 + g (n-1)/n) from N(0, sigma^2). Not a bound.

    All records but one are at one end.

    With a* = 1 + sigma^2 n / (g (n-1)), corrected (E-5):
    D_a ~ (a g^2 / (2 sigma^2)) (a*-1)/(a*-a) + log((a*-1)/a*) / 2 + log((a*-1)/(a*-a)) / (2 (a-1)); +inf from a* on.

    >>> bad_data_approximation(2, sigma=5, rate=0.001, population=100_000)
    4.0801584...e-08
    """
    array, scalar = read_orders(orders)
    sigma, rate, population = _read(sigma, rate, population)
    # in units of the second law: 1 + w = variance ratio = a*/(a*-1), z = g / sigma
    gap = rate * (1 - 1 / population) / sigma**2
    value = aligned_divergence(np.array([gap]), np.array([rate / sigma]), array)
    return float(value[0]) if scalar else value


def _read(sigma: Number, rate: Number, population: Number) -> tuple[float, float, float]:
    """Return the three parameters as floats, whichever way they are written."""
    return (
        float(POSITIVE.check("sigma", sigma)),
        float(RATE.check("rate", rate)),
        float(COUNT.check("population", population)),
    )
