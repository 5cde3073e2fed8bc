"""Special functions that several formulas share, in every arithmetic that needs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.enclosure import BOUNDED


def log_excess(x: Any, on: Arithmetic = FLOATS) -> Array:
    """Return log(e^x - 1 - x), also where e^x overflows; -inf at 0.

    >>> float(log_excess(1000.0))
    1000.0
    """
    if on.exact:
        return on.log(on.excess(x))
    if on.enclosing:
        return BOUNDED.log_excess(x)
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        far = x + np.log1p(-(1 + x) * np.exp(-x))
        return np.where(x == np.inf, np.inf, np.where(x > 30, far, np.log(FLOATS.excess(np.minimum(x, 30.0)))))
