"""A pair of densities that are given as Python functions; self-checked quadrature answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from cumulant.curves.closed_form import lemma3
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.losses.atoms import AtomLoss
from cumulant.losses.density_integrals import Densities, larger_profile, log_hockey_stick
from cumulant.losses.grid import Loss
from cumulant.losses.subsampled import PAIR, PROFILE, Kernel, Rate
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.special import log_excess
from cumulant.pairs.pair import OnSample, Pair

FEW_EPSILONS = 24
"""Epsilons up to which each is integrated by itself; finding the tails costs more."""

LARGEST_EPSILON = 100.0
"""Largest epsilon (nats) at which the profile of a user's densities is looked at for a grid."""


@dataclass(frozen=True, slots=True, eq=False)
class DensityPair(Densities, Pair):
    """P and Q by their log-densities on an interval; the pair remembers what it finds out.

    The functions must not change while the pair lives. They take an array or one number at a time, whichever they
    accept. Every answer is the larger of the two directions, and `estimated`: the quadrature checks itself and gives
    +inf where it does not converge, but nothing is proved about a function that is only sampled. `pure` is the user's
    bound of |log p - log q|.

    >>> normal = lambda x: -(x**2) / 2 - math.log(2 * math.pi) / 2
    >>> pair = DensityPair(lambda x: normal(x - 1), normal)
    >>> pair.curve().rdp([1, 2, 30])
    array([ 0.5,  1. , 15. ])
    >>> pair.profile([1.0])
    array([0.12693674])
    """

    estimated = True

    @property
    def summable(self) -> bool:
        return False  # thousands of integrals

    def curve(self) -> DensityCurve:
        return DensityCurve(self)

    def taylor(self, at: Fraction, count: int) -> list[Any] | None:
        """Return K and two derivatives as balls around the quadrature; None for more.

        They follow from INT p e^{lambda y} y^n.
        """
        if count > 3:
            return None
        lam = np.array([float(at)])

        def log_moment(power: int, sign: int) -> float:
            def integrand(log_p: Array, log_q: Array, x: Array) -> Array:
                y = log_p - log_q
                tilted = np.where(log_p == -np.inf, log_q if at == -1 else -np.inf, log_p + x * y)
                return np.where(sign * y > 0, tilted + power * np.log(np.abs(y)), -np.inf) if power else tilted

            return float(self.integrals(integrand, lam)[0])

        norm = log_moment(0, 1)
        first, second = (
            [math.exp(log_moment(power, sign) - norm) for sign in (1, -1)] if count > power else [0.0, 0.0]
            for power in (1, 2)
        )
        mean = first[0] - first[1]
        return [BALLS.number(each) for each in (norm, mean, (sum(second) - mean**2) / 2)][:count]

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        return self.larger_direction(_absolute, orders, on)

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        return self.larger_direction(_positive, orders, on)

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log delta, delta = E_p (1 - e^{eps - y})_+; at most 0 if the quadrature fails."""
        tails = self.tails() if epsilons.size > FEW_EPSILONS else None
        if tails is None:
            return np.minimum(self.larger_direction(log_hockey_stick, epsilons, FLOATS), 0.0)
        with np.errstate(divide="ignore"):
            return np.minimum(np.log(larger_profile(tails, epsilons)) + self.slack(tails), 0.0)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        return self.larger_direction(log_hockey_stick, epsilons, on)

    # ---- on a sample, and on a grid

    def mixture_curve(self) -> OnSample:
        return lambda rate: SampledDensities(self, rate, PAIR, added=False)

    def amplified_curve(self) -> OnSample:
        """Return K of the sum of both directions, or of one direction if it leads throughout."""

        def curve(rate: Fraction) -> Curve:
            leads = self.remember("one direction leads", lambda: (_one_direction_leads(self),))[0]
            return SampledDensities(self, rate, PROFILE, added=not leads)

        return curve

    def poisson_curve(self) -> OnSample:
        return lambda rate: PoissonDensities(self, rate)

    def loss(self) -> Loss | None:
        return self.remember("loss", lambda: (profile_loss(self),))[0]


@dataclass(frozen=True, slots=True)
class DensityCurve(Curve):
    """K = log(1 + INT p [(e^{lambda y} - 1 - lambda y) + lambda (e^-y - 1 + y)]), y = log(p/q).

    No term is negative.
    """

    pair: DensityPair

    estimated = True
    integrated = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if not on.exact and self.pair.is_separated():
            return np.full(lam.shape, np.inf)
        return np.asarray(FLOATS.log1p_exp(self.pair.larger_direction(_excess, lam, on, "excess")))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        if not on.exact and self.pair.is_separated():
            return math.inf
        return float(np.exp(self.pair.larger_direction(_divergence, np.zeros(1), on)[0]))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.pair.pure)


def _divergence(log_p: Array, log_q: Array, _: Array) -> Array:
    """Return log of p (e^-y - 1 + y), which is q where p = 0."""
    return np.where(log_p == -np.inf, log_q, log_p + log_excess(log_q - log_p))


def _excess(log_p: Array, log_q: Array, lam: Array) -> Array:
    """Return log of p [(e^{lambda y} - 1 - lambda y) + lambda (e^-y - 1 + y)]."""
    straight = np.log(lam) + _divergence(log_p, log_q, lam)
    return np.where(log_p == -np.inf, straight, np.logaddexp(log_p + log_excess(lam * (log_p - log_q)), straight))


def _positive(log_p: Array, log_q: Array, order: Array) -> Array:
    """Return log of q (p/q - 1)_+^l = p e^{(l-1) y} (1 - e^-y)^l."""
    y = log_p - log_q
    growth = np.where(order == 1, 0.0, (order - 1) * y)
    return np.where(y > 0, log_p + growth + order * np.log(-np.expm1(-y)), -np.inf)


def _absolute(log_p: Array, log_q: Array, order: Array) -> Array:
    """Return log of q |p/q - 1|^l: the positive part, and q (1 - p/q)^l where p < q."""
    y = log_p - log_q
    return np.where(y < 0, log_q + order * np.log(-np.expm1(y)), _positive(log_p, log_q, order))


# ---- on a sample


@dataclass(frozen=True, slots=True)
class SampledDensities(Curve):
    """K = log1p of the kernel's integral in both directions: the larger one, or their sum.

    Estimated, as everything about a function that is only sampled; balls raise CertificateError.
    """

    pair: DensityPair
    rate: Fraction
    kernel: Kernel
    added: bool

    estimated = True
    integrated = True

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

        there, back = self.pair.both_directions(integrand, lam, ("sampled", self.rate, self.kernel, slope))
        return np.logaddexp(there, back) if self.added else np.maximum(there, back)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return np.asarray(FLOATS.log1p_exp(self._integral(lam, False, on)))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        with np.errstate(all="ignore"):
            return float(np.exp(self._integral(np.zeros(1), True, on)[0]))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        pure = self.pair.curve().pure(on)
        return pure if pure == np.inf else lemma3(pure, on.number(self.rate), on)


def _one_direction_leads(pair: DensityPair) -> bool:
    """True if one direction has the larger profile at every scanned epsilon.

    Its integral alone is then the answer.
    """
    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, 30, 23)])
    there, back = (np.exp(each) for each in pair.both_directions(log_hockey_stick, epsilons))
    margin = 1e-9 * np.maximum(there, back) + 1e-300
    return bool(np.all(there >= back - margin) or np.all(back >= there - margin))


@dataclass(frozen=True, slots=True)
class PoissonDensities(Curve):
    """K of a Poisson sample: the largest over both roles of the pair and both directions.

    It is estimated, as everything about a function that is only sampled.

    (1-q)Q + qP = wQ against Q: mass qw, loss L = log w; Q against wQ: mass q, loss -L. Either is
    K = log(1 + INT mass { excess(lambda loss) + lambda excess(-loss) }).
    """

    pair: DensityPair
    rate: Fraction

    estimated = True
    integrated = True

    def _largest(self, lam: Array, slope: bool, on: Arithmetic) -> Array:
        rate = Rate.of(self.rate)

        def integrand(log_p: Array, log_q: Array, order: Array, added: bool) -> Array:
            x = np.where(log_q == -np.inf, np.where(log_p == -np.inf, 0.0, np.inf), log_p - log_q)
            L = rate.loss(x)
            mass, loss = (log_q, -L) if added else (log_q + L, L)
            straight = log_excess(-loss)
            value = straight if slope else np.logaddexp(log_excess(order * loss), np.log(order) + straight)
            return np.where(x == np.inf, -np.inf if added else np.inf, mass + value)

        def direction(added: bool) -> Array:
            return self.pair.larger_direction(
                partial(integrand, added=added), lam, on, ("poisson", self.rate, slope, added)
            )

        return np.maximum(direction(False), direction(True))

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return np.asarray(FLOATS.log1p_exp(self._largest(lam, False, on)))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        with np.errstate(all="ignore"):
            return float(np.exp(self._largest(np.zeros(1), True, on)[0]))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        pure = self.pair.curve().pure(on)
        return pure if pure == np.inf else lemma3(pure, on.number(self.rate), on)


# ---- on a grid


def profile_loss(pair: DensityPair, cells: int = 4000) -> AtomLoss | None:
    """Return the symmetric pair whose profile is the chords of this profile; estimated.

    The profile is known in floats only, so nothing is bounded. Returns None if it is not finite.
    """
    reaches = 2.0 ** np.arange(math.ceil(math.log2(LARGEST_EPSILON)) + 1)
    small = pair.log_profile(reaches) <= -80
    x = np.linspace(0.0, float(reaches[np.argmax(small)] if small.any() else reaches[-1]), cells)
    alpha, delta = np.exp(x), np.exp(pair.log_profile(x))
    if not np.isfinite(delta).all():
        return None
    delta = np.minimum.accumulate(delta)
    slopes = np.append(np.minimum(np.maximum.accumulate(np.diff(delta) / np.diff(alpha)), 0.0), 0.0)
    mass = np.diff(slopes)
    kept = mass > 0
    same = 1 - float(delta[-1]) - float(np.sum(mass * (1 + alpha[1:])))
    return AtomLoss(tuple(x[1:][kept].tolist()), tuple(np.log(mass[kept]).tolist()), max(same, 0.0), float(delta[-1]))
