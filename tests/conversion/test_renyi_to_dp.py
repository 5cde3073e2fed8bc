"""Answers where balls give out: the enclosure in floats if it says something, and otherwise nothing is claimed."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.choices import Method
from cumulant.conversion import array_answers, renyi_to_dp
from cumulant.conversion.conversions import conversion
from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import compose
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.enclosure import Enclosure

CLASSIC = conversion("classic")
RHO = Fraction(1, 50)


@dataclass(frozen=True, slots=True)
class OutOfReach(Concentrated):
    """A Gaussian curve whose balls are infinite or end in an error, and whose enclosures are wide or say nothing."""

    infinite: bool = True
    radius: float = 0.0

    def _cgf(self, lam: Any, on: Any) -> Any:
        if on is BALLS:
            if not self.infinite:
                raise CertificateError("no ball is narrow enough")
            return np.array([on.number(math.inf) for _ in lam], dtype=object)
        value = Concentrated._cgf(self, lam, on)
        if on is FLOATS:
            return value
        unknown = math.isnan(self.radius)
        return Enclosure(np.full(value.shape, np.nan)) if unknown else Enclosure(value.mid, value.radius + self.radius)


def exact_delta(epsilon: float) -> float:
    """min over lambda of e^{lambda (lambda + 1) rho - lambda epsilon}."""
    return math.exp(-((epsilon - float(RHO)) ** 2) / (4 * float(RHO)))


@pytest.mark.parametrize("infinite", [True, False])
def test_a_delta_without_a_ball_is_the_upper_end_of_its_enclosure(infinite: bool) -> None:
    for epsilon in (0.3, 1.0, 3.0):
        found = renyi_to_dp.proved_delta(OutOfReach(RHO, infinite=infinite), Fraction(str(epsilon)), CLASSIC)
        assert (found.rigour, found.proof) == ("bounded", None)
        assert exact_delta(epsilon) * (1 - 1e-15) <= found.value <= exact_delta(epsilon) * (1 + 1e-11)
        wide = renyi_to_dp.proved_delta(OutOfReach(RHO, infinite=infinite, radius=0.1), Fraction(str(epsilon)), CLASSIC)
        assert wide.value == pytest.approx(exact_delta(epsilon) * math.exp(0.1), rel=1e-9)


@pytest.mark.parametrize("infinite", [True, False])
def test_an_epsilon_without_a_ball_is_the_upper_end_of_its_enclosure(infinite: bool) -> None:
    for delta in ("1e-5", "1e-100"):
        length = math.log(1 / float(delta))
        exact = float(RHO) + 2 * math.sqrt(float(RHO) * length)
        found = renyi_to_dp.proved_epsilon(OutOfReach(RHO, infinite=infinite), Fraction(delta), CLASSIC)
        assert (found.rigour, found.proof) == ("bounded", None)
        assert exact * (1 - 1e-15) <= found.value <= exact * (1 + 1e-11)
        wide = renyi_to_dp.proved_epsilon(OutOfReach(RHO, infinite=infinite, radius=0.1), Fraction(delta), CLASSIC)
        lam = math.sqrt(length / float(RHO))
        assert wide.value == pytest.approx(exact + 0.1 / lam, rel=1e-9)


@pytest.mark.parametrize("infinite", [True, False])
@pytest.mark.parametrize("radius", [math.nan, math.inf, 700.0])
def test_what_no_enclosure_says_is_not_claimed(infinite: bool, radius: float) -> None:
    curve = OutOfReach(RHO, infinite=infinite, radius=radius)
    found = renyi_to_dp.proved_delta(curve, Fraction(1), CLASSIC)
    assert (found.value, found.rigour, found.proof) == (1.0, "proved", None)
    if not math.isfinite(radius):
        found = renyi_to_dp.proved_epsilon(curve, Fraction("1e-5"), CLASSIC)
        assert (found.value, found.rigour, found.proof) == (math.inf, "proved", None)


def test_numbers_that_are_only_bounded_are_those_of_arrays() -> None:
    rounds = compose([(OutOfReach(RHO, infinite=False), 20_630_000_000)])
    found = renyi_to_dp.proved_epsilon(rounds, Fraction("1e-200"), CLASSIC)
    rho = float(RHO) * 20_630_000_000
    exact = rho + 2 * math.sqrt(rho * 200 * math.log(10))
    assert (found.rigour, found.value) == (
        "bounded",
        array_answers.least_epsilons(rounds, [Fraction("1e-200")], CLASSIC)[0],
    )
    assert exact * (1 - 1e-15) <= found.value <= exact * (1 + 1e-11)
    asked = Fraction(exact)
    assert (
        renyi_to_dp.proved_delta(rounds, asked, CLASSIC).value
        == array_answers.least_deltas(rounds, [asked], CLASSIC)[0]
        >= 1e-200
    )


@pytest.mark.parametrize(
    ("run", "pure"),
    [
        (cm.PureDP("1/3"), Fraction(1, 3)),
        (cm.Laplace(scale=3) * 3, Fraction(1)),
        (cm.PureDP("0.1") * 7, Fraction(7, 10)),  # in floats 7 * 0.1 is more than 0.7
        (cm.PureDP("0.1") + cm.Laplace(scale=4), Fraction(7, 20)),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["rdp", "best"])
def test_delta_is_zero_from_the_pure_epsilon_on_and_not_before(
    run: cm.Expression, pure: Fraction, method: Method
) -> None:
    below = pure - Fraction(1, 10**30)
    assert run.delta(pure, method=method) == 0
    assert run.delta([pure], method=method).tolist() == [0]
    assert 0 < run.delta(below, method=method) < 1e-12
    assert 0 < run.delta([below], method=method)[0] < 1e-12


def test_a_pure_epsilon_that_is_not_rational_is_compared_in_balls() -> None:
    run = cm.RandomizedResponse(p="0.75")  # log 3 = 1.098612288668109691395245…
    assert run.delta("1.0986122886681096914", method="rdp") == 0
    assert run.delta("1.0986122886681096913", method="rdp") > 0
