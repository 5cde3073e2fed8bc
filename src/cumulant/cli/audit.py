"""`cumulant audit` and `cumulant conformance`: tests of what ran against what is claimed."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cumulant.cli.completion import complete, complete_expression
from cumulant.cli.failures import reason
from cumulant.cli.options import Json
from cumulant.errors import InputError

if TYPE_CHECKING:
    from cumulant.training.audit import ManyRuns
    from cumulant.training.canaries import OneRun

REFUTED = 1
_WORDS = {True: "refuted", False: "consistent"}
SMALLEST_CLAIMED = 1e-9
"""Delta of the largest epsilon at which a claim is tested."""

Level = Annotated[str, typer.Option(help="The probability of a false alarm.")]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Also a picture, .png or .svg. Needs cumulant[plot].")]


def audit(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV with a header and the columns member (0/1), score.")
    ],
    expression: Annotated[
        str,
        typer.Argument(
            metavar="EXPR", help="What is claimed to have run, in quotes.", autocompletion=complete_expression
        ),
    ],
    delta: Annotated[str, typer.Option(help="The delta at which epsilon is shown and claimed.")] = "1e-5",
    kind: Annotated[
        str,
        typer.Option(
            "--trials",
            help="many: a row is a run; one: a row is a canary of one run; sequence: runs in their order.",
            autocompletion=complete(("many", "one", "sequence")),
        ),
    ] = "many",
    coin: Annotated[
        str | None,
        typer.Option(help="For a sequence: fair (a fair coin for each run) or pairs (one of each, in turn)."),
    ] = None,
    guesses: Annotated[str | None, typer.Option(help="For one run: numbers of guesses, fixed in advance.")] = None,
    level: Level = "0.05",
    out: Out = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print `refuted` or `consistent` alone.")] = False,
) -> int:
    """Test a claim by attacks on real runs.

    The whole claimed curve is refuted, or consistent with the attacks. No attack can verify a claim.

    Exit code 0: consistent. 1: refuted.

    \b
    Examples:
      cumulant audit scores.csv "Gaussian(sigma=4, sensitivity=2) @ WithoutReplacement(sample=10, population=100) * 20"
      cumulant audit canaries.csv "Gaussian(sigma=2) * 3" --trials one --guesses 20,50,100 --json
      cumulant audit scores.csv "Gaussian(sigma=2) * 3" --trials sequence --coin fair
    """
    if kind not in ("many", "one", "sequence"):
        raise InputError(f"trials={kind!r} is unknown; choose many, one or sequence")
    if (coin is None) == (kind == "sequence"):
        raise InputError(
            "give --coin fair or --coin pairs with --trials sequence, and only there: no file says how members were drawn"
        )
    if coin is not None:
        if guesses is not None or out is not None:
            raise InputError("--guesses and --out are for other trials; leave them away with --trials sequence")
        from cumulant.cli.sequence import audit_sequence

        return audit_sequence(file, expression, delta, coin, level, as_json, quiet)
    if (guesses is None) == (kind == "one"):
        raise InputError("give --guesses with --trials one, such as --guesses 20,50,100, and only there")
    from cumulant.accounting.numbers import rounded_down, rounded_up
    from cumulant.domains import DELTA
    from cumulant.notation import parse
    from cumulant.training.audit import LEVEL, Claim, ManyRuns, many_runs
    from cumulant.training.canaries import WEAKNESS, one_run

    run, asked, alpha = parse(expression), DELTA.check("delta", delta), LEVEL.check("level", level)
    members, scores = _columns(file)
    claim = Claim.of(run, min(SMALLEST_CLAIMED, float(asked)) or SMALLEST_CLAIMED)
    bound = run.guarantee(delta=asked)
    found: ManyRuns | OneRun
    if kind == "many":
        found = many_runs(members=members, scores=scores, claim=claim, delta=asked, level=alpha)
    else:
        found = one_run(
            members=members, scores=scores, claim=claim, guesses=_numbers(guesses or ""), delta=asked, level=alpha
        )
    if out is not None:
        from cumulant.plotting import audits

        many = isinstance(found, ManyRuns)
        chart = audits.rates(claim, members, scores) if many else audits.guesses(claim, found, float(alpha))  # type: ignore[arg-type]
        _save_picture([chart], f"audit of {run}", out, file)
    if quiet:
        typer.echo(_WORDS[found.refuted])
    elif as_json:
        upper = "inf" if math.isinf(bound.epsilon) else bound.epsilon
        typer.echo(
            json.dumps({**found.to_dict(), "claim": [bound.lower, upper], "delta": float(asked), "run": str(run)})
        )
    else:
        verdict = "REFUTED" if found.refuted else "consistent with the claim"
        typer.echo(f"{verdict}: p = {rounded_up(found.p_value)} at level {alpha}.")
        typer.echo(_counts(found))
        low = "" if bound.lower is None else f"{rounded_down(bound.lower)} to "
        typer.echo(
            f"Shown: epsilon >= {rounded_down(found.epsilon_lower)} at delta = {asked}, with confidence {found.confidence:g}. "
            f"Claimed: {low}{rounded_up(bound.epsilon)}."
        )
        if kind == "one":
            typer.echo(WEAKNESS)
        typer.echo("An audit that does not refute proves nothing; it is about this code in this configuration.")
    return REFUTED if found.refuted else 0


def _counts(found: ManyRuns | OneRun) -> str:
    from cumulant.training.canaries import OneRun

    if isinstance(found, OneRun):
        each = ", ".join(f"{c:,} of {r:,}" for c, r in zip(found.correct, found.guesses, strict=True))
        return f"Right guesses about {found.canaries:,} canaries: {each}."
    return (
        f"On the second half of the runs, scores of at least {found.threshold:.6g}: {found.true_positives:,} of "
        f"{found.members:,} members, {found.false_positives:,} of {found.others:,} others."
    )


def conformance(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="One batch per line: record numbers, by commas or spaces.")
    ],
    population: Annotated[int, typer.Option(help="Records in the data set, numbered from 0.")],
    sample: Annotated[int | None, typer.Option(help="Records per batch, for samples of a fixed size.")] = None,
    rate: Annotated[str | None, typer.Option(help="The probability of a record, for Poisson samples.")] = None,
    cycle: Annotated[int | None, typer.Option(help="With --rate: the number of parts that take turns.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of a pass, for balls in bins.")] = None,
    batch: Annotated[int | None, typer.Option(help="Records per batch of a shuffled pass.")] = None,
    drop_last: Annotated[
        bool, typer.Option("--drop-last", help="With --batch: a short last batch is left out.")
    ] = False,
    level: Level = "0.001",
    out: Out = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print `refuted` or `consistent` alone.")] = False,
) -> int:
    """Test whether a loader draws what is accounted.

    Its batches are tested against samples of a fixed size, or another law.

    Exit code 0: consistent. 1: refuted by one of the tests, each at its share of the level.

    \b
    Examples:
      cumulant conformance batches.txt --population 60000 --sample 256
      cumulant conformance batches.txt --population 60000 --rate 256/60000
      cumulant conformance batches.txt --population 60000 --steps 234
      cumulant conformance batches.txt --population 60000 --batch 256
    """
    from cumulant.accounting.numbers import rounded_up
    from cumulant.training.audit import LEVEL
    from cumulant.training.conformance import conformance as tested

    alpha = LEVEL.check("level", level)
    batches = list(_batches(file))
    found = tested(batches, population, sample, rate=rate, cycle=cycle, steps=steps, batch=batch, drop_last=drop_last)
    refuting = [test for test, p in found.items() if len(found) * p <= alpha]
    if out is not None:
        if sample is None:
            raise InputError("--out draws samples of a fixed size only; give --sample, or leave --out away")
        from cumulant.plotting import audits

        charts = [audits.coverage(batches, population, sample), audits.overlap(batches, population)]
        _save_picture(charts, f"{len(batches):,} batches of {sample:,} of {population:,} records", out, file)
    if quiet:
        typer.echo(_WORDS[bool(refuting)])
    elif as_json:
        typer.echo(json.dumps({**found, "refuted": bool(refuting), "by": refuting, "batches": len(batches)}))
    else:
        verdict = f"REFUTED by {', '.join(refuting)}" if refuting else "consistent with this law"
        typer.echo(f"{verdict} ({len(batches):,} batches, level {alpha}).")
        typer.echo(", ".join(f"{test}: p = {rounded_up(p)}" for test, p in found.items()) + " (approximate)")
    return REFUTED if refuting else 0


# ---- files


def _save_picture(charts: list[Any], title: str, out: Path, file: Path) -> None:
    """Write a picture with its numbers beside it, but not onto the input file."""
    from cumulant.plotting.sheet import check_writable, draw_charts, write

    write(draw_charts(charts, title), charts, check_writable(out), [file])


class _Coins(dict[str, int]):
    """The words that spreadsheets and numpy write for a coin.

    Any other number is itself, and is refused later if it is no coin.
    """

    def __missing__(self, text: str) -> int:
        value = float(text)
        if value != int(value):
            raise ValueError(f"{text!r} is no coin, 0 or 1")
        return int(value)


_COINS = _Coins(true=1, false=0)


def _columns(file: Path) -> tuple[list[int], list[float]]:
    members, scores = [], []
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            for number, row in enumerate(csv.DictReader(lines), start=2):
                try:
                    members.append(_COINS[(row["member"] or "").strip().lower()])
                    scores.append(float(row["score"]))
                except (KeyError, TypeError, ValueError) as error:
                    raise InputError(
                        f"line {number} of {file} is no member and score ({error}); write a header line member,score and "
                        "then lines like 1,0.25"
                    ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} cannot be read: {reason(error)}") from None
    return members, scores


def _batches(file: Path) -> Iterator[list[int]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {reason(error)}") from None
    for number, line in enumerate(lines, start=1):
        try:
            yield [int(word) for word in line.replace(",", " ").split()]
        except ValueError:
            raise InputError(
                f"line {number} of {file} is no batch; write the record numbers of one batch per line, like 17,3,256"
            ) from None


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in chain.from_iterable(part.split() for part in text.split(","))]
    except ValueError:
        raise InputError(f"guesses={text!r} must be whole numbers, such as 20,50,100") from None
