"""The card that a command prints: the number first, then rows of a label and a sentence.

One layout serves terminals and pipes: rich only adds colour, and ASCII replaces what an encoding cannot show.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from cumulant.progress import PATIENCE

MOST_COLUMNS = 120
"""Columns of the widest output: longer lines are hard to read (convention)."""

FEWEST_COLUMNS = 40
"""Columns below which sentences are no longer broken more finely."""

PIPED_COLUMNS = 100
"""Columns where no terminal says its width: most code blocks of pages show as many."""

MORE_LABEL = "More"
"""The label of the row with further options."""

_MARGIN = "  "
_GAP = 2
"""Spaces between two columns, at least."""

_VERDICT_GAP = 6
"""Spaces between the number and its verdict where the line has them."""

_ASCII = {
    "ε": "epsilon",
    "δ": "delta",
    "μ": "mu",
    "✔": "ok:",
    "✘": "no:",
    "▸": "-",
    "≤": "<=",
    "≥": ">=",
    "…": "...",
    "é": "e",
    "—": "-",
}
"""The text written in the place of a sign that the encoding of the output lacks."""

Tone = Literal["good", "bad", "open"]

_MARKS = {"good": "✔", "bad": "✘", "open": "?"}
"""The sign before a verdict."""

_COLOURS = {"good": "green", "bad": "red", "open": "yellow"}
"""The colour of a verdict."""

Span = tuple[str, str]
"""A piece of a line and its style in rich; empty for plain text."""


@dataclass(slots=True)
class Card:
    """An answer for people: a headline with its verdict, then rows; a row of several items gets a sign before each."""

    headline: str
    verdict: str = ""
    tone: Tone = "good"
    rows: list[tuple[str, str | Sequence[str]]] = field(default_factory=list)

    def add(self, label: str, value: str | Sequence[str]) -> None:
        """Add a row unless it is empty."""
        if value:
            self.rows.append((label, value))

    def lines(self, columns: int, encoding: str | None = None) -> list[list[Span]]:
        """Return the lines of the card in the signs of an encoding, each as pieces with their styles."""
        colour = _COLOURS[self.tone]
        verdict = f"{_MARKS[self.tone]} {as_shown(self.verdict, encoding)}" if self.verdict else ""
        style = f"bold {colour}" if self.tone != "good" else "bold"
        pieces = [each.strip() for each in wrap(as_shown(self.headline, encoding), columns - len(_MARGIN))]
        found: list[list[Span]] = [[(_MARGIN, ""), (piece, style)] for piece in pieces]
        first = found[-1]
        free = columns - len(_MARGIN) - len(pieces[-1]) - len(verdict)
        if verdict and free >= _GAP:
            first += [(" " * min(free, _VERDICT_GAP), ""), (verdict, colour)]
        elif verdict:
            found += [[(_MARGIN, ""), (each, colour)] for each in wrap(verdict, columns - len(_MARGIN))]
        if self.rows:
            found.append([])
        width = max(map(len, dict(self.rows)), default=0)
        for label, value in self.rows:
            shown = (
                as_shown(value, encoding) if isinstance(value, str) else [as_shown(each, encoding) for each in value]
            )
            pieces = wrap_value(shown, max(columns - len(_MARGIN) - width - _GAP, FEWEST_COLUMNS // 2))
            for number, piece in enumerate(pieces):
                first_column = (label if number == 0 else "").ljust(width + _GAP)
                style = "dim" if label == MORE_LABEL else "yellow" if label == "Careful" else ""
                found.append([(_MARGIN, ""), (first_column, "cyan"), (piece, style)])
        return found


def wrap(text: str, columns: int) -> list[str]:
    """Break a text at spaces, never within a word.

    >>> wrap("one record added or removed", 12)
    ['one record', 'added or', 'removed']
    """
    lines: list[str] = []
    for word in text.replace(" %", "\0%").replace(" * ", "\0*\0").split(" "):  # a number stays with its sign
        if lines and len(lines[-1]) + 1 + len(word) <= columns:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [line.replace("\0", " ") for line in lines]


def wrap_value(value: str | Sequence[str], columns: int) -> list[str]:
    """Break the value of a row; items stand side by side where they fit, else below each other."""
    if isinstance(value, str):
        return wrap(value, columns)
    lines: list[str] = []
    for item in value:
        if lines and len(lines[-1]) + 3 + 2 + len(item) <= columns:
            lines[-1] += f"   ▸ {item}"
        else:
            first, *others = wrap(item, columns - 2)
            lines.append(f"▸ {first}")
            for each in others:
                lines.append(f"  {each}")
    return lines


def columns_of_output() -> int:
    """Return the columns of the terminal, of COLUMNS, or those of a pipe."""
    return max(FEWEST_COLUMNS, min(shutil.get_terminal_size((PIPED_COLUMNS, 24)).columns, MOST_COLUMNS))


def as_shown(text: str, encoding: str | None) -> str:
    """Return a text in the signs that an encoding has.

    >>> as_shown("✔ ε ≤ 1", "ascii"), as_shown("✔ ε ≤ 1", "utf-8")
    ('ok: epsilon <= 1', '✔ ε ≤ 1')
    """
    try:
        text.encode(encoding or "utf-8")  # a text in memory has no encoding and takes every sign
    except (UnicodeEncodeError, LookupError):
        for sign, plain in _ASCII.items():
            text = text.replace(sign, plain)
    return text


def print_card(card: Card, explained: bool = False) -> None:
    """Print a card on standard output, in colour on a terminal.

    `explained` says that the explanation follows, so that the card does not offer it.
    """
    if explained:
        kept = [(label, _without_explain(value) if label == MORE_LABEL else value) for label, value in card.rows]
        card = replace(card, rows=kept)
    print_lines(card.lines(columns_of_output(), getattr(sys.stdout, "encoding", None)))


def _without_explain(options: str | Sequence[str]) -> str | Sequence[str]:
    """Return further options without --explain.

    >>> _without_explain("--claim EPSILON  --explain  --json")
    '--claim EPSILON  --json'
    """
    return options.replace("--explain  ", "") if isinstance(options, str) else options


def print_lines(lines: Iterable[Sequence[Span]]) -> None:
    """Print lines of styled pieces on standard output; without a terminal, as plain text."""
    encoding = getattr(sys.stdout, "encoding", None)
    if not in_colour():
        for line in lines:
            plain = ""
            for text, _ in line:
                plain += text
            sys.stdout.write(f"{as_shown(plain.rstrip(), encoding)}\n")
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    for line in lines:
        styled = Text()
        for piece, style in line:
            styled.append(as_shown(piece, encoding), style=style or None)
        styled.rstrip()
        console.print(styled)


def in_colour() -> bool:
    """Return True if standard output shows colours: a terminal, or FORCE_COLOR; never with NO_COLOR."""
    if os.environ.get("NO_COLOR") or sys.stdout is None:
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


@contextmanager
def patient(what: str) -> Iterator[None]:
    """Say on stderr that there is work, and for how long, once it has taken a second.

    Nothing is printed unless someone is looking.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()

    def tell() -> None:
        started = time.monotonic()
        while not done.wait(PATIENCE):
            sys.stderr.write(f"\r{what} … {time.monotonic() - started:.0f} s")
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        sys.stderr.write("\r\x1b[K")
