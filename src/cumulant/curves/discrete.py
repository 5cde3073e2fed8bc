"""A pair of finite laws, given by exact masses."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.curves.pair import Pair
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.logspace import log_rational
from cumulant.numerics.quadrature import log_excess, log_sum

_BLOCK = 1 << 20

Masses = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class DiscretePair(Pair):
    """P and Q on the same finitely many points; every answer is the larger of the two directions.

    Each tuple is nonnegative and sums to exactly 1. A point that only one law can produce makes every order infinite,
    and the profile positive at every epsilon.

    >>> pair = DiscretePair((Fraction(1, 10), Fraction(9, 10)), (Fraction(1, 5), Fraction(4, 5)))
    >>> pair.curve().rdp([1, 2, np.inf])
    array([0.04440301, 0.10536052, 0.69314718])
    >>> pair.profile([0, 0.1])
    array([0.1       , 0.08948291])
    """

    p: Masses
    q: Masses

    def curve(self) -> MassCurve:
        return MassCurve(self.p, self.q)

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        return self._larger(orders, on, positive=False)

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        return self._larger(orders, on, positive=True)

    def _larger(self, orders: Array, on: Arithmetic, positive: bool) -> Array:
        directions = [_log_moments(a, b, orders, on, positive) for a, b in ((self.p, self.q), (self.q, self.p))]
        return _maximum(directions, on)

    def _log_profile(self, epsilons: Array) -> Array:
        """log delta, delta = SUM_i p_i (1 - e^{eps - y_i})_+ with y = log(p/q)."""
        values = []
        for a, b in ((self.p, self.q), (self.q, self.p)):
            log_mass, loss, alone = _float_losses(a, b)
            with np.errstate(divide="ignore"):
                gap = np.log(-np.expm1(np.minimum(epsilons[..., None] - loss, 0.0)))
                lone = np.full((*epsilons.shape, 1), np.log(FLOATS.number(alone)))
            values.append(log_sum(np.concatenate([log_mass + gap, lone], axis=-1)))
        return np.maximum(values[0], values[1])

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        """SUM_i (p_i - e^eps q_i)_+."""

        def delta(eps: Any) -> Any:
            growth, sums = on.number(eps).exp(), []
            for a, b in ((self.p, self.q), (self.q, self.p)):
                terms = ((on.number(x) - growth * on.number(y)).nonnegative_part() for x, y in zip(a, b, strict=True))
                sums.append(sum(terms, start=on.number(0)))
            return sums[0].max(sums[1])

        return np.asarray(np.frompyfunc(delta, 1, 1)(epsilons))


@dataclass(frozen=True, slots=True)
class MassCurve(Curve):
    """K = log(1 + SUM p [(e^{lambda y} - 1 - lambda y) + lambda (e^-y - 1 + y)]), y = log(p/q): no term is negative."""

    p: Masses
    q: Masses

    enclosed = True

    def _separated(self) -> bool:
        return any((x == 0) != (y == 0) for x, y in zip(self.p, self.q, strict=True))

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if self._separated():
            return on.asarray(lam) * 0 + on.number(np.inf)
        directions = ((self.p, self.q), (self.q, self.p))
        if on.exact:
            return _maximum([_exact_cgf(a, b, on.asarray(lam), on) for a, b in directions], on)
        return _maximum([_float_cgf(a, b, lam, on) for a, b in directions], on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        if self._separated():
            return on.number(np.inf)
        values: list[Any] = []
        for a, b in ((self.p, self.q), (self.q, self.p)):
            if on.exact:
                mass, loss = _exact_losses(a, b, on)
                values.append(np.array([np.sum(mass * on.excess(-loss), initial=on.number(0))], dtype=object))
            elif on.enclosing:
                log_mass, loss = _enclosed_losses(a, b)
                terms = log_mass + BOUNDED.log_excess(-loss)
                values.append(BOUNDED.exp(BOUNDED.log_sum_exp(terms[None, :]) if loss.size else np.full(1, -np.inf)))
            else:
                log_mass, loss, _ = _float_losses(a, b)
                values.append(np.exp(log_sum((log_mass + log_excess(-loss))[None, :])))
        return _maximum(values, on)[0]

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        if self._separated():
            return on.number(np.inf)
        ratios = [max(x / y, y / x) for x, y in zip(self.p, self.q, strict=True) if x]
        if on.enclosing:
            return enclosed_log(max(ratios))
        return on.log(on.number(max(ratios))) if on.exact else log_rational(max(ratios))


def _maximum(values: list[Array], on: Arithmetic) -> Array:
    if on.exact:
        return np.asarray(np.frompyfunc(lambda u, v: u.max(v), 2, 1)(values[0], values[1]))
    return on.maximum(values[0], values[1])


@lru_cache(maxsize=256)
def _float_losses(p: Masses, q: Masses) -> tuple[Array, Array, Fraction]:
    """log p and y = log(p/q) where p, q > 0 and p != q, and the mass of p where q = 0."""
    both = [(x, y) for x, y in zip(p, q, strict=True) if x and y and x != y]
    alone = sum((x for x, y in zip(p, q, strict=True) if y == 0), start=Fraction(0))
    log_mass = np.array([log_rational(x) for x, _ in both], dtype=np.float64)
    return log_mass, np.array([log_rational(x / y) for x, y in both], dtype=np.float64), alone


def enclosed_log(ratio: Fraction) -> Scalar:
    """log of an exact number > 0 as an enclosure."""
    if abs(ratio - 1) < Fraction(1, 2):
        return BOUNDED.log1p(BOUNDED.number(ratio - 1))
    return BOUNDED.log(BOUNDED.number(ratio))


@lru_cache(maxsize=256)
def _enclosed_losses(p: Masses, q: Masses) -> tuple[Scalar, Scalar]:
    """log p and y = log(p/q) where p, q > 0 and p != q."""
    both = [(x, y) for x, y in zip(p, q, strict=True) if x and y and x != y]
    log_mass, loss = [enclosed_log(x) for x, _ in both], [enclosed_log(x / y) for x, y in both]
    return BOUNDED.asarray(log_mass), BOUNDED.asarray(loss)


def _exact_losses(p: Masses, q: Masses, on: Arithmetic) -> tuple[Array, Array]:
    both = [(x, y) for x, y in zip(p, q, strict=True) if x and y and x != y]
    return on.asarray([x for x, _ in both]), on.log(on.asarray([x / y for x, y in both]))


def _float_cgf(p: Masses, q: Masses, lam: Array, on: Arithmetic) -> Array:
    log_mass, loss = _enclosed_losses(p, q) if on.enclosing else _float_losses(p, q)[:2]
    if not loss.size:
        return on.asarray(np.zeros_like(lam))
    excess: Any = BOUNDED.log_excess if on.enclosing else log_excess
    add: Any = BOUNDED.log_add_exp if on.enclosing else np.logaddexp
    straight = excess(-loss)
    rows = max(1, _BLOCK // loss.size)
    blocks = []
    for start in range(0, len(lam), rows):
        x = on.asarray(lam[start : start + rows, None])
        blocks.append(on.log1p_sum_exp(log_mass + add(excess(x * loss), on.log(x) + straight)))
    return np.concatenate(blocks) if blocks else on.asarray(np.zeros(0))


def _exact_cgf(p: Masses, q: Masses, lam: Array, on: Arithmetic) -> Array:
    mass, loss = _exact_losses(p, q, on)
    if not len(loss):
        return lam * 0
    straight = np.sum(mass * on.excess(-loss))
    return np.asarray(on.log1p(np.sum(mass * on.excess(lam[..., None] * loss), axis=-1) + lam * straight))


def _log_moments(p: Masses, q: Masses, orders: Array, on: Arithmetic, positive: bool) -> Array:
    """log SUM q |p/q - 1|^l, over p > q only or over all; where q = 0 < p the first moment gains p, others are +inf."""
    alone = sum((x for x, y in zip(p, q, strict=True) if y == 0), start=Fraction(0))
    terms = [(y, abs(x / y - 1)) for x, y in zip(p, q, strict=True) if y and x != y and (x > y or not positive)]
    if on.exact:
        mass, gap = on.asarray([y for y, _ in terms]), on.asarray([g for _, g in terms])

        def moment(order: int) -> Any:
            if alone and order > 1:
                return on.number(np.inf)
            total = sum((m * g ** int(order) for m, g in zip(mass, gap, strict=True)), start=on.number(alone))
            return total.log() if alone or terms else on.number(-np.inf)

        return np.asarray(np.frompyfunc(moment, 1, 1)(orders))
    log: Any = enclosed_log if on.enclosing else log_rational
    add: Any = BOUNDED.log_add_exp if on.enclosing else np.logaddexp
    log_mass, log_gap = on.asarray([log(y) for y, _ in terms]), on.asarray([log(g) for _, g in terms])
    exponents = log_mass + on.asarray(orders[..., None].astype(np.float64)) * log_gap
    value = on.log_sum_exp(exponents) if terms else on.asarray(np.full(orders.shape, -np.inf))
    return np.where(orders > 1, on.number(np.inf), add(value, log(alone))) if alone else value
