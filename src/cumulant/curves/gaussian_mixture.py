"""The curves of Gaussian noise around a random shift against the noise, in both directions.

Letters: c_i = shifts over sigma, w_i their weights, z ~ N(0, 1), R(z) = SUM w_i e^{c_i z - c_i^2/2}, L = log R, a = lambda + 1.

    remove   M - 1 = E R^a - 1       = E [ R { excess(lambda L) + lambda excess(-L) } ]
    add      M - 1 = E R^-lambda - 1 = E [ excess(-lambda L) + lambda excess(L) ]

by the trapezoid rule with a proved error (docs/mechanisms/gaussian-mixture.md): in the strip |Im z| <= b, c b <= pi/3, c the
largest shift, R is analytic and its argument is at most c b, so that the rule of step h is wrong by about e^{-2 pi b/h}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.cache import recall
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.decimals import NotDecimal
from cumulant.numerics.differences import up_to
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rationals import enclosed_logs, float_log, log_quotients, quotients
from cumulant.numerics.special import log_excess


@dataclass(frozen=True, slots=True)
class MixtureCurveSettings:
    """Tuning constants of the rule.

    Its error is bounded and added, so validity does not depend on them.
    """

    most_nodes: int = 1 << 15
    """Nodes beyond which joint convexity answers; convention."""

    most_balls: int = 1 << 11
    """Nodes beyond which no ball is evaluated; convention."""

    terms_at_once: int = 1 << 21
    """Orders times nodes that are in memory at once (16 MB an array)."""

    tries: int = 6
    """Plans with ever more digits that are tried."""

    few_shifts: int = 8
    """Shifts up to which every sum runs over all of them; measured: windows cost more than they save below it."""

    nodes_at_once: int = 2048
    """Nodes of one block: a block of some twenty shifts stays in the second-level cache (measured)."""

    table_points: int = 4001
    """Points of the table from which crossings start."""

    newton_steps: int = 4
    """Newton's steps from the table to a crossing; they double the digits each."""


SETTINGS = MixtureCurveSettings()
"""The settings in force; a test may replace them."""

WIDEST = 4.0
"""Half width of the strip in standard deviations; chosen by hand: e^{b^2/2} grows faster than a wider strip gains."""

ANGLE = math.pi / 3
"""Largest angle of e^{cz} in the strip (radians); derived: below pi/2, so that R stays off the negative axis."""

LOG_NO_PART = -60.0
"""Logarithm of a term over the largest one below which it changes no float: 1e6 such terms sum to less than 2^-66 of
it."""

FARTHEST = 45.0
"""Standard deviations beyond which no normal variable is; derived: e^-1012 is below all floats."""

RARE = 1e-290
"""Weight below which w (e^x - 1) is taken from log w; derived: a smaller one is not a float, or its e^x may not be."""

LOG_ROOT = math.log(2 * math.pi) / 2
"""log sqrt(2 pi), the logarithm of the normal density's constant."""

MARGIN = 1e-6
"""Added to logarithms of bounds that floats evaluate; far more than their rounding."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """Distinct shifts >= 0 over sigma in increasing order, with positive weights of sum 1."""

    shifts: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]

    @classmethod
    def of(cls, shifts: Any, weights: Any) -> Shifts:
        """Create the law of these shifts: weights of equal ones are added, and zeros dropped."""
        found: dict[Fraction, Fraction] = {}
        for shift, weight in zip(shifts, weights, strict=True):
            if weight:
                found[Fraction(shift)] = found.get(Fraction(shift), Fraction(0)) + Fraction(weight)
        kept = sorted(found.items())
        return cls(tuple(shift for shift, _ in kept), tuple(weight for _, weight in kept))

    def mixed(self, rate: Fraction) -> Shifts:
        """Return the shifts on a Poisson sample: with probability 1 - g there is no shift."""
        return Shifts.of((Fraction(0), *self.shifts), (1 - rate, *(rate * weight for weight in self.weights)))

    @property
    def largest(self) -> Fraction:
        return self.shifts[-1]

    def log_ratio(self, z: Array, on: Arithmetic) -> Array:
        """Return L, with full relative accuracy also where it is small.

        z is a flat array of this arithmetic.
        """
        if on is FLOATS and len(self.shifts) > SETTINGS.few_shifts:
            return self._many_log_ratios(z)
        c, weight, log_weight = _numbers(self.shifts, on), _numbers(self.weights, on), _logs(self.weights, on)
        half = _numbers([shift * shift / 2 for shift in self.shifts], on)
        x = z[:, None] * c - half
        far = on.log_sum_exp(x + log_weight)
        near = np.abs(_middle(far, on)) < 0.5
        if near.any():
            common = np.array([each > RARE for each in self.weights])
            gained = weight[common] * on.expm1(x[near][:, common])
            total: Any = _summed(gained) if on.enclosing else gained.sum(axis=1)
            if not common.all():
                rest = on.exp(x[near][:, ~common] + log_weight[~common]) - weight[~common]
                total = total + (_summed(rest) if on.enclosing else rest.sum(axis=1))
            far[near] = on.log1p(total)
        return far

    def crossing(self, height: float) -> float:
        """Return z with L = height, as near as floats are.

        It lies far to the left if L is larger throughout.
        """
        return float(self.crossings(np.array([height]))[0])

    def crossings(self, heights: Array) -> Array:
        """Return z with L = height for many heights, by Newton's steps inside of a table's cells."""
        z, L = _table(self)
        place = np.clip(np.searchsorted(L, heights), 1, z.size - 1)
        low, high = z[place - 1], z[place]
        with np.errstate(all="ignore"):
            share = (heights - L[place - 1]) / (L[place] - L[place - 1])
            found = low + np.clip(np.where(np.isnan(share), 0.0, share), 0.0, 1.0) * (high - low)
            for _ in range(SETTINGS.newton_steps):
                value, slope = self._sloped(found)
                following = np.clip(found - (value - heights) / slope, low, high)
                found = np.where(np.isnan(following), found, following)
        return found

    def _many_log_ratios(self, z: Array) -> Array:
        """L in floats for many shifts, in blocks that stay in the cache."""
        value, _ = self._sloped(z)
        c, weight = np.array([float(each) for each in self.shifts]), np.array([float(each) for each in self.weights])
        near, common = np.flatnonzero(np.abs(value) < 0.5), weight > RARE
        c, weight, rare, log_w = c[common], weight[common], c[~common], _logs(self.weights, FLOATS)[~common]
        for start in range(0, near.size, SETTINGS.nodes_at_once):
            some = near[start : start + SETTINGS.nodes_at_once]
            total = weight @ np.expm1(c[:, None] * (z[some] - c[:, None] / 2))
            if rare.size:
                total += np.exp(log_w[:, None] + rare[:, None] * (z[some] - rare[:, None] / 2)).sum(axis=0)
            value[some] = np.log1p(total)
        return value

    def _sloped(self, z: Array) -> tuple[Array, Array]:
        """L and its derivative in floats: sums over the shifts that count near each z."""
        c, log_w = np.array([float(each) for each in self.shifts]), _logs(self.weights, FLOATS)
        if c.size <= SETTINGS.few_shifts:
            return _log_sums(z, c, log_w)
        order = np.argsort(z, kind="stable")
        value, slope = np.empty(z.size), np.empty(z.size)
        for start in range(0, z.size, SETTINGS.nodes_at_once):
            some = order[start : start + SETTINGS.nodes_at_once]
            near = z[some]
            ends = log_w[:, None] + c[:, None] * (near[[0, -1]] - c[:, None] / 2)
            # each difference to one fixed term is linear in z, so that its ends bound it: what is left out is no float's part
            best = np.argmax(ends.sum(axis=1))
            kept = (ends - ends[best]).max(axis=1) > LOG_NO_PART
            value[some], slope[some] = _log_sums(near, c[kept], log_w[kept])
        return value, slope


def _log_sums(z: Array, c: Array, log_w: Array) -> tuple[Array, Array]:
    """log SUM w_i e^{c_i z - c_i^2/2} and its derivative."""
    terms = log_w[:, None] + c[:, None] * (z - c[:, None] / 2)
    top = terms.max(axis=0)
    shares = np.exp(terms - top)
    total = shares.sum(axis=0)
    return top + np.log(total), (c @ shares) / total


@lru_cache(maxsize=64)
def _table(law: Shifts) -> tuple[Array, Array]:
    """Return L at many z.

    z runs from where no normal variable is to where none of the noise around the largest shift is.
    """
    z = np.linspace(-FARTHEST, FARTHEST + float(law.largest), SETTINGS.table_points)
    return z, np.maximum.accumulate(law._sloped(z)[0])


def _summed(x: Enclosure) -> Enclosure:
    """Return the sum of few terms along the last axis."""
    total = x[:, 0]
    for i in range(1, x.shape[1]):
        total = total + x[:, i]
    return total


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes start + (k + 1/2) step, k < count, and the half width of the strip."""

    start: float
    step: float
    count: int
    strip: float


def evaluate_by_octave(lam: Array, evaluate: Callable[[Array, Array, Arithmetic], Array], on: Arithmetic) -> Array:
    """Evaluate a curve octave by octave of lambda; orders of one octave share their nodes.

    `evaluate` takes the orders of an octave, as they are and as floats. All orders up to 1 are one octave.
    """
    floats = np.array([float(x) for x in lam])
    value = on.asarray(np.zeros(len(lam)))
    group = np.where(floats > 1, np.ceil(np.log2(np.maximum(floats, 1.0))), 0.0)
    for each in np.unique(group):
        some = group == each
        value[some] = evaluate(lam[some], floats[some], on)
    return value


def rounded_plan(low: float, high: float, step: float, zero: float, strip: float) -> Plan | None:
    """Return nodes from low to high, exactly as far apart as the rule needs; None if too many.

    L = 0 at z = zero lies about half way between two of them.
    """
    if not (high - low) / step <= SETTINGS.most_nodes:
        return None
    step = float(np.ldexp(math.floor(np.ldexp(*np.frexp(step)[:1], 20)), -20 + int(np.frexp(step)[1])))
    middle = round(8 * zero / step) * step / 8
    below = max(math.ceil((middle - low) / step), 1)
    return Plan(middle - below * step, step, below + max(math.ceil((high - middle) / step), 1), strip)


@dataclass(frozen=True, slots=True)
class MixtureCurve(Curve):
    """One direction, "remove" or "add"."""

    law: Shifts
    direction: str
    _cache: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    enclosed = True

    @property
    def _removed(self) -> bool:
        return self.direction == "remove"

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if not self.law.largest:
            return on.asarray(lam) * 0
        _refuse_decimals(on)
        return evaluate_by_octave(lam, self._at, on)

    def _at(self, lam: Array, floats: Array, on: Arithmetic) -> Array:
        digits = 45.0 if not on.exact else on.precision() * math.log(2)
        for _ in range(SETTINGS.tries):
            plan = self._plan(floats, digits)
            if plan is None:
                break
            if on.exact and plan.count > SETTINGS.most_balls:
                raise CertificateError("the integral takes long in balls; its enclosure does not")
            found, log_error = self._sum(lam, floats, plan, on)
            lost = np.max(log_error - _middle(found, on), initial=-np.inf)
            wanted = -38.0 if not on.exact else -on.precision() * math.log(2) / 2
            if lost <= wanted or not (on.enclosing or on.exact):
                return self._settled(found, log_error, on)
            digits += max(float(lost - wanted) + 5, 10.0) if math.isfinite(lost) else 40.0
        return self._convexity_bound(lam, on)

    def _settled(self, log_excess_: Array, log_error: Array, on: Arithmetic) -> Array:
        """log(1 + e^excess), wrong by the error."""
        if on.exact:
            pairs = zip(log_excess_, log_error, strict=True)
            return np.array([(x.exp() + _within(y)).log1p() for x, y in pairs], dtype=object)
        if on.enclosing:
            part = np.exp(log_error - log_excess_.mid) * (1 + 1e-6)
            log_excess_ = Enclosure(log_excess_.mid, log_excess_.radius + part / (1 - part))
        return on.log1p_exp(log_excess_)

    def _plan(self, lam: Array, digits: float) -> Plan | None:
        """Return the places of the nodes; None if they are too many."""
        c, top = FLOATS.number(self.law.largest), float(lam.max())
        if not c < 1e4 or not top < 1e9 or c < 1e-100:
            return None
        # what the integral is at least, roughly: the variance of R
        size = 2 * math.log(min(c, 1.0)) + 2 * float_log(1 - self._weight_of_nothing())
        size += math.log(min(float(lam.min()), 1.0) + 1e-300)
        need = digits - size + math.log(2 * top + 2)
        angle = ANGLE if self._removed else min(ANGLE, math.sqrt(30 / max(top, 1e-300)))
        strip = min(angle / c, WIDEST)
        step = 2 * math.pi * strip / (need + strip * strip / 2 + 20)
        if self._removed:
            # the moment is at least that of the largest shift alone, where that is large
            height = top * (top + 1) * c * c / 2
            own = max(height + (top + 1) * float_log(self.law.weights[-1]), size)
            low = -math.sqrt(2 * need)
            high = (top + 1) * c + math.sqrt(2 * max(height - own + digits + 5, need))
        else:
            first, weight = float(self.law.shifts[0]), float_log(self.law.weights[0])
            low = -top * first - math.sqrt(2 * (need + max(top * (top + 1) * first**2 / 2 - top * weight, 0.0)))
            high = c + math.sqrt(2 * need)
        return rounded_plan(low, high, step, self.law.crossing(0.0), strip)

    def _weight_of_nothing(self) -> Fraction:
        return self.law.weights[0] if self.law.shifts[0] == 0 else Fraction(0)

    def _sum(self, lam: Array, floats: Array, plan: Plan, on: Arithmetic) -> tuple[Array, Array]:
        """The logarithms of the rule and of a bound of its error, for each order."""
        log_weight, L = recall(
            self._cache, (plan, on.exact, on.enclosing, on.precision()), lambda: self._nodes(plan, on), 8
        )
        orders = on.asarray(lam)
        rows = max(1, SETTINGS.terms_at_once // plan.count)
        parts = [self._row(orders[i : i + rows], log_weight, L, on) for i in range(0, len(lam), rows)]
        found: Any = np.concatenate(parts)
        return found, self._log_error(floats, _middle(found, on), plan)

    def _nodes(self, plan: Plan, on: Arithmetic) -> tuple[Array, Array]:
        """log of the weights of the nodes, and L there."""
        z = on.asarray(plan.start + (np.arange(plan.count) + 0.5) * plan.step)
        return -z * z / 2 - _root(on) + on.log(on.number(plan.step)), self.law.log_ratio(z, on)

    def _row(self, lam: Array, log_weight: Array, L: Array, on: Arithmetic) -> Array:
        each = lam[:, None]
        if self._removed:
            kernel = L + on.log_add_exp(log_excess(each * L, on), on.log(each) + log_excess(-L, on))
        else:
            kernel = on.log_add_exp(log_excess(-(each * L), on), on.log(each) + log_excess(L, on))
        return on.log_sum_exp(kernel + log_weight)

    def _log_error(self, lam: Array, size: Array, plan: Plan) -> Array:
        """Return log of a bound of the error: the rule and both tails of the nodes, in floats.

        The rule errs by 2 e^{b^2/2} k (I + 2a) / (e^{2 pi b/h} - 1). A margin covers rounding.
        """
        c, a, b = float(self.law.largest), lam + 1, plan.strip
        low, high = plan.start + plan.step, plan.start + (plan.count - 1) * plan.step
        turned = 0.0 if self._removed else -lam * math.log(math.cos(c * b))
        with np.errstate(divide="ignore", invalid="ignore"):  # balls of too few digits have no size
            rule = (
                math.log(2) + b * b / 2 + turned - 2 * math.pi * b / plan.step + np.logaddexp(size, np.log(2 * a)) + 1
            )
            if self._removed:
                right = a * lam * c * c / 2 + log_tail(high - a * c)
                left = np.log(lam) + log_tail(np.full(lam.shape, -low))
            else:
                first, weight = float(self.law.shifts[0]), float_log(self.law.weights[0])
                right = np.log(lam) + log_tail(np.full(lam.shape, high - c))
                left = -lam * weight + lam * a * first**2 / 2 + log_tail(-low - lam * first)
            return np.logaddexp(rule, np.logaddexp(left, right)) + MARGIN

    def _convexity_bound(self, lam: Array, on: Arithmetic) -> Array:
        """Return the bound by joint convexity and Minkowski, or by the smallest shift alone.

        Joint convexity gives log SUM w_i e^{a lambda c_i^2/2}.
        """
        moved = [(c * c / 2, w) for c, w in zip(self.law.shifts, self.law.weights, strict=True) if c]
        x, half = on.asarray(lam)[:, None], _numbers([square for square, _ in moved], on)
        w = _logs([weight for _, weight in moved], on)
        order = x[:, 0] + 1
        # never more than the largest shift, which stays known where logarithms underflow
        convex = on.minimum(
            on.log1p_sum_exp(on.log_expm1(x * ((x + 1) * half)) + w), x[:, 0] * (order * half[len(moved) - 1])
        )
        if self._removed:
            return on.minimum(convex, order * on.log1p_sum_exp(on.log_expm1(x * half) + w))
        first = self.law.shifts[0]
        alone = order * on.number(first * first / 2) - on.log(on.number(self.law.weights[0]))
        return on.minimum(convex, (order - 1) * alone)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """Return the limit of (M - 1) / lambda: E [ R excess(-L) ], or E excess(L).

        Far out it is at most that of the shifts.
        """
        if not self.law.largest:
            return on.number(0)
        _refuse_decimals(on)
        plan = self._plan(np.array([1.0]), 45.0 + (on.precision() - 53 if on.exact else 0))
        if plan is None:
            half = _numbers([w * c * c / 2 for c, w in zip(self.law.shifts, self.law.weights, strict=True)], on)
            convex = sum((half[i] for i in range(len(self.law.shifts))), start=on.number(0))
            # a larger order needs fewer nodes here, and its divergence is at least that of order 1
            return convex if on.exact else on.minimum(convex, 2 * self._cgf(np.array([0.5]), on)[0])
        log_weight, L = self._nodes(plan, on)
        kernel = L + log_excess(-L, on) if self._removed else log_excess(L, on)
        found = on.log_sum_exp((kernel + log_weight)[None, :] if not on.exact else (kernel + log_weight))
        found = found if on.exact else found[0]
        guess = float(found) if on.exact else float(_middle(found, on))
        # R log R - R + 1 and R - 1 - log R are at most f_2 and f_-1 on the strip as beyond the nodes
        log_error = float(self._log_error(np.array([1.0]), np.array([max(guess, 0.0) + 3.0]), plan)[0]) + 3.0
        if on.exact:
            return found.exp() + _within(log_error)
        if on.enclosing:
            part = math.exp(log_error - guess)
            return BOUNDED.exp(Enclosure(found.mid, found.radius + (part if part < 0.5 else math.nan)))
        return math.exp(found)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        nothing = self._weight_of_nothing()
        if self._removed or not nothing or nothing == 1:
            return on.number(np.inf if self.law.largest else 0)
        return -on.log(on.number(nothing))


def _refuse_decimals(on: Arithmetic) -> None:
    """Raise NotDecimal: floats or balls enclose the integral, decimals have no nodes for it."""
    if on.exact and on is not BALLS:
        raise NotDecimal("the integral over a Gaussian mixture is enclosed in balls only")


def _root(on: Arithmetic) -> Any:
    """log sqrt(2 pi)."""
    if not on.exact:
        return Enclosure(LOG_ROOT, 2.0**-52) if on.enclosing else LOG_ROOT
    from flint import arb

    return (2 * arb.pi()).log() / 2


def _numbers(values: Iterable[Fraction], on: Arithmetic) -> Array:
    """Return fractions as an array, also those that are too large for floats."""
    return on.asarray([on.number(value) for value in values])


def _logs(values: Sequence[Fraction], on: Arithmetic) -> Array:
    """Return logarithms of fractions, also of those that are too small for floats."""
    if on.exact:
        return on.log(_numbers(values, on))
    return enclosed_logs(quotients(values)) if on.enclosing else log_quotients(quotients(values))


def _middle(x: Any, on: Arithmetic) -> Array:
    """Return floats near these numbers, to choose by."""
    return np.array([float(each) for each in x]) if on.exact else x.mid if on.enclosing else x


def _within(log_size: float) -> Any:
    """The ball of all numbers up to this size, of either sign."""
    size = BALLS.number(float(log_size)).exp()
    return up_to(size) - up_to(size)


def log_tail(t: Array) -> Array:
    """log of e^{-t^2/2} / 2, at least P(z > t) for t >= 0; 0 below."""
    return np.where(t > 0, -t * t / 2 - math.log(2), 0.0)
