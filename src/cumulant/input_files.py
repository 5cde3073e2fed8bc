"""Text files that are read whole, up to a size: /dev/zero never ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from cumulant.errors import InputError, shown

MEGABYTE = 10**6
"""Bytes, as disks count them; convention."""
LARGEST_TEXT = 100 * MEGABYTE
"""Bytes of a file that is read whole; convention: 300,000 receipts, and a file of zeros fails in a second."""
LONGEST_LINE = 10 * MEGABYTE
"""Characters of a line of an export; convention: a thousand times the longest entry of our tests."""


def read_text(path: str | Path, encoding: str = "utf-8", largest: int = LARGEST_TEXT) -> str:
    """Return the text of a file, or of the standard input for "-"; InputError if it is larger than `largest` bytes.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> _ = place.write_text("1 2 3")
    >>> read_text(place)
    '1 2 3'
    """
    name = brief_path(path)
    if str(path) == "-":
        name = "the standard input"
        text = sys.stdin.read(largest + 1)
        size = len(text)
    else:
        with open(path, "rb") as file:
            content = file.read(largest + 1)
        size = len(content)
        text = content.decode(encoding) if size <= largest else ""
    if size > largest:
        raise InputError(f"{name} is larger than {largest // MEGABYTE} MB; name a smaller file")
    return text


def lines_of(file: TextIO) -> Iterator[str]:
    """Yield the lines of an open file; InputError if one is longer than `LONGEST_LINE`."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"a line of {brief_path(file.name)} is longer than {LONGEST_LINE // MEGABYTE} MB")
        yield line


def brief_path(path: object) -> str:
    """Return the name of a file for a message, cut if it is very long."""
    text = str(path)
    return text if len(text) <= 200 else shown(text)
