"""The rule in floats against the rule in balls: losses, weights, errors, and each error term left out once."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cumulant.losses import float_rule as floats
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.enclosure import Enclosure
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.logistic import LogisticPair

rule_of: Any = floats.float_rule
LAWS = [
    (pair, rate, direction)
    for pair, rate in (
        (GaussianPair(Fraction(1)), "256/60000"),
        (GaussianPair(Fraction(1, 5)), "7/10"),
        (LaplacePair(Fraction(1, 2)), "1/100"),
        (LogisticPair(Fraction(1)), "1/100"),
    )
    for direction in ("remove", "add", "symmetric")
]


def law_of(pair: Any, rate: str, direction: str) -> Any:
    return pair.transform(Fraction(rate), direction).density_law()


@pytest.mark.parametrize(("pair", "rate", "direction"), LAWS, ids=str)
def test_every_loss_and_weight_is_within_its_radius(
    monkeypatch: pytest.MonkeyPatch, pair: Any, rate: str, direction: str
) -> None:
    monkeypatch.setattr(floats, "SETTINGS", replace(floats.SETTINGS, pieces=1))  # the panels of the rule in balls
    floats.float_rule.cache_clear()
    law, lam, top = law_of(pair, rate, direction), 4.75, 12.0
    edges = list(law.span(lam, -40.0))
    found = rule_of(law, lam, top, -40.0, tuple(edges))
    with BALLS.at(128):
        exact = law.rule(lam, top, -40.0, edges)
        up = BALLS.number(found.scale).exp()
        points = [(sign * x, w / up) for sign in law.signs for panel in exact.panels for x, w in _side(panel, sign)]
        points += [(x, w / up) for x, w in exact.atoms]
        assert len(points) == found.size
        moved = 0
        for i, (loss, weight) in enumerate(points):
            for number, part in ((loss, found.losses[i]), (weight, found.weights[i])):
                off = abs(BALLS.number(float(part.mid)) - number)
                assert off <= float(part.radius) + 1e-300
                moved += bool(off > 0)
        assert moved > found.size  # a radius of nothing would be false
        assert found.error >= float((exact.error / up).lower())
        assert found.square_error >= float(sum(panel.square_error for panel in exact.panels).lower()) / float(up.mid())
        whole = floats.total(found.weights)
        mass = exact.mass() / up
        assert (
            abs(BALLS.number(whole.sum) - mass) <= BALLS.number(whole.relative * whole.sum + found.error) + mass.rad()
        )
        variation = floats.float_variation(law, lam, edges[0], edges[-1])
        assert variation >= float(law.variation(lam, edges[0], edges[-1]).log().lower())


def _side(panel: Any, sign: int) -> list[tuple[Any, Any]]:
    return list(zip(panel.losses, panel.plus if sign > 0 else panel.minus, strict=True))


def test_quadrature_and_ends_are_more_than_is_missed() -> None:
    """Panels and a span that are far too coarse: what is missed is seen, and is below the bound."""
    law, lam = law_of(GaussianPair(Fraction(1)), "1/10", "remove"), 3.0
    fine = rule_of(law, lam, 0.0, -60.0, law.span(lam, -60.0))
    near = rule_of(law, lam, 0.0, -60.0, (-3.0, 5.0))
    missed = abs(_mass(fine) - _mass(near))
    assert 1e-6 < missed <= near.error * np.exp(near.scale)
    assert rule_of(law, lam, 0.0, -60.0, (-3.0, 5.0), beyond=False).error < 1e-3 * near.error


def test_quadrature_at_high_frequencies_is_bounded() -> None:
    """A rule for low frequencies is asked at a high one: the error that it states there is more than the one that is seen."""
    law, lam, u = law_of(GaussianPair(Fraction(1)), "1/10", "remove"), 3.0, 60.0
    span = law.span(lam, -40.0)
    fine, coarse = (rule_of(law, lam, top, error, span) for top, error in ((u, -40.0), (u, 3.0)))
    off = abs(_transform(fine, u) - _transform(coarse, u))
    assert 1e-12 < off <= coarse.error * np.exp(coarse.scale)


def _mass(rule: Any) -> float:
    return float(rule.weights.mid.sum()) * float(np.exp(rule.scale))


def _transform(rule: Any, u: float) -> complex:
    return complex(np.exp(1j * u * rule.losses.mid) @ rule.weights.mid * np.exp(rule.scale))


def test_numbers_that_floats_do_not_follow_are_refused() -> None:
    law = law_of(GaussianPair(Fraction(3)), "1/10", "remove")
    with pytest.raises(OverflowError):
        rule_of(law, 3e4, 0.0, -40.0, (80_000.0, 90_100.0))
    with pytest.raises(OverflowError, match="not known"):
        floats.total(Enclosure(np.ones(3), np.full(3, 0.01)))
