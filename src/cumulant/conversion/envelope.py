"""epsilon for many round counts at once, as the lower envelope of lines.

At each order epsilon is a line in the count k.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.conversion.conversions import Conversion
from cumulant.conversion.order_search import nothing_beyond
from cumulant.curves.curve import Curve
from cumulant.curves.interpolation import chebyshev_curve
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.hull import lowest_lines
from cumulant.numerics.rounding import rounded_down
from cumulant.numerics.search import least


@dataclass(frozen=True, slots=True)
class EnvelopeSettings:
    """Orders that are tried for many round counts at once.

    Every order is valid, so validity does not depend on them.
    """

    dense: int = 512
    """Every integer order up to it is tried."""

    spacing: float = 1.005
    """Ratio of neighbouring orders beyond it."""

    probes: int = 6
    """Counts whose best orders limit the range of orders."""

    refinements: int = 2
    """Refinements between the orders that won and their neighbours."""


SETTINGS = EnvelopeSettings()
"""The settings in force; a test may replace them."""


def orders(curve: Curve, counts: Array, delta: Fraction, conversion: Conversion) -> Array:
    """Return the lambda at which each number of repetitions proves least, at one delta.

    The curve has no slack, and delta lies in (0, 1). A curve of integrals is searched between remembered orders: an
    integral for each of thousands of orders would take minutes.
    """
    table = chebyshev_curve(curve) if curve.estimated else None
    while table is not None:
        found = _best_orders(table, counts, delta, conversion)
        settled = [table.settled(lam) for lam in np.unique(found).tolist()]
        if all(settled):
            return found
    return _best_orders(curve, counts, delta, conversion)


def _best_orders(curve: Curve, counts: Array, delta: Fraction, conversion: Conversion) -> Array:
    """Return the best lambda of each count among those that are scanned and refined."""
    log_delta = np.log(rounded_down(delta))
    probes = np.geomspace(counts.min(), counts.max(), SETTINGS.probes)[:, None]

    def objective(lam: Array) -> Array:
        return conversion.epsilon(lam, probes * curve.cgf(lam), log_delta, FLOATS)

    with np.errstate(all="ignore"):
        found = least(objective, curve.integral, nothing_beyond(curve, conversion, log_delta, probes[:, 0])).where
        lam = np.union1d(_scan_nodes(found.min(), found.max(), curve.integral), found)
        slope, height = curve.cgf(lam) / lam, conversion.epsilon(lam, 0.0, log_delta, FLOATS)
        for _ in range(
            0 if curve.integral else SETTINGS.refinements
        ):  # between real orders that won, and their neighbours
            new = _refined(lam, np.unique(lowest_lines(slope, height, counts)))
            place = np.argsort(np.append(lam, new), kind="stable")
            slope = np.append(slope, curve.cgf(new) / new)[place]
            height = np.append(height, conversion.epsilon(new, 0.0, log_delta, FLOATS))[place]
            lam = np.append(lam, new)[place]
        return lam[lowest_lines(slope, height, counts)]


def _scan_nodes(low: float, high: float, integral: bool) -> Array:
    """Return every integer up to 512 and then ever wider steps.

    Real arguments are added, unless the curve has corners at integers.
    """
    steps = np.geomspace(low, high, 2 + int(np.log(high / low) / np.log(SETTINGS.spacing)))
    integers = np.arange(np.floor(low), min(np.ceil(high), SETTINGS.dense) + 1)
    dense = integers if integral else np.union1d(steps[steps < SETTINGS.dense], integers[integers > 0])
    return np.union1d(dense, np.floor(steps[steps >= SETTINGS.dense]))


def _refined(lam: Array, used: Array) -> Array:
    """Return three arguments between each used one and each of its neighbours."""
    left = np.unique(np.concatenate([used[used > 0] - 1, used[used < lam.size - 1]]))
    inner = lam[left, None] + np.diff(lam)[left, None] * np.array([0.25, 0.5, 0.75])
    return np.setdiff1d(inner, lam)
