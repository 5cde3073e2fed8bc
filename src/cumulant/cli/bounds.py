"""`cumulant bounds`: the table of amplification bounds."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from cumulant.bounds.table import BOUNDS

FIELDS = ("name", "statement", "assumptions", "citation")


def bounds(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the names alone.")] = False,
) -> None:
    """The amplification bounds that --bound can name: what each says, what it assumes, where it is proved.

    \b
    Example:
      cumulant bounds --json
    """
    rows = [{field: getattr(row, field) for field in FIELDS} for row in BOUNDS.values()]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    if quiet:
        typer.echo("\n".join(BOUNDS))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*FIELDS, show_lines=True)
    for row in rows:
        table.add_row(*row.values())
    Console().print(table, markup=False, highlight=False)
