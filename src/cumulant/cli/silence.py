"""--quiet for commands that do something and find no number: they say nothing, and the exit code speaks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from functools import wraps
from io import StringIO
from typing import Annotated, Any, get_type_hints

import typer

Silent = Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit code speaks.")]


def silenced(command: Callable[..., Any] | None) -> Callable[..., Any]:
    """The command with one option more.

    >>> def greet(name: str) -> int:
    ...     print(f"hello {name}")
    ...     return 0
    >>> list(inspect.signature(silenced(greet)).parameters)
    ['name', 'quiet']
    >>> silenced(greet)(name="world", quiet=True)
    0
    """
    if command is None:
        raise TypeError("a command is a function")
    hints = get_type_hints(command, include_extras=True)
    own = [each.replace(annotation=hints[name]) for name, each in inspect.signature(command).parameters.items()]
    added = inspect.Parameter("quiet", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=Silent)

    @wraps(command)
    def whole(*, quiet: bool = False, **given: Any) -> Any:
        with redirect_stdout(StringIO()) if quiet else nullcontext():
            return command(**given)

    whole.__dict__.pop("__wrapped__")
    whole.__dict__["__signature__"] = inspect.Signature([*own, added])
    whole.__annotations__ = {**hints, "quiet": Silent}
    return whole
