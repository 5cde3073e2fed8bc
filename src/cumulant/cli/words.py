"""Answers in words: the number, the relation, what ran, what proves it, what is assumed."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Iterator

from cumulant.bounds.table import BOUNDS
from cumulant.conversion.formulas import CONVERSIONS
from cumulant.domains import Exact
from cumulant.guarantee import Guarantee, rounded_up
from cumulant.mechanisms.base import Expression, Mechanism
from cumulant.mechanisms.relation import Relation
from cumulant.mechanisms.sampling import Sampled

_COMPOSITIONS = {
    "naive": "they add up",
    "strong": "Kairouz, Oh, Viswanath 2015, the simplified form, with the best delta per round",
    "optimal": "Kairouz, Oh, Viswanath 2015, exact, with the best delta per round",
}
MOST_TERMS = 8
LONGEST_NAME = 200
WIDEST_LINE = 110


def epsilon(run: Expression, found: Guarantee, asked: Exact) -> str:
    """The answer of `cumulant epsilon`."""
    if math.isinf(found.epsilon):
        return _wrapped(f"epsilon = inf at delta = {asked}: {_no_epsilon(run, asked)}.", _what_ran(run))
    headline = f"epsilon = {rounded_up(found.epsilon)} (rounded up) at delta = {asked}"
    if asked >= 1:
        return _wrapped(f"{headline}: a delta of 1 or more holds for everything and protects nobody.", _what_ran(run))
    return _wrapped(f"{headline}, {_relation(run)}.", *_support(run, found))


def delta(run: Expression, found: Guarantee, asked: Exact) -> str:
    """The answer of `cumulant delta`."""
    headline = f"delta = {rounded_up(found.delta)} (rounded up) at epsilon = {asked}"
    if found.delta >= 1:
        return _wrapped(f"{headline}: this library proves no delta below 1; ask at a larger epsilon.", _what_ran(run))
    return _wrapped(f"{headline}, {_relation(run)}.", *_support(run, found))


def divergence(run: Expression, bound: str) -> str:
    """What stands below the table of `cumulant rdp`."""
    if bound == "all":
        by = "A dash: the bound does not apply. Rounded up; the last line is a lower bound, rounded down."
    else:
        by = f"The bound on samples is {_citation(bound)}." if _is_sampled(run) else ""
    rounded = "" if bound == "all" else "; rounded up" if BOUNDS[bound].upper else "; a lower bound, rounded down"
    return _wrapped(f"Renyi divergence, {_relation(run)}{rounded}.", _what_ran(run), by, _assumed(run))


def _wrapped(*sentences: str) -> str:
    width = min(shutil.get_terminal_size().columns, WIDEST_LINE)
    return "\n".join(
        textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)
        for sentence in sentences
        if sentence
    )


def _support(run: Expression, found: Guarantee) -> Iterator[str]:
    yield _what_ran(run)
    yield _proof(run, found)
    if found.rigour == "estimated":
        yield "Estimated, not proved: the run contains a mechanism given as a Python function."
    yield _assumed(run)


def _relation(run: Expression) -> str:
    match run.relation:
        case Relation.ANY:
            return f"for neighbours under {Relation.ANY.meaning}"
        case relation:
            return f"for {relation} neighbours: {relation.meaning}"


# ---- what ran


def _what_ran(run: Expression) -> str:
    return f"What ran: {_terms(run, '; ')}."


def _terms(run: Expression, between: str) -> str:
    parts = list(run.terms.items())
    shown = [_term(mechanism, times) for mechanism, times in parts[:MOST_TERMS]]
    if len(parts) > MOST_TERMS:
        shown.append(f"and {len(parts) - MOST_TERMS:,} further mechanisms")
    return between.join(shown)


def _term(mechanism: Mechanism, times: int) -> str:
    if not isinstance(mechanism, Sampled):
        return f"{_name(mechanism)} runs {_count(times)}"
    if isinstance(mechanism.inner, Mechanism) and not isinstance(mechanism.inner, Sampled):
        where = f"{_count(times)}, each time on a fresh sample" if times > 1 else "on one sample"
        return f"{_name(mechanism.inner)} runs {where} drawn by {mechanism.scheme}"
    drawn = f"drawn afresh {_count(times)}" if times > 1 else "drawn"
    return f"one sample on which {_terms(mechanism.inner, ' and ')}, {drawn} by {mechanism.scheme}"


def _count(times: int) -> str:
    return "once" if times == 1 else f"{times:,} times"


def _name(mechanism: Mechanism) -> str:
    text = str(mechanism)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."


# ---- what proves it


def _proof(run: Expression, found: Guarantee) -> str:
    sampled = [mechanism for mechanism in run.terms if isinstance(mechanism, Sampled)]
    if found.order is None:
        return f"Proved by composition of (epsilon, delta) guarantees: {_COMPOSITIONS[found.conversion]}."
    if math.isinf(found.order):
        amplified = ", with Lemma 3 of the paper for the samples" if sampled else ""
        return f"Proved by pure differential privacy (order infinity), which adds up{amplified}."
    amplified = f"{_theorems(found)}; " if sampled else "the Renyi divergences of the mechanisms, which add up; "
    return f"Proved by {amplified}converted at {_order(found.order)} by {CONVERSIONS[found.conversion].citation}."


def _order(order: float) -> str:
    return "an order just above 1" if f"{order:g}" == "1" else f"order {order:g}"


def _theorems(found: Guarantee) -> str:
    """The rows of the table that reach the bound at the order of the answer."""
    winners = dict.fromkeys(term.bound for term in found.terms[:MOST_TERMS] if term.bound)
    return " and ".join(_citation(name) for name in winners)


def _citation(name: str) -> str:
    return BOUNDS[name].statement if name == "best" else BOUNDS[name].citation


def _no_epsilon(run: Expression, delta: Exact) -> str:
    slack = float(run.curve().slack())
    if 0 < float(delta) <= slack:
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


# ---- what is assumed


def _assumed(run: Expression) -> str:
    assumptions = []
    if _is_sampled(run):
        assumptions.append("every sample is uniform, and shuffled unless the mechanism ignores its order")
    if any("sensitivity" in mechanism.domains for mechanism in _leaves(run)):
        assumptions.append(
            {
                Relation.REPLACE_ONE: "sensitivities are replace-one, so clipping to norm C counts as 2C",
                Relation.ADD_REMOVE: "sensitivities are add-remove, so clipping to norm C counts as C",
                Relation.ANY: "clipping to norm C has sensitivity 2C under replace-one and C under add-remove",
            }[run.relation]
        )
    assumptions.append("all parameters were fixed in advance, not chosen from earlier outputs")
    return f"Assumed: {'; '.join(assumptions)}."


def _is_sampled(run: Expression) -> bool:
    return any(isinstance(mechanism, Sampled) for mechanism in run.terms)


def _leaves(run: Expression) -> Iterator[Mechanism]:
    for mechanism in run.terms:
        if isinstance(mechanism, Sampled):
            yield from _leaves(mechanism.inner)
        else:
            yield mechanism
