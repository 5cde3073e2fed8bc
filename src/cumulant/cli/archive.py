"""`cumulant archive`: a guarantee with everything that a reader needs in years, in one folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.cli import words
from cumulant.cli.codes import ExitCode
from cumulant.cli.questions import Accuracy, Json, Method, Quiet, Run


def archive(
    expression: Run,
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder.")],
    delta: Annotated[str | None, typer.Option(help="A probability, to state epsilon at; or give --epsilon.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="A number >= 0, to state delta at; or give --delta.")] = None,
    method: Method = DEFAULT_METHOD,
    accuracy: Accuracy = str(DEFAULT_ACCURACY),
    no_plot: Annotated[bool, typer.Option("--no-plot", help="Leave the picture out; it needs cumulant[plot].")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Put a guarantee into a folder: statement, JSON, picture, versions, and the command that checks it again.

    `cumulant verify DIR` reads the folder: it evaluates the guarantee again and says which files were changed since.

    \b
    Examples:
      cumulant archive "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(1%) * 1000" --delta 1e-6 --out release-1
      cumulant verify release-1
    """
    from cumulant.archiving import archive as archived

    found = archived(expression, out, delta=delta, epsilon=epsilon, method=method, accuracy=accuracy, plot=not no_plot)
    if quiet:
        typer.echo(words.bare_number(found.epsilon if found.asked == "delta" else found.delta))
    else:
        typer.echo(found.to_json() if as_json else words.answer(found))
        typer.echo(f"{out}: check it again by: cumulant verify {out}", err=True)
    return ExitCode.NO if math.isinf(found.epsilon) else ExitCode.OK
