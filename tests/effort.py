"""How long random searches in the tests go on: short in `make test`, long in `make hunt-long`.

A case that a person chose always runs. A search that draws its cases draws `drawn(n)` of them: n with `$CUMULANT_EFFORT`
unset, and that many times more with a larger one. Where every case of one list is asked every question of another,
`share(questions, place)` takes one question per case in turn, so that each is asked; a hunt asks all of all.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

EFFORT = int(os.environ.get("CUMULANT_EFFORT", "1"))
"""Multiplies what is drawn; `make hunt-long` sets it to 5."""


def drawn(count: int) -> int:
    """Return how many cases a random search draws."""
    return count * EFFORT


def share(questions: Sequence[T], place: int, count: int = 1) -> list[T]:
    """Return the questions for the case at this place: `count` of them in turn, or all of them in a hunt."""
    if EFFORT > 1:
        return list(questions)
    return [each for i, each in enumerate(questions) if (i - count * place) % len(questions) < count]
