"""`cumulant audit --trials sequence`: runs are read in their order, and the audit stops at the first refutation."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path

import typer

from cumulant.accounting.numbers import rounded_down, rounded_up
from cumulant.cli.failures import ExitCode, reason
from cumulant.domains import DELTA, one_of
from cumulant.errors import InputError
from cumulant.notation import parse

COINS = ("fair", "pairs")
SMALLEST_CLAIMED = 1e-9
"""The delta of the largest epsilon at which a claim is tested (convention: that of the other audits)."""

_WORDS = {"true": 1.0, "false": 0.0}


def audit_sequence(file: Path, expression: str, delta: str, coin: str, level: str, as_json: bool, quiet: bool) -> int:
    """Bet against the claim run after run; `-` reads standard input as it comes."""
    from cumulant.training.audit import LEVEL, Claim
    from cumulant.training.sequential import Sequential

    pairs = one_of("coin", coin, COINS) == "pairs"
    run, asked, alpha = parse(expression), DELTA.check("delta", delta), LEVEL.check("level", level)
    claim = Claim.of(run, min(SMALLEST_CLAIMED, float(asked)) or SMALLEST_CLAIMED)
    audit = Sequential(claim, level=alpha, pairs=pairs, delta=asked)
    with closing(_rows(file)) as rows:
        for member, score in rows:
            audit.see(member, score)
            if audit.refuted:
                break
    if quiet:
        typer.echo("refuted" if audit.refuted else "consistent")
    elif as_json:
        typer.echo(json.dumps({**audit.to_dict(), "delta": float(asked), "coin": coin, "run": str(run)}))
    else:
        verdict = "REFUTED" if audit.refuted else "consistent with the claim so far"
        typer.echo(f"{verdict} after {audit.runs:,} runs: p = {rounded_up(audit.p_value)} at level {alpha}.")
        typer.echo(
            f"Shown: epsilon >= {rounded_down(audit.epsilon_lower)} at delta = {asked}, with confidence "
            f"{1 - audit.level:g}, whenever you stop."
        )
        typer.echo(f"This holds if the coin of every run was {_meaning(pairs)}.")
        typer.echo("An audit that does not refute proves nothing; it is about this code in this configuration.")
    return ExitCode.NO if audit.refuted else ExitCode.OK


def _meaning(pairs: bool) -> str:
    return "one of each in every pair of runs" if pairs else "fair, drawn before the run and independent of all others"


def _rows(file: Path) -> Generator[tuple[bool, float]]:
    """Yield the coin and the score of every run, as soon as its line is there."""
    try:
        with ExitStack() as opened:
            # standard input stays open
            own = None if str(file) == "-" else opened.enter_context(file.open(newline="", encoding="utf-8"))
            for number, row in enumerate(csv.DictReader(own or sys.stdin), start=2):
                yield _run(number, row, file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} cannot be read: {reason(error)}") from None


def _run(number: int, row: dict[str, str], file: Path) -> tuple[bool, float]:
    try:
        text = (row["member"] or "").strip().lower()
        coin = _WORDS[text] if text in _WORDS else float(text)
        if coin not in (0.0, 1.0):
            raise ValueError(f"{text!r} is no coin, 0 or 1")
        return coin == 1, float(row["score"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"line {number} of {file} is no member and score ({error}); write a header line member,score and then lines like "
            "1,0.25"
        ) from None
