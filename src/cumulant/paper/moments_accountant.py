"""The accountant that the paper improves on: K at the integers 1 … lambda_max, added up.

Item 37, Section 3.3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cumulant import domains
from cumulant.lock import Lock
from cumulant.mechanisms.mechanism import Expression
from cumulant.numerics.rounding import FEW


class MomentsAccountant:
    """An accountant that keeps lambda_max numbers and adds as many with every mechanism.

    O(lambda_max) in time and in space.

    For comparison only. `Accountant` keeps mechanisms and counts, composes in constant time and asks any real order; this one
    misses the best order where it is fractional or above lambda_max. Its epsilon is valid, because every order is.

    >>> import cumulant as cm
    >>> old = MomentsAccountant(highest=32)
    >>> old.compose(cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001), times=600_000, bound="theorem9")
    >>> round(old.epsilon(delta=1e-8), 3), old.stored  # the best order is 18
    (2.028, 32)
    """

    __slots__ = ("_cgf", "_lam", "_lock")

    def __init__(self, highest: int = 64) -> None:
        self._lam = np.arange(1.0, domains.times(highest) + 1)
        self._cgf = np.zeros(self._lam.size)
        self._lock = Lock()

    @property
    def stored(self) -> int:
        """Return how many numbers it keeps, whatever was composed."""
        return self._cgf.size

    def compose(self, expression: Expression, times: int = 1, bound: str = "best") -> None:
        """Add the cumulant generating function of a run at every integer, rounded up."""
        added = domains.times(times) * expression.cgf(self._lam.tolist(), bound=bound)
        with self._lock:
            self._cgf = np.nextafter(self._cgf + np.nextafter(added, math.inf), math.inf)

    def epsilon(self, delta: Any) -> float:
        """Compute eq. (3) over the integers: min (K(lambda) + log(1/delta)) / lambda."""
        log_delta = math.log(domains.DELTA.check("delta", delta))
        return float(np.min((self._cgf - log_delta) / self._lam)) * (1 + FEW)
