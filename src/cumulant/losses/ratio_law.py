"""The law of the ratio p/q under Q, rounded up in convex order to finitely many points.

Splitting a cell to its ends keeps its mass and its mean, so that E g(ratio) grows for every convex g; sums of independent
ratios inherit that. The pair is the symmetric one of its loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.losses.grid import Loss
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import U


@dataclass(frozen=True, slots=True)
class Ratios:
    """The logarithms of the points and of their Q-masses.

    `error` bounds the relative error of the masses, `slip` by how much the logarithm of a point is misplaced, and `out` what
    each of the two laws has left out. `alone` is the Q-mass of the ratio 0, which is the P-mass where Q has none.
    """

    log_ratio: Array
    log_mass: Array
    error: float
    slip: float
    out: float
    alone: float


def ratios(loss: Loss, points: int, log_mass: float) -> Ratios:
    """Return the law on about so many points, with e^log_mass of each law left out at each end.

    Raises OverflowError if no grid can hold it.
    """
    step = loss.mixture(Fraction(1), "remove")
    low, high = step.span(log_mass)
    anchor = step.anchor()
    width = max(high - low, 1e-300) / points
    if anchor:  # atoms stay where they are
        width = anchor * 2.0 ** min(np.floor(np.log2(width / anchor)), 0.0) if not step.exact_lattice else anchor
    cells = step.cells(float(width), log_mass)
    log_p = np.logaddexp(cells.atoms, np.logaddexp(np.append(cells.left, -np.inf), np.append(-np.inf, cells.right)))
    there = np.flatnonzero(log_p > -np.inf)
    log_ratio, log_p = cells.grid.points()[there], log_p[there]
    log_q = log_p - log_ratio
    size = float(np.max(np.abs(log_p) + np.abs(log_ratio), initial=0.0))
    # beyond one end P has at most e^above, and Q less; beyond the other Q has, and P less
    out = float(np.exp(cells.above) + np.exp(max(cells.below, cells.above)))
    return Ratios(
        log_ratio, log_q, cells.error + U * (64 + 8 * size), cells.slip + 2 * cells.error, 1.001 * out, loss.leak
    )
