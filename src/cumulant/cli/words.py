"""Answers in words: the number, the relation, what ran, what proves it, what is assumed."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Iterator

from cumulant.accounting import attack
from cumulant.accounting import statement as words
from cumulant.accounting.guarantee import Guarantee, rounded_down, rounded_up
from cumulant.bounds.table import BOUNDS
from cumulant.domains import Exact
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.relation import Relation

WIDEST_LINE = 110
ONE_PERCENT = Exact("0.01")


def epsilon(run: Expression, found: Guarantee, asked: Exact) -> str:
    """The answer of `cumulant epsilon`."""
    if math.isinf(found.epsilon):
        return _wrapped(f"epsilon = inf at delta = {asked}: {_no_epsilon(run, asked)}.", words.what_ran(run))
    headline = f"epsilon = {rounded_up(found.epsilon)} (rounded up) at delta = {asked}"
    if asked >= 1:
        return _wrapped(f"{headline}: a delta of 1 holds for everything and protects nobody.", words.what_ran(run))
    return _wrapped(
        f"{headline}, {words.relation(run)}.", _interval(found), *_meaning(run, found), *_support(run, found)
    )


def delta(run: Expression, found: Guarantee, asked: Exact) -> str:
    """The answer of `cumulant delta`."""
    headline = f"delta = {rounded_up(found.delta)} (rounded up) at epsilon = {asked}"
    if found.delta >= 1:
        return _wrapped(
            f"{headline}: this library proves no delta below 1; ask at a larger epsilon.", words.what_ran(run)
        )
    return _wrapped(f"{headline}, {words.relation(run)}.", _interval(found), *_support(run, found))


def explanation(found: Guarantee) -> str:
    """The answer with `--explain`."""
    return _wrapped(*found.explain().splitlines())


def divergence(run: Expression, bound: str) -> str:
    """What stands below the table of `cumulant rdp`."""
    if bound == "all":
        by = "A dash: the bound does not apply. Lines with <= are upper bounds, rounded up; with >= lower bounds, rounded down."
    else:
        cited = dict.fromkeys(_citation(mechanism, bound) for mechanism in run.terms if mechanism.amplified)
        by = f"The bound on samples is {' and '.join(cited)}." if cited else ""
    rounded = "" if bound == "all" else "; rounded up" if BOUNDS[bound].upper else "; a lower bound, rounded down"
    return _wrapped(f"Renyi divergence, {words.relation(run)}{rounded}.", words.what_ran(run), by, words.assumed(run))


def _wrapped(*sentences: str) -> str:
    width = min(shutil.get_terminal_size().columns, WIDEST_LINE)
    return "\n".join(
        textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)
        for sentence in sentences
        if sentence
    )


def _support(run: Expression, found: Guarantee) -> Iterator[str]:
    yield words.what_ran(run)
    yield _proof(run, found)
    yield f"{found.note[:1].upper()}{found.note[1:]}." if found.note else ""
    if found.rigour == "estimated":
        yield "Estimated, not proved: the run contains a Python function that can only be sampled."
    yield words.assumed(run)


def _interval(found: Guarantee) -> str:
    """What is known from below."""
    by_delta = found.asked == "delta"
    name, low, high = ("epsilon", found.lower, found.epsilon) if by_delta else ("delta", found.lower_delta, found.delta)
    if low is None:
        return ""
    return f"The true {name} lies in [{rounded_down(low)}, {rounded_up(high)}]: no smaller claim holds for {found.witness}."


# ---- what it means


def _meaning(run: Expression, found: Guarantee) -> Iterator[str]:
    """What the best attack can reach, in two sentences."""
    caught, advantage = attack.in_brief(run, ONE_PERCENT, found.method, found.epsilon, found.delta)
    yield (
        f"An attacker who accepts 1 % false alarms finds at most {_percent(caught)} of the members; "
        f"blind guessing finds 1 %."
    )
    used = "one record or another in its place" if run.relation == Relation.REPLACE_ONE else "one record"
    yield (
        f"Whether {used} was in the data is guessed right at most {_percent((1 + advantage) / 2)} of the time "
        f"(advantage {_percent(advantage)}); a coin is right 50 %."
    )


def _percent(share: float) -> str:
    """A share rounded up to three digits."""
    return f"{rounded_up(min(math.nextafter(100 * share, math.inf) if share else 0.0, 100.0), 3)} %"


# ---- what proves it


def _proof(run: Expression, found: Guarantee) -> str:
    if found.conversion in words.WAYS:
        return f"Proved by {words.WAYS[found.conversion]}."
    sampled = words.is_sampled(run)
    if found.order is None:
        return f"Proved by {words.unconverted(found.conversion)}."
    if math.isinf(found.order):
        amplified = ", with Lemma 3 of the paper for the samples" if sampled else ""
        return f"Proved by pure differential privacy (order infinity), which adds up{amplified}."
    amplified = f"{_theorems(run, found)}; " if sampled else "the Renyi divergences of the mechanisms, which add up; "
    return f"Proved by {amplified}converted at {_order(found.order)} by {words.conversion(found)}."


def _order(order: float) -> str:
    return "an order just above 1" if f"{order:g}" == "1" else f"order {order:g}"


def _theorems(run: Expression, found: Guarantee) -> str:
    """The rows of the table that reach the bound at the order of the answer."""
    parts = list(zip(run.terms, found.terms, strict=True))[: words.MOST_TERMS]
    return " and ".join(dict.fromkeys(_citation(mechanism, term.bound) for mechanism, term in parts if term.bound))


def _citation(mechanism: Mechanism, bound: str) -> str:
    row = words.row(mechanism, bound)
    return row.statement if bound == "best" else row.citation


def _no_epsilon(run: Expression, delta: Exact) -> str:
    slack = float(run.curve().slack())
    if 0 < float(delta) <= slack:  # equal where floats cannot tell, or where the rest is not pure
        return (
            f"no finite epsilon can be proved: the promises in the run may already fail with probability "
            f"{rounded_up(slack)}, which leaves nothing of delta"
        )
    if delta == 0:
        return (
            "no finite epsilon can be proved: delta = 0 asks for pure differential privacy, which not every mechanism "
            "in the run has; ask at a delta > 0"
        )
    return "no finite epsilon can be proved: the bound is infinite at every order"
