"""What Theorem W asks of a reference: G(x0) = INT_{x0}^inf e^{-nx} H(x) dx of every triple, H its time value, from above.

f_n(y) = INT_1^y (y - s) s^{-n-1} ds; for a law of ratios G(x0) = s0^{1-n} [E f_n(t/s0) - f_n(1/s0)], s0 = e^{x0}. All sums have
positive terms: calls above 1, and puts below it (docs/test-orders.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.bounds.laplace_budget import largest_square
from cumulant.numerics.arithmetic import BALLS, FLOATS, Array
from cumulant.numerics.rounding import LONG, MANY, U
from cumulant.pairs.extremes import Extremes

_BITS = 128


def bent(order: float, gap: Array) -> Array:
    """n f_n(e^d), d >= 0: [(n-1) excess(d) + excess(-(n-1) d)] / (n-1), excess(y) = e^y - 1 - y; n is not 1."""
    less = order - 1
    return np.asarray(FLOATS.excess(gap) + FLOATS.excess(-less * gap) / less)


def kernels(order: float, starts: Array, losses: Array) -> Array:
    """INT_{x0}^inf e^{-nx} H dx of a unit mass at each loss, by rows of x0, where the masses and the rest at 0 have the mean 1.

    A loss l > 0 adds e^{(1-n) x0} f_n(e^{l - x0}) at x0 >= 0, and as much as at 0 below; a loss -l < 0 adds, below 0,
    INT_0^U (e^{(n-1)u} - e^{nu - l}) du with U = min(-x0, l).
    """
    above = np.maximum(starts, 0.0)[:, None]
    gap = np.maximum(losses - above, 0.0)
    calls = np.exp((1 - order) * above) * bent(order, gap) / order
    reach = np.minimum(np.maximum(-starts, 0.0)[:, None], np.maximum(-losses, 0.0))
    puts = (
        np.expm1((order - 1) * reach) / (order - 1) - np.exp(np.minimum(losses, 0.0)) * np.expm1(order * reach) / order
    )
    return np.asarray(np.where(losses > 0, calls, np.maximum(puts, 0.0)))


class Demand(ABC):
    """All triples of one kind of round."""

    __slots__ = ()

    @property
    @abstractmethod
    def top(self) -> float:
        """A loss that no triple exceeds in size."""

    def cells(self, fewest: int) -> int:
        """How many cells of a lattice, about so many, suit it."""
        return fewest

    @abstractmethod
    def at(self, order: float, starts: Array) -> Array:
        """Not below G of any triple, at increasing x0 from -top or less up to top, 0 among them."""


@dataclass(frozen=True, slots=True)
class Reports(Demand):
    """The extreme triples of reports: the largest of their sums."""

    extremes: Extremes
    rate: Fraction

    def _triples(self) -> list[tuple[Array, Array]]:
        with BALLS.at(_BITS):
            found = self.extremes.triples(self.extremes.odds_ball(), BALLS.number(self.rate))
            return [
                (np.array([float(t.log().mid()) for _, t, _ in atoms]), np.array([float(m.mid()) for _, _, m in atoms]))
                for atoms in found
            ]

    @property
    def top(self) -> float:
        return max(float(np.max(np.abs(losses))) for losses, _ in self._triples()) * (1 + MANY)

    def cells(self, fewest: int) -> int:
        """So that B lies close to a lattice point: splitting it between two costs about w (1 - w) h^2."""
        low, high = np.sort(np.abs(self._triples()[0][0]))
        tried = np.arange(fewest, 2 * fewest)
        share = (low / high * tried) % 1.0
        return int(tried[np.argmin((share * (1 - share) + 0.02) / tried.astype(float) ** 2)])

    def at(self, order: float, starts: Array) -> Array:
        # a loss that is a little larger in size demands more
        sums = [kernels(order, starts, losses * (1 + MANY)) @ masses for losses, masses in self._triples()]
        least = min(float(np.min(np.abs(losses))) for losses, _ in self._triples())
        return np.asarray(np.max(sums, axis=0) * (1 + MANY + 64 * U / least))


@dataclass(frozen=True, slots=True)
class Budget(Demand):
    """Laplace noise: 0 <= H <= that of the profile and INT H ds <= beta (Theorem V), for every x0 the best filling.

    With mu = e^{-(n+1) x2}, for every x2 >= x0, S(x0) <= mu beta + INT_{x0}^{x2} (e^{-nx} - mu e^x) H dx. In s = e^x both
    s^{-n-1} and, on each side of 1, H are convex, so on each cell they lie below their chords.
    """

    shift: Fraction
    query: str
    rate: Fraction

    @property
    def top(self) -> float:
        return math.log1p(float(self.rate) * math.expm1(float(self.shift))) * (1 + MANY)

    def _time_value(self, x: Array) -> Array:
        t, g = float(self.shift), float(self.rate)
        base = np.log1p(np.expm1(np.abs(x)) / g)
        call = g * np.maximum(-np.expm1(np.minimum(base - t, 0.0) / 2), 0.0) * (1 + MANY) + g * (1 + t) * 1e-15
        return np.asarray(np.where(x >= 0, call, np.exp(np.minimum(x, 0.0)) * call))

    def at(self, order: float, starts: Array) -> Array:
        square = largest_square(self.shift, self.query)
        if square is None:
            return np.full(starts.shape, np.inf)
        g = float(self.rate)
        budget = g * g * square / (2 * float(1 - self.rate)) * (1 + MANY)
        s, H = np.exp(starts), self._time_value(starts)
        weight, width = np.exp(-(order + 1) * starts), np.diff(s)
        first, second = H[:-1], H[1:]
        whole = width * (
            (weight[:-1] * first + weight[1:] * second) / 3 + (weight[:-1] * second + weight[1:] * first) / 6
        )
        plain = width * (first + second) / 2
        N, E = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (whole, plain))
        filled = weight * budget + (N[:, None] - N) - weight * (E[:, None] - E)
        later = np.arange(starts.size) >= np.arange(starts.size)[:, None]
        best = np.min(np.where(later, filled, np.inf), axis=1)
        # differences of sums lose a part of the sums
        best = best + LONG * (N + weight * E)
        return np.asarray(np.minimum(best, N) * (1 + MANY) + 1e-300)
