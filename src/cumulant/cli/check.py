"""`cumulant check` and `cumulant verify`: tests of a claim and of a stored guarantee."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cumulant.accounting import text
from cumulant.accounting.check import Check
from cumulant.accounting.choices import as_method
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.cli import answer
from cumulant.cli.failures import ExitCode
from cumulant.cli.questions import Accuracy, Json, Method, Quiet, Run
from cumulant.conversion.verify import Verification
from cumulant.errors import CumulantError, InputError
from cumulant.notation import parse
from cumulant.progress import patient

# `cumulant archive`: a guarantee with everything that a reader needs in years, in one folder.


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
    """Put a guarantee into a folder: statement, JSON, picture and versions.

    The folder also has the command that checks it again.

    `cumulant verify DIR` reads the folder: it evaluates the guarantee again and says which files were changed since.

    \b
    Examples:
      cumulant archive "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(1%) * 1000" --delta 1e-6 --out release-1
      cumulant verify release-1
    """
    from cumulant.archives import archive as archived

    found = archived(
        expression,
        out,
        delta=delta,
        epsilon=epsilon,
        method=as_method(method),
        accuracy=accuracy,
        plot=not no_plot,
    )
    if quiet:
        typer.echo(answer.bare_number(found.epsilon if found.asked == "delta" else found.delta))
    else:
        typer.echo(found.to_json() if as_json else answer.answer_text(found))
        typer.echo(f"{out}: check it again by: cumulant verify {out}", err=True)
    return ExitCode.NO if math.isinf(found.epsilon) else ExitCode.OK


_WORDS = {True: "confirmed", False: "not confirmed"}
_CODES = {"holds": ExitCode.OK, "false": ExitCode.NO, "open": ExitCode.OPEN}


def check(
    expression: Run,
    epsilon: Annotated[str, typer.Option(help="What is claimed: a number >= 0.")],
    delta: Annotated[str, typer.Option(help="A probability; 0 claims pure differential privacy.")],
    accuracy: Accuracy = str(DEFAULT_ACCURACY),
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check a claimed (epsilon, delta) of a run: it holds, is false, or is open.

    It holds where no larger epsilon is needed, is false where explicit data sets need more, and is open where neither is known;
    then a smaller --accuracy may decide. Exit codes: 0 holds, 1 false, 4 open, 2 anything that is not a verdict.

    \b
    Examples:
      cumulant check "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000" --epsilon 2 --delta 1e-6
      cumulant check "Laplace(scale=2) * 3" --epsilon 1 --delta 0
      cumulant check "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --epsilon 1.74 --delta 1e-8 --json
    """
    try:
        run = parse(expression)
        with patient("looking for a bound and a witness"):
            found = run.check(epsilon=epsilon, delta=delta, accuracy=accuracy)
    except InputError:
        raise
    except CumulantError as error:
        raise InputError(str(error)) from error
    except Exception as error:
        raise InputError(f"unexpected {type(error).__name__}: {error}; please report it with the command") from error
    if (doubt := answer.swap_hint(found.claimed, found.delta)) and not quiet:
        typer.echo(doubt, err=True)
    if quiet:
        typer.echo(found.verdict)
    elif as_json:
        typer.echo(found.to_json())
    else:
        typer.echo(answer.wrap_sentences(*_verdict(found), text.what_ran(run.record()), text.assumed(run.record())))
    return _CODES[found.verdict]


def _verdict(found: Check) -> list[str]:
    return list(
        text.verdict(found.verdict, found.claimed, found.delta, found.epsilon, found.lower, found.witness, found.rigour)
    )


def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A guarantee written by --json, - for standard input, or an archive.")
    ],
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print `confirmed` or `not confirmed` alone.")] = False,
) -> int:
    """Evaluate a stored guarantee again, from its exact inputs, and say what it assumes.

    Exit codes: 0 confirmed, 1 not confirmed, 2 the file is no guarantee.

    \b
    Examples:
      cumulant epsilon "Laplace(scale=2) * 3" --delta 1e-6 --json > guarantee.json
      cumulant verify guarantee.json
      cumulant verify guarantee.json --json
      cumulant verify release-1          # a folder that cumulant archive wrote
    """
    if file.is_dir():
        return _verify_archive(file, as_json, quiet)
    found = Guarantee.from_json(_read(file))
    checked, lower = found.verify(), found.lower_confirmed()
    confirmed = checked.holds and lower is not False
    if quiet:
        typer.echo(_WORDS[confirmed])
    elif as_json:
        typer.echo(json.dumps(_fields(found, checked, lower)))
    else:
        typer.echo(answer.wrap_sentences(*text.confirmation(found.proof, checked, lower)))
    return ExitCode.OK if confirmed else ExitCode.NO


def _verify_archive(folder: Path, as_json: bool, quiet: bool) -> int:
    from cumulant.archives import describe_result, verified

    found = verified(folder)
    if quiet:
        typer.echo(_WORDS[found.holds])
    elif as_json:
        fields = _fields(found.guarantee, found.check, found.lower)
        typer.echo(json.dumps(fields | {"changed": list(found.changed)}))
    else:
        typer.echo(answer.wrap_sentences(*describe_result(found)))
    return ExitCode.OK if found.holds else ExitCode.NO


def _fields(found: Guarantee, checked: Verification, lower: bool | None) -> dict[str, Any]:
    fields = asdict(checked) | {"independent": checked.independent, "lower_confirmed": lower}
    shown = {name: "inf" if value == float("inf") else value for name, value in fields.items()}
    return shown | {"run": found.run, "assumptions": text.assumptions(found.proof.run)}


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}; give a file that --json wrote") from error
