"""Tables, bars on a terminal and JSON of `cumulant ledger`."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import typer

from cumulant.accounting.numbers import percent_used, rounded_up
from cumulant.cli.failures import reason
from cumulant.errors import InputError
from cumulant.filters.amounts import Amounts
from cumulant.input_files import read_text
from cumulant.ledger.account import Status
from cumulant.ledger.chain import Verdict
from cumulant.ledger.entry import Entry, Receipt, printable
from cumulant.progress import step_progress

_BAR = 20
"""Characters of the bar that shows how much is used."""
_MOST_PARTS = 256
"""Parts of charges that are remembered: most entries repeat a few runs, and memory stays flat (convention)."""
_GENERATED = re.compile("[0-9a-f]{32}")
"""A key that the ledger made because nobody gave one; a reader has no use for it."""

_EVERY = 1000
"""Entries between two movements of the bar."""


USED = {
    "adaptive": "of what its rule counts, which is not epsilon; at 100 % nothing more fits",
    "gaussian": "of the sum of (sensitivity/sigma)^2 that it allows; at 100 % nothing more fits",
}
"""The quantity of which a budget's percentage is taken, by the rule of the account; a planned one counts its runs."""


def echo_json(value: Any) -> None:
    """Print one JSON document; infinity is the text 'inf'."""
    typer.echo(json.dumps(_finite(value), ensure_ascii=True, allow_nan=False))


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {name: _finite(each) for name, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
    return value


def plain(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON, with its body and sums parsed."""
    return asdict(entry) | {"body": entry.content(), "state": entry.sums()}


def verdict(found: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON."""
    return asdict(found)


def receipts(place: Path, read: Callable[[str], Receipt]) -> list[Receipt]:
    """Read the receipts in a file, one on each line, or in all files of a directory."""
    try:
        files = sorted(path for path in place.iterdir() if path.is_file()) if place.is_dir() else [place]
        lines = [line for file in files for line in read_text(file).splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{place} cannot be read: {reason(error)}") from error
    if not lines:
        raise InputError(f"{place} has no receipt; give a file or folder with receipts as `spend` printed them")
    return [read(line.strip()) for line in lines]


def status(accounts: Iterable[Status]) -> None:
    """Print a table for each account; a terminal also gets a bar of the used budget."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(markup=False, emoji=False, highlight=False)
    for found in accounts:  # texts and not strings, in which rich would read [names] as markup
        table = Table(title=Text(printable(found.account)), show_header=False, title_justify="left")
        table.add_column()
        table.add_column(overflow="fold")  # the head is to be copied
        for name, value in _lines(found, console.is_terminal):
            table.add_row(Text(printable(name)), Text(printable(value)))
        console.print(table)


def fitting(count: int, found: Status) -> str:
    """Return how many more runs of a kind fit into an account, and what to do where none does."""
    if count:
        about = "About " if found.mode == "adaptive" else ""  # the other rules count runs or squares, which add up
        return f"{about}{count:,} more like this fit into {found.account!r}, if nobody else spends."
    owner = f"the owner, {found.owner}" if found.owner else "the owner"
    return f"None like this fits into {found.account!r} any more. Use more noise or fewer rounds, or ask {owner}."


def _lines(found: Status, bars: bool) -> Iterable[tuple[str, str]]:
    yield "budget", f"epsilon {found.epsilon}, delta {found.delta}; {found.relation}, per {found.unit}"
    yield "state", found.state_words() + (f", expires {found.expires}" if found.expires else "")
    yield "rule", found.mode
    if found.mode == "adaptive":
        yield (
            "so far",
            f"epsilon {rounded_up(found.spent)} is spent; with what is held {rounded_up(found.with_held)}",
        )
    if found.mode != "planned":
        filled = math.ceil(found.used * _BAR)
        bar = f"{'█' * filled}{'░' * (_BAR - filled)} " if bars else ""
        yield "used", f"{bar}{found.used_words()} {USED[found.mode]}"
    for member in found.plan:
        yield "planned", f"{member['ran']:,} of {member['planned']:,} {member['run']} charged or held"
    for held in found.holds:
        yield f"held, entry {held['seq']}", f"{held['run']} by {held['actor']}, {held['time']}"
    for team, share in found.teams.items():
        yield f"allowance of {team}", share
    if found.fits is not None:
        yield "fits", f"{found.fits:,} more of {found.like}"
    for name, value in (("owner", found.owner), ("data", found.data)):
        if value:
            yield name, value
    yield "head", found.head


def history(
    entries: Iterable[Entry],
    count: int,
    used: Callable[[Amounts], float],
    ender: Callable[[int], Entry | None] = lambda _: None,
) -> None:
    """Print one line for each of about so many entries, as they are read.

    `used` gives the part of the budget that a charge would use alone, and `ender` the entry that ended a hold.
    """

    @lru_cache(maxsize=_MOST_PARTS)
    def part(charge: tuple[str, ...]) -> str:
        return percent_used(used(Amounts.read(list(charge)))) if charge else ""

    typer.echo(f"{'entry':>7}  {'kind':<7}  {'when':<19}  {'who':<12}  {'part':>7}  what (key)")
    for entry in _with_progress(entries, count):
        content = entry.content()
        what = str(content.get("run") or content.get("team") or content.get("reason") or "")
        if entry.hold is not None:
            what = f"{what} (hold {entry.hold})".strip()
        if entry.kind == "hold" and (end := ender(entry.seq)) is not None:
            what = f"{what} (ended by {end.seq})"
        key = "" if _GENERATED.fullmatch(entry.key) else f" ({entry.key})"
        when, who = str(content.get("time")).removesuffix("+00:00"), str(content.get("actor"))
        alone = part(tuple(content.get("charge") or ()))
        line = f"{entry.seq:>7}  {entry.kind:<7}  {when:<19}  {who:<12}  {alone:>7}  {what}{key}".rstrip()
        sys.stdout.write(f"{printable(line)}\n")
    typer.echo("part: what the entry would use of the budget alone; parts need not add up")


def history_json(entries: Iterable[Entry], count: int) -> None:
    """Print one JSON list of about so many entries, each on a line of its own, as they are read."""
    before = "["
    for entry in _with_progress(entries, count):
        sys.stdout.write(before + json.dumps(_finite(plain(entry)), ensure_ascii=True, allow_nan=False))
        before = ",\n"
    sys.stdout.write("[]\n" if before == "[" else "]\n")


def _with_progress(entries: Iterable[Entry], count: int) -> Iterator[Entry]:
    """Yield the entries, with a bar where the terminal shows no lines.

    The first lines are printed at once.
    """
    with ExitStack() as stack:
        tell = None if sys.stdout.isatty() else stack.enter_context(step_progress(count // _EVERY + 1))
        for number, entry in enumerate(entries):
            if number % _EVERY == 0 and tell is not None:
                tell(f"{number:,} of {count:,} entries")
            yield entry
            if number == 0:
                sys.stdout.flush()
