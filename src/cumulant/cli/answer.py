"""The printed answer and the exit code of a question on the command line."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from cumulant.accounting import attacks
from cumulant.accounting import text as words
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.numbers import brief, rounded_down, rounded_up
from cumulant.accounting.run import RunRecord
from cumulant.cli.card import Card, as_shown, columns_of_output, patient, print_card
from cumulant.cli.direct import LineQuestion
from cumulant.cli.failures import ExitCode
from cumulant.domains import DELTA, GUARANTEED, Exact
from cumulant.notation import parse

if TYPE_CHECKING:
    from cumulant.accounting.choices import ConversionName, Method

# Answers in words, for a terminal: which sentences, in which order, how wide.

LONGEST_RUN = 320
"""Characters of a run on a card, so that piped answers keep to twelve lines; --json has all of them."""

ONE_PERCENT = Exact("0.01")

NO_LOWER_END = "no lower end is known"
"""The verdict on a run whose bound may be far above the truth."""

QUIET_DIGITS = 10
"""Significant digits of a number that stands alone: a script may want more than a reader (convention)."""


def answer_card(found: Guarantee) -> Card:
    """Return the answer of `cumulant epsilon` and `cumulant delta`: the number, whom it protects, what it means."""
    plan = found.proof
    question, value = plan.question, plan.answer.value
    sign, given = ("ε", "δ") if question.asked == "delta" else ("δ", "ε")
    card = Card(f"{sign} = {rounded_up(value)}   at {given} = {question.value}")
    if not words.says_something(plan):
        card.verdict, card.tone = words.headline(plan).partition(": ")[2].rstrip("."), "bad"
        card.add("Run", plan.run.text)
        return card
    card.verdict = verdict_of(found)
    if found.rigour == "estimated":
        card.tone = "open"
    describe_run(card, plan.run, found)
    return card


def verdict_of(found: Guarantee) -> str:
    """Return how well a number is known, and the lower end where one is known."""
    said = _RIGOUR[found.rigour]
    if found.proof.answer.value == 0:
        said += f"; the true {found.proof.question.wanted} is 0"
    elif found.lower:
        said += f"; no accountant can report less than {rounded_down(found.lower)}"
    elif found.proof.run.surrogate:
        said += f"; {NO_LOWER_END}"
    return said


_RIGOUR = {"proved": "proved", "bounded": "bounded", "estimated": "estimated, not proved"}
"""The word of the verdict for each level of rigour."""


def describe_run(
    card: Card,
    run: RunRecord,
    found: Guarantee | None = None,
    *,
    assumptions: bool = True,
    questions: Sequence[str] = (),
) -> None:
    """Add the rows that every answer about a run has: whom it protects, what it means, the run, what to check or ask."""
    card.add("Protects", words.protected(run))
    if found is not None and words.says_something(found.proof):
        caught, _ = attacks.in_brief(run, ONE_PERCENT, found.method, found.epsilon, found.delta)
        card.add("Means", words.membership(caught, words.attacked(run)))
    card.add("Run", brief(run.text, LONGEST_RUN))  # its middle is left out where it would fill the screen
    card.add("Careful", words.clipping_warning(run))
    if assumptions:
        card.add("Check these", words.short_assumptions(run))
    card.add("Ask them", questions)
    card.add("More", "--explain  --json")


def explanation(found: Guarantee, least: str = "") -> str:
    """Return what `--explain` adds below the card: the proof, and what is assumed, in full.

    `least` is a sentence about a lower end that the guarantee does not have, if the caller knows one.
    """
    plan = found.proof
    if not words.says_something(plan):
        return wrap_sentences(words.what_ran(plan.run))
    means: tuple[str, ...] = ()
    if found.asked == "delta":
        reach = attacks.in_brief(plan.run, ONE_PERCENT, found.method, found.epsilon, found.delta)
        means = tuple(words.attacker(plan.run, *reach))
    said = [words.headline(plan), words.doubled(plan.run), least or words.interval(plan), *means, *words.support(plan)]
    return wrap_sentences(*said, *(line for line in found.explain().splitlines() if line not in said))


def bare_number(value: float, upper: bool = True) -> str:
    """Return the number as `--quiet` prints it, in every command.

    Ten digits, rounded so that it still holds.

    >>> bare_number(1.6362122494542497), bare_number(1.6362122494542497, upper=False)
    ('1.63621225', '1.636212249')
    """
    return rounded_up(float(value), QUIET_DIGITS) if upper else rounded_down(float(value), QUIET_DIGITS)


def divergence(run: RunRecord, bound: str) -> str:
    """Return the sentences below the table of `cumulant rdp`."""
    return wrap_sentences(*words.divergence(run, bound))


def swap_hint(epsilon: float, delta: float) -> str:
    """Ask whether two numbers were swapped, if they look like it; else return an empty text.

    >>> swap_hint(1e-6, 0.5)
    'note: epsilon = 1e-6 and delta = 0.5: are epsilon and delta swapped? delta is the small one, a probability'
    """
    if not 0 < epsilon < delta / 100 < 1:
        return ""
    numbers = f"epsilon = {rounded_up(epsilon)} and delta = {rounded_up(delta)}"
    return f"note: {numbers}: are epsilon and delta swapped? delta is the small one, a probability"


def wrap_sentences(*sentences: str) -> str:
    """Wrap each sentence to lines of its own; empty ones are left out."""
    width, encoding = columns_of_output(), getattr(sys.stdout, "encoding", None)
    return "\n".join(
        textwrap.fill(as_shown(sentence, encoding), width, break_long_words=False, break_on_hyphens=False)
        for sentence in sentences
        if sentence
    )


def answer(asked: LineQuestion) -> int:
    """Print the guarantee in the requested form; return 1 if no epsilon is finite."""
    run = parse(asked.expression)
    by_delta = asked.found == "epsilon"
    given = DELTA.check("delta", asked.value) if by_delta else GUARANTEED.check("epsilon", asked.value)
    with patient("looking for the best bound"):
        found = run.guarantee(
            delta=given if by_delta else None,
            epsilon=None if by_delta else given,
            method=cast("Method", asked.method),  # the question refuses a name that it does not know
            bound=asked.bound,
            conversion=cast("ConversionName | None", asked.conversion),
            accuracy=asked.accuracy,
            prove=asked.prove,
        )
        text = _text(found, asked)
        card = answer_card(found) if text is None else None
        proof = explanation(found) if card is not None and asked.explain else ""
    if text is not None:
        sys.stdout.write(f"{text}\n")
    if card is not None:
        print_card(card, asked.explain)
    if proof:
        sys.stdout.write(f"\n{proof}\n")
    return ExitCode.NO if math.isinf(found.epsilon) else ExitCode.OK


def _text(found: Guarantee, asked: LineQuestion) -> str | None:
    """Return the answer for a program; None where a person asks."""
    if asked.quiet:
        return bare_number(found.epsilon if asked.found == "epsilon" else found.delta)
    if asked.json:
        fields = found.to_dict()
        return json.dumps(fields | {"explanation": found.explain()} if asked.explain else fields)
    return None
