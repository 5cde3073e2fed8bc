"""A pair of finite laws as it is, not symmetrised: what lower bounds compose."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.lattice.cells import Cells, Grid, misplaced, place_atoms
from cumulant.lattice.step import Step
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rationals import common, log_quotients

_ROUNDED = 4e-12
"""Relative error of the masses that `outputs` gives, and of their ratios."""


class Outputs(Step):
    """Finitely many outputs, each with its loss and its mass under P; some may be missing, so it bounds from below only."""

    __slots__ = ()
    complete = False

    @abstractmethod
    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        """Losses and log P-masses; masses below e^log_mass may be left out."""

    def span(self, log_mass: float) -> tuple[float, float]:
        loss, _ = self.outputs(log_mass)
        return float(np.min(loss, initial=0.0)), float(np.max(loss, initial=0.0))

    def cells(self, step: float, log_mass: float) -> Cells:
        loss, log_p = self.outputs(log_mass)
        low, high = self.span(log_mass)
        first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
        grid = Grid(step, 0.0, first, last - first + 1)
        left, right, atoms = (np.full(count, -np.inf) for count in (grid.count - 1, grid.count - 1, grid.count))
        slip, error = place_atoms(loss, log_p, grid, left, right, atoms)
        error += _ROUNDED * (1 + 0.01 * max(-low, high))
        return Cells(grid, left, right, atoms, -np.inf, -np.inf, slip + misplaced(low, high), error)


@dataclass(frozen=True, slots=True)
class Finite(Outputs):
    """P and Q by their masses, those of P without a partner in Q counted as a leak."""

    losses: tuple[float, ...]
    log_masses: tuple[float, ...]
    alone: float

    @classmethod
    def sampled(cls, p: Sequence[Fraction], q: Sequence[Fraction], rate: Fraction, direction: str) -> Finite:
        """(1-g)Q + gP against Q, or with direction "add" the two swapped."""
        numerators, whole = common((*p, *q))
        g, one = rate.as_integer_ratio()
        pairs = zip(numerators[: len(p)], numerators[len(p) :], strict=True)
        mixed = [((one - g) * y + g * x, one * y) for x, y in pairs]  # over one * whole
        outputs = mixed if direction == "remove" else [(y, x) for x, y in mixed]
        both = [(x, y) for x, y in outputs if x and y]
        masses = log_quotients((x, one * whole) for x, _ in both)
        alone = Fraction(sum(x for x, y in outputs if not y), one * whole)
        return cls(tuple(log_quotients(both).tolist()), tuple(masses.tolist()), float(alone))

    @property
    def leak(self) -> float:
        return self.alone

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        return np.array(self.losses), np.array(self.log_masses)

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return self.outputs(0.0)
