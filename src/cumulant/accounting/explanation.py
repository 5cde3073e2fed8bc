"""The long answer: a statement with everything that proves it, one paragraph per line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from cumulant.accounting.indirect_routes import ROUTES
from cumulant.accounting.numbers import fraction, rounded_down, rounded_up
from cumulant.accounting.plan import Plan, Term
from cumulant.accounting.question import DISTANCE
from cumulant.accounting.run import Component
from cumulant.accounting.text import (
    BY,
    MOST_TERMS,
    RIGOUR,
    WAYS,
    assumed,
    cited_conversion,
    doubled,
    relation,
    short_name,
    unconverted,
    what_ran,
    witness_words,
)
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.domains import spelling

_LONG = 10**40
"""A denominator that nobody reads."""


def explanation(plan: Plan, epsilon: float, delta: float) -> str:
    """The statement with everything that proves it, one paragraph per line."""
    name, value = ("delta", delta) if plan.question.asked == "epsilon" else ("epsilon", epsilon)
    number = (
        f"{name} = {rounded_up(value)} (rounded up from {value!r}) at {plan.question.asked} = {plan.question.value}"
    )
    how = _by_losses(plan) if plan.answer.exact else _by_curve(plan, epsilon, delta)
    lower = ""
    if plan.answer.exact and plan.lower:
        lower = f" No claim below {rounded_down(plan.lower)} is true, shown by {witness_words(plan.run, plan.witness)}."
    factor = doubled(plan.run)
    return "\n".join(
        [
            f"{number}, {relation(plan.run)}.{lower}",
            *([factor] if factor else []),
            what_ran(plan.run),
            *how,
            assumed(plan.run),
            f"Rigour: {plan.answer.rigour}, which means: {RIGOUR[plan.answer.rigour]}.",
        ]
    )


def left_behind(run: str, asked: str, epsilon: float, delta: float, rigour: str) -> str:
    """Return the sentence about a statement without its plan."""
    number = _number(asked, epsilon if asked == "epsilon" else delta, epsilon, delta)
    return (
        f"{number}, for {run}.\n"
        "The run holds a Python function, which was not pickled or written with the guarantee; explain it where it was made.\n"
        f"Rigour: {rigour}, which means: {RIGOUR[rigour]}."
    )


def _number(asked: str, given: object, epsilon: float, delta: float) -> str:
    name, value = ("delta", delta) if asked == "epsilon" else ("epsilon", epsilon)
    return f"{name} = {rounded_up(value)} (rounded up from {value!r}) at {asked} = {given}"


def _by_losses(plan: Plan) -> Iterator[str]:
    found = plan.answer
    grid = "balls of 256 bits" if found.way == "closed form" else "float64 with every error term added"
    if found.proof is not None and found.order is not None:
        grid = f"balls of {found.proof.bits} bits: {found.points:,} frequencies at order {found.order:.4g}"
    elif found.width is not None and found.order is not None:
        grid += f": a grid of step {found.width:.3g}, {found.points:,} points, tilted to order {found.order:.4g}"
    yield f"{BY[found.rigour]} {WAYS[found.way]}."
    yield "Products of dominating pairs dominate adaptive composition (Zhu, Dong, Wang 2022)."
    yield f"Arithmetic: {grid}."


def _by_curve(plan: Plan, epsilon: float, delta: float) -> Iterator[str]:
    if delta < 1 and epsilon < math.inf:
        for part, term in list(zip(plan.run.parts, plan.terms, strict=True))[:MOST_TERMS]:
            counted = f"{short_name(part)} * {part.times}" if part.times > 1 else short_name(part)
            yield f"{counted}: {_theorem(plan, part, term)}."
        if len(plan.terms) > MOST_TERMS:
            yield f"And {len(plan.terms) - MOST_TERMS:,} further mechanisms."
    yield f"Conversion: {_converted(plan, delta)}."
    yield f"Arithmetic: {_arithmetic(plan)}."
    yield f"Exact inputs: {_inputs(plan)}."


def _theorem(plan: Plan, part: Component, term: Term) -> str:
    curve = part.source.description()
    if part.inner is not None:
        curve = part.inner.parts[0].source.description() if part.lone else "Lemma 5, the curves of all that ran add up"
    if plan.answer.way in ROUTES:
        return ROUTES[plan.answer.way].theorem
    if plan.answer.way == DISTANCE:
        return f"the whole curve of {curve}" + (f", on its sample by {term.bound}" if term.bound else "")
    if plan.answer.way not in CONVERSIONS:
        amplified = f"; on its sample{_of(part)} by Lemma 3" if term.bound else ""
        return f"{curve}{amplified}{_stated(term)}"
    if plan.order is None:
        reached = f"epsilon = {term.value:.6g} at order infinity"
    else:
        reached = f"K = {term.value:.6g} at order {_order(plan.order)}"
    if not term.bound:
        return f"{reached}, from the curve of {curve}"
    theorem = part.row(term.bound)
    return (
        f"{reached}, by {theorem.name}: {theorem.statement} ({theorem.citation}); it assumes {theorem.assumptions}; "
        f"the curve on the sample is that of {curve}"
    )


def _stated(term: Term) -> str:
    """Return the (epsilon, delta) that a composition theorem chose for each round; empty if none did."""
    if term.round is None:
        return ""
    epsilon, delta = term.round
    return (
        f"; each time ({rounded_up(epsilon)}, {rounded_up(delta)})-DP, the choice of delta for which the total is least"
    )


def _converted(plan: Plan, delta: float) -> str:
    way = plan.answer.way
    if delta >= 1:
        return "none, a delta of 1 holds for everything and protects nobody"
    if way not in CONVERSIONS:
        return f"none, {unconverted(way)}"
    if plan.order is None:
        return "none, order infinity is pure differential privacy, which adds up"
    return f"{way}, at order {_order(plan.order)}, by {cited_conversion(plan)}"


def _arithmetic(plan: Plan) -> str:
    if plan.answer.way in ROUTES:
        return ROUTES[plan.answer.way].arithmetic.format(rigour=plan.answer.rigour)
    if plan.answer.proof is not None:
        return (
            f"the order was found in float64; there the bound was evaluated once, in balls of {plan.answer.proof.bits} bits; "
            f"the ball has radius {plan.answer.proof.radius:.2g}, and its upper end was rounded up to a float"
        )
    if plan.answer.rigour == "proved":
        return "exact, nothing had to be evaluated"
    return "float64, rounded outward"


def _inputs(plan: Plan) -> str:
    schemes = [part.scheme for part in plan.run.nested() if part.scheme is not None]
    drawn = dict.fromkeys(number for scheme in schemes for number in scheme.numbers().items())
    shown = [f"{plan.question.asked} = {fraction(plan.question.value)}"]
    if plan.order is not None:
        shown.append(f"order = {fraction(plan.order)}")
    if plan.answer.way in CONVERSIONS and (slack := plan.run.curve(plan.question.row).slack()):
        exact = slack.denominator < _LONG
        failing = fraction(slack) if exact else f"{rounded_up(float(slack))} (rounded up)"
        shown.append(f"of delta, {failing} is what the promises in the run may fail with")
    shown += [f"{name} = {fraction(value)}" for name, value in drawn]
    return "; ".join(shown) + "; every other number as it is written above"


def _of(part: Component) -> str:
    numbers = {} if part.scheme is None else part.scheme.numbers()
    return "".join(f" of {name} {value}" for name, value in numbers.items())


def _order(order: Fraction) -> str:
    """The order, as far as it helps to read it."""
    return spelling(order) if order < 2 else f"{float(order):g}"
