"""Answers in words, for a terminal: which sentences, in which order, how wide."""

from __future__ import annotations

import shutil
import textwrap

from cumulant.accounting import attack
from cumulant.accounting import statement as words
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.parts import Ran
from cumulant.accounting.printed import rounded_down, rounded_up
from cumulant.domains import Exact

WIDEST_LINE = 110
ONE_PERCENT = Exact("0.01")

QUIET_DIGITS = 10
"""Significant digits of a number that stands alone: a script may want more than a reader (convention)."""


def answer(found: Guarantee) -> str:
    """The answer of `cumulant epsilon` and `cumulant delta`: the number, its interval, what it means, what is assumed."""
    return wrapped(*_answer(found))


def _answer(found: Guarantee) -> list[str]:
    plan = found.proof
    if not words.says_something(plan):
        return [words.headline(plan), words.what_ran(plan.run)]
    means: tuple[str, ...] = ()
    if found.asked == "delta":
        reach = attack.in_brief(plan.run, ONE_PERCENT, found.method, found.epsilon, found.delta)
        means = tuple(words.attacker(plan.run, *reach))
    return [words.headline(plan), words.doubled(plan.run), words.interval(plan), *means, *words.support(plan)]


def explanation(found: Guarantee) -> str:
    """The answer with `--explain`: the same, and what proves it besides."""
    said = _answer(found)
    return wrapped(*said, *(line for line in found.explain().splitlines() if line not in said))


def bare_number(value: float, upper: bool = True) -> str:
    """The number as `--quiet` prints it, in every command: ten digits, rounded so that it still holds.

    >>> bare_number(1.6362122494542497), bare_number(1.6362122494542497, upper=False)
    ('1.63621225', '1.636212249')
    """
    return rounded_up(float(value), QUIET_DIGITS) if upper else rounded_down(float(value), QUIET_DIGITS)


def divergence(run: Ran, bound: str) -> str:
    """What stands below the table of `cumulant rdp`."""
    return wrapped(*words.divergence(run, bound))


def swapped(epsilon: float, delta: float) -> str:
    """A question, where two numbers look as if each stood in the place of the other; else empty.

    >>> swapped(1e-6, 0.5)
    'note: epsilon = 1e-6 and delta = 0.5: are epsilon and delta swapped? delta is the small one, a probability'
    """
    if not 0 < epsilon < delta / 100 < 1:
        return ""
    numbers = f"epsilon = {rounded_up(epsilon)} and delta = {rounded_up(delta)}"
    return f"note: {numbers}: are epsilon and delta swapped? delta is the small one, a probability"


def wrapped(*sentences: str) -> str:
    """Each sentence on lines of its own, no wider than is easily read; empty ones are left out."""
    width = min(shutil.get_terminal_size().columns, WIDEST_LINE)
    return "\n".join(
        textwrap.fill(sentence, width, break_long_words=False, break_on_hyphens=False)
        for sentence in sentences
        if sentence
    )
