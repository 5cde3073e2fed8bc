"""Finite pairs: brute force in fractions and balls, and the laws of a CGF."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.finite import DiscretePair


@st.composite
def pairs(draw: st.DrawFn, low: int = 1) -> DiscretePair:
    size = draw(st.integers(2, 6))
    laws = []
    for _ in range(2):
        weights = draw(st.lists(st.integers(low, 1000), min_size=size, max_size=size).filter(any))
        laws.append(tuple(Fraction(w, sum(weights)) for w in weights))
    return DiscretePair(laws[0], laws[1])


def directions(pair: DiscretePair) -> list[list[tuple[Fraction, Fraction]]]:
    return [list(zip(pair.p, pair.q, strict=True)), list(zip(pair.q, pair.p, strict=True))]


@settings(deadline=None, max_examples=60)
@given(pairs())
def test_integer_orders_by_exact_fractions(pair: DiscretePair) -> None:
    for order in (2, 3, 7):
        exact = max(sum(q * (p / q) ** order for p, q in way) for way in directions(pair))
        with BALLS.at(200):
            expected = float(BALLS.number(exact).log())
        assert pair.curve().cgf([order - 1.0])[0] == pytest.approx(expected, rel=1e-12, abs=1e-300)
        for positive, values in ((False, pair.moments), (True, pair.positive_moments)):
            exact = max(
                sum(q * abs(p / q - 1) ** order for p, q in way if p > q or not positive) for way in directions(pair)
            )
            found = values([order])[0]
            assert found == -math.inf if exact == 0 else found == pytest.approx(math.log(exact), rel=1e-12, abs=1e-12)
    exact = max(sum(max(p - 2 * q, Fraction(0)) for p, q in way) for way in directions(pair))
    assert pair.profile([math.log(2)])[0] == pytest.approx(float(exact), rel=1e-12, abs=1e-15)
    exact = max(sum(max(p - q, Fraction(0)) for p, q in way) for way in directions(pair))
    assert pair.profile([0.0])[0] == pytest.approx(float(exact), rel=1e-12, abs=0)


@settings(deadline=None, max_examples=40)
@given(pairs())
def test_floats_lie_in_balls_at_every_order(pair: DiscretePair) -> None:
    exact_lam = [Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 2), Fraction(3), Fraction(100), Fraction(10**9)]
    floats = pair.curve().cgf([float(x) for x in exact_lam])
    with BALLS.at(400):
        balls = [float(x) for x in pair.curve().cgf(exact_lam, BALLS)]
        kl, pure = float(pair.curve().kl(BALLS)), float(pair.curve().pure(BALLS))
    assert floats == pytest.approx(balls, rel=1e-12, abs=0)
    assert pair.curve().kl() == pytest.approx(kl, rel=1e-12, abs=0)
    assert pair.curve().pure() == pytest.approx(pure, rel=1e-14, abs=0)


@settings(deadline=None, max_examples=40)
@given(pairs())
def test_laws_of_a_cgf(pair: DiscretePair) -> None:
    lam = np.array([0.25, 0.5, 0.75, 1, 1.25, 1.5])
    way = DiscretePair(pair.p, pair.q).curve()
    for curve in (way,):
        k, orders = curve.cgf(lam), np.concatenate([[1.0], 1 + lam, [30.0, 1e6, math.inf]])
        rdp = curve.rdp(orders)
        slack = 1e-12 * (1e-300 + np.abs(k).max())
        assert (k[2:] - 2 * k[1:-1] + k[:-2] >= -4 * slack).all()
        assert (np.diff(rdp) >= -1e-12 * (rdp[-1] + 1e-300)).all()
    profile = pair.profile([0.0, 0.1, 1.0, 10.0])
    assert (np.diff(profile) <= 1e-15).all()
    assert (profile >= 0).all()


def test_nearly_equal_laws_keep_their_digits() -> None:
    tiny = Fraction(1, 10**12)
    pair = DiscretePair((Fraction(1, 2) + tiny, Fraction(1, 2) - tiny), (Fraction(1, 2), Fraction(1, 2)))
    # K(lambda) = lambda (lambda + 1) chi^2 / 2 to leading order, chi^2 = 4 tiny^2
    for lam in (1e-9, 1e-3, 1.0, 1e3):
        assert pair.curve().cgf([lam])[0] == pytest.approx(lam * (lam + 1) * 2e-24, rel=1e-8)
    assert pair.curve().kl() == pytest.approx(2e-24, rel=1e-11)
    assert pair.profile([0.0])[0] == pytest.approx(1e-12, rel=1e-13)


def test_rare_points_dominate_at_high_orders_only() -> None:
    rare = Fraction(1, 10**30)
    pair = DiscretePair((rare * 10**10, 1 - rare * 10**10), (rare, 1 - rare))
    # E_q (p/q)^a = 1 + rare * 10^{10 a} + …: 1e-10 at order 2, 1e10 at order 4
    assert pair.curve().cgf([1.0])[0] == pytest.approx(1e-10, rel=1e-9)
    assert pair.curve().cgf([3.0])[0] == pytest.approx(10 * math.log(10), rel=1e-9)


def test_a_point_that_one_law_cannot_produce() -> None:
    pair = DiscretePair(
        (Fraction(1, 10), Fraction(9, 10), Fraction(0)), (Fraction(1, 5), Fraction(3, 5), Fraction(1, 5))
    )
    curve = pair.curve()
    assert curve.rdp([1, 1.001, 2, 1e9, math.inf]).tolist() == [math.inf] * 5
    assert pair.profile([0.0, 50.0]) == pytest.approx([0.3, 0.2], rel=1e-14)
    assert pair.moments([1, 2]) == pytest.approx([math.log(0.6), math.inf])
    assert pair.positive_moments([1, 2]) == pytest.approx([math.log(0.3), math.inf])
    with BALLS.at(128):
        assert [float(x) for x in pair.profile([Fraction(0), Fraction(50)], BALLS)] == pytest.approx([0.3, 0.2])
        assert float(pair.moments([1], BALLS)[0]) == pytest.approx(math.log(0.6))
        assert not curve.cgf([Fraction(1)], BALLS)[0].is_finite()
        assert not pair.moments([2], BALLS)[0].is_finite()
    # a point of mass zero under both laws does not count
    padded = DiscretePair((Fraction(1, 4), Fraction(3, 4), Fraction(0)), (Fraction(1, 2), Fraction(1, 2), Fraction(0)))
    assert padded.curve().pure() == pytest.approx(math.log(2))


def test_equal_laws() -> None:
    pair = DiscretePair((Fraction(1, 3), Fraction(2, 3)), (Fraction(1, 3), Fraction(2, 3)))
    assert pair.curve().rdp([1, 2, 100, math.inf]).tolist() == [0.0] * 4
    assert pair.profile([0.0, 1.0]).tolist() == [0.0, 0.0]
    assert pair.moments([1, 2]).tolist() == [-math.inf] * 2


def test_masses_below_the_smallest_float() -> None:
    rare = Fraction(1, 10**400)
    pair = DiscretePair((rare, 1 - rare), (2 * rare, 1 - 2 * rare))
    assert pair.curve().pure() == pytest.approx(math.log(2), rel=1e-12)
    assert pair.moments([1])[0] == pytest.approx(math.log(2) - 400 * math.log(10), rel=1e-13)


def test_many_points_with_many_orders() -> None:
    size = 20_000
    p = tuple(Fraction(2 * i + 1, size**2) for i in range(size))
    pair = DiscretePair(p, tuple(reversed(p)))
    lam = np.arange(1.0, 101.0)
    mass = (2 * np.arange(size) + 1.0) / size**2
    expected = [np.log(np.sum(mass * (mass / mass[::-1]) ** x)) for x in lam[:5]]
    assert pair.curve().cgf(lam)[:5] == pytest.approx(expected, rel=1e-10)
