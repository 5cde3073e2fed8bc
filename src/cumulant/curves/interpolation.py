"""K between the orders at which it is remembered, in floats; only searches use it.

No answer rests on it.

Every question looks for its best order among all of them, so that two questions hardly ever ask for the same ones. But K is
smooth: between two orders of the scan K / lambda is given by its values at sixteen Chebyshev points, the same for every
question, and those are remembered by each of the curves that are added up. What the last coefficients leave open, as where
the smallest of several bounds changes, is taken off, so that a search looks there too; it then halves the panel where it has
ended, and searches again, until nothing is open at the order that it ends at. No hypothesis about K is used: whatever that
order is, the curve itself is evaluated there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial import chebyshev

from cumulant.curves.curve import Curve, Wrapped
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.search import SCAN

NODES = 16
"""Chebyshev nodes of a panel; no answer rests on them."""

POINTS = chebyshev.chebpts1(NODES)
"""The Chebyshev points on [-1, 1]."""

COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(POINTS, NODES - 1))
"""The matrix from values at the points to Chebyshev coefficients."""

LAST_COEFFICIENTS = 3
"""The last coefficients, from which the error is estimated."""

_SETTLED = 1e-12
"""Relative error of K / lambda with which a search may end; answers do not rest on it."""

_MEASURED = 1e-9
"""Relative error of K / lambda with which a search may end for a user's function, whose integrals are no more
accurate than about 1e-11 (measured)."""

_FEW = 4
"""Orders beyond the scan that are evaluated as they come; the search widens by so many at once."""

_NARROW = 1 / 32
"""Panels this narrow, as a part of their order, are not halved: what is asked there is evaluated as it comes."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """K / lambda from `low` to `high` by its coefficients, and their error.

    There are none where it is not interpolated.
    """

    low: float
    high: float
    coefficients: Array | None = None
    open: float = 0.0

    def divergence(self, lam: Array) -> Array:
        """Return floats below K / lambda, if the last coefficients measure the error of the series."""
        assert self.coefficients is not None
        place = (2 * lam - self.low - self.high) / (self.high - self.low)
        return np.asarray(chebyshev.chebval(place, self.coefficients) - self.open)


@dataclass(frozen=True, slots=True)
class ChebyshevCurve(Wrapped):
    """A curve for one search, interpolated between the orders at which it is remembered."""

    _panels: dict[tuple[float, float], _Panel] = field(default_factory=dict, compare=False, repr=False)
    _halved: set[tuple[float, float]] = field(default_factory=set, compare=False, repr=False)

    @property
    def _tolerance(self) -> float:
        return _MEASURED if self.estimated else _SETTLED

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on is not FLOATS or np.array_equal(lam, SCAN):
            return self.curve.cgf(lam, on)
        value, cell = np.empty(lam.shape), np.asarray(np.searchsorted(SCAN, lam))
        far = cell == SCAN.size
        if far.sum() > _FEW:  # a search that widens asks for few orders, one that refines for many
            cell[far] += np.floor(np.log2(lam[far] / SCAN[-1])).astype(cell.dtype)
        for right in np.unique(cell).tolist():
            here = cell == right
            known = 0 < right < SCAN.size or (right >= SCAN.size and far.sum() > _FEW)
            value[here] = self._on_panel(*_ends(right), lam[here]) if known else self.curve.cgf(lam[here])
        return value

    def _on_panel(self, low: float, high: float, lam: Array) -> Array:
        """Return K at these orders, all of them between the two."""
        if (low, high) in self._halved:
            middle = (low + high) / 2
            value, left = np.empty(lam.shape), lam < middle
            for side, ends in ((left, (low, middle)), (~left, (middle, high))):
                if side.any():
                    value[side] = self._on_panel(*ends, lam[side])
            return value
        panel = self._panel(low, high)
        return self.curve.cgf(lam) if panel.coefficients is None else lam * panel.divergence(lam)

    def _panel(self, low: float, high: float) -> _Panel:
        if (low, high) not in self._panels:
            self._panels[low, high] = self._new(low, high)
        return self._panels[low, high]

    def _new(self, low: float, high: float) -> _Panel:
        nodes = (low + high) / 2 + (high - low) / 2 * POINTS
        divergence = self.curve.cgf(nodes) / nodes
        if not np.isfinite(divergence).all():
            return _Panel(low, high)
        coefficients = COEFFICIENTS @ divergence
        left_open = NODES * float(np.abs(coefficients[-LAST_COEFFICIENTS:]).max())
        settled = left_open <= self._tolerance * divergence.min()
        return (
            _Panel(low, high)
            if not settled and high - low < _NARROW * low
            else _Panel(low, high, coefficients, left_open)
        )

    def settled(self, lam: float) -> bool:
        """True if nothing is open at this order; otherwise the panel around it was just halved."""
        right = int(np.searchsorted(SCAN, lam))
        if right == SCAN.size and lam < math.inf:
            right += math.floor(math.log2(lam / SCAN[-1]))
        low, high = _ends(right) if right > 0 and lam < math.inf else (lam, lam)
        asked = (low, high) in self._panels or (low, high) in self._halved
        if lam in (low, high) or not asked:  # known, or evaluated as it comes
            return True
        while (low, high) in self._halved:
            middle = (low + high) / 2
            low, high = (low, middle) if lam < middle else (middle, high)
        panel = self._panel(low, high)
        if panel.coefficients is None or panel.open <= self._tolerance * panel.divergence(np.array([lam]))[0]:
            return True
        self._halved.add((low, high))
        return False


def _ends(right: int) -> tuple[float, float]:
    """Return the orders of the scan around this cell; beyond its end cells are octaves."""
    if right < SCAN.size:
        return float(SCAN[right - 1]), float(SCAN[right])
    low = float(SCAN[-1]) * 2.0 ** (right - SCAN.size)
    return low, 2 * low


def chebyshev_curve(curve: Curve) -> ChebyshevCurve | None:
    """Return the curve as a search may ask it; None if its values are not remembered."""
    return ChebyshevCurve(curve) if curve.remembered and not curve.integral else None
