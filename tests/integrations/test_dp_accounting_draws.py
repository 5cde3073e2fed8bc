"""Events of dp_accounting about ways to draw, and what dp_accounting itself says of them."""

from typing import Any

import dp_accounting as dpa
import pytest
from dp_accounting import NeighboringRelation, pld

import cumulant as cm
from cumulant.integrations.dp_accounting import CumulantAccountant, Refused, from_dp_event, to_dp_event

R, E = NeighboringRelation, dpa.dp_event
GAUSSIAN = dpa.GaussianDpEvent(2.0)
MIXTURE = E.MixtureOfGaussiansDpEvent(2.0, [0.0, 1.0, 2.0], [0.81, 0.18, 0.01])
TRUNCATED = E.TruncatedSubsampledGaussianDpEvent(100, 0.25, 20, 2.0)


@pytest.mark.parametrize(
    ("event", "relation", "expected"),
    [
        (MIXTURE, R.ADD_OR_REMOVE_ONE, "GaussianMixture(sigma=2, shifts=[0, 1, 2], weights=[0.81, 0.18, 0.01])"),
        (
            MIXTURE,
            R.REPLACE_SPECIAL,
            'GaussianMixture(sigma=2, shifts=[0, 1, 2], weights=[0.81, 0.18, 0.01], relation="replace-special")',
        ),
        (
            TRUNCATED,
            R.ADD_OR_REMOVE_ONE,
            'Gaussian(sigma=2, relation="add-remove") @ TruncatedPoisson(rate=0.25, limit=20, population=100)',
        ),
        (
            E.TruncatedSubsampledGaussianDpEvent(10, 0.25, 20, 2.0),
            R.ADD_OR_REMOVE_ONE,
            'Gaussian(sigma=2, relation="add-remove") @ Poisson(rate=0.25)',
        ),
        (
            dpa.SelfComposedDpEvent(E.SampledWithReplacementDpEvent(100, 5, GAUSSIAN), 3),
            R.REPLACE_ONE,
            'Gaussian(sigma=2, sensitivity=2, geometry="ball") @ WithReplacement(sample=5, population=100) * 3',
        ),
    ],
    ids=str,
)
def test_events(event: Any, relation: Any, expected: str) -> None:
    assert from_dp_event(event, relation) == cm.parse(expected)
    assert CumulantAccountant(relation).supports(event)


def test_mixtures_agree_with_their_loss_distributions() -> None:
    ours = CumulantAccountant(R.ADD_OR_REMOVE_ONE).compose(dpa.SelfComposedDpEvent(MIXTURE, 10))
    theirs = pld.PLDAccountant(R.ADD_OR_REMOVE_ONE).compose(dpa.SelfComposedDpEvent(MIXTURE, 10))
    for delta in (1e-6, 1e-3):
        assert ours.get_epsilon(delta) == pytest.approx(theirs.get_epsilon(delta), rel=5e-3)


def test_truncated_samples_need_about_half_of_what_they_say() -> None:
    ours = CumulantAccountant(R.ADD_OR_REMOVE_ONE).compose(TRUNCATED)
    theirs = pld.PLDAccountant(R.ADD_OR_REMOVE_ONE).compose(TRUNCATED)
    assert theirs.get_delta(0.1) == pytest.approx(0.0845, abs=1e-4)
    assert ours.get_delta(0.1) == pytest.approx(0.0457, abs=1e-4)


def test_samples_with_replacement_have_no_accountant_there() -> None:
    event = E.SampledWithReplacementDpEvent(1000, 10, GAUSSIAN)
    assert not pld.PLDAccountant(R.REPLACE_ONE).supports(event)
    assert 0 < CumulantAccountant(R.REPLACE_ONE).compose(event).get_epsilon(1e-6) < 10


def test_probabilities_that_floats_round_lose_nothing() -> None:
    """What is missing goes to the largest sensitivity, what is too much comes off a small one."""
    for weights, exact in (
        ([0.1] * 10, ["0.1"] * 10),
        ([0.7, 0.1, 0.2], ["0.7", "0.1", "0.2"]),
        ([1 / 3] * 3, ["1/3"] * 3),
    ):
        event = E.MixtureOfGaussiansDpEvent(1.0, [float(i) for i in range(len(weights))], weights)
        found = from_dp_event(event, R.ADD_OR_REMOVE_ONE)
        assert isinstance(found, cm.GaussianMixture)
        truth = cm.GaussianMixture(1, list(range(len(exact))), exact).delta("0.1")
        assert truth * (1 - 1e-15) <= found.delta("0.1") <= truth * (1 + 1e-12)


def test_mixtures_come_back() -> None:
    run = cm.parse("GaussianMixture(sigma=2, shifts=[0, 1, 2], weights=[0.81, 0.18, 0.01]) * 7")
    assert from_dp_event(*to_dp_event(run)) == run
    with pytest.raises(cm.InputError, match="numbers that are no floats"):
        to_dp_event(cm.GaussianMixture(1, [0, 1], ["1/3", "2/3"]))


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (MIXTURE, R.REPLACE_ONE),
        (TRUNCATED, R.REPLACE_ONE),
        (TRUNCATED, R.REPLACE_SPECIAL),
        (E.SampledWithReplacementDpEvent(10, 2, GAUSSIAN), R.ADD_OR_REMOVE_ONE),
        (E.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.4]), R.ADD_OR_REMOVE_ONE),
        (E.MixtureOfGaussiansDpEvent(1.0, [0.0], [0.5, 0.5]), R.ADD_OR_REMOVE_ONE),
    ],
    ids=str,
)
def test_refused(event: Any, relation: Any) -> None:
    with pytest.raises(Refused):
        from_dp_event(event, relation)
