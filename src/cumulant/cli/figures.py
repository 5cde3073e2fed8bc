"""`cumulant figures`: both figures of the paper, drawn anew."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def figures(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The directory to write into; made if it does not exist.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the files written.")] = False,
) -> None:
    """Both figures of the paper as PNG and SVG, a CSV file per panel, and claims.md. Needs cumulant[plot].

    Each figure is drawn as in the paper and once more with bounds the paper did not have. claims.md says of every claim
    about the figures what was found here and whether it holds.

    \b
    Example:
      cumulant figures --out figures
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from cumulant.figures.files import STEPS, write

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=STEPS)
        done = -1

        def tell(what: str) -> None:
            nonlocal done
            done += 1
            progress.update(task, completed=done, description=what)

        paths = write(out, tell)
    if as_json:
        typer.echo(json.dumps({"files": [str(path) for path in paths]}))
        return
    typer.echo(f"{len(paths)} files in {out}; start with {out / 'claims.md'}")
