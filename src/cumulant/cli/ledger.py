"""`cumulant ledger …`: shared budgets in a database, from the shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from cumulant.accounting.numbers import rounded_up
from cumulant.cli import ledger_tables as tables
from cumulant.cli.failures import ExitCode, abandon_output
from cumulant.errors import BudgetRefused, InputError, KeyConflict
from cumulant.ledger.account import Account
from cumulant.ledger.entry import Receipt
from cumulant.ledger.ledger import Ledger
from cumulant.output import open_output

# What the commands of `cumulant ledger` have in common: the application, its options, how a receipt is told.

app = typer.Typer(
    name="ledger",
    help="Privacy budgets that many people share: refused before they are spent, whatever the analysts do.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Url = Annotated[str, typer.Argument(metavar="URL", help="sqlite:///FILE or postgresql://…", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The account.", show_default=False)]
Run = Annotated[str, typer.Argument(metavar="EXPR", help="What will run, in quotes.", show_default=False)]
Key = Annotated[
    str | None, typer.Option(help="A name for this request, such as job-17/q3; a retry with it writes nothing.")
]
Also = Annotated[list[str] | None, typer.Option(help="Another account whose block is read; all are charged, or none.")]
Group = Annotated[str | None, typer.Option(help="The team whose allowance is used.")]
Note = Annotated[str | None, typer.Option(help="A remark, kept outside of the chain so that it can be erased.")]
Hold = Annotated[int, typer.Option(help="The entry of the hold.")]
Reason = Annotated[str | None, typer.Option(help="Why, for the record.")]
Keys = Annotated[Path | None, typer.Option(help="A file of keys that sign entries.", envvar="CUMULANT_LEDGER_KEYS")]
Unsigned = Annotated[
    bool, typer.Option("--allow-unsigned", help="Write to an account that is not signed, though a key is given.")
]
GroupFiles = Annotated[
    bool, typer.Option("--group", help="A new SQLite file can be used by its group too, not by its owner alone.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@contextmanager
def print_refusals(as_json: bool) -> Iterator[None]:
    """Print a refusal like an answer if --json was given."""
    try:
        yield
    except (BudgetRefused, KeyConflict) as error:
        if as_json:
            fields = ("requested", "spent", "held", "would_fit", "asked")
            found = {name: getattr(error, name) for name in fields if isinstance(error, BudgetRefused)}
            receipt = getattr(error, "receipt", None)
            found |= {"receipt": json.loads(receipt.to_json())} if isinstance(receipt, Receipt) else {}
            tables.echo_json({"refused": str(error), **found})
        raise


def account_of(url: str, name: str, keys: Path | None, allow_unsigned: bool = False) -> Account:
    """Return the account that a command is about."""
    return Ledger(url, keys, allow_unsigned=allow_unsigned).account(name)


def print_receipt(receipt: Receipt, as_json: bool, sentence: str) -> None:
    """Print a receipt, as JSON or after a sentence."""
    told = f"Receipt: {receipt.account} {receipt.seq}:{receipt.hash}"
    announce(receipt.to_json() if as_json else f"{sentence} {told}", told)


def announce(text: str, written: str) -> None:
    """Print what was written; where nobody can read it, say so on stderr.

    The entry is there and the command has succeeded.
    """
    try:
        if sys.stdout is not None:
            typer.echo(text)
            sys.stdout.flush()
            return
    except (OSError, ValueError):
        abandon_output()
    if sys.stderr is not None:
        sys.stderr.write(f"It was written, and the answer could not be printed. {written}\n")


# `cumulant ledger create`, `grant`, `freeze`, `thaw`, `close`, `reprice` and `upgrade`.


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
    with print_refusals(as_json):
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
    print_receipt(
        account.head(), False, f"Created account {name!r}. It never spends more than epsilon {epsilon}, delta {delta}."
    )
    if same_data and data is not None:
        loss, failure = ledger.combined_budget(data)
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
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned).grant(team, share, key)
    print_receipt(receipt, as_json, f"Team {team!r} may use {share} of the budget.")


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
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned).freeze(reason, key)
    print_receipt(receipt, as_json, "Frozen.")


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
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned).thaw(source_closed, reason, key)
    print_receipt(receipt, as_json, "Open again.")


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
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned).close(reason, key)
    print_receipt(receipt, as_json, "Closed.")


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
    with print_refusals(as_json):
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
    """Make the tables of a ledger, or bring them to the version of this library.

    This happens under the lock. Roles get their rights.

    \b
    Examples:
      cumulant ledger upgrade sqlite:///budget.db
      cumulant ledger upgrade postgresql://owner@db/budget --spender budget_spender --auditor budget_auditor
    """
    ledger = Ledger(url, group=group)
    before, after = ledger.upgrade()
    for kind, role in (("spender", spender), ("auditor", auditor)):
        if role is not None:
            ledger.grant(kind, role)
    if as_json:
        tables.echo_json({"before": before, "after": after})
    else:
        typer.echo(f"Schema {after}, as it was." if before == after else f"Schema {after}; it was {before}.")


# `cumulant ledger spend`, `hold`, `settle` and `release`.


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
    """Charge a run before it touches the data; publish after this has answered.

    Exit code 3: refused, nothing was written.

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
        print_receipt(entry.receipt(replayed=True), as_json, "Written before; do not run it again.")
        return
    with print_refusals(as_json):
        receipts = ledger.spend(expression, [name, *(also or [])], key, team, note)
    for receipt in receipts:
        print_receipt(receipt, as_json, "Charged; it may run once.")


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
    """Set budget aside for a long job before it starts.

    It stays held until somebody settles or releases it.

    \b
    Example:
      cumulant ledger hold sqlite:///budget.db patients "Gaussian(sigma=2) * 14000" --key job-8841
    """
    with print_refusals(as_json):
        receipts = Ledger(url, keys, allow_unsigned=unsigned).hold(expression, [name, *(also or [])], key, team, note)
    for receipt in receipts:
        print_receipt(receipt, as_json, f"Held; settle by --hold {receipt.seq}.")


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
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned).settle(hold, expression, key)
    print_receipt(receipt, as_json, "Settled; it may be published.")


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
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned).release(hold, unseen, by, key)
    print_receipt(receipt, as_json, "Released; what ran under it must never be published.")


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
    """Show the guarantee of accounts, the spent and held budget, and how many runs still fit.

    Also shows the newest entry.

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
    """Show the entries of an account, in order, printed as they are read.

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
    """Check that nothing was changed, left out or overspent.

    Names the first broken entry. Exit code 4: it is broken.

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
    """Read an export into an empty ledger and verify it.

    Its accounts are frozen until the source is closed.

    \b
    Example:
      cumulant ledger import sqlite:///copy.db budget.jsonl
    """
    try:
        with file.open(encoding="utf-8") as lines:
            verdict = Ledger(url, keys, group=group).import_lines(lines)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    if as_json:
        tables.echo_json(tables.verdict(verdict))
    else:
        typer.echo(f"The import is {verdict}. Its accounts are frozen; thaw them when the source is closed.")


@app.command()
def head(url: Url, name: Name, keys: Keys = None, as_json: Json = False) -> None:
    """Print SEQ:HASH of the newest entry.

    Put it into a ticket, and verify --head finds a rollback later.

    \b
    Example:
      cumulant ledger head sqlite:///budget.db patients
    """
    newest = account_of(url, name, keys).head()
    typer.echo(newest.to_json() if as_json else f"{newest.seq}:{newest.hash}")
