"""Filters: Theorems 1 to 3 of docs/ledger-proofs.md.

They decide which step may still run when every parameter is chosen from earlier answers.

Composing what ran so far and comparing its epsilon with a budget is not such a rule: which history is composed depends on
what was answered, and two mechanisms of this library are enough to exceed delta (docs/adaptive.md). A filter fixes
everything it needs before the first answer, adds up charges that are exact whole numbers, and says yes with a certificate
that one closed formula, evaluated in balls, confirms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cumulant.accounting.queries import Answers
from cumulant.accounting.run import Component
from cumulant.curves.cache import recall
from cumulant.curves.curve import Curve, narrow
from cumulant.errors import BudgetRefused, CertificateError, HypothesisError
from cumulant.filters.amounts import Amounts, round_up
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.rationals import float_log
from cumulant.numerics.rounding import rounded_up
from cumulant.numerics.search import largest_integer
from cumulant.pairs.pair import Pair

UNIT = 10**18
"""Units of a charge per nat: charges are whole numbers of 1e-18 nat; convention."""

FINE = 10**12
"""Parts of a unit: prices of one step are whole numbers of 1e-30 nat, so that rounding a million of them costs one unit."""

MOST_EPSILON = 10**6
"""Largest epsilon of a budget; convention: a larger one protects nobody."""

_BITS = 128
"""Bits of the balls; convention: 75 more than a float has."""

_LARGEST_EXPONENT = 4096
"""Bits of a charge in units beyond which it counts as infinite; convention: far above every budget."""

_REMEMBERED = 4096
"""Prices of mechanisms that a filter remembers; a bound of memory."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step as a filter sees it: its key, its curve, its dominating pair if it is known.

    `source` is the mechanism, whose text an error shows.
    """

    key: Hashable
    source: object
    curve: Curve
    pair: Pair | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one step: `upper` is charged; a charge below `lower` is provably too small."""

    upper: Amounts
    lower: Amounts


class Tariff:
    """A filter and the prices it has computed; each pure-data step is priced once."""

    def __init__(self, rule: Filter) -> None:
        self.rule = rule
        self._prices: dict[Hashable, Price] = {}

    def prices(self, run: Answers) -> list[tuple[Price, int]]:
        """Return the price of each mechanism of a run and its count, in the order of the run."""
        return [(self._price(part), part.times) for part in run.record().parts]

    def charge(self, run: Answers) -> Amounts:
        """Return the charge of the run."""
        return self.rule.charge((price.upper, times) for price, times in self.prices(run))

    def _price(self, part: Component) -> Price:
        def price() -> Price:
            # on a sample the pair is that of what runs there, and not of the step
            return self.rule.price(Step(part.key, part.source, part.curve("best"), None if part.scheme else part.pair))

        return recall(self._prices, part.key, price, _REMEMBERED) if part.written else price()


class Filter(ABC):
    """A rule that stays valid whatever the analyst does.

    It prices a step and decides whether a sum of charges is allowed.
    """

    __slots__ = ()

    @abstractmethod
    def zero(self) -> Amounts:
        """Return the charge of an empty run."""

    @abstractmethod
    def price(self, step: Step) -> Price:
        """Price one step; BudgetRefused if the theorem does not cover it."""

    @abstractmethod
    def certificate(self, total: Amounts) -> tuple[int, ...] | None:
        """Return a proof that this sum of charges is allowed.

        Returns None if that was not proved; then nothing may run.
        """

    @abstractmethod
    def proves(self, total: Amounts, certificate: Iterable[int]) -> bool:
        """Check that the certificate proves this sum."""

    @abstractmethod
    def used(self, total: Amounts) -> float:
        """Return the used part of the budget, in [0, 1], as its rule counts it.

        It is for a bar, not for a decision.
        """

    @abstractmethod
    def odometer(self, total: Amounts) -> float:
        """Return an epsilon that holds for the transcript so far, rounded up.

        It is never more than the one that was fixed.
        """

    def charge(self, prices: Iterable[tuple[Amounts, int]]) -> Amounts:
        """Return the charge of steps at these prices and counts, rounded up to the unit.

        Without rounding the sums of an account would have more digits with every charge.
        """
        return self.exact_charge(prices).rounded_up(UNIT)

    def exact_charge(self, prices: Iterable[tuple[Amounts, int]]) -> Amounts:
        """Return the charge with squares and slack not rounded.

        No charge may be below that of the lower prices.
        """
        return sum((price * times for price, times in prices), start=self.zero())

    def cheaper(self, old: Amounts, new: Amounts) -> Amounts:
        """Return a charge that may replace the old one.

        It is the smaller one place by place, except for slack, the last place.

        With any valid prices the rule is valid, and it allows more the less was charged.
        """
        lower = old.minimum(new)
        return Amounts((*lower.values[:-1], old.values[-1]), (*lower.infinite[:-1], old.infinite[-1]))

    def would_fit(self, spent: Amounts, prices: Iterable[tuple[Amounts, int]], most: int) -> int:
        """Return the largest number of repetitions, up to `most`, that is still allowed."""
        prices = [(price, times) for price, times in prices]

        def fits(count: int) -> bool:
            return self.certificate(spent + self.charge((price, times * count) for price, times in prices)) is not None

        return largest_integer(fits, most)


def proved_curve(step: Step) -> Curve:
    """Return the curve of a step; HypothesisError if it is an estimate."""
    if step.curve.estimated:
        raise HypothesisError(
            f"{step.source} rests on a Python function that can only be evaluated in floats, so its charge would be an "
            "estimate; a budget takes proved charges only"
        )
    return step.curve


# ---- Theorem 2


@dataclass(frozen=True, slots=True)
class GaussianSum(Filter):
    """Theorem 2: adaptively chosen mu_t-GDP steps with SUM mu_t^2 <= mu^2 are mu-GDP together.

    `mu` is a decimal at which Gaussian noise has at most this delta at epsilon, proved in balls. Gaussian steps are charged
    their square, pure ones that of the Gaussian of the same largest advantage; both are rounded up to 1e-18.

    >>> rule = GaussianSum.for_budget(Fraction(1), Fraction(1, 10**6))
    >>> float(rule.mu)
    0.236704...
    """

    epsilon: Fraction
    delta: Fraction
    slack: Fraction
    mu: Fraction

    @classmethod
    def for_budget(cls, epsilon: Fraction, delta: Fraction, slack: Fraction = Fraction(0)) -> GaussianSum:
        """Choose the largest mu of twelve digits."""
        from cumulant.pairs.gaussian import GaussianPair  # its integrals are not needed by who has no such account

        left = delta - slack
        if epsilon > MOST_EPSILON:
            raise HypothesisError(f"epsilon={FLOATS.number(epsilon):g} protects nobody; give at most 1e6")
        if left <= 0:
            raise HypothesisError("a Gaussian account needs a delta above 0; Gaussian noise is never pure")
        low, high = 1e-9, 1e4
        for _ in range(80):
            middle = math.sqrt(low * high)
            exceeds = GaussianPair(Fraction(middle)).log_profile([float(epsilon)])[0] > float_log(left)
            low, high = (low, middle) if exceeds else (middle, high)
        for shorter in (1e-12, 1e-9, 1e-6, 1e-3):
            found = cls(epsilon, left, slack, Fraction(f"{low * (1 - shorter):.12g}"))
            if found.holds():
                return found
        raise CertificateError(f"no mu was proved to have delta <= {float(left):g} at epsilon = {float(epsilon):g}")

    def holds(self) -> bool:
        """Prove in balls that Gaussian noise with this mu has at most this delta at epsilon."""
        from cumulant.pairs.gaussian import GaussianPair

        if self.delta <= 0 or self.epsilon > MOST_EPSILON:
            return False
        with BALLS.at(_BITS):
            return bool(GaussianPair(self.mu).profile([self.epsilon], BALLS)[0] <= BALLS.number(self.delta))

    def zero(self) -> Amounts:
        return Amounts.of([0, 0])

    def price(self, step: Step) -> Price:
        curve, slack = proved_curve(step), step.curve.slack()
        shift = None if step.pair is None else step.pair.gaussian_shift()
        if shift is not None:
            square_up, slack_up = (round_up(x, UNIT * FINE) for x in (shift**2, slack))
            return Price(Amounts.of([square_up, slack_up]), Amounts.of([shift**2, slack]))

        def square() -> Any:
            # mu = 2 Phi^-1(e^e / (1 + e^e)): the chord of a convex trade-off curve lies above it
            return 8 * BALLS.tanh(curve.pure(BALLS) / 2).erfinv() ** 2

        low, high = whole_range(narrow(square), UNIT)
        if high is None:
            raise BudgetRefused(
                f"{step.source} is neither Gaussian noise nor purely private, so a Gaussian account cannot charge it; "
                "open an adaptive account"
            )
        return Price(
            Amounts.of([Fraction(high, UNIT), round_up(slack, UNIT * FINE)]),
            Amounts.of([Fraction(low or 0, UNIT), slack]),
        )

    def certificate(self, total: Amounts) -> tuple[int, ...] | None:
        return () if self.proves(total, ()) else None

    def proves(self, total: Amounts, certificate: Iterable[int]) -> bool:
        square, slack = total.at(0), total.at(1)
        return square is not None and slack is not None and square <= self.mu**2 and slack <= self.slack

    def used(self, total: Amounts) -> float:
        return min(float(total.values[0] / self.mu**2), 1.0)

    def odometer(self, total: Amounts) -> float:
        """Return the epsilon that was fixed.

        No smaller one is proved for a sum that itself depends on the answers.
        """
        return rounded_up(self.epsilon) if any(total.values) else 0.0


# ---- Theorem 3


@dataclass(frozen=True, slots=True)
class Plan(Filter):
    """Theorem 3: members of a fixed multiset of steps, in any order, with any stopping.

    The multiset was fixed before the first answer.

    That the whole multiset is (epsilon, delta)-DP is proved when it is opened, by any layer.

    >>> rule = Plan(Fraction(1), (("a", 2), ("b", 1)))
    >>> rule.certificate(Amounts.of([2, 1])), rule.certificate(Amounts.of([3, 0]))
    ((), None)
    """

    epsilon: Fraction
    members: tuple[tuple[Hashable, int], ...]

    def zero(self) -> Amounts:
        return Amounts.of([0] * len(self.members))

    def price(self, step: Step) -> Price:
        one = Amounts.of([int(key == step.key) for key, _ in self.members])
        if not any(one.values):
            raise BudgetRefused(
                f"{step.source} is not in the plan, which cannot be amended after an answer; "
                "open an adaptive account for the rest, whose guarantee is added to this one"
            )
        return Price(one, one)

    def certificate(self, total: Amounts) -> tuple[int, ...] | None:
        return () if self.proves(total, ()) else None

    def proves(self, total: Amounts, certificate: Iterable[int]) -> bool:
        return Amounts.of(times for _, times in self.members).covers(total)

    def used(self, total: Amounts) -> float:
        return max((float(x / times) for x, (_, times) in zip(total.values, self.members, strict=True)), default=0.0)

    def cheaper(self, old: Amounts, new: Amounts) -> Amounts:
        return old

    def odometer(self, total: Amounts) -> float:
        """Return the epsilon of the whole plan, which is proved whenever it stops."""
        return rounded_up(self.epsilon) if any(total.values) else 0.0


# ---- balls to whole numbers


def whole_range(ball: Any, unit: int) -> tuple[int | None, int | None]:
    """Return the whole numbers of units below and above a non-negative ball.

    None stands for infinity or unknown.
    """
    with BALLS.at(4 * _BITS):
        scaled = ball * unit
        if not scaled.is_finite():
            return (None, None) if scaled.is_exact() and not scaled.is_nan() else (0, None)
        if scaled > 2**_LARGEST_EXPONENT:
            return None, None
        return max(-_ceiling(-scaled.lower()), 0), _ceiling(scaled.upper())


def _ceiling(end: Any) -> int:
    mantissa, exponent = (int(part) for part in end.man_exp())
    return mantissa << exponent if exponent >= 0 else -((-mantissa) >> -exponent)
