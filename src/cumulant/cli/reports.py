"""`cumulant mu` and `cumulant risk`: one number that runs can be compared by, and what an attacker gains."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cumulant.accounting.choices import DEFAULT_SLACK, GOOD_FIT, RISK_KINDS
from cumulant.cli.card import Card, patient, print_card
from cumulant.cli.completion import complete
from cumulant.cli.failures import ExitCode
from cumulant.cli.options import Explain, Json, Quiet, Run
from cumulant.errors import InputError

if TYPE_CHECKING:
    from cumulant.accounting.gaussian_fit import GaussianFit
    from cumulant.accounting.run import RunRecord

MEMBERSHIP = "membership"


def mu(
    expression: Run,
    slack: Annotated[
        str, typer.Option(help="The part of members that mu may leave out: a number in (0, 1).")
    ] = DEFAULT_SLACK,
    explain: Explain = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Find the mu of Gaussian privacy, to compare runs.

    No attack does better than telling N(mu, 1) from N(0, 1), but for the slack.

    Compare runs by mu at the same slack. Report mu if the fit is below 0.01, else epsilon at several deltas.
    Exit code 1 where no finite mu is known.

    \b
    Examples:
      cumulant mu "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000"
      cumulant mu "Laplace(scale=2) * 3" --slack 1e-9 --json
    """
    from cumulant.accounting import text
    from cumulant.cli import answer
    from cumulant.notation import parse

    run = parse(expression)
    with patient("fitting a Gaussian"):
        found = run.gaussian_fit(slack=slack)
    if quiet:
        typer.echo(answer.bare_number(found.mu))
    elif as_json:
        typer.echo(json.dumps({**found.to_dict(), "run": str(run)}))
    else:
        record = run.record()
        print_card(_mu_card(found, record), explain)
        if explain:
            typer.echo(f"\n{answer.wrap_sentences(str(found), text.what_ran(record), text.assumed(record))}")
    return ExitCode.NO if math.isinf(found.mu) else ExitCode.OK


def _mu_card(found: GaussianFit, run: RunRecord) -> Card:
    """Return mu, its lower end, how well it fits, and the run."""
    from cumulant.accounting.numbers import rounded_down, rounded_up
    from cumulant.cli import answer

    card = Card(f"μ = {rounded_up(found.mu)}   at slack {rounded_up(found.slack)}")
    if math.isinf(found.mu):
        card.verdict, card.tone = "no finite mu is known; ask for epsilon at a delta instead", "bad"
    else:
        card.verdict = found.rigour + (f"; at least {rounded_down(found.lower)}" if found.lower else "")
        card.tone = "open" if found.rigour == "estimated" else "good"
        attack = f"no attack does better than telling N({rounded_up(found.mu)}, 1) from N(0, 1)"
        card.add("Means", f"{attack}, but for {rounded_up(found.slack)}")
        card.add("Fit", _fit_sentence(found))
    answer.describe_run(card, run)
    return card


def _fit_sentence(found: GaussianFit) -> str:
    """Return how well mu describes the run, and what to report."""
    number = found.fit_text.removeprefix("fit ")
    if found.fit is not None and found.fit < GOOD_FIT:
        return f"{number}: mu describes the run well, so report it"
    return f"{number}: mu overstates attacks, so report epsilon at several deltas too"


def risk(
    expression: Run,
    kind: Annotated[
        str,
        typer.Option(
            help=f"The attack: {', '.join((MEMBERSHIP, *RISK_KINDS))}.",
            autocompletion=complete((MEMBERSHIP, *RISK_KINDS)),
        ),
    ],
    prior: Annotated[
        str | None, typer.Option(help="The attacker's success without the release, with all side knowledge.")
    ] = None,
    candidates: Annotated[int | None, typer.Option(help="For reidentification: so many are equally likely.")] = None,
    fpr: Annotated[str | None, typer.Option(help="For membership: the false alarms that the attacker accepts.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also a picture, .png or .svg. Needs cumulant[plot].")
    ] = None,
    explain: Explain = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Bound the success of an attack on one person.

    \b
    Examples:
      cumulant risk "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(1%) * 1000" --kind attribute --prior 0.01
      cumulant risk "Laplace(scale=2) * 3" --kind reidentification --candidates 100 --json
      cumulant risk "Laplace(scale=2) * 3" --kind membership --fpr 0.01
      cumulant risk "Laplace(scale=2) * 3" --kind reconstruction --prior 1% --out risk.png
    """
    from cumulant.accounting import text
    from cumulant.accounting.numbers import percent
    from cumulant.accounting.risk import risk as bound_risk
    from cumulant.accounting.risk import share_text
    from cumulant.cli import answer
    from cumulant.domains import PROBABILITY, one_of
    from cumulant.notation import parse

    named = one_of("kind", kind, (MEMBERSHIP, *RISK_KINDS))
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
            f"An attacker who accepts {share_text(before)} false alarms finds at most {percent(success)} of the "
            f"{text.attacked(run.record())}; blind guessing finds {share_text(before)}."
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
        record = run.record()
        guessed = "by chance" if named == MEMBERSHIP else "without the release"
        card = Card(f"success ≤ {percent(success)}   {named}, from {share_text(before)} {guessed}")
        card.add("Means", said[0])
        card.add("Careful", " ".join(said[1:]))
        answer.describe_run(card, record)
        print_card(card, explain)
        if explain:
            typer.echo(f"\n{answer.wrap_sentences(*said, text.what_ran(record), text.assumed(record))}")
    return ExitCode.OK
