"""`cumulant epsilon`, `cumulant delta` and `cumulant rdp`: questions about an expression."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated

import typer

from cumulant.accounting.choices import BOUND_NAMES, DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.cli.card import MOST_COLUMNS, Card, columns_of_output, print_card
from cumulant.cli.completion import complete
from cumulant.cli.direct import LineQuestion
from cumulant.cli.options import Accuracy, Bound, Conversion, Explain, Json, Method, Prove, Quiet, Run
from cumulant.errors import HypothesisError, InputError

if TYPE_CHECKING:
    from cumulant.mechanisms.mechanism import Expression

# `cumulant bounds`: the table of amplification bounds.

FIELDS = ("name", "statement", "assumptions", "citation")


def bounds(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the names alone.")] = False,
) -> None:
    """List the amplification bounds that --bound can name.

    The list has what each says, what it assumes, where it is proved.

    \b
    Example:
      cumulant bounds --json
    """
    from cumulant.bounds.table import BOUNDS

    rows = [{field: getattr(row, field) for field in FIELDS} for row in BOUNDS.values()]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    if quiet:
        typer.echo("\n".join(BOUNDS))
        return
    if columns_of_output() < MOST_COLUMNS:  # four columns would cut formulas
        for number, row in enumerate(rows):
            typer.echo("") if number else None
            card = Card(row["name"])
            for label, field in zip(("Says", "Assumes", "Proved in"), FIELDS[1:], strict=True):
                card.add(label, row[field])
            print_card(card)
        return
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(*(Column(field, overflow="fold") for field in FIELDS), show_lines=True)
    for row in rows:
        table.add_row(*row.values())
    Console().print(table, markup=False, highlight=False)


def epsilon(
    expression: Run,
    delta: Annotated[str, typer.Option(help="A probability; 0 asks for pure differential privacy.")],
    method: Method = DEFAULT_METHOD,
    bound: Bound = None,
    conversion: Conversion = None,
    accuracy: Accuracy = str(DEFAULT_ACCURACY),
    explain: Explain = False,
    as_json: Json = False,
    quiet: Quiet = False,
    prove: Prove = False,
) -> int:
    """Find the epsilon of a run at a delta.

    It is the smallest one known to hold, rounded up. Exit code 1 where none is finite.

    \b
    Examples:
      cumulant epsilon "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000" --delta 1e-6
      cumulant epsilon "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000" --delta 1e-6 --explain
      cumulant epsilon "Laplace(2) @ WithoutReplacement(sample=256, population=60000) * 9000 + PureDP(1)" --delta 1e-6
      cumulant epsilon "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --delta 1e-8 --method paper
      cumulant epsilon "Laplace(scale=2) * 3" --delta 0 --json
      cumulant epsilon "Laplace(scale=2) * 20" --delta 1e-6 --prove
    """
    from cumulant.cli.answer import answer

    return answer(
        LineQuestion("epsilon", expression, delta, method, bound, conversion, accuracy, explain, as_json, quiet, prove)
    )


def delta(
    expression: Run,
    epsilon: Annotated[str, typer.Option(help="A number >= 0.")],
    method: Method = DEFAULT_METHOD,
    bound: Bound = None,
    conversion: Conversion = None,
    accuracy: Accuracy = str(DEFAULT_ACCURACY),
    explain: Explain = False,
    as_json: Json = False,
    quiet: Quiet = False,
    prove: Prove = False,
) -> int:
    """Find the delta of a run at an epsilon.

    It is the smallest one known to hold, rounded up.

    \b
    Examples:
      cumulant delta "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000" --epsilon 2
      cumulant delta "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000" --epsilon 2 --explain
      cumulant delta "RandomizedResponse(p=0.6) * 10" --epsilon 1 --method paper --json
    """
    from cumulant.cli.answer import answer

    return answer(
        LineQuestion("delta", expression, epsilon, method, bound, conversion, accuracy, explain, as_json, quiet, prove)
    )


def rdp(
    expression: Run,
    orders: Annotated[str, typer.Option(help="Orders >= 1, separated by commas; 1 is KL and inf is pure.")],
    bound: Annotated[
        str,
        typer.Option(
            help="The amplification bound, or all of them; see: cumulant bounds.",
            autocompletion=complete(("all", *BOUND_NAMES)),
        ),
    ] = "best",
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the numbers alone, one line for each bound.")] = False,
) -> None:
    """Print the Rényi divergence bound at some orders.

    \b
    Examples:
      cumulant rdp "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001)" --orders 2,3,64
      cumulant rdp "Laplace(scale=2) @ WithoutReplacement(rate=0.001)" --orders 1,2,64,inf --bound theorem9 --json
      cumulant rdp "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001)" --orders 2,64,400 --bound all
    """
    from cumulant.bounds.table import BOUNDS
    from cumulant.cli import answer as words
    from cumulant.notation import parse

    run = parse(expression)
    asked = [_order(text.strip()) for text in orders.split(",")]
    names = list(BOUNDS) if bound == "all" else []
    values = {name: _divergences(run, asked, name) for name in names} or {bound: list(run.rdp(asked, bound=bound))}
    shown = {name: None if row is None else [_plain(value) for value in row] for name, row in values.items()}
    if as_json:
        fields = {
            "orders": [_plain(order) for order in asked],
            "values": shown if bound == "all" else shown[bound],
            "bound": bound,
            "relation": str(run.relation),
            "run": str(run),
        }
        typer.echo(json.dumps(fields))
        return
    if quiet:
        for name, row in values.items():
            upper = BOUNDS[name].upper
            typer.echo(" ".join("-" if row is None else words.bare_number(value, upper) for value in row or [0.0]))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("order", "divergence")
    if bound == "all":  # orders across, so that bounds can be compared from line to line
        table = Table("bound", "", *(f"order {order:g}" for order in asked))
        for name, row in values.items():
            shown_row = ["-"] * len(asked) if row is None else [_round_value(name, value) for value in row]
            table.add_row(name, "<=" if BOUNDS[name].upper else ">=", *shown_row)
    else:
        for order, value in zip(asked, values[bound] or [], strict=True):
            table.add_row(f"{order:g}", _round_value(bound, value))
    Console(width=None if bound != "all" else max(80, 25 + 14 * len(asked))).print(table)
    typer.echo(words.divergence(run.record(), bound))


def _divergences(run: Expression, orders: list[float], bound: str) -> list[float] | None:
    """Return the curve by this bound, or None where it does not apply."""
    try:
        return list(run.rdp(orders, bound=bound))
    except HypothesisError:
        return None


def _plain(value: float) -> float | str:
    return "inf" if math.isinf(value) else float(value)


def _round_value(bound: str, value: float) -> str:
    from cumulant.accounting.numbers import rounded_down, rounded_up
    from cumulant.bounds.table import BOUNDS

    return rounded_up(float(value), 6) if BOUNDS[bound].upper else rounded_down(float(value), 6)


def _order(text: str) -> float:
    from cumulant.domains import Exact

    try:
        return math.inf if text == "inf" else float(Exact(text))
    except InputError as error:
        raise InputError(f"orders: {error}; separate orders by commas, like 2,3,64 or 2,inf") from None
