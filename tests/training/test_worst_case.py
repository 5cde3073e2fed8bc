"""Scores against densities that are enumerated, and what each of them finds in loops with one error."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
from cumulant.training.audit import Claim, many_runs
from cumulant.training.worst_case import known_order_scores, likelihood_ratio_scores, spread_scores, worst_case_data


def plan(sampling: str, **changed: Any) -> cm.NoisySGD:
    given: dict[str, Any] = {"batch": 2, "records": 6, "steps": 3, "noise_multiplier": 2, "clip": 3}
    return cm.NoisySGD(**{**given, "sampling": sampling, **changed})


def patterns(sgd: cm.NoisySGD) -> dict[tuple[bool, ...], float]:
    """All ways in which record 0 is in three steps, with their probabilities."""
    if sgd.sampling in ("fixed-size", "poisson"):
        return {
            held: float(np.prod([1 / 3 if each else 2 / 3 for each in held]))
            for held in itertools.product([False, True], repeat=3)
        }
    return {(True, False, False): 1 / 3, (False, True, False): 1 / 3, (False, False, True): 1 / 3}


@pytest.mark.parametrize("sampling", ["fixed-size", "poisson", "balls-in-bins", "shuffled"])
def test_the_score_is_the_ratio_of_densities(sampling: str) -> None:
    sgd = plan(sampling)
    with_it, without = (worst_case_data(sgd, member=member) for member in (True, False))
    other = float(without[1:, 0].mean())  # all others are equal
    replaced = str(sgd.relation) == "replace-one"
    for sums in np.random.default_rng(1).normal(-3, 8, size=(20, 3)):
        densities = []
        for data in (with_it, without):
            total = 0.0
            for held, probability in patterns(sgd).items():
                # fixed sizes: one of the others makes room for record 0
                means = [2 * other + (data[0, 0] - other * replaced) * each for each in held]
                total += probability * float(np.prod(stats.norm.pdf(sums, means, 2 * 3)))
            densities.append(total)
        assert float(likelihood_ratio_scores(sgd, sums)) == pytest.approx(np.log(densities[0] / densities[1]), abs=1e-9)


def test_several_passes_and_one_that_was_broken_off() -> None:
    sgd = plan("balls-in-bins", steps=8)
    sums = np.random.default_rng(2).normal(size=8) * 5
    whole = [float(likelihood_ratio_scores(sgd, sums[i : i + 3])) for i in (0, 3)]
    ratios = (3 * sums[6:] - 4.5) / 36
    rest = np.log((np.exp(ratios).sum() + 1) / 3)
    assert float(likelihood_ratio_scores(sgd, sums)) == pytest.approx(sum(whole) + rest)


def test_gradients_have_the_clipping_norm_and_differ_in_one_record() -> None:
    for sampling in ("fixed-size", "poisson"):
        one, other = (worst_case_data(plan(sampling), member=member, dimension=4) for member in (True, False))
        assert one.shape == (6, 4)
        assert np.abs(one).max() == 3
        assert np.flatnonzero((one != other).any(axis=1)).tolist() == [0]
        assert np.linalg.norm(one[0] - other[0]) == {"fixed-size": 6, "poisson": 3}[sampling]


# ---- what each score finds

AUDITED = cm.NoisySGD(batch=10, records=100, steps=20, noise_multiplier=4)
RUNS = 20_000


def released(rng: np.random.Generator, error: str) -> tuple[Any, Any]:
    """Coins and noisy sums of many runs of a loop with one error."""
    coins = rng.integers(0, 2, RUNS).astype(bool)
    holds = rng.random((RUNS, 20)) < 0.1
    if error == "known order":
        holds[:] = np.arange(20) % 10 == 0
    noise = rng.normal(size=(RUNS, 1 if error == "noise repeats" else 20)) * (2 if error == "halved noise" else 4)
    sums = -10 + 2.0 * (holds & coins[:, None]) + noise
    return coins, sums


@pytest.fixture(scope="module")
def claim() -> Claim:
    return Claim.of(AUDITED.run, points=31)


@pytest.mark.parametrize(
    ("error", "found"),
    [("none", set()), ("halved noise", {"ratio"}), ("known order", {"order"}), ("noise repeats", {"spread"})],
)
def test_what_each_score_finds(error: str, found: set[str], claim: Claim) -> None:
    coins, sums = released(np.random.default_rng(3), error)
    scores = {"ratio": likelihood_ratio_scores(AUDITED, sums), "spread": spread_scores(sums)}
    if error in ("none", "known order"):  # where the order is secret nobody can know it
        scores["order"] = known_order_scores(AUDITED, sums, np.arange(20) % 10 == 0)
    refuted = {
        name
        for name, score in scores.items()
        if many_runs(members=coins, scores=score, claim=claim, delta=1e-3, level=0.001).refuted
    }
    assert refuted == found


@pytest.mark.parametrize("sums", [5.0, [float("nan")], "x", [[1, 2], [3]]])
def test_what_are_no_sums_is_refused(sums: Any) -> None:
    with pytest.raises(cm.InputError, match="last axis"):
        spread_scores(sums)
