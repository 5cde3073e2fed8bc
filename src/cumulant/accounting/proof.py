"""Which curve proves what about a mechanism, and which bound won."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cumulant.accounting.guarantee import Term
from cumulant.bounds.bound import amplified
from cumulant.bounds.table import BOUNDS
from cumulant.bounds.table import row as bound_row
from cumulant.curves.curve import Curve
from cumulant.curves.memory import once
from cumulant.curves.remembered import Remembered

if TYPE_CHECKING:
    from cumulant.mechanisms.mechanism import Mechanism


def curve_of(mechanism: Mechanism, bound: str) -> Curve:
    """What this bound proves about one run of the mechanism; without a sample every upper bound is its own curve."""
    name = bound if mechanism.amplified or not bound_row(bound).upper else ""
    if mechanism.frozen:
        return remembered_curve(mechanism, name)
    return once((mechanism, name), lambda: new_curve(mechanism, name))


@lru_cache(maxsize=4096)
def remembered_curve(mechanism: Mechanism, bound: str) -> Curve:
    """One curve object for all equal mechanisms, so that what it has computed serves them all."""
    return new_curve(mechanism, bound)


def new_curve(mechanism: Mechanism, bound: str) -> Curve:
    """A curve that has computed nothing yet."""
    if mechanism.amplified or not bound:
        return Remembered(mechanism.own_curve(bound))
    return Remembered(
        amplified(BOUNDS, bound, mechanism.own_curve(bound), mechanism.pair(), Fraction(1), str(mechanism))
    )


def term(mechanism: Mechanism, times: int, bound: str, order: float | None) -> Term:
    """What one component contributes to an answer at this order."""
    if order is None:
        return Term(str(mechanism), times, bound if mechanism.amplified else "", (), None)
    curve = curve_of(mechanism, bound)
    value = float(curve.pure() if order == np.inf else curve.cgf(np.array([order - 1]))[0])
    name = (curve.winner(order) or bound) if mechanism.amplified else ""
    return Term(str(mechanism), times, name, (order,), times * value)
