"""`cumulant mu` and `cumulant risk`: one number that runs can be compared by, and what an attacker gains."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from cumulant.accounting import text
from cumulant.accounting.gaussian_fit import DEFAULT_SLACK
from cumulant.accounting.numbers import percent
from cumulant.accounting.risk import KINDS, share_text
from cumulant.accounting.risk import risk as bound_risk
from cumulant.cli import answer
from cumulant.cli.failures import ExitCode
from cumulant.cli.questions import Json, Quiet, Run
from cumulant.domains import PROBABILITY, one_of
from cumulant.errors import InputError
from cumulant.notation import parse
from cumulant.progress import patient

MEMBERSHIP = "membership"


def mu(
    expression: Run,
    slack: Annotated[
        str, typer.Option(help="The part of members that mu may leave out: a number in (0, 1).")
    ] = DEFAULT_SLACK,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """The mu of Gaussian privacy, with a slack: no attack does better than telling N(mu, 1) from N(0, 1), but for the slack.

    Compare runs by mu at the same slack. Report mu if the fit is below 0.01, else epsilon at several deltas.
    Exit code 1 where no finite mu is known.

    \b
    Examples:
      cumulant mu "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000"
      cumulant mu "Laplace(scale=2) * 3" --slack 1e-9 --json
    """
    run = parse(expression)
    with patient("fitting a Gaussian"):
        found = run.gaussian_fit(slack=slack)
    if quiet:
        typer.echo(answer.bare_number(found.mu))
    elif as_json:
        typer.echo(json.dumps({**found.to_dict(), "run": str(run)}))
    else:
        typer.echo(answer.wrap_sentences(str(found), text.what_ran(run.record()), text.assumed(run.record())))
    return ExitCode.NO if math.isinf(found.mu) else ExitCode.OK


def risk(
    expression: Run,
    kind: Annotated[str, typer.Option(help=f"The attack: {MEMBERSHIP}, {', '.join(KINDS)}.")],
    prior: Annotated[
        str | None, typer.Option(help="The attacker's success without the release, with all side knowledge.")
    ] = None,
    candidates: Annotated[int | None, typer.Option(help="For reidentification: so many are equally likely.")] = None,
    fpr: Annotated[str | None, typer.Option(help="For membership: the false alarms that the attacker accepts.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also a picture, .png or .svg. Needs cumulant[plot].")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Compute the gain of an attacker from a release, in the words of the attack: the largest success.

    \b
    Examples:
      cumulant risk "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000" --kind attribute
      --prior 0.01 cumulant risk "Laplace(scale=2) * 3" --kind reidentification --candidates 100 --json cumulant risk
      "Laplace(scale=2) * 3" --kind membership --fpr 0.01 cumulant risk "Laplace(scale=2) * 3" --kind reconstruction
      --prior 1% --out risk.png
    """
    named = one_of("kind", kind, (MEMBERSHIP, *KINDS))
    run = parse(expression)
    path = None
    if out is not None:
        from cumulant.plotting.sheet import check_writable

        path = check_writable(out)
    if named == MEMBERSHIP:
        if prior is not None or candidates is not None or fpr is None:
            raise InputError(
                "membership is asked at a false positive rate; give --fpr, such as --fpr 0.01, and no prior"
            )
        rate = PROBABILITY.check("fpr", fpr)
        with patient("looking for the best attack"):
            success = run.membership(rate)
        before, fields = (
            float(rate),
            {"success": success, "fpr": float(rate), "kind": named, "relation": str(run.relation)},
        )
        said = [
            f"An attacker who accepts {share_text(before)} false alarms finds at most {percent(success)} of the members; "
            f"blind guessing finds {share_text(before)}."
        ]
    else:
        if fpr is not None:
            raise InputError(f"{named} is asked with a prior; give --prior, such as --prior 0.01, and no --fpr")
        if named != "reidentification" and candidates is not None:
            raise InputError("--candidates is for --kind reidentification; give --prior")
        if prior is None and candidates is None:
            raise InputError(
                "give --prior: the attacker's success without the release, with all side knowledge; only you know it"
            )
        with patient("looking for the best attack"):
            if named == "reidentification":
                found = run.reidentification(prior=prior, candidates=candidates)
            else:
                found = bound_risk(run.record(), named, prior or "")
        success, before, fields = found.success, found.prior, found.to_dict()
        said = [str(found), found.caveat]
    if path is not None:
        from cumulant.plotting.risks import people, save_people

        save_people(people(before, success, named), path)
    if quiet:
        typer.echo(answer.bare_number(success))
    elif as_json:
        typer.echo(json.dumps({**fields, "run": str(run)}))
    else:
        typer.echo(answer.wrap_sentences(*said, text.what_ran(run.record()), text.assumed(run.record())))
    return ExitCode.OK
