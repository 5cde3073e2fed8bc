"""`cumulant epsilon`, `cumulant delta` and `cumulant rdp`: questions about an expression."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Annotated

import typer

from cumulant.bounds.table import BOUNDS
from cumulant.cli import words
from cumulant.conversion.formulas import CONVERSIONS
from cumulant.domains import DELTA, EPSILON, Exact
from cumulant.errors import InputError
from cumulant.guarantee import rounded_up
from cumulant.mechanisms.base import DEFAULT_METHOD, METHODS
from cumulant.notation import parse

Run = Annotated[str, typer.Argument(metavar="EXPR", help="What ran, in quotes.", show_default=False)]
Method = Annotated[str, typer.Option(help=f"The accountant: {', '.join(METHODS)}.")]
Bound = Annotated[str | None, typer.Option(help=f"The amplification bound: {', '.join(BOUNDS)}. See: cumulant bounds.")]
Conversion = Annotated[str | None, typer.Option(help=f"From orders to epsilon: {', '.join(CONVERSIONS)}.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object; infinity is the text 'inf'.")]


def epsilon(
    expression: Run,
    delta: Annotated[str, typer.Option(help="A number in [0, 1); 0 asks for pure differential privacy.")],
    method: Method = DEFAULT_METHOD,
    bound: Bound = None,
    conversion: Conversion = None,
    as_json: Json = False,
) -> None:
    """The smallest epsilon that can be proved at this delta.

    \b
    Examples:
      cumulant epsilon "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --delta 1e-8
      cumulant epsilon "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --delta 1e-8 --method paper
      cumulant epsilon "Laplace(2) @ WithoutReplacement(sample=256, population=60000) * 9000 + PureDP(1)" --delta 1e-6
      cumulant epsilon "Laplace(scale=2) * 3" --delta 0 --json
    """
    run = parse(expression)
    asked = DELTA.check("delta", delta)
    found = run.guarantee(asked, method, bound, conversion)
    typer.echo(found.to_json() if as_json else words.epsilon(run, found, asked))


def delta(
    expression: Run,
    epsilon: Annotated[str, typer.Option(help="A number >= 0.")],
    method: Method = DEFAULT_METHOD,
    bound: Bound = None,
    conversion: Conversion = None,
    as_json: Json = False,
) -> None:
    """The smallest delta that can be proved at this epsilon.

    \b
    Examples:
      cumulant delta "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --epsilon 2
      cumulant delta "RandomizedResponse(p=0.6) * 10" --epsilon 1 --method paper --json
    """
    run = parse(expression)
    asked = EPSILON.check("epsilon", epsilon)
    least = run.delta(asked, method, bound, conversion)
    # Eq. (3) and (4) are solved by the same order, so the proof of this delta is the one that epsilon has at it.
    found = replace(run.guarantee(least, method, bound, conversion), epsilon=float(asked), delta=least)
    typer.echo(found.to_json() if as_json else words.delta(run, found, asked))


def rdp(
    expression: Run,
    orders: Annotated[str, typer.Option(help="Orders >= 1, separated by commas; 1 is KL and inf is pure.")],
    bound: Annotated[str, typer.Option(help=f"The amplification bound: {', '.join(BOUNDS)}.")] = "best",
    as_json: Json = False,
) -> None:
    """The Rényi divergence bound at these orders.

    \b
    Examples:
      cumulant rdp "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001)" --orders 2,3,64
      cumulant rdp "Laplace(scale=2) @ WithoutReplacement(rate=0.001)" --orders 1,2,64,inf --bound theorem9 --json
    """
    run = parse(expression)
    asked = [_order(text.strip()) for text in orders.split(",")]
    values = [float(value) for value in run.rdp(asked, bound)]
    if as_json:
        fields = {
            "orders": ["inf" if math.isinf(order) else order for order in asked],
            "values": ["inf" if math.isinf(value) else value for value in values],
            "bound": bound,
            "relation": str(run.relation),
            "run": str(run),
        }
        typer.echo(json.dumps(fields))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("order", "divergence")
    for order, value in zip(asked, values, strict=True):
        table.add_row(f"{order:g}", rounded_up(value, 6))
    Console().print(table)
    typer.echo(words.divergence(run, bound))


def _order(text: str) -> float:
    try:
        return math.inf if text == "inf" else float(Exact(text))
    except InputError as error:
        raise InputError(f"orders: {error}; separate orders by commas, like 2,3,64 or 2,inf") from None
