"""Eq. (9): the sum that every amplification theorem of the paper evaluates, with its own bound of zeta(j)^j.

e^{(a-1) eps'(a)} <= 1 + sum_{j=2}^{a} C(a, j) g^j zeta(j)^j          (integer a >= 2; chords of K between, Corollary 10)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.bounds.blocks import log_block_sum
from cumulant.curves.closed import lemma3
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, U, middle
from cumulant.numerics.logspace import BINOMIAL, log_binomial_table, log_binomials

Coefficient = Callable[[Array, Arithmetic], Array]
"""j -> log of an upper bound of zeta(j)^j that is log-convex in j; +inf where it says nothing."""

TERM_BY_TERM = 2**13
"""The largest order of which every term is taken; above it the blocks of E-15 take only the terms that matter."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A coefficient made of integrals: the error of its floats was measured and not proved (docs/rounding.md)."""

    coefficient: Coefficient

    def __call__(self, j: Array, on: Arithmetic) -> Array:
        return self.coefficient(j, on)


_CHUNK = 2**20
_FARTHEST = 2**53
_SMALLEST_RATE = Fraction(1, 10**300)  # K grows with the rate, so one that is no float may be enlarged


@dataclass(frozen=True, slots=True)
class Amplified(Curve):
    """What every bound says at the two ends: E-18 at order 1, Lemma 3 at order infinity and for the slack."""

    base: Curve
    rate: Fraction

    enclosed = True

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        second = self.cgf(np.array([1], dtype=object if on.exact else float), on)[0]
        return on.minimum(on.number(self.rate) * self.base.at_one(on), second)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return lemma3(self.base.at_infinity(on), on.number(self.rate), on)

    def slack(self) -> Fraction:
        return self.rate * self.base.slack()


@dataclass(frozen=True, slots=True)
class BinomialSum(Amplified):
    """Eq. (9) with zeta(j)^j replaced, term by term, by the smallest of the given coefficients (E-9)."""

    coefficients: tuple[Coefficient, ...]
    _memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    _far: dict[int, float] = field(default_factory=dict, compare=False, repr=False)

    integral = True
    summed = True

    @property
    def enclosed(self) -> bool:  # type: ignore[override]
        return not any(isinstance(coefficient, Measured) for coefficient in self.coefficients)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            return np.array([self._chord(point, on) for point in lam], dtype=object)
        below = lam // 1
        above = below + (lam > below)
        left = self._at_integers(below, on)
        if (above == below).all():
            return left
        share, right = on.asarray(lam - below), self._at_integers(above, on)
        return np.where(lam == below, left, (1 - share) * left + share * right)

    def _chord(self, lam: Fraction, on: Arithmetic) -> Scalar:
        """The same in balls, where a value is expensive."""
        below, share = int(lam // 1), lam % 1
        left = self._ball(below + 1, on)
        return left if not share else on.number(1 - share) * left + on.number(share) * self._ball(below + 2, on)

    def _at_integers(self, lam: Array, on: Arithmetic) -> Array:
        """K at integers lam >= 0, in floats or enclosures; K(0) = 0."""
        near = np.where(lam < TERM_BY_TERM, lam, 0).astype(np.int64)
        known = self._known_up_to(int(near.max(initial=0)), on)
        missing = np.unique(near[np.isnan(middle(known)[near])]) + 1
        if missing.size:
            self._table(int(missing[-1]), on)  # once, and not again for every longer chunk
        for chunk in _chunks(missing.tolist()):
            known[np.array(chunk) - 1] = on.known(self._sums(chunk, on))
        value = known[near]
        for i in np.flatnonzero(lam >= TERM_BY_TERM):
            value[i] = self._far_value(int(lam[i]) + 1, on)
        return value

    def _known_up_to(self, top: int, on: Arithmetic) -> Array:
        """The remembered K(0), K(1), … as one growing array; NaN where not yet summed."""
        name = "enclosed" if on.enclosing else "K"
        known = self._memory.get(name)
        if known is None or known.size <= top:
            known = on.asarray(np.zeros(1)) if known is None else known
            known = np.concatenate([known, on.asarray(np.full(max(2 * top, 256) - known.size, np.nan))])
            self._memory[name] = known
        return known

    def _far_value(self, order: int, on: Arithmetic) -> Any:
        if self.base.summed or order > _FARTHEST:
            return on.number(math.inf)
        if order not in self._far:
            self._far[order] = float(FLOATS.log1p_exp(log_block_sum(order, self.rate, self.coefficients)))
        return BOUNDED.measured(self._far[order]) if on.enclosing else self._far[order]

    def _sums(self, orders: tuple[int, ...], on: Arithmetic) -> Array:
        """log(1 + sum_j C(a, j) g^j c_j), all orders of a chunk at once."""
        top = orders[-1]
        weights = self._table(top, on)[0][: top - 1]
        binomials, finite = log_binomial_table(orders) if len(orders) > 1 else 2 * (log_binomials(top)[None, :],)
        plain = middle(weights)
        terms = binomials + plain
        if np.isposinf(plain).any():  # past the diagonal there is no term, whatever its coefficient
            terms = np.where(np.isneginf(binomials), -np.inf, terms)
        if not on.enclosing:
            return np.asarray(FLOATS.log1p_sum_exp(terms))
        # the radius of a term: of its binomial, of its weight, and u of both for the sum
        moved = np.where(np.isinf(plain), 0.0, weights.radius + U * np.abs(plain))
        largest = (BINOMIAL + U) * np.max(finite[-1]) + np.max(moved)
        return BOUNDED.log1p_exp(
            BOUNDED.weighted(
                terms, largest, lambda shares: (BINOMIAL + U) * np.einsum("ij,ij->i", shares, finite) + shares @ moved
            )
        )

    def _table(self, top: int, on: Arithmetic = FLOATS) -> tuple[Array, Array]:
        """log(g^j c_j) for j = 2 … top at least, and which coefficient is the smallest there; remembered."""
        name = "radii" if on.enclosing else "table"
        table = self._memory.get(name)
        if table is None or table[0].size < top - 1:
            j = np.arange(2.0, (1 << (top - 1).bit_length()) + 1)
            with np.errstate(all="ignore"):
                least, choice = on.known(self.coefficients[0](j, on)), np.zeros(j.shape, dtype=np.int64)
                for i, coefficient in enumerate(self.coefficients[1:], start=1):
                    value = on.known(coefficient(j, on))
                    lower = value < least
                    least, choice = np.where(lower, value, least), np.where(lower, i, choice)
                table = on.asarray(j) * on.log(on.number(max(self.rate, _SMALLEST_RATE))) + least, choice
            self._memory[name] = table
        return table

    def _ball(self, order: int, on: Arithmetic) -> Scalar:
        if order == 1:
            return on.number(0)
        if order > TERM_BY_TERM:
            if self.base.summed or order > _FARTHEST:
                return on.number(math.inf)
            return on.log1p_exp(log_block_sum(order, self.rate, self.coefficients, on))
        # every coefficient is valid, so the one that is smallest in floats may be taken at each j
        j, choice = np.arange(2, order + 1).astype(object), self._table(order)[1][: order - 1]
        log_c = np.empty(j.shape, dtype=object)
        for i in set(choice.tolist()):
            log_c[choice == i] = self.coefficients[i](j[choice == i], on)
        return on.log1p_sum_exp(log_binomials(order, on) + on.asarray(j) * on.log(on.number(self.rate)) + log_c)


class PaperMaximum(BinomialSum):
    """The paper's estimate for large orders, log(1 + sum) <= max + log(a) over its a items: valid, and loose (E-15)."""

    __slots__ = ()

    enclosed = False

    def _sums(self, orders: tuple[int, ...], on: Arithmetic) -> Array:
        weights, _ = self._table(orders[-1])
        tops = [np.max(log_binomials(order) + weights[: order - 1]) for order in orders]
        return np.maximum(tops, 0.0) + np.log(orders)

    def _ball(self, order: int, on: Arithmetic) -> Scalar:
        raise CertificateError("theorem9-max is for comparison only and is not evaluated in ball arithmetic")

    def _far_value(self, order: int, on: Arithmetic) -> float:
        return math.inf


def _chunks(orders: list[int]) -> list[tuple[int, ...]]:
    """Consecutive orders whose padded table stays small and at least half full."""
    chunks: list[tuple[int, ...]] = []
    start = 0
    for end in range(1, len(orders) + 1):
        if end == len(orders) or orders[end] > 2 * orders[start] + 32 or (end - start + 1) * orders[end] > _CHUNK:
            chunks.append(tuple(orders[start:end]))
            start = end
    return chunks
