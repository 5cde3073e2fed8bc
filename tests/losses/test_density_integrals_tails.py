"""Pairs of densities in pieces: profiles against closed forms, and how often a user's function is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
from cumulant.curves.cache import question
from cumulant.domains import Exact
from cumulant.pairs.densities import DensityPair
from cumulant.pairs.gaussian import GaussianPair
from cumulant.plotting.charts import CHARTS

EPSILONS = np.linspace(0, 9, 200)


class Counted:
    """A function that counts the points at which it is asked."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.points = function, 0

    def __call__(self, x: Any) -> Any:
        self.points += np.size(x)
        return self.function(x)


def normal(x: Any) -> Any:
    return -x * x / 2 - math.log(2 * math.pi) / 2


def test_many_profiles_of_normal_densities_are_those_of_the_closed_form() -> None:
    pair = DensityPair(normal, lambda x: normal(x - 1))
    exact = GaussianPair(1).profile(EPSILONS)  # type: ignore[arg-type]
    found = pair.profile(EPSILONS)
    assert pair.tails() is not None
    assert (found >= exact * (1 - 1e-9)).all()
    assert (found <= exact * (1 + 1e-3)).all()


def test_many_profiles_of_a_pair_that_is_not_symmetric_are_the_larger_ones() -> None:
    """Exponential laws of means 1 and 2: H(P||Q) has its mass at small x, H(Q||P) has no largest loss."""
    pair = DensityPair(lambda x: -x, lambda x: -x / 2 - math.log(2), support=(0, math.inf))
    epsilons = np.linspace(0, 5, 60)
    there = [max(0.0, 1 - math.exp(-2 * max(0.0, math.log(2) - e))) for e in epsilons]
    there = [p - math.exp(e) * (1 - math.exp(-max(0.0, math.log(2) - e))) for p, e in zip(there, epsilons, strict=True)]
    back = []
    for e in epsilons:
        start = 2 * (e + math.log(2))  # log q/p = x/2 - log 2 > e
        back.append(math.exp(-start / 2) - math.exp(e - start))
    expected = np.maximum(there, back)
    assert pair.profile(epsilons) == pytest.approx(expected, rel=1e-3)


def test_one_question_asks_a_density_less_than_a_million_times() -> None:
    """One integral for each of thousands of epsilons took thirty million."""
    log_p, log_q = Counted(stats.norm(0, 1).logpdf), Counted(stats.norm(1, 1).logpdf)
    mechanism = cm.from_densities(log_p, log_q)
    exact = cm.Gaussian(1).epsilon(delta=1e-5)
    assert exact <= mechanism.epsilon(delta=1e-5) <= exact * (1 + 1e-4)
    assert max(log_p.points, log_q.points) < 10**6


def test_sampled_densities_ask_no_thousands_of_orders() -> None:
    log_p, log_q = Counted(normal), Counted(lambda x: normal(x - 1))
    run = cm.from_densities(log_p, log_q) @ cm.WithoutReplacement(rate=0.01)
    exact = cm.Gaussian(1) @ cm.WithoutReplacement(rate=0.01)
    assert run.rdp(2) == pytest.approx(exact.rdp(2, bound="profile"), rel=1e-9)
    assert log_p.points + log_q.points < 3 * 10**6


def test_densities_without_a_common_point_share_nothing() -> None:
    log_p, log_q = Counted(stats.uniform(0, 1).logpdf), Counted(stats.uniform(2, 1).logpdf)
    apart = cm.from_densities(log_p, log_q, support=(-1, 4))
    for run in (apart, apart @ cm.WithoutReplacement(rate=0.5), apart @ cm.Poisson(rate=0.5)):
        assert run.rdp(2) == math.inf
        assert run.epsilon(delta=1e-5) == math.inf
    assert apart.delta(3) == pytest.approx(1, abs=1e-9)
    assert log_p.points + log_q.points < 10**7


def test_densities_that_overlap_in_part_leak_the_rest() -> None:
    half = cm.from_densities(stats.uniform(0, 1).logpdf, stats.uniform(0.5, 1).logpdf, support=(-1, 4))
    assert half.delta(0) == pytest.approx(0.5, rel=1e-6)
    assert half.delta(5) == pytest.approx(0.5, rel=1e-6)
    assert half.kl() == math.inf


def test_a_function_that_treats_arrays_otherwise_than_numbers_is_asked_for_numbers() -> None:
    def odd(x: Any) -> Any:
        return normal(x) + (1.0 if np.size(x) > 1 else 0.0)

    found = cm.from_densities(odd, lambda x: normal(x - 1))
    assert found.rdp(2) == pytest.approx(1, rel=1e-9)


def logistic(x: Any) -> Any:
    return -x - 2 * np.logaddexp(0, -x)


@pytest.mark.parametrize("kind", ["rounds", "trade-off"])
def test_a_chart_evaluates_densities_at_nodes_that_all_orders_share(kind: str) -> None:
    """An integral for each order and count took fifty million points of each density for the rounds."""
    log_p, log_q = Counted(logistic), Counted(lambda x: logistic(x - 0.5))
    run = cm.from_densities(log_p, log_q) @ cm.WithoutReplacement(rate="0.01") * 1000
    with question():
        CHARTS[kind](run, Exact("1e-6"), "best")
    assert max(log_p.points, log_q.points) < 6 * 10**5


@pytest.mark.parametrize("law", [normal, logistic, lambda x: -np.abs(x) - math.log(2)])
def test_pieces_give_what_each_integral_gives(law: Callable[[Any], Any]) -> None:
    orders = np.concatenate([[1e-9, 0.5], np.geomspace(2, 4000, 7)])
    with question():
        pair = DensityPair(law, lambda x: law(x - 0.5))
        for curve in (pair.curve(), pair.mixture_curve()(Fraction(1, 100)), pair.amplified_curve()(Fraction(1, 100))):
            alone = [curve.cgf([order])[0] for order in orders]
            assert curve.cgf(orders) == pytest.approx(alone, rel=1e-9)


def test_pieces_of_one_law_do_not_answer_what_the_quadrature_contradicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that lack a part of the mass fail their check, and each order is integrated."""
    pair, whole = DensityPair(normal, lambda x: normal(x - 1)), DensityPair(normal, lambda x: normal(x - 1))
    orders = np.linspace(0.5, 8, 20)
    exact = whole.curve().cgf(orders)
    log_p, log_q = whole._pieces() or (np.zeros(0), np.zeros(0))
    monkeypatch.setattr(DensityPair, "_pieces", lambda self, level=0: (log_p[100:], log_q[100:] - 1e-3))
    assert pair.curve().cgf(orders) == pytest.approx(exact, rel=1e-10)
