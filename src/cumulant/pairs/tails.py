"""A pair of densities as many small pieces, each with its mass under both laws: profiles at thousands of epsilons at once.

One integral per epsilon asks the densities again at every point; here they are asked once, and each profile is a difference
of two tails. Pieces are halved until both masses are settled and the loss varies little on them, so that the one in which it
passes epsilon hardly matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.quadrature import legendre

LogDensities = Callable[[Array], tuple[Array, Array, Array]]
"""s -> log p, log q and the log of the Jacobian."""

_NODES = 16
_NEGLIGIBLE = -95.0
LEAST = -690.0
"""log of the smallest masses that pieces can have."""

_VARIATION = 0.05
_EVERY = 4
_LARGEST_LOSS = 200.0
_SETTLED = 1e-11
_DEEPEST = 48
_MISSING = 1e-9
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Tails:
    """The losses of all pieces in increasing order, and from each on the sums of the masses of P and of Q."""

    loss: Array
    p: Array
    q: Array

    def profile(self, epsilons: Array) -> Array:
        """delta(eps) = P(y > eps) - e^eps Q(y > eps)."""
        first = np.searchsorted(self.loss, epsilons, side="right")
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.where(self.q[first] > 0, np.exp(epsilons) * self.q[first], 0.0)
        return np.maximum(self.p[first] - growth, 0.0)


def both_tails(densities: LogDensities, grid: Array) -> tuple[Tails, Tails] | None:
    """The tails of P against Q and of Q against P, s cut at the points of the grid; None where that takes too many pieces."""
    found = pieces(densities, np.append(grid[:-1:_EVERY], grid[-1]), _VARIATION, _NEGLIGIBLE)
    if found is None:
        return None
    log_p, log_q = found
    return _tails(log_p, log_q), _tails(log_q, log_p)


def _tails(log_p: Array, log_q: Array) -> Tails:
    with np.errstate(invalid="ignore"):
        loss = log_p - log_q
    place = np.argsort(loss, kind="stable")

    def sums(log_mass: Array) -> Array:
        return np.append(np.cumsum(np.exp(log_mass[place])[::-1])[::-1], 0.0)

    return Tails(loss[place], sums(log_p), sums(log_q))


def pieces(densities: LogDensities, grid: Array, variation: float, least: float = LEAST) -> tuple[Array, Array] | None:
    """log of the masses of P and Q of all pieces with at least e^least, on each of which the loss varies so little.

    None where there are too many, or where a peak between the points of the grid was missed.
    """
    with np.errstate(all="ignore"):
        return _pieces(densities, grid, variation, least)


def _pieces(densities: LogDensities, grid: Array, variation: float, least: float) -> tuple[Array, Array] | None:
    nodes, weights = legendre(_NODES)

    def masses(low: Array, width: Array) -> tuple[Array, Array]:
        log_p, log_q, log_jacobian = densities(low[:, None] + width[:, None] * nodes)
        log_width = log_jacobian + np.log(width)[:, None] + np.log(weights)
        return log_p + log_width, log_q + log_width

    low, width = grid[:-1], np.diff(grid)
    at_grid = densities(grid)
    height = np.maximum(at_grid[0], at_grid[1]) + at_grid[2]
    seen = np.maximum(height[:-1], height[1:]) > least
    seen = seen | np.append(False, seen[:-1]) | np.append(seen[1:], False)
    low, width = low[seen], width[seen]
    p, q = masses(low, width)
    before = np.stack([np.exp(p).sum(axis=1), np.exp(q).sum(axis=1)])
    kept: list[tuple[Array, Array]] = []
    count = 0
    for depth in range(_DEEPEST):
        if count + 2 * low.size * _NODES > _MOST:
            return None
        half = width / 2
        low, width = np.stack([low, low + half], axis=1).ravel(), np.repeat(half, 2)
        p, q = masses(low, width)
        now = np.stack([np.exp(p).sum(axis=1), np.exp(q).sum(axis=1)])
        off = np.abs(now[:, ::2] + now[:, 1::2] - before)
        settled = np.repeat((off <= _SETTLED * before + np.exp(least)).all(axis=0), 2)
        done = settled & _even(p, q, now.max(axis=0), variation, least) | (depth == _DEEPEST - 1)
        some = np.maximum(p[done], q[done]) > -np.inf
        kept.append((p[done][some], q[done][some]))
        count += int(some.sum())
        low, width, before = low[~done], width[~done], now[:, ~done]
        if not low.size:
            break
    log_p, log_q = np.concatenate([p for p, _ in kept]), np.concatenate([q for _, q in kept])
    whole = all(abs(np.exp(side).sum() - 1) <= _MISSING for side in (log_p, log_q))
    return (log_p, log_q) if whole else None


def _even(p: Array, q: Array, mass: Array, variation: float, least: float) -> Array:
    """Whether the loss varies little on each piece, as far as anything is at stake."""
    loss = p - q
    loss = np.where(np.isnan(loss), 0.0, np.clip(loss, -_LARGEST_LOSS, _LARGEST_LOSS))
    return (loss.max(axis=1) - loss.min(axis=1) <= variation) | (mass < np.exp(least))
