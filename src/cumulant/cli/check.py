"""`cumulant check` and `cumulant verify`: tests of a claim and of a stored guarantee."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from cumulant.accounting.choices import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.accounting.choices import Method as MethodName
from cumulant.cli.card import Card, patient, print_card
from cumulant.cli.failures import ExitCode, reason
from cumulant.cli.options import Accuracy, Explain, Json, Method, Quiet, Run
from cumulant.errors import CumulantError, InputError
from cumulant.input_files import read_text

if TYPE_CHECKING:
    from cumulant.accounting.check import Check
    from cumulant.accounting.guarantee import Guarantee
    from cumulant.accounting.run import RunRecord
    from cumulant.conversion.verify import Verification

# `cumulant archive`: a guarantee with everything that a reader needs in years, in one folder.


def archive(
    expression: Run,
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder.")],
    delta: Annotated[str | None, typer.Option(help="A probability, to state epsilon at; or give --epsilon.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="A number >= 0, to state delta at; or give --delta.")] = None,
    claim: Annotated[
        str | None, typer.Option(help="Judge this claimed epsilon at --delta, and keep the verdict.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="What one record is, such as person, client or image.")] = None,
    method: Method = DEFAULT_METHOD,
    accuracy: Accuracy = str(DEFAULT_ACCURACY),
    no_plot: Annotated[bool, typer.Option("--no-plot", help="Leave the picture out; it needs cumulant[plot].")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Put a guarantee into a folder that can be verified.

    The folder has a statement, JSON, a picture, the versions, and the command that checks it again.

    `cumulant verify DIR` reads the folder: it evaluates the guarantee again and says which files were changed since.

    With --claim the folder has a verdict too. Exit codes are then 0 holds, 1 false, 4 open.

    \b
    Examples:
      cumulant archive "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(1%) * 1000" --delta 1e-6 --out release-1
      cumulant verify release-1
      cumulant archive "Gaussian(sigma=4) * 10" --delta 1e-6 --claim 3 --unit client --out review-1
    """
    from cumulant.archives import CLAIM, describe_unit
    from cumulant.archives import archive as archived
    from cumulant.cli import answer

    found = archived(
        expression,
        out,
        delta=delta,
        epsilon=epsilon,
        claim=claim,
        unit=unit,
        method=cast(MethodName, method),
        accuracy=accuracy,
        plot=not no_plot,
    )
    judged = None if claim is None else json.loads((out / CLAIM).read_text(encoding="utf-8"))
    if quiet:
        number = answer.bare_number(found.epsilon if found.asked == "delta" else found.delta)
        typer.echo(number if judged is None else judged["verdict"])
    elif as_json:
        more = ({} if judged is None else {"claim": judged}) | ({} if unit is None else {"unit": unit.strip()})
        typer.echo(json.dumps({**found.to_dict(), **more}) if more else found.to_json())
    else:
        card = answer.answer_card(found)
        if judged is not None:
            card.rows.insert(0, ("Claim", _claim_words(judged)))
        _add_unit(card, describe_unit(unit or ""))
        print_card(card)
    if not quiet:
        typer.echo(f"{out}: check it again by: cumulant verify {out}", err=True)
    if judged is not None:
        return _CODES[judged["verdict"]]
    return ExitCode.NO if math.isinf(found.epsilon) else ExitCode.OK


def _add_unit(card: Card, sentence: str) -> None:
    """Add what one record is below the row that says whom the number protects."""
    place = next((i + 1 for i, (label, _) in enumerate(card.rows) if label == "Protects"), len(card.rows))
    if sentence:
        card.rows.insert(place, ("Unit", f"{sentence[:1].lower()}{sentence[1:].rstrip('.')}"))


def _claim_words(judged: dict[str, Any]) -> str:
    """Return the verdict about a claim in a few words."""
    from cumulant.accounting.numbers import rounded_down

    needed = f": at least {rounded_down(judged['lower'])} is needed" if judged["verdict"] == "false" else ""
    return f"ε = {judged['claimed']:.15g} {'is ' if judged['verdict'] != 'holds' else ''}{judged['verdict']}{needed}"


_WORDS = {True: "confirmed", False: "not confirmed"}
_CODES = {"holds": ExitCode.OK, "false": ExitCode.NO, "open": ExitCode.OPEN}


def check(
    expression: Run,
    epsilon: Annotated[str, typer.Option(help="What is claimed: a number >= 0.")],
    delta: Annotated[str, typer.Option(help="A probability; 0 claims pure differential privacy.")],
    accuracy: Accuracy = str(DEFAULT_ACCURACY),
    explain: Explain = False,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print `holds`, `false` or `open` alone.")] = False,
) -> int:
    """Judge a claimed epsilon: it holds, is false or open.

    It holds where no larger epsilon is needed. It is false where explicit data sets need more. It is open where neither is
    known; then a smaller --accuracy may decide. Exit codes: 0 holds, 1 false, 4 open, 2 anything that is not a verdict.

    \b
    Examples:
      cumulant check "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(rate=1%) * 1000" --epsilon 2 --delta 1e-6
      cumulant check "Laplace(scale=2) * 3" --epsilon 1 --delta 0
      cumulant check "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --epsilon 1.74 --delta 1e-8 --json
    """
    from cumulant.accounting import text
    from cumulant.accounting.question import Question
    from cumulant.cli import answer
    from cumulant.notation import parse

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
        given = Question.parse_query(DEFAULT_METHOD, None, None, accuracy, "delta").accuracy
        print_card(_claim_card(found, run.record(), float(given)), explain)
        if explain:
            record = run.record()
            typer.echo(
                f"\n{answer.wrap_sentences(*_verdict(found, record), text.what_ran(record), text.assumed(record))}"
            )
    return _CODES[found.verdict]


def _verdict(found: Check, run: RunRecord) -> list[str]:
    from cumulant.accounting import text

    numbers = (found.claimed, found.delta, found.epsilon, found.lower)
    return list(text.verdict(found.verdict, *numbers, text.witness_words(run, found.witness), found.rigour))


def _claim_card(found: Check, run: RunRecord, accuracy: float) -> Card:
    """Return the verdict about a claim, the reason, and what to do next where it is open."""
    from cumulant.accounting.numbers import rounded_down, rounded_up
    from cumulant.accounting.text import author_questions, witness_words
    from cumulant.cli import answer

    claimed, delta = rounded_up(found.claimed, 15), rounded_up(found.delta, 15)
    card = Card(f"{found.verdict.capitalize()}: ε = {claimed}   at δ = {delta}")
    enough = "" if math.isinf(found.epsilon) else f"ε = {rounded_up(found.epsilon)} is enough"
    needed = "" if not found.lower else f"at least {rounded_down(found.lower)} is needed"
    if found.verdict == "holds":
        card.verdict = f"{found.rigour}: {enough}"
    elif found.verdict == "false":
        card.verdict, card.tone = "; ".join(each for each in (needed, enough) if each), "bad"
        card.add("Shown by", witness_words(run, found.witness).partition(" (")[0])
    else:
        card.verdict, card.tone = "; ".join(each for each in (enough, needed) if each) or "nothing is known", "open"
        card.add("Next", _next_step(found, run, accuracy))
    questions = () if found.verdict == "holds" else author_questions(run)
    # the assumptions of a claim that is false no longer matter, the questions take their place
    answer.describe_run(card, run, assumptions=found.verdict != "false", questions=questions)
    return card


_GRID_ENDS = 4
"""Accuracies by which both ends of a grid may differ, at most; a wider gap has another cause (convention)."""


def _next_step(found: Check, run: RunRecord, accuracy: float) -> str:
    """Return what may settle a claim that is open."""
    if found.rigour == "estimated":
        return "describe the mechanism exactly: a Python function can only be evaluated in floats, which proves nothing"
    for part in run.parts if found.lower is None else ():
        if hint := part.source.lower_end_hint():
            return hint
    if found.lower is None:
        return "ask the authors for more noise or a larger epsilon: no lower end is known, so nothing refutes the claim"
    if found.epsilon > found.lower * (1 + _GRID_ENDS * accuracy):
        return "no --accuracy closes this gap: what is true between its ends is not known"
    return "ask again with a smaller --accuracy, such as 1e-4"


def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A guarantee written by --json, - for standard input, or an archive.")
    ],
    explain: Explain = False,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print `confirmed` or `not confirmed` alone.")] = False,
) -> int:
    """Evaluate a stored guarantee again.

    It starts from the exact inputs, and takes another route where one is open.

    Exit codes: 0 confirmed, 1 not confirmed, 2 the file is no guarantee.

    \b
    Examples:
      cumulant epsilon "Laplace(scale=2) * 3" --delta 1e-6 --json > guarantee.json
      cumulant verify guarantee.json
      cumulant verify guarantee.json --json
      cumulant verify release-1          # a folder that cumulant archive wrote
    """
    from cumulant.accounting import text
    from cumulant.accounting.guarantee import Guarantee
    from cumulant.cli import answer

    if file.is_dir():
        return _verify_archive(file, explain, as_json, quiet)
    found = Guarantee.from_json(_read(file))
    checked, lower = found.verify(), found.lower_confirmed()
    confirmed = checked.holds and lower is not False
    if quiet:
        typer.echo(_WORDS[confirmed])
    elif as_json:
        typer.echo(json.dumps(_fields(found, checked, lower)))
    else:
        print_card(_confirmation_card(found, checked, lower, confirmed), explain)
        if explain:
            typer.echo(f"\n{answer.wrap_sentences(*text.confirmation(found.proof, checked, lower))}")
    return ExitCode.OK if confirmed else ExitCode.NO


def _confirmation_card(
    found: Guarantee,
    checked: Verification,
    lower: bool | None,
    confirmed: bool,
    changed: Sequence[str] | None = None,
) -> Card:
    """Return the result of a second evaluation: of the number, of its lower end, and of the files of an archive.

    `changed` says what was changed about the files; None without an archive.
    """
    from cumulant.accounting.numbers import rounded_down, rounded_up
    from cumulant.accounting.text import lower_end_words
    from cumulant.accounting.verification import refuting_lower_end
    from cumulant.cli import answer

    sign, given = ("ε", "δ") if found.asked == "delta" else ("δ", "ε")
    value, at = (found.epsilon, found.delta) if found.asked == "delta" else (found.delta, found.epsilon)
    needed = None if checked.holds else refuting_lower_end(found.proof)
    said = "Confirmed" if confirmed else "Not confirmed" if needed is None else "False"
    card = Card(f"{said}: {sign} = {rounded_up(value, 17)}   at {given} = {rounded_up(at, 17)}")
    if checked.holds and changed:
        card.verdict = "files were changed since they were written"
    elif checked.holds and lower is False and found.lower is not None:
        card.headline = f"Not confirmed: lower end {rounded_down(found.lower, 17)}   at {given} = {rounded_up(at, 17)}"
        card.verdict = f"{sign} = {rounded_up(value)} is confirmed; its lower end is not"
    elif checked.holds:
        card.verdict = (
            "by an independent computation at higher precision"
            if checked.independent
            else "by the same code with a finer grid: no other route is open"
        )
    elif needed is not None:
        card.verdict = f"at least {rounded_down(needed)} is needed"
    elif checked.arithmetic == "none" and checked.note:
        card.verdict = checked.note
    else:
        card.verdict = "the second computation does not reach this number"
    card.tone = "good" if confirmed else "bad"
    if found.proof.lower is not None:
        card.add("Lower end", f"{rounded_down(found.proof.lower)} {lower_end_words(checked.holds, lower)}")
    if changed is not None:
        card.add("Files", changed or "all as written")
    answer.describe_run(card, found.proof.run)
    return card


def _verify_archive(folder: Path, explain: bool, as_json: bool, quiet: bool) -> int:
    from cumulant.archives import describe_files, describe_result, describe_unit, verified
    from cumulant.cli import answer

    found = verified(folder)
    if quiet:
        typer.echo(_WORDS[found.holds])
    elif as_json:
        fields = _fields(found.guarantee, found.check, found.lower)
        judged = {} if found.claim is None else {"claim": found.claim.to_dict()}
        named = {"unit": found.unit} if found.unit else {}
        files = {"changed": list(found.changed), "mismatched": list(found.mismatched)}
        typer.echo(json.dumps(fields | files | judged | named))
    else:
        card = _confirmation_card(found.guarantee, found.check, found.lower, found.holds, describe_files(found))
        if found.claim is not None:
            card.rows.insert(0, ("Claim", _claim_words(found.claim.to_dict())))
        _add_unit(card, describe_unit(found.unit))
        print_card(card, explain)
        if explain:
            typer.echo(f"\n{answer.wrap_sentences(*describe_result(found))}")
    return ExitCode.OK if found.holds else ExitCode.NO


def _fields(found: Guarantee, checked: Verification, lower: bool | None) -> dict[str, Any]:
    from cumulant.accounting import text

    fields = asdict(checked) | {"independent": checked.independent, "lower_confirmed": lower}
    shown = {name: "inf" if value == float("inf") else value for name, value in fields.items()}
    return shown | {"run": found.run, "assumptions": text.assumptions(found.proof.run)}


def _read(file: Path) -> str:
    try:
        return read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {reason(error)}; give a file that --json wrote") from error
