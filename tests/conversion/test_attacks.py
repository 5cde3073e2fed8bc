"""Attacks by what a Rényi curve leaves them: against closed forms, plain root finding and every attack on finite pairs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

import cumulant as cm
from cumulant.conversion import attacks
from cumulant.curves.closed_form import Concentrated, Response
from cumulant.curves.points import Points
from tests import effort

RATES = [Fraction(1, 10**12), Fraction(1, 10**5), Fraction(1, 100), Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)]


def coin(y: float, x: float, order: float) -> float:
    """The divergence of two coins, from its definition."""
    if order == 1:
        return y * math.log(y / x) + (1 - y) * math.log((1 - y) / (1 - x))
    ratios = order * math.log(y / x) + math.log(x), order * math.log((1 - y) / (1 - x)) + math.log(1 - x)
    return float(np.logaddexp(*ratios)) / (order - 1)


def largest(x: float, order: float, most: float) -> float:
    """The largest y >= x whose divergences, one way and the other, are at most this."""

    def excess(y: float) -> float:
        return max(coin(y, x, order), coin(x, y, order)) - most

    return float(optimize.brentq(excess, x, 1 - 1e-12, xtol=1e-15)) if excess(1 - 1e-12) > 0 else 1.0


@pytest.mark.parametrize("rho", [Fraction(1, 100), Fraction(1, 2), Fraction(2)])
def test_the_best_order_is_found(rho: Fraction) -> None:
    for rate in (1e-5, 0.01, 0.2, 0.5, 0.8):
        least = min(largest(rate, a, float(rho) * a) for a in [1, *np.geomspace(1.001, 300, 600).tolist()])
        found = attacks.curve_true_positive_rate(Concentrated(rho), [Fraction(rate)])[0]
        assert least * (1 - 2e-3) <= found <= least * (1 + 1e-9)


def test_the_advantage_is_the_largest_difference() -> None:
    """Over all pairs of rates, not only those with x + y = 1."""
    for curve in (Concentrated(Fraction(1, 2)), Concentrated(Fraction(1, 50)), Response(p=Fraction(3, 4))):
        found = attacks.curve_advantage(curve)
        rates = [Fraction(i, 400) for i in range(1, 400)]
        differences = attacks.curve_true_positive_rate(curve, rates) - np.array([float(rate) for rate in rates])
        assert differences.max() <= found * (1 + 1e-6)
        assert found == pytest.approx(differences.max(), rel=1e-3)


@pytest.mark.parametrize("value", ["1e-20", "1e-9", "0.01", "1", "5"])
def test_one_order_in_closed_form(value: str) -> None:
    """At order 2: (y - x)^2 = (e^r - 1) x (1 - x) for x + y < 1, and the advantage is sqrt(c / (4 + c)), c = e^r - 1."""
    curve, room = Points((Fraction(2),), (Fraction(value),)), math.expm1(float(value))
    for rate in RATES:
        x = float(rate)
        y = x + math.sqrt(room * x * (1 - x))
        if x + y < 1:
            found = attacks.curve_true_positive_rate(curve, [rate])[0]
            assert y * (1 - 1e-15) <= found
            assert found - x == pytest.approx(y - x, rel=1e-8, abs=4e-16 * y)
    assert attacks.curve_advantage(curve) == pytest.approx(math.sqrt(room / (4 + room)), rel=1e-10)


def test_order_one_alone() -> None:
    """A KL divergence of 1/2: Pinsker says 1/2, the exact answer is a little less."""
    curve = Points((Fraction(2),), (Fraction(100),), known_kl=Fraction(1, 2))
    assert attacks.curve_true_positive_rate(curve, [Fraction(1, 10)])[0] == pytest.approx(
        largest(0.1, 1, 0.5), rel=1e-9
    )
    best = optimize.brentq(lambda h: coin((1 + h) / 2, (1 - h) / 2, 1) - 0.5, 0.01, 0.9)
    assert attacks.curve_advantage(curve) == pytest.approx(best, rel=1e-9)
    assert best < 0.5


def test_order_infinity() -> None:
    curve, rates = Response(epsilon=Fraction(1)), np.array([float(rate) for rate in RATES])
    exact = np.minimum(math.e * rates, 1 - (1 - rates) / math.e)
    assert attacks.curve_true_positive_rate(curve, RATES) == pytest.approx(exact, rel=1e-12)
    assert attacks.curve_advantage(curve) == pytest.approx(math.tanh(0.5), rel=1e-12)


def test_slack_is_an_attack_that_succeeds() -> None:
    """(eps, delta) is all that is known: delta + e^eps x and 1 - e^-eps (1 - delta - x)."""
    curve, rates = Response(epsilon=Fraction(1), leak=Fraction(1, 10)), np.array([float(rate) for rate in RATES])
    exact = np.minimum(0.1 + math.e * rates, 1 - (0.9 - rates) / math.e)
    assert attacks.curve_true_positive_rate(curve, RATES) == pytest.approx(exact, rel=1e-12)
    assert attacks.curve_true_positive_rate(curve, [Fraction(0), Fraction(1)]) == pytest.approx([0.1, 1.0], rel=1e-15)
    assert attacks.curve_advantage(curve) == pytest.approx(0.1 + 0.9 * math.tanh(0.5), rel=1e-12)


def test_what_cannot_happen_to_one_cannot_happen_to_the_other() -> None:
    assert attacks.curve_true_positive_rate(Concentrated(Fraction(3)), [Fraction(0), Fraction(1)]).tolist() == [
        0.0,
        1.0,
    ]
    same = [float(rate) for rate in RATES]
    assert attacks.curve_true_positive_rate(Concentrated(Fraction(0)), RATES) == pytest.approx(same, rel=1e-15)
    assert attacks.curve_advantage(Concentrated(Fraction(0))) == 0.0


def test_nothing_is_known() -> None:
    curve = cm.from_masses(p=[0, 1], q=[1, 0]).curve()
    assert attacks.curve_true_positive_rate(curve, [Fraction(0), Fraction(1, 2)]).tolist() == [1.0, 1.0]
    assert attacks.curve_advantage(curve) == 1.0


@pytest.mark.parametrize("seed", range(effort.drawn(6)))
def test_no_attack_on_a_finite_pair_is_above_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    rows = rng.integers(1, 10 ** int(rng.integers(1, 7)), (2, size)).tolist()
    p, q = ([Fraction(w, sum(row)) for w in row] for row in rows)
    curve = cm.from_masses(p=p, q=q).curve()
    for first, second in ((p, q), (q, p)):
        corners = [(Fraction(0), Fraction(0))]
        for x, y in sorted(zip(first, second, strict=True), key=lambda pair: -pair[0] / pair[1]):
            corners.append((corners[-1][0] + y, corners[-1][1] + x))
        bound = attacks.curve_true_positive_rate(curve, [a for a, _ in corners[:-1]])
        assert all(Fraction(most) >= b for most, (_, b) in zip(bound.tolist(), corners, strict=False))
        assert attacks.curve_advantage(curve) >= max(b - a for a, b in corners)
