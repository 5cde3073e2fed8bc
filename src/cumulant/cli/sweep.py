"""`cumulant sweep`: a grid of settings to a table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from cumulant.accounting.printed import rounded_up
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.cli.codes import ExitCode
from cumulant.cli.questions import Accuracy, Bound, Conversion, Json, Method
from cumulant.cli.words import bare_number
from cumulant.errors import InputError, shown
from cumulant.sweeping import Sweep
from cumulant.sweeping import sweep as swept


def sweep(
    expression: Annotated[
        str, typer.Argument(metavar="EXPR", help="What runs, in quotes, with {names} in braces.", show_default=False)
    ],
    settings: Annotated[
        list[str], typer.Option("--set", metavar="NAME=V,V,...", help="The values of one name; once for each name.")
    ],
    delta: Annotated[str | None, typer.Option(help="Find epsilon at this delta.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Find delta at this epsilon.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table: .csv or .parquet; resumable.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the table: a .png, .svg or .pdf file; the numbers as .csv beside it."),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Draw two settings as several lines, not as a heat map.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes to work with.")] = 1,
    method: Method = DEFAULT_METHOD,
    bound: Bound = None,
    conversion: Conversion = None,
    accuracy: Accuracy = str(DEFAULT_ACCURACY),
    as_json: Json = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the numbers alone, one on each line, - where there is none.")
    ] = False,
) -> int:
    """Every combination of settings, one row each: a table of epsilon at delta, or of delta at epsilon.

    With --out a file of JSON lines beside the table keeps every answer as it comes: a sweep that was killed continues where it
    was. A setting that cannot be answered is a row with its error, and the exit code is 1.

    With --plot a picture is drawn: a line where one setting varies, a heat map where two do, panels where more do.

    \b
    Examples:
      cumulant sweep "Gaussian({s}, relation='add-remove') @ Poisson(rate=1%) * {k}" --set s=1,2 --set k=100,1000 --delta 1e-6
      cumulant sweep "Laplace({b}) * 30" --set b=1,2,4 --delta 1e-6 --out laplace.csv
      cumulant sweep "Gaussian({s}) * {k}" --set s=1,2,4,8 --set k=1,10,100 --delta 1e-6 --plot heat.png
      cumulant sweep "Gaussian({s}) @ Poisson(rate={q}) * 900" --set s=1,2 --set q=0.01,0.1 --epsilon 1 --workers 4 --json
    """
    values: dict[str, Any] = dict(_values(each) for each in settings)
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"out={shown(str(out))} must end in .csv or .parquet")
    if plot is not None:
        from cumulant.figures.drawing import canvas
        from cumulant.figures.sheet import checked

        checked(plot, "--plot")
        canvas()  # what is missing is said before the work, not after it
    journal = None if out is None else out.with_name(out.name + ".jsonl")
    ask = partial(
        swept,
        expression,
        delta=delta,
        epsilon=epsilon,
        method=method,
        bound=bound,
        conversion=conversion,
        accuracy=accuracy,
        journal=journal,
    )
    if workers == 1:
        found = ask(**values)
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
            found = ask(executor=executor, **values)
    if out is not None:
        (found.to_parquet if out.suffix == ".parquet" else found.to_csv)(out)
    if plot is not None:
        found.plot(plot, "lines" if lines else None)
    if quiet:
        for row in found:
            typer.echo("-" if row["error"] else bare_number(row[found.found]))
    elif as_json:
        typer.echo(json.dumps([{name: _plain(row[name]) for name in found.names} for row in found]))
    else:
        _told(found, "epsilon" if delta is not None else "delta", out)
        if plot is not None:
            typer.echo(f"{plot}; the numbers are in {plot.with_suffix('.csv')}")
    return ExitCode.NO if found.failures else ExitCode.OK


def _values(text: str) -> tuple[str, list[str]]:
    name, equals, listed = text.partition("=")
    values = [each.strip() for each in listed.split(",")]
    if ".." in listed or "range" in listed:
        raise InputError(
            f"--set {shown(text)} has a range; write every value, such as --set {name.strip() or 'k'}=1,2,3,4"
        )
    if not equals or not name.strip().isidentifier() or not all(values):
        raise InputError(f"--set {shown(text)} must be NAME=VALUE,VALUE,..., such as --set sigma=1,2,4")
    return name.strip(), values


def _plain(value: object) -> object:
    return "inf" if value == float("inf") else value


def _told(found: Sweep, name: str, out: Path | None) -> None:
    if out is not None:
        failed = f", {found.failures} of them without an answer" if found.failures else ""
        typer.echo(f"{len(found):,} settings{failed}, in {out}.")
        return
    for row in found:
        where = ", ".join(f"{each} = {row[each]}" for each in found.parameters)
        typer.echo(f"{where}: {row['error']}" if row["error"] else f"{where}: {name} = {rounded_up(row[name])}")
