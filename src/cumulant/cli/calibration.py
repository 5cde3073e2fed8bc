"""`cumulant calibrate`: the value of a parameter that meets a target."""

from __future__ import annotations

from typing import Annotated

import typer

from cumulant.accounting.question import DEFAULT_METHOD
from cumulant.accounting.target import Target
from cumulant.calibrate import Calibration
from cumulant.calibrate import calibrate as calibrated
from cumulant.cli import words
from cumulant.cli.questions import Bound, Conversion, Json, Method, Quiet
from cumulant.progress import patient


def calibrate(
    expression: Annotated[
        str, typer.Argument(metavar="EXPR", help="What will run, in quotes, with one unknown '?'.", show_default=False)
    ],
    epsilon: Annotated[str | None, typer.Option(help="The target: a number >= 0.")] = None,
    delta: Annotated[str | None, typer.Option(help="A number in [0, 1); 0 asks for pure differential privacy.")] = None,
    advantage: Annotated[str | None, typer.Option(help="Instead: the largest advantage of an attack.")] = None,
    tpr: Annotated[str | None, typer.Option(help="Instead: its largest true positive rate, at --fpr.")] = None,
    fpr: Annotated[str | None, typer.Option(help="The false positive rate that --tpr is for.")] = None,
    digits: Annotated[int, typer.Option(help="Significant digits of the value; integers are always exact.")] = 6,
    method: Method = DEFAULT_METHOD,
    bound: Bound = None,
    conversion: Conversion = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The value of one parameter, written '?', at which the run just meets epsilon at delta, or bounds an attack.

    The value meets the target and the neighbouring value, next integer or next decimal, fails.

    \b
    Examples:
      cumulant calibrate "Gaussian(noise_multiplier=?, relation='add-remove') @ Poisson(1%) * 1000" --epsilon 2 --delta 1e-6
      cumulant calibrate "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(1%) * ?" --epsilon 2 --delta 1e-6
      cumulant calibrate "Laplace(2) @ WithoutReplacement(sample=?, population=60000) * 900" --epsilon 1 --delta 1e-6
      cumulant calibrate "PureDP(epsilon=?) * 30" --epsilon 1 --delta 1e-6 --json
      cumulant calibrate "Gaussian(sigma=?) * 10" --advantage 0.1
      cumulant calibrate "Gaussian(sigma=?) * 10" --tpr 0.02 --fpr 0.01
    """
    target = Target.read(epsilon, delta, advantage, tpr, fpr)
    with patient("searching"):
        found = calibrated(
            expression, epsilon, delta, None, digits, method, bound, conversion, advantage=advantage, tpr=tpr, fpr=fpr
        )
    if target.by_statement and (doubt := words.swapped(float(target.most), float(target.at))):
        typer.echo(doubt, err=True)
    if quiet:
        typer.echo(str(found.value))
        return
    if as_json:
        typer.echo(found.to_json())
        return
    typer.echo(f"Use {found.parameter} = {found.value} to meet {target.goal}.")
    typer.echo(words.answer(found.guarantee))
    typer.echo(_neighbour(found))


def _neighbour(found: Calibration) -> str:
    if found.fails is None:
        return f"No neighbouring value fails: {found.parameter} = {found.value} is the end of the domain."
    return f"The neighbouring value {found.parameter} = {found.fails} fails."
