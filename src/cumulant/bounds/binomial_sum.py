"""Eq. (9): the sum that every amplification theorem of the paper evaluates.

Each theorem has its own bound of zeta(j)^j.

e^{(a-1) eps'(a)} <= 1 + sum_{j=2}^{a} C(a, j) g^j zeta(j)^j          (integer a >= 2; chords of K between, Corollary 10)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from cumulant.bounds.large_orders import log_block_largest, log_block_maxima, log_block_sum, log_block_sums
from cumulant.curves.closed_form import lemma3
from cumulant.curves.curve import Curve, narrow
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.differences import up_to
from cumulant.numerics.enclosure import BOUNDED, UPPER, Enclosure, middle
from cumulant.numerics.logspace import BINOMIAL, choose, log_binomial_table, log_binomials
from cumulant.numerics.rounding import LONG, MEASURED, ROUGH, U, raised

Coefficient = Callable[[Array, Arithmetic], Array]
"""j -> log of an upper bound of zeta(j)^j that is log-convex in j; +inf where it says nothing. On UPPER only the upper end
is asked for, and on BALLS NaN stands for what would take too long."""

TERM_BY_TERM = 2**13
"""The largest order of which every term is taken; above it the blocks of E-15 take only the terms that matter."""

CHUNK_TERMS = 2**20
"""Terms of a table that is in memory at once (8 MB an array)."""

FARTHEST_ORDER = 2**53
"""Order up to which order - 1 is exact in floats."""

_SMALLEST_RATE = Fraction(1, 10**300)  # K grows with the rate, so one that is no float may be enlarged
_FEW = 48  # up to this order all balls cost less than finding out which of them matter
_HEAD = 16  # those up to this j are taken always
WIDE_RADIUS = 0.1
"""Radius of a log coefficient beyond which it counts as known from above only."""

_NEGLIGIBLE = 45.0  # what is below e^-45 of the largest term may be known from above only


@dataclass(frozen=True, slots=True)
class Amplified(Curve):
    """The ends that all bounds share: E-18 at order 1, Lemma 3 at order infinity and for slack."""

    base: Curve
    rate: Fraction

    enclosed = True

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return self.base.estimated

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        second = self.cgf(np.array([1], dtype=object if on.exact else float), on)[0]
        return on.minimum(on.number(self.rate) * self.base.at_one(on), second)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return lemma3(self.base.at_infinity(on), on.number(self.rate), on)

    def slack(self) -> Fraction:
        return self.rate * self.base.slack()

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return (
            self.base.concentration()
        )  # a sample tells no more than the data: cap (ii) is below the base at every order


@dataclass(frozen=True, slots=True)
class BinomialSum(Amplified):
    """Eq. (9) with zeta(j)^j replaced, term by term, by the smallest coefficient (E-9).

    Which one that is, and which terms matter, is decided in floats; every choice is valid, and what is left out is bounded.
    """

    coefficients: tuple[Coefficient, ...]
    _memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    _far_cache: dict[tuple[int, bool], Any] = field(default_factory=dict, compare=False, repr=False)

    integral = True
    summed = True

    def winner(self, order: float) -> str:
        """Return the row that proves this order; Lemma 3 answers at infinity (E-18).

        Eq. (9) is about finite orders only.
        """
        return "lemma3" if order == np.inf else ""

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            return np.array([self._chord(point, on) for point in lam], dtype=object)
        below = lam // 1
        above = below + (lam > below)
        if not on.enclosing and not self.base.summed and (above >= TERM_BY_TERM).any():
            # the blocks of all large orders are found side by side, and remembered
            large = np.unique(np.append(below, above)[np.append(below, above) < FARTHEST_ORDER]) + 1
            orders = [
                order
                for order in large[large > TERM_BY_TERM].astype(np.int64).tolist()
                if (order, False) not in self._far_cache
            ]
            self._far_cache.update(((order, False), value) for order, value in self._large_orders(orders))
        left = self._at_integers(below, on)
        if (above == below).all():
            return left
        share, right = on.asarray(lam - below), self._at_integers(above, on)
        return np.where(lam == below, left, (1 - share) * left + share * right)

    def _chord(self, lam: Fraction, on: Arithmetic) -> Scalar:
        """Return the chord of K in balls, where a value is expensive."""
        below, share = int(lam // 1), lam % 1
        left = self._ball(below + 1, on)
        return left if not share else on.number(1 - share) * left + on.number(share) * self._ball(below + 2, on)

    def _at_integers(self, lam: Array, on: Arithmetic) -> Array:
        """K at integers lam >= 0, in floats or enclosures; K(0) = 0."""
        near = np.where(lam < TERM_BY_TERM, lam, 0).astype(np.int64)
        known = self._known_up_to(int(near.max(initial=0)), on)
        missing = np.unique(near[np.isnan(middle(known)[near])]) + 1
        if missing.size:
            self._table(int(missing[-1]))  # once, and not again for every longer chunk
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
        """K by blocks in floats, or from a ball of the same blocks; remembered."""
        key = order, on.enclosing
        if self.base.summed or order > FARTHEST_ORDER:
            return on.number(math.inf)
        if key not in self._far_cache:
            if on.enclosing:
                ball = narrow(lambda: self._ball(order, BALLS))
                found = self._from_balls([ball], lambda _: [self._far_value(order, FLOATS)])
                self._far_cache[key] = BOUNDED.known(found)[0]
            else:
                self._far_cache.update(((each, False), value) for each, value in self._large_orders([order]))
        return self._far_cache[key]

    def _large_orders(self, orders: list[int]) -> list[tuple[int, float]]:
        """Return orders above TERM_BY_TERM with K in floats, from the blocks that matter."""
        sums = log_block_sums(orders, self.rate, self.coefficients)
        return [(order, float(FLOATS.log1p_exp(value))) for order, value in zip(orders, sums, strict=True)]

    def _large_order(self, order: int, on: Arithmetic) -> Scalar:
        """K at an order above TERM_BY_TERM in balls, from the blocks that matter."""
        return on.log1p_exp(log_block_sum(order, self.rate, self.coefficients, on, self.base.estimated))

    def _sums(self, orders: tuple[int, ...], on: Arithmetic) -> Array:
        """log(1 + sum_j C(a, j) g^j c_j), all orders of a chunk at once."""
        if not on.enclosing:
            return np.asarray(FLOATS.log1p_sum_exp(self._terms(orders)))
        terms, radius, loose = self._enclosed_terms(orders)
        total: Any = BOUNDED.log1p_exp(
            BOUNDED.weighted(terms, np.max(radius), lambda shares: np.einsum("ij,ij->i", shares, radius))
        )
        if not loose.any():
            return total
        # a share w of the sum may be anything from 0 to that, and log(1 + (1-w) s) >= (1-w) log(1 + s)
        parts = np.exp(terms - np.max(terms, axis=1, keepdims=True))
        share = raised(np.sum(np.where(loose, parts, 0.0), axis=1), ROUGH)
        share = np.where(share < 1, share, 1.0)
        return np.where(loose.any(axis=1), total * Enclosure(1 - share / 2, share / 2), total)

    def _terms(self, orders: tuple[int, ...]) -> Array:
        """Rows of log C(a, j) g^j c_j in floats, -inf past the diagonal."""
        weights = self._table(orders[-1])[0][: orders[-1] - 1]
        return _rows(_log_binomials(orders)[0], weights)

    def _enclosed_terms(self, orders: tuple[int, ...]) -> tuple[Array, Array, Array]:
        """Return the terms with radii, and which are loose: known from above only.

        A loose term comes with its upper end.
        """
        (binomials, finite), top = _log_binomials(orders), orders[-1]
        weights = self._weights(self._enclosed_coefficients(top)[: top - 1])
        wide = ~(weights.radius <= WIDE_RADIUS) | np.isnan(weights.mid)
        plain, radius, loose = weights.mid, weights.radius, np.zeros(binomials.shape, dtype=bool)
        if wide.any():
            upper = weights.upper()
            terms = _rows(binomials, upper)
            largest = np.max(np.where(np.isfinite(terms), terms, -np.inf), axis=1, keepdims=True)
            needed = wide & (terms > largest - _NEGLIGIBLE)
            sharp = self._weights(self._sharp(needed.any(axis=0)))
            sharpened = needed & ~np.isnan(sharp.mid + sharp.radius)
            plain = np.where(sharpened, sharp.mid, np.where(wide, upper, weights.mid))
            radius = np.where(sharpened, sharp.radius, np.where(wide, 0.0, weights.radius))
            loose = wide & ~sharpened & ~np.isneginf(binomials)
        # the radius of a term: of its binomial, of its weight, and u of both for the sum
        moved = radius + np.where(np.isinf(plain), 0.0, U * np.abs(plain))
        return _rows(binomials, plain), (BINOMIAL + U) * finite + moved, loose

    # ---- the coefficients, each table remembered and growing

    def _table(self, top: int) -> tuple[Array, Array, Array]:
        """Return log(g^j c_j) in floats for j = 2 … top at least, with the smallest coefficient.

        Returns also which coefficient that is, and its log c_j.
        """
        table = self._memory.get("table")
        if table is None or table[0].size < top - 1:
            j = np.arange(2.0, (1 << (top - 1).bit_length()) + 1)
            with np.errstate(all="ignore"):
                least, choice = FLOATS.known(self.coefficients[0](j, FLOATS)), np.zeros(j.shape, dtype=np.int64)
                for i, coefficient in enumerate(self.coefficients[1:], start=1):
                    value = FLOATS.known(coefficient(j, FLOATS))
                    lower = value < least
                    least, choice = np.where(lower, value, least), np.where(lower, i, choice)
                table = j * self._log_rate(FLOATS) + least, choice, least
            self._memory["table"] = table
        return table

    def _least_coefficients(self, j: Array, on: Arithmetic) -> Array:
        """log c_j, the coefficient that is the smallest in floats, at increasing j."""
        choice = self._table(int(j[-1]))[1][j.astype(np.int64) - 2]
        log_c = np.empty(j.shape, dtype=object) if on.exact else on.asarray(np.empty(j.shape))
        for i in set(choice.tolist()):
            log_c[choice == i] = self.coefficients[i](j[choice == i], on)
        return log_c

    def _log_rate(self, on: Arithmetic) -> Scalar:
        return on.log(on.number(self.rate if on.exact else max(self.rate, _SMALLEST_RATE)))

    def _enclosed_coefficients(self, top: int) -> Enclosure:
        """Return log c_j as enclosures for j = 2 … top at least.

        They are wide where closed forms know them from above only.
        """
        known: Any = self._memory.get("coefficients")
        if known is None or known.size < top - 1:
            j = np.arange(2 if known is None else known.size + 2, top + 1)
            with np.errstate(all="ignore"):
                if self.base.estimated and not self.base.takes_balls():
                    new = BOUNDED.measured(self._table(top)[2][j - 2]) + Enclosure(0.0, MEASURED)
                else:
                    new = self._least_coefficients(j.astype(np.float64), UPPER)
            known = self._memory["coefficients"] = new if known is None else np.concatenate([known, new])
        return known  # type: ignore[no-any-return]

    def _weights(self, log_c: Enclosure) -> Enclosure:
        """log(g^j c_j), j = 2, 3, …"""
        weights: Enclosure = self._log_rate(BOUNDED) * np.arange(2.0, log_c.size + 2) + log_c
        return weights

    def _sharp(self, needed: Array) -> Enclosure:
        """Return log c_j from balls at the j that are needed, remembered.

        It is unknown (NaN) at the others and where it would take too long.
        """
        j, known = np.flatnonzero(needed) + 2, self._memory.setdefault("sharp", {})
        new = [each for each in j.tolist() if each not in known]
        if new:
            with np.errstate(all="ignore"):
                found = self._least_coefficients(np.array(new, dtype=np.float64), BOUNDED)
            known.update(zip(new, zip(found.mid.tolist(), found.radius.tolist(), strict=True), strict=True))
        value = Enclosure(np.full(needed.shape, np.nan), np.full(needed.shape, np.nan))
        for each in j.tolist():
            value.mid[each - 2], value.radius[each - 2] = known[each]
        return value

    # ---- balls

    def _ball(self, order: int, on: Arithmetic) -> Scalar:
        if order == 1:
            return on.number(0)
        if order > TERM_BY_TERM:
            if self.base.summed or order > FARTHEST_ORDER:
                return on.number(math.inf)
            return self._large_order(order, on)
        logs, left_out, cut = self._logs(order, on, (on.precision() // 2 + 8) * math.log(2) + math.log(order))
        if not left_out:
            return on.log1p_sum_exp(logs)
        # each of those that are left out is at most e^cut
        return on.log1p(np.sum(on.exp(logs)) + up_to(on.exp(on.number(cut)) * left_out))

    def _logs(self, order: int, on: Arithmetic, drop: float) -> tuple[Array, int, float]:
        """Return log C(a, j) g^j c_j without those below e^-drop of the largest.

        Returns also how many these are, and the cut they are below.
        """
        j, left_out, cut = np.arange(2, order + 1), 0, -math.inf
        certain = on is BALLS and not self.base.estimated  # that is, there are upper bounds in floats that are proved
        if certain and order > _FEW:
            log_choose = log_binomials(order)
            terms = log_choose + self._table(order)[0][: order - 1]
            cut = float(np.max(terms, where=np.isfinite(terms), initial=-math.inf)) - drop
            small = np.flatnonzero(self._upper_terms(log_choose) < cut) + _HEAD + 1
            j, left_out = np.delete(j, small - 2), small.size
        j = j.astype(object)
        log_c = self._least_coefficients(j, on)
        costly = [i for i, each in enumerate(log_c) if each.is_nan()] if certain else []
        if costly:
            with np.errstate(all="ignore"):
                upper = self._least_coefficients(j[costly].astype(np.float64), UPPER).upper()
            log_c[costly] = [on.number(each) for each in upper.tolist()]
        log_choose = on.log(on.asarray(choose(order, j.tolist()))) if left_out else log_binomials(order, on)
        return log_choose + on.asarray(j) * self._log_rate(on) + log_c, left_out, cut

    def _upper_terms(self, log_choose: Array) -> Array:
        """Return floats above log C(a, j) g^j c_j for large j.

        They use the coefficient that is smallest at the first of these j.
        """
        j = np.arange(_HEAD + 1.0, log_choose.size + 2)
        with np.errstate(all="ignore"):
            log_c = self.coefficients[self._table(_HEAD + 1)[1][_HEAD - 1]](j, UPPER).upper()
        parts = log_choose[_HEAD - 1 :], j * self._log_rate(FLOATS), log_c
        # a part is wrong by less than LONG of its size and of j
        return sum(part + LONG * np.abs(part) for part in parts) + LONG * j


class PaperMaximum(BinomialSum):
    """The paper's estimate for large orders, log(1 + sum) <= max + log(a) over its a items.

    It is valid, and loose (E-15).
    """

    __slots__ = ()

    def _sums(self, orders: tuple[int, ...], on: Arithmetic) -> Array:
        if not on.enclosing:
            return np.maximum(np.max(self._terms(orders), axis=1), 0.0) + np.log(orders)
        terms, radius, loose = self._enclosed_terms(orders)
        found = Enclosure(terms, radius)
        low, high = np.where(loose, 0.0, found.lower()).max(axis=1), found.upper().max(axis=1)
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        middle = (low + high) / 2
        return Enclosure(middle, high - low + U * middle) + BOUNDED.log(np.array(orders, dtype=np.float64))

    def _ball(self, order: int, on: Arithmetic) -> Scalar:
        if order == 1:
            return on.number(0)
        if order > TERM_BY_TERM:
            return super()._ball(order, on)
        logs, _, cut = self._logs(order, on, drop=1.0)
        return reduce(on.maximum, logs, on.maximum(on.number(0), on.number(cut))) + on.log(on.number(order))

    def _large_orders(self, orders: list[int]) -> list[tuple[int, float]]:
        largest = log_block_maxima(orders, self.rate, self.coefficients)
        values = np.maximum(largest, 0.0) + np.log(np.array(orders, dtype=np.float64))
        return list(zip(orders, values.tolist(), strict=True))

    def _large_order(self, order: int, on: Arithmetic) -> Scalar:
        largest = log_block_largest(order, self.rate, self.coefficients, on, self.base.estimated)
        return on.maximum(largest, on.number(0)) + on.log(on.number(order))


def _log_binomials(orders: tuple[int, ...]) -> tuple[Array, Array]:
    """Rows of log C(a, j), j = 2, 3, …, past the diagonal -inf; and past it 0."""
    return log_binomial_table(orders) if len(orders) > 1 else 2 * (log_binomials(orders[0])[None, :],)


def _rows(binomials: Array, weights: Array) -> Array:
    """The sum of both; past the diagonal there is no term, whatever its coefficient."""
    terms = binomials + weights
    return np.where(np.isneginf(binomials), -np.inf, terms) if np.isposinf(weights).any() else terms


def _chunks(orders: list[int]) -> list[tuple[int, ...]]:
    """Consecutive orders whose padded table stays small and at least half full."""
    chunks: list[tuple[int, ...]] = []
    start = 0
    for end in range(1, len(orders) + 1):
        if end == len(orders) or orders[end] > 2 * orders[start] + 32 or (end - start + 1) * orders[end] > CHUNK_TERMS:
            chunks.append(tuple(orders[start:end]))
            start = end
    return chunks
