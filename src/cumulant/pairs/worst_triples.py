"""Three values in general position: data sets that are worse than the paper's pair.

Data sets r … r p and r … r q: the sample contains the odd record with probability g, so the output laws are
(1-g)N(r) + gN(p) and (1-g)N(r) + gN(q), N the noise. Outputs are binned, which is a post-processing, so that whatever the
bins are the result is a lower bound.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.losses.grid import Outputs
from cumulant.numerics.arithmetic import BALLS, Array

# The extreme triples of reports on a sample of fixed size: for every convex test function one of them is worst (Theorem P).
#
# Letters: g = rate, c = e^epsilon, A = 1 + g(c-1), B = 1 - g(1 - 1/c); a round is a = (1-g)R + gP against b = (1-g)R + gQ.


@dataclass(frozen=True, slots=True)
class Share:
    """The probability top / (base + weight c)."""

    top: Fraction
    base: Fraction
    weight: Fraction

    def of(self, odds: Any) -> Any:
        """Return the probability at these odds c, as a ball."""
        return BALLS.number(self.top) / (BALLS.number(self.base) + BALLS.number(self.weight) * odds)


Atoms = list[tuple[str, Any, Any]]
"""Name of the ratio a/b, the ratio and its mass under b; the rest of the mass is at 1."""


@dataclass(frozen=True, slots=True)
class Extremes:
    """Two inputs in both orders, and three different ones if there are three.

    `two` is the probability of an output that only the first of two inputs favours, where the other input is that of
    all other records. With three inputs, the other records disfavour such an output with probability `against`, and
    favour it with c times `for_it`.
    """

    epsilon: Fraction
    odds: Fraction | None
    two: Share
    against: Share | None = None
    for_it: Share | None = None

    def odds_ball(self) -> Any:
        """Return the odds c as a ball."""
        return BALLS.number(self.epsilon).exp() if self.odds is None else BALLS.number(self.odds)

    def triples(self, odds: Any, rate: Any) -> Iterator[Atoms]:
        """Yield the atoms of each triple at these odds and this rate, as balls."""
        up, down = 1 + rate * (odds - 1), 1 - rate * (1 - 1 / odds)
        mass = self.two.of(odds)
        yield [("A", up, mass), ("B", down, odds * mass)]
        yield [("1/A", 1 / up, up * mass), ("1/B", 1 / down, odds * down * mass)]
        third: Atoms = []
        if self.against is not None:
            mass = self.against.of(odds)
            third += [("A", up, mass), ("1/A", 1 / up, up * mass)]
        if self.for_it is not None:
            mass = odds * self.for_it.of(odds)
            third += [("B", down, mass), ("1/B", 1 / down, down * mass)]
        if third:
            yield third


BINS = 384
"""Bins in each direction of the plane; binning is a post-processing, so validity does not depend on it."""

GUIDE_CELLS = 1500
"""Cells of the loss in which outputs are gathered for the saddle point; they guide and prove nothing."""

LOG_GUIDE_MASS = -60.0
"""Logarithm of the mass below which outputs do not matter to the saddle point."""


Masses = tuple[Array, Array, Array]
"""log masses of the same bins under N(r), N(p) and N(q)."""


class Triple(Outputs):
    """Three values at mutual distance `shift`, in units of the noise, sampled at this rate."""

    __slots__ = ()

    shift: float
    rate: float
    kept: float

    @abstractmethod
    def masses(self, log_mass: float) -> Masses:
        """Return log masses of the same bins of outputs; bins below e^log_mass may be left out."""

    @property
    def leak(self) -> float:
        return 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return _nodes(self)

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        return _outputs(self, log_mass)

    def largest(self) -> float:
        """Return the largest loss that matters."""
        return self.span(LOG_GUIDE_MASS)[1]


@lru_cache(maxsize=16)
def _outputs(triple: Triple, log_mass: float) -> tuple[Array, Array]:
    """Return loss and log P-mass of every binned output."""
    g, kept = triple.rate, triple.kept
    base, p, q = triple.masses(log_mass)
    there = np.maximum(np.maximum(base, p), q) > log_mass - 20
    base, p, q = base[there], p[there], q[there]
    log_kept, log_g = math.log(kept) if kept else -math.inf, math.log(g)
    log_p, log_q = np.logaddexp(log_kept + base, log_g + p), np.logaddexp(log_kept + base, log_g + q)
    # log(p'/q') = log1p(g (e^p - e^q) / q'): accurate where the two are nearly equal
    near = np.log1p(np.maximum(g * (np.exp(p - log_q) - np.exp(q - log_q)), -0.9))
    return np.where(np.abs(near) < 0.5, near, log_p - log_q), log_p


def products(along: tuple[Array, Array], across: tuple[Array, Array, Array]) -> Masses:
    """Return bins of the plane: r near and in the middle, p far and up, q far and down."""
    (near, far), (middle, up, down) = along, across
    return (near[:, None] + middle).ravel(), (far[:, None] + up).ravel(), (far[:, None] + down).ravel()


@lru_cache(maxsize=32)
def _nodes(triple: Triple) -> tuple[Array, Array]:
    """Return the outputs gathered in cells of the loss; they guide the saddle point only."""
    loss, log_p = _outputs(triple, LOG_GUIDE_MASS)
    if loss.size <= 4 * GUIDE_CELLS:
        return loss, log_p
    mass, scale = np.exp(log_p), 1e-3 * loss.max()
    ends = np.arcsinh(np.array([loss.min(), loss.max()]) / scale)
    cell = np.searchsorted(scale * np.sinh(np.linspace(ends[0], ends[1], GUIDE_CELLS)), loss)
    total, moment = np.bincount(cell, mass), np.bincount(cell, mass * loss)
    there = total > 0
    return moment[there] / total[there], np.log(total[there])


# Three values with Laplace noise that are worse than two, in the plane.


@dataclass(frozen=True, slots=True)
class LaplaceTriple(Triple):
    """The points 0, (t/2, t/2), (t/2, -t/2), at L1 distance t = shift, with product noise."""

    shift: float
    rate: float
    kept: float

    def masses(self, log_mass: float) -> Masses:
        """Return the bins of r = 0 and p, q = (t/2, ±t/2); they end at the kinks of the densities."""
        inner = np.linspace(0.0, self.shift / 2, BINS // 2 + 1)
        x = np.concatenate([[-np.inf], inner, [np.inf]])
        y = np.concatenate([[-np.inf], -inner[::-1], inner[1:], [np.inf]])
        along = _bins(x), _bins(x - self.shift / 2)
        return products(along, (_bins(y), _bins(y - self.shift / 2), _bins(y + self.shift / 2)))

    def anchor(self) -> float | None:
        return self.largest()


@dataclass(frozen=True, slots=True)
class LaplaceCorner(Triple):
    """The points r = 0, p = (t, 0), q = (t/2, t/2), at L1 distance t = shift; or p, q swapped."""

    shift: float
    rate: float
    kept: float
    swapped: bool = False

    def masses(self, log_mass: float) -> Masses:
        half = self.shift / 2
        inner = np.linspace(0.0, half, BINS // 2 + 1)
        x = np.concatenate([[-np.inf], inner, half + inner[1:], [np.inf]])
        y = np.concatenate([[-np.inf], inner, [np.inf]])
        near, far = _bins(y), _bins(y - half)
        r, p, q = (
            (along[:, None] + across).ravel()
            for along, across in ((_bins(x), near), (_bins(x - self.shift), near), (_bins(x - half), far))
        )
        return (r, q, p) if self.swapped else (r, p, q)


def _bins(edges: Array) -> Array:
    """Return log of the Laplace(1) mass of bins that have 0 at most as an end."""
    low, high = edges[:-1], edges[1:]
    near = np.where(low >= -1e-12, low, -high)
    return np.asarray(-near - math.log(2) + np.log(-np.expm1(-(high - low))))
