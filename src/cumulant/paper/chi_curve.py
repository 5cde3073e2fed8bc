"""Eq. (9): from ternary |chi|^j privacy to a Rényi curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cumulant.bounds.binomial_sum import BinomialSum
from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.paper.chi import Ternary


def chi_curve(chi: Ternary) -> Curve:
    """Return the Rényi curve of a mechanism with this zeta.

    e^{(a-1) eps(a)} <= 1 + sum_{j=2}^a C(a,j) g^j zeta(j)^j.

    E_q (p/q)^a is the binomial expansion of E_q (1 + (p-q)/q)^a, and the term j = 1 vanishes. Integer orders; chords
    of K between them (Corollary 10). What the user's function says is taken for exact.

    >>> bit = Ternary.of_laws([[0.75, 0.25], [0.25, 0.75]])
    >>> chi_curve(bit.subsampled("0.1")).rdp([2])  # log(1 + 0.01 * 4/3)
    array([0.01324523])
    """

    def log_moment(j: Array, on: Arithmetic) -> Array:
        return on.asarray(chi.log_moments(np.asarray(j, dtype=np.float64)))

    return BinomialSum(_Ends(chi), chi.rate, (log_moment,))


@dataclass(frozen=True, slots=True)
class _Ends(Curve):
    """Orders 1 and inf before subsampling.

    KL <= log(1 + zeta(2)^2) and |log(p/q)| <= log(1 + zeta(inf)).
    """

    chi: Ternary

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return np.full(lam.shape, on.number(np.inf))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.log1p(on.exp(on.asarray(self.chi.log_moments(np.array([2.0])))))[0]

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.log1p(on.number(float(Ternary(self.chi.root)(np.inf))))
