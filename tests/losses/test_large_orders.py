"""Closed forms for orders out of reach: they hold where the integrals are known, and nothing fails where they are not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.curves.closed_form import Concentrated, LaplaceShift
from cumulant.curves.curve import Curve
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.large_orders import closed_form, closed_kl
from cumulant.losses.law import Law
from cumulant.losses.sampled_curve import SampledPair
from cumulant.losses.subsampled import PAIR, PROFILE, Kernel
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.enclosure import BOUNDED
from cumulant.pairs.laplace import LaplaceLaw

LAM = np.array([0.01, 0.5, 1.0, 7.0, 60.0, 3000.0])


def bases(shift: Fraction) -> list[tuple[Law, Curve]]:
    return [(GaussianLaw(shift), Concentrated(shift**2 / 2)), (LaplaceLaw(shift), LaplaceShift(shift))]


@pytest.mark.parametrize("kernel", [PAIR, PROFILE], ids=["pair", "profile"])
@pytest.mark.parametrize("rate", ["1e-6", "0.01", "0.3", "0.9"])
@pytest.mark.parametrize("shift", ["0.01", "1", "5"])
def test_the_integral_lies_between_the_ends(shift: str, rate: str, kernel: Kernel) -> None:
    for law, base in bases(Fraction(shift)):
        curve = SampledPair(law, base, Fraction(rate), kernel)
        with np.errstate(all="ignore"):
            exact, closed = curve.cgf(LAM, BOUNDED), closed_form(law, base, Fraction(rate), LAM, BOUNDED)
            high = closed_form(law, base, Fraction(rate), LAM, FLOATS)
            kl = closed_kl(base, Fraction(rate), BOUNDED)
        assert np.isfinite(exact.mid).all()
        assert (closed.lower() <= exact.upper()).all()
        assert (closed.upper() >= exact.lower()).all()
        assert (high * (1 + 1e-12) >= exact.lower()).all()
        assert kl.lower() <= curve.kl(BOUNDED).upper()
        assert kl.upper() >= curve.kl(BOUNDED).lower()
        with BALLS.at(128):
            points = np.array([Fraction(x) for x in LAM.tolist()], dtype=object)
            for ball, lowest in zip(closed_form(law, base, Fraction(rate), points, BALLS), exact.lower(), strict=True):
                assert ball.upper() >= BALLS.number(float(lowest))


def test_a_large_order_of_gaussian_noise_is_that_of_the_moment_in_closed_form() -> None:
    """log E (g e^x)^a = a (log g + (a-1) s/2), and every other term of the binomial is smaller by e^-42 a."""
    for order in (1e9, 1e17, 1e100):
        expected = order / (order - 1) * (math.log(0.01) + (order - 1) / 2)
        for run in (cm.Gaussian(1) @ cm.WithoutReplacement(rate=0.01), cm.Gaussian(1) @ cm.Poisson(rate=0.01)):
            assert run.rdp(order) == pytest.approx(expected, rel=1e-12)
            assert run.rdp(order, bound="lower") == pytest.approx(expected, rel=1e-12)


def test_a_rate_that_floats_cannot_square_is_not_taken_for_a_larger_one() -> None:
    """At order 1000 a rate of 1e-300 still hides the record, and a rate of 1e-140 no longer would: nothing is claimed away."""
    run = cm.Gaussian(1) @ cm.Poisson(rate="1e-300")
    assert run.rdp(1000) > 0
    assert run.rdp(1000, bound="lower") == 0


def test_large_orders_of_laplace_noise_tend_to_the_largest_loss() -> None:
    for run in (cm.Laplace(1) @ cm.WithoutReplacement(rate=0.01), cm.Laplace("1e-3") @ cm.Poisson(rate="1e-3")):
        for order in (1e17, 1e100, 1e300):
            assert run.rdp(order) == pytest.approx(run.pure(), rel=1e-9)
            assert run.rdp(order, bound="lower") == pytest.approx(run.pure(), rel=1e-9)


@pytest.mark.parametrize("scheme", [cm.WithoutReplacement, cm.Poisson])
def test_noise_that_protects_nothing_has_an_answer(scheme: type[cm.WithoutReplacement] | type[cm.Poisson]) -> None:
    run = cm.Gaussian("1e-20") @ scheme(rate=0.5)
    assert run.rdp(2) == pytest.approx(1e40, rel=1e-9)
    assert (cm.Gaussian("1e-300") @ scheme(rate=0.5)).rdp(2) == math.inf
