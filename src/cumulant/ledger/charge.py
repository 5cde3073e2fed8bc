"""The cost of a run to an account.

It is computed before any lock is taken, and kept as it was written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cumulant.errors import BudgetRefused, InputError, LedgerBroken, shown
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import Filter, Tariff
from cumulant.ledger.entry import FORMAT
from cumulant.ledger.policy import Policy
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.notation import parse
from cumulant.relation import Relation


@dataclass(frozen=True, slots=True)
class Quote:
    """A run in the notation, the price of each of its mechanisms and the charge of all."""

    run: str
    terms: tuple[tuple[str, int, Amounts], ...]
    charge: Amounts

    def prices(self) -> list[list[Any]]:
        """Return, as JSON, the prices at which the hold will be settled."""
        return [[text, str(times), price.texts()] for text, times, price in self.terms]


def expression(run: Expression | str) -> Expression:
    """Return a run that is given as an expression or as text."""
    found = parse(run) if isinstance(run, str) else run
    if not isinstance(found, Expression):
        raise InputError(f"{shown(run)} is not a mechanism, a run or a text that describes one")
    return found


def quote(policy: Policy, tariff: Tariff, run: Expression) -> Quote:
    """Price a run under this policy; BudgetRefused if its theorem does not cover the run."""
    policy.accepts(run)
    text = run.notation()  # what has no text cannot be written down, hence not be checked
    try:
        prices = tariff.prices(run)
    except BudgetRefused as refusal:
        if hint := _histogram_hint(policy, run):
            raise BudgetRefused(f"{refusal}. {hint}") from None
        raise
    terms = tuple(
        (mechanism.notation(), times, price.upper) for mechanism, (price, times) in zip(run.terms, prices, strict=True)
    )
    return Quote(text, terms, tariff.rule.charge((price, times) for _, times, price in terms))


def _histogram_hint(policy: Policy, run: Expression) -> str:
    """Return how a histogram is written, if a Gaussian account refuses parallel runs; else nothing.

    A record that is replaced leaves one cell and enters another: the squared sensitivity is 2.
    """
    if policy.mode != "gaussian" or not any(mechanism.partitioned for mechanism in run.terms):
        return ""
    moved = ", squared_sensitivity=2" if policy.relation is Relation.REPLACE_ONE else ""
    return f"A histogram with the same Gaussian noise in every cell is one release: Gaussian(sigma=…{moved})"


def settle_hold(
    rule: Filter, held: Mapping[str, Any], run: Expression | None, format: int = FORMAT
) -> tuple[str, Amounts]:
    """Return the settled part of a hold and its charge at the recorded prices.

    None as the run stands for all of the hold.

    Terms are compared and not charges: what is smaller at every order may still be another law.
    """
    prices = held_prices(held)
    if run is None:
        return str(held["run"]), charge_in_format(rule, ((price, times) for times, price in prices.values()), format)
    for mechanism, times in run.terms.items():
        most = prices.get(mechanism, (0, rule.zero()))[0]
        if times > most:
            raise InputError(
                f"{mechanism} is to be settled {times} times and was held {most} times; settle what ran, each mechanism at "
                "most as often as it was held"
            )
    ran = ((prices[mechanism][1], times) for mechanism, times in run.terms.items())
    return run.notation(), charge_in_format(rule, ran, format)


def charge_in_format(rule: Filter, prices: Iterable[tuple[Amounts, int]], format: int) -> Amounts:
    """Return the charge at these prices as entries of a format store it.

    Entries of format 1 did not round squares and slack.
    """
    return rule.exact_charge(prices) if format == 1 else rule.charge(prices)


def held_prices(held: Mapping[str, Any]) -> dict[Mechanism, tuple[int, Amounts]]:
    """Return each mechanism of a hold with its count and its price."""
    try:
        found: dict[Mechanism, tuple[int, Amounts]] = {}
        for text, times, price in held["prices"]:
            (mechanism,) = parse(text).terms
            if not (times.isascii() and times.isdigit()) or mechanism in found:
                raise ValueError(f"{times} is not a number of times, or {text} has two prices")
            found[mechanism] = (int(times), Amounts.read(price))
        return found
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LedgerBroken(f"the prices of a hold cannot be read ({error}); run cumulant ledger verify") from error


def would_fit(rule: Filter, spent: Amounts, terms: tuple[tuple[str, int, Amounts], ...]) -> tuple[int, int]:
    """Divide a run into equal parts; return how many of them still fit and how many there are."""
    asked = math.gcd(*(times for _, times, _ in terms))
    return rule.would_fit(spent, [(price, times // asked) for _, times, price in terms], asked), asked
