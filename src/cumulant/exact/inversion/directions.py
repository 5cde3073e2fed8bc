"""Compare one direction with another in balls.

One of them may provably need no more than the known answer of the other.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from cumulant.exact.inversion.choose import Side, choose_at_order, tightest_order
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.lattice_line import spacing_of
from cumulant.exact.inversion.line import (
    Choice,
    build_line,
    gaussian_square,
    leak_probability,
    moment_ball,
    right_tail_bound,
)
from cumulant.exact.inversion.settings import LINE
from cumulant.numerics.arithmetic import BALLS


def proves_no_more(side: Side, choice: Choice, epsilon: Fraction | float, delta: Fraction | float) -> bool:
    """Return True if balls prove delta(epsilon) <= delta for this side on the other side's line.

    Every line is valid.
    """
    if spacing_of(side.round_types):
        return False
    try:
        with BALLS.at(choice.bits):
            if _proved_by_one_order(side, choice, epsilon, delta):
                return True
            rough = choose_at_order(
                side,
                choice.lam,
                float(epsilon),
                math.log(float(delta)),
                math.exp(LINE.margin_exponent - LINE.rough_exponent),
            )
            if rough is None:
                return False
            found = build_line(side.round_types, rough, side.extra)
            return bool(found.upper(BALLS.number(epsilon)) <= BALLS.number(delta))
    except (DecayNotProved, ArithmeticError):
        return False


def _proved_by_one_order(side: Side, choice: Choice, epsilon: Fraction | float, delta: Fraction | float) -> bool:
    """Return True if one real order t proves it.

    It is delta(eps) <= leak + c(t) M(t) e^{-t eps}, (1 - e^-y)_+ <= c(t) e^{ty}.
    """
    t, log_bound = tightest_order(side, float(epsilon), choice.lam)
    if not log_bound < math.log(float(delta)):
        return False
    mass = moment_ball(side.round_types, replace(choice, image_order=t), side.extra + gaussian_square(side.round_types))
    bound = leak_probability(side.round_types) + right_tail_bound(BALLS.number(t), mass, BALLS.number(epsilon))
    return bool(bound <= BALLS.number(delta))
