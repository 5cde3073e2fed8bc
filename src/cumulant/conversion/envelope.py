"""epsilon for many round counts at once: at each order epsilon is a line in k, so epsilon(k) is their lower envelope."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cumulant.conversion.formulas import Conversion
from cumulant.conversion.queries import epsilon, nothing_beyond
from cumulant.curves.curve import Curve, compose
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.hull import lowest_lines
from cumulant.numerics.rounding import rounded_down
from cumulant.numerics.search import least

_DENSE = 512
_SPACING = 1.005
_PROBES = 6
_REFINEMENTS = 2


def epsilon_over(curve: Curve, counts: Array, delta: Fraction, conversion: Conversion) -> Array:
    """The least epsilon proved for each number of repetitions of the curve, at one delta."""
    if not counts.size or delta >= 1:
        return np.zeros(counts.shape)
    if curve.slack() > 0:  # what is left of delta differs from count to count, so there are no lines
        return np.array([float(epsilon(compose([(curve, int(k))]), [delta], conversion).value[0]) for k in counts])
    pure = counts * float(curve.pure())
    if delta == 0:
        return pure
    log_delta = np.log(rounded_down(delta))
    probes = np.geomspace(counts.min(), counts.max(), _PROBES)[:, None]

    def objective(lam: Array) -> Array:
        return conversion.epsilon(lam, probes * curve.cgf(lam), log_delta, FLOATS)

    with np.errstate(all="ignore"):
        found = least(objective, curve.integral, nothing_beyond(curve, probes[:, 0])).where
        lam = np.union1d(_between(found.min(), found.max(), curve.integral), found)
        slope, height = curve.cgf(lam) / lam, conversion.epsilon(lam, 0.0, log_delta, FLOATS)
        for _ in range(0 if curve.integral else _REFINEMENTS):  # between real orders that won, and their neighbours
            new = _refined(lam, np.unique(lowest_lines(slope, height, counts)))
            place = np.argsort(np.append(lam, new), kind="stable")
            slope = np.append(slope, curve.cgf(new) / new)[place]
            height = np.append(height, conversion.epsilon(new, 0.0, log_delta, FLOATS))[place]
            lam = np.append(lam, new)[place]
        line = lowest_lines(slope, height, counts)
        value = slope[line] * counts + height[line]
    return np.maximum(np.fmin(value, pure), 0.0)


def _between(low: float, high: float, integral: bool) -> Array:
    """Every integer up to 512 and then ever wider steps; real arguments too, unless the curve has corners at integers."""
    steps = np.geomspace(low, high, 2 + int(np.log(high / low) / np.log(_SPACING)))
    integers = np.arange(np.floor(low), min(np.ceil(high), _DENSE) + 1)
    dense = integers if integral else np.union1d(steps[steps < _DENSE], integers[integers > 0])
    return np.union1d(dense, np.floor(steps[steps >= _DENSE]))


def _refined(lam: Array, used: Array) -> Array:
    """Three arguments between each used one and each of its neighbours."""
    left = np.unique(np.concatenate([used[used > 0] - 1, used[used < lam.size - 1]]))
    inner = lam[left, None] + np.diff(lam)[left, None] * np.array([0.25, 0.5, 0.75])
    return np.setdiff1d(inner, lam)
