"""The commands, and their failures: one sentence on stderr and an exit code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from difflib import get_close_matches
from functools import wraps
from io import StringIO
from typing import Annotated, Any, get_type_hints

import typer

from cumulant.cli.audit import audit, conformance
from cumulant.cli.calibration import calibrate, dpsgd, sweep
from cumulant.cli.check import archive, check, verify
from cumulant.cli.failures import ExitCode, report_failure, run_guarded
from cumulant.cli.fedavg import fedavg
from cumulant.cli.ledger import app as ledger
from cumulant.cli.plot import figures, plot
from cumulant.cli.questions import bounds, delta, epsilon, rdp
from cumulant.cli.reports import mu, risk
from cumulant.cli.serve import serve

# --quiet for commands that do something and find no number: they say nothing, and the exit code is the answer.

QuietOption = Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit code is the answer.")]


def add_quiet(command: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return the command with the option --quiet added.

    >>> def greet(name: str) -> int:
    ...     print(f"hello {name}")
    ...     return 0
    >>> list(inspect.signature(add_quiet(greet)).parameters)
    ['name', 'quiet']
    >>> add_quiet(greet)(name="world", quiet=True)
    0
    """
    if command is None:
        raise TypeError("a command is a function")
    hints = get_type_hints(command, include_extras=True)
    own = [each.replace(annotation=hints[name]) for name, each in inspect.signature(command).parameters.items()]
    added = inspect.Parameter("quiet", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=QuietOption)

    @wraps(command)
    def quiet_command(*, quiet: bool = False, **given: Any) -> Any:
        with redirect_stdout(StringIO()) if quiet else nullcontext():
            return command(**given)

    quiet_command.__dict__.pop("__wrapped__")
    quiet_command.__dict__["__signature__"] = inspect.Signature([*own, added])
    quiet_command.__annotations__ = {**hints, "quiet": QuietOption}
    return quiet_command


app = typer.Typer(
    name="cumulant",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

questions = (epsilon, delta, check, rdp, mu, risk, calibrate, sweep, dpsgd, fedavg)
for command in (*questions, archive, verify, bounds, audit, conformance, plot, figures, serve):
    app.command()(command)
for registered in ledger.registered_commands:
    registered.callback = add_quiet(registered.callback)
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

    DP-SGD, 1,000 steps with noise multiplier 1.1 and Poisson batches of one in a hundred:

    \b
      cumulant epsilon "Gaussian(noise_multiplier=1.1, clip=1, relation='add-remove') @ Poisson(rate=1%) * 1000" --delta 1e-6
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --noise-multiplier 1.1 --delta 1e-5

    An expression is what you would write in Python: '@' runs a mechanism on a sample, '*' repeats, '+' adds to the run.

    \b
    The run of the paper, a query of sensitivity 1 with Gaussian noise, 600,000 rounds:
      cumulant epsilon "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --delta 1e-8

    Exit codes: 0 answered, holds or consistent; 1 no (a claim is false, a guarantee not confirmed, an audit refutes, epsilon is
    infinite) or error; 2 wrong usage or input; 3 refused by a budget; 4 open, or a broken ledger.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def answer(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors are one sentence on stderr."""
    return run_guarded(lambda: _run_line(list(arguments)))


def _run_line(arguments: list[str]) -> int:
    try:
        outcome = typer.main.get_command(app).main(arguments, prog_name="cumulant", standalone_mode=False)
    except typer.Abort:  # older releases of typer; newer ones return 130 themselves
        raise KeyboardInterrupt from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return report_failure(_usage(error.format_message(), arguments), ExitCode.USAGE)
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _usage(message: str, arguments: list[str]) -> str:
    """Return typer's message about commands, options and arguments, with a suggestion."""
    names = [each.name or getattr(each.callback, "__name__", "") for each in app.registered_commands] + ["ledger"]
    command = next((each for each in arguments if not each.startswith("-")), "")
    said = " ".join(message.split()).rstrip(".?")
    see = f"see cumulant {command} --help" if command in names else "see cumulant --help"
    turned = {"epsilon": "delta", "delta": "epsilon"}.get(command)
    if turned is not None and re.search(rf"[Nn]o such option:? '?--{command[:3]}", said):
        other = f"ask `cumulant {turned}` with --{command}"
        return f"{command} is what `cumulant {command}` finds; give --{turned}, or {other}; {see}"
    if turned is not None and "Missing option" in said:
        said += f": {command} is found at a given {turned}, such as --{turned} {'1e-6' if turned == 'delta' else '1'}"
    if (unknown := re.search(r"[Nn]o such command '([^']*)'", said)) is not None:
        name = unknown[1][:40]
        meant = next(iter(get_close_matches(name, names, n=1)), "")
        if re.match(r"\w+\(", name):
            meant = f'epsilon "{name}" --delta 1e-6'
        said = f"there is no command {name!r}" + (f"; did you mean cumulant {meant}?" if meant else "")
    if (short := re.search(r"[Nn]o such option:? '?(-\w)\b", said)) is not None:
        said = f"no such option: {short[1]}; options are written out, such as --delta 1e-6"
    if (option := re.search(r"Invalid value for '(--[\w-]+)'.*integer", said)) is not None:
        said = f"{option[1]} must be a whole number, such as 60000 or 1000, without letters or commas"
    if "unexpected extra argument" in said.lower():
        said += "; an expression is one argument, so put it in quotes"
    return f"{said}; {see}"
