"""Proposition 38 as a mechanism: true families stay below it, functions and constants, text."""

import math
from typing import Any

import pytest

import cumulant as cm
from cumulant.mechanisms.exponential_family import ExponentialFamilyMechanism
from cumulant.paper.families import Bernoulli, Exponential


def steep(radius: float) -> float:
    """The Hessian of A = -log(rate) within a radius of the rate 1."""
    return 1 / (1 - radius) ** 2


def test_the_gaussian_is_met_exactly() -> None:
    assert ExponentialFamilyMechanism(diameter=1, hessian="0.25").rdp([1, 2, 33.5]) == pytest.approx(
        cm.Gaussian(sigma=2).rdp([1, 2, 33.5]), rel=1e-12
    )


def test_true_divergences_stay_below() -> None:
    rates = ExponentialFamilyMechanism(diameter="0.2", hessian=steep, radius="0.99")
    logits = ExponentialFamilyMechanism(diameter=1, hessian="1/4", lipschitz="1/2")
    for order in (1.0, 1.5, 2.0, 4.0, 5.9):
        for one, other in ((1.0, 1.2), (1.2, 1.0)):
            truth = Exponential().divergence(Exponential.natural(one), Exponential.natural(other), order)
            assert truth <= rates.rdp(order) < math.inf
        for middle in (-2.0, 0.0, 0.7):
            assert Bernoulli().divergence(middle + 0.5, middle - 0.5, order) <= logits.rdp(order) <= 1.0
    assert rates.rdp(6) == math.inf
    assert logits.pure() == 1.0


def test_the_printed_constant_fails_and_ours_holds() -> None:
    """E-6: (C) as printed, with L |.|^2, has L = 1/8 at sigma = 2, and a L D^2 / 2 is half of the truth at order 2."""
    assert cm.Gaussian(sigma=2).rdp(2) > 2 * (1 / 8) / 2
    assert ExponentialFamilyMechanism(diameter=1, hessian=1 / 4).rdp(2) >= 1 / 4


def test_the_smaller_of_both_bounds_counts() -> None:
    both = ExponentialFamilyMechanism(diameter=2, hessian=3, lipschitz=4)
    assert both.rdp(2) == pytest.approx(min(2 * 3 * 4 / 2, 2 * 4 * 2), rel=1e-12)
    # K = 12 at order 2 and 16 lambda far out; the chord from there to lambda = 4096 is below the kink between them
    assert both.rdp(9) == pytest.approx((12 + 7 * (16 * 4096 - 12) / 4095) / 8, rel=1e-12)
    assert both.rdp(9) < 16
    assert ExponentialFamilyMechanism(diameter=2, lipschitz=4).rdp(9) == pytest.approx(16, rel=1e-12)


def test_it_composes_and_is_sampled() -> None:
    smooth = ExponentialFamilyMechanism(diameter=1, hessian="0.04")
    run = smooth @ cm.WithoutReplacement(rate="0.001") * 600_000
    assert run.epsilon(delta=1e-8, method="paper") == pytest.approx(2.02700764174, rel=1e-9)


def test_records_fix_the_relation() -> None:
    free = ExponentialFamilyMechanism(diameter=1, hessian=1)
    fixed = ExponentialFamilyMechanism(diameter=1, hessian=1, records=100)
    assert (free.relation, fixed.relation) == (cm.Relation.ANY, cm.Relation.REPLACE_ONE)
    assert free != fixed


def test_text_of_constants_and_none_of_functions() -> None:
    constants = ExponentialFamilyMechanism(diameter="0.5", hessian="1/3", radius=7, records=256)
    assert str(constants) == 'ExponentialFamilyMechanism(diameter=0.5, hessian="1/3", radius=7, records=256)'
    assert cm.parse(constants.notation()) == constants
    assert constants.guarantee(delta=0.5).rigour == "proved"
    functions = ExponentialFamilyMechanism(diameter="0.5", hessian=steep, radius="0.9")
    assert functions == ExponentialFamilyMechanism(diameter="0.5", hessian=steep, radius="0.9")
    assert functions.guarantee(delta=0.5).rigour == "estimated"
    with pytest.raises(cm.NotationError):
        (functions * 3).notation()


def test_a_constant_is_rounded_up() -> None:
    third = ExponentialFamilyMechanism(diameter=1, hessian="1/3")
    assert third.rdp(2) >= 1 / 3


def test_wrong_input() -> None:
    with pytest.raises(cm.InputError, match="needs hessian or lipschitz"):
        ExponentialFamilyMechanism(diameter=1)
    with pytest.raises(cm.InputError, match="hessian=-1"):
        ExponentialFamilyMechanism(diameter=1, hessian=-1)
    with pytest.raises(cm.InputError, match="diameter"):
        ExponentialFamilyMechanism(diameter=None, hessian=1)  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="radius"):
        ExponentialFamilyMechanism(diameter=1, hessian=1, radius=steep)  # type: ignore[arg-type]


@pytest.mark.parametrize("said", [math.nan, -1.0, None])
def test_what_is_no_bound(said: Any) -> None:
    with pytest.raises(cm.InputError, match="the bound at radius"):
        ExponentialFamilyMechanism(diameter=1, hessian=lambda r: said).epsilon(delta=0.1)


def test_a_function_need_not_know_its_limit() -> None:
    growing = ExponentialFamilyMechanism(diameter=1, lipschitz=lambda r: r / (1 + r))  # nan at infinity
    assert growing.pure() == math.inf
    assert growing.epsilon(delta=0.1) < math.inf
