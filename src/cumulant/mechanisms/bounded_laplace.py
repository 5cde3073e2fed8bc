"""Laplace noise restricted to an interval."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import ClassVar

from cumulant.curves.bounded_laplace import BoundedLaplace as BoundedLaplaceCurve
from cumulant.curves.curve import Curve
from cumulant.domains import POSITIVE, Less
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Real, parameter


@register
class BoundedLaplace(Mechanism):
    """f(X) + independent Laplace noise restricted to [-bound, bound].

    The density is ~ e^(-|x| / scale) on the interval and 0 elsewhere, for this L1 sensitivity.

    Values outside of the interval are drawn again, not moved to its ends. Near the ends an output tells the data sets apart, so
    there is a delta that no epsilon avoids. The sensitivity is at most the bound. Proof: docs/mechanisms/bounded-laplace.md.

    >>> BoundedLaplace(scale=1, bound=20).delta(epsilon=1)
    1.77083e-09
    """

    scale: Real = parameter(POSITIVE)
    bound: Real = parameter(POSITIVE)
    sensitivity: Real = parameter(POSITIVE, default=1)

    joint: ClassVar[tuple[Less, ...]] = (Less("sensitivity", "bound", equal=True),)

    def key(self) -> Hashable:
        return self._units()

    def _units(self) -> tuple[Fraction, Fraction]:
        """Return sensitivity and bound in units of the scale."""
        return self.sensitivity / self.scale, self.bound / self.scale

    def own_curve(self, bound: str) -> Curve:
        return BoundedLaplaceCurve(*self._units())

    def pair(self) -> Pair:
        from cumulant.pairs.bounded_laplace import BoundedLaplacePair

        return BoundedLaplacePair(*self._units())
