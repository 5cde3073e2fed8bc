"""The bounded Laplace pair: unit noise on [-A, A], shifted by t = sensitivity / scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.bounded_laplace import BoundedLaplace, leak
from cumulant.losses.grid import LARGEST_LOSS, SMALLEST_LOSS, Loss
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.pairs.pair import Pair


@dataclass(frozen=True, slots=True)
class BoundedLaplacePair(Pair):
    """The density n e^-|x| on [-A, A] around t = shift and around 0; reflection swaps them.

    n = 1 / (2 (1 - e^-A)) and 0 < t <= A. The restricted noise is log-concave, so that it dominates queries of this L1
    sensitivity in any dimension. It offers its loss on a grid, and no transform.

    >>> BoundedLaplacePair(Fraction(1, 2), Fraction(10)).profile([0, 0.25, 0.5])
    array([2.21209260e-01, 1.17514880e-01, 1.47266187e-05])
    """

    shift: Fraction
    bound: Fraction

    symmetric = True
    chained = True

    def curve(self) -> BoundedLaplace:
        return BoundedLaplace(self.shift, self.bound)

    def group_pair(self, size: int) -> Pair | None:
        return BoundedLaplacePair(self.shift * size, self.bound) if self.shift * size <= self.bound else None

    def loss(self) -> Loss | None:
        if not SMALLEST_LOSS < self.shift <= LARGEST_LOSS:
            return None
        height, edge_share = _noise(self.shift, self.bound)
        return BoundedLaplaceLoss(float(self.shift), height, edge_share, float(leak(self.shift, self.bound)))

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log of leak + n (1-r)(1 - u^2) + n (1-u)^2; the leak alone from eps = t on.

        u = e^-(t-eps)/2 and r = e^-(A-t).
        """
        height, edge_share = _noise(self.shift, self.bound)
        gap = -np.expm1(np.minimum(epsilons - FLOATS.number(self.shift), 0.0) / 2)
        with np.errstate(divide="ignore"):
            finite = np.log(edge_share * gap * (2 - gap) + gap * gap) + math.log(height)
            return np.minimum(np.logaddexp(finite, np.log(FLOATS.number(leak(self.shift, self.bound)))), 0.0)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        t, A = on.number(self.shift), on.number(self.bound)
        height = -1 / (2 * (-A).expm1())
        edge_share, leak_mass = -(t - A).expm1(), -height * (t - A).exp() * (-t).expm1()

        def delta(epsilon: Any) -> Any:
            if Fraction(epsilon) >= self.shift:
                return leak_mass
            gap = -((on.number(epsilon) - t) / 2).expm1()
            return leak_mass + height * (edge_share * gap * (2 - gap) + gap * gap)

        return np.asarray(np.frompyfunc(delta, 1, 1)(epsilons))


def _noise(shift: Fraction, bound: Fraction) -> tuple[float, float]:
    """Return n and 1 - r in floats."""
    return -0.5 / math.expm1(-FLOATS.number(bound)), -math.expm1(-FLOATS.number(bound - shift))


@dataclass(frozen=True, slots=True)
class BoundedLaplaceLoss(Loss):
    """The loss under Q: two atoms at -t and t, a density between them, and a leak.

    The atom at -t has the mass n (1-r), the one at t that times e^-t; the density is (n/2) e^{-(x+t)/2}.
    """

    t: float
    height: float
    edge_share: float
    leak_mass: float

    def loss(self, y: Array) -> Array:
        return y

    def place(self, x: Array) -> Array:
        return np.clip(x, -self.t, self.t)

    def log_density(self, y: Array) -> Array:
        return -(y + self.t) / 2 + math.log(self.height / 2)

    def roughness(self, y: Array) -> Array:
        return np.full_like(y, 0.5)

    def reach(self, log_mass: float) -> float:
        return self.t

    def atoms(self) -> tuple[Array, Array]:
        if not self.edge_share > 0:
            return np.zeros(0), np.zeros(0)
        return np.array([-self.t, self.t]), np.array([0.0, -self.t]) + math.log(self.height * self.edge_share)

    @property
    def distance(self) -> float:
        gap = -math.expm1(-self.t / 2)
        return self.height * (self.edge_share * gap * (2 - gap) + gap * gap)

    @property
    def leak(self) -> float:
        return self.leak_mass
