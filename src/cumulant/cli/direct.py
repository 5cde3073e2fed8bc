"""The two commonest questions without a parser of command lines.

A question in the usual words is answered at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from cumulant.accounting.choices import DEFAULT_ACCURACY, DEFAULT_METHOD

_GIVEN = {"epsilon": "--delta", "delta": "--epsilon"}
_OPTIONS = ("--method", "--bound", "--conversion", "--accuracy")
_FLAGS = ("--explain", "--json", "--quiet", "--prove")


class LineQuestion(NamedTuple):
    """A question of the command line.

    `cumulant epsilon` finds epsilon from a delta, `cumulant delta` the reverse.
    """

    found: str
    expression: str
    value: str
    method: str = DEFAULT_METHOD
    bound: str | None = None
    conversion: str | None = None
    accuracy: str = str(DEFAULT_ACCURACY)
    explain: bool = False
    json: bool = False
    quiet: bool = False
    prove: bool = False


def read_question(arguments: Sequence[str]) -> LineQuestion | None:
    """Read the question; None for help, mistakes and everything else that needs a parser.

    >>> read_question(["epsilon", "PureDP(1)", "--delta", "0"]).value
    '0'
    >>> read_question(["epsilon", "PureDP(1)", "--help"]) is None
    True
    """
    if not arguments or arguments[0] not in _GIVEN or "_CUMULANT_COMPLETE" in os.environ:
        return None
    found, words = arguments[0], list(arguments[1:])
    given: dict[str, str] = {}
    flags: set[str] = set()
    expressions: list[str] = []
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word in _FLAGS:
            flags.add(word)
        elif word.startswith("-"):
            if name not in (_GIVEN[found], *_OPTIONS) or name in given or not (equals or words):
                return None
            given[name] = value if equals else words.pop(0)
            if given[name].startswith("-"):
                return None
        else:
            expressions.append(word)
    if len(expressions) != 1 or _GIVEN[found] not in given:
        return None
    options = {name[2:]: given[name] for name in _OPTIONS if name in given}
    return LineQuestion(
        found,
        expressions[0],
        given[_GIVEN[found]],
        **options,
        explain="--explain" in flags,
        json="--json" in flags,
        quiet="--quiet" in flags,
        prove="--prove" in flags,
    )
