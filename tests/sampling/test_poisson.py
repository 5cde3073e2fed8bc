"""Poisson sampling as a scheme: its relation, its name in text, its bounds, and what it may be mixed with."""

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import cumulant as cm
from cumulant.cli.app import app
from cumulant.pairs.gaussian import GaussianPair

STEP = cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.01)
UPPER = ("poisson", "poisson-sum", "pure-response", "caps", "lemma3", "best")


def test_the_rate_is_exact() -> None:
    assert cm.Poisson(rate="256/60000") == cm.Poisson(rate=Fraction(16, 3750)) == cm.Poisson("0.064/15")
    assert hash(cm.Poisson(rate="0.50")) == hash(cm.Poisson(rate=0.5))
    assert cm.Poisson(rate=0.5) != cm.WithoutReplacement(rate=0.5)
    assert str(cm.Poisson(rate="256/60000")) == 'Poisson(rate="256/60000")'
    assert cm.Gaussian(sigma=1) @ cm.Poisson(0.5) != cm.Gaussian(sigma=1) @ cm.WithoutReplacement(0.5)


@pytest.mark.parametrize("rate", [1.2, -0.1, math.nan, True, "many"])
def test_a_rate_is_a_probability(rate: object) -> None:
    with pytest.raises(cm.InputError):
        cm.Poisson(rate=rate)  # type: ignore[arg-type]


def test_samples_of_samples_are_one_sample() -> None:
    assert STEP @ cm.Poisson(rate="0.1") == cm.Gaussian(sigma=1) @ cm.Poisson(rate="1/1000")
    inside = (STEP * 3) @ cm.Poisson(rate="0.1")
    assert isinstance(inside, cm.Sampled)
    assert inside.inner == STEP * 3


# ---- one relation


def test_clipping_fits() -> None:
    clipped = cm.Gaussian.from_clipping(norm=2, noise=2, relation="add-remove")
    assert (clipped @ cm.Poisson(rate=0.01)).rdp(2) == STEP.rdp(2)
    assert STEP.relation is cm.Relation.ADD_REMOVE
    assert STEP.guarantee(delta=1e-5).relation is cm.Relation.ADD_REMOVE


@pytest.mark.parametrize(
    "base",
    [
        cm.Gaussian(sigma=1, relation=cm.Relation.REPLACE_ONE),
        cm.DirichletPosterior(prior=[2, 2], records=10),
        cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.1),
        cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.1) + cm.Laplace(scale=1),
    ],
    ids=str,
)
def test_replace_one_statements_are_refused(base: cm.Expression) -> None:
    with pytest.raises(cm.RelationError, match="Poisson makes add-remove statements"):
        base @ cm.Poisson(rate=0.1)


def test_noise_for_a_replaced_record_is_led_to_a_sample_for_it() -> None:
    """The error named one way out, to restate the noise, where the sample can be restated too."""
    clipped = cm.Gaussian(noise_multiplier=1, relation="replace-one")
    with pytest.raises(cm.RelationError, match=r'or the sample by Poisson\(rate=…, relation="replace-one"\)$'):
        clipped @ cm.Poisson(rate=0.1)
    assert (clipped @ cm.Poisson(rate=0.1, relation="replace-one")).relation == "replace-one"
    with pytest.raises(cm.RelationError, match=r'relation="add-remove"\)$'):  # no theorem covers it
        cm.Gaussian(sigma=1, relation="replace-one") @ cm.Poisson(rate=0.1)


def test_samplings_do_not_mix() -> None:
    with pytest.raises(cm.RelationError, match="a run has one relation"):
        STEP + cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.1)
    with pytest.raises(cm.RelationError, match="WithoutReplacement makes replace-one statements"):
        STEP @ cm.WithoutReplacement(rate=0.1)
    accountant = cm.Accountant()
    accountant.compose(STEP)
    with pytest.raises(cm.RelationError):
        accountant.compose(cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.1))
    assert (STEP * 2 + cm.Laplace(scale=1)).relation is cm.Relation.ADD_REMOVE


# ---- text


@pytest.mark.parametrize(
    "text",
    [
        "Gaussian(sigma=1) @ Poisson(rate=0.01) * 1000",
        'Laplace(scale=2) @ Poisson(rate="256/60000") * 3 + Gaussian(sigma=1, relation="add-remove")',
        "(PureDP(epsilon=0.1) * 3 + ZeroConcentrated(rho=0.1)) @ Poisson(rate=0.5)",
    ],
)
def test_text_and_json_round_trips(text: str) -> None:
    run = cm.parse(text)
    assert str(run) == text
    accountant = cm.Accountant()
    accountant.compose(run)
    assert cm.Accountant.from_json(accountant.to_json()) == accountant


def test_positional_rates_and_mistakes() -> None:
    assert cm.parse("Gaussian(1) @ Poisson(0.01)") == STEP
    for text, message in {
        "Gaussian(1) @ Poisson()": "takes rate=…, or sample=… and population=…",
        "Gaussian(1) @ Poisson(sample=3)": "takes rate=…, or sample=… and population=…",
        "Gaussian(1) @ Poison(0.1)": "did you mean 'Poisson'",
        "Poisson(0.1)": "it draws samples",
    }.items():
        with pytest.raises(cm.InputError, match=message):
            cm.parse(text)


def test_the_shell_speaks_of_it() -> None:
    shell = CliRunner()
    run = 'Gaussian(sigma=1) @ Poisson(rate="256/60000") * 23400'
    found = shell.invoke(app, ["epsilon", run, "--delta", "1e-5", "--method", "rdp", "--json"])
    assert found.exit_code == 0
    answer = json.loads(found.stdout)
    assert answer["epsilon"] == pytest.approx(4.065, abs=0.001)
    assert answer["relation"] == "add-remove"
    refused = shell.invoke(app, ["epsilon", run, "--delta", "1e-5", "--method", "paper"])
    assert refused.exit_code == 1
    assert "theorem9 does not apply to Poisson samples" in str(refused.exception)


# ---- bounds by name


@pytest.mark.parametrize("bound", [name for name in cm.BOUNDS if name not in (*UPPER, "lower")])
def test_theorems_about_other_samples_are_refused(bound: str) -> None:
    with pytest.raises(cm.HypothesisError, match="does not apply to Poisson samples; use one of caps, "):
        STEP.rdp(2, bound=bound)


@pytest.mark.parametrize("bound", ["poisson", "poisson-sum", "pure-response"])
def test_theorems_about_poisson_samples_stay_there(bound: str) -> None:
    with pytest.raises(cm.HypothesisError, match="does not apply to WithoutReplacement samples"):
        (cm.PureDP(1) @ cm.WithoutReplacement(rate=0.1)).rdp(2, bound=bound)


def test_the_papers_method_is_refused() -> None:
    with pytest.raises(cm.HypothesisError, match="theorem9"):
        STEP.epsilon(delta=1e-5, method="paper")


def test_what_a_bound_needs() -> None:
    promise = cm.ZeroConcentrated(rho=1) @ cm.Poisson(rate=0.1)
    for bound in ("poisson", "lower"):
        with pytest.raises(cm.HypothesisError, match="dominating pair"):
            promise.rdp(2, bound=bound)
    for bound in ("pure-response", "lemma3"):
        with pytest.raises(cm.HypothesisError, match="pure DP"):
            promise.rdp(2, bound=bound)
    with pytest.raises(cm.HypothesisError, match="slack"):
        (cm.ApproximateDP(1, "1e-6") @ cm.Poisson(rate=0.1)).rdp(2, bound="poisson-sum")


def test_upper_and_lower_meet_for_a_pair() -> None:
    orders = [1, 1.5, 2, 64.5, math.inf]
    for base in (
        cm.Gaussian(sigma=2),
        cm.Laplace(scale=1),
        cm.PureDP(1),
        cm.from_masses(["0.1", "0.9"], ["0.4", "0.6"]),
    ):
        assert (base @ cm.Poisson(rate=0.01)).gap(orders) == pytest.approx(np.ones(5), rel=1e-12)


def test_noise_that_protects_nothing() -> None:
    run = cm.Gaussian(sigma="1e-6") @ cm.Poisson(rate="0.1")
    assert run.rdp(2) == pytest.approx(1e12, rel=1e-9)
    with pytest.raises(cm.HypothesisError, match="noise"):
        run.rdp(2, bound="lower")


# ---- around it


def test_baselines_use_lemma_3() -> None:
    """One round of a promise: log(1 + q(e^eps - 1)) at delta q, exactly."""
    run = cm.ApproximateDP("0.5", "1e-6") @ cm.Poisson(rate="0.1")
    for method in ("naive", "strong", "optimal"):
        assert run.epsilon(delta="2e-7", method=method) == pytest.approx(math.log1p(0.1 * math.expm1(0.5)), rel=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "Gaussian(sigma=?) @ Poisson(rate=0.01) * 1000",
        "Gaussian(sigma=1) @ Poisson(rate=?) * 1000",
        "Gaussian(sigma=1) @ Poisson(rate=0.01) * ?",
    ],
)
def test_calibration(text: str) -> None:
    found = cm.calibrate(text, epsilon=2, delta=1e-6)
    assert found.run.epsilon(delta=1e-6) <= 2
    worse = cm.parse(text, unknown=found.fails)
    assert worse.epsilon(delta=1e-6) > 2


def test_sums_add() -> None:
    other = cm.Laplace(scale=3) @ cm.Poisson(rate=0.2)
    orders = [1, 1.5, 2, 30]
    expected = 5 * np.asarray(STEP.rdp(orders)) + 7 * np.asarray(other.rdp(orders))
    assert (STEP * 5 + other * 7).rdp(orders) == pytest.approx(expected, rel=1e-12)


def test_one_direction_alone_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, above = GaussianPair(Fraction(1)), GaussianPair.upper_step
    assert len(cm.Poisson(rate=0.1).steps_of(pair) or ()) == 2
    monkeypatch.setattr(
        GaussianPair, "upper_step", lambda self, rate, way: above(self, rate, way) if way == "remove" else None
    )
    assert cm.Poisson(rate=0.1).steps_of(pair) is None


@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "replace-special"])
def test_the_relation_is_data_of_one_class(relation: str) -> None:
    scheme = cm.Poisson(rate="0.1", relation=relation)
    assert type(scheme) is cm.Poisson
    assert str(scheme.relation) == relation
    assert (scheme == cm.Poisson(rate="0.1")) == (relation == "add-remove")
    assert hash(pickle.loads(pickle.dumps(scheme))) == hash(scheme)
    assert pickle.loads(pickle.dumps(scheme)) == scheme
    assert cm.Poisson.relation is cm.Relation.ADD_REMOVE
    assert type(cm.WithoutReplacement(rate="0.1", relation="add-remove")) is cm.WithoutReplacement
