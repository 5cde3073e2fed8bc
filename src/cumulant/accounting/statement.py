"""A run in words: what ran, for which neighbours, under which assumptions."""

from __future__ import annotations

from collections.abc import Iterator

from cumulant.accounting.guarantee import Guarantee, rounded_up
from cumulant.accounting.question import DISTANCE
from cumulant.bounds.bound import Bound
from cumulant.bounds.table import BOUNDS
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.errors import NotationError
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.mechanisms.sampled import Sampled
from cumulant.relation import Relation

MOST_TERMS = 8
LONGEST_NAME = 200

COMPOSITIONS = {
    "naive": "they add up",
    "strong": "Kairouz, Oh, Viswanath 2015, the simplified form, with the best delta per round",
    "optimal": "Kairouz, Oh, Viswanath 2015, exact, with the best delta per round",
}
"""What each baseline composes by."""


def unconverted(way: str) -> str:
    """What proves a number that no order was converted for.

    >>> unconverted("naive")
    'composition of (epsilon, delta) guarantees: they add up'
    """
    if way == DISTANCE:
        return (
            "the total variation distance, which bounds delta at every epsilon: at each order the two rates of an attack "
            "have at most the divergence of the curve"
        )
    return f"composition of (epsilon, delta) guarantees: {COMPOSITIONS[way]}"


WAYS = {
    "closed form": "one round: epsilon = log(1 + g (e^e0 - 1)) at delta = g d(e0), d the privacy profile (Lemma 3 at every "
    "epsilon), evaluated in balls; several rounds that hardly ever see the record share delta and add up",
    "lattice": "loss distributions on a grid that dominates them, composed by a tilted FFT, with discretisation, aliasing, "
    "rounding and cut-off tails added",
    "cone": "Theorem B: the sampled Gaussian pair maximises a cone of test functions under composition, evaluated on a "
    "dominating grid with the same error terms",
}
"""How the exact layer reaches a number."""


def statement(found: Guarantee, asked: object) -> str:
    """What was found, at what was asked for.

    >>> from cumulant.mechanisms.promises import PureDP
    >>> statement(PureDP(1).guarantee(epsilon=1), "1")
    'delta = 0 (rounded up from 0.0) at epsilon = 1'
    """
    name, value = ("delta", found.delta) if found.asked == "epsilon" else ("epsilon", found.epsilon)
    return f"{name} = {rounded_up(value)} (rounded up from {value!r}) at {found.asked} = {asked}"


def conversion(found: Guarantee) -> str:
    """Who proved the conversion that was used."""
    row = CONVERSIONS[found.conversion]
    return row.delta_citation if found.asked == "epsilon" else row.citation


def relation(run: Expression) -> str:
    """The neighbours that every statement about the run compares.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> relation(Gaussian(sigma=1))
    'for neighbours under the relation under which the sensitivities are stated'
    """
    match run.relation:
        case Relation.ANY:
            return f"for neighbours under {Relation.ANY.meaning}"
        case named:
            return f"for {named} neighbours: {named.meaning}"


# ---- what ran


def what_ran(run: Expression) -> str:
    """Each mechanism and how often it ran, on which samples, as a sentence.

    >>> from cumulant.mechanisms.gaussian import Gaussian
    >>> from cumulant.sampling.without_replacement import WithoutReplacement
    >>> what_ran(Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 6000)
    'What ran: Gaussian(sigma=5) runs 6,000 times, each time on a fresh sample drawn by WithoutReplacement(rate=0.001).'
    """
    return f"What ran: {_terms(run, '; ')}."


def _terms(run: Expression, between: str) -> str:
    parts = list(run.terms.items())
    shown = [_term(mechanism, times) for mechanism, times in parts[:MOST_TERMS]]
    if len(parts) > MOST_TERMS:
        shown.append(f"and {len(parts) - MOST_TERMS:,} further mechanisms")
    return between.join(shown)


def _term(mechanism: Mechanism, times: int) -> str:
    if not isinstance(mechanism, Sampled):
        return f"{name(mechanism)} runs {_count(times)}"
    if isinstance(mechanism.inner, Mechanism) and not isinstance(mechanism.inner, Sampled):
        where = f"{_count(times)}, each time on a fresh sample" if times > 1 else "on one sample"
        return f"{name(mechanism.inner)} runs {where} drawn by {mechanism.scheme}"
    drawn = f"drawn afresh {_count(times)}" if times > 1 else "drawn"
    return f"one sample on which {_terms(mechanism.inner, ' and ')}, {drawn} by {mechanism.scheme}"


def _count(times: int) -> str:
    return "once" if times == 1 else f"{times:,} times"


def name(mechanism: Mechanism) -> str:
    """The mechanism in the notation, cut where it is too long to read."""
    text = str(mechanism)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."


def row(mechanism: Mechanism, bound: str) -> Bound:
    """The theorem of this name about the way in which the sample of the mechanism is drawn."""
    return (mechanism.scheme.bounds.get(bound) if isinstance(mechanism, Sampled) else None) or BOUNDS[bound]


# ---- what is assumed


def assumed(run: Expression) -> str:
    """What must be true of the run, and no theorem can know, as a sentence.

    >>> from cumulant.mechanisms.promises import PureDP
    >>> assumed(PureDP(1))
    'Assumed: all parameters were fixed in advance, not chosen from earlier outputs.'
    """
    schemes = [mechanism.scheme for mechanism in nested(run) if isinstance(mechanism, Sampled)]
    assumptions = list(dict.fromkeys(scheme.assumed or f"every sample is drawn as {scheme} says" for scheme in schemes))
    if any("sensitivity" in mechanism.domains for mechanism in nested(run)):
        assumptions.append(
            {
                Relation.REPLACE_ONE: "sensitivities are replace-one, so clipping to norm C counts as 2C",
                Relation.ADD_REMOVE: "sensitivities are add-remove, so clipping to norm C counts as C",
                Relation.ANY: "clipping to norm C has sensitivity 2C under replace-one and C under add-remove",
            }[run.relation]
        )
    if functions := given_as_functions(run):
        assumptions.append(f"what the Python function of {functions[0]} says is true of every pair of neighbours")
    assumptions.append("all parameters were fixed in advance, not chosen from earlier outputs")
    return f"Assumed: {'; '.join(assumptions)}."


def given_as_functions(run: Expression) -> list[str]:
    """The mechanisms that hold a Python function, and therefore have no text."""
    return [name(mechanism) for mechanism in nested(run) if not isinstance(mechanism, Sampled) and _wordless(mechanism)]


def _wordless(mechanism: Mechanism) -> bool:
    try:
        mechanism.notation()
    except NotationError:
        return True
    return False


def is_sampled(run: Expression) -> bool:
    """Whether anything in it runs on a sample."""
    return any(isinstance(mechanism, Sampled) for mechanism in run.terms)


def nested(run: Expression) -> Iterator[Mechanism]:
    """Every mechanism in the run, those that run on samples after the one that draws the sample."""
    for mechanism in run.terms:
        yield mechanism
        if isinstance(mechanism, Sampled):
            yield from nested(mechanism.inner)
