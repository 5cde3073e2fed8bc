"""The commands, and what their failures look like: one sentence on stderr and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cumulant.cli.audit import audit, conformance
from cumulant.cli.bounds import bounds
from cumulant.cli.calibration import calibrate
from cumulant.cli.check import check, verify
from cumulant.cli.codes import ExitCode
from cumulant.cli.dpsgd import dpsgd
from cumulant.cli.figures import figures
from cumulant.cli.ledger import app as ledger
from cumulant.cli.plot import plot
from cumulant.cli.questions import delta, epsilon, rdp
from cumulant.cli.sweep import sweep
from cumulant.errors import BudgetRefused, CumulantError, InputError, LedgerBroken

app = typer.Typer(name="cumulant", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

for command in (epsilon, delta, check, verify, rdp, bounds, calibrate, sweep, dpsgd, audit, conformance, plot, figures):
    app.command()(command)
app.add_typer(ledger)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"cumulant {version('cumulant')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def cumulant(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """How much privacy has been spent? Describe what ran, get an epsilon that can be defended.

    The run of the paper, 600,000 rounds of Gaussian noise on samples of one in a thousand:

    \b
      cumulant epsilon "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --delta 1e-8

    An expression is what you would write in Python: '@' runs a mechanism on a sample, '*' repeats, '+' adds to the run.

    Exit codes: 0 answered, holds or consistent; 1 no (a claim is false, a guarantee not confirmed, an audit refutes, epsilon is
    infinite) or error; 2 wrong usage or input; 3 refused by a budget; 4 open, or a broken ledger.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def answer(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code; errors are one sentence on stderr."""
    try:
        outcome = typer.main.get_command(app).main(list(arguments), prog_name="cumulant", standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else ExitCode.OK
    except BrokenPipeError:
        # The reader has left; what is still buffered must not fail again when the interpreter closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.NO
    except typer.Abort:  # older releases of typer; newer ones return 130 themselves
        return 128 + signal.SIGINT
    except BudgetRefused as error:
        return _failed(str(error), ExitCode.REFUSED)
    except LedgerBroken as error:
        return _failed(str(error), ExitCode.BROKEN)
    except InputError as error:
        return _failed(str(error), ExitCode.USAGE)
    except CumulantError as error:
        return _failed(str(error), ExitCode.NO)
    except Exception as error:
        if hasattr(error, "format_message"):  # what typer has to say about options and arguments
            return _failed(f"{error.format_message().rstrip('.')}; see cumulant --help", ExitCode.USAGE)
        return _failed(f"unexpected {type(error).__name__}: {error}; please report it with the command", ExitCode.NO)


def _failed(sentence: str, code: ExitCode) -> ExitCode:
    typer.echo(f"error: {' '.join(sentence.split())}", err=True)
    return code
