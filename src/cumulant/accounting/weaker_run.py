"""Runs that are no more private than a run of random allocations, and easier to evaluate.

*Fewer steps.* The ratio of an epoch of t steps is a mean of t independent ratios W, which is the average of its leave-one-out
means; so E g(mean) falls with t for every convex g, and an epoch of fewer steps bounds one of more steps.

*An announced step.* One step is the mechanism itself, once per epoch: if the step of the record is told, the releases of all
other steps do not depend on the record, and telling it is undone by post-processing. So a run in which every epoch is replaced
by one release bounds the run, whatever runs in the steps.

*Blocks.* k of t steps are a random partition of the steps into k blocks with one pick each, and the partition may be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cumulant.accounting.run import Component, RunRecord


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
