"""Constraints on the reference of Theorem W.

They are upper bounds on G(x0) = INT_{x0}^inf e^{-nx} H(x) dx of every triple.

H is the time value of a triple. f_n(y) = INT_1^y (y - s) s^{-n-1} ds; for a law of ratios
G(x0) = s0^{1-n} [E f_n(t/s0) - f_n(1/s0)], s0 = e^{x0}: calls above 1, and puts below it (docs/test-orders.md). The caller
holds the lock of the balls and chooses their precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.bounds.laplace_budget import largest_square
from cumulant.numerics.arithmetic import BALLS, FLOATS, Array, Scalar
from cumulant.numerics.rounding import at_least, rounded_up
from cumulant.pairs.worst_triples import Extremes

BITS = 192
"""Precision of the balls, in bits; derived: near the top G is about 1e-24 of its parts, whose range is that of floats."""


def scaled_f(order: float, gap: Array) -> Array:
    """Return n f_n(e^d) for d >= 0 in floats.

    It is [(n-1) excess(d) + excess(-(n-1) d)] / (n-1), excess(y) = e^y - 1 - y; n is not 1.
    """
    less = order - 1
    return np.asarray(FLOATS.excess(gap) + FLOATS.excess(-less * gap) / less)


def kernels(order: float, starts: Array, losses: Array) -> Array:
    """Return INT_{x0}^inf e^{-nx} H dx of a unit mass at each loss, one row per x0.

    Floats suffice, because the values only propose laws.

    A loss l > 0 adds e^{(1-n) x0} f_n(e^{l - x0}) at x0 >= 0, and as much as at 0 below; a loss -l < 0 adds, below 0,
    INT_0^U (e^{(n-1)u} - e^{nu - l}) du with U = min(-x0, l). In floats, for proposals.
    """
    above = np.maximum(starts, 0.0)[:, None]
    gap = np.maximum(losses - above, 0.0)
    calls = np.exp((1 - order) * above) * scaled_f(order, gap) / order
    reach = np.minimum(np.maximum(-starts, 0.0)[:, None], np.maximum(-losses, 0.0))
    puts = (
        np.expm1((order - 1) * reach) / (order - 1) - np.exp(np.minimum(losses, 0.0)) * np.expm1(order * reach) / order
    )
    return np.asarray(np.where(losses > 0, calls, np.maximum(puts, 0.0)))


def integrals(order: float, starts: Array, atoms: Sequence[tuple[Scalar, Scalar]]) -> list[Scalar]:
    """Return INT_{x0}^inf e^{-nx} H dx of all atoms (loss, mass) in balls, at increasing x0.

    Sums run over the atoms, because each kernel is a sum of products.

    The calls beyond x0 are [ e^{-n x0} E e^l - n/(n-1) e^{(1-n) x0} E 1 + E e^{(1-n) l} / (n-1) ] / n. Where a ball does not
    tell whether a loss is beyond x0 what is added is at least its share, so that balls of losses give an upper bound.
    """
    n = BALLS.number(order)
    zero = BALLS.number(0)
    rising = sorted(atoms, key=lambda atom: float(atom[0].mid()))
    up, down = [atom for atom in rising if atom[0] > 0], [atom for atom in rising if not atom[0] > 0]
    found: list[Scalar] = []
    ratio = mass = power = zero

    def calls(x0: Scalar) -> Scalar:
        nonlocal ratio, mass, power
        while up and not up[-1][0] <= x0:
            loss, m = up.pop()
            ratio, mass, power = ratio + m * loss.exp(), mass + m, power + m * ((1 - n) * loss).exp()
        sinking = (-n * x0).exp()
        return (sinking * ratio - n / (n - 1) * sinking * x0.exp() * mass + power / (n - 1)) / n

    middle = int(np.searchsorted(starts, 0.0))
    for start in starts[middle:][::-1]:
        found.append(calls(BALLS.number(float(start))))
    all_calls = calls(zero)

    def put(ratio: Scalar, mass: Scalar, x0: Scalar) -> Scalar:
        """Return INT_{x0}^0 e^{-nx} (e^x mass - ratio) dx, the value of a put."""
        power = (-n * x0).exp()
        return (power * x0.exp() - 1) / (n - 1) * mass - (power - 1) / n * ratio

    closed = [zero]  # those beyond x0, from the last one on
    for loss, m in reversed(down):
        closed.append(closed[-1] + put(m * loss.exp(), m, loss))
    below: list[Scalar] = []
    opened, ratio, mass = 0, zero, zero
    for start in starts[:middle]:
        x0 = BALLS.number(float(start))
        while opened < len(down) and down[opened][0] <= x0:
            loss, m = down[opened]
            opened, ratio, mass = opened + 1, ratio + m * loss.exp(), mass + m
        below.append(all_calls + closed[len(down) - opened] + put(ratio, mass, x0))
    return below + found[::-1]


class Constraint(ABC):
    """The triples of one round type, as constraints on a reference law."""

    __slots__ = ()

    @abstractmethod
    def largest_loss(self) -> Scalar:
        """Return a ball that no loss of a triple exceeds in size."""

    def cells(self, fewest: int) -> int:
        """Return the number of lattice cells, about `fewest`, that suits the triples."""
        return fewest

    @abstractmethod
    def required_integrals(self, order: float, starts: Array) -> list[Scalar] | None:
        """Return balls not below G of any triple at increasing x0; None if they are unknown.

        The x0 run from -top or less up to top or more, with 0 among them.
        """

    @property
    def top(self) -> float:
        """Return a float not below the largest loss."""
        with BALLS.at(BITS):
            return rounded_up(at_least(self.largest_loss().upper()))


@dataclass(frozen=True, slots=True)
class ReportConstraint(Constraint):
    """The extreme triples of reports; G is the largest of their integrals."""

    extremes: Extremes
    rate: Fraction

    def _triples(self) -> list[list[tuple[Scalar, Scalar]]]:
        """Return loss and mass of the atoms of each extreme triple, as balls."""
        found = self.extremes.triples(self.extremes.odds_ball(), BALLS.number(self.rate))
        return [[(t.log(), m) for _, t, m in atoms] for atoms in found]

    def largest_loss(self) -> Scalar:
        largest = BALLS.number(0)
        for atoms in self._triples():
            for loss, _ in atoms:
                largest = largest.max(abs(loss))
        return largest

    def cells(self, fewest: int) -> int:
        """Return a number of cells at which B lies close to a lattice point.

        Splitting it costs about w (1 - w) h^2.
        """
        with BALLS.at(BITS):
            low, high = sorted(abs(float(loss.mid())) for loss, _ in self._triples()[0])
        tried = np.arange(fewest, 2 * fewest)
        share = (low / high * tried) % 1.0
        return int(tried[np.argmin((share * (1 - share) + 0.02) / tried.astype(float) ** 2)])

    def required_integrals(self, order: float, starts: Array) -> list[Scalar] | None:
        found = [integrals(order, starts, atoms) for atoms in self._triples()]
        return [_largest(each) for each in zip(*found, strict=True)]


def _largest(values: Sequence[Scalar]) -> Scalar:
    """Return the largest of some balls."""
    largest = values[0]
    for value in values[1:]:
        largest = largest.max(value)
    return largest


@dataclass(frozen=True, slots=True)
class LaplaceConstraint(Constraint):
    """The triples of Laplace noise.

    H is at most that of the profile, and INT H ds <= beta (Theorem V).

    For every x0 the best filling is taken.

    With mu = e^{-(n+1) x2}, for every x2 >= x0, S(x0) <= mu beta + INT_{x0}^{x2} (e^{-nx} - mu e^x) H dx, or without a budget
    mu = 0 and x2 = top. In s = e^x both s^{-n-1} - mu and, on each side of 1, H are convex, so on each cell they lie below
    their chords, whose product is integrated exactly.
    """

    shift: Fraction
    query: str
    rate: Fraction

    def largest_loss(self) -> Scalar:
        return (BALLS.number(self.rate) * BALLS.number(self.shift).expm1()).log1p()

    def _time_value(self, s: Array) -> Array:
        """Return g (1 - e^{-t/2} sqrt(1 + (s-1)/g))_+ from 1 on, and s H(1/s) below, in balls."""
        g, zero = BALLS.number(self.rate), BALLS.number(0)
        root = (-BALLS.number(self.shift) / 2).exp()

        def call(s: Any) -> Any:
            return (g * (1 - root * (1 + (s - 1) / g).sqrt())).max(zero)

        return np.array([call(each) if each >= 1 else each * call(1 / each) for each in s])

    def required_integrals(self, order: float, starts: Array) -> list[Scalar] | None:
        square = largest_square(self.shift, self.query)
        if square is None:
            return None
        g, n = BALLS.number(self.rate), BALLS.number(order)
        beta = g**2 * BALLS.number(Fraction(square)) / (2 * (1 - g))
        x = BALLS.asarray(starts)
        s, weight = BALLS.exp(x), BALLS.exp(-(n + 1) * x)
        H = self._time_value(s)
        first, second, early, late = H[:-1], H[1:], weight[:-1], weight[1:]
        width = s[1:] - s[:-1]
        whole = width * ((early * first + late * second) / 3 + (early * second + late * first) / 6)
        N, E = (_suffix_sums(part) for part in (whole, width * (first + second) / 2))
        weight[-1] = BALLS.number(0)
        size, used, cost = (np.array([float(each.mid()) for each in part]) for part in (N, E, weight))
        chosen = _best_fillings(size, used, cost, float(beta.mid()))
        return [N[j] - N[k] + weight[k] * (beta - E[j] + E[k]) for j, k in enumerate(chosen)]


def _suffix_sums(terms: Array) -> Array:
    """Return the sums of the terms from each one to the end, and a final 0."""
    return np.append(np.cumsum(terms[::-1])[::-1], BALLS.number(0))


def _best_fillings(N: Array, E: Array, weight: Array, beta: float) -> list[int]:
    """Return for each x0 the best x2, in floats: every x2 is valid."""
    filled = weight * (beta - E[:, None] + E) + N[:, None] - N
    later = np.arange(N.size) >= np.arange(N.size)[:, None]
    return [int(each) for each in np.argmin(np.where(later, filled, np.inf), axis=1)]
