"""The tokens of the notation, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cumulant.domains import SUFFIXES, without_suffix
from cumulant.errors import NotationError
from cumulant.hints import GREEK, MEANT

_TOKEN = re.compile(
    r"""
    (?P<space>  \s+ )
  | (?P<number> (?: \d(?:_?\d)* (?:\.(?:\d(?:_?\d)*)?)? | \.\d(?:_?\d)* ) (?:[eE][+-]?\d(?:_?\d)*)? )
  | (?P<name>   [A-Za-z_]\w* | [σεδργ] )
  | (?P<quoted> "[^"\\\n]*" | '[^'\\\n]*' )
  | (?P<sign>   [-+*/@()\[\],=?%|] )
    """,
    re.VERBOSE | re.ASCII,
)

_LETTER = re.compile(f"[{''.join(SUFFIXES)}](?!\\w)", re.ASCII)


class Token(NamedTuple):
    """A piece of text, its kind and its place."""

    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 40 else self.text[:37] + "..."
        return f"{shown!r} at position {self.position}" if self.kind != "end" else f"end at position {self.position}"


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens one by one; then the end, for ever.

    So a long text costs nothing behind its first mistake.
    """
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotationError(f"unexpected {text[position]!r} at position {position}{_hint(text[position])}")
        if match.lastgroup == "number" and (letter := _LETTER.match(text, match.end())) is not None:
            raise NotationError(
                f"{match[0]}{letter[0]} at position {position} has a letter behind the number; "
                f"write {without_suffix(match[0], letter[0])}"
            )
        if match.lastgroup != "space":
            yield Token(str(match.lastgroup), GREEK.get(match[0], match[0]), position)
        position = match.end()
    while True:
        yield Token("end", "", position)


def _hint(character: str) -> str:
    match character:
        case '"' | "'":
            return "; the quoted text does not end on its line, or holds a backslash"
        case ".":
            return "; names have no parts, write Gaussian(sigma=5)"
    return f"; {MEANT[character]}" if character in MEANT else ""
