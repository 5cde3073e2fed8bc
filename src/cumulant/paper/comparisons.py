"""Formulas that the paper compares with its bounds or states beside its theorems.

How far the bounds are apart, and pure DP in one line.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cumulant.domains import RATE
from cumulant.domains import orders as read_orders
from cumulant.errors import InputError
from cumulant.numerics.arithmetic import Array


def additive_gap(orders: Any, rate: Any) -> Any:
    """Return a bound on the gap between Theorem 9 and Proposition 11.

    Theorem 9 without its first minimum exceeds Proposition 11 by at most a/(a-1) log(1/(1-g)) + log 2/(a-1).

    "Without its first minimum" means the coefficient 2 M_j at every j. With S = sum_{j>=2} C(a,j) g^j M_j that bound is
    log(1 + 2S)/(a-1), and the lower one is at least log((1-g)^a (1 + S))/(a-1), because (g/(1-g))^j >= g^j; 1 + 2S is at most
    2 (1 + S). It needs a pair that attains the curve; the literal Theorem 9 is smaller still. Integer orders >= 2.

    >>> additive_gap([2, 1000], 0.001)
    array([0.69514818, 0.00169535])
    """
    array, scalar = read_orders(orders, low=2.0)
    value = (
        (-array * math.log1p(-float(RATE.check("rate", rate))) + math.log(2)) / (array - 1)
        if rate != 1
        else array * np.inf
    )
    return float(value[0]) if scalar else value


def pure_closed_form(orders: Any, rate: Any, rdp: Any, pure: float) -> Any:
    """Bound eps'(a) for pure DP (Section 3.1): a/(a-1) log(1 + g e^{eps(a)} (e^{eps(inf)} - 1)).

    `rdp` is eps at these orders.

    Theorem 9 with M_j <= e^{j eps(a)} and E^j at every j, and with the term j = 1 put back so that the sum is a binomial
    power. Valid, and never used for an answer (E-11): that term is of order g where the theorem is of order g^2, and the
    result is never below Lemma 3's log(1 + g (e^{eps(inf)} - 1)), which holds at every order.

    >>> round(pure_closed_form(2, 0.001, rdp=0.200304, pure=0.5), 6)  # Laplace, scale 2; Theorem 9 says 5.1e-7
    0.001585
    """
    array, scalar = read_orders(orders)
    values: Array = np.broadcast_to(np.asarray(rdp, dtype=np.float64), array.shape)
    if not (array > 1).all() or np.isinf(array).any():
        raise InputError("the closed form is about finite orders above 1; at infinity use Lemma 3, bound='lemma3'")
    if not (values <= pure).all():
        raise InputError(
            f"rdp={values.max():g} must be at most pure={pure:g}, because the divergence grows with the order"
        )
    value = array / (array - 1) * np.log1p(float(RATE.check("rate", rate)) * np.exp(values) * math.expm1(pure))
    return float(value[0]) if scalar else value
