"""`cumulant ledger …`: shared budgets in a database, from the shell; here what asks, checks and copies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cumulant.accounting.printed import rounded_up
from cumulant.cli import ledger_governing, ledger_taking
from cumulant.cli import ledger_tables as tables
from cumulant.cli.codes import ExitCode
from cumulant.cli.ledger_shared import GroupFiles, Json, Keys, Name, Url, account_of, app
from cumulant.errors import InputError
from cumulant.ledger.entry import Receipt
from cumulant.ledger.ledger import Ledger
from cumulant.output import open_output

__all__ = ["app", "ledger_governing", "ledger_taking"]

_LONGEST_NUMBER = 18
"""Digits of the number of an entry; databases hold no longer ones."""


@app.command()
def status(
    url: Url,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One account.", show_default=False)] = None,
    union: Annotated[
        str | None, typer.Option(help="Accounts, as a,b: what somebody with a record in each has.")
    ] = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Where accounts stand: the guarantee, what is spent and held, how many of the usual runs fit, the head of the chain.

    \b
    Examples:
      cumulant ledger status sqlite:///budget.db
      cumulant ledger status sqlite:///budget.db patients --json
      cumulant ledger status sqlite:///budget.db --union clicks/10,clicks/11
    """
    ledger = Ledger(url, keys)
    if union is not None:
        epsilon, delta = ledger.union(union.split(","))
        if as_json:
            tables.echo_json({"accounts": union.split(","), "epsilon": epsilon, "delta": delta})
        else:
            typer.echo(f"Somebody with one record in each of {union} has ({rounded_up(epsilon)}, {rounded_up(delta)}).")
        return
    found = [ledger.account(each).status() for each in ([name] if name else ledger.accounts())]
    if as_json:
        records = [each.to_dict() for each in found]
        tables.echo_json(records[0] if name else records)
    else:
        tables.status(found)


@app.command()
def history(
    url: Url,
    name: Name,
    start: Annotated[int, typer.Option(help="The first entry to show.")] = 0,
    last: Annotated[int | None, typer.Option(metavar="N", help="Show the newest N entries only.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Show entries from this date or time on, in UTC.")
    ] = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """The entries of an account, in order, printed as they are read.

    \b
    Examples:
      cumulant ledger history sqlite:///budget.db patients --last 20
      cumulant ledger history sqlite:///budget.db patients --since 2026-10-01 --json
    """
    account = account_of(url, name, keys)
    entries, count = account.history(start, last, since), account.head().seq + 1 - start
    (tables.history_json if as_json else tables.history)(entries, count if last is None else min(count, last))


@app.command()
def verify(
    url: Url,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One account.", show_default=False)] = None,
    receipts: Annotated[
        Path | None, typer.Option(help="Receipts: a file with one on each line, or a directory of such files.")
    ] = None,
    head: Annotated[str | None, typer.Option(help="SEQ:HASH of an entry that must be there; needs NAME.")] = None,
    recompute: Annotated[bool, typer.Option("--recompute", help="Prove every charge again from the notation.")] = False,
    strangers: Annotated[
        bool, typer.Option("--allow-unknown-signers", help="Accept signatures by keys that are not in --keys.")
    ] = False,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Check that nothing was changed, left out or overspent; names the first broken entry. Exit code 4: it is broken.

    \b
    Examples:
      cumulant ledger verify sqlite:///budget.db
      cumulant ledger verify sqlite:///budget.db patients --recompute --json
    """
    known = [] if receipts is None else tables.receipts(receipts)
    if head is not None:
        seq, _, digest = head.partition(":")
        if name is None or not (seq.isascii() and seq.isdigit()) or len(seq) > _LONGEST_NUMBER or not digest:
            raise InputError(f"--head {head} must be SEQ:HASH, of one account that is named")
        known.append(Receipt(name, int(seq), digest, "", ""))
    ledger = Ledger(url, keys)
    if name is not None:
        ledger.account(name)
    verdict = ledger.verify([name] if name else [], known, recompute, strangers)
    if as_json:
        tables.echo_json(tables.verdict(verdict))
    else:
        typer.echo(f"The ledger is {verdict}.", err=not verdict)
    if not verdict:
        raise typer.Exit(ExitCode.BROKEN)


@app.command(name="export")
def export_(
    url: Url,
    out: Annotated[Path | None, typer.Option(help="A file; the standard output if none is given.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV for reading; it cannot be imported.")] = False,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Write every entry as JSON lines that keep all hashes.

    \b
    Example:
      cumulant ledger export sqlite:///budget.db --out budget.jsonl
    """
    ledger = Ledger(url, keys)
    write = ledger.export_csv if as_csv else ledger.export
    if out is None:
        write(sys.stdout)
        return
    try:
        with open_output(out, [*ledger.files(), *([] if keys is None else [keys])]) as file:
            count = write(file)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error}") from error
    tables.echo_json({"entries": count, "file": str(out)}) if as_json else typer.echo(f"{count} entries are in {out}.")


@app.command(name="import")
def import_(
    url: Url,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote.", show_default=False)],
    group: GroupFiles = False,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Read an export into an empty ledger and verify it; its accounts are frozen until the source is closed.

    \b
    Example:
      cumulant ledger import sqlite:///copy.db budget.jsonl
    """
    try:
        with file.open(encoding="utf-8") as lines:
            verdict = Ledger(url, keys, group=group).import_(lines)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    if as_json:
        tables.echo_json(tables.verdict(verdict))
    else:
        typer.echo(f"The import is {verdict}. Its accounts are frozen; thaw them when the source is closed.")


@app.command()
def head(url: Url, name: Name, keys: Keys = None, as_json: Json = False) -> None:
    """SEQ:HASH of the newest entry: put it into a ticket, and verify --head finds a rollback later.

    \b
    Example:
      cumulant ledger head sqlite:///budget.db patients
    """
    newest = account_of(url, name, keys).head()
    typer.echo(newest.to_json() if as_json else f"{newest.seq}:{newest.hash}")
