"""Integrals over the loss with a proved error for many orders, by Gauss-Legendre panels.

With f_b(w) = w^b - 1 - b(w-1) >= 0 Proposition 11's kernel is f_a and the profile's is f_a + f_{1-a}, a = lambda + 1; lambda 0
stands for their limits divided by lambda. They are integrated over s, where x = shift * s and w = 1 - g + g e^x. A cell of the
line is left out if a bound of what it holds allows it, becomes a panel if the error of the rule is proved to be small there,
and is halved otherwise. The lemmas are in docs/rounding.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cumulant.losses.subsampled import Rate, enclosed_loss, log_kernel
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.quadrature import legendre_balls


@dataclass(frozen=True, slots=True)
class PanelSettings:
    """Tuning constants of the panels.

    All that is left out becomes part of the radius, so validity does not depend on them (docs/rounding.md, Lemmas 4 to
    6).
    """

    nodes: int = 32
    """Gauss nodes of a panel; with rho = 5 the rule errs by e^-100 of the largest value (Lemma 4)."""

    first_cells: int = 4
    """Cells into which the line is cut before halving."""

    log_panel_error: float = -38.0
    """Logarithm of a panel's error as a part of the integral; e^-38 is 2^-55, below the last bit of a float."""

    widest_turn: float = 3.1
    """Largest |Im x| at which w cannot be 0; below pi (Lemma 5)."""

    large_loss: float = 40.0
    """x (nats) beyond which e^x - 1 is e^x to the last bit."""

    farthest: float = 2.0**40
    """Length of the line beyond which nothing is claimed; halving would not reach a panel."""

    most_cells: int = 2**17
    """Cells at once; a bound of memory, the rest is added to the radius."""


SETTINGS = PanelSettings()
"""The settings in force; a test may replace them."""

ELLIPSES = np.array([[1.4], [2.0], [3.0], [5.0]])
"""Sums rho of the half axes of the ellipses on which a panel may be bounded; the best one counts."""

HALF_AXES = np.concatenate([[[1.0]], (ELLIPSES + 1 / ELLIPSES) / 2])
"""Real half axes: the cell itself, then each ellipse."""

HEIGHTS = np.concatenate([[[0.0]], (ELLIPSES - 1 / ELLIPSES) / 2])
"""Imaginary half axes: the cell itself, then each ellipse."""

LOG_RULE_ERROR = np.log(8 / (1 - ELLIPSES**-2)) - 2 * SETTINGS.nodes * np.log(ELLIPSES)
"""Logarithm of 8 rho^{-2N} / (1 - rho^-2), the error of the rule for a function of size 1 (Lemma 4)."""

LEFT_OUT = -44.0
"""Logarithm of what a cell may hold to be left out, as a part of the integral; e^-44 is 2^-63."""

SMALLEST = Fraction(1, 10**140)
"""Rates, and 1 - rates, below which the digits of floats no longer reach from one term to the other."""

DEEPEST = 64
"""Halvings of a cell; after them it counts as left out."""


@lru_cache(maxsize=1)
def gauss() -> tuple[Enclosure, Enclosure]:
    """Return the nodes of the Gauss-Legendre rule on [-1, 1] and the logarithms of its weights."""
    with BALLS.at(128):
        rule = legendre_balls(SETTINGS.nodes, 128)
        return BOUNDED.of_balls([node for node, _ in rule]), BOUNDED.of_balls([weight.log() for _, weight in rule])


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a batch with the rate, in floats that only decide; `whole` as for a kernel."""

    lam: Array
    rate: Rate
    whole: bool

    def at(self, row: Array) -> Orders:
        return Orders(self.lam[row], self.rate, self.whole)

    @property
    def log_lam(self) -> Array:
        """log lambda, and 0 in the limit."""
        return np.log(np.where(self.lam > 0, self.lam, 1.0))


class Line(ABC):
    """The law of s under Q, up to atoms; in floats for decisions, in enclosures for the answer."""

    __slots__ = ()

    shift: Fraction

    farthest: ClassVar[float]
    farthest_ball: ClassVar[int]
    """Order times shift past which floats, and balls, no longer resolve the integral."""

    @property
    def t(self) -> float:
        return float(self.shift)

    @abstractmethod
    def ends(self, orders: Orders, size: Array) -> tuple[Array, Array, Array]:
        """Return where the cells begin and end, exact in floats under halving, and log of the rest."""

    @abstractmethod
    def peak(self, low: Array, high: Array, at_low: Array, at_high: Array) -> Array:
        """Return the largest value on [low, high] of a linear function plus the log density.

        The linear function is given by its values at both ends.
        """

    @abstractmethod
    def growth(self, y: Array) -> Array:
        """Return log of a bound of the factor by which the density is larger at s + iy than at s."""

    @abstractmethod
    def log_power(self, s: Enclosure, lam: Enclosure, L: Enclosure, rate: Fraction) -> Enclosure:
        """a times the gain of L, and the log density of s."""

    def far_out(self, rate: Fraction, lam: Array) -> tuple[Array, Enclosure]:
        """Return the orders at which a closed form is the integral, and the form with its radius."""
        return np.zeros(lam.shape, dtype=bool), Enclosure(lam)


def rounding_slack(size: Array) -> Array:
    """Return how much floats may have lost in the logarithm of a bound with terms of this size."""
    return 1e-6 + 1e-13 * np.abs(size)


def _log_size(line: Line, orders: Orders, low: Array, high: Array, y: Array) -> Array:
    """Return log of a bound of |kernel * density| for Re s in [low, high], |Im s| <= y."""
    lam, t, g, h0 = orders.lam, line.t, orders.rate.g, orders.rate.h0
    order, log_lam = lam + 1, orders.log_lam
    x_low, x_high, turn = t * low, t * high, t * y
    loss_low, loss_high = orders.rate.loss(x_low), orders.rate.loss(x_high)
    gain_low, gain_high, up_low, up_high = (np.maximum(v, 0.0) for v in (loss_low, loss_high, x_low, x_high))

    def top(b: Array | float, c: float) -> Array:
        # b L+ + c x+ is convex, so at most its chord
        return line.peak(low, high, b * gain_low + c * up_low, b * gain_high + c * up_high)

    # |w - 1| = g |e^{x + i turn} - 1|, which is also at most 2 g e^{x+}
    sine, cosine = np.sin(np.minimum(turn, math.pi) / 2), np.cos(np.minimum(turn, SETTINGS.widest_turn) / 2)
    near = np.minimum(x_high, SETTINGS.large_loss)
    log_u = np.log(np.maximum(np.abs(np.expm1(x_low)), np.abs(np.expm1(near))) + 2 * sine * np.exp(near))
    log_u = math.log(g) + np.where(x_high > SETTINGS.large_loss, x_high + np.log1p(2 * sine), log_u)
    log_two_g, far = math.log(2 * g), np.maximum(order - 2, 0.0)
    curvature = np.log(order) + log_lam - np.maximum(2 - order, 0.0) * np.log(cosine)
    curved = curvature + np.minimum(top(far, 0) + 2 * log_u, top(far, 2) + 2 * log_two_g)
    positive, argument = lam > 0, gain_high + turn
    size = top(order, 0) + np.log(np.where(positive, 2 + order * np.minimum(np.exp(log_u), 2.0), argument + 3))
    narrow = turn <= SETTINGS.widest_turn
    size = np.where(narrow, np.minimum(size, curved), size)
    if not orders.whole:
        share = np.exp(math.log(g) + x_high - loss_high)
        shorter = np.log1p(-4 * np.minimum(share, 0.25) * (1 - cosine * cosine)) / 2
        flat = top(0, 0)
        curved = np.log(order) + log_lam - (order + 1) * (shorter + np.minimum(loss_low, 0.0))
        curved = curved + np.minimum(flat + 2 * log_u, top(0, 2) + 2 * log_two_g)
        constant = np.log(np.where(positive, 2.0, argument))
        linear = np.logaddexp(constant + flat, log_lam + np.minimum(flat + log_u, top(0, 1) + log_two_g))
        above_one = np.where(narrow, shorter + loss_low >= 0, math.log(g) + x_low > math.log(2))
        other = np.where(above_one, linear, np.inf)
        size = np.logaddexp(size, np.where(narrow, np.minimum(curved, other), other))
    # where w may be 0, at x = log(1/g - 1) + i pi, nothing is analytic
    clear = narrow | (x_low > h0 + 0.1) | (x_high < h0 - 0.1)
    size = (
        size
        + line.growth(y)
        + rounding_slack(order * gain_high + 2 * up_high + np.maximum(np.abs(low), np.abs(high)) ** 2)
    )
    return np.where(np.isnan(size) | ~clear, np.inf, size)


def _bounds(line: Line, orders: Orders, low: Array, high: Array) -> tuple[Array, Array]:
    """Return log of what each cell may hold, and of the rule's error on it by the best ellipse."""
    middle, half = (low + high) / 2, (high - low) / 2
    wide, tall = half * HALF_AXES, half * HEIGHTS  # one row for the cell itself, one for each ellipse
    size = _log_size(line, orders, middle - wide, middle + wide, tall) + np.log(half)
    return size[0] + math.log(2), np.min(size[1:] + LOG_RULE_ERROR, axis=0)


def panels(line: Line, orders: Orders, size: Array) -> tuple[Array, Array, Array, Array]:
    """Choose panels: row, middle, half width, and for each row the log of all that is left out.

    `size` is about the logarithm of the integral; it only decides.
    """
    low, high, beyond = line.ends(orders, size)
    known = np.isfinite(size) & (high - low < SETTINGS.farthest) & (beyond < np.inf)
    left_out = np.where(known, beyond, np.inf)
    row = np.tile(np.flatnonzero(known), SETTINGS.first_cells)
    step = (high - low) / SETTINGS.first_cells
    low = (low + np.arange(SETTINGS.first_cells)[:, None] * step)[:, known].ravel()
    high = low + step[row]
    found: list[tuple[Array, Array, Array]] = []
    for depth in range(DEEPEST):
        held, error = _bounds(line, orders.at(row), low, high)
        middle = (low + high) / 2
        exact = middle - low == high - middle
        empty = held <= size[row] + LEFT_OUT
        fine = ~empty & exact & (error <= size[row] + SETTINGS.log_panel_error)
        last = depth == DEEPEST - 1 or row.size > SETTINGS.most_cells
        done = empty | fine | ~exact | last
        np.logaddexp.at(left_out, row[done], np.where(fine, error, held)[done])
        found.append((row[fine], middle[fine], (high - low)[fine] / 2))
        row, middle, todo = np.tile(row[~done], 2), middle[~done], ~done
        low, high = np.append(low[todo], middle), np.append(middle, high[todo])
        if not row.size:
            break
    rows, middles, halves = (np.concatenate(part) for part in zip(*found, strict=True))
    place = np.argsort(rows, kind="stable")
    return rows[place], middles[place], halves[place], left_out


def enclosed_integral(line: Line, rate: Fraction, lam: Array, whole: bool, size: Array) -> Enclosure:
    """Return log E_Q[kernel] without atoms for each lambda, or for lambda = 0.

    `size` is about that, in floats, and only decides. The result is NaN where nothing is known.
    """
    if min(rate, 1 - rate, line.shift) < SMALLEST:
        return Enclosure(np.full(lam.shape, np.nan))
    row, middle, half, left_out = panels(line, Orders(lam, Rate.of(rate), whole), size)
    nodes, log_weights = gauss()
    s = Enclosure(middle[:, None]) + Enclosure(half[:, None]) * nodes
    each, L = Enclosure(lam[row, None]), enclosed_loss(BOUNDED.number(line.shift) * s, rate)
    power = line.log_power(s, each, L, rate)
    log_terms = log_kernel(each, L, whole) + power + (log_weights + BOUNDED.log(half)[:, None])
    on_panels = BOUNDED.log_sum_exp(log_terms)
    total = BOUNDED.log_sum_exp(_values_by_order(row, on_panels, lam.size))
    # what is left out is a part of the sum that is at most half of it, or nothing is known
    part = np.exp(left_out - total.mid) * (1 + 1e-6)
    far, closed = line.far_out(rate, lam)
    mid = np.where(far, closed.mid, np.where(part < 0.5, total.mid, np.nan))
    return Enclosure(mid, np.where(far, closed.radius, total.radius + part / (1 - part)))


def _values_by_order(row: Array, values: Enclosure, rows: int) -> Enclosure:
    """Return a table with the values of each order's panels in its row, -inf behind them."""
    count = np.bincount(row, minlength=rows)
    place = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    table = Enclosure(np.full((rows, max(int(count.max(initial=0)), 1)), -np.inf))
    table[row, place] = values
    return table
