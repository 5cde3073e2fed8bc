"""The list of all commands, their help in panels, and what is said about a wrong command line."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from difflib import get_close_matches
from functools import cache, partial, wraps
from importlib import import_module
from io import StringIO
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperGroup

from cumulant.cli.card import MOST_COLUMNS
from cumulant.cli.failures import ExitCode, report_failure, run_guarded
from cumulant.cli.help_page import HelpCommand, write_folded

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
    if getattr(command, "is_quiet", False):
        return command
    hints = get_type_hints(command, include_extras=True)
    own = [each.replace(annotation=hints[name]) for name, each in inspect.signature(command).parameters.items()]
    added = inspect.Parameter("quiet", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=QuietOption)

    @wraps(command)
    def quiet_command(*, quiet: bool = False, **given: Any) -> Any:
        with (
            redirect_stdout(StringIO()) if quiet else nullcontext(),
            redirect_stderr(StringIO()) if quiet else nullcontext(),
        ):
            return command(**given)

    quiet_command.__dict__.pop("__wrapped__")
    quiet_command.__dict__["__signature__"] = inspect.Signature([*own, added])
    quiet_command.__annotations__ = {**hints, "quiet": QuietOption}
    quiet_command.__dict__["is_quiet"] = True
    return quiet_command


ASK = "Ask"
TRAIN = "Train"
REVIEW = "Review"
BUDGET = "Budget"
PAPER = "Paper"


class Listed(NamedTuple):
    """A command as `cumulant --help` lists it: its panel, its summary and its module, loaded when it is called."""

    panel: str
    summary: str
    module: str


COMMANDS = {
    "epsilon": Listed(ASK, "Find the epsilon of a run at a delta.", "questions"),
    "delta": Listed(ASK, "Find the delta of a run at an epsilon.", "questions"),
    "calibrate": Listed(ASK, "Find the noise, rate or rounds that meet a target.", "calibration"),
    "risk": Listed(ASK, "Bound the success of an attack on one person.", "reports"),
    "mu": Listed(ASK, "Find the mu of Gaussian privacy, to compare runs.", "reports"),
    "sweep": Listed(ASK, "Ask every combination of settings, one row each.", "calibration"),
    "plot": Listed(ASK, "Draw a picture of a run.", "plot"),
    "explain": Listed(ASK, "Explain a bound, a method, a scheme or a word.", "explain"),
    "serve": Listed(ASK, "Open the page in a browser, on this machine only.", "serve"),
    "dpsgd": Listed(TRAIN, "Account for DP-SGD in the words of training loops.", "dpsgd"),
    "fedavg": Listed(TRAIN, "Account for federated averaging in its own words.", "fedavg"),
    "conformance": Listed(TRAIN, "Test whether a loader draws what is accounted.", "audit"),
    "check": Listed(REVIEW, "Judge a claimed epsilon: it holds, is false or open.", "check"),
    "verify": Listed(REVIEW, "Evaluate a stored guarantee again.", "check"),
    "audit": Listed(REVIEW, "Test a claim by attacks on real runs.", "audit"),
    "archive": Listed(REVIEW, "Put a guarantee into a folder that can be verified.", "check"),
    "ledger": Listed(BUDGET, "Keep budgets that many people share.", "ledger"),
    "rdp": Listed(PAPER, "Print the Rényi divergence bound at some orders.", "questions"),
    "bounds": Listed(PAPER, "List the amplification bounds that --bound can name.", "questions"),
    "figures": Listed(PAPER, "Draw both figures of the paper.", "plot"),
}
"""Every command in the order of the help; summaries fit 80 columns."""


class Commands(TyperGroup):
    """The group of all commands, which loads the file of a command when it is called or its help is shown."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one command; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = load_command(cmd_name)
        return self.commands[cmd_name]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the text of the help, with examples that fit the terminal."""
        write_folded(super().format_help_text, self, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in panels: Ask, Train, Review, Budget, Paper."""
        for panel in dict.fromkeys(listed.panel for listed in COMMANDS.values()):
            with formatter.section(panel):
                rows = [(name, listed.summary) for name, listed in COMMANDS.items() if listed.panel == panel]
                formatter.write_dl([(name.ljust(_LONGEST_NAME), summary) for name, summary in rows])


_LONGEST_NAME = max(map(len, COMMANDS))
"""Characters of the longest name of a command, so that all panels have one column of summaries."""


@cache
def load_command(name: str) -> Any:
    """Load the file of a command and return the command; it runs without the group, whose options cost 0.1 s."""
    module = import_module(f"cumulant.cli.{COMMANDS[name].module}")
    if name == "ledger":
        for registered in module.app.registered_commands:
            registered.callback = add_quiet(registered.callback)
        return typer.main.get_group(module.app)
    return _single_command(name, getattr(module, name))


@cache
def load_ledger_command(name: str) -> Any:
    """Return one command of `cumulant ledger`, without the others; None if there is none of this name."""
    for registered in import_module("cumulant.cli.ledger").app.registered_commands:
        if name == (registered.name or getattr(registered.callback, "__name__", "")):
            return _single_command(name, add_quiet(registered.callback))
    return None


def _single_command(name: str, function: Callable[..., Any]) -> Any:
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(name, cls=HelpCommand)(function)
    return typer.main.get_command(single)


CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": MOST_COLUMNS}
"""Settings of every command line."""

COMPLETING = "_CUMULANT_COMPLETE"
"""The variable by which a shell asks for completion."""

app = typer.Typer(
    name="cumulant",
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _version(asked: bool) -> None:
    if asked:
        from cumulant.cli.version import version_stamp

        typer.echo(f"cumulant {version_stamp()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def cumulant(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Describe what ran, get an epsilon that can be defended.

    \b
    Examples:
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --noise-multiplier 1.1 --delta 1e-5
      cumulant epsilon "Gaussian(noise_multiplier=1.1, relation='add-remove') @ Poisson(1%) * 1000" --delta 1e-6
      cumulant epsilon "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000" --delta 1e-8
      cumulant explain Poisson

    An expression is what you would write in Python: '@' runs a mechanism on a sample, '*' repeats, '+' adds.

    Exit codes: 0 answered, holds or consistent; 1 no, or error; 2 wrong usage or input; 3 refused by a budget; 4 open, or a
    damaged ledger.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def answer(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors are one sentence on stderr."""
    return run_guarded(partial(_run_line, list(arguments)))


def _run_line(arguments: list[str]) -> int:
    command, rest, called = None, arguments, "cumulant"
    if COMPLETING not in os.environ and arguments and not arguments[0].startswith("-"):
        if arguments[0] not in COMMANDS:
            return report_failure(_usage(f"No such command '{arguments[0]}'.", arguments), ExitCode.USAGE)
        depth = 1
        if arguments[0] == "ledger" and len(arguments) > 1:
            command, depth = load_ledger_command(arguments[1]), 2
        if command is None:
            command, depth = load_command(arguments[0]), 1
        rest, called = arguments[depth:], " ".join(["cumulant", *arguments[:depth]])
    try:
        whole = command or typer.main.get_command(app)
        outcome = whole.main(rest, prog_name=called, standalone_mode=False, **CONTEXT)
    except typer.Abort:  # older releases of typer; newer ones return 130 themselves
        raise KeyboardInterrupt from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return report_failure(_usage(error.format_message(), arguments), ExitCode.USAGE)
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _usage(message: str, arguments: list[str]) -> str:
    """Return typer's message about commands, options and arguments, with a suggestion."""
    names = list(COMMANDS)
    command = next((each for each in arguments if not each.startswith("-")), "")
    said = " ".join(message.split()).rstrip(".?")
    see = f"see cumulant {command} --help" if command in names else "see cumulant --help"
    called = load_command(command) if command in names else None
    inner = load_ledger_command(arguments[1]) if arguments[:1] == ["ledger"] and len(arguments) > 1 else None
    if inner is not None:
        called = inner
        see = f"see cumulant ledger {arguments[1]} --help"
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
    expressions = any("EXPR" in str(each.metavar) for each in getattr(called, "params", ()))
    if expressions and "unexpected extra argument" in said.lower():
        said += "; an expression is one argument, so put it in quotes"
    return f"{said}; {see}"
