"""Theorem 1 of docs/ledger-proofs.md: a mixture over orders is a filter for every curve.

It is fixed before the first answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.conversion.conversions import CONVERSIONS
from cumulant.curves.cache import recall
from cumulant.curves.curve import Curve, narrow
from cumulant.errors import BudgetRefused, CertificateError, InputError
from cumulant.filters.amounts import Amounts, round_up
from cumulant.filters.filter import FINE, MOST_EPSILON, UNIT, Filter, Price, Step, proved_curve, whole_range
from cumulant.numerics.arithmetic import BALLS, FLOATS, RATIONALS
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.rationals import float_log
from cumulant.numerics.rounding import rounded_down, rounded_up
from cumulant.numerics.search import falling_root, least

PARTS = 10**9
"""A certificate is a distribution over the orders in parts per billion."""

_BITS = 128
"""Bits of the balls; convention: 75 more than a float has."""

_STEPS = 200
"""Steps of a search for a root, at most; convention: it ends by its width after some dozens."""

_REMEMBERED = 64
"""Tilts of decisions that are remembered; a bound of memory."""

_LARGEST = 10**300
"""Largest charge, in units, that is turned into a float; derived: floats end at 1.8e308."""

_KAPPA = CONVERSIONS["cks"]
"""The conversion whose correction is log kappa of Theorem 1."""


@dataclass(frozen=True, slots=True)
class Mixture(Filter):
    """Theorem 1: orders lam_i and weights w_i, fixed at the start, serve every curve.

    A sum K of charges is allowed if G(K) = sup_{L > epsilon} (1 - e^{epsilon - L}) / SUM w_i e^{lam_i L - K_i} <= delta, or
    if the pure epsilons add up to epsilon at most. `delta` is what is left of the delta of the account without `slack`,
    which is the most that promises may fail with.

    >>> rule = Mixture.for_budget(Fraction(1), Fraction(1, 10**6))
    >>> len(rule.orders), sum(rule.weights) <= 1, float(rule.orders[0])
    (13, True, 20.9845)
    >>> rule.odometer(rule.zero())
    0.0
    """

    epsilon: Fraction
    delta: Fraction
    slack: Fraction
    orders: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]
    _known: _Precomputed = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", _Precomputed.of(self))

    @classmethod
    def for_budget(
        cls, epsilon: Fraction, delta: Fraction, slack: Fraction = Fraction(0), like: Curve | None = None
    ) -> Mixture:
        """Create the default mixture for a budget.

        Half of the weight is on the order at which Gaussian noise, or `like`, exhausts the budget.
        """
        if epsilon > MOST_EPSILON:
            raise InputError(f"epsilon={FLOATS.number(epsilon):g} protects nobody; give at most 1e6")
        left = delta - slack
        if left <= 0:
            return cls(epsilon, left, slack, (), ())
        first, most = _exhaustion_orders(epsilon, left, like)
        spread = [*np.geomspace(first, most, 7)[:-1], *np.geomspace(most, 8 * most, 7)[1:]]
        orders = tuple(Fraction(f"{x:.6g}") for x in (most, *spread))
        weights = ("0.5", *["0.05"] * 6, *["0.03333"] * 6)
        return cls(epsilon, left, slack, orders, tuple(Fraction(w) for w in weights))

    def zero(self) -> Amounts:
        return self._known.zero

    def price(self, step: Step) -> Price:
        curve, slack = proved_curve(step), step.curve.slack()
        if slack > self.slack:
            raise BudgetRefused(
                f"{step.source} may fail with probability {float(slack):g}, and the slack of this budget is "
                f"{float(self.slack):g}; open an account with a larger slack"
            )
        ranges = [*(_nats(curve, order) for order in self.orders), _pure(curve)]
        return Price(
            Amounts.of([*(high for _, high in ranges), round_up(slack, UNIT * FINE)]),
            Amounts.of([*(low for low, _ in ranges), slack]),
        )

    def exact_charge(self, prices: Iterable[tuple[Amounts, int]]) -> Amounts:
        fine = Filter.exact_charge(self, prices)
        *nats, slack = fine.values
        return Amounts((*(-(-int(x) // FINE) for x in nats), slack), fine.infinite)

    def certificate(self, total: Amounts) -> tuple[int, ...] | None:
        if self._meets_pure_budget(total):
            return ()
        for again in self._known.recent:  # what proved the last sum proves most of the next ones
            if self.proves(total, again):
                return again
        found = self._parts(total)
        if not found or not self.proves(total, found):
            return None
        self._known.recent[:] = [found]
        return found

    def proves(self, total: Amounts, certificate: Iterable[int]) -> bool:
        parts = tuple(certificate)
        slack = total.at(-1)
        if slack is None or slack > self.slack:
            return False
        if self._meets_pure_budget(total):
            return True
        live = [not count for count in total.infinite[: len(self.orders)]]
        whole = len(parts) == len(live) and sum(parts) == PARTS and min(parts) >= 0
        if not whole or any(part for part, alive in zip(parts, live, strict=True) if not alive):
            return False
        return bool(self._log_bound(total, parts) <= _logarithm(self.delta))

    def used(self, total: Amounts) -> float:
        """Return 1 / the largest factor by which all charges could grow."""
        if not any(total.values) and not any(total.infinite):
            return 0.0
        low, high = Fraction(0), Fraction(1)  # of the inverse
        for _ in range(12):
            middle = (low + high) / 2
            fits = self.certificate(total.scaled(1 / middle)) is not None
            low, high = (low, middle) if fits else (middle, high)
        return float(high)

    def odometer(self, total: Amounts) -> float:
        """Compute inf {e: G_e(K) <= delta}: floats find it, balls certify the returned value."""
        pure, slack = total.at(-2), Fraction(total.values[-1])
        if pure == 0:
            return 0.0
        high = math.inf if pure is None or pure > _LARGEST else float(pure / UNIT)
        for lam, log_weight, cgf in self._finite_orders(total):
            high = min(high, max(0.0, (cgf - log_weight + float(_log_kappa(lam)) - float_log(self.delta)) / lam))
        low = 0.0
        for _ in range(60) if 0 < high < math.inf else ():
            middle = (low + high) / 2
            enough = replace(self, epsilon=Fraction(middle))._log_g(total) <= float_log(self.delta)
            low, high = (low, middle) if enough else (middle, high)
        for wider in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
            found = high * (1 + wider)
            if found < math.inf and replace(self, epsilon=Fraction(found), slack=slack).certificate(total) is not None:
                return min(found, rounded_up(self.epsilon)) if self.certificate(total) is not None else found
        return math.inf

    # ---- the pure budget, and the search for a certificate in floats

    def _meets_pure_budget(self, total: Amounts) -> bool:
        pure, slack = total.at(-2), total.at(-1)
        return pure is not None and slack is not None and slack <= self.slack and pure <= self.epsilon * UNIT

    def _finite_orders(self, total: Amounts) -> list[tuple[float, float, float]]:
        """Return lam_i, log w_i and K_i in floats, where K_i is finite."""
        known = zip(self._known.lams, self._known.log_weights, total.values, total.infinite, strict=False)
        return [(lam, log_weight, float(min(x, _LARGEST) / UNIT)) for lam, log_weight, x, count in known if not count]

    def _tilt_logs(self, total: Amounts) -> tuple[float, list[float]]:
        """Return c and the logarithms of w_i e^{lam_i (epsilon + c) - K_i} over the finite orders.

        c is where 1/(e^c - 1) is the mean of the orders in these proportions, or the largest loss that pure privacy
        leaves, if that is nearer.
        """
        loss = self._known.epsilon
        terms = [(lam, log_weight + lam * loss - cgf) for lam, log_weight, cgf in self._finite_orders(total)]
        if not terms:
            return 0.0, []

        def excess(c: float) -> float:
            exponents = [a + lam * c for lam, a in terms]
            top = max(exponents)
            whole = mean = 0.0
            for (lam, _), exponent in zip(terms, exponents, strict=True):
                size = math.exp(exponent - top)
                whole += size
                mean += size * lam
            return mean / whole - 1 / math.expm1(c)

        lams = [lam for lam, _ in terms]
        c = _rising_root(excess, math.log1p(1 / max(lams)), math.log1p(1 / min(lams)))
        pure = total.at(-2)
        if pure is not None and pure <= _LARGEST:
            c = min(c, max(float(Fraction(pure) / UNIT - self.epsilon), 5e-324))
        return c, [a + lam * c for lam, a in terms]

    def _log_g(self, total: Amounts) -> float:
        """Compute log G(K) in floats."""
        pure = total.at(-2)
        if pure is not None and pure <= self.epsilon * UNIT:
            return -math.inf
        c, exponents = self._tilt_logs(total)
        if not exponents:
            return math.inf
        top = max(exponents)
        return math.log(-math.expm1(-c)) - top - math.log(sum(math.exp(x - top) for x in exponents))

    def _parts(self, total: Amounts) -> tuple[int, ...]:
        _, exponents = self._tilt_logs(total)
        if not exponents:
            return ()
        top = max(exponents)
        sizes = [math.exp(x - top) for x in exponents]
        share = PARTS / sum(sizes)
        parts = [int(size * share) for size in sizes]
        parts[sizes.index(max(sizes))] += PARTS - sum(parts)
        found = iter(parts)
        return tuple(0 if count else next(found) for count in total.infinite[: len(self.orders)])

    # ---- the certificate, one closed formula

    def _log_bound(self, total: Amounts, parts: tuple[int, ...]) -> Any:
        """Compute log of kappa(lb) e^{Kb - lb epsilon} as a ball.

        lb = SUM v_i lam_i and Kb = SUM v_i K_i + KL(v || w); with (1 - e^-c) e^{-lb c} instead of kappa where no loss
        exceeds epsilon + c and c is below the maximiser.
        """
        tilt = recall(self._known.tilts, parts, lambda: self._tilt(parts), _REMEMBERED)
        cgf = Fraction(sum(part * int(x) for part, x in zip(parts, total.values, strict=False) if part), PARTS * UNIT)
        with BALLS.at(_BITS):
            factor, pure = tilt.log_kappa, total.at(-2)
            if pure is not None:
                c = BALLS.number(Fraction(pure) / UNIT - self.epsilon)
                if c <= BALLS.log1p(1 / tilt.order):
                    factor = BALLS.log(-BALLS.expm1(-c)) - tilt.order * c
            return factor + BALLS.number(cgf) + tilt.rest

    def _tilt(self, parts: tuple[int, ...]) -> _Tilt:
        some, known = [i for i, part in enumerate(parts) if part], self._known
        order = Fraction(sum(parts[i] * known.numerators[i] for i in some), PARTS * known.denominator)
        with BALLS.at(_BITS):
            logs, distance = known.logs(self.weights), BALLS.number(0)
            for i in some:
                distance += parts[i] * (BALLS.number(parts[i]).log() - logs[i])
            distance = distance / PARTS - _logarithm(Fraction(PARTS))
            lam = BALLS.number(order)
            return _Tilt(lam, _KAPPA.correction(lam, BALLS), distance - BALLS.number(order * self.epsilon))


@dataclass(frozen=True, slots=True)
class _Tilt:
    """The part of a certificate v that needs no sums, as balls.

    These are lb, log kappa(lb) and KL(v || w) - lb epsilon.
    """

    order: Any
    log_kappa: Any
    rest: Any


@dataclass(frozen=True, slots=True)
class _Precomputed:
    """Values that every decision about a mixture needs, and the tilts of the last decisions."""

    epsilon: float
    lams: tuple[float, ...]
    log_weights: tuple[float, ...]
    numerators: tuple[int, ...]
    denominator: int
    zero: Amounts
    tilts: dict[Hashable, _Tilt] = field(default_factory=dict)
    recent: list[tuple[int, ...]] = field(default_factory=list)
    _logs: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, rule: Mixture) -> _Precomputed:
        common = math.lcm(*(lam.denominator for lam in rule.orders))
        numerators = tuple(int(lam * common) for lam in rule.orders)
        log_weights = tuple(float_log(weight) for weight in rule.weights)
        zero = Amounts.of([0] * (len(rule.orders) + 2))
        return cls(FLOATS.number(rule.epsilon), tuple(map(float, rule.orders)), log_weights, numerators, common, zero)

    def logs(self, weights: tuple[Fraction, ...]) -> list[Any]:
        """Return log w_i as balls."""
        if len(self._logs) < len(weights):
            self._logs[:] = [_logarithm(weight) for weight in weights]
        return self._logs


@lru_cache(maxsize=4096)
def _logarithm(value: Fraction) -> Any:
    with BALLS.at(_BITS):
        return BALLS.log(BALLS.number(value)) if value > 0 else BALLS.number(-math.inf)


def _log_kappa(lam: Any) -> Any:
    return _KAPPA.correction(lam, FLOATS)


def _exhaustion_orders(epsilon: Fraction, delta: Fraction, like: Curve | None) -> tuple[float, float]:
    """Return the smallest order that can be used alone, and the order that exhausts the budget.

    At the second one many rounds of `like` exhaust the budget.
    """
    log_delta, loss = float_log(delta), float(epsilon)

    def budget_left(lam: Any) -> Any:
        return log_delta + lam * loss - _log_kappa(lam)

    def rounds(lam: Any) -> Any:
        with np.errstate(all="ignore"):
            one = lam * (lam + 1) if like is None else like.cgf(lam)
            return -np.nan_to_num(budget_left(lam) / one, nan=0.0, posinf=0.0)[None, :]

    first = falling_root(lambda lam: -budget_left(lam), 0.0, 1e-12, 1e18)
    most = float(least(rounds, integral=False).where[0])
    return first, max(most, first * 1.0001)


def _rising_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the root of a rising function between two arguments that enclose it.

    The function is not positive at the first and not negative at the second.
    """
    below, above, moved = function(low), function(high), 0
    for _ in range(_STEPS):
        if high - low <= 1e-12 * high or below >= 0 or above <= 0:
            break
        middle = low + (high - low) * min(max(below / (below - above), 0.01), 0.99)
        value = function(middle)
        if value < 0:
            low, below, above = middle, value, above / 2 if moved < 0 else above
        else:
            high, above, below = middle, value, below / 2 if moved > 0 else below
        moved = -1 if value < 0 else 1  # an end that stays twice loses half of its say (Illinois)
    return low if below >= 0 else high


def _nats(curve: Curve, order: Fraction) -> tuple[int | None, int | None]:
    """Return K at an order in fine units from below and above: in balls, else in floats that carry their error."""
    ball = narrow(lambda: curve.cgf(np.array([order], dtype=object), BALLS)[0])
    if not ball.is_nan():
        return whole_range(ball, UNIT * FINE)
    try:
        # the integral of a random allocation has no balls; K grows with the order, so that the next floats bound it
        below = float(curve.cgf(np.array([rounded_down(order)]), BOUNDED).lower()[0])
        above = float(curve.cgf(np.array([rounded_up(order)]), BOUNDED).upper()[0])
    except CertificateError:
        return 0, None
    if not (math.isfinite(below) and math.isfinite(above)):
        return 0, None
    return max(math.floor(Fraction(below) * UNIT * FINE), 0), math.ceil(Fraction(above) * UNIT * FINE)


def _pure(curve: Curve) -> tuple[int | None, int | None]:
    """Return the pure epsilon in fine units from below and above; exact if it is rational."""
    try:
        value = curve.pure(RATIONALS)
        return (None, None) if value == math.inf else (math.floor(value * UNIT * FINE), math.ceil(value * UNIT * FINE))
    except CertificateError:
        return whole_range(narrow(lambda: curve.pure(BALLS)), UNIT * FINE)
