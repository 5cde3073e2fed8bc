"""Proposition 35: the largest CGF below an upper curve, on a scan of orders (K_M <= F <= K, E-8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.hull import lower_hull
from cumulant.numerics.search import SCAN


@dataclass(frozen=True, slots=True)
class Projected(Curve):
    """The smaller of the curve and the lower convex hull of (0, 0) and its values on the scan.

    The true K is convex, is 0 at 0 and lies below the curve, so it lies below every chord; past the last node nothing is
    extrapolated.
    """

    curve: Curve
    _hull: dict[str, Array] = field(default_factory=dict, compare=False, repr=False)

    @property
    def summed(self) -> bool:  # type: ignore[override]
        return self.curve.summed

    def _corners(self) -> tuple[Array, Array]:
        """The corners of the hull, found in floats; any choice of corners is valid."""
        if not self._hull:
            value = self.curve.cgf(SCAN)
            known = np.isfinite(value)
            x, y = np.append(0.0, SCAN[known]), np.append(0.0, value[known])
            corners = lower_hull(x, y)
            self._hull["x"], self._hull["y"] = x[corners], y[corners]
        return self._hull["x"], self._hull["y"]

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        x, y = self._corners()
        value = self.curve._cgf(lam, on)
        if not on.exact:
            return np.fmin(value, np.interp(lam, x, y, right=np.inf))
        exact = [Fraction(node) for node in x]
        inside = [i for i, point in enumerate(lam) if point <= exact[-1]]
        right = {i: max(1, int(np.searchsorted(np.array(exact, dtype=object), lam[i]))) for i in inside}
        for i in inside:
            left_node, right_node = exact[right[i] - 1], exact[right[i]]
            ends = self.curve._cgf(np.array([node for node in (left_node, right_node) if node], dtype=object), on)
            low = ends[0] if left_node else on.number(0)
            share = on.number((lam[i] - left_node) / (right_node - left_node))
            value[i] = on.minimum(value[i], low + share * (ends[-1] - low))
        return value

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.curve.kl(on)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.curve.pure(on)

    def slack(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.curve.slack(on)
