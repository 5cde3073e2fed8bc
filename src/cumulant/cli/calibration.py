"""`cumulant calibrate`: the value of a parameter that meets a target."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cumulant.accounting.choices import as_conversion, as_method
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.numbers import rounded_down, rounded_up
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.accounting.risk import KINDS
from cumulant.accounting.target import Target
from cumulant.calibrate import Calibration
from cumulant.calibrate import calibrate as calibrated
from cumulant.cli import answer
from cumulant.cli.answer import bare_number
from cumulant.cli.failures import ExitCode
from cumulant.cli.questions import Accuracy, Bound, Conversion, Json, Method, Quiet
from cumulant.cli.statement import FORMS, claim_lines, judge_claim, print_statement, read_words, warn_missing
from cumulant.domains import DELTA, EPSILON, POSITIVE
from cumulant.errors import InputError, shown
from cumulant.hints import nearest
from cumulant.progress import patient
from cumulant.sweep import Sweep
from cumulant.sweep import sweep as swept

if TYPE_CHECKING:
    from cumulant.training.sgd import NoisySGD


def calibrate(
    expression: Annotated[
        str, typer.Argument(metavar="EXPR", help="What will run, in quotes, with one unknown '?'.", show_default=False)
    ],
    epsilon: Annotated[str | None, typer.Option(help="The target: a number >= 0.")] = None,
    delta: Annotated[str | None, typer.Option(help="A number in [0, 1); 0 asks for pure differential privacy.")] = None,
    advantage: Annotated[str | None, typer.Option(help="Instead: the largest advantage of an attack.")] = None,
    tpr: Annotated[str | None, typer.Option(help="Instead: its largest true positive rate, at --fpr.")] = None,
    fpr: Annotated[str | None, typer.Option(help="The false positive rate that --tpr is for.")] = None,
    mu: Annotated[str | None, typer.Option(help="Instead: the largest mu of Gaussian privacy, at --slack.")] = None,
    slack: Annotated[str | None, typer.Option(help="The slack that --mu is for; 1e-6 if it is left out.")] = None,
    kind: Annotated[str | None, typer.Option(help=f"Instead: bound an attack: {', '.join(KINDS)}.")] = None,
    success: Annotated[str | None, typer.Option(help="The largest success of the attack of --kind.")] = None,
    prior: Annotated[str | None, typer.Option(help="Its success without the release, with all side knowledge.")] = None,
    share: Annotated[
        list[str] | None, typer.Option(help="For several unknowns ?a and ?b: how the budget is split, such as a=3.")
    ] = None,
    digits: Annotated[int, typer.Option(help="Significant digits of the value; integers are always exact.")] = 6,
    method: Method = DEFAULT_METHOD,
    bound: Bound = None,
    conversion: Conversion = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the value of one parameter, written '?', at which the run just meets its target.

    The target is epsilon at delta, or a bound on an attack.

    The value meets the target and the neighbouring value, next integer or next decimal, fails.

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
    other: dict[str, Any] = {"mu": mu, "slack": slack, "kind": kind, "success": success, "prior": prior}
    target = Target.read(epsilon, delta, advantage, tpr, fpr, **other)
    attack: dict[str, Any] = {"advantage": advantage, "tpr": tpr, "fpr": fpr}
    with patient("searching"):
        found = calibrated(
            expression,
            epsilon=epsilon,
            delta=delta,
            digits=digits,
            method=as_method(method),
            bound=bound,
            conversion=as_conversion(conversion),
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
    if found.values:
        used = " and ".join(f"{name} = {value}" for name, value in found.values.items())
        split = ", ".join(f"{name} {100 * part:.3g} %" for name, part in found.shares.items())
        typer.echo(f"Use {used} to meet {target.goal}. The budget is split as {split}.")
        typer.echo(answer.answer_text(found.guarantee))
        return
    typer.echo(f"Use {found.parameter} = {found.value} to meet {target.goal}.")
    typer.echo(answer.answer_text(found.guarantee))
    typer.echo(_neighbour(found))


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


def _neighbour(found: Calibration) -> str:
    if found.fails is None:
        return f"No neighbouring value fails: {found.parameter} = {found.value} is the end of the domain."
    return f"The neighbouring value {found.parameter} = {found.fails} fails."


# `cumulant dpsgd`: DP-SGD by every way to form batches, side by side.

_SAMPLINGS = "fixed-size, poisson, balls-in-bins, shuffled"
"""Names of cumulant.training.sgd.SAMPLINGS for --help, written out: training loads scipy, which other commands do without."""

DOUBLED = (
    "The factor 2: gradients are clipped to norm C. Replacing a record moves their sum by up to 2C, so replace-one rows have "
    "sensitivity 2 in units of C; adding or removing a record moves it by up to C. The two kinds of rows are different "
    "statements: compare them with care."
)
WIDTH = 110


def dpsgd(
    batch: Annotated[int, typer.Option(help="Records per step, on average.")],
    records: Annotated[int, typer.Option(help="Records in the data set.")],
    delta: Annotated[str, typer.Option(help="A probability, usually below 1 / records.")],
    epochs: Annotated[str | None, typer.Option(help="Passes over the data; or give --steps.")] = None,
    steps: Annotated[int | None, typer.Option(help="Noisy steps; or give --epochs.")] = None,
    noise_multiplier: Annotated[
        str | None, typer.Option(help="Standard deviation of the noise on the sum, over the clipping norm.")
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Find the noise multiplier that meets this epsilon.")] = None,
    sampling: Annotated[str | None, typer.Option(help=f"Only one of: {_SAMPLINGS}.")] = None,
    per_epoch: Annotated[bool, typer.Option("--per-epoch", help="Also what is spent after each epoch.")] = False,
    noise_bands: Annotated[
        str | None, typer.Option(help="Correlated noise: the first column of its matrix, such as 1,0.5,0.25.")
    ] = None,
    claim: Annotated[str | None, typer.Option(help="Judge this claimed epsilon for every way to form batches.")] = None,
    statement: Annotated[
        str | None, typer.Option(help=f"Print a statement about one --sampling: {', '.join(FORMS)}.")
    ] = None,
    setting: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON with the words of a statement.")] = None,
    deployment: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON for --statement registry.")] = None,
    unit: Annotated[str | None, typer.Option(help="For a statement: whose data one record is.")] = None,
    released: Annotated[str | None, typer.Option(help="For a statement: what is published.")] = None,
    tuning: Annotated[str | None, typer.Option(help="For a statement: how parameters were chosen.")] = None,
    not_covered: Annotated[str | None, typer.Option(help="For a statement: what was computed besides.")] = None,
    noise: Annotated[str | None, typer.Option(help="For a statement: exact or float.")] = None,
    sampler: Annotated[
        str | None, typer.Option(help="For a statement: how batches were drawn, as implemented.")
    ] = None,
    as_json: Json = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print the number alone, behind its way to form batches where there are several."),
    ] = False,
) -> int:
    """Account for DP-SGD in the words of training loops.

    Shows the cost of every way to form batches, and what each assumes.

    Give the noise multiplier and get epsilon, or give --epsilon and get the noise multiplier.

    \b
    Examples:
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --noise-multiplier 1.1 --delta 1e-5
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --epsilon 3 --delta 1e-5
      cumulant dpsgd --batch 60 --records 6000 --epochs 10 --noise-multiplier 4 --delta 1e-6 --noise-bands 1,0.5
      cumulant dpsgd --batch 64 --records 1797 --steps 280 --noise-multiplier 4 --delta 1e-5 --sampling fixed-size --json
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --noise-multiplier 1.1 --delta 1e-5 --claim 3
      cumulant dpsgd --batch 64 --records 1797 --steps 280 --noise-multiplier 4 --delta 1e-5 --sampling poisson --statement text
    """
    from cumulant.training.sgd import CORRELATED, SAMPLINGS, NoisySGD

    if (noise_multiplier is None) == (epsilon is None):
        raise InputError(
            "give --noise-multiplier to get epsilon, or --epsilon to get the noise multiplier, one of them"
        )
    bands = None if noise_bands is None else noise_bands.split(",")
    known = SAMPLINGS if bands is None else CORRELATED
    sampling = None if sampling is None else sampling.lower()
    if sampling is not None and sampling not in known:
        raise InputError(
            f"sampling={sampling!r} is unknown{nearest(sampling, known)}; choose one of {', '.join(known)}"
        )
    asked = DELTA.check("delta", delta)
    words = {"unit": unit, "released": released, "tuning": tuning, "not_covered": not_covered}
    words |= {"noise": noise, "sampler": sampler}
    given = {name: value for name, value in words.items() if value is not None}
    _check_words(claim, statement, epsilon, sampling, bool(given) or setting is not None or deployment is not None)
    plan = NoisySGD(batch, records, noise_multiplier or 1, epochs, steps)
    if statement is not None:
        sgd = replace(plan, sampling=sampling or "")
        sgd = sgd if epsilon is None else sgd.calibrated(POSITIVE.check("epsilon", epsilon), asked)
        text, missing = print_statement(sgd, asked, statement, {**read_words(setting), **given}, deployment)
        typer.echo(text, nl=False)
        warn_missing(missing)
        return ExitCode.OK
    if claim is not None:
        loops = [replace(plan, sampling=name) for name in ([sampling] if sampling else SAMPLINGS)]
        verdicts, code = judge_claim(loops, EPSILON.check("claim", claim), asked)
        if as_json:
            typer.echo(
                json.dumps({"claim": float(EPSILON.check("claim", claim)), "delta": float(asked), "rows": verdicts})
            )
        elif quiet:
            typer.echo(
                "\n".join(each["verdict"] if sampling else f"{each['sampling']} {each['verdict']}" for each in verdicts)
            )
        else:
            typer.echo(f"Claimed: epsilon = {claim} at delta = {asked}.")
            typer.echo("\n".join(claim_lines(verdicts)))
        return code
    rows = []
    for name in [sampling] if sampling else known:
        sgd = replace(plan, sampling=name, noise_bands=bands)
        if epsilon is not None:
            sgd = sgd.calibrated(POSITIVE.check("epsilon", epsilon), asked)
        rows.append((sgd, sgd.guarantee(asked)))
    if quiet:
        for sgd, found in rows:
            number = bare_number(found.epsilon) if epsilon is None else str(sgd.noise_multiplier)
            typer.echo(number if sampling else f"{sgd.sampling} {number}")
        return _code(rows)
    if as_json:
        typer.echo(json.dumps({"delta": float(asked), "rows": [_fields(sgd, g, per_epoch) for sgd, g in rows]}))
        return _code(rows)
    typer.echo(textwrap.fill(DOUBLED, WIDTH))
    noise = f"noise multiplier {noise_multiplier}" if epsilon is None else f"epsilon <= {epsilon}"
    typer.echo(
        f"\nBatches of {batch:,} of {records:,} records, {plan.total_steps:,} steps, {noise}, delta = {asked}:\n"
    )
    _table(rows)
    for sgd, found in rows:
        if sgd.sampling == "shuffled":
            typer.echo(f"\nshuffled: {_gain(sgd, found)}")
    typer.echo("\nWhat each assumes of the loop:")
    for sgd, _ in rows:
        typer.echo(textwrap.fill(f"{sgd.sampling}: {sgd.loop.assumes}.", WIDTH, subsequent_indent="  "))
    for sgd, _ in rows if per_epoch else ():
        typer.echo(f"\n{sgd.sampling}, after each epoch (rounded up):")
        for spent in sgd.per_epoch(asked):
            typer.echo(f"  step {spent['step']:>9,}  epsilon {rounded_up(spent['epsilon'])}")
    return _code(rows)


def _check_words(
    claim: str | None, statement: str | None, epsilon: str | None, sampling: str | None, words: bool
) -> None:
    """InputError for options that do not go together."""
    if claim is not None and (epsilon is not None or statement is not None):
        raise InputError(
            "--claim judges a run that is given; give --noise-multiplier, and neither --epsilon nor --statement"
        )
    if statement is not None and statement not in FORMS:
        raise InputError(f"statement={statement!r} is unknown; choose one of {', '.join(FORMS)}")
    if statement is not None and sampling is None:
        raise InputError(f"a statement is about one way to form batches; give --sampling {_SAMPLINGS}")
    if statement is None and words:
        raise InputError("words about a run stand in a statement; give --statement text, or leave them away")


def _code(rows: list[tuple[NoisySGD, Guarantee]]) -> int:
    """Return 1 if nothing finite is known of any of them."""
    return int(all(math.isinf(found.epsilon) for _, found in rows))


def _gain(sgd: NoisySGD, found: Guarantee) -> str:
    """Say what the permutation saves against a loop that is not amplified."""
    plain = sgd.unamplified().epsilon(found.delta)
    if found.epsilon < plain:
        return f"the secret permutation lowers epsilon from {rounded_up(plain)} to {rounded_up(found.epsilon)}."
    return f"the permutation gains nothing here; epsilon {rounded_up(plain)} is that of one release per epoch."


def _table(rows: list[tuple[NoisySGD, Guarantee]]) -> None:
    lines = [("sampling", "neighbours", "noise multiplier", "epsilon", "at least", "what is accounted")]
    for sgd, found in rows:
        lower = "-" if found.lower is None else rounded_down(found.lower)
        noise = str(sgd.noise_multiplier)
        lines.append((sgd.sampling, str(sgd.relation), noise, rounded_up(found.epsilon), lower, str(sgd.run)))
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    for line in lines:
        typer.echo("  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[5]]))


def _fields(sgd: NoisySGD, found: Guarantee, per_epoch: bool) -> dict[str, Any]:
    fields = {
        "sampling": sgd.sampling,
        "relation": str(sgd.relation),
        "noise_multiplier": float(sgd.noise_multiplier),
        "steps": sgd.total_steps,
        "epsilon": "inf" if math.isinf(found.epsilon) else found.epsilon,
        "epsilon_lower": found.lower,
        "rigour": found.rigour,
        "run": str(sgd.run),
        "assumes": sgd.loop.assumes,
        "amplified": found.epsilon < sgd.unamplified().epsilon(found.delta) if sgd.sampling == "shuffled" else True,
    }
    return {**fields, "per_epoch": sgd.per_epoch(found.delta)} if per_epoch else fields


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
        method=as_method(method),
        bound=bound,
        conversion=as_conversion(conversion),
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
