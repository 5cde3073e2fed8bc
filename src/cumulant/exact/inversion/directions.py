"""One direction against another, in balls: whether it needs no more than what is known of the other."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from cumulant.exact.inversion.choose import BASE, Side, at_order, tightest_order
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.lattice_line import spacing_of
from cumulant.exact.inversion.line import Choice, leaked, outer, right_tail, spectrum, squared
from cumulant.numerics.arithmetic import BALLS

_ROUGH = 6.0
"""The exponent of images, and of silence beyond what cancels: what is smaller takes less to be shown to be so."""


def no_more(side: Side, choice: Choice, epsilon: Fraction | float, delta: Fraction | float) -> bool:
    """Whether balls show delta(epsilon) <= delta for this side, with a line that was chosen for another: any line is valid."""
    if spacing_of(side.kinds):
        return False
    try:
        with BALLS.at(choice.bits):
            if _by_one_order(side, choice, epsilon, delta):
                return True
            rough = at_order(side, choice.lam, float(epsilon), math.log(float(delta)), math.exp(BASE - _ROUGH))
            if rough is None:
                return False
            found = spectrum(side.kinds, rough, side.extra)
            return bool(found.upper(BALLS.number(epsilon)) <= BALLS.number(delta))
    except (DecayNotProved, ArithmeticError):
        return False


def _by_one_order(side: Side, choice: Choice, epsilon: Fraction | float, delta: Fraction | float) -> bool:
    """delta(eps) <= leak + c(t) M(t) e^{-t eps} at every real order t > 0: (1 - e^-y)_+ <= c(t) e^{ty}."""
    t, log_bound = tightest_order(side, float(epsilon), choice.lam)
    if not log_bound < math.log(float(delta)):
        return False
    mass = outer(side.kinds, replace(choice, outer=t), side.extra + squared(side.kinds))
    bound = leaked(side.kinds) + right_tail(BALLS.number(t), mass, BALLS.number(epsilon))
    return bool(bound <= BALLS.number(delta))
