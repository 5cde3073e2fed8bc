"""Runs that are no more private than a run of random allocations, and easier to evaluate, and their answers.

*Fewer steps.* The ratio of an epoch of t steps is a mean of t independent ratios W, which is the average of its leave-one-out
means; so E g(mean) falls with t for every convex g, and an epoch of fewer steps bounds one of more steps.

*An announced step.* One step is the mechanism itself, once per epoch: if the step of the record is told, the releases of all
other steps do not depend on the record, and telling it is undone by post-processing. So a run in which every epoch is replaced
by one release bounds the run, whatever runs in the steps.

*Blocks.* k of t steps are a random partition of the steps into k blocks with one pick each, and the partition may be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from cumulant.accounting.dominating_runs import averaged_square, gaussian_value
from cumulant.accounting.indirect_routes import Ask
from cumulant.accounting.question import Question
from cumulant.accounting.rounds import rounds_of
from cumulant.accounting.run import Component, RunRecord
from cumulant.conversion.query import Answer

if TYPE_CHECKING:
    from cumulant.exact.rounds import Rounds

_LARGEST_SPREAD = 700.0
"""Largest log(1/s) of a probability s that is compared; derived: e^-700 is near the smallest float."""


def announced_run(run: RunRecord) -> RunRecord | None:
    """Return the run with one release in place of each epoch, and with blocks in place of each epoch with several picks.

    None if it has no such epoch.
    """
    if not any(_announced(part) for part in run.parts):
        return None
    parts: list[Component] = []
    for part in run.parts:
        if _announced(part) and part.scheme is not None and part.scheme.announced:
            assert part.inner is not None
            parts += [replace(each, times=part.times * each.times) for each in part.inner.parts]
        elif _announced(part) and part.scheme is not None:
            for scheme, times in part.scheme.blocks:
                parts.append(replace(part, scheme=scheme, key=(part.key, scheme), times=part.times * times))
        else:
            parts.append(part)
    return RunRecord(tuple(parts), run.relation, run.source)


def shorter_runs(run: RunRecord) -> Iterator[RunRecord]:
    """Yield the run with about half of the steps in every epoch, with a quarter, ….

    While an epoch has several steps.

    Their curves stay those of all steps, which hold too.
    """
    parts = run.parts
    while any(part.scheme is not None and part.scheme.shorter is not None for part in parts):
        parts = tuple(_shorter(part) for part in parts)
        yield RunRecord(parts, run.relation, run.source)


def weaker_answer(
    run: RunRecord,
    question: Question,
    answer: Ask,
    by_losses: Callable[[Rounds, Question], Answer],
    found: Answer | None = None,
) -> tuple[RunRecord, Answer] | None:
    """Return the best answer of the runs with fewer steps, and that run.

    None where the run has no epochs of steps.

    If loss distributions gave the answer that was `found`, only the announced steps are looked at; else only runs that may need
    less than what was `found`.
    """
    announced = announced_run(run)
    if announced is None:
        return None
    best = announced, answer(announced, question)
    known = math.inf if found is None else found.value
    for shorter in shorter_runs(run) if question.has_composition and not (found is not None and found.exact) else ():
        if least_value(shorter, announced, question) >= min(best[1].value, known):
            break  # no bound of this run, and of those with still fewer steps, is smaller
        rounds, _ = rounds_of(shorter)
        exact = None if rounds is None else by_losses(rounds, question)
        if exact is not None and exact.value < best[1].value:
            best = shorter, exact
        elif exact is not None and exact.value < (math.inf if question.asked == "delta" else 1.0):
            break  # still fewer steps are less private
    return best


def least_value(run: RunRecord, announced: RunRecord, question: Question) -> float:
    """Return a number below which no bound of a run with epochs of steps is; 0 where none is known.

    The mean of the steps of an epoch is Gaussian noise. With probability s, the product of the step rates, all records are in
    the first steps, so that P >= s P', P' with announced steps; hence delta(eps) >= s delta'(eps + log 1/s).
    """
    square = averaged_square(run)
    least = gaussian_value(square, question) if square > 0 else 0.0
    rounds = rounds_of(announced)[0]
    single = None if rounds is None else rounds.single()
    if single is None or not single[0].symmetric or any(part.group > 1 for part in run.parts):
        return least
    from cumulant.exact.closed_form import single_delta, single_epsilon

    spread = 0.0
    for part in run.parts:
        rate = Fraction(0) if part.scheme is None else part.scheme.step_rate
        spread -= part.times * math.log(rate) if rate else 0.0
    if spread > _LARGEST_SPREAD:
        return least
    # a float: the power of a fraction has millions of digits after as many epochs, and this number only chooses
    share, value = Fraction(math.exp(-spread)), Fraction(question.value)
    if question.asked == "epsilon":
        return max(least, float(share) * single_delta(*single, value + Fraction(spread)))
    return max(least, single_epsilon(*single, value / share) - spread if value < share else 0.0)


def _announced(part: Component) -> bool:
    """Return True if the mechanism on the samples of a part, or its blocks, bound the part.

    Both are for groups of one size.
    """
    if part.scheme is None or part.inner is None or not (part.scheme.announced or part.scheme.blocks):
        return False
    return all(each.group == part.group for each in part.inner.parts)


def _shorter(part: Component) -> Component:
    """Return the part with about half of its steps.

    Equality means the scheme too, because answers are remembered by it.
    """
    scheme = None if part.scheme is None else part.scheme.shorter
    return part if scheme is None else replace(part, scheme=scheme, key=(part.key, scheme))
