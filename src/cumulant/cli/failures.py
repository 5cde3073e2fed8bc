"""Failures of a command: a sentence on stderr, a caret under the mistake, an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from io import TextIOWrapper

from cumulant.errors import BudgetRefused, CumulantError, InputError, LedgerBroken
from cumulant.input_files import brief_path

# What the shell is told: one table of exit codes for all commands.


class ExitCode(IntEnum):
    """Exit codes of all commands."""

    OK = 0  # answered, holds, consistent
    NO = 1  # a claim is false, a guarantee is not confirmed, an audit refutes, epsilon is infinite; or an error
    USAGE = 2  # wrong usage or input; in `check` everything that is not a verdict
    REFUSED = 3  # a budget does not allow what was asked
    OPEN = 4  # neither true nor false
    BROKEN = 4  # a ledger contradicts itself


_WIDEST = 76
"""Characters of an expression around a mistake."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Errors of a disk that has no space, or of a file that cannot be written any more."""

_NAMES = (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM)
"""Errors of the name of a file that a user gives: too long, a loop of links, or without permission."""

_CODES = ((BudgetRefused, ExitCode.REFUSED), (LedgerBroken, ExitCode.BROKEN), (InputError, ExitCode.USAGE))


def run_guarded(work: Callable[[], int]) -> int:
    """Do the work and return its exit code; errors are one sentence on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without accents shows them as \\xf6
    try:
        code = work()
        if sys.stdout is not None:  # it is None where the shell has closed it
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        abandon_output()
        return ExitCode.NO
    except OSError as error:
        if error.errno in _NAMES and error.filename is not None:
            name = (
                brief_path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else error.filename
            )
            return report_failure(f"{name} cannot be opened: {reason(error)}; name another file", ExitCode.USAGE)
        if error.errno not in _FULL:
            return report_failure(_unexpected(error), ExitCode.NO)
        abandon_output()
        return report_failure(
            f"the output could not be written: {error.strerror}; free some space, or write it elsewhere", ExitCode.NO
        )
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except MemoryError:
        return report_failure("there is not enough memory for this; ask for less, or name a smaller file", ExitCode.NO)
    except CumulantError as error:
        return report_failure(error, next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.NO))
    except Exception as error:
        return report_failure(_unexpected(error), ExitCode.NO)


def _unexpected(error: Exception) -> str:
    return f"unexpected {type(error).__name__}: {error}; please report it with the command"


def abandon_output() -> None:
    """Drop the buffered output of a reader that has left.

    It must not fail again when the interpreter closes stdout.
    """
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_failure(error: object, code: ExitCode) -> ExitCode:
    """Print what went wrong and return the exit code."""
    if sys.stderr is None:  # the shell has closed it
        return code
    kind = "refused" if isinstance(error, BudgetRefused) else "error"
    sys.stderr.write(f"{kind}: {' '.join(str(error).split())}\n")
    if isinstance(error, InputError) and error.position is not None and error.text:
        sys.stderr.write(point_at(error.text, error.position))
    return code


def point_at(text: str, position: int) -> str:
    """Return the line of a text around a position, and a caret below it.

    >>> print(point_at("Gausian(sigma=1) * 3", 0), end="")
      Gausian(sigma=1) * 3
      ^
    """
    start = text.rfind("\n", 0, position) + 1
    line, column = text[start:].split("\n", 1)[0].replace("\t", " "), position - start
    first = max(0, min(column - _WIDEST // 2, len(line) - _WIDEST))
    shown, before = line[first : first + _WIDEST], "…" if first else ""
    after = "…" if first + _WIDEST < len(line) else ""
    return f"  {before}{shown}{after}\n  {' ' * (len(before) + column - first)}^\n"


def reason(error: Exception) -> str:
    """Return why a file could not be read, in the words of the system and without its name, which was said before.

    >>> reason(FileNotFoundError(2, "No such file or directory", "state.json"))
    'no such file or directory'
    """
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{text[:1].lower()}{text[1:]}"
