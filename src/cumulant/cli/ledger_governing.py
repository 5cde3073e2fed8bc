"""`cumulant ledger create`, `grant`, `freeze`, `thaw`, `close`, `reprice` and `upgrade`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from cumulant.cli import ledger_tables as tables
from cumulant.cli.ledger_shared import (
    GroupFiles,
    Json,
    Key,
    Keys,
    Name,
    Reason,
    Unsigned,
    Url,
    account_of,
    announce,
    app,
    said,
    tell,
)
from cumulant.ledger.ledger import Ledger


@app.command()
def create(
    url: Url,
    name: Name,
    epsilon: Annotated[str, typer.Option(help="The budget: a number >= 0.")],
    delta: Annotated[str, typer.Option(help="A number in [0, 1).")],
    mode: Annotated[str, typer.Option(help="adaptive, gaussian or planned.")] = "adaptive",
    like: Annotated[str | None, typer.Option(help="A typical workload, for which the rule is tuned.")] = None,
    plan: Annotated[str | None, typer.Option(help="What may run, in a planned account.")] = None,
    relation: Annotated[str, typer.Option(help="replace-one, add-remove or replace-special.")] = "replace-one",
    unit: Annotated[str, typer.Option(help="Whom it protects: record, person-day or person.")] = "record",
    slack: Annotated[str, typer.Option(help="The part of delta for promises that may fail.")] = "0",
    expires: Annotated[str | None, typer.Option(help="A date or time after which everything is refused.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who answers for the data.")] = None,
    data: Annotated[str | None, typer.Option(help="Which data; accounts on the same data add up.")] = None,
    same_data: Annotated[
        bool, typer.Option("--same-data", help="There is an account on this data, and that is meant.")
    ] = False,
    group: GroupFiles = False,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Open an account. Its policy can never be changed. The first account makes the ledger.

    \b
    Examples:
      cumulant ledger create sqlite:///budget.db patients --epsilon 3 --delta 1e-6 --unit person --owner dpo
      cumulant ledger create sqlite:///budget.db counts --epsilon 1 --delta 1e-6 --mode gaussian
      cumulant ledger create sqlite:///budget.db survey --epsilon 1 --delta 1e-6 --mode planned --plan "PureDP(0.1) * 9"
    """
    ledger = Ledger(url, keys, group=group)
    with said(as_json):
        account = ledger.create(
            name,
            epsilon,
            delta,
            relation=relation,
            unit=unit,
            mode=mode,
            like=like,
            plan=plan,
            slack=slack,
            owner=owner,
            expires=expires,
            data=data,
            same_data=same_data,
        )
    if as_json:
        made = {**json.loads(account.head().to_json()), "policy": account.policy.to_dict()}
        announce(json.dumps(made), f"Account: {name}")
        return
    tell(account.head(), False, f"Account {name!r} holds ({epsilon}, {delta}) whatever is asked of it.")
    if same_data and data is not None:
        loss, failure = ledger.together(data)
        typer.echo(
            f"All accounts on {data!r} together: ({loss}, {failure}), if that sum was fixed before the first answer."
        )


@app.command()
def grant(
    url: Url,
    name: Name,
    team: Annotated[str, typer.Argument(metavar="WHO", help="The team.", show_default=False)],
    share: Annotated[str, typer.Option(help="A part of the budget, such as 1/4.")],
    key: Key = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Allow a team a part of the budget: a limit, not a promise.

    \b
    Example:
      cumulant ledger grant sqlite:///budget.db patients team-a --share 1/4
    """
    with said(as_json):
        receipt = account_of(url, name, keys, unsigned).grant(team, share, key)
    tell(receipt, as_json, f"Team {team!r} may use {share} of the budget.")


@app.command()
def freeze(
    url: Url,
    name: Name,
    reason: Reason = None,
    key: Key = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Refuse everything but the end of holds, until the account is thawed.

    \b
    Example:
      cumulant ledger freeze sqlite:///budget.db patients --reason "restored from a backup"
    """
    with said(as_json):
        receipt = account_of(url, name, keys, unsigned).freeze(reason, key)
    tell(receipt, as_json, "Frozen.")


@app.command()
def thaw(
    url: Url,
    name: Name,
    source_closed: Annotated[
        bool, typer.Option("--source-closed", help="The ledger it was imported from spends nothing any more.")
    ] = False,
    reason: Reason = None,
    key: Key = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Allow spending again.

    \b
    Example:
      cumulant ledger thaw sqlite:///budget.db patients --reason "reconciled with all receipts"
    """
    with said(as_json):
        receipt = account_of(url, name, keys, unsigned).thaw(source_closed, reason, key)
    tell(receipt, as_json, "Open again.")


@app.command()
def close(
    url: Url,
    name: Name,
    reason: Reason = None,
    key: Key = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Refuse everything but the end of holds, for good.

    \b
    Example:
      cumulant ledger close sqlite:///budget.db patients --reason "data deleted"
    """
    with said(as_json):
        receipt = account_of(url, name, keys, unsigned).close(reason, key)
    tell(receipt, as_json, "Closed.")


@app.command()
def reprice(
    url: Url,
    name: Name,
    entry: Annotated[list[int] | None, typer.Option(help="An entry; all of them if none is given.")] = None,
    key: Key = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Enter the lower prices that this version of the library proves for what was spent.

    \b
    Example:
      cumulant ledger reprice sqlite:///budget.db patients
    """
    with said(as_json):
        receipts = account_of(url, name, keys, unsigned).reprice(*(entry or []), key=key)
    if as_json:
        announce(json.dumps([json.loads(receipt.to_json()) for receipt in receipts]), f"Prices: {len(receipts)}")
    else:
        lower = f"{len(receipts)} prices are lower now." if receipts else "No price is lower; nothing was written."
        announce(lower, f"Prices: {len(receipts)}")


@app.command()
def upgrade(
    url: Url,
    spender: Annotated[str | None, typer.Option(help="A role of PostgreSQL that may spend, hold and settle.")] = None,
    auditor: Annotated[str | None, typer.Option(help="A role of PostgreSQL that may read and verify.")] = None,
    group: GroupFiles = False,
    as_json: Json = False,
) -> None:
    """Make the tables of a ledger, or bring them to the version of this library, under the lock; give roles their rights.

    \b
    Examples:
      cumulant ledger upgrade sqlite:///budget.db
      cumulant ledger upgrade postgresql://owner@db/budget --spender budget_spender --auditor budget_auditor
    """
    ledger = Ledger(url, group=group)
    before, after = ledger.upgrade()
    for kind, role in (("spender", spender), ("auditor", auditor)):
        if role is not None:
            ledger.permit(kind, role)
    if as_json:
        tables.echo_json({"before": before, "after": after})
    else:
        typer.echo(f"Schema {after}, as it was." if before == after else f"Schema {after}; it was {before}.")
