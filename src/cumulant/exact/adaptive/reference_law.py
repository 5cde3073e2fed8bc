"""Reference law T* of Theorem W: a linear programme proposes it, balls check it.

Conditions: mass at least 1, mean at least 1, and G* >= the constraint of the triples at every x0 (docs/test-orders.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cumulant.exact.adaptive.constraints import BITS, Constraint, integrals, kernels
from cumulant.exact.adaptive.settings import THEOREM_W
from cumulant.losses.grid import Outputs
from cumulant.losses.transform import Lattice, Rule, Transform
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.rounding import MANY, rounded_up


@dataclass(frozen=True, slots=True)
class Reference(Outputs):
    """A law on a lattice: the losses width * place and their masses under the second law, b.

    The first law has e^loss times as much mass. Floats are exact here. `proved`: balls showed mass, mean and all rows.
    """

    width: float
    places: tuple[int, ...]
    masses: tuple[float, ...]
    proved: bool

    complete: ClassVar[bool] = True

    @property
    def leak(self) -> float:
        """Return 0: no loss is infinite."""
        return 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        """Return losses and log masses under the first law, at every order."""
        return self.outputs(0.0)

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        """Return losses and log masses under the first law; none is left out."""
        losses = self.width * np.array(self.places, dtype=np.float64)
        return losses, np.log(self.masses) + losses

    def anchor(self) -> float | None:
        """Return the spacing of the lattice."""
        return self.width

    @property
    def exact_lattice(self) -> bool:
        """Return True: the losses lie on the lattice exactly."""
        return True

    def transform(self) -> ReferenceTransform:
        """Return the transform in balls."""
        return ReferenceTransform(self.width, self.places, self.masses)


@dataclass(frozen=True, slots=True)
class ReferenceTransform(Transform):
    """M(z) = SUM mass e^{(1 + z) width place}.

    It is a positive measure, whose mass may be a little more than 1.
    """

    width: float
    places: tuple[int, ...]
    masses: tuple[float, ...]

    def atoms(self, lam: float, log_error: float) -> Rule:
        """Return the losses and their tilted masses, as balls."""
        width, power = BALLS.number(self.width), 1 + BALLS.number(lam)
        points = [(place * width, mass) for place, mass in zip(self.places, self.masses, strict=True)]
        return Rule([], [(loss, BALLS.number(mass) * (power * loss).exp()) for loss, mass in points], BALLS.number(0))

    def lattice(self) -> Lattice:
        """Return the lattice of the losses."""
        return Lattice(Fraction(self.width), Fraction(0))


def rows_between(top: float, count: int) -> Array:
    """Return x0 of the rows.

    They run evenly from -top to top, and ever closer below top, where relative errors must stay small.
    """
    close = top * (1 - np.geomspace(0.2, THEOREM_W.nearest_row, count))
    rows = np.concatenate([np.linspace(-top, 0.0, count), np.linspace(0.0, 0.8 * top, count)[1:], close[1:], [top]])
    rows[0] = -top * (1 + MANY)
    rows[-1] = top * (1 + MANY)
    return rows


def is_proved(law: Reference, constraint: Constraint, order: float, starts: Array) -> bool:
    """Return True if balls prove mass, mean and every row of a law.

    Nothing else is assumed about it.

    Rows: G* at the next x0 is at least the constraint at each x0, so that it holds in between, as both fall; the constraint is
    0 from the last x0 on, and constant up to the first. The mass at 0 is more than the excess of all mass over 1, so that G* is
    at least its calls and puts.
    """
    if not (0 in law.places and all(0 < mass < math.inf for mass in law.masses) and 0 < law.width < math.inf):
        return False
    total, at_zero = sum(map(Fraction, law.masses), start=Fraction(0)), Fraction(law.masses[law.places.index(0)])
    if not total >= 1 >= total - at_zero:
        return False
    if not (0.0 in starts and (np.diff(starts) > 0).all() and np.isfinite(starts).all()):
        return False
    with BALLS.at(BITS):
        width = BALLS.number(law.width)
        atoms = [
            (width * place, BALLS.number(mass)) for place, mass in zip(law.places, law.masses, strict=True) if place
        ]
        mean = sum((mass * loss.expm1() for loss, mass in atoms), start=BALLS.number(0))
        reach = constraint.largest_loss()
        if not (mean >= 0 and BALLS.number(float(starts[0])) <= -reach and BALLS.number(float(starts[-1])) >= reach):
            return False
        wanted = constraint.required_integrals(order, starts)
        if wanted is None:
            return False
        held = integrals(order, starts, atoms)
        return all(bool(more >= asked) for more, asked in zip(held[1:], wanted[:-1], strict=True))


@lru_cache(maxsize=64)
def reference(constraint: Constraint, order: float, lam: float, cells: int, count: int) -> Reference | None:
    """Return a law proved to dominate at this order n, chosen so that E T^{lam+1} is small.

    Returns None if none is proved.
    """
    law = propose_reference(constraint, order, lam, cells, count)
    if law is None or not is_proved(law, constraint, order, rows_between(constraint.top, count)):
        return None
    return replace(law, proved=True)


@lru_cache(maxsize=64)
@np.errstate(all="ignore")
def propose_reference(constraint: Constraint, order: float, lam: float, cells: int, count: int) -> Reference | None:
    """Return the law that a linear programme proposes, in floats: nothing is claimed from it.

    Returns None if it finds none.
    """
    top = constraint.top
    if not THEOREM_W.smallest_top < top <= THEOREM_W.largest_top:
        return None
    from scipy.optimize import linprog

    starts, cells = rows_between(top, count), constraint.cells(cells)
    width = top / cells * (1 + 4 * MANY)
    place = np.array([i for i in range(-cells, cells + 2) if i])
    losses = width * place
    with BALLS.at(BITS):
        asked = constraint.required_integrals(order, starts)
        wanted = np.array([float(each.upper()) for each in asked[:-1]]) if asked is not None else np.zeros(1)
    rows = kernels(order, starts[1:], losses)
    if not (np.isfinite(wanted).all() and (wanted > 0).all() and np.isfinite(rows).all()):
        return None
    cost = np.expm1((lam + 1) * losses) - (lam + 1) * np.expm1(losses)
    if not (np.isfinite(cost).all() and cost.max() > 0):
        return None
    found = linprog(
        cost / np.max(cost),
        A_ub=np.concatenate([-rows / wanted[:, None], np.ones((1, losses.size))]),
        b_ub=np.append(-np.ones(wanted.size), 1 - 4 * THEOREM_W.proposal_margin),
        A_eq=(np.expm1(losses) / np.max(np.abs(losses)))[None, :],
        b_eq=[0.0],
        bounds=(0, None),
        method="highs",
    )
    if found.x is None or not np.isfinite(found.x).all():
        return None
    masses = np.maximum(found.x, 0.0) * (1 + THEOREM_W.proposal_margin)
    # the mean: what rounding may have taken is put on the largest ratio
    mean, size = float(masses @ np.expm1(losses)), float(masses @ np.abs(np.expm1(losses)))
    masses[-1] += (max(-mean, 0.0) + MANY * size) / math.expm1(losses[-1])
    # a mass a little above 1 is no harm, one below it is
    rest = rounded_up(1 - sum(map(Fraction, masses.tolist()), start=Fraction(0)))
    if not rest > 0:
        return None
    held = {0: rest} | {int(i): mass for i, mass in zip(place, masses.tolist(), strict=True) if mass > 0}
    places = tuple(sorted(held))
    return Reference(width, places, tuple(held[i] for i in places), proved=False)
