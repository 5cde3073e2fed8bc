"""Quadrature of a kernel against the law of the loss under Q, all orders of a batch at once; each law puts its own nodes.

The windows follow the integrand: it is at most e^phi, phi = a L + log(density of the loss), and what lies e^-42 below
its largest sampled value is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.pairs.mixing import sampled_loss

DROP = 42.0
"""Nodes whose term is below e^-42 of the largest are left out."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """One run of nodes per order, laid end to end: L, and log(weight * max(w, 1)^a) less the offset of the order."""

    L: Array
    log_power: Array
    counts: Array
    offset: Array


@dataclass(frozen=True, slots=True)
class Rate:
    """g, 1 - g, which cannot be recovered from a rounded g, and h0 = log((1-g)/g)."""

    g: float
    kept: float

    @classmethod
    def of(cls, rate: Fraction) -> Rate:
        """M - 1 is quadratic in the rate, so 1e-140 is as small as floats can carry."""
        return cls(max(float(rate), 1e-140), max(float(1 - rate), 1e-140))

    @property
    def h0(self) -> float:
        return math.log(self.kept) - math.log(self.g)

    def loss(self, x: Array) -> Array:
        """L = log(1 - g + g e^x)."""
        return sampled_loss(x, self.g, self.kept)

    def rest(self, x: Array) -> Array:
        """L - x = log(g + (1-g) e^-x) for x >= 0."""
        if self.g > 0.5:
            return np.asarray(np.log1p(self.kept * np.expm1(-x)))
        return np.asarray(np.log(self.g + self.kept * np.exp(-x)))


def atoms(log_mass: Array, loss: Array, lam: Array, rate: Rate) -> Nodes:
    """The same finitely many losses x for every order."""
    L = rate.loss(loss)
    gain = np.maximum(L, 0.0)
    log_power = log_mass + gain + lam[:, None] * gain
    return Nodes(np.tile(L, lam.size), log_power.ravel(), np.full(lam.size, L.size), np.zeros(lam.size))


def log_integral(nodes: Nodes, term: Callable[..., Array], *lam: Array) -> Array:
    """log E_Q[term(lambda, L)] for each order; no lambda where the term is a slope."""
    mantissa = term(*(np.repeat(x, nodes.counts) for x in lam), nodes.L)
    starts = np.cumsum(nodes.counts) - nodes.counts
    top = np.maximum.reduceat(nodes.log_power, starts)
    total = np.add.reduceat(mantissa * np.exp(nodes.log_power - np.repeat(top, nodes.counts)), starts)
    return np.asarray(nodes.offset + (top + np.log(total)))


def logistic(x: Array) -> Array:
    """1 / (1 + e^-x), the share of g e^x in w at x - h0."""
    return np.asarray(0.5 + 0.5 * np.tanh(x / 2))
