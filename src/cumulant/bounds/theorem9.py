"""Theorem 9, the main bound, and the sharper terms that its proof gives for pure DP (E-10).

With M_j = e^{(j-1) eps(j)} and E = e^{eps(inf)} - 1, zeta(j)^j is at most each of the coefficients below.
"""

from __future__ import annotations

import numpy as np

from cumulant.bounds.binomial import Coefficient
from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import Arithmetic, Array


def theorem9(curve: Curve) -> tuple[Coefficient, ...]:
    """zeta(2)^2 <= 4 (e^{eps(2)} - 1);   zeta(j)^j <= M_j min(2, E^j).

    Assumes that the curve holds for both orders of every replace-one pair (E-1) and that the sample reaches the mechanism
    in random order, or the mechanism ignores the order (E-3).
    """

    def second_moment(j: Array, on: Arithmetic) -> Array:
        # 4 (e^{eps(2)} - 1) at j = 2
        return np.where(j == 2, on.log(on.number(4)) + _log_chi_square(curve, on), on.number(np.inf))

    def twice_moment(j: Array, on: Arithmetic) -> Array:
        # 2 M_j
        return on.log(on.number(2)) + curve.cgf(j - 1, on)

    def pure_moment(j: Array, on: Arithmetic) -> Array:
        # E^j M_j
        return on.asarray(j) * on.log_expm1(curve.at_infinity(on)) + curve.cgf(j - 1, on)

    pure_known = curve.pure() < np.inf
    return (second_moment, twice_moment, pure_moment) if pure_known else (second_moment, twice_moment)


def pure_extras(curve: Curve) -> tuple[Coefficient, ...]:
    """zeta(j)^j <= E^{j-2} (e^{eps(2)} - 1) min(4, e^{(j-1) eps(inf)}) for pure DP: Lemma 17, and Lemma 32 with u = 1."""
    if not curve.pure() < np.inf:
        return ()

    def chi_square(j: Array, on: Arithmetic) -> Array:
        # E^{j-2} (e^{eps(2)} - 1)
        log_e, log_chi = on.log_expm1(curve.at_infinity(on)), _log_chi_square(curve, on)
        return np.where(j == 2, log_chi, (on.asarray(j) - 2) * log_e + log_chi)

    def four_chi_square(j: Array, on: Arithmetic) -> Array:
        return on.log(on.number(4)) + chi_square(j, on)

    def pure_chi_square(j: Array, on: Arithmetic) -> Array:
        return (on.asarray(j) - 1) * curve.at_infinity(on) + chi_square(j, on)

    return four_chi_square, pure_chi_square


def _log_chi_square(curve: Curve, on: Arithmetic) -> Array:
    """log(e^{eps(2)} - 1)."""
    one = np.array([1], dtype=object if on.exact else np.float64)
    return on.log_expm1(curve.cgf(one, on))[0]
