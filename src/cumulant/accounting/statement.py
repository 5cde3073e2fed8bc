"""Every sentence about a run and a guarantee: the shell, a page and a model card say these and no others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from cumulant.accounting.parts import Part, Ran
from cumulant.accounting.plan import Plan, Term
from cumulant.accounting.printed import fraction, percent, rounded_down, rounded_up
from cumulant.accounting.question import DISTANCE
from cumulant.bounds.table import BOUNDS
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.domains import spelling
from cumulant.relation import Relation

MOST_TERMS = 8
LONGEST_NAME = 200

_LONG = 10**40
"""A denominator that nobody reads."""

COMPOSITIONS = {
    "naive": "they add up",
    "strong": "Kairouz, Oh, Viswanath 2015, the simplified form, with the best delta per round",
    "optimal": "Kairouz, Oh, Viswanath 2015, exact, with the best delta per round",
}
"""What each baseline composes by."""

WAYS = {
    "closed form": "one round: epsilon = log(1 + g (e^e0 - 1)) at delta = g d(e0), d the privacy profile (Lemma 3 at every "
    "epsilon), evaluated in balls; several rounds that hardly ever see the record share delta and add up",
    "lattice": "loss distributions on a grid that dominates them, composed by a tilted FFT, with discretisation, aliasing, "
    "rounding and cut-off tails added",
    "cone": "Theorem B: the sampled Gaussian pair maximises a cone of test functions under composition, evaluated on a "
    "dominating grid with the same error terms",
}
"""How the exact layer reaches a number."""

RIGOUR = {
    "proved": "every step was enclosed, rounding included, so the exact value of the bound is at most this number",
    "bounded": "float64 with every analytic error term added, moved outward by far more than its rounding",
    "estimated": "the number rests on a Python function that can only be sampled, so nothing is proved",
}
"""What each level of rigour means."""


# ---- the answer


def headline(plan: Plan) -> str:
    """The number that was asked for, and for whom it holds: the first line of an answer.

    >>> from cumulant.mechanisms.promises import PureDP
    >>> headline(PureDP(1).guarantee(delta=0).plan)
    'epsilon = 1 (rounded up) at delta = 0, for neighbours under the relation under which the sensitivities are stated.'
    """
    question, run = plan.question, plan.run
    epsilon, delta = plan.statement
    value = plan.answer.value
    number = f"{question.found} = {rounded_up(value)} (rounded up) at {question.asked} = {question.value}"
    if question.asked == "epsilon" and delta >= 1:
        return f"{number}: this library proves no delta below 1; ask at a larger epsilon."
    if math.isinf(epsilon):
        return f"epsilon = inf at delta = {question.value}: {_no_epsilon(plan)}."
    if delta >= 1:
        return f"{number}: a delta of 1 holds for everything and protects nobody."
    return f"{number}, {relation(run)}."


def says_something(plan: Plan) -> bool:
    """Whether the statement protects anybody."""
    epsilon, delta = plan.statement
    return delta < 1 and math.isfinite(epsilon)


def _no_epsilon(plan: Plan) -> str:
    slack, delta = float(plan.run.curve().slack()), plan.question.value
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


def interval(plan: Plan) -> str:
    """What is known from below."""
    if plan.lower is None:
        return ""
    return (
        f"The true {plan.question.found} lies in [{rounded_down(plan.lower)}, {rounded_up(plan.answer.value)}]: "
        f"no smaller claim holds for {plan.witness}."
    )


def attacker(run: Ran, caught: float, advantage: float) -> Iterator[str]:
    """What the best attack can reach at 1 % false alarms, in two sentences."""
    yield (
        f"An attacker who accepts 1 % false alarms finds at most {percent(caught)} of the members; "
        f"blind guessing finds 1 %."
    )
    used = "one record or another in its place" if run.relation == Relation.REPLACE_ONE else "one record"
    yield (
        f"Whether {used} was in the data is guessed right at most {percent((1 + advantage) / 2)} of the time "
        f"(advantage {percent(advantage)}); a coin is right 50 %."
    )


def support(plan: Plan) -> Iterator[str]:
    """What ran, what proves the number, and what is assumed."""
    note = plan.answer.note
    yield what_ran(plan.run)
    yield proof(plan)
    yield f"{note[:1].upper()}{note[1:]}." if note else ""
    if plan.answer.rigour == "estimated":
        yield "Estimated, not proved: the run contains a Python function that can only be sampled."
    yield assumed(plan.run)


def relation(run: Ran) -> str:
    """The neighbours that every statement about the run compares.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> relation(Gaussian(sigma=1).ran())
    'for neighbours under the relation under which the sensitivities are stated'
    """
    if run.relation is Relation.ANY:
        return f"for neighbours under {run.relation.meaning}"
    return f"for {run.relation} neighbours: {run.relation.meaning}"


# ---- what ran


def what_ran(run: Ran) -> str:
    """Each mechanism and how often it ran, on which samples, as a sentence.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> from cumulant.sampling.without_replacement import WithoutReplacement
    >>> what_ran((Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 6000).ran())
    'What ran: Gaussian(sigma=5) runs 6,000 times, each time on a fresh sample drawn by WithoutReplacement(rate=0.001).'
    """
    return f"What ran: {_parts(run, '; ')}."


def _parts(run: Ran, between: str) -> str:
    shown = [_part(part) for part in run.parts[:MOST_TERMS]]
    if len(run.parts) > MOST_TERMS:
        shown.append(f"and {len(run.parts) - MOST_TERMS:,} further mechanisms")
    return between.join(shown)


def _part(part: Part) -> str:
    times = part.times
    if part.inner is None:
        return f"{_name(part)} runs {_count(times)}"
    if part.lone and part.inner.parts[0].scheme is None:
        where = f"{_count(times)}, each time on a fresh sample" if times > 1 else "on one sample"
        return f"{_name(part.inner.parts[0])} runs {where} drawn by {part.scheme}"
    drawn = f"drawn afresh {_count(times)}" if times > 1 else "drawn"
    return f"one sample on which {_parts(part.inner, ' and ')}, {drawn} by {part.scheme}"


def _count(times: int) -> str:
    return "once" if times == 1 else f"{times:,} times"


def _name(part: Part) -> str:
    """The mechanism in the notation, cut where it is too long to read."""
    return part.name if len(part.name) <= LONGEST_NAME else part.name[: LONGEST_NAME - 3] + "..."


# ---- what proves it


def proof(plan: Plan) -> str:
    """What proves the number, in one sentence."""
    order, way = plan.answer.order, plan.answer.way
    if way in WAYS:
        return f"Proved by {WAYS[way]}."
    sampled = any(part.scheme is not None for part in plan.run.parts)
    if order is None:
        return f"Proved by {_unconverted(way)}."
    if math.isinf(order):
        amplified = ", with Lemma 3 of the paper for the samples" if sampled else ""
        return f"Proved by pure differential privacy (order infinity), which adds up{amplified}."
    amplified = f"{_theorems(plan)}; " if sampled else "the Renyi divergences of the mechanisms, which add up; "
    at = "an order just above 1" if f"{order:g}" == "1" else f"order {order:g}"
    return f"Proved by {amplified}converted at {at} by {_conversion(plan)}."


def _theorems(plan: Plan) -> str:
    """The rows of the table that reach the bound at the order of the answer."""
    shown = list(zip(plan.run.parts, plan.terms, strict=True))[:MOST_TERMS]
    return " and ".join(dict.fromkeys(_citation(part, term.bound) for part, term in shown if term.bound))


def _citation(part: Part, bound: str) -> str:
    row = part.row(bound)
    return row.statement if bound == "best" else row.citation


def _unconverted(way: str) -> str:
    """What proves a number that no order was converted for."""
    if way == DISTANCE:
        return (
            "the total variation distance, which bounds delta at every epsilon: at each order the two rates of an attack "
            "have at most the divergence of the curve"
        )
    return f"composition of (epsilon, delta) guarantees: {COMPOSITIONS[way]}"


def _conversion(plan: Plan) -> str:
    """Who proved the conversion that was used."""
    row = CONVERSIONS[plan.answer.way]
    return row.delta_citation if plan.question.asked == "epsilon" else row.citation


def divergence(run: Ran, bound: str) -> Iterator[str]:
    """What stands below a table of Renyi divergences by this bound, or by "all" of them."""
    rounded, by = "", ""
    if bound == "all":
        by = "A dash: the bound does not apply. Lines with <= are upper bounds, rounded up; with >= lower bounds, rounded down."
    else:
        cited = dict.fromkeys(_citation(part, bound) for part in run.parts if part.scheme is not None)
        by = f"The bound on samples is {' and '.join(cited)}." if cited else ""
        rounded = "; rounded up" if BOUNDS[bound].upper else "; a lower bound, rounded down"
    yield f"Renyi divergence, {relation(run)}{rounded}."
    yield what_ran(run)
    yield by
    yield assumed(run)


# ---- what is assumed


def assumptions(run: Ran) -> list[str]:
    """What must be true of the run, and no theorem can know."""
    nested = list(run.nested())
    schemes = [part.scheme for part in nested if part.scheme is not None]
    found = list(dict.fromkeys(scheme.assumed or f"every sample is drawn as {scheme} says" for scheme in schemes))
    if any(part.sensitive for part in nested):
        found.append(
            {
                Relation.REPLACE_ONE: "sensitivities are replace-one, so clipping to norm C counts as 2C",
                Relation.ADD_REMOVE: "sensitivities are add-remove, so clipping to norm C counts as C",
                Relation.ANY: "clipping to norm C has sensitivity 2C under replace-one and C under add-remove",
            }[run.relation]
        )
    functions = [_name(part) for part in nested if part.scheme is None and not part.written]
    if functions:
        found.append(f"what the Python function of {functions[0]} says is true of every pair of neighbours")
    return [*found, "all parameters were fixed in advance, not chosen from earlier outputs"]


def assumed(run: Ran) -> str:
    """The assumptions as a sentence.

    >>> from cumulant.mechanisms.promises import PureDP
    >>> assumed(PureDP(1).ran())
    'Assumed: all parameters were fixed in advance, not chosen from earlier outputs.'
    """
    return f"Assumed: {'; '.join(assumptions(run))}."


# ---- everything


def explanation(plan: Plan, epsilon: float, delta: float) -> str:
    """The statement with everything that proves it, one paragraph per line."""
    name, value = ("delta", delta) if plan.question.asked == "epsilon" else ("epsilon", epsilon)
    number = (
        f"{name} = {rounded_up(value)} (rounded up from {value!r}) at {plan.question.asked} = {plan.question.value}"
    )
    how = _by_losses(plan) if plan.answer.exact else _by_curve(plan, epsilon, delta)
    lower = ""
    if plan.answer.exact and plan.lower is not None:
        lower = f" No claim below {rounded_down(plan.lower)} is true, shown by {plan.witness}."
    return "\n".join(
        [
            f"{number}, {relation(plan.run)}.{lower}",
            what_ran(plan.run),
            *how,
            assumed(plan.run),
            f"Rigour: {plan.answer.rigour}, which means: {RIGOUR[plan.answer.rigour]}.",
        ]
    )


def left_behind(run: str, asked: str, epsilon: float, delta: float, rigour: str) -> str:
    """What can be said of a statement without its plan."""
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
    if found.width is not None and found.order is not None:
        grid += f": a grid of step {found.width:.3g}, {found.points:,} points, tilted to order {found.order:.4g}"
    yield f"Proved by {WAYS[found.way]}."
    yield "Products of dominating pairs dominate adaptive composition (Zhu, Dong, Wang 2022)."
    yield f"Arithmetic: {grid}."


def _by_curve(plan: Plan, epsilon: float, delta: float) -> Iterator[str]:
    if delta < 1 and epsilon < math.inf:
        for part, term in list(zip(plan.run.parts, plan.terms, strict=True))[:MOST_TERMS]:
            counted = f"{_name(part)} * {part.times}" if part.times > 1 else _name(part)
            yield f"{counted}: {_theorem(plan, part, term)}."
        if len(plan.terms) > MOST_TERMS:
            yield f"And {len(plan.terms) - MOST_TERMS:,} further mechanisms."
    yield f"Conversion: {_converted(plan, delta)}."
    yield f"Arithmetic: {_arithmetic(plan)}."
    yield f"Exact inputs: {_inputs(plan)}."


def _theorem(plan: Plan, part: Part, term: Term) -> str:
    curve = part.described
    if part.inner is not None:
        curve = part.inner.parts[0].described if part.lone else "Lemma 5, the curves of all that ran add up"
    if plan.answer.way == DISTANCE:
        return f"the whole curve of {curve}" + (f", on its sample by {term.bound}" if term.bound else "")
    if plan.answer.way not in CONVERSIONS:
        amplified = f"; on its sample of rate {_rate(part)} by Lemma 3" if term.bound else ""
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
    """At which (epsilon, delta) each round counts, where a composition theorem chose it."""
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
        return f"none, {_unconverted(way)}"
    if plan.order is None:
        return "none, order infinity is pure differential privacy, which adds up"
    return f"{way}, at order {_order(plan.order)}, by {_conversion(plan)}"


def _arithmetic(plan: Plan) -> str:
    if plan.answer.proof is not None:
        return (
            f"the order was found in float64; there the bound was evaluated once, in balls of {plan.answer.proof.bits} bits; "
            f"the ball has radius {plan.answer.proof.radius:.2g}, and its upper end was rounded up to a float"
        )
    if plan.answer.rigour == "proved":
        return "exact, nothing had to be evaluated"
    return "float64, rounded outward"


def _inputs(plan: Plan) -> str:
    rates = dict.fromkeys(_rate(part) for part in plan.run.nested() if part.scheme is not None)
    shown = [f"{plan.question.asked} = {fraction(plan.question.value)}"]
    if plan.order is not None:
        shown.append(f"order = {fraction(plan.order)}")
    if plan.answer.way in CONVERSIONS and (slack := plan.run.curve(plan.question.row).slack()):
        exact = slack.denominator < _LONG
        failing = fraction(slack) if exact else f"{rounded_up(float(slack))} (rounded up)"
        shown.append(f"of delta, {failing} is what the promises in the run may fail with")
    shown += [f"rate = {fraction(rate)}" for rate in rates]
    return "; ".join(shown) + "; every other number as it is written above"


def _rate(part: Part) -> Fraction:
    return Fraction(1) if part.scheme is None else part.scheme.rate


def _order(order: Fraction) -> str:
    """The order, as far as it helps to read it."""
    return spelling(order) if order < 2 else f"{float(order):g}"
