"""Tuning constants of adaptive rounds.

They belong to Theorem W, to its reference laws, and to both recursions.

Every value is valid: each result is proved or bounded for whatever is chosen here. A worse value costs time or accuracy.
*Chosen by hand* means that no measurement is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cumulant.numerics.arithmetic import Array


@dataclass(frozen=True, slots=True, eq=False)
class TheoremWSettings:
    """Constants by which floats choose the order n and the reference law."""

    orders: tuple[float, ...] = (0.1, 0.5, 1.25, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0)
    """Orders n that are compared; chosen by hand: 1 is left out, where the formulas divide by n - 1."""

    coarse_reference: tuple[int, int] = (14, 120)
    """Cells up to the largest ratio, and rows on each of three stretches, of a proposal; chosen by hand."""

    fine_reference: tuple[int, int] = (20, 280)
    """Cells and rows of a reference for an answer; chosen by hand: about 0.1 seconds."""

    second_reference: tuple[int, int] = (31, 700)
    """Cells and rows of a reference for a second evaluation; chosen by hand, another lattice and other rows."""

    second_exponent: float = 1.07
    """Factor of the tails' exponent in a second evaluation; convention: any other number than 1."""

    critical_order: float = 0.5
    """Largest n at which triple (i) dominates (ii); derived (docs/test-orders.md)."""

    first_order: int = 4
    """Index of the order at which the scan begins; chosen by hand: n = 3 is mostly near the best."""

    tries: int = 3
    """References for ever smaller deltas; chosen by hand."""

    tangents: int = 12
    """Tangent steps towards log delta at an epsilon; chosen by hand."""

    log_delta_step: float = 0.5
    """Change of log delta that is worth another reference; chosen by hand."""

    smallest_log_delta: float = -690.0
    """Log of the smallest delta that is asked for; derived: e^-690 is above the smallest normal float."""

    largest_epsilon: float = 1e9
    """Epsilon beyond which Theorem W is not tried; chosen by hand."""

    small_gap: float = 0.05
    """Gap d below which g_n is computed by a form that does not cancel; chosen by hand, either form loses few digits there."""

    fewest_rounds: int = 300
    """Rounds below which Theorem W is not tried; measured: the value recursion is then smaller and affordable."""

    most_types: int = 4
    """Round types with constraints beyond which Theorem W is not tried; chosen by hand: one linear programme each."""

    cut: float = 16.0
    """Nats: k rounds may lose e^-16 of delta to infinity, as on every grid."""

    gaps: Array = field(default_factory=partial(np.geomspace, 1e-3, 40.0, 120))
    """Gaps d that a guess compares, divided by n above 1; chosen by hand."""

    nearby_orders: Array = field(default_factory=partial(np.geomspace, 1 / 12, 12.0, 140))
    """Parts of the profile's order at which a guess looks; chosen by hand."""

    nearest_row: float = 1e-5
    """Relative distance of the last row from the top; chosen by hand: relative errors must stay small there."""

    proposal_margin: float = 1e-6
    """Relative amount by which a proposal is raised; derived: above the tolerance of the linear programme, 1e-7."""

    smallest_top: float = 1e-7
    """Largest loss of a round below which no reference is sought; derived: nothing is left of its differences in floats."""

    largest_top: float = 3.0
    """Largest loss of a round beyond which no reference is sought; chosen by hand: no order averages over one round."""


@dataclass(frozen=True, slots=True)
class RecursionSettings:
    """Constants of the value recursion: which grid is affordable, and where floats reach."""

    narrow: float = 1e-9
    """Relative width of the bracket of epsilon; chosen by hand."""

    largest_exponent: float = 700.0
    """Epsilon beyond which a value says nothing; derived: e^700 is near the largest float."""

    range_most_rounds: int = 400
    """Rounds of bounded range at most; chosen by hand: about a second."""

    range_most_cells: int = 6_000
    """Cells of all rounds of bounded range; chosen by hand: about a second."""

    range_fewest_cells: int = 4
    """Cells of one round of bounded range at least; chosen by hand."""

    range_most_round_cells: int = 128
    """Cells of one round of bounded range at most; chosen by hand: more do not change the digits shown."""

    range_largest: int = 600
    """Largest (rounds + 2) epsilon of bounded range; derived: e^600 is far from the largest float."""

    bits: int = 192
    """Precision of the balls in which weights are computed; chosen by hand, far beyond a float's 53."""

    fewest_cells: int = 8
    """Cells between 1 and the largest ratio at least; chosen by hand: fewer are too coarse to help."""

    finest_above: int = 256
    """Cells at most, from above; chosen by hand: chords cost less than 1e-6 there."""

    finest_below: int = 1024
    """Cells at most, from below, where every ratio has to lie on the grid; chosen by hand."""

    work_above: float = 2e7
    """Counts of rounds times points that are spent from above; measured: about 0.2 seconds."""

    work_below: float = 4e7
    """Counts of rounds times points that are spent from below; measured: about 0.4 seconds."""

    most_work: float = 1.2e8
    """Counts of rounds times points beyond which nothing is tried; measured: about a second."""

    overhead: int = 1000
    """Points that a round of one of several types costs besides its points; chosen by hand."""

    deeper: float = 1.5
    """Factor of log delta that the grid reaches; chosen by hand."""

    depth_multiple: float = 24.0
    """Nats to a multiple of which the depth is rounded, so that nearby deltas share a recursion; chosen by hand."""

    above_share: float = 0.5
    """Part of the reach that the grid extends above ratio 1; chosen by hand."""

    farthest: float = 400.0
    """Epsilon beyond which no grid is built; derived: beyond it powers leave the range of floats."""

    smallest_loss: float = 1e-8
    """Largest loss of a round below which no grid is built; derived: floats do not tell its ratios apart."""

    most_unlike: float = 50.0
    """Factor by which the losses of one type may exceed those of another; chosen by hand."""

    rounding_mass: float = 1e-40
    """Mass that is all rounding; derived: far above the radius of balls of 192 bits."""

    most_odds: float = 1e300
    """Odds beyond which no grid is built; derived: floats end there."""


@dataclass(frozen=True, slots=True)
class SecondRecursionSettings:
    """Constants of the second recursion, by which answers are checked."""

    bits: int = 160
    """Precision of the balls in which weights are computed; convention: another one than in the first recursion."""

    work: tuple[float, ...] = (6e7, 2.4e8)
    """Counts times points: what is spent, and what is spent if that decides nothing; measured: about one and four seconds."""

    fewest_cells: int = 9
    """Cells up to the largest ratio of the most frequent type at least; convention: another number than in the first."""

    finest: int = 900
    """Cells up to the largest ratio of the most frequent type at most; chosen by hand."""

    overhead: int = 2000
    """Points that a round costs besides its points; chosen by hand."""

    margin_variances: float = 30.0
    """Variances of the sum that m (m + epsilon) reaches beyond the window; chosen by hand: e^-30 of the paths."""

    largest: float = 600.0
    """Losses and window at most, in nats; derived: e^600 is far from the largest float."""

    most_unlike: int = 50
    """Factor by which the losses of another type may exceed those of the first; chosen by hand."""

    on_grid: float = 1e-12
    """Part of a cell by which a law may be moved to the next smaller ratio, which only raises Z; chosen by hand."""

    near_grid: float = 1e-9
    """Part of a cell that counts as on the grid when cells are counted; chosen by hand."""


THEOREM_W = TheoremWSettings()
"""Settings of Theorem W."""

RECURSION = RecursionSettings()
"""Settings of the value recursion."""

SECOND_RECURSION = SecondRecursionSettings()
"""Settings of the second recursion."""
