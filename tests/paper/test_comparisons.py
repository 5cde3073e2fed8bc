"""The additive gap and the closed form of pure DP, from sums written out here."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cumulant as cm
from cumulant.paper.comparisons import additive_gap, pure_closed_form


def log_moment(sigma: float, j: int) -> float:
    return j * (j - 1) / (2 * sigma**2)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5])
def test_the_gap_holds_and_is_nearly_reached(sigma: float, rate: float) -> None:
    """Theorem 9 with 2 M_j at every j, and Proposition 11 as printed, both summed with fsum."""
    largest = 0.0
    for order in (2, 3, 5, 8, 12):
        terms = [math.comb(order, j) * rate**j * math.exp(log_moment(sigma, j)) for j in range(2, order + 1)]
        upper = math.log1p(2 * math.fsum(terms)) / (order - 1)
        odds = rate / (1 - rate)
        lower = math.fsum(math.comb(order, j) * odds**j * math.exp(log_moment(sigma, j)) for j in range(2, order + 1))
        lower = (order * math.log1p(-rate) + math.log1p(order * odds + lower)) / (order - 1)
        gap = additive_gap(order, rate)
        assert upper - lower <= gap * (1 + 1e-12)
        largest = max(largest, (upper - lower) / gap)
    if sigma == 0.5 and rate == 0.001:  # past the transition, where the sums are large, it is what the bounds differ by
        assert largest > 0.98


def test_the_gap_in_numbers() -> None:
    # order 1000, rate 0.001: (1000 log(1/0.999) + log 2) / 999 = 0.00169534..., and the paper's panel a is 0.00069384 apart
    assert additive_gap(1000, 0.001) == pytest.approx((1000 * -math.log(0.999) + math.log(2)) / 999, rel=1e-12)
    assert 13.0860238920905 - 13.0853300510689 < additive_gap(1000, 0.001) < 0.0017
    assert additive_gap(2, 1) == math.inf
    with pytest.raises(cm.InputError):
        additive_gap(1.5, 0.1)


def laplace(order: float, scale: float) -> float:
    near, far = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    return math.log(near * math.exp((order - 1) / scale) + far * math.exp(-order / scale)) / (order - 1)


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("rate", [0.001, 0.1])
def test_the_closed_form_is_between(scale: float, rate: float) -> None:
    """It bounds Theorem 9 with E^j, and Lemma 3 is below it at every order (E-11)."""
    growth = math.expm1(1 / scale)
    for order in (2, 3, 8, 30, 200):
        found = pure_closed_form(order, rate, laplace(order, scale), 1 / scale)
        terms = [
            math.log(math.comb(order, j)) + j * math.log(rate * growth) + (j - 1) * laplace(j, scale)
            for j in range(2, order + 1)
        ]
        theorem = float(np.log1p(np.sum(np.exp(terms)))) / (order - 1)
        lemma = math.log1p(rate * growth)
        assert theorem <= found
        assert lemma <= found
    far = pure_closed_form(1e9, rate, 1 / scale, 1 / scale)
    assert far == pytest.approx(math.log1p(rate * math.exp(1 / scale) * growth), rel=1e-6)  # the limit of Section 3.1


def test_the_closed_form_in_numbers() -> None:
    # Laplace of scale 2, order 2 (E-11): 2 log(1 + 0.001 e^0.200304 (e^0.5 - 1)) = 1.585e-3, and Theorem 9 says 5.14e-7
    assert pure_closed_form(2, 0.001, laplace(2, 2.0), 0.5) == pytest.approx(1.58456e-3, rel=1e-4)
    with pytest.raises(cm.InputError, match="at most pure"):
        pure_closed_form(2, 0.001, 0.6, 0.5)
    with pytest.raises(cm.InputError, match="finite orders"):
        pure_closed_form(math.inf, 0.001, 0.5, 0.5)
