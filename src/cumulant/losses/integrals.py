"""Quadrature of a kernel against the law of the loss under Q, all orders of a batch at once.

Each law chooses its own nodes. The windows follow the integrand: it is at most e^phi, phi = a L + log(density of the
loss), and what lies e^-42 below its largest sampled value is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cumulant.losses.subsampled import Rate
from cumulant.numerics.arithmetic import Array

DROP = 42.0
"""Nodes whose term is below e^-42 of the largest are left out."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of all orders, end to end.

    `L` is the loss at a node; `log_power` is log(weight * max(w, 1)^a) less the `offset` of the order; `counts` are
    the nodes of each order.
    """

    L: Array
    log_power: Array
    counts: Array
    offset: Array


def atoms(log_mass: Array, loss: Array, lam: Array, rate: Rate) -> Nodes:
    """Return the same finitely many losses x as nodes for every order."""
    L = rate.loss(loss)
    gain = np.maximum(L, 0.0)
    log_power = log_mass + gain + lam[:, None] * gain
    return Nodes(np.tile(L, lam.size), log_power.ravel(), np.full(lam.size, L.size), np.zeros(lam.size))


def log_integral(nodes: Nodes, term: Callable[..., Array], *lam: Array) -> Array:
    """Return log E_Q[term(lambda, L)] for each order; no lambda if the term is a slope."""
    mantissa = term(*(np.repeat(x, nodes.counts) for x in lam), nodes.L)
    starts = np.cumsum(nodes.counts) - nodes.counts
    top = np.maximum.reduceat(nodes.log_power, starts)
    total = np.add.reduceat(mantissa * np.exp(nodes.log_power - np.repeat(top, nodes.counts)), starts)
    return np.asarray(nodes.offset + (top + np.log(total)))


def logistic(x: Array) -> Array:
    """Return 1 / (1 + e^-x), the share of g e^x in w at x - h0."""
    return np.asarray(0.5 + 0.5 * np.tanh(x / 2))
