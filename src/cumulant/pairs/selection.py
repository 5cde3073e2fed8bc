"""The pair of the best of a random number of runs, from the profile of one run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.pairs.finite_losses import LossPair
from cumulant.pairs.pair import Pair
from cumulant.pairs.polygon import PolygonPair


@dataclass(frozen=True, slots=True)
class SelectedPair(LossPair):
    """delta(x) <= mean * base(x - moved): a polygon through some points of that.

    One round uses the formula itself. `base` is the pair of one run; it is None if its profile is known at the points
    only (docs/mechanisms/repeat-and-select.md).
    """

    polygon: PolygonPair
    base: Pair | None
    moved: Fraction
    mean: Fraction

    attained = False

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.polygon.bounded

    @property
    def leak(self) -> Fraction:
        return self.polygon.leak

    @property
    def equal(self) -> float:
        return self.polygon.equal

    def exact_unit(self) -> Fraction | None:
        return self.polygon.exact_unit()

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        return self.polygon.losses(on)

    def _log_profile(self, epsilons: Array) -> Array:
        known = self.polygon._log_profile(epsilons)
        if self.base is None:
            return known
        there = epsilons - float(self.moved)
        inside = there >= 0
        value = np.zeros(epsilons.shape)
        if inside.any():
            value[inside] = self.base.log_profile(there[inside]) + np.log(float(self.mean))
        return np.minimum(known, np.minimum(value, 0.0))

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        known = self.polygon._exact_profile(epsilons, on)
        if self.base is None:
            return known
        base = self.base

        def delta(epsilon: Any, otherwise: Any) -> Any:
            there = Fraction(epsilon) - self.moved
            return otherwise if there < 0 else on.minimum(on.number(self.mean) * base.profile(there, on), otherwise)

        return np.asarray(np.frompyfunc(delta, 2, 1)(epsilons, known))
