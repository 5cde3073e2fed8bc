"""The help of a command: examples that fit the terminal, and options with plain names for their values."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

_INDENT = "      "
"""Spaces before the second line of an example."""

_CONTINUED = " \\"
"""The end of a line that goes on, in a shell."""

_SIDES = 4
"""Columns that the formatter adds to an example: two on each side."""

_BREAK = re.compile(r""" (?=--?[a-zA-Z](?:[^"']|"[^"]*"|'[^']*')*$)""")
"""A space before an option, outside of quotes: a line may end there, with a backslash."""

_SIGN = re.compile(r" (?=@ )")
"""A space before an '@', which is inside of quotes: the notation takes the end of a line there."""

_VALUES = {
    "<str>": "VALUE",
    "<list[str]>": "VALUE",
    "<int>": "N",
    "<int range>": "N",
    "<list[int]>": "N",
    "<float>": "N",
    "<path>": "FILE",
}
"""The words for values that typer names by their Python type."""


class HelpCommand(TyperCommand):
    """A command whose help folds long examples and names values in words."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the text of the help, with examples that fit the terminal."""
        write_folded(super().format_help_text, self, ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands behind the name of the command: options, then the names of its arguments."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(_argument_name(each) for each in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each with the word for its value."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            if (record := each.get_help_record(ctx)) is None:
                continue
            if each.param_type_name == "argument":
                rows["Arguments"].append((_argument_name(each), record[1]))
            else:
                rows["Options"].append((_with_plain_value(record[0]), record[1]))
        for title, listed in rows.items():
            if listed:
                with formatter.section(title):
                    formatter.write_dl(listed)


def write_folded(write: Any, command: Any, ctx: Any, formatter: Any) -> None:
    """Write the text of a help with folded examples; the command keeps its own text."""
    text = command.help
    command.help = fold_examples(text or "", formatter.width - _SIDES)
    try:
        write(ctx, formatter)
    finally:
        command.help = text


def fold_examples(text: str, columns: int) -> str:
    """Break long examples so that they can still be pasted: after a backslash, or within the quotes before '@'.

    >>> fold_examples('  cumulant epsilon "Gaussian(1) @ Poisson(1%)" --delta 1e-6', 48).splitlines()[1]
    '      --delta 1e-6'
    """
    return "\n".join(_folded(line, columns) if line.startswith("  ") else line for line in text.split("\n"))


def _folded(line: str, columns: int) -> str:
    if len(line) <= columns or not line.lstrip().startswith(("cumulant ", "curl ")):
        return line
    lines = [""]
    for word in _BREAK.split(line):
        for number, piece in enumerate(_SIGN.split(word)):
            if not lines[-1]:
                lines[-1] = piece
            elif len(lines[-1]) + 1 + len(piece) + len(_CONTINUED) <= columns:
                lines[-1] += f" {piece}"
            else:
                lines[-1] += "" if number else _CONTINUED
                lines.append(_INDENT + piece)
    return "\n".join(lines)


def _argument_name(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()).strip("[]{}")
    return name if argument.required else f"[{name}]"


def _with_plain_value(label: str) -> str:
    """Return the label of an option with the word for its value.

    >>> _with_plain_value("--delta <str>")
    '--delta VALUE'
    """
    for kind, word in _VALUES.items():
        label = label.replace(kind, word)
    return label
