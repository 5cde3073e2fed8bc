"""`cumulant ledger …`: shared budgets in a database, from the shell."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cumulant.cli.completion import complete, complete_expression
from cumulant.cli.failures import ExitCode, reason
from cumulant.cli.ledger_options import (
    MODE_NAMES,
    RELATION_NAMES,
    RULES,
    SHORT_HASH,
    Also,
    By,
    Group,
    GroupFiles,
    Hold,
    Json,
    Key,
    Keys,
    Name,
    Note,
    Reason,
    Run,
    SomeName,
    Unsigned,
    Url,
    account_of,
    announce,
    open_ledger,
    print_note,
    print_receipt,
    print_refusals,
)
from cumulant.errors import InputError, RelationError
from cumulant.input_files import brief_path, lines_of
from cumulant.output import open_output

if TYPE_CHECKING:
    from cumulant.ledger.account import Account
    from cumulant.ledger.entry import Receipt

app = typer.Typer(
    name="ledger",
    help="Keep budgets that many people share.\n\nA run that would exceed a budget is refused before it is charged.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

# `cumulant ledger create`, `grant`, `freeze`, `thaw`, `close`, `reprice` and `upgrade`.


@app.command()
def create(
    url: Url,
    name: Name,
    epsilon: Annotated[str, typer.Option(help="The budget: a number >= 0.")],
    delta: Annotated[str, typer.Option(help="A number in [0, 1).")],
    mode: Annotated[
        str,
        typer.Option(
            help=f"The rule: {', '.join(MODE_NAMES)}; ask cumulant explain.", autocompletion=complete(MODE_NAMES)
        ),
    ] = "adaptive",
    like: Annotated[str | None, typer.Option(help="A run that is typical, for which the rule is tuned.")] = None,
    plan: Annotated[str | None, typer.Option(help="What may run, in a planned account.")] = None,
    relation: Annotated[
        str,
        typer.Option(
            help=f"Who the neighbours are: {', '.join(RELATION_NAMES)}.", autocompletion=complete(RELATION_NAMES)
        ),
    ] = "replace-one",
    unit: Annotated[str, typer.Option(help="What one record is, such as person, person-day or image.")] = "record",
    slack: Annotated[str, typer.Option(help="The part of delta for promises that may fail.")] = "0",
    expires: Annotated[str | None, typer.Option(help="A date or time after which everything is refused.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who answers for the data.")] = None,
    data: Annotated[str | None, typer.Option(help="Which data; accounts on the same data add up.")] = None,
    same_data: Annotated[
        bool, typer.Option("--same-data", help="There is an account on this data, and that is meant.")
    ] = False,
    group: GroupFiles = False,
    by: By = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Open an account.

    Its policy can never be changed. The first account makes the ledger.

    \b
    Examples:
      cumulant ledger create budget.db patients --epsilon 3 --delta 1e-6 --unit person --owner dpo
      cumulant ledger create budget.db counts --epsilon 1 --delta 1e-6 --mode gaussian
      cumulant ledger create budget.db survey --epsilon 1 --delta 1e-6 --mode planned --plan "PureDP(0.1) * 9"
    """
    ledger = open_ledger(url, keys, by, group=group)
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
        account.head(),
        False,
        f"Created account {name!r}. It will never spend more than epsilon {epsilon}, delta {delta}.",
    )
    print_note(f"Rule: {mode}. {RULES[mode]}")
    if data is None and (others := [each for each in ledger.accounts() if each != name]):
        print_note(_other_accounts(others))
    if same_data and data is not None:
        try:
            loss, failure = ledger.combined_budget(data)
        except RelationError as error:  # the account is there all the same
            print_note(f"On data {data!r}: {error}.")
            return
        typer.echo(
            f"All accounts on {data!r} together: ({loss}, {failure}), if that sum was fixed before the first answer."
        )


def _other_accounts(others: list[str]) -> str:
    """Return the warning about accounts that may protect the same people."""
    one = len(others) == 1
    found = (
        f"another account, {others[0]!r}. If it is" if one else f"other accounts, such as {others[0]!r}. If they are"
    )
    return f"This ledger has {found} about the same people, {'both' if one else 'all'} budgets add up: say --data."


@app.command()
def grant(
    url: Url,
    name: Name,
    team: Annotated[str, typer.Argument(metavar="WHO", help="The team.", show_default=False)],
    share: Annotated[str, typer.Option(help="A part of the budget, such as 1/4.")],
    key: Key = None,
    by: By = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Allow a team a part of the budget: a limit, not a promise.

    \b
    Example:
      cumulant ledger grant budget.db patients team-a --share 1/4
    """
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned, by).grant(team, share, key=key)
    print_receipt(receipt, as_json, f"Team {team!r} may use {share} of the budget.")


@app.command()
def freeze(
    url: Url,
    name: Name,
    reason: Reason = None,
    key: Key = None,
    by: By = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Refuse everything until the account is thawed.

    Holds can still be ended.

    \b
    Example:
      cumulant ledger freeze budget.db patients --reason "restored from a backup"
    """
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned, by).freeze(reason, key=key)
    print_receipt(receipt, as_json, f"Account {name!r} is frozen. Thaw it to spend again.")


@app.command()
def thaw(
    url: Url,
    name: Name,
    source_closed: Annotated[
        bool, typer.Option("--source-closed", help="The ledger it was imported from spends nothing any more.")
    ] = False,
    reason: Reason = None,
    key: Key = None,
    by: By = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Allow spending again.

    \b
    Example:
      cumulant ledger thaw budget.db patients --reason "reconciled with all receipts"
    """
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned, by).thaw(reason, key=key, source_closed=source_closed)
    print_receipt(receipt, as_json, f"Account {name!r} is open again.")


@app.command()
def close(
    url: Url,
    name: Name,
    reason: Reason = None,
    key: Key = None,
    by: By = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Refuse everything, for good.

    Holds can still be ended.

    \b
    Example:
      cumulant ledger close budget.db patients --reason "data deleted"
    """
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned, by).close(reason, key=key)
    print_receipt(receipt, as_json, f"Account {name!r} is closed for good.")


@app.command()
def reprice(
    url: Url,
    name: Name,
    entry: Annotated[list[int] | None, typer.Option(help="An entry; all of them if none is given.")] = None,
    key: Key = None,
    by: By = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Enter lower charges that this version proves.

    They concern what was spent before.

    \b
    Example:
      cumulant ledger reprice budget.db patients
    """
    with print_refusals(as_json):
        receipts = account_of(url, name, keys, unsigned, by).reprice(*(entry or []), key=key)
    if as_json:
        announce(json.dumps([json.loads(receipt.to_json()) for receipt in receipts]), f"Prices: {len(receipts)}")
    else:
        lower = (
            f"{len(receipts)} charges are lower now." if receipts else "No charge is lower now. Nothing was written."
        )
        announce(lower, f"Prices: {len(receipts)}")


@app.command()
def upgrade(
    url: Url,
    spender: Annotated[str | None, typer.Option(help="A role of PostgreSQL that may spend, hold and settle.")] = None,
    auditor: Annotated[str | None, typer.Option(help="A role of PostgreSQL that may read and verify.")] = None,
    group: GroupFiles = False,
    as_json: Json = False,
) -> None:
    """Make or update the tables of a ledger.

    Writers wait meanwhile. Roles of PostgreSQL get their rights.

    \b
    Examples:
      cumulant ledger upgrade budget.db
      cumulant ledger upgrade postgresql://owner@db/budget --spender budget_spender --auditor budget_auditor
    """
    from cumulant.cli.ledger_tables import echo_json

    ledger = open_ledger(url, group=group)
    before, after = ledger.upgrade()
    for kind, role in (("spender", spender), ("auditor", auditor)):
        if role is not None:
            ledger.grant(kind, role)
    if as_json:
        echo_json({"before": before, "after": after})
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
        bool, typer.Option("--replay", help="Print the receipt of --key once more; it permits no run.")
    ] = False,
    by: By = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Charge a run before it touches the data.

    Publish after this has answered.

    Exit code 3: refused, nothing was written.

    \b
    Examples:
      cumulant ledger spend budget.db patients "Gaussian(sigma=20)" --key report-7/q3
      cumulant ledger spend budget.db clicks/10 "Laplace(scale=5) * 3" --also clicks/11 --key w47
      cumulant ledger spend budget.db patients "Gaussian(sigma=20)" --key report-7/q3 --replay
    """
    ledger = open_ledger(url, keys, by, unsigned)
    if replay:
        entry = None if key is None else ledger.account(name).find(key)
        if entry is None:
            raise InputError(f"there is no entry with key {key!r} in {name!r}")
        print_receipt(entry.receipt(replayed=True), as_json, "It was charged before. Do not run it again.")
        return
    with print_refusals(as_json):
        receipts = ledger.spend(expression, [name, *(also or [])], key=key, team=team, note=note)
    for receipt in receipts:
        print_receipt(receipt, as_json, f"Charged to {receipt.account!r}. Run it once, then publish.")


@app.command()
def hold(
    url: Url,
    name: Name,
    expression: Run,
    key: Key = None,
    also: Also = None,
    team: Group = None,
    note: Note = None,
    by: By = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Set budget aside for a long job before it starts.

    It also reserves budget for later. It stays held until somebody settles or releases it.
    To cancel a hold under which nothing ran, use release --unseen.

    \b
    Example:
      cumulant ledger hold budget.db patients "Gaussian(sigma=2) * 14000" --key job-8841
    """
    with print_refusals(as_json):
        receipts = open_ledger(url, keys, by, unsigned).hold(
            expression, [name, *(also or [])], key=key, team=team, note=note
        )
    for receipt in receipts:
        print_receipt(receipt, as_json, f"Held in {receipt.account!r}. Settle what ran with --hold {receipt.seq}.")


@app.command()
def settle(
    url: Url,
    name: Name,
    hold: Hold,
    expression: Annotated[str | None, typer.Argument(metavar="[EXPR]", help="What ran.", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that was held ran.")] = False,
    key: Key = None,
    by: By = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Charge what ran of a hold and free the rest.

    Publish after this has answered.

    \b
    Examples:
      cumulant ledger settle budget.db patients "Gaussian(sigma=2) * 9000" --hold 12
      cumulant ledger settle budget.db patients --hold 12 --all
    """
    if (expression is None) != everything:
        raise InputError("say what ran: an expression, or --all for all that was held")
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned, by).settle(hold, expression, key=key)
    print_receipt(receipt, as_json, "Settled. You may publish.")


@app.command()
def release(
    url: Url,
    name: Name,
    hold: Hold,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="No output or failure of any step was seen or used, nor decides this.")
    ] = False,
    by: By = None,
    key: Key = None,
    keys: Keys = None,
    unsigned: Unsigned = False,
    as_json: Json = False,
) -> None:
    """Free a hold of which nothing was seen.

    The release is on the record. If anything was seen, settle what ran.

    \b
    Example:
      cumulant ledger release budget.db patients --hold 12 --unseen --by dpo
    """
    with print_refusals(as_json):
        receipt = account_of(url, name, keys, unsigned, by).release(hold, unseen=unseen, by=by, key=key)
    print_receipt(receipt, as_json, "Released. Nothing that ran under it may be published.")


_LONGEST_NUMBER = 18
"""Digits of the number of an entry; databases hold no longer ones."""


@app.command()
def status(
    url: Url,
    name: SomeName = None,
    expression: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPR]",
            help="Say how many more runs like this fit.",
            show_default=False,
            autocompletion=complete_expression,
        ),
    ] = None,
    union: Annotated[
        str | None, typer.Option(help="Add up accounts, such as a,b, for somebody with a record in each.")
    ] = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Show what is spent and held, and what still fits.

    \b
    Examples:
      cumulant ledger status budget.db
      cumulant ledger status budget.db patients "Gaussian(sigma=20)"
      cumulant ledger status budget.db patients --json
      cumulant ledger status budget.db --union clicks/10,clicks/11
    """
    from cumulant.cli import ledger_tables as tables

    ledger = open_ledger(url, keys)
    if union is not None:
        epsilon, delta = ledger.union(union.split(","))
        if as_json:
            tables.echo_json({"accounts": union.split(","), "epsilon": epsilon, "delta": delta})
        else:
            from cumulant.accounting.numbers import rounded_up

            typer.echo(f"Somebody with one record in each of {union} has ({rounded_up(epsilon)}, {rounded_up(delta)}).")
        return
    if expression and "?" in expression:
        raise InputError(
            "status takes a number in the place of '?'; try values with cumulant ledger status LEDGER NAME RUN, or cumulant "
            "calibrate for an empty account"
        )
    found = [ledger.account(each).status() for each in ([name] if name else ledger.accounts())]
    fits = ledger.account(name).would_fit(expression) if name and expression else None
    if as_json:
        records = [each.to_dict() for each in found]
        asked = {} if fits is None else {"run": expression, "would_fit": fits}
        tables.echo_json(records[0] | asked if name else records)
        return
    if fits is not None:
        typer.echo(tables.fitting(fits, found[0]))
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
    """Show the entries of an account, in order.

    The part of an entry is what it would use of the budget alone. Parts need not add up.

    \b
    Examples:
      cumulant ledger history budget.db patients --last 20
      cumulant ledger history budget.db patients --since 2026-10-01 --json
    """
    from cumulant.cli import ledger_tables as tables

    account = account_of(url, name, keys)
    entries, count = account.history(start, last, since), account.head().seq + 1 - start
    shown = count if last is None else min(count, last)
    if as_json:
        tables.history_json(entries, shown)
    else:
        ender = partial(account._writer.store.end_of_hold, account.name)
        tables.history(entries, shown, account._writer.policy(account.name)[1].rule.used, ender)


@app.command()
def verify(
    url: Url,
    name: SomeName = None,
    receipts: Annotated[
        Path | None,
        typer.Option(help="A file or a directory with a receipt on each line: JSON, or as printed if NAME is given."),
    ] = None,
    head: Annotated[str | None, typer.Option(help="SEQ:HASH of an entry that must be there; needs NAME.")] = None,
    recompute: Annotated[bool, typer.Option("--recompute", help="Prove every charge again, from what ran.")] = False,
    strangers: Annotated[
        bool, typer.Option("--allow-unknown-signers", help="Accept signatures by keys that are not in --keys.")
    ] = False,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Check that nothing was changed, left out or overspent.

    Names the first damaged entry. Exit code 4: the ledger is damaged.

    \b
    Examples:
      cumulant ledger verify budget.db
      cumulant ledger verify budget.db patients --recompute --json
    """
    from cumulant.cli import ledger_tables as tables
    from cumulant.ledger.entry import Receipt

    if head is not None:
        seq, _, digest = head.partition(":")
        if name is None or not (seq.isascii() and seq.isdigit()) or len(seq) > _LONGEST_NUMBER or not digest:
            raise InputError(f"--head {head} must be SEQ:HASH, of one account that is named")
    ledger = open_ledger(url, keys)
    account = None if name is None else ledger.account(name)
    known = [] if receipts is None else tables.receipts(receipts, partial(_read_receipt, account))
    if head is not None and account is not None:
        whole = _whole_hash(account, int(seq), digest)
        known.append(Receipt(account.name, int(seq), whole, "", ""))
    verdict = ledger.verify(
        [name] if name else [], receipts=known, recompute=recompute, allow_unknown_signers=strangers
    )
    if as_json:
        tables.echo_json(tables.verdict(verdict))
    else:
        typer.echo(f"The ledger is {verdict}.", err=not verdict)
        if verdict and not known:
            typer.echo("Newest entries that were cut off are only seen with --head or --receipts.")
    if not verdict:
        raise typer.Exit(ExitCode.BROKEN)


def _read_receipt(account: Account | None, line: str) -> Receipt:
    """Read a receipt in JSON, or as a command printed it; the latter is about `account`, and InputError without it."""
    from cumulant.ledger.entry import Receipt

    printed = re.fullmatch(rf"(?:.*\bReceipt )?(\d{{1,{_LONGEST_NUMBER}}}):([0-9a-f]{{1,64}})", line, re.ASCII)
    if printed is None:
        return Receipt.from_json(line)
    if len(printed[2]) < SHORT_HASH:
        raise InputError(f"receipt {printed[1]}:{printed[2]} is cut short; give all {SHORT_HASH} digits of its hash")
    if account is None:
        raise InputError(
            f"receipt {printed[1]}:{printed[2][:SHORT_HASH]} does not name its account; give NAME, or keep what --json prints"
        )
    seq = int(printed[1])
    return Receipt(account.name, seq, _whole_hash(account, seq, printed[2]), "", "")


def _whole_hash(account: Account, seq: int, digest: str) -> str:
    """Return the hash of an entry if a printed receipt begins it; else the digits as they are, which then refute it."""
    entry = next(iter(account.history(start=seq)), None)
    shortened = entry is not None and entry.seq == seq and len(digest) >= SHORT_HASH
    return entry.hash if shortened and entry is not None and entry.hash.startswith(digest) else digest


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
      cumulant ledger export budget.db --out budget.jsonl
    """
    from cumulant.cli.ledger_tables import echo_json

    ledger = open_ledger(url, keys)
    write = ledger.export_csv if as_csv else ledger.export
    if out is None:
        write(sys.stdout)
        return
    try:
        with open_output(out, [*ledger.files(), *([] if keys is None else [keys])]) as file:
            count = write(file)
    except OSError as error:
        raise InputError(f"{brief_path(out)} cannot be written: {reason(error)}") from error
    echo_json({"entries": count, "file": str(out)}) if as_json else typer.echo(f"{count} entries are in {out}.")


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
      cumulant ledger import copy.db budget.jsonl
    """
    from cumulant.cli import ledger_tables as tables

    try:
        with file.open(encoding="utf-8") as lines:
            verdict = open_ledger(url, keys, group=group).import_lines(lines_of(lines))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {reason(error)}") from error
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
      cumulant ledger head budget.db patients
    """
    newest = account_of(url, name, keys).head()
    typer.echo(newest.to_json() if as_json else f"{newest.seq}:{newest.hash}")
