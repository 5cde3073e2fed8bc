"""Runs that are no more private than a run, or no less, where only such runs can be evaluated, and their answers.

A part may say that each of several runs has a pair that dominates it. Products of dominating pairs dominate a composition, so
putting one of them in the place of the part bounds the whole run from above, and the least answer counts. From below likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice, product
from operator import itemgetter
from typing import Any

import numpy as np

from cumulant.accounting.indirect_routes import Ask, Deltas
from cumulant.accounting.question import Question
from cumulant.accounting.run import Component, RunRecord
from cumulant.conversion.query import Answer
from cumulant.domains import Exact

_MOST_RUNS = 64
"""Combinations of the runs of several parts that are tried; convention: one part has about ten, two parts are rare."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def dominating_runs(run: RunRecord) -> tuple[RunRecord, ...]:
    """Return runs that are no more private; empty if every part can be evaluated as it is."""
    return _replaced(run, [part.dominating() if part.dominating is not None else None for part in run.parts])


def dominated_runs(run: RunRecord) -> tuple[RunRecord, ...]:
    """Return runs that are no less private; empty if every part can be evaluated as it is, or nothing is known."""
    return _replaced(run, [part.dominated() if part.dominated is not None else None for part in run.parts])


def has_dominating_runs(run: RunRecord) -> bool:
    """Return True if a part can be evaluated only by runs that dominate it."""
    return any(part.dominating is not None for part in run.parts)


def averaged_square(run: RunRecord) -> Fraction:
    """Return the squared shift of Gaussian noise that the run dominates; 0 where nothing is known.

    Each allocation of Gaussian noise is seen by the mean of its steps only. No bound of the run is below that of this noise.
    """
    found = Fraction(0)
    for part in run.parts:
        shift = None if part.pair is None or not part.lone or part.group > 1 else part.pair.lower_pair.gaussian_shift()
        share = Fraction(1) if part.scheme is None else part.scheme.averaged
        found += part.times * share * (shift or 0) ** 2
    return found


def dominating_answer(run: RunRecord, question: Question, answer: Ask) -> tuple[RunRecord, Answer] | None:
    """Return the least answer of the runs that dominate this one and that run; None where it is evaluated as it is."""
    best: tuple[RunRecord, Answer] | None = None
    for square, each in sorted(((averaged_square(each), each) for each in dominating_runs(run)), key=itemgetter(0)):
        if (
            best is not None
            and square > 0
            and question.has_composition
            and gaussian_value(square, question) >= best[1].value
        ):
            break  # no bound of this run, and of those after it, is smaller
        found = answer(each, question)
        if best is None or found.value < best[1].value:
            best = each, found
    return best


def dominating_deltas(runs: Iterable[RunRecord], value: Sequence[Exact], question: Question, deltas: Deltas) -> Floats:
    """Return the least delta of the runs that dominate one, at each epsilon.

    A run is asked for all its epsilons at once, so that these share their lines: one epsilon at a time took 33 s for cyclic
    Poisson samples (measured). It is not asked where the noise that it dominates needs no less.
    """
    from cumulant.exact.closed_form import single_deltas
    from cumulant.pairs.gaussian import GaussianPair

    best = np.ones(len(value))
    for square, each in sorted(((averaged_square(each), each) for each in runs), key=itemgetter(0)):
        least = (
            single_deltas(GaussianPair.of_square(square), Fraction(1), value) if square > 0 else np.zeros(len(value))
        )
        open_at = np.flatnonzero(np.asarray(least) < best)
        if open_at.size:
            found = np.atleast_1d(deltas(each, [value[i] for i in open_at.tolist()], question))
            best[open_at] = np.minimum(best[open_at], found)
    return best


def gaussian_value(square: Fraction, question: Question) -> float:
    """Return the number for Gaussian noise of this squared shift."""
    from cumulant.exact.closed_form import single_end
    from cumulant.pairs.gaussian import GaussianPair

    return single_end(GaussianPair.of_square(square), Fraction(1), question.query)


def _replaced(run: RunRecord, choices: list[tuple[RunRecord, ...] | None]) -> tuple[RunRecord, ...]:
    if all(each is None for each in choices):
        return ()
    known = [(None,) if each is None else each for each in choices]
    found = []
    for chosen in islice(product(*known), _MOST_RUNS):
        parts: list[Component] = []
        for part, other in zip(run.parts, chosen, strict=True):
            parts += (part,) if other is None else other.repeated(part.times).parts
        found.append(RunRecord(_gathered(parts), run.relation, run.source))
    return tuple(found)


def _gathered(parts: list[Component]) -> tuple[Component, ...]:
    """Return the components with equal ones joined and their counts added: the exact layer counts round types."""
    found: dict[object, Component] = {}
    for part in parts:
        key = (part.key, part.scheme, part.group)
        found[key] = found[key].with_times(found[key].times + part.times) if key in found else part
    return tuple(found.values())
