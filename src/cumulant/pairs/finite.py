"""A pair of finite laws, given by exact masses."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cumulant.curves.cache import recall
from cumulant.curves.curve import Curve
from cumulant.curves.maximum import Highest
from cumulant.losses.atom_transform import MassTransform
from cumulant.losses.atoms import AtomLaw
from cumulant.losses.grid import Outputs, Step
from cumulant.losses.law import Law
from cumulant.losses.subsampled import mixed_quotients
from cumulant.losses.transform import Transform
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.logspace import log_sum
from cumulant.numerics.rationals import (
    Quotient,
    by_size,
    common,
    enclosed_logs,
    log_quotient,
    log_quotients,
    log_rational,
)
from cumulant.numerics.special import log_excess
from cumulant.numerics.taylor import coefficients, exponential_sum, line
from cumulant.pairs.pair import OnSample, Pair

# The one symmetric pair that has the larger of both profiles of a finite pair.


@dataclass(slots=True)
class _TailLine:
    """H(v) = SUM (x - v y)_+ between two ratios: X - v Y, sums over all larger ratios."""

    x: int
    y: int


def symmetrised(p: Sequence[Fraction], q: Sequence[Fraction]) -> AtomLaw:
    """Return the law of the ratio whose profile is max(H(P||Q), H(Q||P)), exactly.

    Both are convex and piecewise linear in v = e^epsilon >= 1, so is their maximum; its slope jumps by the mass of v.

    >>> symmetrised((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    AtomLaw(masses=(Fraction(1, 4),), ratios=(Fraction(3, 1),), leak=Fraction(0, 1), equal=Fraction(0, 1))
    """
    numerators, whole = common((*p, *q))
    pairs = list(zip(numerators[: len(p)], numerators[len(p) :], strict=True))
    pieces = list(_pieces(pairs))
    bends = [(at, before - after) for (_, before), (at, after) in itertools.pairwise(pieces) if before > after]
    distance = sum(x - y for x, y in pairs if x > y)
    # SUM mass is the slope at 1, SUM mass (v - 1) + leak the distance, and P is the leak and SUM mass (v + 1), elsewhere Q
    equal = whole - distance - 2 * pieces[0][1]
    leak = max(sum(x for x, y in pairs if not y), sum(y for x, y in pairs if not x))
    return AtomLaw(
        tuple(Fraction(mass, whole) for _, mass in bends),
        tuple(Fraction(*at) for at, _ in bends),
        Fraction(leak, whole),
        Fraction(equal, whole),
    )


def _pieces(pairs: Sequence[Quotient]) -> Iterator[tuple[Quotient, int]]:
    """Yield where each straight piece of the maximum starts, from v = 1 on, and minus its slope."""
    sides = [(pair for pair in pairs if pair[0] > pair[1]), ((y, x) for x, y in pairs if y > x)]
    above = [list(side) for side in sides]
    there, back = (_TailLine(sum(x for x, _ in side), sum(y for _, y in side)) for side in above)
    corners = [(ratio, line) for side, line in zip(above, (there, back), strict=True) for ratio in side if ratio[1]]
    order = by_size([ratio for ratio, _ in corners])
    at, gap = (1, 1), 0  # both directions have the same total variation distance
    for _, group in itertools.groupby(order, key=lambda entry: entry[0]):
        places = [place for _, place in group]
        following = corners[places[0]][0]
        # the two lines hold as far as the next corner, and may cross once on the way
        then = (there.x - back.x) * following[1] - following[0] * (there.y - back.y)
        leads, trails = (there, back) if (gap or then) > 0 else (back, there)
        yield at, leads.y
        if gap * then < 0:
            yield (abs(there.x - back.x), abs(there.y - back.y)), trails.y
        for place in places:
            (x, y), line = corners[place]
            line.x, line.y = line.x - x, line.y - y
        at, gap = following, then
    yield at, 0


@dataclass(frozen=True, slots=True)
class FiniteSettings:
    """Tuning constants of finite pairs; validity does not depend on them."""

    terms_at_once: int = 1 << 20
    """Terms that are in memory at once (8 MB an array)."""

    ambiguous: float = 1e-9
    """Relative distance of a loss from epsilon below which balls decide on which side it is."""

    far_cgf: float = 0.05
    """K above which log E e^{lambda y} keeps its digits; below it the form without cancellation is taken."""

    most_points: int = 1024
    """Points of a pair up to which sums over thousands of moments are fast enough."""

    most_atoms: int = 64
    """Atoms of a transform that lies on no lattice; beyond it the grid answers."""


SETTINGS = FiniteSettings()
"""The settings in force; a test may replace them."""


Masses = tuple[Fraction, ...]


class Direction:
    """P against Q by the ratio p/q: its values in increasing order, with both masses there.

    Integers over one denominator, because fractions are slow to add; equal ratios are one point.
    """

    def __init__(self, pairs: list[Quotient], whole: int) -> None:
        """Store the masses of P and Q, point by point, as multiples of 1 / whole."""
        self.whole = whole
        self.only_p = sum(x for x, y in pairs if not y)
        """The mass of P where Q has none."""
        self.only_q = sum(y for x, y in pairs if not x)
        """The mass of Q where P has none."""
        both = [(x, y) for x, y in pairs if x and y]
        groups = itertools.groupby(by_size(both), key=lambda entry: entry[0])
        merged = [[both[place] for _, place in group] for _, group in groups]
        self.points = [(sum(x for x, _ in group), sum(y for _, y in group)) for group in merged]

    def law(self) -> AtomLaw:
        """Return the law of p/q under Q."""
        seen = [(0, self.only_q)] * bool(self.only_q) + self.points
        masses, ratios = (Fraction(y, self.whole) for _, y in seen), (Fraction(x, y) for x, y in seen)
        return AtomLaw(tuple(masses), tuple(ratios), Fraction(self.only_p, self.whole))

    @cached_property
    def moving(self) -> list[Quotient]:
        """The points where p != q."""
        return [(x, y) for x, y in self.points if x != y]

    @cached_property
    def floats(self) -> tuple[Array, Array]:
        """The values log p and y = log(p/q) where p != q."""
        return self._logs(log_quotients)

    @cached_property
    def enclosures(self) -> tuple[Any, Any]:
        return self._logs(enclosed_logs)

    @cached_property
    def log_equal(self) -> float:
        """The logarithm of the mass where p = q."""
        return log_quotient(self.whole - self.only_p - sum(x for x, _ in self.moving), self.whole)

    def _logs(self, logs: Any) -> tuple[Any, Any]:
        return logs([(x, self.whole) for x, _ in self.moving]), logs(self.moving)

    def exact(self, on: Arithmetic) -> tuple[Array, Array]:
        """Return p and log(p/q) where p != q."""
        mass = on.asarray([Fraction(x, self.whole) for x, _ in self.moving])
        return mass, on.log(on.asarray([Fraction(x, y) for x, y in self.moving]))

    @cached_property
    def tails(self) -> tuple[list[int], list[int]]:
        """The masses of P and of Q from each moving point on."""
        sums = [list(itertools.accumulate(side, initial=0))[::-1] for side in zip(*self.moving[::-1], strict=True)]
        return (sums[0], sums[1]) if sums else ([0], [0])

    def profile(self, epsilon: Fraction, on: Arithmetic) -> Any:
        """Return SUM (p - e^eps q)_+ as a ball.

        Tails give it, and single points where floats cannot tell the ratio from e^eps.
        """
        losses, asked = self.floats[1], FLOATS.number(epsilon)
        width = SETTINGS.ambiguous * (1 + asked)
        first, last = (int(place) for place in np.searchsorted(losses, [asked - width, asked + width]))
        growth = on.number(epsilon).exp()

        def gap(x: int, y: int) -> Any:
            return on.number(Fraction(x, self.whole)) - growth * on.number(Fraction(y, self.whole))

        p, q = self.tails
        start = gap(p[last], q[last]) + on.number(Fraction(self.only_p, self.whole))
        return sum((gap(x, y).nonnegative_part() for x, y in self.moving[first:last]), start=start)


@dataclass(frozen=True, slots=True)
class _Finite:
    """Two finite laws, and a cache of what was found out about them."""

    p: Masses
    q: Masses
    _cache: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def directions(self) -> tuple[Direction, Direction]:
        """Return P against Q and Q against P."""

        def found() -> tuple[Direction, Direction]:
            numerators, whole = common((*self.p, *self.q))
            p, q = numerators[: len(self.p)], numerators[len(self.p) :]
            pairs = list(zip(p, q, strict=True))
            return Direction(pairs, whole), Direction([(y, x) for x, y in pairs], whole)

        return recall(self._cache, "directions", found, 8)


@dataclass(frozen=True, slots=True)
class DiscretePair(_Finite, Pair):
    """P and Q on the same finitely many points; answers are the larger of both directions.

    Each tuple is nonnegative and sums to exactly 1. A point that only one law can produce makes every order infinite,
    and the profile positive at every epsilon.

    >>> pair = DiscretePair((Fraction(1, 10), Fraction(9, 10)), (Fraction(1, 5), Fraction(4, 5)))
    >>> pair.curve().rdp([1, 2, np.inf])
    array([0.04440301, 0.10536052, 0.69314718])
    >>> pair.profile([0, 0.1])
    array([0.1       , 0.08948291])
    """

    @property
    def summable(self) -> bool:
        return len(self.directions()[0].moving) <= SETTINGS.most_points

    def curve(self) -> MassCurve:
        return MassCurve(self.p, self.q, _cache=self._cache)

    def laws(self) -> tuple[Law, ...]:
        return recall(self._cache, "laws", lambda: tuple(direction.law() for direction in self.directions()), 8)

    def symmetric_law(self) -> Law:
        return recall(self._cache, "symmetrised", lambda: symmetrised(self.p, self.q), 8)

    def poisson_curve(self) -> OnSample:
        def curve(rate: Fraction) -> Curve:
            # a curve of masses is itself the larger of its two directions
            there, back = _mixed(self.p, self.q, rate), _mixed(self.q, self.p, rate)
            return Highest((MassCurve(there, self.q), MassCurve(back, self.p)))

        return curve

    def lower_step(self, rate: Fraction, direction: str) -> Step:
        known = (rate, direction)
        return recall(self._cache, known, lambda: Finite.sampled(self.p, self.q, rate, direction), 8)

    def lower_transform(self, rate: Fraction, direction: str) -> Transform | None:
        outputs, whole = _mixtures(self.p, self.q, rate)
        if len(outputs) > SETTINGS.most_atoms:
            return None
        return MassTransform(tuple(outputs if direction == "remove" else [(y, x) for x, y in outputs]), whole)

    def taylor(self, at: Fraction, count: int) -> list[Any] | None:
        # e^K = SUM p (p/q)^lambda: infinite at lambda > 0 where q = 0 < p, and nothing there below 0
        shared = [(p, q) for p, q in zip(self.p, self.q, strict=True) if p and q]
        if sum(p for p, _ in shared) < 1 and at >= 0:
            return [BALLS.number(np.inf)] * count
        weights = [BALLS.number(p) for p, _ in shared]
        losses = [BALLS.number(p / q).log() for p, q in shared]
        return coefficients(exponential_sum(weights, losses, line(at, count)).log(), count) if shared else None

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        return self._larger(orders, on, positive=False)

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        return self._larger(orders, on, positive=True)

    def _larger(self, orders: Array, on: Arithmetic, positive: bool) -> Array:
        return _maximum([_log_moments(direction, orders, on, positive) for direction in self.directions()], on)

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log delta, delta = SUM_i p_i (1 - e^{eps - y_i})_+ with y = log(p/q)."""
        values = []
        for direction in self.directions():
            log_mass, loss = direction.floats
            alone = log_quotients([(direction.only_p, direction.whole)])
            rows = max(1, SETTINGS.terms_at_once // (loss.size + 1))
            blocks = []
            with np.errstate(divide="ignore"):
                for start in range(0, len(epsilons), rows):
                    some = epsilons[start : start + rows, None]
                    gap = np.log(-np.expm1(np.minimum(some - loss, 0.0)))
                    blocks.append(log_sum(np.concatenate([log_mass + gap, np.tile(alone, (len(some), 1))], axis=-1)))
            values.append(np.concatenate(blocks) if blocks else np.zeros(0))
        return np.maximum(values[0], values[1])

    def total_variation(self) -> Fraction:
        there = self.directions()[0]
        return Fraction(there.only_p + sum(x - y for x, y in there.points if x > y), there.whole)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        there, back = self.directions()
        return np.asarray(np.frompyfunc(lambda eps: there.profile(eps, on).max(back.profile(eps, on)), 1, 1)(epsilons))


@dataclass(frozen=True, slots=True)
class MassCurve(_Finite, Curve):
    """K = log(1 + SUM p [(e^{lambda y} - 1 - lambda y) + lambda (e^-y - 1 + y)]), y = log(p/q).

    No term is negative.
    """

    enclosed = True

    def _separated(self) -> bool:
        return any(direction.only_p for direction in self.directions())

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if self._separated():
            return on.asarray(lam) * 0 + on.number(np.inf)
        cgf = _exact_cgf if on.exact else _float_cgf
        return _maximum([cgf(direction, on.asarray(lam), on) for direction in self.directions()], on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        if self._separated():
            return on.number(np.inf)
        values: list[Any] = []
        for direction in self.directions():
            if on.exact:
                mass, loss = direction.exact(on)
                values.append(np.array([np.sum(mass * on.excess(-loss), initial=on.number(0))], dtype=object))
            elif on.enclosing:
                log_mass, loss = direction.enclosures
                terms = log_mass + BOUNDED.log_excess(-loss)
                values.append(BOUNDED.exp(BOUNDED.log_sum_exp(terms[None, :]) if loss.size else np.full(1, -np.inf)))
            else:
                log_mass, loss = direction.floats
                values.append(np.exp(log_sum((log_mass + log_excess(-loss))[None, :])))
        return _maximum(values, on)[0]

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        if self._separated():
            return on.number(np.inf)
        largest = max(Fraction(*direction.points[-1]) for direction in self.directions())
        if on.enclosing:
            return enclosed_logs([largest.as_integer_ratio()])[0]
        return on.log(on.number(largest)) if on.exact else log_rational(largest)


def _maximum(values: list[Array], on: Arithmetic) -> Array:
    if on.exact:
        return np.asarray(np.frompyfunc(lambda u, v: u.max(v), 2, 1)(values[0], values[1]))
    return on.maximum(values[0], values[1])


def _float_cgf(direction: Direction, lam: Array, on: Arithmetic) -> Array:
    """Return K of one direction at each lambda in floats or enclosures, without cancellation."""
    log_mass, loss = direction.enclosures if on.enclosing else direction.floats
    if not loss.size:
        return on.asarray(np.zeros(len(lam)))
    value = on.asarray(np.empty(len(lam)))
    rows = max(1, SETTINGS.terms_at_once // loss.size)
    for start in range(0, len(lam), rows):
        some = slice(start, start + rows)
        if on.enclosing:
            value[some] = _without_cancellation(log_mass, loss, lam[some, None], on)
            continue
        found = np.logaddexp(log_sum(log_mass + lam[some, None] * loss), direction.log_equal)
        near = ~(found > SETTINGS.far_cgf)  # only there e^K - 1 loses digits
        if near.any():
            found[near] = _without_cancellation(log_mass, loss, lam[some, None][near], on)
        value[some] = found
    return value


def _without_cancellation(log_mass: Array, loss: Array, lam: Array, on: Arithmetic) -> Array:
    excess: Any = BOUNDED.log_excess if on.enclosing else log_excess
    return on.log1p_sum_exp(log_mass + on.log_add_exp(excess(lam * loss), on.log(lam) + excess(-loss)))


def _exact_cgf(direction: Direction, lam: Array, on: Arithmetic) -> Array:
    mass, loss = direction.exact(on)
    if not len(loss):
        return lam * 0
    straight = np.sum(mass * on.excess(-loss))
    return np.asarray(on.log1p(np.sum(mass * on.excess(lam[..., None] * loss), axis=-1) + lam * straight))


def _log_moments(direction: Direction, orders: Array, on: Arithmetic, positive: bool) -> Array:
    """Return log SUM q |p/q - 1|^l, over p > q only if `positive`.

    If q = 0 < p somewhere, the first moment gains p there, and all others are +inf.
    """
    points = direction.moving if positive else [*direction.moving, *[(0, direction.only_q)] * bool(direction.only_q)]
    terms = [(y, abs(x - y)) for x, y in points if x > y or not positive]
    if on.exact:
        mass = on.asarray([Fraction(y, direction.whole) for y, _ in terms])
        gap = on.asarray([Fraction(distance, y) for y, distance in terms])

        def moment(order: int) -> Any:
            if direction.only_p and order > 1:
                return on.number(np.inf)
            alone = on.number(Fraction(direction.only_p, direction.whole))
            total = sum((m * g ** int(order) for m, g in zip(mass, gap, strict=True)), start=alone)
            return total.log() if direction.only_p or terms else on.number(-np.inf)

        return np.asarray(np.frompyfunc(moment, 1, 1)(orders))
    logs: Any = enclosed_logs if on.enclosing else log_quotients
    value = on.asarray(np.full(orders.shape, -np.inf))
    if terms:
        log_mass, log_gap = logs([(y, direction.whole) for y, _ in terms]), logs([(gap, y) for y, gap in terms])
        value = on.log_sum_exp(log_mass + on.asarray(orders[..., None].astype(np.float64)) * log_gap)
    if not direction.only_p:
        return value
    return np.where(orders > 1, on.number(np.inf), on.log_add_exp(value, logs([(direction.only_p, direction.whole)])))


def _mixtures(p: Sequence[Fraction], q: Sequence[Fraction], rate: Fraction) -> tuple[list[Quotient], int]:
    """Return (1-g)Q + gP and Q, point by point, as multiples of 1 / whole, and `whole`."""
    numerators, whole = common((*p, *q))
    pairs = zip(numerators[: len(p)], numerators[len(p) :], strict=True)
    return mixed_quotients(pairs, rate), rate.denominator * whole


def _mixed(p: Sequence[Fraction], q: Sequence[Fraction], rate: Fraction) -> Masses:
    """Return the masses of (1-g)Q + gP."""
    mixtures, whole = _mixtures(p, q, rate)
    return tuple(Fraction(x, whole) for x, _ in mixtures)


# ---- on a grid, as it is and not symmetrised: what lower bounds compose


@dataclass(frozen=True, slots=True)
class Finite(Outputs):
    """P and Q by their masses; P-mass without a partner in Q is a leak. Lower bounds compose it."""

    losses: tuple[float, ...]
    log_masses: tuple[float, ...]
    leak_mass: float

    @classmethod
    def sampled(cls, p: Sequence[Fraction], q: Sequence[Fraction], rate: Fraction, direction: str) -> Finite:
        """Return (1-g)Q + gP against Q, or with direction "add" the two swapped."""
        mixed, whole = _mixtures(p, q, rate)
        outputs = mixed if direction == "remove" else [(y, x) for x, y in mixed]
        both = [(x, y) for x, y in outputs if x and y]
        masses = log_quotients((x, whole) for x, _ in both)
        leak_mass = Fraction(sum(x for x, y in outputs if not y), whole)
        return cls(tuple(log_quotients(both).tolist()), tuple(masses.tolist()), float(leak_mass))

    @property
    def leak(self) -> float:
        return self.leak_mass

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        return np.array(self.losses), np.array(self.log_masses)

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return self.outputs(0.0)
