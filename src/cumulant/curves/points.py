"""Curves known at some orders only: chords of K between them, nothing beyond them.

Corollary 10 gives the chords (E-8, E-14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.hull import lower_hull


def hull_of_points(orders: Sequence[Fraction], values: Sequence[Fraction]) -> Points:
    """Return bounds of the divergence at increasing orders above 1, projected.

    The result is the largest K below them all (Proposition 35).

    The true K is convex and 0 at 0, so it lies below the lower convex hull of (0, 0) and the given points; those above the
    hull say nothing. Exact, and the values of what is left grow with the order.

    >>> hull_of_points([Fraction(2), Fraction(3), Fraction(4)], [Fraction(3, 10), Fraction(3, 100), Fraction(1)])
    Points(orders=(Fraction(3, 1), Fraction(4, 1)), values=(Fraction(3, 100), Fraction(1, 1)), known_kl=None, known_pure=None)
    """
    lam = [order - 1 for order in orders]
    cgf = [x * value for x, value in zip(lam, values, strict=True)]
    start = Fraction(0)
    corners = lower_hull(np.array([start, *lam], dtype=object), np.array([start, *cgf], dtype=object))[1:] - 1
    return Points(tuple(orders[i] for i in corners), tuple(values[i] for i in corners))


@dataclass(frozen=True, slots=True)
class Points(Curve):
    """K at given orders, chords between them, and nothing past the last one.

    Between two orders K, being convex with K(0) = 0, lies below the chord. Past the last one nothing is known, except
    that K grows at most with slope `pure` if that is finite. The orders are finite and increasing, above 1, and the
    values do not fall; an unknown `kl` is bounded by the first value, because the Rényi divergence grows with the
    order.
    """

    orders: tuple[Fraction, ...]
    values: tuple[Fraction, ...]
    known_kl: Fraction | None = None
    known_pure: Fraction | None = None

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        exact_lam = [Fraction(0)] + [order - 1 for order in self.orders]
        node_lam = on.asarray(exact_lam)
        node_cgf = on.asarray([Fraction(0)] + [(a - 1) * v for a, v in zip(self.orders, self.values, strict=True)])
        known = exact_lam if on.exact else [float(x) for x in exact_lam]
        right = np.searchsorted(np.array(known, dtype=lam.dtype), lam, side="left")
        inside = right < len(exact_lam)
        right = np.minimum(right, len(exact_lam) - 1)
        x0, x1, y0, y1 = node_lam[right - 1], node_lam[right], node_cgf[right - 1], node_cgf[right]
        x = on.asarray(lam)
        chord = y0 + (x - x0) / (x1 - x0) * (y1 - y0)
        beyond = y1 + (x - x1) * self.pure(on) if self.known_pure is not None else x * 0 + on.number(np.inf)
        return np.where(inside, chord, beyond)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.values[0] if self.known_kl is None else self.known_kl)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf if self.known_pure is None else self.known_pure)
