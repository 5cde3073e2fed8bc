"""The curve of the best of a random number of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve, Wrapped
from cumulant.errors import HypothesisError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import rounded_down
from cumulant.numerics.search import least


@dataclass(frozen=True, slots=True)
class Selected(Wrapped):
    """K(lambda) + lambda `added` + log `mean`: Theorem 2 of Papernot and Steinke 2022.

    Up to `until` it is lambda `most`, the divergence at that order, because divergences grow with the order. With `poisson`:
    log(1 + mean e^{lambda added} (e^K - 1)).
    """

    mean: Fraction
    added: Fraction
    most: Fraction
    until: Fraction
    largest: Fraction
    poisson: bool = False

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        base, x = self.curve.cgf(lam, on), on.asarray(lam)
        raised = x * on.number(self.added) + on.log(on.number(self.mean))
        found = on.log1p_exp(raised + on.log_expm1(base)) if self.poisson else base + raised
        near = np.array([Fraction(each) <= self.until for each in lam]) if on.exact else lam <= rounded_down(self.until)
        found = np.where(near, x * on.number(self.most), found)
        # no divergence is above the largest loss
        return on.minimum(found, x * self.pure(on)) if math.isfinite(float(self.pure())) else found

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.most if self.until else math.inf)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        if self.poisson:
            return on.number(math.inf)
        return on.number(self.largest) * self.curve.at_infinity(on)

    def slack(self) -> Fraction:
        return min(self.mean * self.curve.slack(), Fraction(1))

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return None


def by_divergences(curve: Curve, mean: Fraction, shape: Fraction, least_share: Fraction) -> Selected:
    """K runs, K negative binomial of this mean and shape; `least_share` is not above its success probability."""
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


def by_poisson(curve: Curve, mean: Fraction, distance: Fraction) -> Selected:
    """K runs, K Poisson; `distance` is not below the total variation distance of one run."""
    return _flattened(Selected(curve, mean, mean * distance, Fraction(0), Fraction(0), Fraction(0), poisson=True))


def _flattened(curve: Selected) -> Selected:
    """The least divergence over all orders is one of every smaller order as well."""
    with np.errstate(all="ignore"):
        found = least(lambda lam: (curve.cgf(lam) / lam)[None, :], False)
        most = float((curve.cgf(found.where, BOUNDED) / Enclosure(found.where)).upper()[0])
    return replace(curve, most=Fraction(most), until=Fraction(float(found.where[0]))) if math.isfinite(most) else curve
