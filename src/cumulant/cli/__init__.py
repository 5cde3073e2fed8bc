"""The command line: `cumulant epsilon`, `delta`, `rdp`, `bounds` and the others."""

from __future__ import annotations


def main() -> None:
    """Answer the command line of this process and leave with its exit code.

    Nothing that only the command line needs (typer, rich) is loaded before this is called, and nothing that a short
    question does not need at all.
    """
    import sys

    from cumulant.cli.direct import read_question

    if (question := read_question(sys.argv[1:])) is not None:
        from cumulant.cli.answer import answer as answered
        from cumulant.cli.failures import run_guarded

        sys.exit(run_guarded(lambda: answered(question)))
    from cumulant.cli.app import answer

    sys.exit(answer(sys.argv[1:]))
