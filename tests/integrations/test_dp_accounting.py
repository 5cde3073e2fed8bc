"""dp_accounting 0.6.0 as it is: events there and back, its numbers beside ours, its own search with our accountant."""

import copy
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import dp_accounting as dpa
import pytest
from dp_accounting import NeighboringRelation as R
from dp_accounting import pld, rdp

import cumulant as cm
from cumulant.integrations.dp_accounting import (
    CumulantAccountant,
    NotPrivate,
    Refused,
    from_dp_event,
    read_dp_event,
    to_dp_event,
)
from tests.pinned.exported_events import EVENTS

DELTA = 1e-5
GAUSSIAN = dpa.GaussianDpEvent(2.0)
TREE, BEST = dpa.dp_event.SingleEpochTreeAggregationDpEvent, dpa.dp_event.RepeatAndSelectDpEvent
WITHOUT = dpa.SampledWithoutReplacementDpEvent(60_000, 256, GAUSSIAN)


def test_the_version_is_the_one_that_was_read() -> None:
    assert version("dp-accounting") == "0.6.0"


# ---- numbers


def test_poisson() -> None:
    event = dpa.PoissonSampledDpEvent(256 / 60000, dpa.GaussianDpEvent(1.1))
    ours = {method: CumulantAccountant(method=method).compose(event, 14_000) for method in ("rdp", "best")}
    assert ours["rdp"].get_epsilon(DELTA) == pytest.approx(2.5903, abs=1e-4)
    assert 2.3755 < ours["best"].get_epsilon(DELTA) < 2.3765
    assert rdp.RdpAccountant().compose(event, 14_000).get_epsilon(DELTA) == pytest.approx(2.5904, abs=1e-4)
    assert pld.PLDAccountant().compose(event, 14_000).get_epsilon(DELTA) == pytest.approx(2.3759, abs=1e-4)


def test_without_replacement_theirs_is_below_our_lower_end() -> None:
    """Read as deviation over the norm, as the docstring of the event defines it; with half of it theirs is above ours."""
    accountant = CumulantAccountant(R.REPLACE_ONE)
    found = accountant.compose(WITHOUT, 4687).guarantee(DELTA)
    assert found.lower is not None
    assert 1.5681 < found.lower < found.epsilon < 1.6169
    assert CumulantAccountant(R.REPLACE_ONE, "rdp").compose(WITHOUT, 4687).get_epsilon(DELTA) == pytest.approx(
        1.7591, abs=1e-4
    )
    theirs = rdp.RdpAccountant(neighboring_relation=R.REPLACE_ONE).compose(WITHOUT, 4687).get_epsilon(DELTA)
    assert theirs == pytest.approx(1.3051, abs=1e-4)
    assert theirs < found.lower
    halved = dpa.SampledWithoutReplacementDpEvent(60_000, 256, dpa.GaussianDpEvent(1.0))
    halved_theirs = rdp.RdpAccountant(neighboring_relation=R.REPLACE_ONE).compose(halved, 4687).get_epsilon(DELTA)
    assert halved_theirs == pytest.approx(3.1559, abs=1e-3)
    assert halved_theirs > found.epsilon


def test_a_plain_gaussian_under_replace_one() -> None:
    event = dpa.GaussianDpEvent(10.0)
    ours = CumulantAccountant(R.REPLACE_ONE).compose(event, 100).get_epsilon(DELTA)
    assert ours == pytest.approx(9.9973, abs=2e-4)
    assert pld.PLDAccountant(R.REPLACE_ONE).compose(event, 100).get_epsilon(DELTA) == pytest.approx(ours, rel=1e-4)
    theirs = rdp.RdpAccountant(neighboring_relation=R.REPLACE_ONE).compose(event, 100).get_epsilon(DELTA)
    assert theirs == pytest.approx(4.7285, abs=1e-3)


def test_randomized_response_fifty_times() -> None:
    event = dpa.RandomizedResponseDpEvent(0.5, 2)
    ours = CumulantAccountant(R.REPLACE_ONE).compose(event, 50).get_epsilon(DELTA)
    assert ours == pytest.approx(50.52, abs=0.02)
    theirs = pld.PLDAccountant(R.REPLACE_ONE).compose(event, 50).get_epsilon(DELTA)
    assert theirs == pytest.approx(1.0987, abs=1e-3)  # the count was forgotten


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (dpa.RandomizedResponseDpEvent(0.5, 4), R.REPLACE_ONE),
        (dpa.dp_event.DiscreteLaplaceDpEvent(0.5, 3), R.ADD_OR_REMOVE_ONE),
        (dpa.LaplaceDpEvent(2.0), R.ADD_OR_REMOVE_ONE),
    ],
    ids=["k-ary response", "discrete Laplace", "Laplace"],
)
def test_single_events_agree_with_their_loss_distributions(event: Any, relation: Any) -> None:
    ours = CumulantAccountant(relation).compose(event)
    theirs = pld.PLDAccountant(relation).compose(event)
    for delta in (0.01, 0.1):
        assert ours.get_epsilon(delta) == pytest.approx(theirs.get_epsilon(delta), rel=2e-3)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 8, 1000, [5, 9, 2]])
def test_trees(steps: Any) -> None:
    """As many Gaussians as a leaf has nodes above it: with the same curve theirs is the same, up to its grid of orders."""
    event = TREE(4.0, steps)
    ours = CumulantAccountant(R.REPLACE_SPECIAL, "rdp").compose(event, 2).get_epsilon(DELTA)
    theirs = rdp.RdpAccountant(neighboring_relation=R.REPLACE_SPECIAL).compose(event, 2).get_epsilon(DELTA)
    assert ours <= theirs == pytest.approx(ours, rel=2e-3)
    assert CumulantAccountant(R.REPLACE_SPECIAL).compose(event, 2).get_epsilon(DELTA) < ours


def test_a_leaf_of_a_tree_is_in_as_many_nodes_as_counted() -> None:
    for steps in range(1, 70):
        # the nodes of a tree over its leaves 0 … steps-1 are the aligned blocks of powers of two that are complete
        blocks = [(start, 1 << k) for k in range(8) for start in range(0, steps - (1 << k) + 1, 1 << k)]
        most = max(sum(start <= leaf < start + size for start, size in blocks) for leaf in range(steps))
        found = from_dp_event(TREE(1.0, steps), R.REPLACE_SPECIAL)
        assert found == cm.Gaussian(1, relation=cm.Relation.REPLACE_SPECIAL, correlated=True) * most


@pytest.mark.parametrize(("mean", "shape"), [(10.0, 1.0), (10.0, 0.0), (5.0, 0.5), (10.0, math.inf)])
def test_the_best_of_many(mean: float, shape: float) -> None:
    """Ours is at most theirs, whose theorem is among ours."""
    event = BEST(dpa.GaussianDpEvent(10.0), mean, shape)
    theirs = rdp.RdpAccountant().compose(event).get_epsilon(1e-6)
    assert CumulantAccountant().compose(event).get_epsilon(1e-6) < theirs
    assert CumulantAccountant(method="rdp").compose(event).get_epsilon(1e-6) <= theirs * (1 + 1e-9)


def test_their_search_with_our_accountant() -> None:
    def event(noise: float) -> Any:
        return dpa.SelfComposedDpEvent(
            dpa.SampledWithoutReplacementDpEvent(60_000, 256, dpa.GaussianDpEvent(noise)), 4687
        )

    found = dpa.calibrate_dp_mechanism(
        lambda: CumulantAccountant(R.REPLACE_ONE, method="rdp"), event, 2.0, DELTA, tol=1e-3
    )
    assert found == pytest.approx(1.8866, abs=2e-3)
    accountant = CumulantAccountant(R.REPLACE_ONE, method="rdp").compose(event(found))
    assert accountant.get_epsilon(DELTA) <= 2.0


# ---- there and back


@pytest.mark.parametrize(
    "text",
    [
        'Gaussian(sigma=2, sensitivity=2, geometry="ball") @ WithoutReplacement(sample=256, population=60000) * 4687',
        'Gaussian(sigma=1.1, relation="add-remove") @ Poisson(rate=0.01) * 100',
        'Gaussian(sigma=3, relation="add-remove") * 5',
        'Laplace(scale=4, relation="add-remove") @ Poisson(rate=0.25) + Gaussian(sigma=2, relation="add-remove")',
        "RandomizedResponse(p=0.75) * 50",
        "KaryResponse(values=4, p=0.625) * 3",
        "ZeroConcentrated(rho=0.125) @ Poisson(rate=0.5) * 3",
        "RandomizedResponse(p=0.6) @ WithoutReplacement(sample=3, population=3000) * 7",
        "DiscreteLaplace(scale=2, sensitivity=3) @ Poisson(rate=0.1) * 4",
        'Gaussian(sigma=5, relation="add-remove") @ RepeatAndSelect(mean=10) * 2',
        'Gaussian(sigma=5, relation="add-remove") @ RepeatAndSelect(mean=4.5, shape=0.5)',
        'Gaussian(sigma=5, relation="add-remove") @ RepeatAndSelect(mean=3, number="poisson")',
    ],
)
def test_expressions_come_back(text: str) -> None:
    run = cm.parse(text)
    event, relation = to_dp_event(run)
    back = from_dp_event(event, relation)
    assert back is not None
    assert back.epsilon(DELTA, method="rdp") == run.epsilon(DELTA, method="rdp")
    assert back == run


def test_what_is_no_float_is_rounded_to_less_privacy() -> None:
    run = cm.Gaussian.from_clipping(1, "1/3", "add-remove") @ cm.Poisson(rate="1/3") * 2
    event, relation = to_dp_event(run)
    inner = event.event
    assert Fraction(repr(inner.sampling_probability)) >= Fraction(1, 3)
    assert Fraction(repr(inner.event.noise_multiplier)) <= Fraction(1, 3)
    back = from_dp_event(event, relation)
    assert back is not None
    assert back.epsilon(DELTA, method="rdp") >= run.epsilon(DELTA, method="rdp")


def test_a_step_of_training_comes_back() -> None:
    for sampling in ("fixed-size", "poisson"):
        run = cm.NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=4, sampling=sampling).run
        event, relation = to_dp_event(run)
        back = from_dp_event(event, relation)
        assert back is not None
        assert back.relation == run.relation
        assert back.epsilon(DELTA, method="rdp") == pytest.approx(run.epsilon(DELTA, method="rdp"), rel=1e-12)


def test_a_shuffled_pass_has_no_event() -> None:
    """As a plain Gaussian it would come back with a lower end, which nobody knows for a shuffled loop."""
    run = cm.NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=4, sampling="shuffled").run
    with pytest.raises(Refused, match="has no event in dp_accounting"):
        to_dp_event(run)


@pytest.mark.parametrize(
    "run",
    [
        cm.Gaussian(sigma=5),  # a sensitivity of distances
        cm.Gaussian(sigma=5, relation=cm.Relation.REPLACE_ONE),
        cm.Gaussian(sigma=5) @ cm.WithoutReplacement(sample=3, population=300),
        cm.RandomizedResponse(p=0.75) @ cm.WithoutReplacement(rate=0.01),  # a rate without sizes
        cm.Laplace(scale=2),
        cm.PureDP(1),
        cm.DiscreteLaplace(scale=2),
        cm.DiscreteGaussian(sigma=2),
        cm.RandomizedResponse(p=0.75) @ cm.RepeatAndSelect(mean="10/3"),
        cm.RandomizedResponse(p=0.75) @ cm.RepeatAndSelect(mean="0.5", number="poisson"),
        cm.ApproximateDP(1, 1e-6),
        cm.from_rdp(rdp=lambda a: a / 18, name="mine"),
    ],
    ids=str,
)
def test_expressions_without_an_event(run: cm.Expression) -> None:
    with pytest.raises(Refused):
        to_dp_event(run)


def test_a_special_record_has_the_numbers_of_one_removed() -> None:
    """Theirs for REPLACE_SPECIAL is the same as for ADD_OR_REMOVE_ONE, and so is ours; the relation is said."""
    event = dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(0.05, dpa.GaussianDpEvent(1.2)), 200)
    ours = {
        relation: CumulantAccountant(relation).compose(event) for relation in (R.ADD_OR_REMOVE_ONE, R.REPLACE_SPECIAL)
    }
    theirs = {relation: pld.PLDAccountant(relation).compose(event) for relation in ours}
    assert len({accountant.get_epsilon(DELTA) for accountant in ours.values()}) == 1
    assert len({accountant.get_epsilon(DELTA) for accountant in theirs.values()}) == 1
    special = ours[R.REPLACE_SPECIAL]
    assert special.get_epsilon(DELTA) == pytest.approx(theirs[R.REPLACE_SPECIAL].get_epsilon(DELTA), rel=1e-3)
    assert special.run is not None
    assert special.run.relation is cm.Relation.REPLACE_SPECIAL
    assert "special record" in special.guarantee(DELTA).explain()
    written = to_dp_event(special.run)
    assert written == (event, R.REPLACE_SPECIAL)
    assert from_dp_event(*written) == special.run


@pytest.mark.parametrize(
    "run",
    [
        cm.Gaussian.from_tree(sigma=2, steps=7),
        cm.Gaussian.from_matrix([[1, 0], ["1/2", 1]], sigma=2, relation="add-remove"),
        cm.Gaussian.from_matrix([[1, 0], ["1/2", 1]], sigma=2, relation="replace-special") * 3,
    ],
    ids=str,
)
def test_noise_that_is_shared_has_no_event(run: cm.Expression) -> None:
    """A plain GaussianDpEvent would lose the mark, and a sample of it would be accepted when it is read again."""
    with pytest.raises(Refused, match="share noise"):
        to_dp_event(run)


# ---- each event under each relation


@pytest.mark.parametrize(
    ("event", "relation", "expected"),
    [
        (dpa.GaussianDpEvent(2.0), R.ADD_OR_REMOVE_ONE, 'Gaussian(sigma=2, relation="add-remove")'),
        (dpa.GaussianDpEvent(2.0), R.REPLACE_ONE, 'Gaussian(sigma=2, sensitivity=2, geometry="ball")'),
        (dpa.GaussianDpEvent(2.0), R.REPLACE_SPECIAL, 'Gaussian(sigma=2, relation="replace-special")'),
        (dpa.LaplaceDpEvent(2.0), R.REPLACE_SPECIAL, 'Laplace(scale=2, relation="replace-special")'),
        (dpa.LaplaceDpEvent(2.0), R.ADD_OR_REMOVE_ONE, 'Laplace(scale=2, relation="add-remove")'),
        (dpa.LaplaceDpEvent(2.0), R.REPLACE_ONE, 'Laplace(scale=2, sensitivity=2, relation="replace-one")'),
        (dpa.RandomizedResponseDpEvent(0.5, 2), R.REPLACE_ONE, "RandomizedResponse(p=0.75)"),
        (dpa.RandomizedResponseDpEvent(0.5, 4), R.REPLACE_ONE, "KaryResponse(values=4, p=0.625)"),
        (dpa.dp_event.DiscreteLaplaceDpEvent(0.5, 3), R.ADD_OR_REMOVE_ONE, "DiscreteLaplace(scale=2, sensitivity=3)"),
        (dpa.dp_event.DiscreteLaplaceDpEvent(0.5, 3), R.REPLACE_ONE, "DiscreteLaplace(scale=2, sensitivity=6)"),
        (dpa.ZCDpEvent(0.5), R.ADD_OR_REMOVE_ONE, "ZeroConcentrated(rho=0.5)"),
        (dpa.ZCDpEvent(0.5), R.REPLACE_ONE, "ZeroConcentrated(rho=0.5)"),
        (dpa.ZCDpEvent(0.5, 0.1), R.REPLACE_ONE, "ZeroConcentrated(rho=0.5, xi=0.1)"),
        (
            dpa.PoissonSampledDpEvent(0.1, GAUSSIAN),
            R.REPLACE_ONE,
            'Gaussian(sigma=2, relation="add-remove") @ Poisson(rate=0.1, relation="replace-one")',
        ),
        (
            dpa.PoissonSampledDpEvent(0.1, dpa.dp_event.DiscreteLaplaceDpEvent(0.5, 3)),
            R.REPLACE_ONE,
            'DiscreteLaplace(scale=2, sensitivity=3, relation="add-remove") @ Poisson(rate=0.1, relation="replace-one")',
        ),
        (dpa.PoissonSampledDpEvent(1.0, GAUSSIAN), R.REPLACE_ONE, 'Gaussian(sigma=2, sensitivity=2, geometry="ball")'),
        (
            dpa.PoissonSampledDpEvent(0.1, GAUSSIAN),
            R.REPLACE_SPECIAL,
            'Gaussian(sigma=2, relation="replace-special") @ Poisson(rate=0.1, relation="replace-special")',
        ),
        (dpa.PoissonSampledDpEvent(1.0, GAUSSIAN), R.ADD_OR_REMOVE_ONE, 'Gaussian(sigma=2, relation="add-remove")'),
        (TREE(2.0, 5), R.REPLACE_SPECIAL, 'Gaussian(sigma=2, relation="replace-special", correlated="yes") * 3'),
        (TREE(2.0, [3, 8, 0]), R.REPLACE_ONE, 'Gaussian(2, 2, geometry="ball", correlated="yes") * 4'),
        (
            BEST(GAUSSIAN, 4.5, 0.5),
            R.REPLACE_SPECIAL,
            'Gaussian(sigma=2, relation="replace-special") @ RepeatAndSelect(4.5, 0.5)',
        ),
        (BEST(GAUSSIAN, 1.0, 1.0), R.ADD_OR_REMOVE_ONE, 'Gaussian(sigma=2, relation="add-remove")'),
        (
            BEST(dpa.RandomizedResponseDpEvent(0.5, 2), 3.0, math.inf),
            R.REPLACE_ONE,
            'RandomizedResponse(p=0.75) @ RepeatAndSelect(mean=3, number="poisson")',
        ),
        (
            dpa.ComposedDpEvent([GAUSSIAN, dpa.NoOpDpEvent(), dpa.SelfComposedDpEvent(GAUSSIAN, 3)]),
            R.ADD_OR_REMOVE_ONE,
            'Gaussian(sigma=2, relation="add-remove") * 4',
        ),
    ],
    ids=str,
)
def test_events(event: Any, relation: Any, expected: str) -> None:
    found = from_dp_event(event, relation)
    assert found == cm.parse(expected)


@pytest.mark.parametrize(
    "event",
    [
        dpa.NoOpDpEvent(),
        dpa.ComposedDpEvent([]),
        dpa.PoissonSampledDpEvent(0.0, GAUSSIAN),
        dpa.PoissonSampledDpEvent(0.1, dpa.NoOpDpEvent()),
        dpa.ZCDpEvent(0.0),
        dpa.dp_event.RepeatAndSelectDpEvent(dpa.NoOpDpEvent(), 3.0, 1.0),
    ],
    ids=str,
)
def test_events_of_nothing(event: Any) -> None:
    assert from_dp_event(event, R.ADD_OR_REMOVE_ONE) is None
    assert CumulantAccountant().compose(event).get_epsilon(0.0) == 0
    assert from_dp_event(dpa.SelfComposedDpEvent(GAUSSIAN, 0), R.ADD_OR_REMOVE_ONE) is None


@pytest.mark.parametrize(
    "event",
    [
        dpa.NonPrivateDpEvent(),
        dpa.GaussianDpEvent(0.0),
        dpa.LaplaceDpEvent(0.0),
        dpa.SelfComposedDpEvent(dpa.ComposedDpEvent([GAUSSIAN, dpa.NonPrivateDpEvent()]), 2),
        dpa.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(0.0)),
        dpa.dp_event.RepeatAndSelectDpEvent(dpa.GaussianDpEvent(0.0), 3.0, 1.0),
    ],
    ids=str,
)
def test_events_that_protect_nobody(event: Any) -> None:
    with pytest.raises(NotPrivate):
        from_dp_event(event, R.ADD_OR_REMOVE_ONE)
    accountant = CumulantAccountant()
    assert accountant.supports(event)
    assert accountant.get_epsilon(DELTA) == 0  # asking composes nothing
    accountant.compose(event).compose(GAUSSIAN)
    assert math.isinf(accountant.get_epsilon(DELTA))
    assert accountant.get_delta(1.0) == 1


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (WITHOUT, R.ADD_OR_REMOVE_ONE),
        (WITHOUT, R.REPLACE_SPECIAL),
        (dpa.RandomizedResponseDpEvent(0.5, 2), R.REPLACE_SPECIAL),
        (dpa.PoissonSampledDpEvent(0.1, TREE(2.0, 5)), R.REPLACE_SPECIAL),
        (dpa.PoissonSampledDpEvent(0.1, dpa.ComposedDpEvent([GAUSSIAN, TREE(2.0, 5)])), R.REPLACE_SPECIAL),
        (dpa.PoissonSampledDpEvent(0.1, dpa.SelfComposedDpEvent(TREE(2.0, 5), 3)), R.REPLACE_SPECIAL),
        (dpa.PoissonSampledDpEvent(0.1, TREE(2.0, 5)), R.REPLACE_ONE),
        (dpa.SampledWithoutReplacementDpEvent(100, 10, TREE(2.0, 5)), R.REPLACE_ONE),
        (dpa.dp_event.SampledWithReplacementDpEvent(100, 10, TREE(2.0, 5)), R.REPLACE_ONE),
        (dpa.PoissonSampledDpEvent(0.1, dpa.RandomizedResponseDpEvent(0.5, 2)), R.REPLACE_ONE),
        (dpa.RandomizedResponseDpEvent(0.5, 2), R.ADD_OR_REMOVE_ONE),
        (dpa.RandomizedResponseDpEvent(0.5, 3), R.ADD_OR_REMOVE_ONE),
        (dpa.UnsupportedDpEvent(), R.REPLACE_ONE),
        (dpa.dp_event.DiscreteLaplaceDpEvent(0.0, 1), R.ADD_OR_REMOVE_ONE),
        (dpa.dp_event.SingleEpochTreeAggregationDpEvent(1.0, 3), R.ADD_OR_REMOVE_ONE),
        (TREE(1.0, []), R.REPLACE_SPECIAL),
        (TREE(1.0, -1), R.REPLACE_SPECIAL),
        (BEST(GAUSSIAN, 0.5, 1.0), R.ADD_OR_REMOVE_ONE),
        (BEST(GAUSSIAN, 0.5, math.inf), R.ADD_OR_REMOVE_ONE),
        (BEST(GAUSSIAN, 2.0, -1.0), R.ADD_OR_REMOVE_ONE),
        (BEST(GAUSSIAN, 2.0, math.nan), R.ADD_OR_REMOVE_ONE),
        (BEST(dpa.UnsupportedDpEvent(), 2.0, 1.0), R.ADD_OR_REMOVE_ONE),
        (dpa.PoissonSampledDpEvent(0.1, BEST(GAUSSIAN, 2.0, 1.0)), R.ADD_OR_REMOVE_ONE),
        (dpa.GaussianDpEvent(-1.0), R.ADD_OR_REMOVE_ONE),
        (dpa.ComposedDpEvent([GAUSSIAN, dpa.UnsupportedDpEvent()]), R.ADD_OR_REMOVE_ONE),
    ],
    ids=str,
)
def test_events_that_are_refused_by_name(event: Any, relation: Any) -> None:
    with pytest.raises(Refused) as refusal:
        from_dp_event(event, relation)
    assert refusal.value.event is not None
    accountant = CumulantAccountant(relation)
    assert not accountant.supports(event)
    with pytest.raises(dpa.UnsupportedEventError):
        accountant.compose(event)
    assert accountant.get_epsilon(DELTA) == 0


def test_concentrated_promises_are_not_sampled_as_gaussians() -> None:
    """zCDP says less than the Gaussian of the same curve, of which the pair is known."""
    sampled = [
        from_dp_event(dpa.PoissonSampledDpEvent(0.01, event), R.ADD_OR_REMOVE_ONE)
        for event in (dpa.ZCDpEvent(0.5), dpa.GaussianDpEvent(1.0))
    ]
    assert sampled[0] is not None
    assert sampled[1] is not None
    assert sampled[0].epsilon(DELTA) > sampled[1].epsilon(DELTA)


def test_an_accountant_can_be_copied_and_goes_its_own_way() -> None:
    accountant = CumulantAccountant(R.REPLACE_ONE).compose(WITHOUT, 10)
    twin = copy.deepcopy(accountant)
    twin.compose(WITHOUT, 10)
    assert twin.get_epsilon(DELTA) > accountant.get_epsilon(DELTA)
    assert accountant.ledger == dpa.SelfComposedDpEvent(WITHOUT, 10)
    assert twin.get_delta(accountant.get_epsilon(DELTA)) > DELTA


def test_threads_share_an_accountant() -> None:
    shared = CumulantAccountant()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: [shared.compose(GAUSSIAN) for _ in range(300)], range(8)))
    sys.setswitchinterval(before)
    assert shared.run == from_dp_event(dpa.SelfComposedDpEvent(GAUSSIAN, 2400), R.ADD_OR_REMOVE_ONE)
    assert shared.ledger == dpa.SelfComposedDpEvent(GAUSSIAN, 2400)


# ---- events of later releases, by objects with the same class names and fields


@dataclass(frozen=True)
class EpsilonDeltaDpEvent:
    epsilon: float
    delta: float


@dataclass(frozen=True)
class ExponentialMechanismDpEvent:
    epsilon: float


@dataclass(frozen=True)
class PermuteAndFlipDpEvent:
    epsilon: float


@dataclass(frozen=True)
class DiscreteGaussianDpEvent:
    sigma: float
    sensitivity: float = 1.0
    dimension: int | None = None


@pytest.mark.parametrize(
    ("event", "relation", "text"),
    [
        (EpsilonDeltaDpEvent(0.5, 1e-6), R.REPLACE_ONE, "ApproximateDP(epsilon=0.5, delta=1e-06)"),
        (EpsilonDeltaDpEvent(0.5, 0.0), R.ADD_OR_REMOVE_ONE, "PureDP(epsilon=0.5)"),
        (ExponentialMechanismDpEvent(0.5), R.ADD_OR_REMOVE_ONE, "ExponentialMechanism(epsilon=0.5)"),
        (PermuteAndFlipDpEvent(0.5), R.REPLACE_ONE, "PermuteAndFlip(epsilon=0.5)"),
        (DiscreteGaussianDpEvent(3.0), R.ADD_OR_REMOVE_ONE, "DiscreteGaussian(sigma=3)"),
        (DiscreteGaussianDpEvent(3.0, 2.0, 1), R.REPLACE_ONE, "DiscreteGaussian(sigma=3, sensitivity=4, dimension=1)"),
        (
            dpa.PoissonSampledDpEvent(0.1, DiscreteGaussianDpEvent(3.0, 2.0, 1)),
            R.REPLACE_ONE,
            'DiscreteGaussian(sigma=3, sensitivity=2, dimension=1, relation="add-remove") '
            '@ Poisson(rate=0.1, relation="replace-one")',
        ),
    ],
    ids=str,
)
def test_events_that_have_no_class_yet(event: Any, relation: Any, text: str) -> None:
    assert from_dp_event(event, relation) == cm.parse(text)


def test_events_of_later_releases_that_say_nothing_or_everything() -> None:
    for nothing in (EpsilonDeltaDpEvent(0.0, 0.0), ExponentialMechanismDpEvent(0.0), PermuteAndFlipDpEvent(0.0)):
        assert from_dp_event(nothing, R.REPLACE_ONE) is None
    for bare in (EpsilonDeltaDpEvent(0.5, 1.0), DiscreteGaussianDpEvent(0.0)):
        with pytest.raises(NotPrivate):
            from_dp_event(bare, R.REPLACE_ONE)


def test_a_record_replaced_on_poisson_samples_is_what_theirs_says() -> None:
    event = dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(2.0))
    theirs = pld.PLDAccountant(R.REPLACE_ONE)
    if theirs.supports(event):
        needed = theirs.compose(event, 100).get_epsilon(1e-6)
        assert CumulantAccountant(R.REPLACE_ONE).compose(event, 100).get_epsilon(1e-6) == pytest.approx(
            needed, rel=1e-3
        )
    assert CumulantAccountant(R.REPLACE_ONE).compose(event, 100).get_epsilon(1e-6) == pytest.approx(0.40222, rel=1e-3)
    run = cm.Gaussian(sigma=2, relation=cm.Relation.ADD_REMOVE) @ cm.Poisson(rate="0.01", relation="replace-one") * 3
    assert from_dp_event(*to_dp_event(run)) == run


@pytest.mark.parametrize(("text", "expression"), EVENTS.items())
def test_events_of_an_older_release_are_read(text: str, expression: str) -> None:
    assert str(from_dp_event(read_dp_event(text), R.ADD_OR_REMOVE_ONE)) == expression


def test_text_is_read_and_never_run() -> None:
    event = read_dp_event("GaussianDpEvent(noise_multiplier=np.float64(1.5))")
    assert event == dpa.GaussianDpEvent(1.5)
    for text in (
        "__import__('os').getcwd()",
        "print(1)",
        "GaussianDpEvent(1.1)",
        "GaussianDpEvent(noise_multiplier=print)",
        "GaussianDpEvent(noise=1)",
        "",
        "(" * 5000,
    ):
        with pytest.raises(cm.InputError):
            read_dp_event(text)


def test_random_allocation_is_read_by_name() -> None:
    """No release has this event yet, so that a class of the name stands for it."""

    class RandomAllocationDpEvent:
        def __init__(self, event: Any, num_steps: int, num_selected: int = 1) -> None:
            self.event, self.num_steps, self.num_selected = event, num_steps, num_selected

    added = dpa.NeighboringRelation.ADD_OR_REMOVE_ONE
    found = from_dp_event(RandomAllocationDpEvent(dpa.GaussianDpEvent(2.0), 100), added)
    step = cm.Gaussian(noise_multiplier=2, relation=cm.Relation.ADD_REMOVE)
    assert found == step @ cm.RandomAllocation(steps=100)
    twice = from_dp_event(RandomAllocationDpEvent(dpa.GaussianDpEvent(2.0), 100, 2), added)
    assert twice == step @ cm.RandomAllocation(steps=100, picks=2)
    with pytest.raises(Refused, match="one record more or less"):
        from_dp_event(RandomAllocationDpEvent(dpa.GaussianDpEvent(2.0), 100), dpa.NeighboringRelation.REPLACE_ONE)
