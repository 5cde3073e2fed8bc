"""T*: the reference law of Theorem W, on a lattice; a linear programme proposes it and proves nothing, its rows are checked.

Conditions: mass at least 1, mean at least 1, and G* >= what the triples demand at every x0 (docs/test-orders.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cumulant.lattice.demands import Demand, kernels
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import LONG, MANY, U, rounded_up
from cumulant.pairs.step import Outputs

_NEAREST = 1e-5
_ROOM = 1e-6
"""What the proposal is raised by, so that its own tolerance does not matter."""

_SLIGHTEST, _WIDEST = 1e-7, 3.0
"""Of the largest loss of a round; below it nothing is left of differences, beyond it no order averages over one."""


@dataclass(frozen=True, slots=True)
class Reference(Outputs):
    """T*: the losses width * place and their masses under the second law, b; the first law has e^loss times as much.

    Floats are exact here. `proved`: mass, mean and all rows were shown in balls.
    """

    width: float
    places: tuple[int, ...]
    masses: tuple[float, ...]
    proved: bool

    complete: ClassVar[bool] = True

    @property
    def leak(self) -> float:
        return 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return self.outputs(0.0)

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        losses = self.width * np.array(self.places, dtype=np.float64)
        return losses, np.log(self.masses) + losses

    def anchor(self) -> float | None:
        return self.width

    @property
    def exact_lattice(self) -> bool:
        return True


def _starts(top: float, count: int) -> Array:
    """x0 of the rows: evenly from -top to top, and ever closer below top, where a relative error must stay small."""
    close = top * (1 - np.geomspace(0.2, _NEAREST, count))
    rows = np.concatenate([np.linspace(-top, 0.0, count), np.linspace(0.0, 0.8 * top, count)[1:], close[1:], [top]])
    rows[0] = -top * (1 + MANY)
    rows[-1] = top * (1 + MANY)
    return rows


@lru_cache(maxsize=64)
@np.errstate(all="ignore")
def reference(demand: Demand, order: float, lam: float, cells: int, count: int) -> Reference | None:
    """A law on a lattice that dominates the demand at this order n, chosen so that E T^{lam+1} is small; None if none is found.

    What is checked: G* at the next row is at least what is demanded at each row, so that it is so in between; both sides fall,
    the demand is 0 beyond the last row and both are constant before the first. The mass is 1, what the others leave being at
    ratio 1, and the mean is at least 1.
    """
    if not _SLIGHTEST < demand.top <= _WIDEST:
        return None
    from scipy.optimize import linprog

    starts, top, cells = _starts(demand.top, count), demand.top, demand.cells(cells)
    width = top / cells * (1 + 4 * MANY)
    place = np.array([i for i in range(-cells, cells + 2) if i])
    losses = width * place
    wanted = demand.at(order, starts)[:-1]
    rows = kernels(order, starts[1:], losses)
    if not (np.isfinite(wanted).all() and (wanted > 0).all() and np.isfinite(rows).all()):
        return None
    power = (lam + 1) * losses
    with np.errstate(over="ignore"):
        cost = np.expm1(power) - (lam + 1) * np.expm1(losses)
    if not (np.isfinite(cost).all() and cost.max() > 0):
        return None
    found = linprog(
        cost / np.max(cost),
        A_ub=np.concatenate([-rows / wanted[:, None], np.ones((1, losses.size))]),
        b_ub=np.append(-np.ones(wanted.size), 1 - 4 * _ROOM),
        A_eq=(np.expm1(losses) / np.max(np.abs(losses)))[None, :],
        b_eq=[0.0],
        bounds=(0, None),
        method="highs",
    )
    if found.x is None or not np.isfinite(found.x).all():
        return None
    masses = np.maximum(found.x, 0.0) * (1 + _ROOM)
    # the mean: what rounding may have taken is put on the largest ratio
    mean, size = float(masses @ np.expm1(losses)), float(masses @ np.abs(np.expm1(losses)))
    masses[-1] += (max(-mean, 0.0) + MANY * size) / math.expm1(losses[-1])
    # a mass a little above 1 is no harm, one below it is
    rest = rounded_up(1 - sum(map(Fraction, masses.tolist()), start=Fraction(0)))
    # puts are differences of functions of about the size of the width, all else has one sign
    if not (rest > 0 and (rows @ masses * (1 - LONG - 64 * U / width) >= wanted).all()):
        return None
    held = {0: rest} | {int(i): mass for i, mass in zip(place, masses.tolist(), strict=True) if mass > 0}
    places = tuple(sorted(held))
    return Reference(width, places, tuple(held[i] for i in places), proved=False)
