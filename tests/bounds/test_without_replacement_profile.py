"""The profile bound: one integral against the other, brute force over small mechanisms, certified balls."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from cumulant.bounds.without_replacement import profile, proposition11
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.densities import DensityPair
from cumulant.pairs.finite import DiscretePair, symmetrised
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair

SKEW = DiscretePair(tuple(Fraction(x, 100) for x in (50, 30, 15, 5)), tuple(Fraction(x, 100) for x in (20, 25, 25, 30)))
PAIRS = [
    GaussianPair(Fraction(1)),
    GaussianPair(Fraction(1, 5)),
    LaplacePair(Fraction(2)),
    LaplacePair(Fraction(1, 2)),
    ResponsePair(p=Fraction(9, 10)),
    SKEW,
]


def other_integral(pair: Pair, rate: float, order: float) -> float:
    """log(1 + a(a-1) g^2 int [v^{a-2} + v^{-a-1}] e^t d(t) dt), v = 1 + g(e^t - 1), from the profile d alone."""

    def integrand(t: float) -> float:
        log_v = math.log1p(rate * math.expm1(t))
        log_d = float(pair.log_profile(np.array([t]))[0])
        return math.exp((order - 2) * log_v + t + log_d) + math.exp(-(order + 1) * log_v + t + log_d)

    pure = float(pair.curve().pure())
    if isinstance(pair, DiscretePair):
        kinks = [float(math.log(v)) for v in symmetrised(pair.p, pair.q).ratios]
    else:
        kinks = [pure] if pure < math.inf else [1.0, 5.0, 15.0, 40.0]
    edges = [0.0, *sorted(kinks)]
    total = sum(quad(integrand, a, b, epsabs=0, epsrel=1e-12, limit=200)[0] for a, b in itertools.pairwise(edges))
    return math.log1p(order * (order - 1) * rate**2 * total)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("rate", ["0.001", "0.2"])
def test_one_integral_against_the_other(pair: Pair, rate: str) -> None:
    curve = profile(pair, Fraction(rate))
    for order in (1.001, 2.0, 3.7, 8.0):
        assert curve.cgf([order - 1])[0] == pytest.approx(other_integral(pair, float(rate), order), rel=1e-9)


@pytest.mark.parametrize("pair", PAIRS)
def test_floats_agree_with_balls(pair: Pair) -> None:
    curve = profile(pair, Fraction(1, 50))
    lam = [Fraction(1, 10**9), Fraction(1, 2), Fraction(7, 3), Fraction(300)]
    with BALLS.at(128):
        balls = [*curve.cgf(lam, BALLS), curve.kl(BALLS)]
    floats = [*curve.cgf([float(x) for x in lam]), curve.kl()]
    for ball, value in zip(balls, floats, strict=True):
        assert ball.rel_accuracy_bits() > 55
        assert value == pytest.approx(float(ball.mid()), rel=1e-13)


def test_ratio_to_the_lower_bound() -> None:
    # 1.16 at sigma 5 and 1.69 at sigma 1 before the transition, 1.000 after it
    for sigma, before, after in (("5", 1.16, 1000.0), ("1", 1.69, 100.0)):
        pair, rate = GaussianPair(1 / Fraction(sigma)), Fraction(1, 1000)
        upper, low = profile(pair, rate).rdp([2.0, after]), proposition11(pair, rate).rdp([2.0, after])
        assert upper[0] / low[0] == pytest.approx(before, abs=0.01)
        assert upper[1] / low[1] == pytest.approx(1, abs=1e-3)
        orders = np.unique(np.geomspace(2, 1000, 60).round())
        assert np.all(profile(pair, rate).rdp(orders) <= 1.75 * proposition11(pair, rate).rdp(orders))


def test_true_divergences_of_small_mechanisms_stay_below() -> None:
    # three records' worth of outputs, any of which may be r, p or q: D_a((1-g)R + gP || (1-g)R + gQ)
    random = np.random.default_rng(7)
    for _ in range(60):
        laws = random.dirichlet(np.ones(4), size=2)
        p, q = (tuple(Fraction(x).limit_denominator(1000) for x in law) for law in laws)
        p, q = (tuple(x / sum(law) for x in law) for law in (p, q))
        if not all(x > 0 for x in p + q):
            continue
        rate, a = float(random.uniform(0.01, 0.9)), float(1 + 10 ** random.uniform(-1, 1))
        bound = profile(DiscretePair(p, q), Fraction(rate)).cgf([a - 1])[0]
        P, Q = np.array(p, dtype=float), np.array(q, dtype=float)
        # every law is P, Q or a mixture that (P, Q) post-processes to: here the two themselves
        for R, S, T in itertools.product((P, Q), repeat=3):
            x, y = (1 - rate) * R + rate * S, (1 - rate) * R + rate * T
            assert np.log(np.sum(y * (x / y) ** a)) <= bound * (1 + 1e-12) + 1e-15


def test_symmetrised_profile_is_the_larger_of_both() -> None:
    law = symmetrised(SKEW.p, SKEW.q)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 1.7):
        found = sum(
            float(m) * max(float(v) - math.exp(epsilon), 0.0) for m, v in zip(law.masses, law.ratios, strict=True)
        )
        assert found == pytest.approx(float(SKEW.profile([epsilon])[0]), rel=1e-12)


def test_densities_give_what_the_closed_form_gives() -> None:
    def normal(x: float) -> float:
        return -(x**2) / 2 - math.log(2 * math.pi) / 2

    pair = DensityPair(lambda x: normal(x - 1), normal)
    orders = np.array([1.0, 1.5, 2.0, 20.0])
    for bound in (profile, proposition11):
        np.testing.assert_allclose(
            bound(pair, Fraction(1, 100)).rdp(orders),
            bound(GaussianPair(Fraction(1)), Fraction(1, 100)).rdp(orders),
            rtol=1e-8,
        )


def test_limits_and_ends() -> None:
    orders = np.array([1.0, 1.5, 2.0, 30.0, np.inf])
    for pair in PAIRS:
        base = pair.curve().rdp(orders)
        assert np.all(profile(pair, Fraction(1, 10**12)).rdp(orders[:-1]) < 1e-20)
        pure = profile(pair, Fraction(1, 10)).rdp([np.inf])[0]
        assert pure == (pytest.approx(np.log1p(0.1 * np.expm1(base[-1])), rel=1e-12) if base[-1] < np.inf else np.inf)


@pytest.mark.parametrize("shift", ["1000", "1", "1e-6"])
@pytest.mark.parametrize("rate", ["1e-12", "0.3", "0.999999"])
def test_extreme_values_stay_finite_above_the_lower_bound_and_increase(shift: str, rate: str) -> None:
    orders = np.array([1.0, 1 + 1e-9, 1.01, 2.0, 33.3, 1e4, 1e7])
    for pair in (GaussianPair(Fraction(shift)), LaplacePair(Fraction(shift))):
        rdp = profile(pair, Fraction(rate)).rdp(orders)
        assert np.all(np.isfinite(rdp))
        assert np.all(rdp >= proposition11(pair, Fraction(rate)).rdp(orders) * (1 - 1e-12))
        assert np.all(np.diff(rdp) >= -1e-12 * rdp[1:])
