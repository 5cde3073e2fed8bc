"""Explicit neighbouring data sets that are worse than the paper's pair: three values in general position.

Data sets r … r p and r … r q: the sample contains the odd record with probability g, so the output laws are
(1-g)N(r) + gN(p) and (1-g)N(r) + gN(q), N the noise. Outputs are binned, which is a post-processing, so that whatever the
bins are the result is a lower bound.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.pairs.step import Outputs

BINS = 384
"""In each direction of the plane."""

_COARSE = 1500
_GUIDE = -60.0  # log of the mass below which outputs do not matter to the saddle line

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
        """log masses of the same bins of outputs; bins below e^log_mass may be left out."""

    @property
    def leak(self) -> float:
        return 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return _nodes(self)

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        return _outputs(self, log_mass)

    def largest(self) -> float:
        """The largest loss that matters."""
        return self.span(_GUIDE)[1]


@lru_cache(maxsize=16)
def _outputs(triple: Triple, log_mass: float) -> tuple[Array, Array]:
    """Loss and log P-mass of every binned output."""
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
    """Bins of the plane: r is near along and in the middle across, p far and up, q far and down."""
    (near, far), (middle, up, down) = along, across
    return (near[:, None] + middle).ravel(), (far[:, None] + up).ravel(), (far[:, None] + down).ravel()


@lru_cache(maxsize=32)
def _nodes(triple: Triple) -> tuple[Array, Array]:
    """The outputs gathered in cells of the loss, for the saddle line: its numbers guide and prove nothing."""
    loss, log_p = _outputs(triple, _GUIDE)
    if loss.size <= 4 * _COARSE:
        return loss, log_p
    mass, scale = np.exp(log_p), 1e-3 * loss.max()
    ends = np.arcsinh(np.array([loss.min(), loss.max()]) / scale)
    cell = np.searchsorted(scale * np.sinh(np.linspace(ends[0], ends[1], _COARSE)), loss)
    total, moment = np.bincount(cell, mass), np.bincount(cell, mass * loss)
    there = total > 0
    return moment[there] / total[there], np.log(total[there])
