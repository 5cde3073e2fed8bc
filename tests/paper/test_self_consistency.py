"""Self-consistency at vertices: moments by quadrature, and curves that no pair attains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import cumulant as cm
from cumulant.domains import Exact
from cumulant.paper.self_consistency import self_consistency


def laplace(t: Exact) -> cm.Mechanism:
    return cm.Laplace(scale=1, sensitivity=t)


def wide_laplace(t: Exact) -> cm.Mechanism:
    return cm.Laplace(scale=2, sensitivity=t)


def gaussian(t: Exact) -> cm.Mechanism:
    return cm.Gaussian(sigma="1.56", sensitivity=t)


def test_one_kind_of_noise_is_consistent() -> None:
    square = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    assert self_consistency([laplace] * 2, square, 8) == pytest.approx({2: 1.0, 4: 1.0, 6: 1.0, 8: 1.0}, rel=1e-12)
    corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    assert self_consistency([laplace] * 2, corners, 4) == pytest.approx({2: 1.0, 4: 1.0}, rel=1e-12)
    # of (1, 1/2) and (1/2, 1/2) the first attains every order
    assert self_consistency([gaussian] * 2, [(1, "0.5"), ("0.5", "0.5")], 6) == pytest.approx(
        {2: 1.0, 4: 1.0, 6: 1.0}, rel=1e-12
    )


def test_two_kinds_of_noise_are_not() -> None:
    """M of each vertex by quadrature of p^i q^{1-i}; the curve is the larger at each order, and they cross."""

    def laplace_power(power: int) -> float:
        def integrand(x: float) -> float:
            return math.exp(-power * abs(x - 1) - (1 - power) * abs(x)) / 2

        pieces = [(-60, 0), (0, 1), (1, 60)]
        return sum(integrate.quad(integrand, *piece, epsabs=0, epsrel=1e-12)[0] for piece in pieces)

    first = [laplace_power(i) for i in range(7)]
    second = [math.exp(i * (i - 1) / (2 * 1.56**2)) for i in range(7)]
    assert any(x > y for x, y in zip(first[2:], second[2:], strict=True))
    assert any(x < y for x, y in zip(first[2:], second[2:], strict=True))
    curve = np.maximum(first, second)

    def difference(values: list[float] | np.ndarray[Any, Any], order: int) -> float:
        return math.fsum((-1) ** (order - i) * math.comb(order, i) * values[i] for i in range(order + 1))

    found = self_consistency([laplace, gaussian], [(1, 0), (0, 1)], 6)
    for order, ratio in found.items():
        below = difference(curve, order)
        truth = max(difference(first, order), difference(second, order)) / below if below > 0 else math.inf
        assert ratio == pytest.approx(truth, rel=1e-6)
    assert found[4] > 1.9  # Theorem 27 would use about half of a moment that is attained


def test_refusals() -> None:
    with pytest.raises(cm.InputError, match="highest=1"):
        self_consistency([laplace], [(1,)], 1)
    with pytest.raises(cm.InputError, match="needs as many noises"):
        self_consistency([laplace], [(1, 2)], 4)
    with pytest.raises(cm.HypothesisError, match="no pair of output laws"):
        self_consistency([lambda t: cm.ZeroConcentrated(rho=t)], [(1,)], 4)
    assert self_consistency([wide_laplace], [(0,)], 4) == {2: 1.0, 4: 1.0}
