"""Routes by which other runs bound a run, with every sentence about them.

A component says whether one of them may apply (`RunRecord.indirect`), and only then `answer` asks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cumulant.accounting.question import Question
from cumulant.accounting.run import RunRecord
from cumulant.conversion.query import Answer
from cumulant.domains import Exact

Ask = Callable[[RunRecord, Question], Answer]
"""The answer about another run; `answer` hands it in, so that no files import each other in a circle."""

Deltas = Callable[[RunRecord, list[Exact], Question], Any]
"""The deltas of another run at several epsilons, which share what is computed; handed in likewise."""


@dataclass(frozen=True, slots=True)
class IndirectRoute:
    """An argument from the answer about another run; the sentences complete those of an explanation."""

    name: str
    """The route as guarantees store it; convention."""
    proof: str
    """The argument, after "Proved by"."""
    theorem: str
    """The profile that is composed, in the place of each component's theorem."""
    arithmetic: str
    """The evaluation of the number; {rigour} is that of the answer about the other run."""


DOMINATING_RUN = IndirectRoute(
    "dominating run",
    "a run of independent rounds that dominates the run with correlated noise (Theorem K)",
    "the privacy profile of a run with a larger Gram matrix (Theorem K), composed over all rounds",
    "the number for the run that dominates is {rigour}, and was taken as it is",
)
"""A number for correlated noise that follows from a run with a larger Gram matrix."""

GROUP_LEMMA = IndirectRoute(
    "group lemma",
    "the group lemma on the privacy profile of the whole run for one record",
    "the privacy profile for one record, composed over all rounds",
    "the delta for one record is {rigour}; the lemma multiplied it in balls, rounded up",
)
"""A number for groups that follows from the profile of the run for one record."""

FEWER_STEPS = IndirectRoute(
    "fewer steps",
    "the run with fewer steps in each epoch, or with one release per epoch, which is no more private",
    "the privacy profile with fewer steps, composed over all rounds",
    "the number for fewer steps is {rigour}, and was taken as it is",
)
"""A number for epochs that follows from epochs of fewer steps, or from one release in place of each."""

SHUFFLED = IndirectRoute(
    "shuffled batches",
    "Theorems 2 and 3 about shuffled passes (docs/shuffled-batches.md): other records of a batch hide this one",
    "the privacy profile of a shuffled pass, composed over all rounds",
    "float64, sums of positive terms, rounded outward; the slack of all passes was added",
)
"""A number that follows from the secret permutations of passes over batches."""

ROUTES = {each.name: each for each in (DOMINATING_RUN, GROUP_LEMMA, FEWER_STEPS, SHUFFLED)}
"""Every indirect route by its name."""
