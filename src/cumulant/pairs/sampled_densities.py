"""Sampled pairs of densities given as Python functions: the same kernels, by the pair's own self-checked quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from cumulant.curves.closed import lemma3
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.quadrature import log_excess
from cumulant.pairs.densities import DensityPair
from cumulant.pairs.integrals import Rate
from cumulant.pairs.mixing import Kernel


@dataclass(frozen=True, slots=True)
class SampledDensities(Curve):
    """K = log1p of the kernel's integral in the two directions of the pair: the larger one, or their sum.

    Estimated, as everything about a function that is only sampled; balls raise CertificateError.
    """

    pair: DensityPair
    rate: Fraction
    kernel: Kernel
    added: bool

    estimated = True

    def _integral(self, lam: Array, slope: bool, on: Arithmetic) -> Array:
        if on.exact:
            raise CertificateError(
                "densities given as Python functions cannot be certified; use from_masses or float64"
            )
        rate = Rate.of(self.rate)

        def integrand(log_p: Array, log_q: Array, order: Array) -> Array:
            x = np.where(log_q == -np.inf, np.where(log_p == -np.inf, 0.0, np.inf), log_p - log_q)
            L = rate.loss(x)
            gain = np.maximum(L, 0.0)
            # the term comes divided by max(w, 1)^a, the slope by max(w, 1), which is order 0 here
            value = log_q + gain + order * gain + np.log(self.kernel.slope(L) if slope else self.kernel.term(order, L))
            value = np.where(x == np.inf, np.inf, value)
            return value if self.kernel.whole else np.where(x > 0, value, -np.inf)

        there = self.pair.integrals(integrand, lam, smooth=True)
        back = self.pair.integrals(lambda p, q, order: integrand(q, p, order), lam, smooth=True)
        return np.logaddexp(there, back) if self.added else np.maximum(there, back)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return np.asarray(FLOATS.log1p_exp(self._integral(lam, False, on)))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        with np.errstate(all="ignore"):
            return float(np.exp(self._integral(np.zeros(1), True, on)[0]))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        pure = self.pair.curve().pure(on)
        return pure if pure == np.inf else lemma3(pure, on.number(self.rate), on)


def one_direction_leads(pair: DensityPair) -> bool:
    """Whether one direction has the larger profile at every scanned epsilon: its integral is the answer."""
    return pair.learnt("one direction leads", lambda: _leads(pair))


def _leads(pair: DensityPair) -> bool:

    def shortfall(log_p: Array, log_q: Array, epsilon: Array) -> Array:
        y = log_p - log_q
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(y > epsilon, log_p + np.log(-np.expm1(epsilon - y)), -np.inf)

    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, 30, 23)])
    there = np.exp(pair.integrals(shortfall, epsilons, smooth=False))
    back = np.exp(pair.integrals(lambda p, q, epsilon: shortfall(q, p, epsilon), epsilons, smooth=False))
    margin = 1e-9 * np.maximum(there, back) + 1e-300
    return bool(np.all(there >= back - margin) or np.all(back >= there - margin))


@dataclass(frozen=True, slots=True)
class PoissonDensities(Curve):
    """K of a Poisson sample, the largest over both roles of the pair and both directions; estimated, as above.

    (1-q)Q + qP = wQ against Q: mass qw, loss L = log w; Q against wQ: mass q, loss -L. Either is
    K = log(1 + INT mass { excess(lambda loss) + lambda excess(-loss) }).
    """

    pair: DensityPair
    rate: Fraction

    estimated = True

    def _largest(self, lam: Array, slope: bool, on: Arithmetic) -> Array:
        rate = Rate.of(self.rate)

        def integrand(log_p: Array, log_q: Array, order: Array, added: bool) -> Array:
            x = np.where(log_q == -np.inf, np.where(log_p == -np.inf, 0.0, np.inf), log_p - log_q)
            L = rate.loss(x)
            mass, loss = (log_q, -L) if added else (log_q + L, L)
            straight = log_excess(-loss)
            value = straight if slope else np.logaddexp(log_excess(order * loss), np.log(order) + straight)
            return np.where(x == np.inf, -np.inf if added else np.inf, mass + value)

        directions = [partial(integrand, added=added) for added in (False, True)]
        return np.maximum(*(self.pair.larger(direction, lam, on, smooth=True) for direction in directions))

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return np.asarray(FLOATS.log1p_exp(self._largest(lam, False, on)))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        with np.errstate(all="ignore"):
            return float(np.exp(self._largest(np.zeros(1), True, on)[0]))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        pure = self.pair.curve().pure(on)
        return pure if pure == np.inf else lemma3(pure, on.number(self.rate), on)
