"""The curve of the best of a random number of runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve, Wrapped
from cumulant.errors import HypothesisError
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.rounding import at_least, rounded_down
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
        return np.where(near, x * on.number(self.most), found)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.most)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        if self.poisson:
            return on.number(math.inf)
        return on.number(self.largest) * self.curve.at_infinity(on)

    def slack(self) -> Fraction:
        return min(self.mean * self.curve.slack(), Fraction(1))

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return None


def by_divergences(curve: Curve, mean: Fraction, shape: Fraction, least_share: float) -> Selected:
    """K runs, K negative binomial of this mean and shape; `least_share` is not above its success probability."""
    factor, logarithm = float(1 + shape), math.log(1 / least_share)

    def addition(lam: Array) -> Array:
        """(1+eta) ((1 - 1/b) D_b + log(1/g) / b), b = 1 + lambda."""
        return factor * (curve.cgf(lam) + logarithm) / (1 + lam)

    added = min(_smallest(addition), factor * float(curve.pure()))
    if not math.isfinite(added):
        raise HypothesisError("no order of the divergence is finite, so nothing is known of the best of several runs")
    return _flattened(Selected(curve, mean, _up(added), Fraction(0), Fraction(0), 2 + shape))


def by_poisson(curve: Curve, mean: Fraction, distance: float) -> Selected:
    """K runs, K Poisson; `distance` is not below the total variation distance of one run."""
    return _flattened(
        Selected(curve, mean, _up(float(mean) * distance), Fraction(0), Fraction(0), Fraction(0), poisson=True)
    )


def _flattened(curve: Selected) -> Selected:
    """The least divergence over all orders is one of every smaller order as well."""
    with np.errstate(all="ignore"):
        found = least(lambda lam: (curve.cgf(lam) / lam)[None, :], False)
    until = Fraction(float(found.where[0]))
    with BALLS.at(128):
        ball = curve.cgf(np.array([until], dtype=object), BALLS)[0] / BALLS.number(until)
        most = at_least(ball.upper()) if ball.is_finite() else None
    return curve if most is None else replace(curve, most=most, until=until)


def _smallest(value: Callable[[Array], Array]) -> float:
    with np.errstate(all="ignore"):
        return float(least(lambda lam: value(lam)[None, :], False).value[0])


def _up(value: float) -> Fraction:
    """Floats of an enclosed curve are right to far more digits than this."""
    return Fraction(value) * (1 + Fraction(1, 10**10)) if math.isfinite(value) else Fraction(10**300)
