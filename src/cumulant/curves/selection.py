"""The curve of the best of a random number of runs."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve, Wrapped
from cumulant.errors import HypothesisError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import rounded_down
from cumulant.numerics.search import least

_ORDERS = tuple(2.0 ** (k / 16) for k in range(-64, 193))
"""lambda at which the profile is asked, 16 in each octave; measured: epsilon is within 3e-4 of that from 64 in each."""


@dataclass(frozen=True, slots=True)
class Excess:
    """Bounds of d(lambda) = delta(log(a / (a-1))), a = lambda + 1.

    d is the largest Q(A) - (1 + 1/lambda) P(A).

    delta is convex in e^epsilon = 1 + 1/lambda, so that chords between values in 1/lambda are above it; it falls, so that the
    last value holds below the smallest lambda. `deltas` belong to `_ORDERS`, `whole` to lambda = inf.
    """

    deltas: tuple[Fraction, ...]
    whole: Fraction

    @classmethod
    def of(cls, deltas: Callable[[list[float]], list[float]]) -> Excess:
        """From the profile of one run, in both directions of the neighbours and rounded up."""
        # a smaller epsilon has a larger delta
        found = deltas([math.log1p(1 / lam) * (1 - 2.0**-48) for lam in _ORDERS] + [0.0])
        return cls(tuple(Fraction(min(each, 1.0)) for each in found[:-1]), Fraction(min(found[-1], 1.0)))

    def bound(self, lam: Array, on: Arithmetic) -> Array:
        """A number that is not below d(lambda), at each lambda."""
        # 1/lambda falls from place to place; the chord before the first lambda is flat
        inverse = [Fraction(2**64), *(1 / Fraction(each) for each in _ORDERS), Fraction(0)]
        values = [self.deltas[0], *self.deltas, self.whole]
        places = [bisect.bisect_right(_ORDERS, each) for each in lam]
        low, high = (on.asarray([inverse[place + i] for place in places]) for i in (1, 0))
        near, far = (on.asarray([values[place + i] for place in places]) for i in (1, 0))
        return near - (near - far) * ((1 / on.asarray(lam) - low) / (high - low))


@dataclass(frozen=True, slots=True)
class Selected(Wrapped):
    """K(lambda) + lambda `added` + log `mean`: Theorem 2 of Papernot and Steinke 2022.

    Up to `until` it is lambda `most`, the divergence at that order, because divergences grow with the order. With `poisson`,
    d(lambda) in place of `added`: log(1 + mean e^{lambda mean d(lambda)} (e^K - 1)).
    """

    mean: Fraction
    added: Fraction
    most: Fraction
    until: Fraction
    largest: Fraction
    poisson: Excess | None = None

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        base, x = self.curve.cgf(lam, on), on.asarray(lam)
        added = on.number(self.added) if self.poisson is None else on.number(self.mean) * self.poisson.bound(lam, on)
        raised = x * added + on.log(on.number(self.mean))
        found = base + raised if self.poisson is None else on.log1p_exp(raised + on.log_expm1(base))
        near = np.array([Fraction(each) <= self.until for each in lam]) if on.exact else lam <= rounded_down(self.until)
        found = np.where(near, x * on.number(self.most), found)
        # no divergence is above the largest loss
        return on.minimum(found, x * self.pure(on)) if math.isfinite(float(self.pure())) else found

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.most if self.until else math.inf)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        if self.poisson is not None:
            return on.number(math.inf)
        whole = self.curve.at_infinity(on)
        # D_a <= D_a of one run + added + log(mean) / (a - 1) at every order a, so that the limit holds as well
        return on.minimum(on.number(self.largest) * whole, whole + on.number(self.added))

    def slack(self) -> Fraction:
        return min(self.mean * self.curve.slack(), Fraction(1))

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return None


def by_divergences(curve: Curve, mean: Fraction, shape: Fraction, least_share: Fraction) -> Selected:
    """Return the curve of K runs, K negative binomial of this mean and shape.

    `least_share` is not above its success probability.
    """
    factor, logarithm = float(1 + shape), -math.log(least_share)

    def addition(lam: Array) -> Array:
        """(1+eta) ((1 - 1/b) D_b + log(1/g) / b), b = 1 + lambda."""
        return factor * (curve.cgf(lam) + logarithm) / (1 + lam)

    with np.errstate(all="ignore"):
        order = least(lambda lam: addition(lam)[None, :], False).where
        # where it is smallest is found in floats; that it is enough is enclosed there
        share = -BOUNDED.log(BOUNDED.number(least_share))
        enclosed = BOUNDED.number(1 + shape) * (curve.cgf(order, BOUNDED) + share) / (1 + Enclosure(order))
        largest = BOUNDED.number(1 + shape) * curve.at_infinity(BOUNDED)
    added = min(float(enclosed.upper()[0]), float(largest.upper()))
    if not math.isfinite(added):
        raise HypothesisError("no order of the divergence is finite, so nothing is known of the best of several runs")
    return _flattened(Selected(curve, mean, Fraction(added), Fraction(0), Fraction(0), 2 + shape))


def by_poisson(curve: Curve, mean: Fraction, excess: Excess) -> Selected:
    """K runs, K Poisson of this mean; `excess` is from the profile of one run."""
    return _flattened(Selected(curve, mean, Fraction(0), Fraction(0), Fraction(0), Fraction(0), poisson=excess))


def _flattened(curve: Selected) -> Selected:
    """The least divergence over all orders is one of every smaller order as well."""
    with np.errstate(all="ignore"):
        found = least(lambda lam: (curve.cgf(lam) / lam)[None, :], False)
        most = float((curve.cgf(found.where, BOUNDED) / Enclosure(found.where)).upper()[0])
    return replace(curve, most=Fraction(most), until=Fraction(float(found.where[0]))) if math.isfinite(most) else curve
