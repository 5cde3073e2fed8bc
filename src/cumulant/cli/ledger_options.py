"""Options that the commands of `cumulant ledger` share, the account that they are about, and how a receipt is printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cumulant.cli.completion import complete_account, complete_expression
from cumulant.cli.failures import abandon_output
from cumulant.errors import BudgetRefused, KeyConflict

if TYPE_CHECKING:
    from cumulant.ledger.account import Account
    from cumulant.ledger.entry import Receipt
    from cumulant.ledger.ledger import Ledger

MODE_NAMES = ("adaptive", "gaussian", "planned")
"""Names of cumulant.ledger.policy.MODES for --help."""

RULES = {
    "adaptive": "Fewer runs fit than calibrate says. If only Gaussian noise runs, --mode gaussian fits more. "
    "Nothing is spent yet: another account with --mode gaussian is possible.",
    "gaussian": "It takes Gaussian noise and pure mechanisms, and nothing sampled.",
    "planned": "It takes what the plan names, and nothing else.",
}
"""A note on each rule for those who open an account; the rule can never be changed."""

RELATION_NAMES = ("replace-one", "add-remove", "replace-special")
"""Names of cumulant.relation.Relation for --help."""

SHORT_HASH = 20
"""Hexadecimal digits of a hash on a printed receipt: 80 bits, which `verify --head` and `--receipts` accept (convention)."""

Url = Annotated[
    str, typer.Argument(metavar="LEDGER", help="A file such as budget.db, or postgresql://…", show_default=False)
]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The account.", show_default=False, autocompletion=complete_account),
]
SomeName = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="One account.", show_default=False, autocompletion=complete_account),
]
Run = Annotated[
    str,
    typer.Argument(
        metavar="EXPR", help="What will run, in quotes.", show_default=False, autocompletion=complete_expression
    ),
]
By = Annotated[str | None, typer.Option(metavar="NAME", help="Who writes this; the user of this machine if left out.")]
Key = Annotated[
    str | None, typer.Option(help="A name for this request, such as job-17/q3; a retry with it writes nothing.")
]
Also = Annotated[
    list[str] | None, typer.Option(help="Another account whose data are read too; all are charged, or none.")
]
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
            from cumulant.cli.ledger_tables import echo_json

            fields = ("requested", "spent", "held", "would_fit", "asked")
            found = {name: getattr(error, name) for name in fields if isinstance(error, BudgetRefused)}
            receipt = getattr(error, "receipt", None)
            found |= {} if receipt is None else {"receipt": json.loads(receipt.to_json())}
            echo_json({"refused": str(error), **found})
        raise


def open_ledger(
    url: str, keys: Path | None = None, by: str | None = None, allow_unsigned: bool = False, group: bool = False
) -> Ledger:
    """Return the ledger that a command is about."""
    from cumulant.ledger.ledger import Ledger

    return Ledger(url, keys, by, allow_unsigned=allow_unsigned, group=group)


def account_of(url: str, name: str, keys: Path | None, allow_unsigned: bool = False, by: str | None = None) -> Account:
    """Return the account that a command is about."""
    return open_ledger(url, keys, by, allow_unsigned).account(name)


def print_receipt(receipt: Receipt, as_json: bool, sentence: str) -> None:
    """Print a receipt, as JSON or after a sentence; a person gets the beginning of its hash."""
    announce(
        receipt.to_json() if as_json else f"{sentence} Receipt {receipt.seq}:{receipt.hash[:SHORT_HASH]}",
        f"Receipt: {receipt.account} {receipt.seq}:{receipt.hash}",
    )


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


def print_note(text: str) -> None:
    """Print a sentence beside the answer on stderr, so that a file of receipts has receipts only."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            typer.echo(text, err=True)
