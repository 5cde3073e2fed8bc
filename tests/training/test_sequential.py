"""Audits that may stop at any time: exact expectations of the bets, adversarial stopping, and rules that must fail."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import cumulant as cm
from cumulant.training.audit import Claim
from cumulant.training.sequential import EPSILONS, Bets, Lines, Sequential
from tests.effort import drawn

GAUSSIAN = Claim.of(cm.GaussianDP(mu=1))


def expectation(bets: Bets, p: np.ndarray[Any, Any], q: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """E of one factor, a fair coin and an event of probability p with the record and q without it, from the definition."""
    total = np.zeros((len(p), *bets.p0.shape))
    for member, rate in ((True, p), (False, q)):
        for above in (0.0, 1.0):
            chance = 0.5 * (rate if above else 1 - rate)
            total += chance[:, None, None] * np.exp(bets.log_factors(member, np.full(bets.p0.shape[1], above)))
    return total


@pytest.mark.parametrize("claim", [GAUSSIAN, Claim([1], [0]), Claim([0.5], [0.01]), Claim([0, 1, 2], [0.3, 0.1, 0.01])])
def test_no_bet_wins_on_average_if_the_claim_is_true(claim: Claim) -> None:
    """Every bet that is made from any counts, against every (p, q) that the claim allows: E <= 1."""
    lines = Lines.of(claim.epsilons[None, :], claim.deltas[None, :])
    draws = np.random.default_rng(1)
    p1, q1 = draws.uniform(0.01, 0.99, 300), draws.uniform(0.01, 0.99, 300)
    bets = Bets.choose(lines, p1, q1)
    assert (bets.alpha > 0).sum() > 30
    q = np.concatenate([np.linspace(0, 1, 60), np.geomspace(1e-6, 1, 40)])
    most = claim.true_positive_rate(q)
    for share in (0.0, 0.5, 0.9, 1.0):
        # between the smallest p, by the swapped order, and the largest
        least = 1 - claim.true_positive_rate(1 - q)
        p = least + share * (most - least)
        assert expectation(bets, p, q).max() <= 1 + 1e-12


def test_factors_are_never_negative() -> None:
    draws = np.random.default_rng(2)
    bets = Bets.choose(
        Lines.of(EPSILONS[:, None], np.full((len(EPSILONS), 1), 1e-5)), draws.random(50), draws.random(50)
    )
    for member in (True, False):
        for above in (0.0, 1.0):
            factor = 1 + (bets.alpha * (above - bets.p0) if member else bets.beta * (above - bets.q0))
            assert factor.min() >= 0
    assert np.isfinite(bets.alpha).all()


def wealth_of(draws: np.random.Generator, mu: float, runs: int, claim: Claim = GAUSSIAN, **options: Any) -> Sequential:
    audit = Sequential(claim, **options)
    for _ in range(runs):
        member = bool(draws.integers(2))
        audit.see(member, draws.normal() + mu * member)
        if audit.refuted:
            break
    return audit


def test_halved_noise_is_found_soon() -> None:
    """mu = 2 runs as mu = 1: a median of 80 runs in the specification, with thresholds from the first 20."""
    draws = np.random.default_rng(3)
    stops = [wealth_of(draws, 2.0, 400) for _ in range(9)]
    assert all(each.refuted for each in stops)
    assert np.median([each.runs for each in stops]) <= 110


def test_stopping_at_the_largest_wealth_gains_nothing() -> None:
    """At the claim itself, stopped at the best moment of 80 runs: false alarms stay at the level."""
    draws = np.random.default_rng(4)
    found = [wealth_of(draws, 1.0, 80, level="0.2", thresholds=[0.5]).refuted for _ in range(drawn(16))]
    assert np.mean(found) <= 0.2 + 3 * math.sqrt(0.16 / len(found))


def corners(claim: Claim) -> list[tuple[float, float]]:
    """The points (p, q) that the claim allows and at which two of its lines, or of the sides of the square, meet."""
    lines = Lines.of(claim.epsilons, claim.deltas)
    # p <= b q + d and, with the roles of both data sets exchanged, q <= b p + d; then the sides of the square
    rows = [(1.0, -b, d) for b, d in zip(lines.slope, lines.offset, strict=True)]
    rows += [(-b, 1.0, d) for b, d in zip(lines.slope, lines.offset, strict=True)]
    rows += [(1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)]
    found = []
    for first, second in itertools.combinations(np.array(rows), 2):
        if abs(np.linalg.det([first[:2], second[:2]])) > 1e-12:
            p, q = np.linalg.solve([first[:2], second[:2]], [first[2], second[2]])
            if all(row[0] * p + row[1] * q <= row[2] + 1e-12 for row in rows):
                found.append((float(p), float(q)))
    return found


@pytest.mark.parametrize("options", [{"thresholds": [0.5]}, {"first": 2}])
def test_no_adversary_gains_by_choosing_when_to_stop(options: dict[str, Any]) -> None:
    """Every history of four runs, and after each the worst chances that the claim allows: nobody expects to win.

    The chances may depend on all earlier coins and scores, so that this covers every adaptive mechanism that keeps the claim
    and every rule to stop. The wealth is linear in the chances, so that the corners of the allowed set are enough.
    """
    claim = Claim([0.4], [0.05])
    chances = corners(claim)
    assert len(chances) >= 5
    moves = list(itertools.product((True, False), (0.0, 1.0)))
    largest, grown = 0.0, 0.0

    def look(audit: Sequential, wealth: float, runs: int) -> float:
        nonlocal largest, grown
        if runs < 4:
            after = {}
            for move in moves:
                branch = copy.deepcopy(audit)
                after[move] = look(branch, branch.see(*move), runs + 1)
            for p, q in chances:
                mean = sum(
                    0.5 * (chance if score else 1 - chance) * after[coin, score]
                    for coin, chance in ((True, p), (False, q))
                    for score in (0.0, 1.0)
                )
                largest = max(largest, mean / wealth if wealth > 0 else mean)
            grown = max(grown, *after.values())
        return wealth

    look(Sequential(claim, **options), 1.0, 0)
    assert largest <= 1 + 1e-9
    assert grown > 1.05  # some bets are made


def test_both_runs_of_a_pair_must_be_alike() -> None:
    """Why the docstring asks for it: answers 1, 0, 1, 0, ... tell nothing of any record, and win in pairs."""
    audit = Sequential(Claim([0.1], [0]), thresholds=[0.5], pairs=True)
    for _ in range(6):
        audit.see(True, 1.0)
        audit.see(False, 0.0)
    assert audit.refuted
    assert "both runs must be alike" in (Sequential.__doc__ or "")


def test_beta_must_balance_alpha() -> None:
    """A bet with another beta wins on average at a point that the claim allows."""
    lines = Lines.of(GAUSSIAN.epsilons[None, :], GAUSSIAN.deltas[None, :])
    good = Bets.choose(lines, np.array([0.9]), np.array([0.3]))
    q = np.linspace(0.01, 0.99, 99)
    p = GAUSSIAN.true_positive_rate(q)
    assert expectation(good, p, q).max() <= 1 + 1e-12
    for factor in (0.5, 1.5):
        beta = np.maximum(good.beta * factor, -1 / (1 - good.q0))
        assert expectation(Bets(good.p0, good.q0, good.alpha, beta), p, q).max() > 1 + 1e-6


def test_bets_look_at_earlier_runs_only() -> None:
    """The factor of a run is that of the bet from the counts before it, whatever the score of this run is."""
    draws, lines = np.random.default_rng(5), Lines.of(GAUSSIAN.epsilons[None, :], GAUSSIAN.deltas[None, :])
    history = [
        (member, float(draws.normal() + 4 * member - 2)) for member in draws.integers(0, 2, 60).astype(bool).tolist()
    ]
    hits, alarms = ((sum(score >= 0 for coin, score in history if coin == who) + 0.5) for who in (True, False))
    members = sum(coin for coin, _ in history)
    bets = Bets.choose(lines, np.array([hits / (members + 1)]), np.array([alarms / (61 - members)]))
    assert bets.alpha[0, 0] > 0
    for member in (True, False):
        for above in (0.0, 1.0):
            audit = Sequential(GAUSSIAN, thresholds=[0.0])
            for coin, score in history:
                audit.see(coin, score)
            before = audit.e_value
            ratio = audit.see(member, above - 0.5) / before
            assert ratio == pytest.approx(math.exp(float(bets.log_factors(member, np.array([above]))[0, 0])), rel=1e-9)


def test_pairs_are_settled_as_a_whole() -> None:
    audit = Sequential(Claim([0.1], [0]), thresholds=[0.5], pairs=True)
    with pytest.raises(cm.InputError, match="repeats the last coin"):
        audit.see(True, 1.0), audit.see(True, 1.0)
    audit = Sequential(Claim([0.1], [0]), thresholds=[0.5], pairs=True)
    refuted_at = []
    for _ in range(20):
        for member in (True, False):
            audit.see(member, float(member))
            refuted_at += [audit.runs] if audit.refuted else []
    assert refuted_at
    assert refuted_at[0] % 2 == 0


def test_members_first_would_be_no_audit() -> None:
    """Why the coin must be declared: at a true claim, sorted rows refute most of the time, a fair coin hardly ever."""
    draws, claim = np.random.default_rng(6), Claim([0.5], [0])
    sorted_alarms, fair_alarms, count = 0, 0, drawn(6)
    for _ in range(count):
        audit = Sequential(claim, thresholds=[0.5])
        for member in [True] * 60 + [False] * 60:
            audit.see(member, float(draws.random() < 0.95))
        sorted_alarms += audit.refuted
        audit = Sequential(claim, thresholds=[0.5])
        for _ in range(120):
            audit.see(bool(draws.integers(2)), float(draws.random() < 0.95))
        fair_alarms += audit.refuted
    assert 3 * sorted_alarms >= count
    assert 12 * fair_alarms <= count


def test_a_lower_end() -> None:
    """Randomized response at epsilon 2: what is shown stays below, and grows with the runs."""
    draws, truth = np.random.default_rng(7), float(special.expit(2.0))
    audit = Sequential(Claim([0.5], [0]), thresholds=[0.5])
    seen = []
    for _ in range(600):
        member = bool(draws.integers(2))
        audit.see(member, float(draws.random() < (truth if member else 1 - truth)))
        seen.append(audit.epsilon_lower)
    assert seen == sorted(seen)
    assert 1 < seen[-1] <= 2


def test_the_smallest_epsilons_come_first() -> None:
    """An epsilon counts only if all smaller ones were refuted too."""
    audit = Sequential(Claim([1], [0]), thresholds=[0.5])
    audit._reached[:] = False
    audit._reached[[0, 1, 3]] = True
    assert audit.epsilon_lower == EPSILONS[1]
    audit._reached[0] = False
    assert audit.epsilon_lower == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"claim": 3}, "Claim"),
        ({"thresholds": []}, "thresholds"),
        ({"thresholds": [math.nan]}, "thresholds"),
        ({"thresholds": ["many"]}, "thresholds"),
        ({"level": 0}, "level"),
        ({"level": 1.5}, "level"),
        ({"first": 0}, "first"),
        ({"first": True}, "first"),
        ({"pairs": 1}, "pairs"),
        ({"delta": -1}, "delta"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        Sequential(**({"claim": GAUSSIAN} | arguments))


@pytest.mark.parametrize(
    ("member", "score"), [(2, 0.0), ("yes", 0.0), (None, 0.0), (True, math.nan), (True, "a"), (0.5, 1.0)]
)
def test_a_run_that_is_none(member: Any, score: Any) -> None:
    with pytest.raises(cm.InputError, match="must be"):
        Sequential(GAUSSIAN).see(member, score)


def test_the_best_of_several_thresholds_alone_is_no_bet() -> None:
    """The wealth is the mean over thresholds: one that wins among four that lose counts for a quarter."""
    audit = Sequential(Claim([0.1], [0]), thresholds=[0.5])
    several = Sequential(Claim([0.1], [0]), thresholds=[0.5, 10.0, 11.0, 12.0])
    for _ in range(12):
        for member in (True, False):
            audit.see(member, float(member))
            several.see(member, float(member))
    assert several.e_value == pytest.approx((audit.e_value + 3) / 4, rel=1e-9)
