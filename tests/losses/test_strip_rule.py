"""Equidistant points against the integral: close where they are many, and where they are few within what they state."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cumulant.exact.inversion.line import transform_values
from cumulant.losses import strip_rule as strips
from cumulant.losses.strip_rule import Strip, float_strip_rule, float_whole_rule, strip_rule, whole_rule
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair

LAM = 2.5
LAWS = [
    (shift, rate, direction)
    for shift, rate in (("1", "1/20"), ("3", "1/300"), ("1/4", "7/10"))
    for direction in ("remove", "add")
]


def law_of(shift: str, rate: str, direction: str) -> Any:
    pair: Any = GaussianPair(Fraction(shift))
    return pair.transform(Fraction(rate), direction).density_law()


def truth(law: Any, u: float) -> Any:
    """M(lam + iu) by acb.integral."""
    from flint import acb, arb

    t, g, z = BALLS.number(law.base.shift), BALLS.number(law.rate), acb(LAM, u)
    power = 1 + z if law.direction == "remove" else -z

    def integrand(v: Any, _: bool) -> Any:
        return (-((v + t / 2) ** 2) / 2).exp() / (2 * arb.pi()).sqrt() * (1 + g * ((t * v).exp() - 1)) ** power

    return acb.integral(integrand, acb(-40), acb(60), rel_tol=arb(2) ** -110)


@pytest.mark.parametrize(("shift", "rate", "direction"), LAWS)
@pytest.mark.parametrize("u", [0.0, 9.0])
def test_many_points_are_the_integral(shift: str, rate: str, direction: str, u: float) -> None:
    from flint import acb, arb

    law = law_of(shift, rate, direction)
    with BALLS.at(160):
        rule = whole_rule(law, LAM, u, -60.0)
        assert len(rule.panels) == 1
        exact = truth(law, u)
        found = transform_values(rule, arb(u), 1)[1] if u else acb(rule.mass())
        assert found.overlaps(exact)
        assert abs(found - exact).upper() < 1e-18


@pytest.mark.parametrize(("shift", "rate", "direction"), LAWS)
@pytest.mark.parametrize("u", [0.0, 9.0])
def test_few_points_miss_less_than_they_state(shift: str, rate: str, direction: str, u: float) -> None:
    """Steps that are far too long and ends that are far too near: what is missed is seen, and is below the bound."""
    law = law_of(shift, rate, direction)
    with BALLS.at(160):
        exact = truth(law, u)
        low, high = law.span(LAM, -60.0)
        # how tight it is: a strip is worth its points where the bound is not far above what is missed
        for strip in _coarse(law, u, low, high):
            rule = strip_rule(law, LAM, u, strip)
            panel = rule.panels[0]
            rough = sum(
                (w * BALLS.number(1) * _turned(x, u) for x, w in rule.points()), start=_turned(BALLS.number(0), 0.0) * 0
            )
            missed = abs(rough - exact)
            assert float(missed.lower()) > 1e-30
            assert missed <= panel.error + rule.beyond
            found = float_strip_rule(law, LAM, u, strip)
            seen = complex(np.exp(1j * u * found.losses.mid) @ found.weights.mid) * np.exp(found.scale)
            assert abs(seen - complex(exact)) <= found.error * np.exp(found.scale) + 1e-12 * abs(complex(exact))
            assert found.error * np.exp(found.scale) >= float((panel.error + rule.beyond).mid()) * (1 - 1e-6)


def _coarse(law: Any, u: float, low: float, high: float) -> list[Strip]:
    chosen = strips._strip(law, LAM, u, -25.0, (low, high))
    assert chosen is not None
    shorter = Strip(low / 2, high / 2, max(chosen.steps // 2, 4), chosen.height)
    return [Strip(low, high, max(chosen.steps // 2, 4), chosen.height), shorter]


def _turned(loss: Any, u: float) -> Any:
    from flint import acb

    return acb(0, loss * u).exp()


@pytest.mark.parametrize(("shift", "rate", "direction"), LAWS)
def test_floats_are_within_their_radii(shift: str, rate: str, direction: str) -> None:
    law, top = law_of(shift, rate, direction), 7.0
    strip = strips._strip(law, LAM, top, -40.0, law.span(LAM, -40.0))
    assert strip is not None
    found = float_strip_rule(law, LAM, top, strip)
    with BALLS.at(128):
        exact, up = strip_rule(law, LAM, top, strip), BALLS.number(found.scale).exp()
        points = list(exact.points())
        assert len(points) == found.size
        for i, (loss, weight) in enumerate(points):
            assert abs(BALLS.number(float(found.losses.mid[i])) - loss) <= float(found.losses.radius[i])
            assert (
                abs(BALLS.number(float(found.weights.mid[i])) - weight / up) <= float(found.weights.radius[i]) + 1e-300
            )
        assert found.error >= float((exact.error / up).lower())


def test_panels_answer_where_there_is_no_strip() -> None:
    for pair, direction in ((LaplacePair(Fraction(1)), "remove"), (GaussianPair(Fraction(1)), "symmetric")):
        law: Any = pair.transform(Fraction(1, 10), direction)
        with BALLS.at(128):
            assert (
                whole_rule(law, LAM, 0.0, -60.0)
                .mass()
                .overlaps(law.rule(LAM, 0.0, -60.0, list(law.span(LAM, -60.0))).mass())
            )
        assert float_whole_rule(law, LAM, 0.0, -30.0).square_error < np.inf
    # far more turns than points: panels see where they are needed
    law = law_of("1", "1/1000", "remove")
    with BALLS.at(128):
        assert len(whole_rule(law, 4.0, 300.0, -40.0).panels) > 1


def test_too_high_a_strip_proves_nothing() -> None:
    law = law_of("1", "1/20", "remove")
    with BALLS.at(128):
        assert not strip_rule(law, LAM, 0.0, Strip(-9.0, 12.0, 60, 3.2)).error.is_finite()
    with pytest.raises(OverflowError):
        float_strip_rule(law, LAM, 0.0, Strip(-9.0, 12.0, 60, 3.2))
