"""Any mechanism with several (epsilon, delta) guarantees at once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from typing import TYPE_CHECKING

from cumulant.curves.curve import Curve
from cumulant.domains import PROMISED, SLACK, Several
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.parameters import Reals, parameter

if TYPE_CHECKING:
    from cumulant.pairs.polygon import PolygonPair


@register
class PrivacyProfile(Mechanism):
    """Any mechanism that is (epsilon_i, delta_i)-DP for every i at once.

    The table of another accountant may say so.

    In between, delta is at most the chord in e^epsilon, and the worst such mechanism has just that profile: it composes far
    below the sum of its points. One point is `ApproximateDP`. See docs/mechanisms/promises.md.

    >>> table = PrivacyProfile(epsilons=[0, "0.5", 1, 3], deltas=["0.2", "0.05", "0.01", "1e-6"])
    >>> table.delta(epsilon=1), table.delta(epsilon="0.7")
    (0.01, 0.0363484)
    """

    epsilons: Reals = parameter(Several(PROMISED))
    deltas: Reals = parameter(Several(SLACK))
    polygon: PolygonPair = field(init=False)

    def _validate(self) -> None:
        if len(self.epsilons) != len(self.deltas):
            raise InputError(
                f"epsilons and deltas must have the same length, not {len(self.epsilons)} and {len(self.deltas)}"
            )
        from cumulant.pairs.polygon import PolygonPair, convex_corners

        object.__setattr__(self, "polygon", PolygonPair(*convex_corners(self.epsilons, self.deltas)))

    def key(self) -> Hashable:
        return self.polygon

    def own_curve(self, bound: str) -> Curve:
        return self.polygon.curve()

    def pair(self) -> PolygonPair:
        return self.polygon
