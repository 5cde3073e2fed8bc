"""A filter for every record (Theorem 4a of docs/individual-filters.md): the rule of `Mixture`, in integers, for a million
records.

A record may move a step by one of a few levels. Prices of levels are whole units, certificates are whole parts, and a
record may take part if for one certificate SUM_j v_j (K_j + k_j) is at most a threshold that balls have proved once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.conversion.conversions import CONVERSIONS
from cumulant.curves.curve import Curve
from cumulant.errors import BudgetRefused
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import FINE, Step
from cumulant.filters.filter import UNIT as NAT
from cumulant.filters.mixture import PARTS, Mixture
from cumulant.numerics.arithmetic import BALLS

UNIT = 2**28
"""Charges are whole numbers of 2^-28 nat (derived: a thousand steps lose 4e-6 nat by rounding up)."""

WHOLE = 2**20
"""A certificate is a distribution over the orders in parts of 2^-20 (derived: products of both fit into 63 bits)."""

MOST = 2**41
"""Charges stop here, 2^13 nat (derived: two such sums times WHOLE are below 2^63)."""

CERTIFICATES = 24
"""Certificates that are tried (measured: one for all records at the largest level is enough, the others serve mixed levels)."""

_BITS = 128
"""Bits of the balls; convention: 75 more than a float has."""

_KAPPA = CONVERSIONS["cks"]
"""The conversion whose correction is log kappa of the theorem."""

Integers = np.ndarray[Any, np.dtype[np.int64]]
Levels = np.ndarray[Any, np.dtype[np.int64]]
Truths = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class IndividualMixture:
    """Prices of the levels at every order, certificates and their thresholds: all fixed before the first output.

    `prices[level]` is what a step costs a record that may move it by that level; level 0 costs nothing. A sum that
    reaches `MOST` stays there, and no certificate with a part at that order accepts it.
    """

    prices: Integers
    certificates: Integers
    thresholds: Integers

    @classmethod
    def opened(
        cls, epsilon: Fraction, delta: Fraction, curves: Sequence[Curve], *, one_order: bool
    ) -> IndividualMixture:
        """Fix the rule for steps with these curves, one for each level from 1 on.

        `one_order` keeps one order alone: Theorem 4c, for bounds that depend on a record's own draws.
        """
        rule = Mixture.for_budget(epsilon, delta, like=curves[-1])
        if one_order:
            rule = Mixture(rule.epsilon, rule.delta, rule.slack, rule.orders[:1], (Fraction(1),))
        priced = [rule.price(Step(level, f"level {level}", curve)).upper for level, curve in enumerate(curves, start=1)]
        prices = np.zeros((len(priced) + 1, len(rule.orders)), dtype=np.int64)
        for level, price in enumerate(priced, start=1):
            prices[level] = [_units(price, place) for place in range(len(rule.orders))]
        found = _certificates(rule, priced)
        if not found:
            raise BudgetRefused(
                "not one step fits into this budget, even for a record that hardly moves it; add noise, or raise epsilon"
            )
        parts, thresholds = zip(*found, strict=True)
        return cls(prices, np.array(parts, dtype=np.int64), np.array(thresholds, dtype=np.int64))

    @property
    def width(self) -> int:
        """The number of orders, so of integers for each record."""
        return int(self.prices.shape[1])

    def fits(self, totals: Integers, levels: Levels, last: Integers) -> Truths:
        """Return for every record whether a step at this level may run; `last` is the certificate that is tried first.

        `last` is changed in place to the certificate that accepts.
        """
        after = np.minimum(totals + self.prices[levels], MOST)
        accepted = np.einsum("ij,ij->i", after, self.certificates[last]) <= self.thresholds[last]
        rest = np.flatnonzero(~accepted)
        if rest.size and len(self.thresholds) > 1:
            fits = after[rest] @ self.certificates.T <= self.thresholds
            found = fits.any(axis=1)
            accepted[rest[found]] = True
            last[rest[found]] = np.argmax(fits[found], axis=1)
        return np.asarray(accepted)

    def add(self, totals: Integers, levels: Levels) -> None:
        """Charge every record for the level that it may move the step by, in place."""
        np.minimum(totals + self.prices[levels], MOST, out=totals)


def _units(price: Amounts, place: int) -> int:
    """Return a price in whole units, rounded up; an infinite one is the most."""
    if price.infinite[place]:
        return MOST
    return min(-(-int(price.values[place]) * UNIT // (NAT * FINE)), MOST)


def _certificates(rule: Mixture, priced: Sequence[Amounts]) -> list[tuple[list[int], int]]:
    """Return certificates and thresholds: for each of some levels the best one where a record at that level is exhausted."""
    found: dict[tuple[int, ...], int] = {}
    for index in dict.fromkeys(np.linspace(len(priced), 1, CERTIFICATES).round().astype(int).tolist()):
        parts = _best_parts(rule, priced[index - 1])
        kept = _kept(rule, parts)
        if kept is not None and kept[1] > 0:
            found.setdefault(tuple(kept[0]), kept[1])
    return [(list(parts), threshold) for parts, threshold in found.items()]


def _best_parts(rule: Mixture, price: Amounts) -> tuple[int, ...]:
    """Return the certificate, in parts of 1e-9, that accepts the most steps of this price."""
    low, high = 0, 1

    def total(steps: int) -> Amounts:
        # prices are in fine units, totals are not
        whole = price * steps
        return Amounts(tuple(-(-int(x) // FINE) for x in whole.values), whole.infinite)

    while high < 2**40 and rule.certificate(total(high)) is not None:
        low, high = high, 2 * high
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if rule.certificate(total(middle)) is not None else (low, middle)
    return rule.certificate(total(max(low, 1))) or tuple(PARTS if i == 0 else 0 for i in range(len(rule.orders)))


def _kept(rule: Mixture, parts: Sequence[int]) -> tuple[list[int], int] | None:
    """Return the certificate in parts of 2^-20 and its threshold in units; None if nothing is left of it.

    A part v_j is left out where v_j MOST is within the threshold: a sum that stopped at MOST would look affordable.
    """
    whole = [part * WHOLE // PARTS for part in parts]
    while any(whole):
        whole[whole.index(max(whole))] += WHOLE - sum(whole)
        threshold = _threshold(rule, whole)
        weak = [i for i, part in enumerate(whole) if part and part * MOST <= threshold]
        if not weak:
            return whole, threshold
        whole[min(weak, key=lambda i: whole[i])] = 0
    return None


def _threshold(rule: Mixture, whole: Sequence[int]) -> int:
    """Return floor of (log delta - log kappa(lb) + lb epsilon - KL(v || w)) in units of WHOLE UNIT, proved in balls.

    With v = whole / WHOLE and lb = SUM v_j lam_j this is the most that SUM v_j K_j may be.
    """
    order = sum((Fraction(part, WHOLE) * lam for part, lam in zip(whole, rule.orders, strict=True)), start=Fraction(0))
    with BALLS.at(_BITS):
        distance = BALLS.number(0)
        for part, weight in zip(whole, rule.weights, strict=True):
            if part:
                share = Fraction(part, WHOLE)
                distance += BALLS.number(share) * (BALLS.log(BALLS.number(share)) - BALLS.log(BALLS.number(weight)))
        lam = BALLS.number(order)
        budget = (
            BALLS.log(BALLS.number(rule.delta)) - _KAPPA.correction(lam, BALLS) + BALLS.number(order * rule.epsilon)
        )
        scaled = ((budget - distance) * (WHOLE * UNIT)).lower().floor().unique_fmpz()
        return min(int(scaled), 2**62) if scaled is not None else -1
