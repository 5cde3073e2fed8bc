"""One run with canaries, from their coins and scores.

How many guesses, which ones, and what they say against a claim.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.domains import COUNT, Exact, Number, listed
from cumulant.errors import InputError
from cumulant.training.audit import LEVEL, Claim, one_run_epsilon, p_value, trials

SEED = 1
"""Seed of the order in which equal scores are taken, so that rows sorted by their coin give nothing away; convention."""

WEAKNESS = (
    "One run is a weak test: a curve allows everything to be revealed at once with small probability, so many guesses are not "
    "many trials. Only gross errors show."
)


@dataclass(frozen=True, slots=True)
class OneRun:
    """The result of one run: right guesses for each number of them, and what follows.

    The conclusion is corrected for trying several numbers.
    """

    p_value: float
    refuted: bool
    confidence: float
    epsilon_lower: float
    canaries: int
    guesses: tuple[int, ...]
    correct: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "guesses": list(self.guesses), "correct": list(self.correct)}


def one_run(
    *,
    members: Iterable[Any],
    scores: Iterable[float],
    claim: Claim,
    guesses: Iterable[int],
    delta: Number,
    level: Number = 0.05,
) -> OneRun:
    """Test a whole claimed curve by the canaries of one run.

    The numbers of guesses were fixed in advance.

    `members` says of each canary whether its fair coin put it in (under replace-one: which of two records), `scores` is
    larger where the auditor believes that it did. Of r guesses, half are that the highest scores were in and half that the
    lowest were out. With several numbers of guesses each is tested at its share of the level.

    >>> rng = np.random.default_rng(1)
    >>> coins = rng.integers(0, 2, 1000)
    >>> found = one_run(
    ...     members=coins,
    ...     scores=coins + 0.1 * rng.normal(size=1000),
    ...     claim=Claim([1], [1e-5]),
    ...     guesses=[100, 1000],
    ...     delta=1e-5,
    ... )
    >>> found.correct, found.refuted, found.epsilon_lower > 3
    ((100, 991), True, True)
    """
    coins, values = trials(members, scores)
    counts = [int(COUNT.check("guesses", count)) for count in listed("guesses", guesses)]
    if not counts or max(counts) > len(coins):
        raise InputError(f"guesses={counts} must be numbers from 1 to {len(coins)}, the number of canaries")
    share = Exact(LEVEL.check("level", level) / len(counts))
    right = [correct_guesses(coins, values, count) for count in counts]
    m, each = len(coins), list(zip(counts, right, strict=True))
    smallest = min(p_value(claim, canaries=m, guesses=r, correct=c) for r, c in each)
    p = min(1.0, len(counts) * smallest)
    lower = max(one_run_epsilon(canaries=m, guesses=r, correct=c, delta=delta, level=share) for r, c in each)
    alpha = float(LEVEL.check("level", level))
    return OneRun(p, p <= alpha, 1 - alpha, lower, m, tuple(counts), tuple(right))


def correct_guesses(coins: np.ndarray[Any, np.dtype[np.bool_]], scores: np.ndarray[Any, Any], guesses: int) -> int:
    """Return how many of so many guesses are right.

    Equal scores come in an order that knows nothing of the coins.
    """
    order = np.random.default_rng(SEED).permutation(len(scores))
    order = order[np.argsort(scores[order], kind="stable")]
    high = (guesses + 1) // 2
    return int(np.sum(coins[order[len(order) - high :]])) + int(np.sum(~coins[order[: guesses - high]]))
