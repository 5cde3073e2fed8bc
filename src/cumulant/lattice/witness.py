"""Explicit neighbouring data sets that are worse than the paper's pair: three values in general position.

Data sets r … r p and r … r q: the sample contains the odd record with probability g, so the output laws are
(1-g)N(r) + gN(p) and (1-g)N(r) + gN(q), N the noise. Outputs are binned, which is a post-processing, so that whatever the
bins are the result is a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from cumulant.lattice.finite import Outputs
from cumulant.numerics.arithmetic import Array

_BINS = 384
_COARSE = 1500
_GUIDE = -60.0  # log of the mass below which outputs do not matter to the saddle line

Masses = tuple[Array, Array, Array]
"""log masses of the same bins under N(r), N(p) and N(q)."""


@dataclass(frozen=True, slots=True)
class Triple(Outputs):
    """Three values at mutual distance `shift`, in units of the noise, sampled at this rate.

    "gaussian"  an equilateral triangle in the plane;
    "laplace"   the points 0, (t/2, t/2), (t/2, -t/2), at L1 distance t, with product noise;
    "response"  three inputs of 3-ary randomized response with log-odds t of the own answer against each other one.
    """

    kind: str
    shift: float
    rate: float
    kept: float

    @property
    def leak(self) -> float:
        return 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return _nodes(self)

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        return _outputs(self, log_mass)

    def anchor(self) -> float | None:
        return self.span(_GUIDE)[1] if self.kind != "gaussian" else None

    @property
    def exact_lattice(self) -> bool:
        return self.kind == "response" and self.shift > 0


@lru_cache(maxsize=16)
def _outputs(triple: Triple, log_mass: float) -> tuple[Array, Array]:
    """Loss and log P-mass of every binned output."""
    g, kept = triple.rate, triple.kept
    base, p, q = _KINDS[triple.kind](triple.shift, log_mass)
    there = np.maximum(np.maximum(base, p), q) > log_mass - 20
    base, p, q = base[there], p[there], q[there]
    log_kept, log_g = math.log(kept) if kept else -math.inf, math.log(g)
    log_p, log_q = np.logaddexp(log_kept + base, log_g + p), np.logaddexp(log_kept + base, log_g + q)
    # log(p'/q') = log1p(g (e^p - e^q) / q'): accurate where the two are nearly equal
    near = np.log1p(np.maximum(g * (np.exp(p - log_q) - np.exp(q - log_q)), -0.9))
    return np.where(np.abs(near) < 0.5, near, log_p - log_q), log_p


def _products(along: tuple[Array, Array], across: tuple[Array, Array, Array]) -> Masses:
    """Bins of the plane: r is near along and in the middle across, p far and up, q far and down."""
    (near, far), (middle, up, down) = along, across
    return (near[:, None] + middle).ravel(), (far[:, None] + up).ravel(), (far[:, None] + down).ravel()


def _gaussian(t: float, log_mass: float) -> Masses:
    """r = 0 and p, q = t (sqrt(3)/2, ±1/2)."""
    reach, height = math.sqrt(2 * max(-log_mass, 8.0)), t * math.sqrt(0.75)
    x = np.linspace(-reach, reach + height, _BINS + 1)
    y = np.linspace(-reach - t / 2, reach + t / 2, _BINS + 1)
    along = _normal_bins(x), _normal_bins(x - height)
    return _products(along, (_normal_bins(y), _normal_bins(y - t / 2), _normal_bins(y + t / 2)))


def _laplace(t: float, log_mass: float) -> Masses:
    """r = 0 and p, q = (t/2, ±t/2); bins end at the kinks, and beyond them nothing changes."""
    inner = np.linspace(0.0, t / 2, _BINS // 2 + 1)
    x = np.concatenate([[-np.inf], inner, [np.inf]])
    y = np.concatenate([[-np.inf], -inner[::-1], inner[1:], [np.inf]])
    along = _laplace_bins(x), _laplace_bins(x - t / 2)
    return _products(along, (_laplace_bins(y), _laplace_bins(y - t / 2), _laplace_bins(y + t / 2)))


def _response(t: float, log_mass: float) -> Masses:
    """The own answer has the mass e^t / (e^t + 2), each other one 1 / (e^t + 2)."""
    other = -np.logaddexp(t, math.log(2))
    return tuple(np.where(np.arange(3) == own, other + t, other) for own in range(3))


_KINDS = {"gaussian": _gaussian, "laplace": _laplace, "response": _response}


def _normal_bins(edges: Array) -> Array:
    """log of the standard normal mass of each bin, from the side on which nothing cancels."""
    low, high = edges[:-1], edges[1:]
    flip = low + high > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    log_b = special.log_ndtr(b)
    return np.asarray(log_b + np.log(-np.expm1(special.log_ndtr(a) - log_b)))


def _laplace_bins(edges: Array) -> Array:
    """log of the Laplace(1) mass of bins that have 0 at most as an end."""
    low, high = edges[:-1], edges[1:]
    near = np.where(low >= -1e-12, low, -high)
    return np.asarray(-near - math.log(2) + np.log(-np.expm1(-(high - low))))


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
