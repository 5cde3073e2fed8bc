"""Proposition 35: the largest CGF below an upper curve, on a scan of orders (K_M <= F <= K, E-8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Wrapped
from cumulant.numerics.arithmetic import Arithmetic, Array, Scalar
from cumulant.numerics.hull import lower_hull
from cumulant.numerics.search import SCAN


@dataclass(frozen=True, slots=True)
class Projected(Wrapped):
    """The smaller of the curve and the lower convex hull of (0, 0) and its values on the scan.

    The true K is convex, is 0 at 0 and lies below the curve, so it lies below every chord; past the last node nothing is
    extrapolated.
    """

    _hull: list[tuple[Array, Array]] = field(default_factory=list, compare=False, repr=False)

    def _corners(self) -> tuple[Array, Array]:
        """The corners of the hull, found in floats; any choice of corners is valid."""
        if not self._hull:
            self._keep_hull(self.curve.cgf(SCAN))
        return self._hull[0]

    def _keep_hull(self, value: Array) -> None:
        known = np.isfinite(value)
        x, y = np.append(0.0, SCAN[known]), np.append(0.0, value[known])
        corners = lower_hull(x, y)
        self._hull.append((x[corners], y[corners]))

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            return np.array([self._ball(point, on) for point in lam], dtype=object)
        if on.enclosing:
            return self._enclosures(lam, on)
        if self._hull or not lam.size or lam.min() > SCAN[-1]:  # past the hull nothing is projected
            value = self.curve._cgf(lam, on)
        else:  # one call for the scan and the question: an integral costs the same for few orders as for many
            both = self.curve.cgf(np.concatenate([SCAN, lam]))
            self._keep_hull(both[: SCAN.size])
            value = both[SCAN.size :]
        return np.fmin(value, np.interp(lam, *self._hull[0], right=np.inf)) if self._hull else value

    def _enclosures(self, lam: Array, on: Arithmetic) -> Array:
        """The curve itself, or the chord of two enclosed corners where that is lower in floats."""
        if not lam.size or lam.min() > SCAN[-1]:  # past the hull nothing is projected
            return self.curve.cgf(lam, on)
        x, y = self._corners()
        chorded = np.interp(lam, x, y, right=np.inf) < (1 - 1e-12) * self.curve.cgf(lam)
        value = on.asarray(np.empty(lam.shape))
        value[~chorded] = self.curve.cgf(lam[~chorded], on)
        if chorded.any():
            right = np.searchsorted(x, lam[chorded])
            ends, place = np.unique([right - 1, right], return_inverse=True)
            heights = on.asarray(np.zeros(ends.shape))
            heights[x[ends] > 0] = self.curve.cgf(x[ends[x[ends] > 0]], on)
            low, high = (heights[each] for each in place.reshape(2, -1))
            start = on.asarray(x[right - 1])
            share = (on.asarray(lam[chorded]) - start) / (on.asarray(x[right]) - start)
            value[chorded] = low + share * (high - low)
        return value

    def _ball(self, lam: Fraction, on: Arithmetic) -> Scalar:
        """The curve itself, or the chord of two certified corners where that is lower in floats."""
        x, y = self._corners()
        here = np.array([lam], dtype=object)
        right = int(np.searchsorted(x, float(lam)))
        if right in (0, x.size) or not np.interp(float(lam), x, y) < (1 - 1e-12) * self.curve.cgf([float(lam)])[0]:
            return self.curve._cgf(here, on)[0]
        left_node, right_node = Fraction(x[right - 1]), Fraction(x[right])
        low = self.curve._cgf(np.array([left_node], dtype=object), on)[0] if left_node else on.number(0)
        high = self.curve._cgf(np.array([right_node], dtype=object), on)[0]
        return low + on.number((lam - left_node) / (right_node - left_node)) * (high - low)
