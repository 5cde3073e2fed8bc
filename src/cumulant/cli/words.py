"""Answers in words, for a terminal: which sentences, in which order, how wide."""

from __future__ import annotations

import shutil
import textwrap

from cumulant.accounting import attack
from cumulant.accounting import statement as words
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.parts import Ran
from cumulant.domains import Exact

WIDEST_LINE = 110
ONE_PERCENT = Exact("0.01")


def answer(found: Guarantee) -> str:
    """The answer of `cumulant epsilon` and `cumulant delta`."""
    plan = found.proof
    if not words.says_something(plan):
        return wrapped(words.headline(plan), words.what_ran(plan.run))
    means: tuple[str, ...] = ()
    if found.asked == "delta":
        reach = attack.in_brief(plan.run, ONE_PERCENT, found.method, found.epsilon, found.delta)
        means = tuple(words.attacker(plan.run, *reach))
    return wrapped(words.headline(plan), words.doubled(plan.run), words.interval(plan), *means, *words.support(plan))


def explanation(found: Guarantee) -> str:
    """The answer with `--explain`."""
    return wrapped(*found.explain().splitlines())


def divergence(run: Ran, bound: str) -> str:
    """What stands below the table of `cumulant rdp`."""
    return wrapped(*words.divergence(run, bound))


def wrapped(*sentences: str) -> str:
    """Each sentence on lines of its own, no wider than is easily read; empty ones are left out."""
    width = min(shutil.get_terminal_size().columns, WIDEST_LINE)
    return "\n".join(
        textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)
        for sentence in sentences
        if sentence
    )
