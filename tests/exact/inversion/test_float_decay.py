"""Decay in floats: every error term of a window and of the last frequency forgotten once, where it is all there is."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import acb, arb

from cumulant.exact.inversion import float_decay
from cumulant.exact.inversion.float_decay import FloatRoundType, Window
from cumulant.losses.float_rule import FloatRule, Total, total
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import U
from tests.exact.adverse import rule_of

WORST = 0.99
LOSSES = np.array([-1.0, 1.0, -3.0, 3.0])
WEIGHTS = np.ones(4)
QUIET = math.pi / 2
"""The frequency at which four phases cancel, so that only errors are left."""


def window(monkeypatch: pytest.MonkeyPatch, rule: FloatRule, whole: FloatRule | None = None) -> Window:
    """The window of a law that is this rule, or has this whole."""
    monkeypatch.setattr(float_decay, "float_rule", lambda *_, **__: rule)
    profile: Any = SimpleNamespace(v=np.zeros(1), upper_quantile=lambda _: 4.0)
    law: Any = None
    one = whole or rule
    return float_decay._build_window(
        FloatRoundType(law, 1, one, total(one.weights), profile, (0.0, 4.0)), 1.0, 10.0, 1.0, 0.0
    )


def size(
    rule: FloatRule, whole: FloatRule, u: float, moved: float = 0.0, heavier: float = 0.0, error: float = 0.0
) -> Any:
    """|phi_A| as it may be: losses moved apart, weights larger, an error added."""
    value = acb(error * arb(rule.error))
    points = zip(rule.losses.mid, rule.losses.radius, rule.weights.mid, rule.weights.radius, strict=True)
    for i, (x, d, w, r) in enumerate(points):
        # half of the points are turned to one side by what is allowed, half to the other
        loss = arb(float(x)) + (1 if i % 2 else -1) * moved * arb(float(d))
        value += (arb(float(w)) + heavier * arb(float(r)) * (1 if i < 2 else 0)) * acb(0, arb(u) * loss).exp()
    mass = sum((arb(float(w)) for w in whole.weights.mid), start=arb(0))
    return abs(value) / mass * (arb(rule.scale) - arb(whole.scale)).exp()


def told(one: Window, u: float) -> float:
    """What a window says of |phi_A| at a frequency."""
    phase = u * one.losses
    f = np.hypot(np.cos(phase) @ one.weights, np.sin(phase) @ one.weights)
    return float(f + one.error + u * one.slope)


def test_losses_that_moved_are_in_the_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = rule_of(LOSSES, WEIGHTS, moved=[1e-6, 1e-6, 0.0, 0.0])
    with BALLS.at(128):
        truth = size(rule, rule, QUIET, moved=WORST)
        found = window(monkeypatch, rule)
        assert truth <= told(found, QUIET)
        assert truth > told(replace(found, slope=0.0), QUIET)
        assert truth > told(window(monkeypatch, rule_of(LOSSES, WEIGHTS)), QUIET)


def test_weights_and_quadrature_are_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = rule_of(LOSSES, WEIGHTS)
    heavy, wide = rule_of(LOSSES, WEIGHTS, heavier=1e-7), rule_of(LOSSES, WEIGHTS, error=1e-6)
    with BALLS.at(128):
        for rule, wrong in ((heavy, {"heavier": WORST}), (wide, {"error": WORST})):
            # the phases of two of the four do not cancel
            for u in (QUIET, 0.3):
                assert size(rule, plain, u, **wrong) <= told(window(monkeypatch, rule, plain), u)
            assert size(rule, plain, 0.3, **wrong) > told(window(monkeypatch, plain), 0.3)


def test_phases_lose_digits_at_high_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """At u L of 1e9 the product of both has seven digits left behind the point."""
    rule = rule_of(LOSSES * 1.1, WEIGHTS)
    frequencies = np.random.default_rng(5).uniform(1e9, 2e9, 40)

    def covered() -> list[bool]:
        found = window(monkeypatch, rule)
        return [bool(size(rule, rule, float(u)) <= told(found, float(u))) for u in frequencies]

    with BALLS.at(160):
        assert all(covered())
        monkeypatch.setattr(float_decay, "_TURN", 0.0)
        assert not all(covered())


def test_sums_of_many_points_lose_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum that is wrong by n u of its terms, where nothing else is."""
    count = 3000
    rule = rule_of(np.zeros(count), np.ones(count))

    def without(weights: Any) -> Total:
        return replace(total(weights), relative=0.0, additions=0.0)

    monkeypatch.setattr(float_decay, "total", without)
    monkeypatch.setattr(float_decay, "_LEFT", 0.0)
    profile: Any = SimpleNamespace(v=np.zeros(1), upper_quantile=lambda _: 4.0)
    law: Any = None
    monkeypatch.setattr(float_decay, "float_rule", lambda *_, **__: rule)
    one = FloatRoundType(law, 1, rule, without(rule.weights), profile, (0.0, 4.0))
    truth = 1 + WORST * count * U
    assert told(float_decay._build_window(one, 1.0, 10.0, 1.0, 0.0), 1.0) >= truth
    monkeypatch.setattr(float_decay, "_SCALE", 0.0)
    assert told(float_decay._build_window(one, 1.0, 10.0, 1.0, 0.0), 1.0) >= truth
    monkeypatch.setattr(float_decay, "_ADDED", 0.0)
    assert told(float_decay._build_window(one, 1.0, 10.0, 1.0, 0.0), 1.0) < truth


def test_large_scales_lose_digits_of_the_mass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is a part of the whole: both are known up to factors of e^90000."""
    pairs = [
        (rule_of(LOSSES, WEIGHTS + i / 5, scale=9e4 + i / 3), rule_of(LOSSES, 3 * WEIGHTS, scale=9e4 + i / 7))
        for i in range(12)
    ]

    def covered() -> list[bool]:
        fine = []
        for rule, whole in pairs:
            found, truth = window(monkeypatch, rule, whole), size(rule, whole, 0.0)
            fine.append(bool(truth >= found.least and truth <= found.most))
        return fine

    with BALLS.at(160):
        assert all(covered())
        monkeypatch.setattr(float_decay, "_SCALE", 0.0)
        assert not all(covered())


def test_the_spread_holds_losses_that_moved_and_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    """s_A^2 >= a INT (L - c)^2, wherever losses are and whatever the rule missed of it."""
    moved, wide = rule_of(LOSSES, WEIGHTS, moved=1e-5), replace(rule_of(LOSSES, WEIGHTS), square_error=1e-4)
    plain = window(monkeypatch, rule_of(LOSSES, WEIGHTS)).spread
    apart = math.sqrt(float(np.mean((np.abs(LOSSES) + WORST * 1e-5) ** 2)))
    assert plain < apart <= window(monkeypatch, moved).spread
    missed = math.sqrt(float(np.mean(LOSSES**2)) + WORST * 1e-4 / 4)
    assert plain < missed <= window(monkeypatch, wide).spread


def test_the_last_frequency_knows_what_the_window_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lemma S3: what may be missing of the window, by its rule or its weights, is large at every frequency."""
    variation, times, exponent = 2.0, 1000, 12.0
    monkeypatch.setattr(float_decay, "float_variation", lambda *_: math.log(variation))
    places = np.array([0.5, 1.5, 2.5, 9.0])

    def last(rule: FloatRule, whole: FloatRule | None = None) -> float:
        inside, one = (replace(each, places=places) for each in (rule, whole or rule))
        monkeypatch.setattr(float_decay, "float_rule", lambda *_, **__: inside)
        profile: Any = SimpleNamespace()
        law: Any = None
        return float_decay._last_check_point(
            [FloatRoundType(law, times, one, total(one.weights), profile, (0.0, 4.0))], 1.0, exponent, 0.0
        )

    def log_size(u: float, missing: float, mass: float) -> float:
        """|phi|^k at most, where so much of the window's mass 3 is missing."""
        return times * math.log(min(1.0, 1 - (3 - missing) / mass + variation / mass / u))

    weights = [1.0, 1.0, 1.0, 0.01]
    sure = last(rule_of(LOSSES, weights))
    assert log_size(sure, 0.0, 3.01) <= -exponent
    wide = last(rule_of(LOSSES, weights, error=1e-2), rule_of(LOSSES, weights))
    assert log_size(wide, WORST * 1e-2, 3.01) <= -exponent < log_size(sure, WORST * 1e-2, 3.01)
    heavy = last(rule_of(LOSSES, weights, heavier=5e-4))
    assert log_size(heavy, WORST * 1.5e-3, 3.01 - 1e-3) <= -exponent < log_size(sure, WORST * 1.5e-3, 3.01 - 1e-3)
