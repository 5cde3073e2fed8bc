"""The curve: K(lambda), the cumulant generating function of the loss, and rdp(order).

Composition is addition of K (Lemma 5), and this file is the only place where curves are added and multiplied.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.hull import lower_hull
from cumulant.numerics.rounding import at_least_once
from cumulant.numerics.search import SCAN

LEAST_FLOAT = 5e-324
"""The least positive float: a divergence that underflows is not 0."""

LAST_INTEGER = 2.0**53
"""Orders up to which order - 1 is exact in floats."""

AGREEMENT = 1e-9
"""Relative difference below which two bounds agree; only the name that is reported depends on it."""

FIRST_BITS = 128
"""Bits of the first ball at a point of an array."""

MOST_BITS = 1024
"""Bits of the last ball; beyond it the ball is taken as wide as it is."""

GOOD_BITS = 50
"""Relative bits of a ball that is narrow enough for a float."""


class Curve(ABC):
    """An upper bound of K(lambda) = lambda * rdp(lambda + 1) at all real lambda > 0 (Remark 7).

    `integral` says that K is linear between integers, so that eq. (3) attains its minimum at an integer order (E-14).
    `summed` says that each value is itself a sum over all lower orders, so that sums over it are out of reach far out.
    `enclosed` says that its formulas run in the float enclosures of BOUNDED; others are evaluated in balls, point by point.
    `estimated` says that it rests on a Python function, which may take no balls: then the radius is one that was measured
    and not proved (docs/rounding.md).
    `remembered` says that it keeps what it was asked for, so that the same orders cost nothing when they are asked again.
    """

    __slots__ = ()

    integral: bool = False
    summed: bool = False
    enclosed: bool = False
    estimated: bool = False
    remembered: bool = False
    integrated: bool = False
    """True if each value costs an integral over a user's densities, so that within a question it is remembered."""

    @abstractmethod
    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        """Return K at a flat array of finite lam > 0; NaN stands for unknown.

        It is float64 on FLOATS, exact numbers on BALLS.
        """

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """Order 1: a bound of the KL divergence; +inf when unknown."""
        return on.number(np.inf)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        """Order infinity: a bound of the privacy loss itself; +inf when unknown."""
        return on.number(np.inf)

    def slack(self) -> Fraction:
        """Return a probability s with which none of the above holds.

        Both laws are mixtures: a part s of each is anything at all, and the other parts, of weight 1 - s, obey the
        curve. It is exact, or rounded up where many rounds were composed.
        """
        return Fraction(0)

    def strict(self) -> Curve:
        """Return a larger curve of the same mechanism without slack; itself if none is known."""
        return self

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        """Return (xi, rho) with K(lambda) <= lambda xi + lambda (lambda + 1) rho, or None.

        Remark 8 of the paper. None means that no such pair is known.
        """
        return None

    def left(self, delta: Fraction) -> Fraction:
        """Return what the slack s leaves for the curve: delta = s + (1-s) left.

        It is not positive if the slack takes all of delta.

        P(S) <= (1-s) (e^epsilon Q'(S) + left) + s <= e^epsilon Q(S) + delta for Q = (1-s) Q' + s Q''.
        """
        slack = self.slack()
        return (delta - slack) / (1 - slack) if slack < 1 else delta - slack

    def cgf(self, lam: Any, on: Arithmetic = FLOATS) -> Array:
        """K at an array of finite lam > 0; unknown is +inf, never NaN."""
        if on.exact:
            return self._cgf(np.asarray(lam, dtype=object), on)
        with np.errstate(all="ignore"):
            lam = np.asarray(lam, dtype=np.float64)
            if on.enclosing and not self.enclosed:
                return self._from_balls(self._balls(lam), lambda missing: self.cgf(lam[missing]))
            value = self._cgf(lam, on)
            if on.enclosing:
                return value
            value = np.where(np.isnan(value), np.inf, value)
            # a positive K below the smallest float is not 0: only perfect privacy is
            return value if (value > 0).all() else np.maximum(value, LEAST_FLOAT if self.pure() > 0 else 0.0)

    def projected(self) -> Curve:
        """Return the largest CGF that a scan of orders finds below this curve (Proposition 35).

        It is still an upper bound.
        """
        return Projected(self)

    def at_one(self, on: Arithmetic) -> Scalar:
        """Return `kl`; from a ball if an enclosure is asked for and the formula gives none."""
        return self._end(self.kl, on)

    def at_infinity(self, on: Arithmetic) -> Scalar:
        """Return `pure`; from a ball if an enclosure is asked for and the formula gives none."""
        return self._end(self.pure, on)

    def _end(self, end: Callable[[Arithmetic], Scalar], on: Arithmetic) -> Scalar:
        if self.enclosed or not on.enclosing:
            return end(on)
        return self._from_balls([narrow(partial(end, BALLS))], lambda _: [end(FLOATS)])[0]

    def takes_balls(self) -> bool:
        """True if there is a ball at order 2; a Python function may know floats only."""
        return not self._balls(np.ones(1))[0].is_nan()

    def _balls(self, lam: Array) -> list[Scalar]:
        """Return K at floats as narrow balls; NaN where there is none.

        All are evaluated at once, and once more one by one where that is not enough.
        """
        exact = np.array([Fraction(x) for x in lam.tolist()], dtype=object)
        try:
            with BALLS.at(FIRST_BITS):
                found = list(self._cgf(exact, BALLS))
        except CertificateError:
            found = [BALLS.number(math.nan)] * exact.size
        for i, ball in enumerate(found):
            if ball.rel_accuracy_bits() < GOOD_BITS:
                found[i] = narrow(partial(self._point, exact[i : i + 1]))
        return found

    def _point(self, lam: Array) -> Scalar:
        return self._cgf(lam, BALLS)[0]

    def _from_balls(self, balls: Iterable[Scalar], floats: Callable[[Array], Any]) -> Enclosure:
        """Return enclosures from balls.

        Without a ball it is unknown (NaN), or measured if it rests on a Python function.
        """
        found = BOUNDED.of_balls(balls)
        missing = np.isnan(found.mid)
        if self.estimated and missing.any():
            found[missing] = BOUNDED.measured(floats(missing))
        return found

    def winner(self, order: float) -> str:
        """Return the name of the bound that gives the value at this order; empty if it has none.

        A minimum of several bounds has one.
        """
        return ""

    def rdp(self, orders: Any, on: Arithmetic = FLOATS) -> Array:
        """Return the Rényi divergence bound at orders in [1, inf]; 1 is KL, inf is pure.

        It is computed in floats or enclosures.
        """
        orders = np.asarray(orders, dtype=np.float64)
        value = on.asarray(np.empty_like(orders))
        inside = (orders > 1) & np.isfinite(orders)
        with np.errstate(all="ignore"):
            for end, at in ((self.at_one, orders == 1), (self.at_infinity, orders == np.inf)):
                if at.any():
                    value[at] = end(on)
            if inside.any():
                # past 2^53 the next integer is not a float; the divergence grows with the order, so a larger one is valid
                lam = np.where(orders[inside] > LAST_INTEGER, orders[inside], orders[inside] - 1)
                value[inside] = self.cgf(lam, on) / lam
        return value


def narrow(ball: Callable[[], Scalar]) -> Scalar:
    """Return the ball at the first precision with 50 good bits, else the narrowest; NaN if none."""
    bits, found = FIRST_BITS, BALLS.number(math.nan)
    while bits <= MOST_BITS and found.rel_accuracy_bits() < GOOD_BITS:
        try:
            with BALLS.at(bits):
                found = ball()
        except CertificateError:
            break
        bits *= 2
    return found


@dataclass(frozen=True, slots=True)
class Composition(Curve):
    """Lemma 5: K, KL and pure add, each as often as its mechanism ran.

    It is given that no slack was used by any of them.
    """

    parts: tuple[tuple[Curve, int], ...]

    enclosed = True

    @property
    def integral(self) -> bool:  # type: ignore[override]
        return all(curve.integral for curve, _ in self.parts)

    @property
    def summed(self) -> bool:  # type: ignore[override]
        return any(curve.summed for curve, _ in self.parts)

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return any(curve.estimated for curve, _ in self.parts)

    @property
    def remembered(self) -> bool:  # type: ignore[override]
        return all(curve.remembered for curve, _ in self.parts)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return sum((on.number(times) * curve.cgf(lam, on) for curve, times in self.parts), start=on.asarray(lam) * 0)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return sum((on.number(times) * curve.at_one(on) for curve, times in self.parts), start=on.number(0))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return sum((on.number(times) * curve.at_infinity(on) for curve, times in self.parts), start=on.number(0))

    def slack(self) -> Fraction:
        return at_least_once((curve.slack(), times) for curve, times in self.parts)

    def strict(self) -> Curve:
        return Composition(tuple((curve.strict(), times) for curve, times in self.parts)) if self.slack() else self

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        xi = rho = Fraction(0)
        for curve, times in self.parts:
            own = curve.concentration()
            if own is None:
                return None
            xi, rho = xi + times * own[0], rho + times * own[1]
        return xi, rho


def compose(parts: Iterable[tuple[Curve, int]]) -> Curve:
    """Return the curve of running each mechanism so many times, adaptively, on the same data.

    Pairs and not a dictionary: different mechanisms may have equal curves, and each of them counts.
    """
    parts = tuple(parts)
    return parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else Composition(parts)


@dataclass(frozen=True, slots=True)
class Lowest(Curve):
    """The pointwise minimum of curves that bound the same mechanism.

    Each curve comes with the name of its bound, if it has one.
    """

    curves: tuple[Curve, ...]
    names: tuple[str, ...] = ()

    enclosed = True

    @property
    def summed(self) -> bool:  # type: ignore[override]
        return any(curve.summed for curve in self.curves)

    @property
    def integrated(self) -> bool:  # type: ignore[override]
        return any(curve.integrated for curve in self.curves)

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return any(curve.estimated for curve in self.curves)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on is FLOATS:
            return self._least([curve.cgf(lam, on) for curve in self.curves], on)
        value = self._planned(lam, on)
        if on.enclosing:
            unknown = ~np.isfinite(value.mid + value.radius)
            if unknown.any():
                value[unknown] = self._least([on.known(curve.cgf(lam[unknown], on)) for curve in self.curves], on)
        return value

    def strict(self) -> Curve:
        return replace(self, curves=tuple(curve.strict() for curve in self.curves)) if self.slack() else self

    def _planned(self, lam: Array, on: Arithmetic) -> Array:
        """Return only the curve that is lowest in floats: each is valid, so any choice is."""
        floats = lam.astype(np.float64)
        choice = np.argmin([curve.cgf(floats) for curve in self.curves], axis=0)
        value = np.empty(lam.shape, dtype=object) if on.exact else on.asarray(np.empty(lam.shape))
        for i in set(choice.tolist()):
            value[choice == i] = self.curves[i].cgf(lam[choice == i], on)
        return value

    def _least(self, values: list[Any], on: Arithmetic) -> Any:
        least = values[0]
        for value in values[1:]:
            least = on.minimum(least, value)
        return least

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._least([curve.at_one(on) for curve in self.curves], on)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._least([curve.at_infinity(on) for curve in self.curves], on)

    def slack(self) -> Fraction:
        return self.curves[0].slack()

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return next((found for curve in self.curves if (found := curve.concentration()) is not None), None)

    def winner(self, order: float) -> str:
        """Return the last of the names that agree to 9 digits."""
        values = [float(curve.rdp([order])[0]) for curve in self.curves]
        near = (math.isclose(value, min(values), rel_tol=AGREEMENT) for value in values)
        return "".join([name for name, close in zip(self.names, near, strict=False) if close][-1:])


@dataclass(frozen=True, slots=True)
class Wrapped(Curve):
    """Another curve's statements, except for what a subclass adds."""

    curve: Curve

    enclosed = True

    @property
    def summed(self) -> bool:  # type: ignore[override]
        return self.curve.summed

    @property
    def integrated(self) -> bool:  # type: ignore[override]
        return self.curve.integrated

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return self.curve.estimated

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return self.curve.cgf(lam, on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.curve.at_one(on)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.curve.at_infinity(on)

    def slack(self) -> Fraction:
        return self.curve.slack()

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return self.curve.concentration()

    def winner(self, order: float) -> str:
        return self.curve.winner(order)


@dataclass(frozen=True, slots=True)
class Projected(Wrapped):
    """Proposition 35: the smaller of the curve and the lower convex hull of its scanned values.

    The point (0, 0) belongs to the hull.

    The true K is convex, is 0 at 0 and lies below the curve, so it lies below every chord; past the last node nothing is
    extrapolated (K_M <= F <= K, E-8). A bound with kinks need have no tangent through (0, 0), so the hull is taken (E-26).
    """

    _hull: list[tuple[Array, Array]] = field(default_factory=list, compare=False, repr=False)

    def _corners(self) -> tuple[Array, Array]:
        """The corners of the hull, found in floats; any choice of corners is valid."""
        if not self._hull:
            self._keep_hull(self.curve.cgf(SCAN))
        return self._hull[0]

    def _keep_hull(self, value: Array) -> None:
        known = np.isfinite(value)
        x, y = np.append(0.0, SCAN[known]), np.append(0.0, value[known])
        corners = lower_hull(x, y)
        self._hull.append((x[corners], y[corners]))

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            return np.array([self._ball(point, on) for point in lam], dtype=object)
        if on.enclosing:
            return self._enclosures(lam, on)
        value = self._floats(lam)
        return np.fmin(value, np.interp(lam, *self._hull[0], right=np.inf)) if self._hull else value

    def _floats(self, lam: Array) -> Array:
        """Return the curve itself; the first call evaluates the scan too.

        An integral costs the same for few orders as for many.
        """
        if self._hull or not lam.size or lam.min() > SCAN[-1]:  # past the hull nothing is projected
            return self.curve.cgf(lam)
        both = self.curve.cgf(np.concatenate([SCAN, lam]))
        self._keep_hull(both[: SCAN.size])
        return both[SCAN.size :]

    def _enclosures(self, lam: Array, on: Arithmetic) -> Array:
        """Return the curve itself, or the chord of two enclosed corners if it is lower in floats."""
        if not lam.size or lam.min() > SCAN[-1]:  # past the hull nothing is projected
            return self.curve.cgf(lam, on)
        floats = self._floats(lam)
        x, y = self._corners()
        chorded = np.interp(lam, x, y, right=np.inf) < (1 - 1e-12) * floats
        value = on.asarray(np.empty(lam.shape))
        value[~chorded] = self.curve.cgf(lam[~chorded], on)
        if chorded.any():
            right = np.searchsorted(x, lam[chorded])
            ends, place = np.unique([right - 1, right], return_inverse=True)
            heights = on.asarray(np.zeros(ends.shape))
            heights[x[ends] > 0] = self.curve.cgf(x[ends[x[ends] > 0]], on)
            low, high = (heights[each] for each in place.reshape(2, -1))
            start = on.asarray(x[right - 1])
            share = (on.asarray(lam[chorded]) - start) / (on.asarray(x[right]) - start)
            value[chorded] = low + share * (high - low)
        return value

    def winner(self, order: float) -> str:
        """Return the winner of the curve; empty where the chord is below all of them."""
        (x, y), lam = self._corners(), order - 1
        chorded = 0 < lam <= x[-1] and np.interp(lam, x, y) < (1 - AGREEMENT) * self.curve.cgf([lam])[0]
        return "" if chorded else self.curve.winner(order)

    def _ball(self, lam: Fraction, on: Arithmetic) -> Scalar:
        """Return the curve itself, or the chord of two certified corners if it is lower in floats."""
        x, y = self._corners()
        here = np.array([lam], dtype=object)
        right = int(np.searchsorted(x, float(lam)))
        if right in (0, x.size) or not np.interp(float(lam), x, y) < (1 - 1e-12) * self.curve.cgf([float(lam)])[0]:
            return self.curve._cgf(here, on)[0]
        left_node, right_node = Fraction(x[right - 1]), Fraction(x[right])
        low = self.curve._cgf(np.array([left_node], dtype=object), on)[0] if left_node else on.number(0)
        high = self.curve._cgf(np.array([right_node], dtype=object), on)[0]
        return low + on.number((lam - left_node) / (right_node - left_node)) * (high - low)
