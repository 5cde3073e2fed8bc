"""Mechanisms that publish one draw from an exponential family (items 42, 43).

The parameter of the family depends on the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.curves.user_function import number
from cumulant.errors import InputError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.gaps import EDGE, log_gamma_gap
from cumulant.numerics.rounding import next_above, rounded_down

Radial = Callable[[float], float]
"""A bound that holds within a radius of every parameter in use: nondecreasing, called with one radius at a time."""


@dataclass(frozen=True, slots=True)
class SmoothFamily(Curve):
    """Proposition 38, corrected (E-6), for families with a smooth log-normaliser.

    eps(a) <= min{ ((a-1) L((a-1)D) + L(D)) D^2/2, [B((a-1)D) + B(D)] D }.

    Assumes that neighbouring data sets have parameters at distance at most `diameter` = D, that every point within
    `radius` = kappa of a parameter in use is in the parameter space (None: everything is), and that within distance r
    <= kappa of it the log-partition function A has Lipschitz constant at most lipschitz(r) = B(r), up to a common
    linear function, and Hessian norm at most hessian(r) = L(r). The Hessian bound, not twice it: A(eta+h) <= A(eta) +
    <grad A(eta), h> + L |h|^2/2.

    Proof: with d = eta - eta', D_a = [A(eta + (a-1)d) - A(eta)]/(a-1) + A(eta') - A(eta); bound each difference by B,
    or each gap above the tangent at eta by L. It needs (a-1) D <= kappa and D <= kappa: elsewhere +inf.

    >>> gaussian = SmoothFamily(Fraction(1), None, lambda r: math.inf, lambda r: 1 / 4)  # sigma = 2
    >>> gaussian.rdp([1, 2])
    array([0.125, 0.25 ])
    """

    diameter: Fraction
    radius: Fraction | None
    lipschitz: Radial
    hessian: Radial

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        lam, diameter = on.asarray(lam), on.number(self.diameter)
        if not self.diameter:
            return np.asarray(lam * 0)
        inside = self._inside(lam, on)
        reached = np.where(inside, lam * diameter, on.number(0))
        far_b, far_l = self._at(self.lipschitz, reached, on), self._at(self.hessian, reached, on)
        near_b, near_l = self._near(self.lipschitz, on), self._near(self.hessian, on)
        # ((a-1) L((a-1)D) + L(D)) D^2 / 2   and   [B((a-1)D) + B(D)] D
        smooth = (lam * far_l + near_l) * diameter * diameter / 2
        bounded = (far_b + near_b) * diameter
        return np.asarray(np.where(inside, lam * on.minimum(smooth, bounded), on.number(np.inf)))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """The limit a -> 1: min{ L(D) D^2/2, [B(0) + B(D)] D }."""
        diameter = on.number(self.diameter)
        if not self.diameter:
            return diameter
        still = self._at(self.lipschitz, on.asarray([0]), on)[0]
        smooth = self._near(self.hessian, on) * diameter * diameter / 2
        return on.minimum(smooth, (still + self._near(self.lipschitz, on)) * diameter)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        """Return the limit a -> inf, [B(inf) + B(D)] D, if every order is inside."""
        if not self.diameter:
            return on.number(0)
        if self.radius is not None:
            return on.number(np.inf)
        try:
            far = on.number(_value(self.lipschitz, math.inf))
        except InputError:  # a function of finite numbers need not know its limit
            return on.number(np.inf)
        return (far + self._near(self.lipschitz, on)) * on.number(self.diameter)

    def _inside(self, lam: Array, on: Arithmetic) -> Array:
        """(a-1) D <= kappa and D <= kappa."""
        if self.radius is None:
            return np.ones(lam.shape, dtype=bool)
        limit = self.radius / self.diameter
        if limit < 1:
            return np.zeros(lam.shape, dtype=bool)
        return np.asarray(lam <= (on.number(limit) if on.exact else rounded_down(limit)), dtype=bool)

    def _near(self, bound: Radial, on: Arithmetic) -> Scalar:
        if self.radius is not None and self.diameter > self.radius:
            return on.number(np.inf)
        return self._at(bound, on.asarray([self.diameter]), on)[0]

    def _at(self, bound: Radial, radii: Array, on: Arithmetic) -> Array:
        """The bound at radii rounded up, but never past kappa."""
        edge = math.inf if self.radius is None else float(self.radius)
        tops = [_top(r, on) for r in radii]
        return on.asarray(
            np.array([_value(bound, min(r, edge)) for r in tops], dtype=object if on.exact else np.float64)
        )


def _value(bound: Radial, radius: float) -> float:
    value = number(bound, radius, f"the bound at radius {radius}")
    if value < 0:
        raise InputError(f"the bound at radius {radius} is {value}; a Lipschitz constant or a norm is never negative")
    return value


def _top(radius: Any, on: Arithmetic) -> float:
    return next_above(float(radius.upper() if on.exact else radius)) if radius != 0 else 0.0


@dataclass(frozen=True, slots=True)
class DirichletPosterior(Curve):
    """One draw from the posterior of category probabilities.

    The curve is the exact supremum over all replace-one neighbours.

    n records, each one of K categories with counts c; prior Dirichlet(prior); the likelihood is tempered, raised to the
    power t: theta ~ Dirichlet(prior + t c). K = 2 is the Beta-Bernoulli model.

    Let the first data set have one record of category i where the second has j; x and y are the parameters of i and j
    in the first. All others and the total agree, so with lam = a - 1, and +inf unless y > lam t,

        K(lam) = f(x) + h(y),    f(x) = g(x, lam t) + lam g(x, -t),    h(y) = g(y, -lam t) + lam g(y, t),

    g the gap of log Gamma. x is the weighted mean of x + lam t and x - t (weights 1 and lam), y of y - lam t and y +
    t, and log Gamma has a convex second and a concave first derivative, so by Jensen f and h are convex and
    decreasing. With K >= 3 the other n-1 records can all be elsewhere: the supremum has x = prior_i + t, y = prior_j,
    and i, j are the two smallest prior weights. With K = 2 the other records are s of category i and n-1-s of
    category j: f + h is convex in s, so its maximum is at s = 0 or s = n-1. The same holds for KL, the limit of
    K(lam)/lam. The privacy loss is unbounded.

    >>> DirichletPosterior((Fraction(2), Fraction(2)), 10).rdp([1, 2, 3, np.inf])
    array([0.31512925, 0.78015856,        inf,        inf])
    """

    prior: tuple[Fraction, ...]
    records: int
    tempering: Fraction = Fraction(1)

    def _worst(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Return the candidates (x, y): parameters of the record's category in both data sets."""
        t, (low, high) = self.tempering, sorted(self.prior)[:2]
        others = (0,) if len(self.prior) > 2 else (0, self.records - 1)
        return tuple(
            (gained + t * (1 + s), lost + t * (others[-1] - s))
            for gained, lost in ((low, high), (high, low))
            for s in others
        )

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        lam, t = on.asarray(lam), on.number(self.tempering)
        # f(x) + h(y) = [g(x, lam t) + g(y, -lam t)] + lam KL
        values = []
        for x, y in self._worst():
            gained, lost = on.number(x), on.number(y)
            moved = log_gamma_gap(gained, lam * t, on) + log_gamma_gap(lost, -lam * t, on)
            inside = lam * t < (lost if on.exact else lost * (1 - EDGE))
            values.append(np.where(inside, moved + lam * self._kl(x, y, on), on.number(np.inf)))
        return np.asarray(_largest(values, on))

    def _kl(self, x: Fraction, y: Fraction, on: Arithmetic) -> Scalar:
        t = on.number(self.tempering)
        return log_gamma_gap(on.number(x), -t, on) + log_gamma_gap(on.number(y), t, on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return _largest([self._kl(x, y, on) for x, y in self._worst()], on)


def gaussian_mean_posterior(
    diameter: Fraction, variance: Fraction, records: int, prior_precision: Fraction, tempering: Fraction = Fraction(1)
) -> Concentrated:
    """Return the curve of one draw from the posterior of a normal mean: exact.

    Records lie in a set of this diameter, in any dimension.

    Records N(mu, variance) with known variance v, prior N(m, 1/prior_precision) (0 is the flat prior), likelihood to
    the power t: the posterior has precision P = prior_precision + t n/v for every data set, and replacing a record
    moves its mean by t (x - x')/(v P). The divergence a P |move|^2 / 2 grows with |x - x'|, so the ends of a diameter
    are the worst.

    >>> gaussian_mean_posterior(Fraction(1), Fraction(1), 9, Fraction(1)).rdp([1, 2])
    array([0.05, 0.1 ])
    """
    precision = prior_precision + tempering * records / variance
    # rho = P (t D / (v P))^2 / 2
    return Concentrated(rho=(tempering * diameter / variance) ** 2 / (2 * precision))


def _largest(values: list[Any], on: Arithmetic) -> Any:
    """An upper bound of them all: the maximum, or the ball that ends highest."""
    if not on.exact:
        return np.maximum.reduce(values)
    largest = values[0]
    for value in values[1:]:
        largest = np.frompyfunc(lambda u, v: u if u.upper() >= v.upper() else v, 2, 1)(largest, value)
    return largest
