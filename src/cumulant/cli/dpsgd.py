"""`cumulant dpsgd`: DP-SGD by every way to form batches, side by side."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.printed import rounded_down, rounded_up
from cumulant.cli.questions import Json
from cumulant.cli.words import bare_number
from cumulant.domains import DELTA, POSITIVE
from cumulant.errors import InputError
from cumulant.hints import nearest

if TYPE_CHECKING:
    from cumulant.training.sgd import NoisySGD

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
    as_json: Json = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print the number alone, behind its way to form batches where there are several."),
    ] = False,
) -> int:
    """DP-SGD in the words of training loops: what it costs by every way to form batches, and what each assumes.

    Give the noise multiplier and get epsilon, or give --epsilon and get the noise multiplier.

    \b
    Examples:
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --noise-multiplier 1.1 --delta 1e-5
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --epsilon 3 --delta 1e-5
      cumulant dpsgd --batch 64 --records 1797 --steps 280 --noise-multiplier 4 --delta 1e-5 --sampling fixed-size --json
    """
    from cumulant.training.sgd import SAMPLINGS, NoisySGD

    if (noise_multiplier is None) == (epsilon is None):
        raise InputError(
            "give --noise-multiplier to get epsilon, or --epsilon to get the noise multiplier, one of them"
        )
    sampling = None if sampling is None else sampling.lower()
    if sampling is not None and sampling not in SAMPLINGS:
        raise InputError(
            f"sampling={sampling!r} is unknown{nearest(sampling, SAMPLINGS)}; choose one of {', '.join(SAMPLINGS)}"
        )
    asked = DELTA.check("delta", delta)
    plan = NoisySGD(batch, records, noise_multiplier or 1, epochs, steps)
    rows = []
    for name in [sampling] if sampling else SAMPLINGS:
        sgd = replace(plan, sampling=name)
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
    typer.echo("\nWhat each assumes of the loop:")
    for sgd, _ in rows:
        typer.echo(textwrap.fill(f"{sgd.sampling}: {sgd.loop.assumes}.", WIDTH, subsequent_indent="  "))
    for sgd, _ in rows if per_epoch else ():
        typer.echo(f"\n{sgd.sampling}, after each epoch (rounded up):")
        for spent in sgd.per_epoch(asked):
            typer.echo(f"  step {spent['step']:>9,}  epsilon {rounded_up(spent['epsilon'])}")
    return _code(rows)


def _code(rows: list[tuple[NoisySGD, Guarantee]]) -> int:
    """1 if nothing finite is known of any of them."""
    return int(all(math.isinf(found.epsilon) for _, found in rows))


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
        "amplified": not sgd.run.surrogate,
    }
    return {**fields, "per_epoch": sgd.per_epoch(found.delta)} if per_epoch else fields
