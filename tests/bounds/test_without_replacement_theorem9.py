"""Theorem 9 against certified values, from the public API."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from tests.oracles import reference

ROWS = reference.load("subsampled_rdp")["values"]
PANELS = reference.load("figure1")["panels"]


def test_all_certified_values() -> None:
    assert len(ROWS) == 528
    for row in ROWS:
        run = reference.mechanism(row["mechanism"], row["value"]) @ cm.WithoutReplacement(rate=row["gamma"])
        assert run.rdp(row["alpha"], bound="theorem9") == pytest.approx(float(row["theorem9"]), rel=1e-11), row


@pytest.mark.parametrize("name", PANELS)
def test_figure_1(name: str) -> None:
    run = reference.panel(name) @ cm.WithoutReplacement(rate=0.001)
    rows = {int(order): row for order, row in PANELS[name]["alpha"].items() if "upper" in row}
    found = run.rdp(list(rows), bound="theorem9")
    assert found == pytest.approx([float(row["upper"]) for row in rows.values()], rel=1e-11)
    base = reference.panel(name).rdp([1, *rows])
    listed = [PANELS[name]["kl"]] + [row["base_eps"] for row in rows.values()]
    assert base == pytest.approx([float(value) for value in listed], rel=1e-12)


def test_tiny_rates_do_not_vanish() -> None:
    """E-19: with the leading 1 inside the log-sum-exp this is 0, an invalid claim."""
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=1e-8)
    assert run.rdp(2, bound="theorem9") == pytest.approx(4e-16 * math.expm1(0.04), rel=1e-9)


def test_chords_are_of_k_and_not_of_epsilon() -> None:
    """Corollary 10; the chord of epsilon would be below the truth (E-14)."""
    run = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.1)
    k2, k3 = run.cgf([2, 3], bound="theorem9")
    assert run.cgf(2.25, bound="theorem9") == pytest.approx(0.75 * k2 + 0.25 * k3, rel=1e-14)
    assert run.rdp(1.5, bound="theorem9") == pytest.approx(run.rdp(2, bound="theorem9"), rel=1e-14)


def test_large_orders_bound_the_sum_and_nearly_equal_it() -> None:
    """The block bound above 2^17 terms against the exact sum of the same formula by brute force."""
    for base in (cm.Gaussian(sigma=40), cm.Laplace(scale=2), cm.RandomizedResponse(p=0.51)):
        run = base @ cm.WithoutReplacement(rate="0.0001")
        order = 2**17 + 5
        j = np.arange(2.0, order + 1)
        with np.errstate(over="ignore"):
            log_e = np.log(np.expm1(base.pure()))
        log_c = base.cgf(j - 1) + np.minimum(math.log(2), j * log_e)
        log_c[0] = min(log_c[0], math.log(4 * math.expm1(base.rdp(2))))
        log_choose = np.cumsum(np.log((order + 1 - np.arange(1.0, order + 1)) / np.arange(1.0, order + 1)))[1:]
        terms = log_choose + j * math.log(1e-4) + log_c
        exact = np.logaddexp(0, terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1)
        bound = run.rdp(order, bound="theorem9")
        assert exact * (1 - 1e-10) <= bound <= exact * (1 + 1e-4)


def test_rate_one_is_the_base_mechanism() -> None:
    for bound in (name for name, row in cm.BOUNDS.items() if row.upper):
        run = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=1)
        assert run.rdp([1, 1.5, 7, math.inf], bound=bound) == pytest.approx(
            cm.Laplace(scale=2).rdp([1, 1.5, 7, math.inf])
        )


def test_one_direction_is_not_enough() -> None:
    """E-1: the sup over both directions is taken by from_masses; feeding one direction would be violated 3,250 times."""
    pair = cm.from_masses(["0.1", "0.9"], ["0.0001", "0.9999"])
    run = pair @ cm.WithoutReplacement(rate=0.01)
    assert run.rdp([2, 4, 8], bound="theorem9") == pytest.approx([0.0200, 0.455, 1.52], rel=5e-3)
    p = np.array([0.01 * 0.1 + 0.99e-4, 1 - 0.01 * 0.1 - 0.99e-4])
    q = np.array([1e-4, 1 - 1e-4])
    for order, truth in ((2, 9.9e-3), (4, 0.299), (8, 1.42)):
        divergence = math.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
        assert divergence == pytest.approx(truth, rel=5e-3)
        assert run.rdp(order) >= divergence


def test_nested_samples_are_one_sample() -> None:
    twice = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.5) @ cm.WithoutReplacement(sample=1, population=3)
    assert twice == cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=Fraction(1, 6))


def test_sampled_composition_uses_the_summed_curve() -> None:
    inner = cm.Gaussian(sigma=2) * 3 + cm.Laplace(scale=4)
    run = inner @ cm.WithoutReplacement(rate=0.01)
    twin = cm.from_rdp(rdp=lambda order: inner.rdp(order)) @ cm.WithoutReplacement(rate=0.01)
    assert run.rdp([2, 3, 17], bound="theorem9") == pytest.approx(twin.rdp([2, 3, 17], bound="theorem9"), rel=1e-12)


def test_pure_extras_at_order_two() -> None:
    """E-10: e^{eps(inf)} expm1(eps(2)) instead of 4 expm1(eps(2)); 0.3656 and 0.25 in units of rate^2."""
    for base, value in ((cm.Laplace(scale=2), 0.3656), (cm.RandomizedResponse(p=0.6), 0.25)):
        run = base @ cm.WithoutReplacement(rate=1e-6)
        assert run.rdp(2, bound="pure-extras") / 1e-12 == pytest.approx(value, rel=2e-4)


def test_caps() -> None:
    """E-11: at rate 0.9 Theorem 9 exceeds the base mechanism itself; the caps do not."""
    for base, theorem9, truth in ((cm.Laplace(scale=0.5), 2.196, 1.596), (cm.Gaussian(sigma=5), 0.124, 0.04)):
        run = base @ cm.WithoutReplacement(rate=0.9)
        assert run.rdp(2, bound="theorem9") == pytest.approx(theorem9, rel=4e-3)
        assert run.rdp(2, bound="caps") < base.rdp(2) == pytest.approx(truth, abs=5e-4)
        assert run.rdp(2) <= run.rdp(2, bound="caps")


def test_slack_leaves_only_lemma_3_and_joint_convexity() -> None:
    run = cm.ApproximateDP(1, 1e-6) @ cm.WithoutReplacement(rate=0.01)
    loss = math.log1p(0.01 * math.expm1(1))
    assert run.pure() == run.rdp(2) == math.inf
    assert run.curve().pure() == pytest.approx(loss, rel=1e-14)
    assert run.curve().rdp([2])[0] == pytest.approx(cm.PureDP(repr(loss)).rdp(2), rel=1e-12)
    assert run.epsilon(delta="9.999e-9") == math.inf
    assert run.epsilon(delta=1e-8) == pytest.approx(loss, rel=1e-14)
    assert run.delta(epsilon=loss * 1.0001) == pytest.approx(1e-8, rel=1e-12)
    with pytest.raises(cm.HypothesisError, match="slack"):
        run.rdp(2, bound="theorem9")
    with pytest.raises(cm.HypothesisError, match="slack"):
        ((cm.Gaussian(sigma=1) + cm.ApproximateDP(1, 1e-6)) @ cm.WithoutReplacement(rate=0.01)).rdp(2, bound="theorem9")
