"""Theorem 27 and the sharper coefficients that a dominating pair gives; each bounds zeta(j)^j (E-9, E-17)."""

from __future__ import annotations

import numpy as np

from cumulant.bounds.binomial import Coefficient
from cumulant.bounds.theorem9 import theorem9
from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.pairs.pair import Pair


def theorem27(curve: Curve, pair: Pair) -> tuple[Coefficient, ...]:
    """As Theorem 9 at j = 2;   zeta(j)^j <= 4 sqrt(B(2 floor(j/2)) B(2 ceil(j/2))) for j >= 3,   B(l) = E_q (p/q - 1)^l."""

    def even_moments(j: Array, on: Arithmetic) -> Array:
        whole = j.astype(np.int64)
        low, high = whole // 2 * 2, (whole + 1) // 2 * 2
        even = np.unique(np.concatenate([low, high]))
        moments = pair.moments(even, on)
        below, above = moments[np.searchsorted(even, low)], moments[np.searchsorted(even, high)]
        return np.where(j == 2, on.number(np.inf), on.log(on.number(4)) + (below + above) * 0.5)

    def at_two(coefficient: Coefficient) -> Coefficient:
        return lambda j, on: np.where(j == 2, coefficient(j, on), on.number(np.inf))

    return (*(at_two(coefficient) for coefficient in theorem9(curve)), even_moments)


def absolute_moment(pair: Pair) -> tuple[Coefficient, ...]:
    """zeta(j)^j <= 4 E_q |p/q - 1|^j: Lemma 17 without the Cauchy-Schwarz step."""
    return (lambda j, on: on.log(on.number(4)) + pair.moments(j.astype(np.int64), on),)


def positive_part(pair: Pair) -> tuple[Coefficient, ...]:
    """zeta(j)^j <= 4 E_q (p/q - 1)_+^j: each of the four events in the proof of Lemma 17 uses a positive part only."""
    return (lambda j, on: on.log(on.number(4)) + pair.positive_moments(j.astype(np.int64), on),)


def binary_moment(pair: Pair) -> tuple[Coefficient, ...]:
    """zeta(j) = xi(j) = (E_q |p/q - 1|^j)^{1/j}: with one bit the third law is one of the first two (E-10)."""
    return (lambda j, on: pair.moments(j.astype(np.int64), on),)
