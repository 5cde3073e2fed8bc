"""Laws of finitely many losses, by exact ratios and masses, and their form on a grid."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.cache import recall
from cumulant.losses.atom_transform import PointTransform, point_transform
from cumulant.losses.grid import LARGEST_LOSS, SMALLEST_LOSS, Loss
from cumulant.losses.integrals import Nodes, atoms
from cumulant.losses.law import Law, point
from cumulant.losses.subsampled import BallTerm, Rate, Term, mixed_quotients
from cumulant.numerics.arithmetic import BALLS, Array, Scalar
from cumulant.numerics.enclosure import Enclosure
from cumulant.numerics.rationals import enclosed_logs, log_quotients, log_rational, quotients

CACHE_SIZE = 8
"""Entries that a law remembers; chosen by hand: a law is asked for few rates at a time."""


@dataclass(frozen=True, slots=True)
class AtomLaw(Law):
    """A law of finitely many ratios p/q with their Q-masses.

    `leak` is the mass of P where Q has none. `equal` is the mass of p = q if this is the law of a symmetric pair,
    which the ratios above 1 then determine; None for any other pair.
    """

    masses: tuple[Fraction, ...]
    ratios: tuple[Fraction, ...]
    leak: Fraction = Fraction(0)
    equal: Fraction | None = None
    _cache: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        log_mass, x = recall(self._cache, whole, lambda: self._logs(whole), CACHE_SIZE)
        # an atom at 0 contributes nothing, or everything if its weight is infinite
        return atoms(np.append(np.inf if self.leak > 0 else 0.0, log_mass), np.append(0.0, x), lam, rate)

    def _logs(self, whole: bool) -> tuple[Array, Array]:
        found = self._atoms(whole)
        return log_quotients(quotients(mass for mass, _ in found)), log_quotients(quotients(x for _, x in found))

    def enclosed_atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure] | None:
        found = self._atoms(whole)
        if self.leak > 0:
            return Enclosure(np.full(1, np.inf)), Enclosure(np.ones(1))
        if not found:
            return None
        return recall(self._cache, (rate, whole), lambda: self._enclosed(found, rate), CACHE_SIZE)

    def on_grid(self) -> Loss | None:
        return None if self.equal is None else recall(self._cache, "grid", self._symmetric_loss, CACHE_SIZE)

    def transform(self, rate: Fraction, direction: str) -> PointTransform | None:
        return None if self.equal is None else point_transform(self, rate, direction)

    def exact_points(self) -> list[tuple[Scalar, Scalar]]:
        return [(BALLS.number(ratio).log(), BALLS.number(mass)) for mass, ratio in self._atoms(whole=False)]

    def exact_equal(self) -> Scalar:
        return BALLS.number(self.equal or Fraction(0))

    def exact_leak(self) -> Fraction:
        return self.leak

    def exact_unit(self) -> Fraction | None:
        return None

    def _symmetric_loss(self) -> AtomLoss:
        log_mass, x = self._logs(whole=False)
        return AtomLoss(
            tuple(x.tolist()),
            tuple(log_mass.tolist()),
            float(self.equal or 0),
            float(self.leak),
        )

    def _enclosed(self, found: list[tuple[Fraction, Fraction]], rate: Fraction) -> tuple[Enclosure, Enclosure]:
        """Return enclosures of the logarithms of the masses and of w = 1 - g + g p/q."""
        w = mixed_quotients(quotients(ratio for _, ratio in found), rate)
        return enclosed_logs(quotients(mass for mass, _ in found)), enclosed_logs(w)

    def _atoms(self, whole: bool) -> list[tuple[Fraction, Fraction]]:
        pairs = zip(self.masses, self.ratios, strict=True)
        return [(mass, ratio) for mass, ratio in pairs if ratio > 1 or (whole and ratio < 1)]

    def enclosure(
        self, term: BallTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        if self.leak > 0:
            return BALLS.number(math.inf)
        total = BALLS.number(0)
        for mass, ratio in self._atoms(whole):
            w = BALLS.number(1 - rate + rate * ratio)
            total += term(point(w, w.log(), BALLS.number(mass), order))
        return total


@dataclass(frozen=True, slots=True)
class AtomLoss(Loss):
    """Finitely many losses x > 0 with their Q-masses, and their mirror images.

    `equal_mass` is the mass of p = q, `leak_mass` that of P where Q has none. All losses are multiples of `unit`, or
    it is None.
    """

    losses: tuple[float, ...]
    log_masses: tuple[float, ...]
    equal_mass: float = 0.0
    leak_mass: float = 0.0
    unit: float | None = None

    smooth = False

    def loss(self, y: Array) -> Array:
        return y

    def place(self, x: Array) -> Array:
        return x

    def log_density(self, y: Array) -> Array:
        return np.full_like(y, -np.inf)

    def roughness(self, y: Array) -> Array:
        return np.zeros_like(y)

    def reach(self, log_mass: float) -> float:
        return max(self.losses, default=0.0)

    @property
    def lattice(self) -> float | None:
        return self.unit

    def atoms(self) -> tuple[Array, Array]:
        x, log_q = np.array(self.losses), np.array(self.log_masses)
        return np.concatenate([-x[::-1], x]), np.concatenate([(log_q + x)[::-1], log_q])  # Q(-x) = P(x)

    @property
    def distance(self) -> float:
        x, log_q = np.array(self.losses), np.array(self.log_masses)
        return float(np.sum(-np.exp(log_q + x) * np.expm1(-x)))

    @property
    def equal(self) -> float:
        return self.equal_mass

    @property
    def leak(self) -> float:
        return self.leak_mass


def randomized_response_loss(log_odds: float, leak: Fraction = Fraction(0)) -> AtomLoss | None:
    """Return the loss of randomized response that answers with probability 1 - leak.

    This is the worst (log_odds, leak)-DP pair. Returns None if no grid can hold the loss.
    """
    if not SMALLEST_LOSS < log_odds <= LARGEST_LOSS:
        return AtomLoss((), (), float(1 - leak), float(leak)) if log_odds == 0 else None
    return AtomLoss((log_odds,), (log_rational(1 - leak) - np.logaddexp(0.0, log_odds),), 0.0, float(leak))
