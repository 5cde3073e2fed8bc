"""The binary pair: P = (p, 1-p) against Q = (1-p, p), the worst pair of pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.closed import Response
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.pairs.pair import Pair


@dataclass(frozen=True, slots=True)
class ResponsePair(Pair):
    """Randomized response with the true answer told with probability p = e^e0 / (1 + e^e0); both directions agree.

    Given by p, or by epsilon = e0. Every mechanism with privacy loss at most e0 is a post-processing of it, but only
    randomized response itself sees one bit of the data, which `one_bit` records.

    >>> ResponsePair(p=Fraction(3, 5)).moments([2, 4])
    array([-1.79175947, -3.42936826])
    >>> ResponsePair(epsilon=Fraction(1)).profile([0, 1])
    array([0.46211716, 0.        ])
    """

    p: Fraction | None = None
    epsilon: Fraction = Fraction(0)
    one_bit: bool = False

    symmetric = True

    def curve(self) -> Response:
        return Response(p=self.p, epsilon=self.epsilon)

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """(2p-1)^l [(1-p)^{1-l} + p^{1-l}], written with e0."""
        e0, above = self.curve().pure(on), self._log_positive_moments(orders, on)
        # E_q (1 - p/q)_+^l = p (1 - e^-e0)^l = e^{-(l-1) e0} E_q (p/q - 1)_+^l
        return above + on.log1p_exp((1 - _numbers(orders, on)) * e0)

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """(1-p) (e^e0 - 1)^l."""
        e0, numbers = self.curve().pure(on), _numbers(orders, on)
        if self.p == Fraction(1, 2) or (self.p is None and self.epsilon == 0):
            return numbers * 0 + on.number(-np.inf)
        with np.errstate(divide="ignore"):
            return numbers * on.log_expm1(e0) - on.log1p_exp(e0)

    def _log_profile(self, epsilons: Array) -> Array:
        """log delta, delta = p (1 - e^{eps-e0})_+."""
        e0 = self.curve().pure()
        with np.errstate(divide="ignore"):
            gap = np.log(-np.expm1(np.minimum(epsilons - e0, 0.0)))
        return np.asarray(gap - FLOATS.log1p_exp(-e0))

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        e0 = self.curve().pure(on)
        p = 1 / (1 + (-e0).exp())
        gap = on.asarray(epsilons) - e0
        return np.asarray(np.frompyfunc(lambda v: (-p * v.expm1()).nonnegative_part(), 1, 1)(gap))


def _numbers(orders: Array, on: Arithmetic) -> Array:
    return on.asarray(orders.astype(object if on.exact else np.float64))
