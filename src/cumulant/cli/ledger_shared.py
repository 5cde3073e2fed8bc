"""What the commands of `cumulant ledger` have in common: the application, its options, how a receipt is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from cumulant.cli import ledger_tables as tables
from cumulant.cli.failures import abandon_output
from cumulant.errors import BudgetRefused, KeyConflict
from cumulant.ledger.account import Account
from cumulant.ledger.entry import Receipt
from cumulant.ledger.ledger import Ledger

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
def said(as_json: bool) -> Iterator[None]:
    """A refusal is an answer: with --json it is printed like one, too."""
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
    """The account that a command is about."""
    return Ledger(url, keys, allow_unsigned=allow_unsigned).account(name)


def tell(receipt: Receipt, as_json: bool, sentence: str) -> None:
    """A receipt, as JSON or after a sentence."""
    told = f"Receipt: {receipt.account} {receipt.seq}:{receipt.hash}"
    announce(receipt.to_json() if as_json else f"{sentence} {told}", told)


def announce(text: str, written: str) -> None:
    """Print what was written; where nobody can read it, say so on stderr: the entry is there and the command has succeeded."""
    try:
        if sys.stdout is not None:
            typer.echo(text)
            sys.stdout.flush()
            return
    except (OSError, ValueError):
        abandon_output()
    if sys.stderr is not None:
        sys.stderr.write(f"It was written, and the answer could not be printed. {written}\n")
