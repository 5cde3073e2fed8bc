"""The curve of sparse vectors with Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.points import Points, hull_of_points
from cumulant.errors import HypothesisError
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.enclosure import BOUNDED, FAR, FLOOR, NEAR, Enclosure
from cumulant.numerics.rounding import U

_WIDTH = 2.0**-8
"""Half of a cell."""

_REACH = 9.5
"""Standard deviations left of 0 at which the cells begin; what lies beyond is part of the first cell."""

_LARGEST = 600
"""Largest square of order times shift; beyond it e^K is no float."""

_BITS = 64
"""Bits of the balls from which tails are rounded."""

_APART = 2.0**-8
"""Distance of the logarithms of the ratios at which the largest of all cells is taken."""

ORDERS = tuple(Fraction(x) for x in ("1.5", "2", "3", "4", "5", "6", "8", "10", "12", "16", "20", "32", "64", "128"))
"""The orders at which the curve is evaluated; between them chords of K hold."""


def gaussian_sparse_vector(threshold: Fraction, query: Fraction, hits: int, queries: int) -> Points:
    """Return log M = a(a-1) t^2/2 + log V for sparse vectors with Gaussian noise.

    V_{j,h} = sup_x [g(x) V_{j-1,h-1} + F(x) V_{j-1,h}], V_{0,h} = V_{j,0} = 1.

    g(x) = (1-F(x))^a (1-F(x+u))^{1-a}, F the normal distribution function, t = `threshold` and u = `query` the shifts in
    units of the noise (docs/mechanisms/sparse-vector.md).
    """
    known = [order for order in ORDERS if order * order * query**2 < _LARGEST] or ORDERS[:1]
    if Fraction(known[0] ** 2 * query**2) >= _LARGEST:
        raise HypothesisError(
            "noise this small against the sensitivity of the queries protects nothing; use more noise"
        )
    tails = _Tails(query, _REACH + float((known[-1] - 1) * query))
    values = []
    for order in known:
        log_value = Fraction(_log_value(_Largest(*tails.corners(order)), hits, queries))
        values.append(order * threshold**2 / 2 + log_value / (order - 1))
    return hull_of_points(known, values)


class _Tails:
    """log(1-F) in the middle of each cell from -9.5 to `end`, and shifted by u, with errors.

    The errors are proved.
    """

    def __init__(self, query: Fraction, end: float) -> None:
        self.query = query
        cells = math.ceil((end + _REACH) / (2 * _WIDTH))
        self.middle = -_REACH + _WIDTH * (2 * np.arange(cells) + 1)  # exact: all of them are multiples of the width
        self.start, self.end = Fraction(-_REACH), Fraction(-_REACH + 2 * _WIDTH * cells)
        with BALLS.at(_BITS):
            self.here = BOUNDED.of_balls([_log_tail(BALLS.number(Fraction(x))) for x in self.middle.tolist()])
            u = BALLS.number(query)
            self.there = BOUNDED.of_balls([_log_tail(BALLS.number(Fraction(x)) + u) for x in self.middle.tolist()])

    def corners(self, order: Fraction) -> tuple[Array, Array]:
        """Return (G, H) such that g(x) r + F(x) is at most G r + H for one of them.

        This holds for each x and each r >= 0.

        Below all cells g is at most (1-F(x+u))^{1-a}, above them at most e^{a(a-1)u^2/2} (1 - F(x - (a-1)u)).
        """
        ends = np.array(self._ends(order))
        found = [*((g.upper(), h.upper()) for g, h in self.cells(order)), (ends[:, 0], ends[:, 1])]
        first, second = (np.concatenate(each) for each in zip(*found, strict=True))
        rank = np.argsort(second, kind="stable")
        first, second = first[rank], second[rank]
        kept = np.maximum.accumulate(first[::-1])[::-1] == first  # no other has both larger
        return first[kept], second[kept]

    def cells(self, order: Fraction) -> list[tuple[Enclosure, Enclosure]]:
        """Return (G, H) in each cell c - w .. c + w, once for each of its ends.

        log g is at most log g(c) + s t + (a-1) t^2/2, s = (a-1) hazard(c+u) - a hazard(c), because the hazard f/(1-F) has a
        slope between 0 and 1; with e^z <= 1 + z + z^2 for z <= 1, and F to its second order, what is left is linear in t and
        largest at an end.
        """
        a, w, on = BOUNDED.number(order), _WIDTH, BOUNDED
        log_density = self._log_density(Fraction(0))
        density = on.exp(log_density)
        slope = (a - 1) * on.exp(self._log_density(self.query) - self.there) - a * on.exp(log_density - self.here)
        bend = _second(a - 1)
        z = abs(slope) * w + bend
        g, rest = on.exp(a * self.here + (1 - a) * self.there), bend + z * z
        # |f'| <= |x| f(x) <= (|c| + w) f(c) e^{(|c| + w) w}
        size = Enclosure(np.abs(self.middle) + w)
        below, curved = -on.expm1(self.here), _second(density * on.exp(size * w) * size)
        return [(g * (1 + sign * (slope * w) + rest), below + sign * (density * w) + curved) for sign in (1, -1)]

    def _log_density(self, shift: Fraction) -> Enclosure:
        x = self.middle + BOUNDED.number(shift)
        return -(x * x) / 2 - _LOG_ROOT

    def _ends(self, order: Fraction) -> list[tuple[float, float]]:
        with BALLS.at(_BITS):
            a, u, x = BALLS.number(order), BALLS.number(self.query), BALLS.number(self.end)
            start = BALLS.number(self.start)
            first = ((1 - a) * _log_tail(start + u)).exp(), -_log_tail(start).expm1()
            last = (a * (a - 1) * u * u / 2 + _log_tail(x - (a - 1) * u)).exp(), BALLS.number(1)
            return [(_above(g), _above(f)) for g, f in (first, last)]


class _Largest:
    """S(r) = max over corners of G r + H, convex in r.

    Between the r whose logarithms are multiples of 2^-8 its chords bound it.
    """

    def __init__(self, g: Array, h: Array) -> None:
        self.g, self.h = g, h
        self.known: dict[int, float] = {}

    def at(self, place: int) -> float:
        """Return S(r) rounded up at log r = place / 256, which is an exact float."""
        if place not in self.known:
            r = math.exp(place * _APART)
            self.known[place] = float(np.max(self.g * r + self.h)) * (1 + NEAR + 4 * U) + FLOOR
        return self.known[place]

    def log(self, log_ratio: float) -> float:
        """Return log S(e^log_ratio) rounded up: S grows with r, and lies below the chord."""
        place = math.floor(log_ratio / _APART)
        share = math.expm1(log_ratio - place * _APART) / math.expm1(_APART) * (1 + 2 * FAR + 4 * U)
        low, high = self.at(place), self.at(place + 1)
        return math.log((low + min(share, 1.0) * (high - low)) * (1 + 4 * U)) * (1 + NEAR + U)


def _log_value(largest: _Largest, hits: int, queries: int) -> float:
    """log V of all hits and queries."""
    logs = [0.0] * (hits + 1)  # for each number of hits, of the queries so far
    for _ in range(queries):
        before = logs.copy()
        for h in range(1, hits + 1):
            ratio = before[h - 1] - before[h]
            grown = largest.log(ratio + U * abs(ratio))
            logs[h] = before[h] + max(grown, 0.0)
            logs[h] += 2 * U * logs[h]
    return logs[hits]


def _second(slope: Enclosure) -> Enclosure:
    """Return how much a slope that changes this fast adds up to at an end of a cell."""
    return slope * (_WIDTH**2 / 2)


def _log_tail(x: Any) -> Any:
    """log(1 - F(x)) in balls."""
    root = BALLS.number(2).sqrt()
    return ((x / root).erfc() / 2).log() if x > 0 else (-(-x / root).erfc() / 2).log1p()


def _above(ball: Any) -> float:
    return float(BOUNDED.of_balls([ball]).upper()[0])


_LOG_ROOT = Enclosure(math.log(2 * math.pi) / 2, 4 * U)
"""log sqrt(2 pi)."""
