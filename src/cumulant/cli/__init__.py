"""The command line: `cumulant epsilon`, `delta`, `rdp` and `bounds`."""

from __future__ import annotations


def main() -> None:
    """Answer the command line of this process and leave with its exit code.

    Nothing that only the command line needs (typer, rich) is loaded before this is called.
    """
    import sys

    from cumulant.cli.app import answer

    sys.exit(answer(sys.argv[1:]))
