"""`cumulant ledger spend`, `hold`, `settle` and `release`."""

from __future__ import annotations

from typing import Annotated

import typer

from cumulant.cli.ledger_shared import (
    Also,
    Group,
    Hold,
    Json,
    Key,
    Keys,
    Name,
    Note,
    Run,
    Unsigned,
    Url,
    account_of,
    app,
    said,
    tell,
)
from cumulant.errors import InputError
from cumulant.ledger.ledger import Ledger


@app.command()
def spend(
    url: Url,
    name: Name,
    expression: Run,
    key: Key = None,
    also: Also = None,
    team: Group = None,
    note: Note = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Print the receipt that --key has; it allows to run nothing.")
    ] = False,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Charge a run before it touches the data; publish after this has answered. Exit code 3: refused, nothing was written.

    \b
    Examples:
      cumulant ledger spend sqlite:///budget.db patients "Gaussian(sigma=20)" --key report-7/q3
      cumulant ledger spend sqlite:///budget.db clicks/10 "Laplace(scale=5) * 3" --also clicks/11 --key w47
      cumulant ledger spend sqlite:///budget.db patients "Gaussian(sigma=20)" --key report-7/q3 --replay
    """
    ledger = Ledger(url, keys, allow_unsigned=unsigned)
    if replay:
        entry = None if key is None else ledger.account(name).find(key)
        if entry is None:
            raise InputError(f"there is no entry with key {key!r} in {name!r}")
        tell(entry.receipt(replayed=True), as_json, "Written before; do not run it again.")
        return
    with said(as_json):
        receipts = ledger.spend(expression, [name, *(also or [])], key, team, note)
    for receipt in receipts:
        tell(receipt, as_json, "Charged; it may run once.")


@app.command()
def hold(
    url: Url,
    name: Name,
    expression: Run,
    key: Key = None,
    also: Also = None,
    team: Group = None,
    note: Note = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Set budget aside for a long job before it starts; it stays held until somebody settles or releases it.

    \b
    Example:
      cumulant ledger hold sqlite:///budget.db patients "Gaussian(sigma=2) * 14000" --key job-8841
    """
    with said(as_json):
        receipts = Ledger(url, keys, allow_unsigned=unsigned).hold(expression, [name, *(also or [])], key, team, note)
    for receipt in receipts:
        tell(receipt, as_json, f"Held; settle by --hold {receipt.seq}.")


@app.command()
def settle(
    url: Url,
    name: Name,
    hold: Hold,
    expression: Annotated[str | None, typer.Argument(metavar="[EXPR]", help="What ran.", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that was held ran.")] = False,
    key: Key = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Charge what ran of a hold and free the rest; publish after this has answered.

    \b
    Examples:
      cumulant ledger settle sqlite:///budget.db patients "Gaussian(sigma=2) * 9000" --hold 12
      cumulant ledger settle sqlite:///budget.db patients --hold 12 --all
    """
    if (expression is None) != everything:
        raise InputError("say what ran: an expression, or --all for all that was held")
    with said(as_json):
        receipt = account_of(url, name, keys, unsigned).settle(hold, expression, key)
    tell(receipt, as_json, "Settled; it may be published.")


@app.command()
def release(
    url: Url,
    name: Name,
    hold: Hold,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="No output or failure of any step was seen or used, nor decides this.")
    ] = False,
    by: Annotated[str | None, typer.Option(help="Who says so.")] = None,
    key: Key = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Free a hold of which nothing was seen, on the record. If anything was, settle what ran.

    \b
    Example:
      cumulant ledger release sqlite:///budget.db patients --hold 12 --unseen --by dpo
    """
    with said(as_json):
        receipt = account_of(url, name, keys, unsigned).release(hold, unseen, by, key)
    tell(receipt, as_json, "Released; what ran under it must never be published.")
