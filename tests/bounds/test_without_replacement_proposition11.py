"""Proposition 11 at integer and real orders, against certified values, ball arithmetic and limits."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cumulant.bounds.without_replacement import proposition11
from cumulant.losses.sampled_curve import SampledPair
from cumulant.losses.subsampled import Rate
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.finite import DiscretePair
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair

ORACLES = Path(__file__).parent.parent / "oracles"


def pair_of(mechanism: str, value: str) -> Pair:
    match mechanism:
        case "gaussian":
            return GaussianPair(1 / Fraction(value))
        case "laplace":
            return LaplacePair(1 / Fraction(value))
    return ResponsePair(p=Fraction(value), one_bit=True)


def oracle(name: str) -> Any:
    return json.loads((ORACLES / name).read_text())


def test_certified_values_at_integer_orders() -> None:
    rows = oracle("subsampled_rdp.json")["values"]
    assert len(rows) == 528
    settings: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for row in rows:
        settings.setdefault((row["mechanism"], row["value"], row["gamma"]), []).append(
            (row["alpha"], float(row["lower"]))
        )
    for (mechanism, value, rate), known in settings.items():
        orders, expected = np.array(known).T
        np.testing.assert_allclose(
            proposition11(pair_of(mechanism, value), Fraction(rate)).rdp(orders), expected, rtol=1e-11
        )


def test_figure_1() -> None:
    names = {"gaussian_sigma": "gaussian", "laplace_b": "laplace", "randresp_p": "response"}
    for panel, content in oracle("figure1.json")["panels"].items():
        prefix = next(name for name in names if panel.startswith(name))
        curve = proposition11(pair_of(names[prefix], panel.removeprefix(prefix)), Fraction("0.001"))
        for order, row in content["alpha"].items():
            if "lower" in row:
                assert curve.rdp([float(order)])[0] == pytest.approx(float(row["lower"]), rel=1e-11)
        if content["cap_pure"] is not None:
            assert curve.rdp([np.inf])[0] == pytest.approx(float(content["cap_pure"]), rel=1e-11)


def test_certified_values_at_real_orders() -> None:
    for row in oracle("moments_and_queries.json")["real_order"]:
        curve = proposition11(GaussianPair(1 / Fraction(row["value"])), Fraction(row["gamma"]))
        assert curve.cgf([float(row["alpha"]) - 1])[0] == pytest.approx(float(row["K"]), rel=1e-11)


@pytest.mark.parametrize(
    "pair", [GaussianPair(Fraction(1, 3)), LaplacePair(Fraction(2)), ResponsePair(epsilon=Fraction(1))]
)
def test_floats_agree_with_balls(pair: Pair) -> None:
    curve = proposition11(pair, Fraction(1, 50))
    lam = [Fraction(1, 1000), Fraction(1, 2), Fraction(7, 3), Fraction(100)]
    with BALLS.at(128):
        balls = [*curve.cgf(lam, BALLS), curve.kl(BALLS)]
    floats = [*curve.cgf([float(x) for x in lam]), curve.kl()]
    for ball, value in zip(balls, floats, strict=True):
        assert ball.rel_accuracy_bits() > 55
        assert value == pytest.approx(float(ball.mid()), rel=1e-13)


def test_order_up_to_ten_million() -> None:
    # far past the transition only the last term of Proposition 11 is left: K = a(a-1)s/2 - a log(1/g)
    curve, a = proposition11(GaussianPair(Fraction(1)), Fraction(1, 1000)), 1e7
    assert curve.cgf([a - 1])[0] == pytest.approx(a * (a - 1) / 2 + a * np.log(1e-3), rel=1e-14)
    # far before it only the first: K = C(a, 2) g^2 (e^s - 1)
    curve = proposition11(GaussianPair(Fraction(1, 10**6)), Fraction(1, 10**9))
    assert curve.cgf([a - 1])[0] == pytest.approx(a * (a - 1) / 2 * 1e-18 * 1e-12, rel=1e-6)


def test_both_humps_at_the_transition() -> None:
    # sigma 5, rate 0.001: the far hump takes over at order 346; the exact sum of positive terms is the witness
    g, s = Fraction(1, 1000), Fraction(1, 25)
    curve = proposition11(GaussianPair(Fraction(1, 5)), g)
    for a in (340, 345, 346, 350):
        with BALLS.at(256):
            total, binomial = BALLS.number(0), Fraction(a)
            for j in range(2, a + 1):
                binomial = binomial * (a - j + 1) / j
                total += (
                    BALLS.number(binomial * g**j * (1 - g) ** (a - j)) * (BALLS.number(j * (j - 1) * s / 2)).expm1()
                )
            expected = float(total.log1p().mid())
        assert curve.cgf([a - 1.0])[0] == pytest.approx(expected, rel=1e-13)


def test_order_one_is_the_limit_and_a_chord_is_not_a_lower_bound() -> None:
    curve = proposition11(GaussianPair(Fraction(1)), Fraction(1, 1000))
    assert curve.rdp([1.0])[0] == pytest.approx(curve.rdp([1 + 1e-9])[0], rel=1e-7)
    assert curve.rdp([2.5])[0] == pytest.approx(2.1507e-6, rel=5e-5)  # E-12; the chord would be 2.2957e-6


def test_limits_of_the_rate() -> None:
    orders = np.array([1.0, 1.5, 2.0, 30.0, np.inf])
    for pair in (GaussianPair(Fraction(1, 2)), LaplacePair(Fraction(1)), ResponsePair(p=Fraction(3, 4))):
        base = pair.curve().rdp(orders)
        np.testing.assert_allclose(proposition11(pair, 1 - Fraction(1, 10**12)).rdp(orders), base, rtol=1e-9)
        assert np.all(proposition11(pair, Fraction(1, 10**12)).rdp(orders[:-1]) < 1e-20)


def test_masses_by_brute_force_in_both_directions() -> None:
    p = np.array([0.5, 0.3, 0.15, 0.05])
    q = np.array([0.2, 0.25, 0.25, 0.3])
    exact = [tuple(Fraction(round(100 * x), 100) for x in law) for law in (p, q)]
    curve, g = proposition11(DiscretePair(*exact), Fraction(1, 10)), 0.1
    for a in (1.3, 2.0, 7.5):
        both = [np.sum(y * ((1 - g) + g * x / y) ** a) for x, y in ((p, q), (q, p))]
        assert curve.rdp([a])[0] == pytest.approx(np.log(max(both)) / (a - 1), rel=1e-11)
    assert curve.rdp([np.inf])[0] == pytest.approx(np.log1p(g * 5), rel=1e-13)
    apart = DiscretePair((Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(1, 2)))
    assert proposition11(apart, Fraction(1, 10)).rdp([2.0])[0] == np.inf
    same = DiscretePair((Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 2), Fraction(1, 2)))
    assert proposition11(same, Fraction(1, 10)).rdp([2.0])[0] == 0


@pytest.mark.parametrize("shift", ["1000", "1", "1e-6"])
@pytest.mark.parametrize("rate", ["1e-12", "0.3", "0.999999"])
def test_extreme_values_stay_finite_and_increase(shift: str, rate: str) -> None:
    orders = np.array([1.0, 1 + 1e-9, 1.01, 2.0, 33.3, 1e4, 1e7])
    for pair in (GaussianPair(Fraction(shift)), LaplacePair(Fraction(shift))):
        rdp = proposition11(pair, Fraction(rate)).rdp(orders)
        assert np.all(np.isfinite(rdp))
        assert np.all(rdp > 0)
        assert np.all(np.diff(rdp) >= -1e-12 * rdp[1:])


@pytest.mark.parametrize("shift", ["1000", "1", "1e-6"])
@pytest.mark.parametrize("rate", ["1e-12", "0.01", "0.999"])
def test_an_order_takes_few_nodes(shift: str, rate: str) -> None:
    """The windows follow the integrand, so the work per order does not grow with the order."""
    lam = np.concatenate([np.linspace(0.1, 60, 156), np.geomspace(100, 1e7, 20)])
    curve = proposition11(GaussianPair(Fraction(shift)), Fraction(rate))
    assert isinstance(curve, SampledPair)
    with np.errstate(all="ignore"):
        nodes = curve.law.nodes(lam, Rate.of(Fraction(rate)), lambda L: curve.kernel.term(lam, L), curve.kernel.whole)
    assert nodes.counts.shape == lam.shape
    assert nodes.counts.max() < 128
