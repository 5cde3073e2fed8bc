"""The catalogue of the page: every registered mechanism and scheme, each with an example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from cumulant.errors import CumulantError
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.notation import parse
from cumulant.sampling.scheme import SCHEMES

_AROUND = ("PureDP(1) @ {}", "MatrixMechanism(bands=[1], steps=1000, sigma=4) @ {}")
"""Runs that show what a scheme is; one that says in which steps a record takes part goes around a whole run."""


COMMON = (
    "Gaussian",
    "Laplace",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "RandomizedResponse",
    "ExponentialMechanism",
    "NoisyMax",
    "SparseVector",
    "PartitionSelection",
    "MatrixMechanism",
    "PureDP",
    "Poisson",
    "WithoutReplacement",
    "RandomAllocation",
    "ShuffledBatches",
    "Shuffle",
    "Group",
    "User",
)
"""Names that are offered first, in this order (convention: those of most statistics and training runs)."""


@cache
def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Return names, one sentence about each, and parameters with values that work; common ones come first.

    `more` lists the parameters that may be left out, with their defaults; an empty default means that none is set.

    >>> laplace = next(each for each in catalogue()["mechanisms"] if each["name"] == "Laplace")
    >>> laplace["parameters"], laplace["common"], laplace["more"][0]
    ([{'name': 'scale', 'value': '2'}], True, {'name': 'sensitivity', 'value': '1'})
    """
    return {
        "mechanisms": list(_entries(MECHANISMS, ("{}",))),
        "schemes": list(_entries(SCHEMES, _AROUND)),
    }


def _entries(known: Mapping[str, type], forms: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for name, kind in sorted(known.items(), key=lambda item: _place(item[0])):
        examples = [
            (text, run)
            for form in forms
            for text in _calls(name, _docstrings(kind))
            if (run := _parse_or_none(form.format(text))) is not None
        ]
        if not examples:  # what shows no example is typed as an expression
            continue
        text, run = min(examples, key=lambda example: len(example[0]))
        shown = list(_parameters(kind, text[len(name) + 1 : -1]))
        yield {
            "name": name,
            "about": _about(name, kind),
            "common": name in COMMON,
            "relation": str(run.relation),
            "parameters": shown,
            "more": list(_more(kind, {each["name"] for each in shown})),
        }


def _place(name: str) -> tuple[int, str]:
    """Return the sorting key of a name: common ones in their order, all others by the alphabet."""
    return (COMMON.index(name) if name in COMMON else len(COMMON), name.lower())


def _more(kind: type, shown: set[str]) -> Iterator[dict[str, str]]:
    """Yield the parameters that the example leaves out and that a text can state, with their defaults."""
    for name, each in inspect.signature(kind).parameters.items():
        if name not in shown and each.annotation != "Any":  # a Python object has no text
            default = "" if each.default in (None, inspect.Parameter.empty) else each.default
            yield {"name": name, "value": str(default)}


def _about(name: str, kind: type) -> str:
    """Return the first sentence about a class, or about the function that makes it."""
    text = inspect.getdoc(getattr(inspect.getmodule(kind), name, kind)) or name
    return " ".join(text.split("\n\n")[0].replace("`", "").split()).split(". ")[0].rstrip(".")


def _docstrings(kind: type) -> str:
    """Return the docstrings of a class, its constructors and its module."""
    module = inspect.getmodule(kind)
    documented = [
        kind,
        module,
        *(getattr(kind, name) for name, value in vars(kind).items() if isinstance(value, classmethod)),
    ]
    functions = [each for _, each in inspect.getmembers(module, inspect.isfunction)]
    return "\n".join(inspect.getdoc(each) or "" for each in (*documented, *functions))


def _calls(name: str, text: str) -> Iterator[str]:
    """Yield every call of this name in a text, up to the bracket that closes it."""
    for found in re.finditer(rf"\b{name}\(", text):
        depth = 0
        for place in range(found.end() - 1, len(text)):
            depth += (text[place] in "([") - (text[place] in ")]")
            if depth == 0:
                yield " ".join(text[found.start() : place + 1].replace("cm.", "").split())
                break


def _parse_or_none(text: str) -> Any:
    try:
        return parse(text)
    except CumulantError:
        return None


def _parameters(kind: type, inside: str) -> Iterator[dict[str, str]]:
    """Yield names and values of a call; a value without a name has that of its place."""
    names = list(inspect.signature(kind).parameters)
    for place, part in enumerate(_parts(inside)):
        name, equals, value = re.sub(r'"([\d./e-]+)"', r"\1", part).partition("=")  # the notation needs no quotes
        yield {"name": name.strip(), "value": value.strip()} if equals else {"name": names[place], "value": part}


def _parts(inside: str) -> list[str]:
    """Split a text at commas outside of brackets."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", inside) if part.strip()]
