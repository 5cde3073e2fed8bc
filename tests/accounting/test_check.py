"""Claims of others: what is proved holds, what is below the lower end is false, and the rest is open."""

import json
import math
from fractions import Fraction

import pytest
from scipy import special

import cumulant as cm
from tests.effort import EFFORT

W = cm.WithoutReplacement


def gaussian_delta(sigma: float, epsilon: float) -> float:
    return float(
        special.ndtr(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * special.ndtr(-0.5 / sigma - epsilon * sigma)
    )


@pytest.mark.parametrize("sigma", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_gaussian_noise_is_judged_by_its_profile(sigma: float, epsilon: float) -> None:
    """delta(epsilon) = Phi(1/(2 sigma) - epsilon sigma) - e^epsilon Phi(-1/(2 sigma) - epsilon sigma)."""
    delta = gaussian_delta(sigma, epsilon)
    for factor, verdict in ((1 + 1e-6, "holds"), (1 - 1e-6, "false")):
        found = cm.Gaussian(sigma=sigma).check(epsilon=epsilon, delta=delta * factor)
        assert found.verdict == verdict
        assert bool(found) == (verdict == "holds")
        assert found.lower is not None
        assert (found.lower > epsilon) == (verdict == "false")


def test_between_the_ends_it_is_open() -> None:
    run = cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000
    bounds = run.guarantee(delta=1e-8)
    assert bounds.lower is not None
    for claim, verdict in (
        (bounds.epsilon, "holds"),
        (math.nextafter(bounds.lower, 0), "false"),
        ((bounds.lower + bounds.epsilon) / 2, "open"),
    ):
        found = run.check(epsilon=Fraction(claim), delta=1e-8)
        assert (found.verdict, found.epsilon, found.lower) == (verdict, bounds.epsilon, bounds.lower)
        assert found.slack == pytest.approx(claim - bounds.epsilon, abs=1e-12)
        assert found.witness == bounds.witness


@pytest.mark.parametrize(
    ("claim", "verdict"), [("1", "holds"), ("0.999999", "false"), ("0.5", "false"), ("2", "holds")]
)
def test_pure_privacy_is_refuted_by_what_is_next_to_it(claim: str, verdict: str) -> None:
    for run in (cm.PureDP(1), cm.PureDP("1/2") * 2, cm.Laplace(scale=1)):
        assert run.check(epsilon=claim, delta=0).verdict == verdict


def test_gaussian_noise_is_not_pure() -> None:
    found = cm.Gaussian(sigma=1).check(epsilon=5, delta=0)
    assert found.verdict == "false"  # at delta 1e-100 it needs more
    assert (found.epsilon, found.slack) == (math.inf, -math.inf)
    assert json.loads(found.to_json())["slack"] == "-inf"


def test_a_curve_alone_refutes_nothing() -> None:
    run = cm.ZeroConcentrated(rho="1/2")
    assert run.check(epsilon=0.01, delta=1e-5).verdict == "open"
    assert run.check(epsilon=0.01, delta=1e-5).lower is None
    assert run.check(epsilon=10, delta=1e-5).verdict == "holds"


def test_what_is_only_estimated_never_holds() -> None:
    assert cm.from_rdp(rdp=lambda order: float(order) / 18).check(epsilon=100, delta=1e-5).verdict == "open"


def test_everything_holds_at_a_delta_of_one() -> None:
    assert cm.Gaussian(sigma="1e-3").check(epsilon=0, delta=1).verdict == "holds"


def test_the_fields_as_json() -> None:
    found = cm.PureDP(1).check(epsilon="0.5", delta="1e-9")
    state = json.loads(found.to_json())
    assert state == found.to_dict()
    assert {"verdict", "epsilon", "lower", "slack", "witness"} <= state.keys()
    assert (state["verdict"], state["claimed"], state["delta"]) == ("false", 0.5, 1e-9)


@pytest.mark.parametrize(
    "run", ["PureDP(0.1) * 10", "Laplace(scale=3) * 3", "Laplace(scale=12) * 12", "PureDP(1/3) + PureDP(2/3)"]
)
def test_what_adds_up_to_one_is_one(run: str) -> None:
    """The commonest claim of all: pure epsilons that add up, exactly, in whatever numbers they are given."""
    found = cm.parse(run)
    assert found.epsilon(delta=0) == 1
    assert found.check(epsilon=1, delta=0).verdict == "holds"
    assert found.guarantee(delta=0).verify().holds
    below = math.nextafter(1, 0)
    assert found.check(epsilon=below, delta=0).verdict != "holds"


def test_a_number_survives_its_own_printing() -> None:
    """The decimal that a proved epsilon or delta prints as is proved too; epsilon(0) of 150 runs had 13 that were false."""
    for i in range(51, 100, 4 if EFFORT == 1 else 1):
        p, rate = Fraction(i, 100), Fraction(i - 50, 50)
        for run in (
            cm.RandomizedResponse(p=p),
            cm.RandomizedResponse(p=p) * (i % 7 + 2),
            cm.PureDP(p) @ W(rate=rate),
            cm.Laplace(scale=p) @ cm.Poisson(rate=rate),
            cm.KaryResponse(values=3, p=p),
        ):
            assert run.check(epsilon=repr(run.epsilon(0)), delta=0).verdict == "holds", run
        run = cm.Gaussian(sigma=p)
        for delta in ("1e-6", "0.01"):
            assert run.check(epsilon=run.epsilon(delta), delta=delta).verdict == "holds"
        assert run.check(epsilon="0.7", delta=run.delta("0.7")).verdict == "holds"
