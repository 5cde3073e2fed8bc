"""Lines of losses on a lattice; their sum over frequencies is finite (docs/line.md, 7)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

from cumulant.exact.inversion.decay import DecayNotProved, extend_decay
from cumulant.exact.inversion.line import (
    Choice,
    Line,
    common_lattice,
    composed_transform,
    leak_probability,
    moment_ball,
    tilted_type,
)
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.rounds import RoundTypes


def build_lattice_line(
    round_types: RoundTypes, choice: Choice, work: int = LINE.most_work, omit_exponent: float | None = None
) -> Line:
    """Build the line of all rounds, whose losses lie on one lattice.

    Balls have the precision of the choice.

    `omit_exponent` b leaves out every frequency with J |M| <= M(lam) e^-b, not only those beyond the last: few rounds of few
    losses have a large |M| at frequencies with gaps in between. Raises DecayNotProved if there is no lattice, DecayTooSlow if
    the sum exceeds the work.
    """
    from flint import arb

    lattice = common_lattice(round_types)
    if lattice is None:
        raise DecayNotProved("the losses lie on no lattice")
    a, lam = float(lattice.spacing.mid()), choice.lam
    folds = max(math.ceil(choice.period / a) | 1, 3)
    if not (a > 0 and folds <= LINE.most_folds):
        raise DecayNotProved("the lattice of the losses is too fine")
    # The tail is divided by 1 - e^{-a lam} instead of z, so that a fine lattice needs more decay.
    choice = replace(
        choice, period=a * folds, decay_exponent=choice.decay_exponent + max(0.0, 1.0 - math.log(-math.expm1(-a * lam)))
    )
    known = [tilted_type(each, times, choice) for each, times in round_types]
    half, width = (folds - 1) // 2, 2 * arb.pi() / (lattice.spacing * folds)
    step = 2 * math.pi / choice.period
    count = half
    # Everything up to (J-1)/2 is summed, unless decay is proved from some frequency up to there.
    start = extend_decay(
        known, [None] * len(known), lam, choice.decay_exponent, Fraction(0), step, step * half * (1 + 1e-9)
    )
    if start < step * half:
        count = max(1, math.ceil(start / step * (1 + 1e-12)) - 1)
        while not width * (count + 1) >= start:
            count += 1
    count = min(count, half)
    values, nodes = composed_transform(known, choice, width, count, step * count * (1 + 1e-12), work)
    top = values[0].real
    if not (top.is_finite() and top > 0):
        raise DecayNotProved("the transform is not finite")
    beyond = (folds - 1 - 2 * count) * top * (-arb(choice.decay_exponent)).exp()
    if count == half:  # nothing is left out
        choice, beyond = replace(choice, decay_exponent=math.inf), arb(0)
    line = Line(
        choice,
        values,
        beyond,
        leak_probability(round_types),
        partial(moment_ball, round_types, choice, Fraction(0)),
        nodes,
        lattice=lattice,
        folds=folds,
    )
    return line if omit_exponent is None else without_small_values(line, omit_exponent)


def without_small_values(line: Line, exponent: float) -> Line:
    """Return the line without the frequencies at which J |M| <= M(lam) e^-exponent.

    They are added to its bound.
    """
    from flint import arb

    floor = line.values[0].real * (-arb(exponent) - arb(line.folds).log()).exp()
    kept = [(m, value) for m, value in enumerate(line.values) if m == 0 or not abs(value) <= floor]
    omitted = 2 * (len(line.values) - len(kept)) * floor
    return replace(
        line,
        values=[value for _, value in kept],
        indices=tuple(m for m, _ in kept),
        beyond=line.beyond + omitted,
        _cache={},
    )
