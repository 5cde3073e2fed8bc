"""Attack words against exact Bayes attacks on random finite mechanisms."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.risk import KINDS, risk
from cumulant.accounting.run import RunRecord
from cumulant.domains import Exact
from tests.effort import drawn

ROWS = json.loads((Path(__file__).parents[1] / "oracles" / "reports.json").read_text())["attack"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"mu {row['gaussian_mu']}, prior {row['prior']}")
def test_stored_values(row: dict[str, Any]) -> None:
    sigma = cm.GaussianDP(mu=row["gaussian_mu"])
    replaced = replace(sigma.record(), relation=cm.Relation.REPLACE_ONE)
    assert risk(replaced, "reconstruction", row["prior"]).success == pytest.approx(row["R"], abs=1e-12)
    for kind in ("attribute", "reidentification"):
        found = risk(replaced, kind, row["prior"]).success
        assert found >= row["replace_one_attribute"] * (1 - 1e-15)
        assert found == pytest.approx(row["replace_one_attribute"], rel=2e-7)
        added = replace(sigma.record(), relation=cm.Relation.ADD_REMOVE)
        assert risk(added, kind, row["prior"]).success == pytest.approx(row["R"], abs=1e-12)


def family(laws: np.ndarray[Any, Any]) -> RunRecord:
    """A run whose profile is that of all ordered pairs of these laws: its polygon is a little above."""
    pairs = [(p, q) for i, p in enumerate(laws) for j, q in enumerate(laws) if i != j]
    largest = max(float((p / q).max()) for p, q in pairs)
    epsilons = np.round(np.linspace(0, math.log(largest) + 1e-6, 16), 9)
    deltas = [max(float(np.maximum(p - math.exp(e) * q, 0).sum()) for p, q in pairs) for e in epsilons]
    rounded = [min(math.ceil(d * 1e12 + 1) / 1e12, 1.0) for d in deltas]
    run = cm.PrivacyProfile(epsilons=epsilons.tolist(), deltas=rounded)
    return replace(run.record(), relation=cm.Relation.REPLACE_ONE)


def random_laws(draws: np.random.Generator, values: int, outputs: int) -> np.ndarray[Any, Any]:
    laws = draws.dirichlet(np.full(outputs, draws.choice([0.5, 1.0, 3.0])), size=values) + 0.01
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def test_no_bayes_attack_names_a_value_more_often() -> None:
    """The attacker who names the likeliest value given the output, on random mechanisms and priors."""
    draws = np.random.default_rng(3)
    gaps = []
    for _ in range(drawn(20)):
        values, outputs = int(draws.integers(2, 5)), int(draws.integers(2, 6))
        laws, prior = random_laws(draws, values, outputs), draws.dirichlet(np.full(values, 2.0))
        exact = float((prior[:, None] * laws).max(axis=0).sum())
        found = risk(family(laws), "attribute", float(np.nextafter(prior.max(), 1))).success
        assert exact <= found + 1e-9
        gaps.append(found - exact)
    assert np.median(gaps) < 0.2  # and the bound says something


def test_no_reconstruction_within_a_distance_succeeds_more_often() -> None:
    """A guess is right for several values; the best rule for each output, on random mechanisms."""
    draws, sharper_broken = np.random.default_rng(4), 0
    for _ in range(drawn(20)):
        values, outputs = int(draws.integers(3, 6)), int(draws.integers(2, 6))
        laws, prior = random_laws(draws, values, outputs), draws.dirichlet(np.full(values, 2.0))
        near = np.abs(np.subtract.outer(np.arange(values), np.arange(values))) <= 1
        blind = float((near @ prior).max())
        if blind >= 1:
            continue
        exact = float((near @ (prior[:, None] * laws)).max(axis=0).sum())
        run = family(laws)
        found = risk(run, "reconstruction", blind).success
        assert exact <= found + 1e-9
        sharper_broken += exact > risk(run, "attribute", blind).success + 1e-9
    assert sharper_broken > 0  # the sharper rule is false for success sets that overlap


def test_no_description_of_this_weight_fits_more_often() -> None:
    """All sets of values of at most this weight, the best one for every output, on random finite mechanisms."""
    draws = np.random.default_rng(9)
    for _ in range(20):
        values, outputs = 5, 4
        laws = draws.dirichlet(np.ones(outputs), values) * 0.9 + 0.1 / outputs
        prior = draws.dirichlet(np.ones(values))
        reference = draws.dirichlet(np.ones(outputs)) * 0.9 + 0.1 / outputs  # the data without the record
        epsilon = float(np.abs(np.log(laws / reference)).max())
        sets = [np.array(each, dtype=bool) for each in itertools.product((0, 1), repeat=values)]
        weight = float(draws.uniform(0.2, 0.8))
        allowed = [each for each in sets if prior[each].sum() <= weight]
        success = sum(max(float((prior * laws[:, y])[each].sum()) for each in allowed) for y in range(outputs))
        assert success <= cm.PureDP(f"{epsilon + 1e-9:.12f}").singling_out(f"{weight:.12f}").success
    one, many = (cm.PureDP(1).singling_out("0.01", records=n) for n in (1, 30))
    assert many.success == pytest.approx(30 * one.success)
    assert (many.prior, cm.PureDP(1).singling_out("0.4", records=9).success) == (0.3, 1.0)
    assert "singles it out" in str(one)
    for wrong in ({"weight": 0}, {"weight": "0.1", "records": 0}, {"weight": "0.1", "records": 1.5}):
        with pytest.raises(cm.InputError, match="must be"):
            cm.PureDP(1).singling_out(**wrong)


def test_two_values_at_one_half_are_exact() -> None:
    draws = np.random.default_rng(6)
    for _ in range(20):
        p, q = np.round(random_laws(draws, 2, 4), 6)
        p[0], q[0] = p[0] + 1 - p.sum(), q[0] + 1 - q.sum()
        run = cm.from_masses([f"{x:.6f}" for x in p], [f"{x:.6f}" for x in q])
        found = risk(replace(run.record(), relation=cm.Relation.REPLACE_ONE), "attribute", "1/2").success
        assert found == pytest.approx((1 + np.abs(p - q).sum() / 2) / 2, abs=2e-3)
        assert found >= (1 + np.abs(p - q).sum() / 2) / 2 - 1e-6


def test_the_sharper_rule_is_false_when_a_record_is_added() -> None:
    """Two records that push a sum up or down: the attacker sees the sign, and R(1/2) = Phi(mu) is attained."""
    run = cm.Gaussian(sigma=1, relation=cm.Relation.ADD_REMOVE)
    assert run.attribute(prior="1/2").success == pytest.approx(0.8413447460685429, abs=1e-12)
    assert cm.Gaussian(sigma=1).attribute(prior="1/2").success == pytest.approx(0.8413447460685429, abs=1e-12)


def test_sampled_runs() -> None:
    run = cm.parse("Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000")
    sharper, plain = run.attribute(prior="0.01").success, run.reconstruction(prior="0.01").success
    assert 0.01 < sharper < plain < 0.0155
    assert run.membership("0.01") == plain
    assert run.reidentification(candidates=100).success == sharper


def test_the_sentence() -> None:
    found = cm.Gaussian(sigma=1, relation=cm.Relation.REPLACE_ONE).attribute(prior="0.01")
    assert str(found) == (
        "Without the release, an attacker who knows everything else would guess the attribute with probability 1 %. With it, "
        "the attacker guesses it with at most 8.75 %, on average over what it may be."
    )
    assert found.caveat == (
        "The 1 % must include all side knowledge: all other attributes, all other records and public knowledge."
    )
    assert found.gain == pytest.approx(found.success - 0.01)
    assert json.loads(found.to_json())["kind"] == "attribute"
    for kind in KINDS:
        assert "on average over" in str(risk(cm.PureDP(1).record(), kind, "0.01"))


@pytest.mark.parametrize("prior", [0, 1, -0.1, 1.5, math.nan, True, "many", None, [], "1/0"])
@pytest.mark.parametrize("word", ["attribute", "reconstruction"])
def test_a_prior_that_is_none(word: str, prior: Any) -> None:
    with pytest.raises(cm.InputError, match="prior"):
        getattr(cm.PureDP(1), word)(prior)


@pytest.mark.parametrize("asked", [{}, {"prior": "0.1", "candidates": 10}, {"candidates": 1}, {"candidates": 0.5}])
def test_candidates_that_are_none(asked: dict[str, Any]) -> None:
    with pytest.raises(cm.InputError, match="candidates"):
        cm.PureDP(1).reidentification(**asked)


def test_calibrations() -> None:
    found = cm.calibrate("PureDP(epsilon=?)", kind="attribute", success="0.05", prior="0.01", digits=4)
    assert found.value == Exact("1.609")  # log 5
    with pytest.raises(cm.InputError, match="at least prior"):
        cm.calibrate("PureDP(epsilon=?)", kind="attribute", success="0.005", prior="0.01")
    with pytest.raises(cm.InputError, match="kind"):
        cm.calibrate("PureDP(epsilon=?)", kind="theft", success="0.5", prior="0.01")  # type: ignore[arg-type]
