"""The rounds of a run as the exact layer takes them.

Each round has a dominating pair and a sampling scheme. If one is not known the caller gets the reason, and uses the curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cumulant.accounting.run import Component, RunRecord
from cumulant.conversion.failure import Failure, Reason
from cumulant.exact.rounds import Round, Rounds
from cumulant.pairs.pair import Pair
from cumulant.sampling.without_replacement import WHOLE

MOST_ROUNDS = 10**9
"""More are more than any grid resolves; Gaussians without a sample count as one."""

Replaced = Callable[[Component, Pair], Round | None]
"""Returns the round that replaces that of a component with this pair; None if the component is taken as it is."""


Found = tuple[Rounds | None, Failure | None]
"""All rounds of a run, or None and what stands in the way."""


def rounds_of(run: RunRecord) -> Found:
    """Return the rounds that the exact layer composes, or None and the reason; they are described once."""
    if "rounds" not in run.known:
        run.known["rounds"] = rounds(run)
    found: Found = run.known["rounds"]
    return found


def rounds(run: RunRecord, replaced: Replaced | None = None) -> Found:
    """Return all rounds of the run, or None and what stands in the way; `replaced` may put others in their place."""
    alone = run.parts[0] if len(run.parts) == 1 and replaced is None and not run.parts[0].witnesses else None
    if alone is not None and (only := _closed_round(alone)) is not None:
        return Rounds(((only, 1),)), None
    parts: list[tuple[Round, int]] = []
    whole: list[tuple[Pair | None, int]] = []
    for part in run.sorted:
        if part.data_independent:
            continue
        if part.scheme is not None and not part.scheme.gridded:
            return None, Failure(Reason.NO_LOSSES, type(part.scheme).__name__)
        # several mechanisms on one sample have one pair for all of them, if any is known
        inside = () if part.lone or part.inner is None else part.inner.parts
        pair = _composed([(None if each.scheme else each.pair, each.times) for each in inside]) if inside else part.pair
        gaussian = pair is not None and part.scheme is None and pair.composed_pair([(pair, part.times)]) is not None
        if pair is None or not (gaussian or pair.has_grid_loss):
            return None, Failure(Reason.CURVE_ONLY, part.name)
        other = None if replaced is None else replaced(part, pair)
        if other is not None:
            parts.append((other, part.times))
            continue
        if gaussian:
            whole.append((pair, part.times))
            continue
        parts.append((Round(pair, part.scheme or WHOLE, part.witnesses), part.times))
    if whole and (gathered := _composed(whole)) is not None:
        parts.insert(0, (Round(gathered, WHOLE), 1))
    found = Rounds(tuple(parts))
    if found.single() is not None:
        return found, None
    if len(parts) > 1 and not found.aligned:
        return None, Failure(Reason.DIRECTIONS)
    count, wide = 0, False
    for one, times in parts:
        count += times
        wide = wide or one.steps is None
    if count > MOST_ROUNDS:
        return None, Failure(Reason.TOO_MANY_ROUNDS, f"{MOST_ROUNDS:,}")
    return (None, Failure(Reason.TOO_WIDE)) if wide else (found, None)


def _closed_round(part: Component) -> Round | None:
    """Return the round of a mechanism that ran once on all the data, if it has a closed form; None otherwise."""
    if part.times != 1 or part.scheme is not None or part.inner is not None or part.data_independent:
        return None
    return Round(part.pair, WHOLE) if part.pair is not None and part.pair.has_closed_form else None


def _composed(parts: Sequence[tuple[Pair | None, int]]) -> Pair | None:
    first = parts[0][0] if parts else None
    return None if first is None else first.composed_pair(parts)
