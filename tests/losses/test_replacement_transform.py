"""Transforms of a replaced record, against integrals of the two densities from their definition."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import acb, arb
from scipy import integrate, optimize, special

import cumulant as cm
from cumulant.exact.inversion.float_line import tilted_transform
from cumulant.exact.inversion.line import transform_values
from cumulant.losses.replacement_transform import GaussianReplacementLaw, LaplaceReplacementLaw
from cumulant.losses.strip_rule import float_whole_rule, whole_rule
from cumulant.losses.transform import DensityLaw
from cumulant.numerics.arithmetic import BALLS

LAWS: list[DensityLaw] = [
    GaussianReplacementLaw(Fraction(1, 2), Fraction(1, 100)),
    GaussianReplacementLaw(Fraction(2), Fraction(7, 10)),
    LaplaceReplacementLaw(Fraction(1, 2), Fraction(1, 100)),
    LaplaceReplacementLaw(Fraction(3), Fraction(7, 10)),
]


def gaussian_moment(c: Any, g: Any, z: Any) -> Any:
    """Return E_P e^{zL} by the definition of both laws."""

    def integrand(x: Any, analytic: bool) -> Any:
        p, q = (((1 - g) + g * (s * c * x - c * c / 2).exp()) for s in (1, -1))
        weight = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
        return weight * p * (z * (p.log(analytic=analytic) - q.log(analytic=analytic))).exp()

    ends = [-16, -4, 0, 4, 8, 16, 40]
    return sum((acb.integral(integrand, a, b) for a, b in pairwise(ends)), start=acb(0))


def laplace_moment(c: Any, g: Any, z: Any) -> Any:
    """Return E_P e^{zL} by the definition of both laws, piece by piece of the output."""

    def ratio(x: Any) -> tuple[Any, Any]:
        # both densities times 2, for |x| <= c
        return ((1 - g) + g * (2 * x - c).exp()), ((1 - g) + g * (-c).exp())

    def right(x: Any, analytic: bool) -> Any:
        p, q = ratio(x)
        return (-x).exp() / 2 * p * (z * (p / q).log(analytic=analytic)).exp()

    def left(x: Any, analytic: bool) -> Any:
        q, p = ratio(-x)
        return x.exp() / 2 * p * (z * (p / q).log(analytic=analytic)).exp()

    p, q = ratio(c)
    tail = (-c).exp() / 2
    total = acb.integral(right, 0, c) + acb.integral(left, -c, 0)
    return total + tail * p * (z * (p / q).log()).exp() + tail * q * (z * (q / p).log()).exp()


def moment(law: DensityLaw, z: Any) -> Any:
    assert isinstance(law, GaussianReplacementLaw | LaplaceReplacementLaw)
    c, g = BALLS.number(law.distance), BALLS.number(law.rate)
    return gaussian_moment(c, g, z) if isinstance(law, GaussianReplacementLaw) else laplace_moment(c, g, z)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("lam", [0.5, 3.0])
def test_transform_is_the_integral_of_the_definition(law: DensityLaw, lam: float) -> None:
    top = 12.0
    with BALLS.at(128):
        values = transform_values(whole_rule(law, lam, top, -45.0), arb(top) / 4, 4)
        known = [moment(law, acb(lam, arb(top) / 4 * m)) for m in range(5)]
        for value, exact in zip(values, known, strict=True):
            assert value.overlaps(exact)
            assert float(abs(value - exact).upper()) < 1e-17 * float(abs(known[0]).upper())
    found = tilted_transform(float_whole_rule(law, lam, top, -25.0), np.linspace(0.0, top, 5))
    assert abs(found.cgf - math.log(float(abs(known[0]).mid()))) <= found.cgf_slack + 1e-15
    for log_phi, slack, exact in zip(found.log_phi, found.slack, known, strict=True):
        phi = complex(exact / known[0])
        assert not slack < math.inf or abs(np.exp(log_phi) - phi) <= np.expm1(slack) * abs(phi) + 1e-15


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("lam", [0.5, 3.0])
def test_variation_is_no_less_than_that_of_the_density(law: DensityLaw, lam: float) -> None:
    low, high = law.span(lam, -20.0)
    v = np.linspace(low, high, 20_001)
    L, log_f = law.log_tilted(v, lam)
    true = 0.0
    for each in log_f.values():
        f = np.exp(each) / np.gradient(L, v)
        true += float(np.abs(np.diff(f)).sum() + f[0] + f[-1])
    with BALLS.at(64):
        bound = float(law.variation(lam, low, high).upper())
    assert true * (1 - 1e-3) <= bound <= 1.6 * true
    assert law.float_variation(lam, low, high)[0] == pytest.approx(math.log(bound), abs=1e-8)


@pytest.mark.parametrize("law", LAWS)
def test_the_whole_mass_is_one(law: DensityLaw) -> None:
    with BALLS.at(96):
        assert whole_rule(law, 0.0, 0.0, -40.0).mass().contains(1)


def two_gaussian_rounds(c: float, g: float, epsilon: float) -> float:
    """Return delta of two rounds: the profile of the second, averaged over the output of the first."""
    tail = special.ndtr

    def density(x: float, sign: int) -> float:
        each = [math.exp(-((x - centre) ** 2) / 2) for centre in (0.0, sign * c)]
        return ((1 - g) * each[0] + g * each[1]) / math.sqrt(2 * math.pi)

    def loss(x: float) -> float:
        # of the ratios to the noise around 0, which never vanish
        p, q = ((1 - g) + g * math.exp(s * c * x - c * c / 2) for s in (1, -1))
        return math.log(p / q)

    def profile(e: float) -> float:
        z = optimize.brentq(lambda x: loss(x) - e, -200, 200, xtol=1e-14)
        p, q = ((1 - g) * tail(-z) + g * tail(s * c - z) for s in (1, -1))
        return float(p - math.exp(e) * q)

    found = integrate.quad(
        lambda x: density(x, 1) * profile(epsilon - loss(x)), -9, 9 + c, epsabs=1e-13, epsrel=1e-11, limit=400
    )
    return float(found[0])


@pytest.mark.parametrize(("noise", "rate", "epsilon"), [("0.5", "0.3", 4.0), ("2", "0.5", 1.0)])
def test_two_rounds_enclose_the_double_integral(noise: str, rate: str, epsilon: float) -> None:
    one = cm.Gaussian.from_clipping(norm=1, noise=noise, relation="add-remove")
    run = one @ cm.Poisson(rate=rate, relation="replace-one") * 2
    true = two_gaussian_rounds(1 / float(noise), float(rate), epsilon)
    found = run.guarantee(epsilon=epsilon, prove=True)
    assert found.rigour == "proved"
    assert found.lower is not None
    assert found.lower * (1 - 1e-9) <= true <= found.delta * (1 + 1e-9)
    assert found.delta - found.lower <= 1e-3 * true


GRIDS = [
    # mechanism, rate, rounds, delta, and the interval of the grid that answered before the line did
    ('Gaussian(sigma=1, relation="add-remove")', ".01", 1000, "1e-5", 2.843374087014783, 2.8439697942766986),
    ('Gaussian(sigma=0.8, relation="add-remove")', ".1", 100, "1e-5", 14.908054736423534, 14.913258875460953),
    ('Gaussian(sigma=1, relation="add-remove")', ".9", 20, "1e-5", 57.60348872604576, 57.615387703386595),
    ('Laplace(scale=1, relation="add-remove")', ".01", 1000, "1e-6", 2.253093202206079, 2.2534040142627627),
    ('Laplace(scale=0.5, relation="add-remove")', ".3", 50, "1e-6", 38.081733351001446, 38.08486574031807),
    ('DiscreteGaussian(sigma=2, dimension=1, relation="add-remove")', ".01", 1000, "1e-6", 1.37254137, 1.37470616),
]


@pytest.mark.parametrize(("mechanism", "rate", "rounds", "delta", "low", "high"), GRIDS)
def test_line_lies_in_the_interval_of_the_grid(
    mechanism: str, rate: str, rounds: int, delta: str, low: float, high: float
) -> None:
    run = cm.parse(f'{mechanism} @ Poisson(rate={rate}, relation="replace-one") * {rounds}')
    found = run.guarantee(delta=delta)
    assert found.rigour == "proved"
    assert found.lower is not None
    assert low <= found.lower <= found.epsilon <= high
    assert found.epsilon - found.lower <= 3e-5 * found.epsilon
    assert found.verify().holds
