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
from cumulant.numerics.logspace import log_binomial_table, log_binomials

Coefficient = Callable[[Array, Arithmetic], Array]
"""j -> log of an upper bound of zeta(j)^j that is log-convex in j; +inf where it says nothing."""

TERM_BY_TERM = 2**13
"""The largest order of which every term is taken; above it the blocks of E-15 take only the terms that matter."""

_CHUNK = 2**20
_FARTHEST = 2**53


@dataclass(frozen=True, slots=True)
class Amplified(Curve):
    """What every bound says at the two ends: E-18 at order 1, Lemma 3 at order infinity and for the slack."""

    base: Curve
    rate: Fraction

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        second = self.cgf(np.array([1], dtype=object if on.exact else float), on)[0]
        return on.minimum(on.number(self.rate) * self.base.kl(on), second)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return lemma3(self.base.pure(on), on.number(self.rate), on)

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

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            return np.array([self._chord(point, on) for point in lam], dtype=object)
        below = lam // 1
        above = below + (lam > below)
        share = lam - below
        left, right = self._at_integers(below), self._at_integers(above)
        return np.where(lam == below, left, (1 - share) * left + share * right)

    def _chord(self, lam: Fraction, on: Arithmetic) -> Scalar:
        """The same in balls, where a value is expensive."""
        below, share = int(lam // 1), lam % 1
        left = self._ball(below + 1, on)
        return left if not share else on.number(1 - share) * left + on.number(share) * self._ball(below + 2, on)

    def _at_integers(self, lam: Array) -> Array:
        """K at integers lam >= 0 in floats; K(0) = 0."""
        value = np.empty(lam.shape)
        far = lam >= TERM_BY_TERM
        value[far] = [self._far_value(int(x) + 1) for x in lam[far]]
        near = lam[~far].astype(np.int64)
        known = self._known_up_to(int(near.max(initial=0)))
        missing = np.unique(near[np.isnan(known[near])]) + 1
        for chunk in _chunks(missing.tolist()):
            known[np.array(chunk) - 1] = self._sums(chunk)
        value[~far] = known[near]
        return value

    def _known_up_to(self, top: int) -> Array:
        """The remembered K(0), K(1), … as one growing array; NaN where not yet summed."""
        known = self._memory.get("K", np.zeros(1))
        if known.size <= top:
            known = np.append(known, np.full(max(2 * top, 256) - known.size, np.nan))
            self._memory["K"] = known
        return known

    def _far_value(self, order: int) -> float:
        if self.base.summed or order > _FARTHEST:
            return math.inf
        if order not in self._far:
            self._far[order] = float(FLOATS.log1p_exp(log_block_sum(order, self.rate, self.coefficients)))
        return self._far[order]

    def _sums(self, orders: tuple[int, ...]) -> Array:
        """log(1 + sum_j C(a, j) g^j c_j), all orders of a chunk at once."""
        top = orders[-1]
        weights, _ = self._table(top)
        binomials = log_binomial_table(orders) if len(orders) > 1 else log_binomials(top)[None, :]
        terms = binomials + weights[: top - 1]
        if np.isposinf(weights[: top - 1]).any():  # past the diagonal there is no term, whatever its coefficient
            terms = np.where(np.isneginf(binomials), -np.inf, terms)
        return np.asarray(FLOATS.log1p_sum_exp(terms))

    def _table(self, top: int) -> tuple[Array, Array]:
        """log(g^j c_j) for j = 2 … top at least, and which coefficient is the smallest there; remembered."""
        table = self._memory.get("table")
        if table is None or table[0].size < top - 1:
            j = np.arange(2.0, (1 << (top - 1).bit_length()) + 1)
            with np.errstate(all="ignore"):
                values = np.array([FLOATS.known(coefficient(j, FLOATS)) for coefficient in self.coefficients])
            table = j * math.log(self.rate) + np.min(values, axis=0), np.argmin(values, axis=0)
            self._memory["table"] = table
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

    def _sums(self, orders: tuple[int, ...]) -> Array:
        weights, _ = self._table(orders[-1])
        tops = [np.max(log_binomials(order) + weights[: order - 1]) for order in orders]
        return np.maximum(tops, 0.0) + np.log(orders)

    def _ball(self, order: int, on: Arithmetic) -> Scalar:
        raise CertificateError("theorem9-max is for comparison only and is not evaluated in ball arithmetic")

    def _far_value(self, order: int) -> float:
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
