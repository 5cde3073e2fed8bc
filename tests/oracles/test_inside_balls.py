"""Reference values lie inside the balls: each is evaluated at exact inputs and widened only by its own last digit."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.bounds.without_replacement import proposition11
from cumulant.conversion import certify
from cumulant.conversion.conversions import conversion
from cumulant.curves.curve import Curve, compose
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.gaussian import GaussianPair
from tests.oracles.reference import load, mechanism, panel

BITS = 192
MOST_ORDER = 260
"""Sums of as many balls take milliseconds; moments at higher orders take seconds."""


def last_digit(text: str) -> Fraction:
    """One unit in the last printed place."""
    exponent = Decimal(text).as_tuple().exponent
    assert isinstance(exponent, int)
    return Fraction(10) ** exponent


def assert_inside(text: str, evaluate: Callable[[], Any], share: Fraction = Fraction(0)) -> None:
    """The printed number is within the ball, give or take its last digit (or a share of itself, if that is stated)."""
    with BALLS.at(BITS):
        ball = evaluate()
        assert ball.is_finite()
        assert ball.rel_accuracy_bits() > 60
        slip = max(last_digit(text), share * abs(Fraction(text)))
        printed = BALLS.number(Fraction(text))
        assert ball.lower() - BALLS.number(slip) <= printed <= ball.upper() + BALLS.number(slip)


def cgf(curve: Curve, lam: Fraction) -> Any:
    """K at one argument, as a ball."""
    return curve._cgf(np.array([lam], dtype=object), BALLS)[0]


def divergence(curve: Curve, order: Fraction) -> Any:
    """rdp at one order, as a ball."""
    return cgf(curve, order - 1) / BALLS.number(order - 1)


def epsilon(curve: Curve, order: Fraction, delta: Fraction, name: str) -> Any:
    """epsilon at one order and delta, as a ball."""
    lam, log_delta = order - 1, BALLS.number(delta).log()
    return conversion(name).epsilon(BALLS.number(lam), cgf(curve, lam), log_delta, BALLS)


def sampled(base: cm.Mechanism, rate: Any, bound: str) -> Curve:
    return (base @ cm.WithoutReplacement(rate=str(rate))).curve(bound)


SUBSAMPLED = [each for each in load("subsampled_rdp")["values"] if each["alpha"] <= MOST_ORDER]


@pytest.mark.parametrize("bound", ["theorem9", "lower"])
def test_subsampled_divergences(bound: str) -> None:
    assert len(SUBSAMPLED) > 400
    for each in SUBSAMPLED:
        if bound == "theorem9" or each["mechanism"] == "rr" or each["alpha"] in (2, 8, 64):
            curve = sampled(mechanism(each["mechanism"], each["value"]), each["gamma"], bound)
            assert_inside(each[bound], partial(divergence, curve, Fraction(each["alpha"])))


@pytest.mark.parametrize("name", ["moments", "positive_moments"])
def test_moments(name: str) -> None:
    entries = [each for each in load("moments_and_queries")["moments"] if each["l"] <= 100]
    assert len(entries) > 50
    for each in entries:
        pair = mechanism(each["mechanism"], each["value"]).pair()
        assert pair is not None
        text = each["log_abs" if name == "moments" else "log_pos"]
        assert_inside(text, partial(getattr(pair, name), each["l"], BALLS))


@pytest.mark.parametrize(
    ("column", "bound"),
    [("T1", "theorem9"), ("T2", "theorem27-min"), ("T3", "absolute-moment"), ("T4", "positive-part")],
)
def test_tight_divergences(column: str, bound: str) -> None:
    entries = [each for each in load("moments_and_queries")["tight"] if each["alpha"] <= 100]
    assert len(entries) > 40
    for each in entries:
        curve = sampled(mechanism(each["mechanism"], each["value"]), each["gamma"], bound)
        assert_inside(each[column], partial(divergence, curve, Fraction(each["alpha"])))


@pytest.mark.parametrize("name", ["classic", "cks"])
def test_epsilons_of_long_runs(name: str) -> None:
    entries = load("moments_and_queries")["eps_query"]
    assert len(entries) == 28
    for each in entries:
        step = sampled(mechanism(each["mechanism"], each["value"]), each["gamma"], "theorem9")
        run, order, delta = compose([(step, each["k"])]), Fraction(each[f"{name}_alpha"]), Fraction(each["delta"])
        assert_inside(each[name], partial(epsilon, run, order, delta, name))
        proof = certify.certified_epsilon(run, order, delta, conversion(name))
        assert proof.value >= Fraction(each[name]) - last_digit(each[name])
        assert proof.value <= Fraction(each[name]) * (1 + Fraction(1, 2**51)) + last_digit(each[name])


def test_real_orders_of_the_sampled_gaussian() -> None:
    entries = load("moments_and_queries")["real_order"]
    assert len(entries) == 18
    for each in entries:
        curve = proposition11(GaussianPair(1 / Fraction(each["value"])), Fraction(each["gamma"]))
        lam = Fraction(each["alpha"]) - 1
        # the integral is enclosed to 64 bits, the reference has 24 digits
        assert_inside(each["K"], partial(cgf, curve, lam))


FIGURE1 = load("figure1")


@pytest.mark.parametrize("name", sorted(FIGURE1["panels"]))
def test_figure1(name: str) -> None:
    given, base, rate = FIGURE1["panels"][name], panel(name), FIGURE1["gamma"]
    rows = {"upper": "theorem9", "tight": "theorem27-min", "tight_literal": "theorem27", "lower": "lower"}
    for alpha, values in given["alpha"].items():
        order = Fraction(alpha)
        if order == 1 or order > MOST_ORDER:
            continue
        assert_inside(values["base_eps"], partial(divergence, base.curve(), order))
        for column, bound in rows.items():
            if bound == "theorem9" or order <= 64:
                curve = sampled(base, rate, bound)
                assert_inside(values[column], partial(divergence, curve, order))
    assert_inside(given["kl"], lambda: base.curve().kl(BALLS))
    if given["eps_inf"] is not None:
        assert_inside(given["eps_inf"], lambda: base.curve().pure(BALLS))
        assert_inside(given["cap_pure"], lambda: sampled(base, rate, "caps").pure(BALLS))


@pytest.mark.parametrize("name", sorted(load("figure2")["panels"]))
def test_figure2_upper_curves(name: str) -> None:
    data = load("figure2")
    step, delta = sampled(panel(name), data["gamma"], "theorem9"), Fraction(str(data["delta"]))
    for times, values in data["panels"][name]["k"].items():
        order = Fraction(values["rdp_upper_alpha"])
        if order > MOST_ORDER:
            continue
        run = compose([(step, int(times))])
        ball = partial(epsilon, run, order, delta, "classic")
        assert_inside(repr(values["rdp_upper"]), ball, share=Fraction(1, 10**11))  # printed to 12 digits
