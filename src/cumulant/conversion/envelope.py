"""epsilon for many round counts at once: at each order epsilon is a line in k, so epsilon(k) is their lower envelope."""

from __future__ import annotations

import numpy as np

from cumulant.conversion.formulas import Conversion
from cumulant.conversion.queries import epsilon
from cumulant.curves.curve import Curve, compose
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.hull import lower_envelope
from cumulant.numerics.search import least

_DENSE = 512
_SPACING = 1.0025


def epsilon_over(curve: Curve, counts: Array, delta: float, conversion: Conversion) -> Array:
    """The least epsilon proved for each number of repetitions of the curve, at one delta."""
    if not counts.size or delta >= 1:
        return np.zeros(counts.shape)
    if curve.slack() > 0:  # what is left of delta differs from count to count, so there are no lines
        asked = np.array([delta])
        return np.array([float(epsilon(compose({curve: int(k)}), asked, conversion).value[0]) for k in counts])
    pure = counts * float(curve.pure())
    if delta == 0:
        return pure
    log_delta = np.log(delta)
    ends = np.array([[counts.min()], [counts.max()]])

    def objective(lam: Array) -> Array:
        return conversion.epsilon(lam, ends * curve.cgf(lam), log_delta, FLOATS)

    with np.errstate(all="ignore"):
        # More rounds want smaller orders: the best order of every count lies between those of the two ends.
        low, high = np.sort(least(objective, curve.integral).where)
        lam = _between(low, high, curve.integral)
        slope = curve.cgf(lam) / lam
        height = conversion.epsilon(lam, 0.0, log_delta, FLOATS)
    known = np.isfinite(slope)
    return np.maximum(np.minimum(lower_envelope(slope[known], height[known], counts), pure), 0.0)


def _between(low: float, high: float, integral: bool) -> Array:
    """Every integer up to 512 and then ever wider steps; real arguments too, unless the curve has corners at integers."""
    steps = np.geomspace(low, high, 2 + int(np.log(high / low) / np.log(_SPACING)))
    integers = np.arange(np.floor(low), min(np.ceil(high), _DENSE) + 1)
    dense = integers if integral else np.union1d(steps[steps < _DENSE], integers[integers > 0])
    return np.union1d(dense, np.floor(steps[steps >= _DENSE]))
