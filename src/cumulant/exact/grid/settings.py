"""Tuning constants of loss distributions on grids.

Every value is valid: each error term is bounded for whatever is chosen here. A worse value costs time or accuracy. Bounds on
rounding errors are not settings; they stand where they are derived. *Chosen by hand* means that no measurement is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GridSettings:
    """Constants by which floats choose order, step, window and length of a grid."""

    tail: float = 40.0
    """Nats of the tilted sum that the window may leave out; derived: below the noise of the transforms."""

    longest_window: int = 1 << 22
    """Points of a window at most; chosen by hand: about a second and 100 MB."""

    thinned_points: int = 4000
    """Points of a law at most when the window is chosen; chosen by hand."""

    negligible_log_spectrum: float = -70.0
    """Log of a spectrum that counts as 0; its e^-70 is added to the noise (docs/exact.md)."""

    most_points: int = 1 << 20
    """Points of a grid at the usual accuracy; chosen by hand: about 0.2 seconds."""

    most_points_fine: int = 1 << 21
    """Points of a grid if more than the usual accuracy is asked for; chosen by hand."""

    usual_accuracy: float = 1e-4
    """Accuracy below which grids may be longer; convention."""

    first_accuracy: float = 1e-3
    """Accuracy of the first grid; chosen by hand."""

    finer: float = 0.01
    """Factor of the accuracy from grid to grid; chosen by hand."""

    most_cells: int = 1 << 17
    """Cells from below, where each is a step of a sequential construction; chosen by hand: about 0.2 seconds."""

    corrections: int = 4
    """Grids that follow the answer of the grid before; chosen by hand: two usually suffice."""

    widest_step: float = 100.0
    """Largest step of a grid, in nats; chosen by hand: beyond it floats overflow."""

    close: float = 0.05
    """Relative change of an answer that ends the corrections; chosen by hand."""

    solved: float = 1e-9
    """Relative width of the bracket of epsilon on one grid; chosen by hand, far below the accuracy of grids."""

    wider_steps: tuple[float, ...] = (1.0, 4.0, 16.0)
    """Factors of the step that are tried if the window is too long; chosen by hand: coarser, and better than none."""

    smallest_log_delta: float = -690.0
    """Log of the smallest delta that a grid is tilted for; derived: e^-690 is above the smallest normal float."""

    cut: float = 16.0
    """Nats: k rounds may lose e^-16 of delta to infinity (docs/exact.md)."""

    window_deviations: float = 24.0
    """Standard deviations of the sum in one window; chosen by hand."""

    farthest_epsilon: float = 1e5
    """Epsilon beyond which a single round is given up; chosen by hand."""

    single_round_cuts: tuple[float, ...] = (-46.0, -110.0, -320.0)
    """Logs of the mass that a single round leaves out; the next one is tried if delta is not far above; chosen by hand."""

    shared_accuracy: float = 0.01
    """Accuracy from which on nearby questions share a grid; chosen by hand."""

    most_shared_points: int = 1 << 18
    """Points of a grid that is shared; chosen by hand: a longer one costs more than it saves."""

    shared_cut_multiple: float = 8.0
    """Nats to a multiple of which a shared grid is cut; chosen by hand."""


@dataclass(frozen=True, slots=True)
class DominatedSettings:
    """Constants of dominated pairs on a grid."""

    scale_bits: int = 433
    """Masses are multiplied by 2^433, so that nothing underflows; derived: 433 log 2 = 300 nats of the 745 that floats have."""

    small_log_mass: float = -600.0
    """Log of a mass below which the scale is added in the exponent; derived: e^-600 is a normal float."""

    lowest_log_mass: float = -760.0
    """Log of a mass that is left out; derived: with the scale it is still a normal float."""

    negligible: float = 20.0
    """Nats below the cut at which outputs are left out; chosen by hand."""

    given_away: float = 12.0
    """Nats above the cut that the sweep to the right may exceed; with more the sweep to the left answers; by hand."""

    farthest: float = 200.0
    """Nats beyond which the next corner counts as out of sight; derived: e^200 squared is a float."""


GRID = GridSettings()
"""Settings of every grid."""

DOMINATED = DominatedSettings()
"""Settings of every dominated pair."""
