"""`cumulant plot`: a picture of one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cumulant.accounting.choices import PICTURE_KINDS
from cumulant.cli.completion import complete
from cumulant.cli.options import Json, Run
from cumulant.errors import InputError
from cumulant.progress import step_progress

# `cumulant figures`: both figures of the paper, drawn anew.


def figures(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The directory to write into; made if it does not exist.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the files written.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the names of the files alone.")] = False,
) -> None:
    """Draw both figures of the paper.

    Writes PNG and SVG, a CSV file per panel, and claims.md. Needs cumulant[plot].

    Each figure is drawn as in the paper and once more with bounds the paper did not have. The file claims.md judges every
    claim about the figures.

    \b
    Example:
      cumulant figures --out figures
    """
    from cumulant.paper.figures.files import STEPS, write

    with step_progress(STEPS) as tell:
        paths = write(out, tell)
    if quiet:
        typer.echo("\n".join(map(str, paths)))
        return
    if as_json:
        typer.echo(json.dumps({"files": [str(path) for path in paths]}))
        return
    typer.echo(f"{len(paths)} files in {out}; start with {out / 'claims.md'}")


def plot(
    expression: Run,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The picture to write: a .png, .svg or .pdf file.")],
    delta: Annotated[str, typer.Option(help="The delta at which epsilon is drawn against rounds.")] = "1e-8",
    kind: Annotated[
        str, typer.Option(help=f"What to draw: {', '.join(PICTURE_KINDS)}.", autocompletion=complete(PICTURE_KINDS))
    ] = "all",
    all_bounds: Annotated[
        bool, typer.Option("--all-bounds", help="Draw every bound of the divergences that applies.")
    ] = False,
    claim: Annotated[str | None, typer.Option(help="A claimed epsilon, drawn as a line.")] = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the name of the picture alone.")] = False,
) -> None:
    """Draw a picture of a run.

    Needs cumulant[plot].

    Two panels show epsilon against delta and against the number of rounds, with the interval that holds the true epsilon.
    One has the Rényi divergences by the bounds that matter. One has the best attack: members found against false alarms.

    \b
    Examples:
      cumulant plot "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000" --delta 1e-6 --out run.png
      cumulant plot "Gaussian(sigma=4) * 10" --delta 1e-6 --claim 3 --out claim.png --kind epsilon
      cumulant plot "Laplace(2) @ WithoutReplacement(rate=0.01) * 900" --out attack.svg --kind trade-off
      cumulant plot "Gaussian(sigma=1) @ Poisson(rate=0.01) * 1000" --out rounds.png --kind rounds --delta 1e-5 --json
    """
    from cumulant.domains import EPSILON
    from cumulant.notation import parse
    from cumulant.plotting.charts import CHARTS, with_claim
    from cumulant.plotting.drawing import canvas
    from cumulant.plotting.sheet import PROPER, check_writable, draw_charts, write

    if kind != "all" and kind not in CHARTS:
        raise InputError(f"kind={kind!r} is unknown; choose one of all, {', '.join(CHARTS)}")
    run = parse(expression)
    asked = PROPER.check("delta", delta)
    claimed = None if claim is None else EPSILON.check("claim", claim)
    path = check_writable(out)
    canvas()  # what is missing is said before the work, not after it
    names = list(CHARTS) if kind == "all" else [kind]
    with step_progress(len(names) + 1) as tell:
        charts = {}
        for name in names:
            tell(name)
            charts[name] = with_claim(name, CHARTS[name](run, asked, "all" if all_bounds else "best"), claimed)
        tell("drawing")
        write(draw_charts(list(charts.values()), str(run)), list(charts.values()), path)
    if quiet:
        typer.echo(str(path))
        return
    if as_json:
        fields = {"file": str(path), "run": str(run), "relation": str(run.relation), "delta": float(asked)}
        typer.echo(json.dumps(fields | {"charts": {name: chart.to_dict() for name, chart in charts.items()}}))
        return
    typer.echo(f"{path}: {', '.join(names)}; the numbers are in {path.with_suffix('.csv')}")
