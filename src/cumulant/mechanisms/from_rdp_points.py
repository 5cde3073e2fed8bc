"""A mechanism that users bring by points of its curve."""

from __future__ import annotations

from collections.abc import Iterable

from cumulant.curves.curve import Curve
from cumulant.curves.points import hull_of_points
from cumulant.domains import NONNEGATIVE, ORDER, Number, Several, listed
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.parameters import Reals, parameter


def from_rdp_points(orders: Iterable[Number], values: Iterable[Number]) -> Mechanism:
    """Return a mechanism known at these orders only.

    Between them K is bounded by chords, past the last by nothing (E-8).

    Each value is an upper bound. The divergence grows with the order, so a smaller value at a later order holds before it.

    >>> from_rdp_points([2, 4], [0.1, 0.3]).rdp([3, 5])
    array([0.25,  inf])
    >>> from_rdp_points([2, 4], [0.5, 0.3]).rdp([2, 4])
    array([0.3, 0.3])
    """
    return ByPoints(listed("orders", orders), listed("values", values))


@register
class ByPoints(Mechanism):
    """A mechanism known at some orders, as `from_rdp_points` makes it."""

    orders: Reals = parameter(Several(ORDER))
    values: Reals = parameter(Several(NONNEGATIVE))

    def _validate(self) -> None:
        if len(self.orders) != len(self.values):
            raise InputError(
                f"orders and values must have the same length, not {len(self.orders)} and {len(self.values)}"
            )
        if any(left >= right for left, right in zip(self.orders, self.orders[1:], strict=False)):
            raise InputError("orders must increase from one to the next")

    def own_curve(self, bound: str) -> Curve:
        return hull_of_points(self.orders, self.values)

    def assumption(self) -> str:
        return "the values bound the divergence of every pair of neighbours, in both directions"

    @classmethod
    def name(cls) -> str:
        return "from_rdp_points"
