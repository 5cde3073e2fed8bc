"""Every sentence about a run and a guarantee.

The shell, a page and a model card print these and no others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cumulant.accounting.indirect_routes import ROUTES
from cumulant.accounting.numbers import percent, rounded_down, rounded_up
from cumulant.accounting.plan import Plan
from cumulant.accounting.question import DISTANCE
from cumulant.accounting.run import Component, RunRecord
from cumulant.bounds.table import row as bound_row
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.conversion.verify import Verification

MOST_TERMS = 8
"""Mechanisms that a text names; it counts further ones. Convention."""

LONGEST_NAME = 200
"""Characters of a mechanism's name before a text cuts it; convention."""

COMPOSITIONS = {
    "naive": "they add up",
    "strong": "Kairouz, Oh, Viswanath 2015, the simplified form, with the best delta per round",
    "optimal": "Kairouz, Oh, Viswanath 2015, exact, with the best delta per round",
}
"""The theorem by which each baseline composes, in words."""

WAYS = {
    "closed form": "one round: epsilon = log(1 + g (e^e0 - 1)) at delta = g d(e0), d the privacy profile (Lemma 3 at every "
    "epsilon), evaluated in balls; several rounds that hardly ever see the record share delta and add up",
    "line": "the Laplace inversion of the moment function of all rounds along a vertical line: the trapezoid sum is delta plus "
    "images that are not negative, and what lies beyond its last frequency is bounded (Theorem L0)",
    "lattice": "loss distributions on a grid that dominates them, composed by a tilted FFT, with discretisation, aliasing, "
    "rounding and cut-off tails added",
    "adaptive": "the value of what an adversary may choose anew in every round: of the extreme triples of the reports of the "
    "mechanism on a sample (Theorem P), or of all laws of bounded range, by a recursion on a grid whose chords bound it",
    "order": "Theorem W: judged by test functions between profiles and Rényi divergences, adaptive rounds are no worse than a "
    "product of one law per round on a lattice, which was proposed by a linear programme and checked row by row; evaluated "
    "along a vertical line, which folds on a lattice, or by a tilted FFT with every error term added",
    "cone": "Theorem B: judged by a family of test functions that bounds delta, adaptive rounds are no worse than a product "
    "of known pairs: the sampled Gaussian pair of Proposition 11 once per round, the dominating pair of every other mechanism "
    "and, where only distances of values are known, one Gaussian pair more; evaluated along a vertical line, or on a "
    "dominating grid with its error terms added",
}
"""Each route of the exact layer to a number, in words."""

RIGOUR = {
    "proved": "every step was enclosed, rounding included, so the exact value of the bound is at most this number",
    "bounded": "float64 with every analytic error term added, moved outward by far more than its rounding",
    "estimated": "the number rests on a Python function that can only be evaluated in floats, so nothing is proved",
}
"""The meaning of each level of rigour, in words."""


BY = {"proved": "Proved by", "bounded": "Bounded by", "estimated": "Estimated by"}
"""The words before a route, by rigour: only a proved number is called proved."""


# ---- the answer


def headline(plan: Plan) -> str:
    """The number that was asked for, and for whom it holds: the first line of an answer.

    >>> from cumulant.mechanisms.pure_dp import PureDP
    >>> headline(PureDP(1).guarantee(delta=0).plan)
    'epsilon = 1 (rounded up) at delta = 0, for neighbours under the relation that you mean.'
    """
    question, run = plan.question, plan.run
    epsilon, delta = plan.statement
    value = plan.answer.value
    number = f"{question.wanted} = {rounded_up(value)} (rounded up) at {question.asked} = {question.value}"
    if question.asked == "epsilon" and delta >= 1:
        return f"{number}: no delta below 1 is known to hold; ask at a larger epsilon."
    if math.isinf(epsilon):
        return f"epsilon = inf at delta = {question.value}: {_no_epsilon(plan)}."
    if delta >= 1:
        return f"{number}: a delta of 1 holds for everything and protects nobody."
    return f"{number}, {relation(run)}."


def doubled(run: RunRecord) -> str:
    """Return the factor 2 that a noise multiplier misses, if one may be written as sigma.

    Empty where none can be.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> from cumulant.sampling.without_replacement import WithoutReplacement
    >>> doubled((Gaussian(sigma=1.1) @ WithoutReplacement(rate=0.01)).record())[:66]
    'CAREFUL, FACTOR 2: Gaussian(sigma=1.1) has sensitivity 1 for repla'
    """
    inner = _clipped_twice(run)
    if inner is None:
        return ""
    return (
        f"CAREFUL, FACTOR 2: {inner.name} has sensitivity 1 for replace-one neighbours. If its sigma is the noise "
        "multiplier of clipped gradients (DP-SGD), replacing a record moves their sum by twice the clipping norm, "
        f"and this number is too small: ask about {inner.source.clipped_form()}, or use cumulant dpsgd."
    )


def clipping_warning(run: RunRecord) -> str:
    """Return a short sentence about the factor 2 that a noise multiplier written as sigma misses; empty if none can be.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> from cumulant.sampling.without_replacement import WithoutReplacement
    >>> clipping_warning((Gaussian(sigma=1.1) @ WithoutReplacement(rate=0.01)).record())[:66]
    'If sigma is a noise multiplier (DP-SGD), a factor 2 is missing: as'
    """
    clipped = _clipped_twice(run)
    if clipped is None:
        return ""
    return f"If sigma is a noise multiplier (DP-SGD), a factor 2 is missing: ask about {clipped.source.clipped_form()}"


def _clipped_twice(run: RunRecord) -> Component | None:
    """Return a component whose sigma may be a noise multiplier under replace-one; None if there is none."""
    for part in run.nested():
        drawn = part.scheme is not None and part.scheme.relation.clipping == 2 and part.inner is not None
        inside = [*part.inner.nested()] if drawn and part.inner is not None else []
        for each in [*inside, part] if part.surrogate else inside:
            if each.source.clipped_form():
                return each
    return None


def says_something(plan: Plan) -> bool:
    """Return True if the statement protects anybody."""
    epsilon, delta = plan.statement
    return delta < 1 and math.isfinite(epsilon)


def _no_epsilon(plan: Plan) -> str:
    slack, delta = float(plan.run.curve().slack()), plan.question.value
    if 0 < float(delta) <= slack:  # equal where floats cannot tell, or where the rest is not pure
        return (
            "no finite epsilon is known to hold: the promises in the run may already fail with probability "
            f"{rounded_up(slack)}, which leaves nothing of delta"
        )
    if delta == 0:
        return (
            "no finite epsilon is known to hold: delta = 0 asks for pure differential privacy, which not every mechanism "
            "in the run has; ask at a delta > 0"
        )
    return "no finite epsilon is known to hold: the bound is infinite at every order"


NO_LOWER_END = "No lower end is known: the run may be more private than this."
"""The sentence about a bound on a surrogate, of which no data sets are known that need so much."""


def interval(plan: Plan) -> str:
    """Return the sentence about the lower end."""
    found, lower, upper = plan.question.wanted, plan.lower, plan.answer.value
    if upper == 0:
        return f"The true {found} is 0."
    if not lower:  # that nothing below 0 is true says nothing
        return NO_LOWER_END if plan.run.surrogate else ""
    least = rounded_down(lower)
    return f"The true {found} lies in [{least}, {rounded_up(upper)}]. No accountant can report less than {least} for this run."


MEMBERS = "members"
"""The plural of what a membership attack finds, but for runs that say otherwise."""


def attacked(run: RunRecord) -> str:
    """Return the plural of what a membership attack on the run finds.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> attacked(Gaussian(sigma=1).record())
    'members'
    """
    for part in run.parts:
        if part.source.attacked != MEMBERS:
            return part.source.attacked
    return MEMBERS


def no_protection(found: str = MEMBERS) -> str:
    """Return the sentence in place of "at most 100 % of the members", which sounds like a limit and is none."""
    return f"No protection is shown: an attacker with 1 % false alarms may find all {found}."


def limits_attackers(caught: float) -> bool:
    """Return True if the share of members that an attacker finds is printed as less than 100 %.

    >>> limits_attackers(0.0975), limits_attackers(0.99999)
    (True, False)
    """
    return percent(caught) != percent(1.0)


def attacker(run: RunRecord, caught: float, advantage: float) -> Iterator[str]:
    """Yield sentences about the best attack: at 1 % false alarms, and at its best guess where that limits it."""
    if limits_attackers(caught):
        yield (
            f"An attacker who accepts 1 % false alarms finds at most {percent(caught)} of the {attacked(run)}; "
            f"blind guessing finds 1 %."
        )
    else:
        yield no_protection(attacked(run))
    if limits_attackers((1 + advantage) / 2):
        yield (
            f"Whether {run.relation.guessed_for(run.groups[0])} was in the data is guessed right at most "
            f"{percent((1 + advantage) / 2)} of the time (advantage {percent(advantage)}); a coin is right 50 %."
        )


def support(plan: Plan) -> Iterator[str]:
    """Yield the sentences about the run, the proof and the assumptions."""
    note = plan.answer.note
    yield what_ran(plan.run)
    yield proof(plan)
    yield f"{note[:1].upper()}{note[1:]}." if note else ""
    if plan.answer.rigour == "estimated":
        yield "Estimated, not proved: the run contains a Python function that can only be evaluated in floats."
    yield assumed(plan.run)


def protected(run: RunRecord) -> str:
    """Return in a few words whom every statement about the run protects.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> protected(Gaussian(sigma=1, relation="add-remove").record())
    'one record added or removed'
    """
    found = run.relation.protected_for(run.groups[0], run.user)
    if run.relation is not Relation.ANY or _has_sensitivity(run):
        return found
    return found.replace("as the sensitivities are stated", "under the neighbours that you mean")


def witness_words(run: RunRecord, witness: str) -> str:
    """Return the name of neighbouring data sets in words; for a user who joins or leaves, the record is one user.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> witness_words(Gaussian(sigma=1).record(), "data sets with and without one record that counts (Proposition 11)")
    'data sets with and without one record that counts (Proposition 11)'
    """
    return witness.replace("one record that counts", "one user") if run.user else witness


def membership(caught: float, found: str = MEMBERS) -> str:
    """Return the sentence about members that an attacker finds with 1 % false alarms; `found` is their name.

    >>> membership(0.0975)
    'an attacker with 1 % false alarms finds at most 9.75 % of members (chance: 1 %)'
    >>> membership(1.0)
    'no protection is shown: an attacker with 1 % false alarms may find all members'
    """
    if not limits_attackers(caught):
        none = no_protection(found)
        return f"{none[:1].lower()}{none[1:-1]}"
    return f"an attacker with 1 % false alarms finds at most {percent(caught)} of {found} (chance: 1 %)"


def relation(run: RunRecord) -> str:
    """The neighbours that every statement about the run compares.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> relation(Gaussian(sigma=1).record())
    'for neighbours under the relation under which the sensitivities are stated'
    """
    # parts about smaller groups hold for smaller groups only
    found = run.relation.neighbours_for(run.groups[0], run.user)
    if run.relation is not Relation.ANY or _has_sensitivity(run):
        return found
    return found.replace("under which the sensitivities are stated", "that you mean")


def _has_sensitivity(run: RunRecord) -> bool:
    """Return True if a mechanism of the run states a sensitivity; laws, curves and promises have none."""
    return any(part.source.rests_on_sensitivity() for part in run.nested())


# ---- what ran


def what_ran(run: RunRecord) -> str:
    """Each mechanism and how often it ran, on which samples, as a sentence.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> from cumulant.sampling.without_replacement import WithoutReplacement
    >>> what_ran((Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 6000).record())
    'What ran: Gaussian(sigma=5) runs 6,000 times, each time on a fresh sample drawn by WithoutReplacement(rate=0.001).'
    """
    return f"What ran: {_parts(run, '; ')}."


def _parts(run: RunRecord, between: str) -> str:
    shown = [_part(part) for part in run.parts[:MOST_TERMS]]
    if len(run.parts) > MOST_TERMS:
        shown.append(f"and {len(run.parts) - MOST_TERMS:,} further mechanisms")
    return between.join(shown)


def _part(part: Component) -> str:
    times = part.times
    if part.inner is None:
        return f"{short_name(part)} runs {_count(times)}"
    if part.scheme is not None and part.lone and part.inner.parts[0].scheme is None:
        return part.scheme.describe(short_name(part.inner.parts[0]), times)
    drawn = f"drawn afresh {_count(times)}" if times > 1 else "drawn"
    return f"one sample on which {_parts(part.inner, ' and ')}, {drawn} by {part.scheme}"


def _count(times: int) -> str:
    return "once" if times == 1 else f"{times:,} times"


def short_name(part: Component) -> str:
    """The mechanism in the notation, cut where it is too long to read."""
    return part.name if len(part.name) <= LONGEST_NAME else part.name[: LONGEST_NAME - 3] + "..."


# ---- what proves it


def proof(plan: Plan) -> str:
    """Return one sentence about the proof of the number."""
    order, way, by = plan.answer.order, plan.answer.way, BY[plan.answer.rigour]
    if way in WAYS:
        return f"{by} {WAYS[way]}."
    sampled = any(part.scheme is not None for part in plan.run.parts)
    if order is None:
        return f"{by} {unconverted(way)}."
    if math.isinf(order):
        amplified = f"; for the samples by {_theorems(plan)}" if sampled else ""
        return f"{by} pure differential privacy (order infinity), which adds up{amplified}."
    amplified = f"{_theorems(plan)}; " if sampled else "the Rényi divergences of the mechanisms, which add up; "
    at = "an order just above 1" if f"{order:g}" == "1" else f"order {order:g}"
    return f"{by} {amplified}converted at {at} by {cited_conversion(plan)}."


def _theorems(plan: Plan) -> str:
    """The rows of the table that reach the bound at the order of the answer."""
    shown = list(zip(plan.run.parts, plan.terms, strict=True))[:MOST_TERMS]
    return " and ".join(dict.fromkeys(citation(part, term.bound) for part, term in shown if term.bound))


def citation(part: Component, bound: str) -> str:
    """Cite the theorem of this name about the samples of a part."""
    row = part.row(bound)
    return row.statement if bound == "best" else row.citation


def unconverted(way: str) -> str:
    """Return the proof of a number that no order was converted for."""
    if way in ROUTES:
        return ROUTES[way].proof
    if way == DISTANCE:
        return (
            "the total variation distance, which bounds delta at every epsilon: at each order the two rates of an attack "
            "have at most the divergence of the curve"
        )
    return f"composition of (epsilon, delta) guarantees: {COMPOSITIONS[way]}"


def cited_conversion(plan: Plan) -> str:
    """Cite the conversion that was used."""
    row = CONVERSIONS[plan.answer.way]
    return row.delta_citation if plan.question.asked == "epsilon" else row.citation


def divergence(run: RunRecord, bound: str) -> Iterator[str]:
    """Yield the sentences below a table of Rényi divergences.

    The table is by this bound, or by "all" of them.
    """
    rounded, by = "", ""
    if bound == "all":
        by = "A dash: the bound does not apply. Lines with <= are upper bounds, rounded up; with >= lower bounds, rounded down."
    else:
        cited = dict.fromkeys(citation(part, bound) for part in run.parts if part.scheme is not None)
        by = f"The bound on samples is {' and '.join(cited)}." if cited else ""
        rounded = "; rounded up" if bound_row(bound).upper else "; a lower bound, rounded down"
    yield f"Rényi divergence, {relation(run)}{rounded}."
    yield what_ran(run)
    yield by
    yield assumed(run)


# ---- what is assumed


def assumptions(run: RunRecord) -> list[str]:
    """Return the assumptions about the run that no theorem can check."""
    nested = list(run.nested())
    schemes = [part.scheme for part in nested if part.scheme is not None]
    found = list(dict.fromkeys(scheme.assumed or f"every sample is drawn as {scheme} says" for scheme in schemes))
    found += dict.fromkeys(said for part in nested if (said := part.source.assumption()))
    if any(part.source.rests_on_sensitivity() for part in nested):
        stated, clipped = _stated_relation(run, nested)
        found.append(stated.assumed if clipped else stated.assumed_unclipped)
    functions = [short_name(part) for part in nested if part.scheme is None and not part.written]
    if functions:
        found.append(f"what the Python function of {functions[0]} says is true of every pair of neighbours")
    return [*found, "all parameters were fixed in advance, not chosen from earlier outputs"]


def short_assumptions(run: RunRecord) -> list[str]:
    """Return the assumptions about the run in a few words each; `assumptions` has them in full.

    >>> from cumulant.mechanisms.pure_dp import PureDP
    >>> short_assumptions((PureDP(1) * 2).record())
    ['all parameters were fixed in advance']
    """
    nested = list(run.nested())
    found = list(dict.fromkeys(part.scheme.checked for part in nested if part.scheme is not None))
    found += dict.fromkeys(said.partition(";")[0] for part in nested if (said := part.source.assumption()))
    if any(part.source.rests_on_sensitivity() for part in nested):
        stated, clipped = _stated_relation(run, nested)
        found.append(stated.checked if clipped else stated.assumed_unclipped)
    if any(part.scheme is None and not part.written for part in nested):
        found.append("your Python function is right for every pair of neighbours")
    return [*found, "all parameters were fixed in advance"]


def author_questions(run: RunRecord) -> list[str]:
    """Return the questions to the authors of a claim on which a verdict about the run rests.

    >>> from cumulant.mechanisms.pure_dp import PureDP
    >>> author_questions((PureDP(1) * 2).record())
    ['Were all parameters fixed in advance?']
    """
    nested = list(run.nested())
    found = ["How were samples drawn, and who saw them?"] if any(part.scheme is not None for part in nested) else []
    if any(part.source.rests_on_sensitivity() for part in nested):
        found.append("Is a neighbour added or replaced?")
        clipped = any(part.source.scaled_to_norm for part in nested)
        scale = "Is the noise on the sum, in units of the clipping norm?"
        found.append(scale if clipped else "How far does one record move each answer?")
    return [*found, "Were all parameters fixed in advance?"]


def _stated_relation(run: RunRecord, nested: list[Component]) -> tuple[Relation, bool]:
    """Return the relation for which the sensitivities are stated, and True if vectors may be clipped to a norm."""
    stated, clipped = run.relation, False
    for part in nested:
        if stated is run.relation and part.scheme is not None and part.inner is not None:
            # sensitivities are those of what runs on the samples of this part
            stated = part.scheme.takes if part.inner.relation is Relation.ANY else part.inner.relation
        clipped = clipped or part.source.scaled_to_norm
    return stated, clipped


def assumed(run: RunRecord) -> str:
    """The assumptions as a sentence.

    >>> from cumulant.mechanisms.pure_dp import PureDP
    >>> assumed(PureDP(1).record())
    'Assumed: all parameters were fixed in advance, not chosen from earlier outputs.'
    """
    return f"Assumed: {'; '.join(assumptions(run))}."


# ---- what others claim


def verdict(
    found: str, claimed: float, delta: float, epsilon: float, lower: float | None, witness: str, rigour: str
) -> Iterator[str]:
    """Yield the verdict about a claim, and the reason."""
    claim = f"({rounded_up(claimed, 15)}, {rounded_up(delta, 15)})-differential privacy"
    shown = "proved" if rigour == "proved" else "known"
    proved = f"epsilon = {rounded_up(epsilon)} is {shown} to be enough" if epsilon < math.inf else "nothing is proved"
    needed = "" if lower is None else f"at least {rounded_down(lower)} is needed by {witness}"
    if found == "holds":
        yield f"Holds: {claim}; {proved} at this delta."
    elif found == "false":
        yield f"False: {claim} is claimed, but {needed}."
    else:
        yield f"Open: {claim} is claimed; {proved}, {needed or 'and nothing is known from below'}."
        if rigour == "estimated":
            yield "The number rests on a Python function that can only be evaluated in floats, so nothing is proved."
        elif lower is None:
            yield "No lower end is known, so nothing refutes it."
        else:
            yield "A smaller accuracy may decide."


def lower_end_words(holds: bool, lower: bool | None) -> str:
    """Return the result about a lower end; `holds` is the result about the number above it.

    >>> lower_end_words(True, True), lower_end_words(False, True), lower_end_words(True, False)
    ('is confirmed too', 'is confirmed', 'is NOT confirmed')
    """
    confirmed = "is confirmed too" if holds else "is confirmed"
    return {True: confirmed, False: "is NOT confirmed", None: "was not evaluated again"}[lower]


def confirmation(plan: Plan, checked: Verification, lower: bool | None) -> Iterator[str]:
    """Yield the result of proving a guarantee again."""
    yield f"{'Confirmed' if checked.holds else 'NOT confirmed'}: {checked}."
    if not checked.independent:
        yield "No independent route was open; the same code ran again."
    if plan.lower is not None:
        yield f"The lower end {rounded_down(plan.lower)} {lower_end_words(checked.holds, lower)}."
    yield what_ran(plan.run)
    yield f"{relation(plan.run).capitalize()}."
    yield assumed(plan.run)
