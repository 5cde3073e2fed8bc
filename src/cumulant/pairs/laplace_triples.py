"""Three values with Laplace noise that are worse than two, in the plane."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cumulant.numerics.arithmetic import Array
from cumulant.pairs.triple import BINS, Masses, Triple, products


@dataclass(frozen=True, slots=True)
class LaplaceTriple(Triple):
    """The points 0, (t/2, t/2), (t/2, -t/2), at L1 distance t = shift, with product noise."""

    shift: float
    rate: float
    kept: float

    def masses(self, log_mass: float) -> Masses:
        """r = 0 and p, q = (t/2, ±t/2); bins end at the kinks, and beyond them nothing changes."""
        inner = np.linspace(0.0, self.shift / 2, BINS // 2 + 1)
        x = np.concatenate([[-np.inf], inner, [np.inf]])
        y = np.concatenate([[-np.inf], -inner[::-1], inner[1:], [np.inf]])
        along = _bins(x), _bins(x - self.shift / 2)
        return products(along, (_bins(y), _bins(y - self.shift / 2), _bins(y + self.shift / 2)))

    def anchor(self) -> float | None:
        return self.largest()


@dataclass(frozen=True, slots=True)
class LaplaceCorner(Triple):
    """r = 0, p = (t, 0), q = (t/2, t/2), at L1 distance t = shift, with product noise; or p and q exchanged."""

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
    """log of the Laplace(1) mass of bins that have 0 at most as an end."""
    low, high = edges[:-1], edges[1:]
    near = np.where(low >= -1e-12, low, -high)
    return np.asarray(-near - math.log(2) + np.log(-np.expm1(-(high - low))))
