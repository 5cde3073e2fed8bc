"""The curve of the best of a random number of runs."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter

import numpy as np

from cumulant.curves.curve import Curve, Wrapped
from cumulant.errors import HypothesisError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import rounded_down
from cumulant.numerics.search import least

_ORDERS = tuple(2.0 ** (k / 16) for k in range(-64, 193))
"""lambda at which the profile is asked, 16 in each octave; measured: epsilon is within 3e-4 of that from 64 in each."""

_INVERSES = (Fraction(2**64), *(1 / Fraction(each) for each in _ORDERS), Fraction(0))
"""1/lambda at these orders, from a lambda below them all to infinity; derived."""

_FINER = 8
"""Parts of a refined cell; derived: the gap below a chord falls by 64."""

_COUNTING = (1e-4, 1e3)
"""Divergence (nats) between which a gap below a chord, and its place, count; chosen by hand: beyond it nothing is said."""

_LEAST_KINK = 1e-9
"""Below this pure epsilon d(lambda) gets no place of its own; convention: such runs cost nothing."""

_SCAN = 2.0 ** np.arange(-40.0, 60.5, 0.5)
"""lambda at which local minima of divergences are looked for; chosen by hand: what is missed leaves a valid bound."""

_REFINEMENTS = 3
"""Rounds in which the cells beside a minimum are divided; chosen by hand: the value is then known to about 1e-8."""

_DIVISIONS = 32
"""Parts into which each such pair of cells is divided."""


@dataclass(frozen=True, slots=True)
class Excess:
    """Bounds of d(lambda) = delta(log(a / (a-1))), a = lambda + 1.

    d is the largest Q(A) - (1 + 1/lambda) P(A).

    delta is convex in e^epsilon = 1 + 1/lambda, so that chords between values in 1/lambda are above it; it falls, so that the
    last value holds below the smallest lambda. `deltas` belong to `orders`, `whole` to lambda = inf; `inverses` are 1/lambda
    from a lambda below them all to infinity.
    """

    deltas: tuple[Fraction, ...]
    whole: Fraction
    orders: tuple[float, ...] = _ORDERS
    inverses: tuple[Fraction, ...] = _INVERSES

    @classmethod
    def of(
        cls, deltas: Callable[[list[float]], list[float]], pure: float = math.inf, mean: Fraction = Fraction(1)
    ) -> Excess:
        """Create it from the profile of one run, the larger of both directions, rounded up.

        `pure` is an epsilon at which delta is 0: d(lambda) is 0 up to lambda = 1 / (e^pure - 1), which becomes a place too.
        A large `mean` multiplies the gap below a chord; then more places are asked where it counts.
        """
        whole, *known = (Fraction(min(each, 1.0)) for each in deltas([0.0, *map(_loss_at, _ORDERS)]))
        orders = list(_ORDERS)
        if between := _finer_orders(known, float(mean)):
            found = dict(zip(orders, known, strict=True))
            found.update(
                zip(between, (Fraction(min(each, 1.0)) for each in deltas(list(map(_loss_at, between)))), strict=True)
            )
            orders = sorted(found)
            known = [found[each] for each in orders]
        kink = float((1 / BOUNDED.expm1(BOUNDED.number(pure))).lower()) if _LEAST_KINK < pure < math.inf else 0.0
        if kink > 0 and kink not in orders:
            place = bisect.bisect(orders, kink)
            orders.insert(place, kink)
            known.insert(place, Fraction(0))
        if len(orders) == len(_ORDERS):
            return cls(tuple(known), whole)
        inverses = (_INVERSES[0], *(1 / Fraction(each) for each in orders), Fraction(0))
        return cls(tuple(known), whole, tuple(orders), inverses)

    def bound(self, lam: Array, on: Arithmetic) -> Array:
        """A number that is not below d(lambda), at each lambda."""
        # 1/lambda falls from place to place; the chord before the first lambda is flat
        inverse, values = on.asarray(self.inverses), on.asarray([self.deltas[0], *self.deltas, self.whole])
        # rational orders are compared exactly
        exact = [bisect.bisect_right(self.orders, each) for each in lam] if on.exact else None
        places = np.searchsorted(self.orders, lam, side="right") if exact is None else np.array(exact, dtype=int)
        low, high, near, far = inverse[places + 1], inverse[places], values[places + 1], values[places]
        return near - (near - far) * ((1 / on.asarray(lam) - low) / (high - low))


def _loss_at(lam: float) -> float:
    """Return a float that is not above log(1 + 1/lambda); a smaller epsilon has a larger delta."""
    return math.log1p(1 / lam) * (1 - 2.0**-48)


def _finer_orders(deltas: list[Fraction], mean: float) -> list[float]:
    """Return orders inside the cells in which the gap below the chord counts."""
    values = mean * np.array([float(each) for each in deltas])
    least_gap, most = _COUNTING
    bend = np.abs(np.diff(values, 2)) / 8  # the gap below the chord of a cell, from the places around it
    gaps = np.maximum(np.append(bend[:1], bend), np.append(bend, bend[-1:]))
    cells = np.flatnonzero((gaps > least_gap) & (values[:-1] < most))
    shares = np.arange(1, _FINER) / _FINER
    return [float(_ORDERS[i] * (_ORDERS[i + 1] / _ORDERS[i]) ** share) for i in cells for share in shares]


@dataclass(frozen=True, slots=True)
class Selected(Wrapped):
    """K(lambda) + lambda `added` + log `mean`: Theorem 2 of Papernot and Steinke 2022.

    With `poisson`, d(lambda) in place of `added`: log(1 + mean e^{lambda mean d(lambda)} (e^K - 1)). Neither bound grows with
    the order everywhere, but divergences do: up to the lambda of each of the `steps` they are at most its divergence. Steps
    rise in both; `reach` are their lambdas as floats, rounded down.
    """

    mean: Fraction
    added: Fraction
    largest: Fraction
    poisson: Excess | None = None
    steps: tuple[tuple[Fraction, Fraction], ...] = ()
    reach: tuple[float, ...] = ()

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        base, x = self.curve.cgf(lam, on), on.asarray(lam)
        added = on.number(self.added) if self.poisson is None else on.number(self.mean) * self.poisson.bound(lam, on)
        raised = x * added + on.log(on.number(self.mean))
        found = base + raised if self.poisson is None else on.log1p_exp(raised + on.log_expm1(base))
        places = self._next_steps(lam, on)
        near = places < len(self.steps)
        if near.any():
            found[near] = on.minimum(found[near], x[near] * on.asarray([self.steps[i][1] for i in places[near]]))
        # no divergence is above the largest loss
        return on.minimum(found, x * self.pure(on)) if math.isfinite(float(self.pure())) else found

    def _next_steps(self, lam: Array, on: Arithmetic) -> Array:
        """Return the place of the first step at or above each lambda.

        Returns the number of steps where there is none.
        """
        if not on.exact:
            return np.searchsorted(np.array(self.reach), lam)
        return np.array([bisect.bisect_left(self.steps, Fraction(each), key=itemgetter(0)) for each in lam], dtype=int)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.minimum(on.number(min((most for _, most in self.steps), default=math.inf)), self.pure(on))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        whole = self.curve.at_infinity(on)
        if self.poisson is not None:
            # D_a <= D_a of one run + mean d + log(mean) / (a - 1) for large a, and d is at most delta(0)
            return whole + on.number(self.mean * self.poisson.whole)
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
    return _nondecreasing(Selected(curve, mean, Fraction(added), 2 + shape))


def by_poisson(curve: Curve, mean: Fraction, excess: Excess) -> Selected:
    """K runs, K Poisson of this mean; `excess` is from the profile of one run."""
    return _nondecreasing(Selected(curve, mean, Fraction(0), Fraction(0), poisson=excess))


def _nondecreasing(curve: Selected) -> Selected:
    """Return the curve with a step at every local minimum of its divergences.

    A divergence at one order is one of every smaller order as well. Floats look for the minima, enclosures take the values.
    """

    def divergences(lam: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(curve.cgf(lam) / lam)

    nodes, values = _SCAN, divergences(_SCAN)
    for _ in range(_REFINEMENTS):
        minima = _local_minima(values)
        cells = [np.linspace(nodes[max(i - 1, 0)], nodes[min(i + 1, nodes.size - 1)], _DIVISIONS + 1) for i in minima]
        new = np.setdiff1d(np.concatenate([*cells, nodes[:0]]), nodes)
        place = np.argsort(np.concatenate([nodes, new]))
        values = np.concatenate([values, divergences(new)])[place]
        nodes = np.concatenate([nodes, new])[place]
    found = nodes[_local_minima(values)]
    with np.errstate(all="ignore"):
        above = (curve.cgf(found, BOUNDED) / Enclosure(found)).upper() if found.size else found
    # a later step bounds every smaller order as well: of steps that are not below a later one none is needed
    later = np.append(np.fmin.accumulate(above[::-1])[::-1][1:], np.inf)
    steps = [
        (Fraction(at), Fraction(most)) for at, most in zip(found[above < later], above[above < later], strict=True)
    ]
    return replace(curve, steps=tuple(steps), reach=tuple(rounded_down(at) for at, _ in steps))


def _local_minima(values: Array) -> Array:
    """Return the places of local minima: finite, below one neighbour and not above the other."""
    before, after = np.append(np.inf, values[:-1]), np.append(values[1:], np.inf)
    low = (values <= before) & (values <= after) & ((values < before) | (values < after))
    return np.flatnonzero(low & np.isfinite(values))
