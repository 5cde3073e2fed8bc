"""`cumulant explain NAME`: a bound, a method, a scheme, a mechanism, a name of an option, or a word of the glossary."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import Annotated, Any, NamedTuple

import typer

from cumulant.accounting.choices import BOUND_NAMES, CONVERSION_NAMES, METHOD_NAMES
from cumulant.cli.card import Card, columns_of_output, print_card, wrap
from cumulant.cli.completion import MECHANISM_NAMES, SCHEME_NAMES, complete
from cumulant.cli.dpsgd import CORRELATED_NAMES, SAMPLING_NAMES
from cumulant.cli.fedavg import CHECKED as CLIENTS_CHECKED
from cumulant.cli.glossary import GLOSSARY
from cumulant.errors import InputError

METHODS = {
    "best": "Ask every method that applies and report the smallest epsilon. This is the default.",
    "exact": "Track the whole privacy-loss distribution. It is usually tighter than Rényi divergences.",
    "rdp": "Add up Rényi divergences by the best bounds, and convert them at the best order. It is fast.",
    "paper": "Do what the paper's analytical moments accountant does: Theorem 9 and the classic conversion.",
    "naive": "Add up epsilons and deltas. It is the weakest composition theorem, for comparison.",
    "strong": "Use the simplified composition theorem of Kairouz, Oh and Viswanath, for comparison.",
    "optimal": "Use the exact composition theorem of Kairouz, Oh and Viswanath for (epsilon, delta) promises.",
}
"""An explanation of each method, in the words of a user."""

MODES = {
    "adaptive": "Runs may be chosen after looking at earlier answers. Every mechanism with a curve can be charged.",
    "gaussian": "Runs may be chosen after looking at earlier answers. They add Gaussian noise or are pure; nothing is sampled.",
    "planned": "Everything that may run is named when the account is opened. The exact epsilon of the plan is used.",
}
"""An explanation of each rule of a ledger's account, in the words of a user."""

COMBINATIONS = {
    "parallel": "Runs on disjoint parts of the data. The worst part counts. A replaced record may change two parts.",
    "|": "Runs on disjoint parts of the data. The worst part counts if one record is added or removed.",
    "+": "Two runs on the same data. Their losses add up.",
    "*": "One run, repeated: Gaussian(sigma=5) * 10 has ten rounds.",
    "@": "A run on a random sample, or in a wrapper such as Group, User, Shuffle or RepeatAndSelect.",
}
"""An explanation of each combinator of an expression, in the words of a user."""

_COMBINED = {
    "parallel": 'parallel(Laplace(scale=2), Laplace(scale=3), relation="replace-one")',
    "|": "Laplace(scale=2) | Laplace(scale=3)",
    "+": "Laplace(scale=2) + Gaussian(sigma=5)",
    "*": "Gaussian(sigma=5) * 10",
    "@": "Gaussian(sigma=5) @ Poisson(rate=1%)",
}
"""An expression with each of them."""

ATTACKS = {
    "membership": "Tell whether one record was used.",
    "attribute": "Guess an unknown attribute of one record whose other attributes are known.",
    "reidentification": "Name the person behind a record, out of several candidates.",
    "reconstruction": "Rebuild one record within a tolerance.",
    "singling-out": "Find a description that fits one record alone.",
}
"""An explanation of each attack of `cumulant risk`, in the words of a user."""

_NEAREST = 3
"""Names that are suggested for an unknown one."""

_SHORTEST = 3
"""Letters of a name that is looked for in the texts of the glossary; convention: shorter ones are in most texts."""


class Entry(NamedTuple):
    """One explanation: what kind of thing it is about, and rows of a label and a text."""

    name: str
    kind: str
    rows: list[tuple[str, str]]


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A bound, method, scheme, mechanism, way to form batches or word; without it, all names.",
            show_default=False,
            autocompletion=complete(
                (
                    *(*BOUND_NAMES, *METHOD_NAMES, *CONVERSION_NAMES, *SCHEME_NAMES, *MECHANISM_NAMES),
                    *(*SAMPLING_NAMES, *CORRELATED_NAMES, *COMBINATIONS, *ATTACKS, *MODES, *GLOSSARY),
                )
            ),
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list of what has this name.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the first sentence alone.")] = False,
) -> None:
    """Explain a bound, a method, a scheme or a word.

    \b
    Examples:
      cumulant explain theorem9
      cumulant explain Poisson
      cumulant explain shuffled
      cumulant explain "noise multiplier"
    """
    entries = known_entries()
    if name is None:
        _print_names(entries, as_json, quiet)
        return
    found = [each for each in entries if _key(each.name) == _key(name)]
    if not found:
        raise InputError(_unknown(name, entries))
    if quiet:
        typer.echo(found[0].rows[0][1].partition(". ")[0].rstrip("."))
    elif as_json:
        typer.echo(json.dumps([{"name": each.name, "kind": each.kind, **dict(each.rows)} for each in found]))
    else:
        for number, each in enumerate(found):
            typer.echo("") if number else None
            card = Card(f"{each.name}   {each.kind}")
            for label, value in each.rows:
                card.add(label, value)
            print_card(card)


def known_entries() -> list[Entry]:
    """Return everything that can be explained, by kind."""
    from cumulant.bounds.table import BOUNDS
    from cumulant.conversion.conversions import CONVERSIONS
    from cumulant.mechanisms.mechanism import MECHANISMS
    from cumulant.sampling.scheme import SCHEMES

    found = [Entry(name, "a method", [("Does", text), ("Use", f"--method {name}")]) for name, text in METHODS.items()]
    for name, bound in BOUNDS.items():
        kind = "an amplification bound" if bound.upper else "a lower bound on samples"
        rows = [("Says", bound.statement), ("Assumes", bound.assumptions), ("Proved in", bound.citation)]
        found.append(Entry(name, kind, [*rows, ("Use", f"--bound {name}")]))
    for name, conversion in CONVERSIONS.items():
        said = [("Does", "Convert Rényi divergences to (epsilon, delta)."), ("Proved in", conversion.citation)]
        found.append(Entry(name, "a conversion", [*said, ("Use", f"--conversion {name}")]))
    found += [_class_entry(name, each, "a sampling scheme or wrapper", "after @") for name, each in SCHEMES.items()]
    found += [_class_entry(name, each, "a mechanism", "in an expression") for name, each in MECHANISMS.items()]
    found += [
        Entry(name, "a way to combine runs", [("Is", text), ("Use", f"in an expression: {_COMBINED[name]}")])
        for name, text in COMBINATIONS.items()
    ]
    found += _batch_entries()
    found += [
        Entry(name, "an attack", [("Does", text), ("Use", f"cumulant risk … --kind {name}")])
        for name, text in ATTACKS.items()
    ]
    for name, text in MODES.items():
        found.append(
            Entry(name, "a rule of a ledger's account", [("Does", text), ("Use", f"ledger create … --mode {name}")])
        )
    found += [Entry(word, "a word", [("Means", text)]) for word, text in GLOSSARY.items()]
    return found


def _batch_entries() -> list[Entry]:
    """Return the ways to form batches, for independent and for correlated noise, and those to sample clients."""
    from cumulant.training import fedavg, sgd

    found = []
    for loops, option in ((sgd.SAMPLINGS, ""), (sgd.CORRELATED, " --noise-bands 1,0.5")):
        for name, loop in loops.items():
            spelled = f'"{name}"' if " " in name else name
            rows = [
                ("Means", _sentence(loop.checked)),
                ("Protects", loop.relation.protected_for(1)),
                ("Assumes", loop.assumes),
            ]
            found.append(
                Entry(name, "a way to form batches", [*rows, ("Use", f"dpsgd … --sampling {spelled}{option}")])
            )
    for name, (relation, assumes) in fedavg.SAMPLINGS.items():
        protected = relation.protected_for(1).replace("record", "client")
        rows = [("Means", _sentence(CLIENTS_CHECKED[name])), ("Protects", protected), ("Assumes", assumes)]
        found.append(Entry(name, "a way to sample clients", [*rows, ("Use", f"fedavg … --sampling {name}")]))
    return found


def _sentence(words: str) -> str:
    """Return some words as a sentence.

    >>> _sentence("each record is sampled")
    'Each record is sampled.'
    """
    return f"{words[:1].upper()}{words[1:]}."


def _class_entry(name: str, described: Any, kind: str, place: str) -> Entry:
    """Return the explanation of a class: the first paragraphs of its docstring, and what must be true."""
    text = (described.__doc__ or "").partition(">>>")[0]
    paragraphs = [" ".join(each.split()).replace("`", "") for each in text.split("\n\n") if each.strip()]
    rows = [("Is", " ".join(paragraphs[:2]))]
    if isinstance(assumed := getattr(described, "assumed", ""), str) and assumed:
        rows.append(("Check", assumed))
    example = re.search(rf"\b{name}\([^()]*\)", described.__doc__ or "")
    rows.append(("Use", f"{place}: {example[0] if example else f'{name}(...)'}"))
    return Entry(name, kind, rows)


def _key(name: str) -> str:
    """Return a name without case, spaces, hyphens and underscores.

    >>> _key("Theorem 9-max") == _key("theorem9_max")
    True
    """
    return re.sub(r"[\s_-]", "", name).lower()


def _unknown(name: str, entries: list[Entry]) -> str:
    """Return what is said about an unknown name: where Python explains it, or the nearest ones."""
    import cumulant

    if name in cumulant.__all__:
        return f"{name} is not a word of the shell; in Python, help(cumulant.{name}) explains it"
    names = {_key(each.name): each.name for each in reversed(entries)}  # the first of two equal names is shown
    close = [names[each] for each in get_close_matches(_key(name[:60]), names, n=_NEAREST, cutoff=0.5)]
    named = rf"(?<![\w-]){re.escape(name[:60])}(?![\w-])"  # such as DP-FTRL, which the text about correlated noise has
    about = [
        word for word, text in GLOSSARY.items() if len(name) >= _SHORTEST and re.search(named, text, re.IGNORECASE)
    ]
    found = list(dict.fromkeys([*about, *close]))[:_NEAREST]
    meant = f"did you mean {', '.join(found)}?" if found else "`cumulant explain` lists all names"
    return f"there is nothing called {name[:60]!r}; {meant}"


def _print_names(entries: list[Entry], as_json: bool, quiet: bool) -> None:
    """Print all names by kind."""
    if as_json:
        typer.echo(json.dumps([{"name": each.name, "kind": each.kind} for each in entries]))
        return
    if quiet:
        typer.echo("\n".join(dict.fromkeys(each.name for each in entries)))
        return
    for kind in dict.fromkeys(each.kind for each in entries):
        names = ", ".join(each.name.replace(" ", "\u00a0") for each in entries if each.kind == kind)
        typer.echo(f"{kind}:")
        for line in wrap(names, columns_of_output() - 2):
            typer.echo("  " + line.replace("\u00a0", " "))
