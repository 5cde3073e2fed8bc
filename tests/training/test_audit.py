"""Audits against published numbers, the linear programme, and runs that are right or wrong on purpose."""

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import logsumexp

import cumulant as cm
from cumulant.training import FixedSizeSampler, audit
from tests.effort import drawn

EPSILONS = np.arange(0, 8.01, 0.25)


def gaussian_profile(mu: float) -> list[float]:
    return (  # type: ignore[no-any-return]
        stats.norm.cdf(mu / 2 - EPSILONS / mu) - np.exp(EPSILONS) * stats.norm.cdf(-mu / 2 - EPSILONS / mu)
    ).tolist()


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "delta", "expected"),
    [
        (1000, 600, 600, 1e-5, 5.270399),
        (1000, 1000, 750, 1e-5, 0.976367),
        (1000, 1000, 750, 0, 0.976667),
        (1000, 200, 170, 1e-5, 1.397459),
    ],
)
def test_epsilon_of_one_run(canaries: int, guesses: int, correct: int, delta: float, expected: float) -> None:
    found = audit.one_run_epsilon(canaries=canaries, guesses=guesses, correct=correct, delta=delta, level=0.05)
    assert found == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize(
    ("correct", "epsilon", "delta", "expected"), [(600, 0.2, 0, 7.65233e-4), (750, 1, 1e-5, 0.0939862)]
)
def test_p_value_of_one_run(correct: int, epsilon: float, delta: float, expected: float) -> None:
    found = audit.one_run_p_value(canaries=1000, guesses=1000, correct=correct, epsilon=epsilon, delta=delta)
    assert found == pytest.approx(expected, rel=6e-6)


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "expected"),
    [(40, 40, 30, 0.714635), (40, 20, 18, 0.401251), (30, 30, 30, 0.0179299)],
)
def test_p_value_by_the_whole_curve(canaries: int, guesses: int, correct: int, expected: float) -> None:
    claim = {"epsilons": EPSILONS.tolist(), "deltas": gaussian_profile(1)}
    asked = {"canaries": canaries, "guesses": guesses, "correct": correct, **claim}
    assert audit.one_run_curve_p_value(**asked) == pytest.approx(expected, rel=6e-6)  # type: ignore[arg-type]


def test_the_smaller_of_two_p_values_of_one_point() -> None:
    asked: dict[str, Any] = {"canaries": 40, "guesses": 40, "correct": 36, "epsilons": [1], "deltas": [0]}
    assert audit.greedy_p_value(**asked) == pytest.approx(0.00866558, rel=6e-6)
    assert audit.one_run_curve_p_value(**asked) == pytest.approx(0.00826724, rel=6e-6)


@pytest.mark.parametrize(
    ("guesses", "correct", "expected"), [(1000, 750, 1.8189), (200, 190, 3.9158), (100, 100, 5.548), (600, 600, 10.514)]
)
def test_gaussian_curves_that_are_refuted(guesses: int, correct: int, expected: float) -> None:
    """The epsilon at 1e-5 of the largest mu whose whole curve is refuted at 5 %."""
    grid = np.concatenate([np.linspace(0, 3, 61), np.linspace(3.25, 30, 108)])

    def p_value(mu: float) -> float:
        deltas = stats.norm.cdf(mu / 2 - grid / mu) - np.exp(grid + stats.norm.logcdf(-mu / 2 - grid / mu))
        claim = {"epsilons": grid.tolist(), "deltas": np.maximum(deltas, 0).tolist()}
        return audit.greedy_p_value(canaries=1000, guesses=guesses, correct=correct, **claim)

    def excess(mu: float, epsilon: float) -> float:
        return (
            float(stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu)))
            - 1e-5
        )

    smaller, larger = (optimize.brentq(excess, 0.1, 5, args=(expected * (1 + part),)) for part in (-3e-3, 3e-3))
    assert p_value(smaller) <= 0.05 < p_value(larger)


def largest_tail(canaries: int, guesses: int, correct: int, claim: audit.Claim, every_set: bool) -> float:
    """max P[>= c right] over laws of the count that satisfy the constraint of every tail, or of every set of counts."""
    sets: list[tuple[int, ...]] = [tuple(range(j, guesses + 1)) for j in range(1, guesses + 1)]
    if every_set:
        counts = range(1, guesses + 1)
        sets = [v for size in range(1, guesses + 1) for v in itertools.combinations(counts, size)]
    rows, limits = [], []
    for members in sets:
        left = np.zeros(guesses + 1)
        right = np.zeros(guesses + 1)
        for j in members:
            left[j] += j / canaries
            right[j - 1] += (guesses - j + 1) / canaries
        for e, d in zip(claim.epsilons, claim.deltas, strict=True):
            rows += [left - math.exp(e) * right, left - math.exp(-e) * right]
            limits += [d, 1 - math.exp(-e) * (1 - d)]
    found = optimize.linprog(
        -(np.arange(guesses + 1) >= correct).astype(float),
        A_ub=np.array(rows),
        b_ub=limits,
        A_eq=np.ones((1, guesses + 1)),
        b_eq=[1],
        bounds=(0, 1),
    )
    return -float(found.fun or 0)


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "mu"),
    [(10, 10, 8, 0.5), (10, 10, 10, 1), (20, 15, 12, 1), (40, 20, 18, 0.5), (12, 8, 8, 0.3), (9, 9, 5, 0.2)],
)
def test_greedy_is_the_linear_programme(canaries: int, guesses: int, correct: int, mu: float) -> None:
    claim = audit.Claim(EPSILONS.tolist(), gaussian_profile(mu))
    asked = {"canaries": canaries, "guesses": guesses, "correct": correct}
    found = audit.greedy_p_value(**asked, epsilons=EPSILONS.tolist(), deltas=gaussian_profile(mu))
    assert found == pytest.approx(largest_tail(canaries, guesses, correct, claim, every_set=False), rel=1e-6)


def test_rates() -> None:
    assert audit.clopper_pearson(0, 100, 0.05) == pytest.approx((0.0, 0.029513), abs=5e-7)
    low, high = audit.clopper_pearson(30, 100, 0.01)
    assert stats.binom.sf(29, 100, low) == pytest.approx(0.01)
    assert stats.binom.cdf(30, 100, high) == pytest.approx(0.01)
    assert audit.epsilon_from_rates(950, 1000, 50, 1000, delta=1e-5, level=0.05) == pytest.approx(2.65974, abs=6e-6)
    assert audit.epsilon_from_rates(300, 1000, 2, 1000, delta=1e-5, level=0.05) == pytest.approx(3.62985, abs=6e-6)
    assert audit.epsilon_from_rates(0, 10, 0, 10, delta=1e-5, level=0.05) == 0
    assert audit.epsilon_from_rates(0, 0, 0, 0, delta=0, level=0.05) == 0


def test_claims_and_their_inverse() -> None:
    claim = audit.Claim(EPSILONS.tolist(), gaussian_profile(1))
    x = np.linspace(0.001, 0.95, 50)
    y = claim.true_positive_rate(x)
    np.testing.assert_allclose(claim.false_positive_rate(y), x, rtol=1e-9)
    assert np.all(y >= stats.norm.cdf(stats.norm.ppf(x) + 1) - 1e-12)
    assert np.all(y <= stats.norm.cdf(stats.norm.ppf(x) + 1) * 1.02)


# ---- runs that are right and runs that are wrong: rules and thresholds are those of the code, seeds are fixed

POPULATION, SAMPLE, STEPS, NOISE, DELTA, LEVEL = 100, 10, 20, 4.0, 1e-3, 0.05


def claim_of(noise: float, sensitivity: int) -> audit.Claim:
    step = cm.Gaussian(sigma=noise, sensitivity=sensitivity, geometry="ball" if sensitivity == 2 else "diameter")
    return audit.Claim.of(step @ cm.WithoutReplacement(sample=SAMPLE, population=POPULATION) * STEPS, points=31)


@pytest.fixture(scope="module")
def claims() -> dict[str, audit.Claim]:
    return {"right": claim_of(NOISE, 2), "forgets 2C": claim_of(NOISE, 1)}


def trials(rng: np.random.Generator, runs: int, noise: float, sequential: bool = False) -> tuple[Any, Any]:
    """The worst context for replace-one: all other gradients are -C, the target's is +C or -C, all sums are seen.

    The score is the likelihood ratio of the claimed law; of a loader in known order, that of the steps with the target.
    """
    member = rng.integers(0, 2, runs)
    inside = np.zeros((runs, STEPS), dtype=bool)
    if sequential:
        inside[:, :: POPULATION // SAMPLE] = True
    else:
        inside = rng.random((runs, STEPS)) < SAMPLE / POPULATION
    sums = -SAMPLE + 2.0 * (inside & (member[:, None] == 1)) + noise * rng.normal(size=(runs, STEPS))
    y = sums + SAMPLE  # 0 or 2, plus noise
    ratio = (2 * y - 2) / NOISE**2  # log density ratio of N(2, z^2) and N(0, z^2)
    if sequential:
        return member, ratio[:, :: POPULATION // SAMPLE].sum(axis=1)
    rate = SAMPLE / POPULATION
    return member, np.log1p(rate * np.expm1(ratio)).sum(axis=1)


def test_inclusions_of_one_record_are_those_of_the_sampler() -> None:
    """The simulation above draws only the target's inclusions, which fresh samples make independent at the rate."""
    sampler = FixedSizeSampler(POPULATION, SAMPLE, steps=20_000, key=bytes(32))
    inside = np.array([0 in batch for batch in sampler])
    assert stats.binomtest(int(inside.sum()), 20_000, SAMPLE / POPULATION).pvalue > 1e-3
    assert stats.binomtest(int((inside[1:] & inside[:-1]).sum()), 19_999, (SAMPLE / POPULATION) ** 2).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_the_right_run_is_never_refuted(seed: int, claims: dict[str, audit.Claim]) -> None:
    member, score = trials(np.random.default_rng(100 + seed), 40_000, NOISE)
    found = audit.many_runs(members=member, scores=score, claim=claims["right"], delta=DELTA, level=LEVEL)
    assert not found.refuted
    assert found.epsilon_lower <= 0.681


@pytest.mark.parametrize("seed", range(2))
def test_wrong_runs_are_refuted(seed: int, claims: dict[str, audit.Claim]) -> None:
    rng = np.random.default_rng(200 + seed)
    halved = trials(rng, 40_000, NOISE / 2)
    in_order = trials(rng, 40_000, NOISE, sequential=True)
    forgotten = trials(rng, 80_000, NOISE)
    for (member, score), claim in ((halved, "right"), (in_order, "right"), (forgotten, "forgets 2C")):
        found = audit.many_runs(members=member, scores=score, claim=claims[claim], delta=DELTA, level=LEVEL)
        assert found.refuted
        assert found.p_value <= LEVEL


@pytest.mark.parametrize(("noise", "seed"), [(z, seed) for z in (0.4, 0.6) for seed in range(5)])
def test_shuffled_epochs_refute_the_curve_of_fresh_samples(noise: float, seed: int) -> None:
    """One epoch of 10 steps: what fresh samples of 10 of 100 satisfy, a shuffled epoch with as much noise does not."""
    runs, steps = 4000, POPULATION // SAMPLE
    rng = np.random.default_rng(300 + seed)
    member = rng.integers(0, 2, runs)
    y = noise * rng.normal(size=(runs, steps))
    y[np.arange(runs), rng.integers(0, steps, runs)] += 2.0 * member
    score = logsumexp((2 * y - 2) / noise**2, axis=1)  # the target is in exactly one step, no one knows in which
    found = audit.many_runs(members=member, scores=score, claim=fresh_claim(noise), delta=DELTA, level=LEVEL)
    assert found.refuted


@cache
def fresh_claim(noise: float) -> audit.Claim:
    step = cm.Gaussian(sigma=noise, sensitivity=2, geometry="ball") @ cm.WithoutReplacement(
        sample=SAMPLE, population=POPULATION
    )
    return audit.Claim.of(step * (POPULATION // SAMPLE))


def test_false_alarms_of_the_whole_audit(claims: dict[str, audit.Claim]) -> None:
    """Right runs at 5 %: more alarms than the limit have a probability below 1e-3, also if the theorem's level is reached."""
    alarms, runs = 0, drawn(40)
    for seed in range(runs):
        member, score = trials(np.random.default_rng(1000 + seed), 1000, NOISE)
        alarms += audit.many_runs(members=member, scores=score, claim=claims["right"], delta=DELTA, level=LEVEL).refuted
    assert alarms <= int(stats.binom.isf(1e-3, runs, LEVEL))


def test_false_alarms_where_the_claim_is_tight() -> None:
    """A claim that is exactly what runs, randomized response: the p-value of one run is conservative there too."""
    epsilon, alarms = 1.0, 0
    rng = np.random.default_rng(7)
    for _ in range(200):
        correct = int(rng.binomial(100, 1 / (1 + math.exp(-epsilon))))
        p = audit.one_run_p_value(canaries=100, guesses=100, correct=correct, epsilon=epsilon, delta=0)
        alarms += p <= LEVEL
    assert alarms <= int(stats.binom.isf(1e-3, 200, LEVEL))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: audit.one_run_p_value(canaries=10, guesses=11, correct=1, epsilon=1, delta=0), "grow in this order"),
        (lambda: audit.one_run_p_value(canaries=10, guesses=9, correct=1.5, epsilon=1, delta=0), "whole number"),  # type: ignore[arg-type]
        (lambda: audit.one_run_epsilon(canaries=10, guesses=9, correct=1, delta=0, level=0), "level=0"),
        (lambda: audit.Claim([1], [0, 0]), "one delta for each"),
        (lambda: audit.clopper_pearson(3, 2, 0.05), "between 0 and"),
        (
            lambda: audit.many_runs(members=[0, 1, 2, 1], scores=[1, 2, 3, 4], claim=audit.Claim([1], [0]), delta=0),
            "0 or 1",
        ),
        (lambda: audit.many_runs(members=[0, 1], scores=[1, 2], claim=audit.Claim([1], [0]), delta=0), "at least 4"),
    ],
)
def test_what_is_wrong_is_refused(call: Any, said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        call()
