"""`cumulant figures`: both figures of the paper, drawn anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cumulant.progress import told


def figures(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The directory to write into; made if it does not exist.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the files written.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the names of the files alone.")] = False,
) -> None:
    """Both figures of the paper as PNG and SVG, a CSV file per panel, and claims.md. Needs cumulant[plot].

    Each figure is drawn as in the paper and once more with bounds the paper did not have. claims.md says of every claim
    about the figures what was found here and whether it holds.

    \b
    Example:
      cumulant figures --out figures
    """
    from cumulant.figures.files import STEPS, write

    with told(STEPS) as tell:
        paths = write(out, tell)
    if quiet:
        typer.echo("\n".join(map(str, paths)))
        return
    if as_json:
        typer.echo(json.dumps({"files": [str(path) for path in paths]}))
        return
    typer.echo(f"{len(paths)} files in {out}; start with {out / 'claims.md'}")
