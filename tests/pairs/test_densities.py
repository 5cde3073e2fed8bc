"""Densities given as functions, against the closed forms of the pairs they describe."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

import cumulant as cm
from cumulant.errors import CertificateError, InputError
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.densities import DensityPair
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.pair import Pair

LINE = (-math.inf, math.inf)


def normal(x: Any) -> Any:
    return -x * x / 2 - math.log(2 * math.pi) / 2


def laplace(x: Any) -> Any:
    return -np.abs(x) - math.log(2)


def student(x: Any) -> Any:
    """Two degrees of freedom."""
    return -1.5 * np.log1p(x * x / 2) - math.log(2 * math.sqrt(2))


CASES: list[tuple[DensityPair, Pair]] = [
    (DensityPair(lambda x: normal(x - 1), normal), GaussianPair(Fraction(1))),
    (DensityPair(lambda x: normal(x - 0.2), normal), GaussianPair(Fraction(1, 5))),
    (DensityPair(lambda x: normal(x - 5), normal), GaussianPair(Fraction(5))),
    (DensityPair(lambda x: laplace(x - 0.5), laplace, pure=0.5), LaplacePair(Fraction(1, 2))),
]


@pytest.mark.parametrize(("density", "closed"), CASES)
def test_against_the_closed_forms(density: DensityPair, closed: Pair) -> None:
    lam, orders = np.array([1e-6, 0.01, 0.5, 1, 7, 63, 999]), [1, 2, 3, 10, 50]
    assert density.curve().cgf(lam) == pytest.approx(closed.curve().cgf(lam), rel=1e-10)
    assert density.curve().kl() == pytest.approx(closed.curve().kl(), rel=1e-10)
    assert density.curve().pure() == closed.curve().pure()
    assert density.moments(orders) == pytest.approx(closed.moments(orders), rel=1e-10, abs=1e-10)
    assert density.positive_moments(orders) == pytest.approx(closed.positive_moments(orders), rel=1e-10, abs=1e-10)
    assert density.profile([0, 0.1, 0.4, 1]) == pytest.approx(closed.profile([0, 0.1, 0.4, 1]), rel=1e-10, abs=0)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_units_do_not_matter(scale: float) -> None:
    pair = DensityPair(lambda x: normal(x / scale - 1) - math.log(scale), lambda x: normal(x / scale) - math.log(scale))
    assert pair.curve().rdp([2, 10]) == pytest.approx([1.0, 5.0], rel=1e-10)


def test_a_function_of_one_number() -> None:
    def shifted(x: float) -> float:
        return -abs(x - 0.5) - math.log(2) if x > -1e9 else -abs(x) - math.log(2)

    pair = DensityPair(shifted, lambda x: -abs(x) - math.log(2))
    assert pair.curve().rdp([2, 8]) == pytest.approx(LaplacePair(Fraction(1, 2)).curve().rdp([2, 8]), rel=1e-10)


def test_the_larger_direction_and_its_divergence() -> None:
    pair = DensityPair(lambda x: -np.abs(x) / 2 - math.log(4), laplace)
    expected = [math.log(2 * 0.25**a * 0.5 ** (1 - a) / (1 - a / 2)) / (a - 1) for a in (1.5, 1.9, 1.99)]
    assert pair.curve().rdp([1.5, 1.9, 1.99]) == pytest.approx(expected, rel=1e-10)
    assert pair.curve().rdp([2, 2.1, 3]).tolist() == [math.inf] * 3


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_half_lines(sign: float) -> None:
    support = (0.0, math.inf) if sign > 0 else (-math.inf, 0.0)
    pair = DensityPair(lambda x: -sign * x, lambda x: math.log(1.5) - 1.5 * sign * x, support)
    expected = [math.log(1 / (1.5 ** (a - 1) * (a - 1.5 * (a - 1)))) / (a - 1) for a in (2, 2.9)]
    assert pair.curve().rdp([2, 2.9, 3, 10]) == pytest.approx([*expected, math.inf, math.inf], rel=1e-10)


def test_an_interval_with_a_jump() -> None:
    pair = DensityPair(lambda x: np.where(x < 0.3, math.log(1.7), math.log(0.7)), lambda x: 0 * x, (0, 1))
    expected = [
        math.log(max(0.3 * 1.7**a + 0.7 * 0.7**a, 0.3 * 1.7 ** (1 - a) + 0.7 * 0.7 ** (1 - a))) for a in (2, 50)
    ]
    assert pair.curve().cgf([1, 49]) == pytest.approx(expected, rel=1e-9)
    assert pair.profile([0, 0.2]) == pytest.approx([0.21, 0.3 * (1.7 - math.exp(0.2))], rel=1e-9)


def test_laws_with_different_supports() -> None:
    pair = DensityPair(lambda x: np.where(x < 0.5, math.log(2), -np.inf), lambda x: 0 * x, (0, 1))
    assert pair.curve().rdp([1, 2]).tolist() == [math.inf, math.inf]
    assert pair.profile([0, 0.5, 5]) == pytest.approx([0.5, 0.5, 0.5], rel=1e-9)
    assert pair.moments([1])[0] == pytest.approx(0.0, abs=1e-9)


def test_heavy_tails_and_a_loss_that_peaks_inside() -> None:
    pair = DensityPair(lambda x: student(x - 1), student)
    with BALLS.at(128):

        def integrand(x: Any, analytic: Any) -> Any:
            p, q = ((1 + (x - shift) ** 2 / 2) ** flint.arb(-1.5) for shift in (1, 0))
            return p * p / q / (2 * flint.arb(2).sqrt())

        # p^2/q differs from q by O(x^-4): the cut at 1e6 costs 2e-12
        chi = float(flint.acb.integral(integrand, flint.acb(-(10**6)), flint.acb(10**6)).real)
    assert pair.curve().cgf([1.0])[0] == pytest.approx(math.log(chi), rel=1e-9)
    # the loss is largest at x = 2, log((1 + 2)/(1 + 1/2)) * 3/2: just below it {y > eps} is narrow but not empty
    top = 1.5 * math.log(2)
    logs = pair.log_profile([top - 1e-3, top - 1e-6, top + 1e-6])
    assert logs[0] > -20
    assert -35 < logs[1] < logs[0]
    assert logs[2] == -math.inf


def test_two_peaks_of_very_different_width() -> None:
    def mixture(x: Any) -> Any:
        return np.logaddexp(math.log(0.5) + normal(x), math.log(50) + normal((x - 30) / 0.01))

    pair = DensityPair(lambda x: mixture(x - 0.001), mixture)
    expected = [
        math.log(0.5 * math.exp(0.01 * a * (a - 1) / 2) + 0.5 * math.exp(1e-6 * a * (a - 1) / 2)) for a in (2, 10)
    ]
    assert pair.curve().cgf([1, 9]) == pytest.approx(expected, rel=1e-9)


def test_nearly_equal_densities_keep_their_digits() -> None:
    pair = DensityPair(lambda x: normal(x - 1e-4), normal)
    assert pair.curve().rdp([1.001, 2, 10]) == pytest.approx(np.array([1.001, 2, 10]) * 5e-9, rel=1e-9)


def test_equal_densities() -> None:
    pair = DensityPair(normal, normal)
    assert (pair.curve().rdp([1, 2, 5]) <= 5e-324).all()  # without `pure` an underflow is never called 0
    assert pair.profile([0, 1]).tolist() == [0.0, 0.0]


def test_noise_is_never_reported_as_privacy() -> None:
    # at order 1e8 the logarithms of the densities cancel to no digit at all
    assert (DensityPair(lambda x: normal(x - 1), normal).curve().rdp([1e8]) >= 0.5e8 * (1 - 1e-6)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((lambda x: normal(x) + 0.01, normal, LINE), "log_p integrates to 1.01005"),
        ((normal, lambda x: normal(x) - 1e-5, LINE), "log_q integrates to 0.99999"),
        ((normal, lambda x: 0 * x, LINE), "log_q integrates to no number that can be trusted"),
        ((lambda x: np.exp(normal(x)), normal, LINE), "a density integrates to 1; return its logarithm"),
        ((np.log, normal, LINE), "log_p is not a number at x=-"),
        ((normal, normal, (1.0, 0.0)), "low < high"),
        ((lambda x: laplace(x - 1), laplace, LINE, 0.5), "pure=0.5 must bound"),
    ],
)
def test_refusals(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DensityPair(*arguments)


def test_nothing_is_certified() -> None:
    pair = CASES[0][0]
    assert pair.estimated
    assert pair.curve().estimated
    questions: tuple[Callable[[], object], ...] = (
        lambda: pair.curve().cgf([Fraction(1)], BALLS),
        lambda: pair.curve().kl(BALLS),
        lambda: pair.moments([2], BALLS),
        lambda: pair.profile([Fraction(1)], BALLS),
    )
    for question in questions:
        with pytest.raises(CertificateError, match="cannot be certified"):
            question()


def test_a_pair_is_itself() -> None:
    """Its functions may change, so two pairs are never the same; mechanisms with the same functions are."""

    def shifted(x: Any) -> Any:
        return normal(x - 1)

    pair = DensityPair(shifted, normal)
    assert pair == pair
    assert pair != DensityPair(shifted, normal)


def test_many_questions_share_their_integrals() -> None:
    """Forty deltas look between remembered orders, and not each at orders of its own: three times as many points before."""
    asked = 0

    def counted(x: Any) -> Any:
        nonlocal asked
        asked += np.size(x)
        return laplace(x)

    mechanism = cm.from_densities(counted, lambda x: laplace(x - 1))
    found = mechanism.epsilon(np.geomspace(1e-9, 0.1, 40), method="rdp")
    shared, asked = asked, 0
    alone = [mechanism.epsilon(each, method="rdp") for each in (1e-9, 0.1)]
    assert found[[0, -1]] == pytest.approx(alone, rel=1e-9)
    assert shared < 6 * asked
