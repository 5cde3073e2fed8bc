"""Tuning constants of the inversion line, of its decay proofs and of its searches.

Every value is valid: the bounds are proved for whatever is chosen here. A worse value costs time, makes a ball wider, or lets
the caller fall back to a grid. Bounds on rounding errors are not settings; they stand where they are derived.

*Measured* refers to the nine runs of docs/line.md (benchmarks/questions.py times them). *Chosen by hand* means that no
measurement is recorded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cumulant.numerics.arithmetic import Array


@dataclass(frozen=True, slots=True, eq=False)
class LineSettings:
    """Constants by which floats choose an inversion line, and limits of the work in balls."""

    margin_exponent: float = 12.0
    """Nats that every error term lies below the accuracy; measured: with less, a poor guess of epsilon needs a second line."""

    fewest_bits: int = 128
    """Bits of a ball at least; chosen by hand: fewer bits are not faster."""

    guard_bits: int = 48
    """Bits beyond those that the question and its cancellation need; chosen by hand, for sums of up to 2^40 terms."""

    root_bits: int = 40
    """Bits beyond those of the line for roots of unity; derived: 2^20 roots lose 20 bits, and half a bit per halving."""

    most_bits: int = 2048
    """Bits beyond which a line is not tried; chosen by hand: a grid is then faster."""

    order_factors: tuple[float, ...] = (1.0, 0.85, 0.7, 0.55)
    """Parts of the saddle point's order that are compared; chosen by hand: below a jump of K' few frequencies suffice."""

    image_orders: Array = field(default_factory=partial(np.geomspace, 0.03, 2.0, 18))
    """Distances of the image order t from lam that are tried, in units of the normal law's best one; chosen by hand."""

    far_image_orders: Array = field(default_factory=partial(np.geomspace, 2.5, 8.0, 6))
    """Distances that are tried if the farthest of `image_orders` was the best; chosen by hand."""

    nearby_orders: Array = field(default_factory=partial(np.geomspace, 0.5, 2.5, 17))
    """Parts of lam at which a bound by one real order is tried; chosen by hand."""

    omitted_rounds: float = 4.0
    """Rounds whose rarest losses a deviation leaves out, 4/k of the law; measured: as the windows of the decay proof do."""

    most_omitted: float = 0.1
    """Largest part of a law that a deviation leaves out, for few rounds; chosen by hand."""

    image_period_share: float = 0.8
    """Part of the left images' period that the right images may fill; chosen by hand: a guess may be poor."""

    most_order_spacing: float = 24.0
    """Largest product of order and lattice spacing; derived: e^-24 is below a float's last digit, larger orders say no more."""

    most_cancelled_search: float = 10.0
    """Nats that may cancel on a line in floats that a search follows; floats have 36; chosen by hand."""

    gap_grid: Array = field(default_factory=partial(np.geomspace, 0.1, 60.0, 33))
    """Gaps d that are tried first, in units of 1/lam; measured: the best is about 3."""

    gap_points: int = 9
    """Gaps of each finer grid around the best; chosen by hand."""

    most_work: int = 1_000_000
    """Frequencies times nodes of a line in balls; measured: about a second."""

    proof_work: int = 20_000_000
    """Frequencies times nodes for `prove=True`; measured: about ten seconds."""

    smoothing_work: int = 12_000
    """Frequencies times nodes of a smoothed line without `prove=True`; chosen by hand: a grid is then faster."""

    theorem_w_smoothing_work: int = 200_000
    """Frequencies times nodes of a smoothed line for Theorem W; chosen by hand."""

    float_most_work: int = 4_000_000
    """Frequencies times nodes of a line in floats; chosen by hand: about a tenth of a second."""

    most_candidates: int = 16
    """Shared lines that are tried for a question; measured: of 258 lines none served a second question, at 0.6 ms each."""

    spare: float = 20.0
    """Nats that a shared line may cancel beyond its own question; measured: 29 deltas from 1e-12 to 1e-3 share one line."""

    smoothing_shares: tuple[float, ...] = (0.01, 0.25)
    """Parts of the accuracy that smoothing may cost: less than a grid costs, or, for `prove=True`, a quarter; by hand."""

    theorem_w_smoothing: float = 1e-6
    """Part of epsilon that smoothing may cost if references lie on different lattices; chosen by hand."""

    most_cancelled_gap: float = 12.0
    """Nats that may cancel before balls search the gap of Theorem B; derived: floats know a minimum to half of 36 nats."""

    lattice_accuracy: float = 1e-9
    """Accuracy of a finite sum on a lattice; measured: it costs hardly more than a coarse one."""

    smallest_epsilon: float = 1e-9
    """Smallest epsilon of a saddle point, and by which the cost of smoothing is divided; convention."""

    many_rounds: int = 2000
    """Rounds from which on balls are asked without a guess in floats; chosen by hand: a line is then the best route."""

    largest_epsilon: int = 10**6
    """Epsilon beyond which no line is tried; chosen by hand: nothing is protected there. Every delta is below it."""

    rough_exponent: float = 6.0
    """Nats of the error terms of a line that only compares two directions; chosen by hand."""

    most_folds: int = 10**9
    """Lattice points in one period beyond which no line is tried; chosen by hand."""

    lattice_nudge: float = 2.0**-44
    """Part by which epsilon moves outward if balls cannot place it on the lattice; chosen by hand, far below the accuracy."""

    length_multiple: int = 4
    """Numbers of frequencies in floats are multiples of it, so that nearby questions share remembered arrays; by hand."""

    second_period: float = 1.37
    """Factor of the period in a second evaluation; convention: no simple ratio, so that every frequency differs."""

    looser: float = math.exp(margin_exponent / 2)
    """Factor of the accuracy for a guess that uses half of the margin; derived."""

    loosest: float = math.exp(margin_exponent)
    """Factor of the accuracy at which the error terms are as large as the accuracy; derived."""


@dataclass(frozen=True, slots=True, eq=False)
class DecaySettings:
    """Constants by which floats choose windows and intervals.

    Balls or rounded floats certify whatever is chosen.
    """

    window_cuts: Array = field(default_factory=partial(np.array, [0.0, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.3]))
    """Parts of the law that either end of Lemma S3's window may leave out; chosen by hand."""

    omitted_rounds: float = 4.0
    """Rounds whose rarest losses a window of Lemma S1 leaves out, 4/k of the law; measured."""

    omitted_share: float = 0.1
    """Part of the bound e^(-b/k) that the omitted losses may fill; chosen by hand."""

    fewest_frequencies: int = 5
    """An interval that holds fewer frequencies is summed instead of certified; measured."""

    stage_cuts: tuple[float, ...] = (0.1, 0.0)
    """Least part of the law that is left out, stage by stage: far out little of the law is enough; chosen by hand."""

    variance_share: float = 0.4
    """Round types that carry this part of the variance suffice; measured: 1.6 times the frequencies, a third of the nodes."""

    worth_intervals: float = 2.0
    """A stage that comes down by fewer of the shortest intervals is skipped; chosen by hand."""

    float_worth_intervals: float = 1.1
    """A stage in floats that comes down by fewer of the shortest intervals is skipped; chosen by hand."""

    margin: float = 1e-6
    """Nats by which an estimate in floats must exceed the goal before balls are asked; chosen by hand."""

    most_intervals: int = 400
    """Intervals before the proof gives up; chosen by hand."""

    interval_halves: Array = field(default_factory=(0.5 * 0.7 ** np.arange(20)).copy)
    """Half lengths of intervals that are tried, as parts of the top frequency, the longest first; chosen by hand."""

    long_intervals: int = 6
    """Number of long half lengths that floats try before the short ones; chosen by hand."""

    ball_tries: int = 3
    """Intervals that pass in floats and are offered to balls before the proof stops; chosen by hand."""

    profile_points: int = 257
    """Points of the grid on which floats see a law; chosen by hand."""

    coarse_log_error: float = -20.0
    """Log of the quadrature error of Lemma S3's window, relative to M(lam); chosen by hand, far below its bound."""

    negligible_weight: float = 1e-9
    """Weights that an estimate in floats leaves out; chosen by hand."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Constants of the searches for an epsilon that balls prove."""

    smallest: float = 1e-300
    """Smallest epsilon that is tried; derived: near the smallest float."""

    largest: float = 2.0**60
    """Largest epsilon that is tried; chosen by hand."""

    first_step: float = 2.0**-48
    """Relative distance of the first epsilon beside the guess; derived: floats know it to some units in the last place."""

    widest: float = 1e-3
    """Part of epsilon that the radius of a ball may cost; with more the caller uses the grid; chosen by hand."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Constants by which many questions share lines in floats."""

    order_factors: tuple[float, ...] = (1.0, 0.7, 0.5)
    """Parts of the saddle point's order that are tried; chosen by hand: a wide law may decay at a smaller order."""

    most_cancelled: float = 18.0
    """Nats that may cancel for a question of a group, half of a float's 36; with more the group is halved."""

    rounding_share: float = 0.05
    """Part of the accuracy that rounding may cost; with more, balls answer; chosen by hand."""

    moves: int = 12
    """Growing steps from the root to an epsilon whose bound holds; chosen by hand."""

    octave_parts: float = 8.0
    """Orders and periods are rounded to this many values per octave, so that runs share what is remembered; by hand."""


@dataclass(frozen=True, slots=True)
class SaddleSettings:
    """Constants of the saddle line.

    Its answers are estimates, used as guesses and as a second opinion.
    """

    tail: float = 36.0
    """Nats of the tilted sum that the window and the frequencies leave out; derived: a float's last digit."""

    most_frequencies: int = 1 << 10
    """Frequencies before the line gives up; chosen by hand: a few milliseconds."""

    negligible_weight: float = 1e-22
    """Tilted weights that are left out; derived: far below a float's last digit."""

    smallest_order: float = 1e-4
    """Smallest order of the search; chosen by hand."""

    largest_order: float = 2.0**40
    """Largest order of the search: losses are then bounded, and almost as large as they can be; chosen by hand."""


LINE = LineSettings()
"""Settings of every inversion line."""

DECAY = DecaySettings()
"""Settings of every decay proof."""

SEARCH = SearchSettings()
"""Settings of every search for a proved epsilon."""

BATCH = BatchSettings()
"""Settings of shared lines in floats."""

SADDLE = SaddleSettings()
"""Settings of the saddle line."""
