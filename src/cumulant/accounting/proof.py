"""Which curve proves what about a mechanism, and which bound won."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cumulant.accounting.guarantee import Term
from cumulant.bounds.table import amplified
from cumulant.bounds.table import row as bound_row
from cumulant.curves.curve import Curve, Remembered
from cumulant.curves.memory import once
from cumulant.errors import HypothesisError

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
    return Remembered(amplified(mechanism.own_curve(bound), mechanism.pair(), Fraction(1), bound, str(mechanism)))


def term(mechanism: Mechanism, times: int, bound: str, order: float | None) -> Term:
    """What one component contributes to an answer at this order."""
    if order is None:
        return Term(str(mechanism), times, bound if mechanism.amplified else "", (), None)
    curve = curve_of(mechanism, bound)
    value = float(curve.pure() if order == np.inf else curve.cgf(np.array([order - 1]))[0])
    name = winner(mechanism, order, value) if mechanism.amplified and bound == "best" else bound
    return Term(str(mechanism), times, name if mechanism.amplified else "", (order,), times * value)


def winner(mechanism: Mechanism, order: float, best: float) -> str:
    """The row of the table that reaches the best value at this order; Lemma 3 at infinity."""
    for name in mechanism.candidates() if order < np.inf else ():
        try:
            value = curve_of(mechanism, name).cgf(np.array([order - 1]))[0]
        except HypothesisError:
            continue
        if math.isclose(value, best, rel_tol=1e-9):
            return name
    return "best" if order < np.inf else "lemma3"
