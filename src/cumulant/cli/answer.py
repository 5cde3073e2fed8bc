"""The printed answer and the exit code of a question on the command line."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap

from cumulant.accounting import attacks
from cumulant.accounting import text as words
from cumulant.accounting.choices import as_conversion, as_method
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.numbers import rounded_down, rounded_up
from cumulant.accounting.run import RunRecord
from cumulant.cli.direct import LineQuestion
from cumulant.cli.failures import ExitCode
from cumulant.domains import DELTA, GUARANTEED, Exact
from cumulant.notation import parse
from cumulant.progress import patient

# Answers in words, for a terminal: which sentences, in which order, how wide.

WIDEST_LINE = 110
ONE_PERCENT = Exact("0.01")

QUIET_DIGITS = 10
"""Significant digits of a number that stands alone: a script may want more than a reader (convention)."""


def answer_text(found: Guarantee) -> str:
    """Return the answer of `cumulant epsilon` and `cumulant delta`.

    It has the number, its interval, what it means, what is assumed.
    """
    return wrap_sentences(*_answer(found))


def _answer(found: Guarantee) -> list[str]:
    plan = found.proof
    if not words.says_something(plan):
        return [words.headline(plan), words.what_ran(plan.run)]
    means: tuple[str, ...] = ()
    if found.asked == "delta":
        reach = attacks.in_brief(plan.run, ONE_PERCENT, found.method, found.epsilon, found.delta)
        means = tuple(words.attacker(plan.run, *reach))
    return [words.headline(plan), words.doubled(plan.run), words.interval(plan), *means, *words.support(plan)]


def explanation(found: Guarantee) -> str:
    """Return the answer with `--explain`: the usual one, and what proves it."""
    said = _answer(found)
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
    width = min(shutil.get_terminal_size().columns, WIDEST_LINE)
    return "\n".join(
        textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)
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
            method=as_method(asked.method),
            bound=asked.bound,
            conversion=as_conversion(asked.conversion),
            accuracy=asked.accuracy,
            prove=asked.prove,
        )
        text = _text(found, asked)
    sys.stdout.write(f"{text}\n")
    return ExitCode.NO if math.isinf(found.epsilon) else ExitCode.OK


def _text(found: Guarantee, asked: LineQuestion) -> str:
    if asked.quiet:
        return bare_number(found.epsilon if asked.found == "epsilon" else found.delta)
    if asked.json:
        fields = found.to_dict()
        return json.dumps(fields | {"explanation": found.explain()} if asked.explain else fields)
    return explanation(found) if asked.explain else answer_text(found)
