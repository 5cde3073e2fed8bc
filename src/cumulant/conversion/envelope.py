"""epsilon for many round counts at once, as the lower envelope of lines.

At each order epsilon is a line in the count k.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cumulant.conversion.conversions import Conversion
from cumulant.conversion.order_search import nothing_beyond
from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.hull import lowest_lines
from cumulant.numerics.rounding import rounded_down
from cumulant.numerics.search import least

_DENSE = 512
_SPACING = 1.005
_PROBES = 6
_REFINEMENTS = 2


def orders(curve: Curve, counts: Array, delta: Fraction, conversion: Conversion) -> Array:
    """Return the lambda at which each number of repetitions proves least, at one delta.

    The curve has no slack, and delta lies in (0, 1).
    """
    log_delta = np.log(rounded_down(delta))
    probes = np.geomspace(counts.min(), counts.max(), _PROBES)[:, None]

    def objective(lam: Array) -> Array:
        return conversion.epsilon(lam, probes * curve.cgf(lam), log_delta, FLOATS)

    with np.errstate(all="ignore"):
        found = least(objective, curve.integral, nothing_beyond(curve, conversion, log_delta, probes[:, 0])).where
        lam = np.union1d(_between(found.min(), found.max(), curve.integral), found)
        slope, height = curve.cgf(lam) / lam, conversion.epsilon(lam, 0.0, log_delta, FLOATS)
        for _ in range(0 if curve.integral else _REFINEMENTS):  # between real orders that won, and their neighbours
            new = _refined(lam, np.unique(lowest_lines(slope, height, counts)))
            place = np.argsort(np.append(lam, new), kind="stable")
            slope = np.append(slope, curve.cgf(new) / new)[place]
            height = np.append(height, conversion.epsilon(new, 0.0, log_delta, FLOATS))[place]
            lam = np.append(lam, new)[place]
        return lam[lowest_lines(slope, height, counts)]


def _between(low: float, high: float, integral: bool) -> Array:
    """Return every integer up to 512 and then ever wider steps.

    Real arguments are added, unless the curve has corners at integers.
    """
    steps = np.geomspace(low, high, 2 + int(np.log(high / low) / np.log(_SPACING)))
    integers = np.arange(np.floor(low), min(np.ceil(high), _DENSE) + 1)
    dense = integers if integral else np.union1d(steps[steps < _DENSE], integers[integers > 0])
    return np.union1d(dense, np.floor(steps[steps >= _DENSE]))


def _refined(lam: Array, used: Array) -> Array:
    """Three arguments between each used one and each of its neighbours."""
    left = np.unique(np.concatenate([used[used > 0] - 1, used[used < lam.size - 1]]))
    inner = lam[left, None] + np.diff(lam)[left, None] * np.array([0.25, 0.5, 0.75])
    return np.setdiff1d(inner, lam)
