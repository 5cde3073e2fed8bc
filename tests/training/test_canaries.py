"""Guesses about canaries: which are made, and that nothing but scores decides."""

import numpy as np
import pytest

import cumulant as cm
from cumulant.training.audit import Claim
from cumulant.training.canaries import correct_guesses, one_run

COINS = np.random.default_rng(1).integers(0, 2, 1000).astype(bool)


def test_the_highest_are_in_and_the_lowest_out() -> None:
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    coins = np.array([True, False, True, True, False])
    assert correct_guesses(coins, scores, 1) == 1
    assert correct_guesses(coins, scores, 2) == 2
    assert correct_guesses(coins, scores, 3) == 2
    assert correct_guesses(coins, scores, 5) == 3


def test_equal_scores_of_sorted_coins_tell_nothing() -> None:
    right = correct_guesses(np.sort(COINS), np.zeros(1000), 1000)
    assert 430 < right < 570
    right = correct_guesses(np.sort(COINS)[::-1], np.zeros(1000), 1000)
    assert 430 < right < 570


def test_wrong_claims_are_refuted_and_right_ones_are_not() -> None:
    noise = np.random.default_rng(2).normal(size=1000)
    asked = {"members": COINS, "scores": COINS + noise, "guesses": [50, 200], "delta": 1e-5}
    assert one_run(**asked, claim=Claim([0.1], [1e-5])).refuted  # type: ignore[arg-type]
    epsilons = np.linspace(0, 8, 33)
    right = Claim(epsilons.tolist(), cm.Gaussian(sigma=1).delta(epsilons.tolist()).tolist())
    found = one_run(**asked, claim=right)  # type: ignore[arg-type]
    assert not found.refuted
    assert 0 < found.epsilon_lower < cm.Gaussian(sigma=1).epsilon(1e-5)
    single = one_run(**{**asked, "guesses": [200]}, claim=right)  # type: ignore[arg-type]
    assert found.p_value <= 2 * single.p_value or found.p_value == 1


@pytest.mark.parametrize("guesses", [[], [0], [1001], [True, "x"]])
def test_what_is_wrong_is_refused(guesses: list[int]) -> None:
    with pytest.raises(cm.InputError):
        one_run(members=COINS, scores=COINS * 1.0, claim=Claim([1], [0]), guesses=guesses, delta=0)
