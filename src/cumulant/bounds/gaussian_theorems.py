"""Gaussian noise on a sample of fixed size: Theorem C and Theorem A.

Theorem C gives the curve itself, Theorem A gives it up to one constant.

One step is a mixture over triples a = (1-g)N(r) + gN(p) against b = (1-g)N(r) + gN(q); the proofs are in
docs/bounds/gaussian-diameter.md and docs/bounds/gaussian-ball.md.
Letters: s = shift^2 = (sensitivity/sigma)^2, g = rate, h0 = log((1-g)/g).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.closed_form import lemma3
from cumulant.curves.curve import Curve
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.panels import SMALLEST
from cumulant.losses.sampled_curve import SampledPair
from cumulant.losses.subsampled import PAIR
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.quadrature import ball_integral, legendre
from cumulant.numerics.rounding import ROUGH, U, raised
from cumulant.pairs.gaussian import GaussianPair

_SLIGHT = Fraction(1, 10**10)
"""Below this shift M_pair - 1 exceeds Delta by a factor beyond the digits of floats."""

_MOST_POWERS = 32
"""Powers of the odds of the rate that are taken at most (Lemma 7d of docs/rounding.md)."""

_SHARP = 1e-13
"""Part of Delta to which the powers must know it; otherwise a ball answers (Lemma 7d)."""


def gaussian_ball(pair: GaussianPair, rate: Fraction) -> SampledPair:
    """Theorem C: Proposition 11's pair is attained if the values lie in a ball.

    The diameter of the ball is the sensitivity.

    Holds for every real order above 1, KL included; it needs `geometry="ball"`: clipped sums, or a scalar query.

    >>> gaussian_ball(GaussianPair(Fraction(1), "ball"), Fraction(1, 1000)).rdp([2, 64.5])
    array([1.71828035e-06, 2.52334612e+01])
    """
    return GaussianLaw(pair.shift).sampled(pair.curve(), rate, PAIR)


def gaussian_diameter(pair: GaussianPair, rate: Fraction) -> Curve:
    """Theorem A: M <= M_pair + a(a-1) Delta if only distances of values are bounded.

    Delta is one constant for all orders.

    Holds for every real order above 1, KL included, for a query of any dimension with this L2 sensitivity.

    >>> gaussian_diameter(GaussianPair(Fraction(1)), Fraction(1, 1000)).rdp([2, 64.5])
    array([2.13332849e-06, 2.52334612e+01])
    """
    return Diameter(gaussian_ball(pair, rate), pair.shift, rate)


@dataclass(frozen=True, slots=True)
class Diameter(Curve):
    """K = log(M_pair + a(a-1) Delta); its derivative at 0 is KL(pair) + Delta."""

    pair: SampledPair
    shift: Fraction
    rate: Fraction

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if self.rate >= Fraction(1, 2):
            return self.pair._cgf(lam, on)
        if self.pair.out_of_reach():  # joint convexity
            return lemma3(self.pair.base.cgf(lam, on), on.number(self.rate), on)
        gap = _delta_ball if on.exact else enclosed_delta if on.enclosing else delta
        size = on.log(gap(self.shift, self.rate))

        def log_gap(lam: Array) -> Array:
            # a(a-1) Delta
            return on.log(on.asarray(lam)) + on.log1p(on.asarray(lam)) + size

        return self.pair.log_moment(lam, on, log_gap)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        if self.pair.out_of_reach():
            return self.pair.kl(on)
        gap = _delta_ball if on.exact else enclosed_delta if on.enclosing else delta
        return self.pair.kl(on) + gap(self.shift, self.rate)


@lru_cache(maxsize=256)
def delta(shift: Fraction, rate: Fraction) -> float:
    """Return Delta, a double integral over v and a normal variable Z.

    Delta = (g/2) int_0^v* E[ l(v/2 - h0 + sqrt(v) Z) - l(-h0 + sqrt(v) Z) ] dv, v* = min(s, 4 h0).

    l is the logistic density; the two are subtracted on paper:
    l(x) - l(y) = -sinh((x+y)/2) sinh((x-y)/2) / (4 cosh^2(x/2) cosh^2(y/2)).

    >>> round(delta(Fraction(1), Fraction(1, 1000)), 12)
    2.07524e-07
    """
    if rate >= Fraction(1, 2):
        return 0.0
    expanded = _expanded_delta(shift, rate)
    return _integrated_delta(shift, rate) if expanded is None else float(expanded.mid)


def _integrated_delta(shift: Fraction, rate: Fraction) -> float:
    """Return the double integral of `delta` by a product rule."""
    g, s = float(rate), float(shift) ** 2
    h0 = math.log1p(float(1 - 2 * rate) / g) if g > 0.25 else math.log((1 - g) / g)
    end = min(s, 4 * h0)
    points, shares = legendre(40)
    v, weights = (end * points)[:, None], 2 * shares
    step = min(0.5, 0.4 / max(math.sqrt(end), 1e-300))
    z = np.arange(-10.0, 10.0 + math.sqrt(end) + step, step)
    x, y = v / 2 - h0 + np.sqrt(v) * z, -h0 + np.sqrt(v) * z
    difference = -_sinh_over_cosh(x, y) * np.sinh(v / 4) / 4
    inner = (step / math.sqrt(2 * math.pi)) * np.sum(np.exp(-z * z / 2) * difference, axis=1)
    return max(float(g / 2 * (end / 2) * np.sum(weights * inner)), 0.0)


def _sinh_over_cosh(x: Array, y: Array) -> Array:
    """sinh((x+y)/2) / (cosh^2(x/2) cosh^2(y/2)), x and y of any size."""
    exponent = np.abs(x + y) / 2 - np.abs(x) - np.abs(y)
    mantissa = -8 * np.sign(x + y) * np.expm1(-np.abs(x + y))
    return np.asarray(mantissa * np.exp(exponent) / ((1 + np.exp(-np.abs(x))) * (1 + np.exp(-np.abs(y)))) ** 2)


@lru_cache(maxsize=256)
def enclosed_delta(shift: Fraction, rate: Fraction) -> Enclosure:
    """Return Delta with a proved error."""
    found = _expanded_delta(shift, rate)
    if found is not None:
        return found
    with BALLS.at(128):
        return BOUNDED.of_balls([_delta_ball(shift, rate)])[0]


@lru_cache(maxsize=256)
def _expanded_delta(shift: Fraction, rate: Fraction) -> Enclosure | None:
    """Return Delta by powers of r = g/(1-g), if they give it to 13 digits.

    Then s is below 4 h0 and much smaller than h0^2.

    With W = e^y the series of log(1 + W) errs by at most the first power that it leaves out, and E W^k = r^k e^{k^2 s / 2}
    at v = s. So F and G of the integral below give

        Delta = g sum_k (-1)^{k+1} r^k { (e^{k(k+1)s/2} - 1)/(k+1) - (e^{k^2 s/2} - 1)/k },

    and what the powers from n on may add is at most g r^n { (e^{n(n+1)s/2} + 1)/(n+1) + (e^{n^2 s/2} + 1)/n }. In each pair of
    braces what is linear in s cancels.
    """
    if not SMALLEST <= rate < Fraction(1, 2) or shift < _SLIGHT:
        return None
    odds = BOUNDED.number(rate / (1 - rate))
    s, h0 = float(shift) ** 2, -math.log(float(odds.mid))
    if not s < 3.9 * h0:
        return None
    k = np.arange(1.0, min(h0 / s, _MOST_POWERS) + 1)  # up to about the smallest
    half, following = BOUNDED.number(shift**2 / 2), k[-1] + 1
    with np.errstate(all="ignore"):
        bent: Any = BOUNDED.excess(half * (k * (k + 1))) / (k + 1) - BOUNDED.excess(half * (k * k)) / k
        terms: Any = bent * BOUNDED.exp(BOUNDED.log(odds) * k)
    rest = math.exp(min(following * ((following + 1) * (s / 2) - h0), 700.0)) * 4 / following
    total, size = float(np.sum(np.where(k % 2 == 1, terms.mid, -terms.mid))), float(np.sum(np.abs(terms.mid)))
    radius = raised(float(np.sum(terms.radius)) + k.size * U * size + rest, ROUGH)
    if not radius <= _SHARP * total:
        return None
    return BOUNDED.number(rate) * Enclosure(total, radius)


def _delta_ball(shift: Fraction, rate: Fraction) -> Scalar:
    """Return Delta as a ball at the precision in force."""
    return _delta_at(shift, rate, BALLS.precision())


@lru_cache(maxsize=256)
def _delta_at(shift: Fraction, rate: Fraction, precision: int) -> Scalar:
    """Return Delta at the precision in force, by the one-dimensional form of the integral.

    With F = log(1 + e^y), F'' = l, and G(y) = 1 - e^-y log(1 + e^y), G' + G'' = l, the heat equation gives
    Delta = g E[ G(v/2 - h0 + sqrt(v) Z) - G(-h0) - F(-h0 + sqrt(v) Z) + F(-h0) ] at v = v*. The bracket is at most
    1 + sqrt(v)|Z|, because 0 < G < 1 and 0 < F' < 1, so |Z| > T contributes at most erfc(T/sqrt 2) + 2 sqrt(v) phi(T).
    """
    from flint import arb, ctx

    if rate >= Fraction(1, 2):
        return BALLS.number(0)
    if rate < SMALLEST or shift < _SLIGHT:
        # so many digits cancel that the integral takes long: Delta <= g^2 (e^{s/2} - 1)^2 / (2(1-g))
        return (BALLS.number(rate) * (BALLS.number(shift) ** 2 / 2).expm1()) ** 2 / (2 * BALLS.number(1 - rate))
    size = delta(shift, rate)
    lost = 64 if size == 0 else int(max(0.0, -math.log2(size)))
    bits = max(64, ctx.prec // 2)
    with BALLS.at(ctx.prec + 2 * lost + 32):
        g, s = BALLS.number(rate), BALLS.number(shift) ** 2
        h0 = ((1 - g) / g).log()
        v = s if s < 4 * h0 else 4 * h0  # the integrand of Delta changes sign at v = 4 h0
        root = v.sqrt()

        def softplus(y: Any, analytic: bool) -> Any:
            return (1 + y.exp()).log(analytic=analytic)

        def integrand(z: Any, analytic: bool) -> Any:
            y = root * z - h0
            tilted = y + v / 2
            G = 1 - (-tilted).exp() * softplus(tilted, analytic)
            return (G - G0 - softplus(y, analytic) + F0) * (-z * z / 2).exp()

        F0 = (1 + (-h0).exp()).log()
        G0 = 1 - h0.exp() * F0
        goal = arb(2) ** -(bits + lost)
        T = math.ceil(math.sqrt(2 * math.log(2) * (bits + 6 + lost))) + 1 + math.ceil(float(root.mid()))
        left, right = (ball_integral(integrand, *ends, bits, goal) for ends in ((arb(-T), arb(0)), (arb(0), arb(T))))
        total = (left + right) / (2 * arb.pi()).sqrt()
        tail = (T / arb(2).sqrt()).erfc() + 2 * root * (-arb(T) * T / 2).exp() / (2 * arb.pi()).sqrt()
        return g * (total + tail * arb(0, 1))
