"""What the shell is told: one table of exit codes for all commands."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0  # answered, holds, consistent
    NO = 1  # a claim is false, a guarantee is not confirmed, an audit refutes, epsilon is infinite; or an error
    USAGE = 2  # wrong usage or input; in `check` everything that is not a verdict
    REFUSED = 3  # a budget does not allow what was asked
    OPEN = 4  # neither true nor false
    BROKEN = 4  # a ledger contradicts itself
