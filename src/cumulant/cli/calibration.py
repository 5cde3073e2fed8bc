"""`cumulant calibrate` and `cumulant sweep`: the value that meets a target, and the answers of a grid of values."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from cumulant.accounting.choices import DEFAULT_ACCURACY, DEFAULT_METHOD, RISK_KINDS, ConversionName
from cumulant.accounting.choices import Method as MethodName
from cumulant.cli.card import Card, patient, print_card
from cumulant.cli.completion import complete, complete_expression
from cumulant.cli.failures import ExitCode
from cumulant.cli.options import Accuracy, Bound, Conversion, Explain, Json, Method, Quiet
from cumulant.errors import InputError, shown

if TYPE_CHECKING:
    from cumulant.accounting.target import Target
    from cumulant.calibrate import Calibration
    from cumulant.sweep import Sweep


def calibrate(
    expression: Annotated[
        str,
        typer.Argument(
            metavar="EXPR",
            help="What will run, in quotes, with one unknown '?'.",
            show_default=False,
            autocompletion=complete_expression,
        ),
    ],
    epsilon: Annotated[str | None, typer.Option(help="The target: a number >= 0.")] = None,
    delta: Annotated[str | None, typer.Option(help="A number in [0, 1); 0 asks for pure differential privacy.")] = None,
    advantage: Annotated[str | None, typer.Option(help="Instead: the largest advantage of an attack.")] = None,
    tpr: Annotated[str | None, typer.Option(help="Instead: its largest true positive rate, at --fpr.")] = None,
    fpr: Annotated[str | None, typer.Option(help="The false positive rate that --tpr is for.")] = None,
    mu: Annotated[str | None, typer.Option(help="Instead: the largest mu of Gaussian privacy, at --slack.")] = None,
    slack: Annotated[str | None, typer.Option(help="The slack that --mu is for; 1e-6 if it is left out.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(help=f"Instead: bound an attack: {', '.join(RISK_KINDS)}.", autocompletion=complete(RISK_KINDS)),
    ] = None,
    success: Annotated[str | None, typer.Option(help="The largest success of the attack of --kind.")] = None,
    prior: Annotated[str | None, typer.Option(help="Its success without the release, with all side knowledge.")] = None,
    share: Annotated[
        list[str] | None, typer.Option(help="For several unknowns ?a and ?b: how the budget is split, such as a=3.")
    ] = None,
    digits: Annotated[int, typer.Option(help="Significant digits of the value; integers are always exact.")] = 6,
    method: Method = DEFAULT_METHOD,
    bound: Bound = None,
    conversion: Conversion = None,
    explain: Explain = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the noise, rate or rounds that meet a target.

    Write '?' for the parameter. The target is epsilon at delta, or a bound on an attack.

    The value meets the target. The next integer or decimal beyond it fails.

    \b
    Examples:
      cumulant calibrate "Gaussian(noise_multiplier=?, relation='add-remove') @ Poisson(1%) * 1000" --epsilon 2 --delta 1e-6
      cumulant calibrate "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(1%) * ?" --epsilon 2 --delta 1e-6
      cumulant calibrate "Laplace(2) @ WithoutReplacement(sample=?, population=60000) * 900" --epsilon 1 --delta 1e-6
      cumulant calibrate "PureDP(epsilon=?) * 30" --epsilon 1 --delta 1e-6 --json
      cumulant calibrate "Gaussian(sigma=?) * 10" --advantage 0.1
      cumulant calibrate "Gaussian(sigma=?) * 10" --tpr 0.02 --fpr 0.01
      cumulant calibrate "Gaussian(noise_multiplier=?, relation='add-remove') @ Poisson(1%) * 1000" --mu 1 --slack 1e-6
      cumulant calibrate "Laplace(scale=?)" --kind attribute --success 0.05 --prior 0.01
      cumulant calibrate "Gaussian(sigma=?a) * 100 + Laplace(scale=?b)" --epsilon 1 --delta 1e-6 --share a=3 --share b=1
    """
    from cumulant.accounting.target import Target
    from cumulant.calibrate import calibrate as calibrated
    from cumulant.cli import answer

    other: dict[str, Any] = {"mu": mu, "slack": slack, "kind": kind, "success": success, "prior": prior}
    target = Target.read(epsilon, delta, advantage, tpr, fpr, **other)
    attack: dict[str, Any] = {"advantage": advantage, "tpr": tpr, "fpr": fpr}
    with patient("searching"):
        found = calibrated(
            expression,
            epsilon=epsilon,
            delta=delta,
            digits=digits,
            method=cast(MethodName, method),
            bound=bound,
            conversion=cast("ConversionName | None", conversion),
            **attack,
            **other,
            shares=_shares(share),
        )
    if target.by_statement and (doubt := answer.swap_hint(float(target.most), float(target.at))):
        typer.echo(doubt, err=True)
    if quiet:
        typer.echo(" ".join(f"{name}={value}" for name, value in found.values.items()) or str(found.value))
        return
    if as_json:
        typer.echo(found.to_json())
        return
    print_card(_value_card(found, target))
    if explain:
        typer.echo(f"\n{answer.explanation(found.guarantee)}")


def _value_card(found: Calibration, target: Target) -> Card:
    """Return the value that meets a target, the neighbour that fails, and the guarantee of the run."""
    from cumulant.accounting.numbers import rounded_up
    from cumulant.cli import answer

    guarantee = found.guarantee
    goal = target.goal.replace("epsilon", "ε").replace("delta", "δ").replace("<=", "≤")
    if found.values:
        card = Card(f"{', '.join(f'{name} = {value}' for name, value in found.values.items())}   meets {goal}")
        card.add("Budget", ", ".join(f"{name} has {100 * part:.3g} %" for name, part in found.shares.items()))
    else:
        card = Card(f"{found.parameter} = {found.value}   meets {goal}")
        ends = f"{found.value} is the end of what is allowed" if found.fails is None else f"{found.fails} fails"
        card.add("Next value", f"{found.parameter} = {ends}")
    card.verdict = guarantee.rigour
    if target.by_statement:
        card.verdict += f": ε = {rounded_up(guarantee.epsilon)}"
    answer.describe_run(card, guarantee.proof.run, guarantee if target.by_statement else None)
    return card


def _shares(given: list[str] | None) -> dict[str, str] | None:
    """Return the share of each name; InputError where one is no NAME=NUMBER, or stands twice."""
    if not given:
        return None
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or name.strip() in found:
            raise InputError(f"--share {each} must be a name and a number, such as --share a=3, once for each name")
        found[name.strip()] = value
    return found


# `cumulant sweep`: a grid of settings to a table.


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
    """Ask every combination of settings, one row each.

    The table has epsilon at delta, or delta at epsilon.

    With --out a file of JSON lines beside the table keeps every answer as it comes. A sweep that was killed continues where
    it was. A setting that cannot be answered is a row with its error, and the exit code is 1.

    With --plot a picture shows the table: a line for one setting, a heat map for two, panels for more.

    \b
    Examples:
      cumulant sweep "Gaussian({s}, relation='add-remove') @ Poisson(rate=1%) * {k}" --set s=1,2 --set k=100,1000 --delta 1e-6
      cumulant sweep "Laplace({b}) * 30" --set b=1,2,4 --delta 1e-6 --out laplace.csv
      cumulant sweep "Gaussian({s}) * {k}" --set s=1,2,4,8 --set k=1,10,100 --delta 1e-6 --plot heat.png
      cumulant sweep "Gaussian({s}) @ Poisson(rate={q}) * 900" --set s=1,2 --set q=0.01,0.1 --epsilon 1 --workers 4 --json
    """
    from cumulant.cli.answer import bare_number
    from cumulant.sweep import sweep as swept

    values: dict[str, Any] = dict(_values(each) for each in settings)
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"out={shown(str(out))} must end in .csv or .parquet")
    if plot is not None:
        from cumulant.plotting.drawing import canvas
        from cumulant.plotting.sheet import check_writable

        check_writable(plot, "--plot")
        canvas()  # what is missing is said before the work, not after it
    journal = None if out is None else out.with_name(out.name + ".jsonl")
    ask = partial(
        swept,
        expression,
        delta=delta,
        epsilon=epsilon,
        method=cast(MethodName, method),
        bound=bound,
        conversion=cast("ConversionName | None", conversion),
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
        found.plot(plot, kind="lines" if lines else None)
    if quiet:
        for row in found:
            typer.echo("-" if row["error"] else bare_number(row[found.found]))
    elif as_json:
        typer.echo(json.dumps([{name: _plain(row[name]) for name in found.names} for row in found]))
    else:
        _print_rows(found, "epsilon" if delta is not None else "delta", out)
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


def _print_rows(found: Sweep, name: str, out: Path | None) -> None:
    from cumulant.accounting.numbers import rounded_up

    if out is not None:
        failed = f", {found.failures} of them without an answer" if found.failures else ""
        typer.echo(f"{len(found):,} settings{failed}, in {out}.")
        return
    for row in found:
        where = ", ".join(f"{each} = {row[each]}" for each in found.parameters)
        typer.echo(f"{where}: {row['error']}" if row["error"] else f"{where}: {name} = {rounded_up(row[name])}")
