"""The privacy loss of a pair for a grid, and one round as a pair (P, Q) of output laws.

Letters: g = rate, (P0, Q0) the symmetric base pair, x = log(p0/q0), w = 1 - g + g e^x, L = log w.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cumulant.losses.cells import Cells, Grid, place_atoms, rounding_slip, split_shares
from cumulant.losses.subsampled import sampled_loss, unsampled_loss
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.logspace import log_sum
from cumulant.numerics.quadrature import legendre
from cumulant.numerics.rounding import MANY

SMALLEST_LOSS = 1e-100
"""Least value of the largest loss (nats) on a grid; convention: below it squares underflow."""

LARGEST_LOSS = 1e5
"""Largest value of a bounded loss (nats) on a grid; beyond it no grid spans all scales."""

QUADRATURE = 2e-15
"""Relative error of a cell's mass by four Gauss-Legendre points on panels of width at most 0.2 / roughness:
(4!)^4 / (9 (8!)^3) < 5.7e-10, times 0.2^8, times e^0.2 for the largest density on the panel, is below it."""
_PANEL = 0.2
"""Width of a panel times the roughness; derived: `QUADRATURE` needs it."""

_BLOCK = 1 << 15
"""Cells that are integrated at once; a bound of memory."""

_MOST_CELL_PANELS = 1 << 22
"""Panels of all cells; chosen by hand, a bound of work: beyond it the grid is refused."""

_PANEL_NODES = 12
"""Gauss nodes of a panel of the guiding rule; these numbers guide and prove nothing."""

_MOST_PANELS = 1 << 12
"""Panels of the guiding rule; a bound of memory."""

_NODES_TAIL = 40.0
"""Nats of the mass that the guiding rule leaves out, e^-40."""

_ROUNDED = 4 * MANY
"""Relative error of the masses that `outputs` gives, and of their ratios."""


class Loss(ABC):
    """The law of x under Q: a density in a coordinate y that grows with x, atoms, and a leak."""

    __slots__ = ()

    smooth: bool = True
    """True if the loss has a density."""

    @abstractmethod
    def loss(self, y: Array) -> Array:
        """Return the loss x at the coordinate y."""

    @abstractmethod
    def place(self, x: Array) -> Array:
        """The coordinate of the loss x."""

    @abstractmethod
    def log_density(self, y: Array) -> Array:
        """Return log of the density of Q at the coordinate y."""

    @abstractmethod
    def roughness(self, y: Array) -> Array:
        """Return r such that the eighth derivatives of both densities are at most r^8 times them."""

    @abstractmethod
    def reach(self, log_mass: float) -> float:
        """Return a loss X with P(X < x < inf) at most e^log_mass.

        If the pair is symmetric, Q(-inf < x < -X) is at most e^log_mass too.
        """

    def lowest(self, log_mass: float) -> float:
        """Return a loss that all but e^log_mass of Q exceeds; -`reach` if the pair is symmetric."""
        return -self.reach(log_mass)

    def least(self) -> float:
        """Return a loss below all finite ones; the negative of the largest if the pair is symmetric."""
        return -self.reach(-math.inf)

    def lifted_reach(self, log_mass: float, lam: float) -> float:
        """Return a loss X beyond which the law tilted by e^{lam x} has at most e^log_mass."""
        return self.reach(log_mass)

    def atoms(self) -> tuple[Array, Array]:
        """The losses x != 0 that have positive probability, and log of their Q-masses."""
        return np.zeros(0), np.zeros(0)

    @property
    @abstractmethod
    def distance(self) -> float:
        """The total variation distance of P and Q, infinite losses left out."""

    @property
    def equal(self) -> float:
        """The mass where p = q."""
        return 0.0

    @property
    def leak(self) -> float:
        """The mass of P where Q has none."""
        return 0.0

    @property
    def lattice(self) -> float | None:
        """A step whose multiples hold all losses, if there is one."""
        return None

    def mixture(self, rate: Fraction, direction: str) -> Mixture:
        """Return the pair on a sample of this rate, in one direction."""
        return Mixture(self, float(rate), float(1 - rate), direction)


class Step(ABC):
    """A pair (P, Q) through the law of its loss under P.

    It is `complete` unless outputs may be missing; then it bounds from below only.
    """

    __slots__ = ()
    complete: ClassVar[bool] = True

    @property
    @abstractmethod
    def leak(self) -> float:
        """Return the P-mass of infinite loss."""

    @abstractmethod
    def nodes(self, lam: float) -> tuple[Array, Array]:
        """Return losses and log P-masses of a quadrature rule, good up to the order lam + 1."""

    @abstractmethod
    def span(self, log_mass: float) -> tuple[float, float]:
        """Return two losses between which all but e^log_mass of the finite P-mass lies."""

    @abstractmethod
    def cells(self, step: float, log_mass: float) -> Cells:
        """Return the pair on a grid of this step.

        Masses below e^log_mass may move up to the grid or to infinity.
        """

    def largest(self) -> float:
        """Return a bound on all finite losses, up to rounding; +inf if none is known."""
        return math.inf

    def own_delta(self, epsilon: float, log_mass: float) -> float | None:
        """Return delta of this round alone, computed without a grid.

        It is bounded from above, or from below if the law is not complete. Masses below e^log_mass may count as infinite
        losses. None where it is not offered; the caller then uses a grid.
        """
        return None

    def log_atoms(self, lam: float) -> float:
        """Return log of the part of the law, tilted by e^{lam l}, that atoms hold.

        The characteristic function of the tilted law returns to that height again and again.
        """
        return 0.0

    def anchor(self) -> float | None:
        """Return a step whose multiples, from some offset on, hold all atoms; None if none helps."""
        return None

    @property
    def exact_lattice(self) -> bool:
        """True if the loss has only the values offset + i * anchor."""
        return False


Terms = tuple[tuple[Step, int], ...]
"""The step of each round type, and how often that type runs."""


def leak_of(terms: Terms) -> float:
    """Return the probability that the loss of some round is infinite."""
    log_kept = 0.0
    for step, times in terms:
        log_kept += times * math.log1p(-step.leak) if step.leak < 1 else -math.inf
    return -math.expm1(log_kept)


@dataclass(frozen=True, slots=True)
class Mixture(Step):
    """One of the three pairs that sampling makes of a base pair.

    "remove"     (1-g)Q0 + gP0 against Q0: loss L(x) under that mixture;
    "add"        Q0 against (1-g)Q0 + gP0: loss -L(x) under Q0;
    "symmetric"  the pair of the amplified profile: loss L with P-mass q0 w and loss -L with P-mass q0 where x > 0, and an
                 atom at 0 of mass (1-g) TV(P0, Q0) + P0(p0 = q0).
    """

    law: Loss
    rate: float
    kept: float
    direction: str

    @property
    def leak(self) -> float:
        return 0.0 if self.direction == "add" and self.kept > 0 else self.rate * self.law.leak

    def largest(self) -> float:
        low, high = sampled_loss(np.array([self.law.least(), self.law.reach(-math.inf)]), self.rate, self.kept)
        return -self._lowest(float(low)) if self.direction == "add" else float(high)

    def _range(self, log_mass: float) -> tuple[float, float]:
        return (0.0 if self.direction == "symmetric" else self.law.lowest(log_mass)), self.law.reach(log_mass)

    def _atom_at_zero(self) -> float:
        """The mass of the loss 0."""
        if self.direction == "symmetric":
            return self.kept * (self.law.distance + self.law.leak) + self.law.equal
        return self.law.equal

    def span(self, log_mass: float) -> tuple[float, float]:
        low, high = sampled_loss(np.array(self._range(log_mass)), self.rate, self.kept)
        match self.direction:
            case "remove":
                return self._lowest(float(low)), float(high)
            case "add":
                return -float(high), -self._lowest(float(low))
        return -float(high), float(high)

    def _lowest(self, low: float) -> float:
        """Return the least loss: log(1 - g) if only Q0 can produce some output."""
        return min(low, math.log(self.kept)) if self.law.leak and self.kept else low

    def nodes(self, lam: float) -> tuple[Array, Array]:
        # a rule that reaches farther serves smaller orders too, so that orders nearby share one
        return _mixed_nodes(self, 2.0 ** (math.ceil(2 * math.log2(lam)) / 2) if lam > 0 else lam)

    def log_atoms(self, lam: float) -> float:
        if not self.law.smooth:
            return 0.0
        x, log_q = self.law.atoms()
        there = x >= self._range(0.0)[0] if self.direction == "symmetric" else np.full(x.shape, True)
        loss, log_p = self._sampled_losses(x[there], log_q[there])
        every, log_every = self.nodes(lam)
        return float(log_sum(log_p + lam * loss) - log_sum(log_every + lam * every)) if loss.size else -math.inf

    def _sampled_losses(self, x: Array, log_q: Array) -> tuple[Array, Array]:
        """Return losses and log P-masses on the sample of these losses and Q0-masses, and of atoms."""
        L = sampled_loss(x, self.rate, self.kept)
        zero = self._atom_at_zero()
        extra = (np.zeros(1), np.array([math.log(zero)])) if zero > 0 else (np.zeros(0), np.zeros(0))
        alone = self._outputs_of_q_alone()
        match self.direction:
            case "remove":
                loss, log_p = [L, extra[0], alone[0]], [log_q + L, extra[1], alone[1] + alone[0]]
            case "add":
                loss, log_p = [-L, extra[0], -alone[0]], [log_q, extra[1], alone[1]]
            case _:
                loss, log_p = [L, -L, extra[0]], [log_q + L, log_q, extra[1]]
        return np.concatenate(loss), np.concatenate(log_p)

    def _outputs_of_q_alone(self) -> tuple[Array, Array]:
        """Return loss and log Q0-mass of the outputs that P0 cannot produce.

        The symmetric pair counts them at the loss 0, so that both arrays are empty for it.
        """
        if self.direction == "symmetric" or not self.law.leak or not self.kept:
            return np.zeros(0), np.zeros(0)
        return np.array([math.log(self.kept)]), np.array([math.log(self.law.leak)])

    def anchor(self) -> float | None:
        if self.law.lattice is not None and not self.kept and self.direction == "symmetric":
            return self.law.lattice
        x, _ = self.law.atoms()
        if x.size != 2 or self._outputs_of_q_alone()[0].size:
            return None
        low, high = sampled_loss(x, self.rate, self.kept)
        if self.direction == "symmetric":
            return float(high)
        return float(high - low) if not self.law.equal else None

    @property
    def exact_lattice(self) -> bool:
        return not self.law.smooth and self.anchor() is not None

    def _offset(self) -> float:
        x, _ = self.law.atoms()
        if self.direction == "symmetric" or self.anchor() is None:
            return 0.0
        return float(sampled_loss(x[:1], self.rate, self.kept)[0])

    def cells(self, step: float, log_mass: float) -> Cells:
        low, high = self._range(log_mass)
        offset = self._offset()
        bottom, top = sampled_loss(np.array([low, high]), self.rate, self.kept)
        bottom = self._lowest(float(bottom))
        first = 0 if self.direction == "symmetric" else math.floor((bottom - offset) / step - 1e-6)
        last = max(math.ceil((top - offset) / step + 1e-6), first + 2)
        grid = Grid(step, offset, first, last - first + 1)
        found = _mixture_cells(self.law, self.rate, self.kept, grid, low, high)
        loss, log_q = self._outputs_of_q_alone()
        slip, error = place_atoms(loss, log_q + loss, grid, found.left, found.right, found.atoms)
        slip, error = slip + found.slip, error + found.error
        cut = log_mass if self.law.smooth else -np.inf
        match self.direction:
            case "remove":
                cells = Cells(grid, found.left, found.right, found.atoms, cut, cut, slip, error)
            case "add":
                back = found.mirrored()
                cells = Cells(back.grid, back.left, back.right, back.atoms, cut, cut, slip, error + slip)
            case _:
                cells = _both(found, cut, slip)
        zero = self._atom_at_zero()
        if zero > 0:
            place_atoms(np.zeros(1), np.array([math.log(zero)]), cells.grid, cells.left, cells.right, cells.atoms)
        return cells


def _mixture_cells(law: Loss, rate: float, kept: float, grid: Grid, low: float, high: float) -> Cells:
    """Put (1-g)Q + gP against Q for base losses in [low, high] on a grid that covers them."""
    points = grid.points()
    left, right = np.full(grid.count - 1, -np.inf), np.full(grid.count - 1, -np.inf)
    if law.smooth:
        edges = law.place(np.clip(unsampled_loss(points, rate, kept), low, high))
        _spread(law, rate, kept, grid.step, points, edges, left, right)
    atoms = np.full(grid.count, -np.inf)
    x, log_q = law.atoms()
    inside = (x >= low) & (x <= high)
    L = sampled_loss(x[inside], rate, kept)
    slip, error = place_atoms(L, log_q[inside] + L, grid, left, right, atoms)
    return Cells(grid, left, right, atoms, -np.inf, -np.inf, slip + rounding_slip(low, high), error + QUADRATURE)


def _spread(
    law: Loss, rate: float, kept: float, step: float, points: Array, edges: Array, left: Array, right: Array
) -> None:
    """Integrate the density over each cell and split it between the ends of the cell.

    Panels are narrow enough for QUADRATURE. Raises OverflowError if there are too many.
    """
    widths = np.diff(edges)
    rough = np.maximum(law.roughness(edges[1:]), law.roughness(edges[:-1]))
    panels = np.ceil(widths * rough / _PANEL).astype(np.int64)
    if panels.sum() > _MOST_CELL_PANELS:
        raise OverflowError
    nodes, weights = legendre(4)
    filled = np.flatnonzero(panels)
    for start in range(0, filled.size, _BLOCK):
        cells = filled[start : start + _BLOCK]
        many = panels[cells]
        last = np.cumsum(many)
        starts = last - many
        cell = np.repeat(np.arange(cells.size), many)
        width = (widths[cells] / many)[cell]
        y = edges[cells][cell] + width * (np.arange(last[-1]) - starts[cell])
        y = y[:, None] + width[:, None] * nodes
        L = sampled_loss(law.loss(y), rate, kept)
        log_p = law.log_density(y) + L + np.log(width[:, None] * weights)
        top = np.maximum.reduceat(log_p.max(axis=1), starts)
        mass = np.exp(log_p - top[cell][:, None])
        to_right, to_left = split_shares(L - points[cells][cell][:, None], step)
        with np.errstate(divide="ignore"):
            right[cells] = top + np.log(np.add.reduceat((mass * to_right).sum(axis=1), starts))
            left[cells] = top + np.log(np.add.reduceat((mass * to_left).sum(axis=1), starts))


def _both(half: Cells, cut: float, slip: float) -> Cells:
    """Return the cells of x > 0 with their mirror image; the two meet at the loss 0.

    The other law of an atom that was moved onto the grid is wrong by as much as the atom was moved.
    """
    back = half.mirrored()
    n = half.grid.count
    grid = Grid(half.grid.step, 0.0, -(n - 1), 2 * n - 1)
    atoms = np.concatenate([back.atoms[:-1], [np.logaddexp(back.atoms[-1], half.atoms[0])], half.atoms[1:]])
    left, right = np.concatenate([back.left, half.left]), np.concatenate([back.right, half.right])
    return Cells(grid, left, right, atoms, cut, cut, slip, half.error + slip)


@lru_cache(maxsize=1024)
def _mixed_nodes(step: Mixture, lam: float) -> tuple[Array, Array]:
    """Return the nodes and log masses of a rule for orders up to this one."""
    low, high = step._range(-_NODES_TAIL)
    if step.direction != "add":  # e^{lam x} lifts what lies far to the right
        high = step.law.lifted_reach(-_NODES_TAIL, lam)
    found = step._sampled_losses(*_rule(step.law, low, high))
    for each in found:
        each.flags.writeable = False
    return found


@lru_cache(maxsize=64)
def _rule(law: Loss, low: float, high: float) -> tuple[Array, Array]:
    """Return losses and log Q-masses of a Gauss-Legendre rule on panels, atoms included."""
    x, log_q = law.atoms()
    inside = (x >= low) & (x <= high)
    x, log_q = x[inside], log_q[inside]
    if not law.smooth:
        return x, log_q
    start, end = law.place(np.array([low, high])).tolist()
    panels = min(max(2, math.ceil(end - start)), _MOST_PANELS)
    nodes, weights = legendre(_PANEL_NODES)
    width = (end - start) / panels
    y = (start + width * (np.arange(panels)[:, None] + nodes)).ravel()
    log_w = law.log_density(y) + np.log(np.tile(weights * width, panels))
    return np.concatenate([law.loss(y), x]), np.concatenate([log_w, log_q])


class Outputs(Step):
    """Finitely many outputs, each with its loss and its mass under P.

    Some may be missing, so it bounds from below only.
    """

    __slots__ = ()
    complete = False

    @abstractmethod
    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        """Return losses and log P-masses; masses below e^log_mass may be left out."""

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
        return Cells(grid, left, right, atoms, -np.inf, -np.inf, slip + rounding_slip(low, high), error)
