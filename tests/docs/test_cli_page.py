"""docs/cli.md says what the shell says; `python -m tests.docs.test_cli_page` writes it anew."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from cumulant.cli.app import COMMANDS, answer, load_command

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
COLUMNS = "100"
"""The width of what is shown: code blocks of the site have as many columns."""

FIRST = "epsilon \"Gaussian(sigma=1, relation='add-remove') @ Poisson(rate=512/50000) * 5860\" --delta 1e-5"

HEAD = """# The command line

`cumulant` answers first and explains on request. This page shows what it prints; `cumulant COMMAND --help` shows the same.

## One answer

```text
$ cumulant {first}
{answer}```

* The first line has the number, rounded up, and how well it is known. The lower end is rounded down. It is there only where
  data sets are known that need so much.
* **Protects** says who the neighbours are. **Means** is the best membership attack with 1 % false alarms.
* **Run** is the expression, ready to be pasted back. **Check these** are assumptions that no formula can check.

| you want | write |
|---|---|
| the proof, the theorem, the order and all assumptions | `--explain` |
| a file that `cumulant verify` reads | `--json` |
| the number alone, or the verdict, for a script | `--quiet` |
| no colour | `NO_COLOR=1`; a pipe has none |
| what a name means | `cumulant explain NAME` |
| completion of commands, values, mechanisms and accounts | `cumulant --install-completion` |

| exit code | meaning |
|---|---|
| 0 | answered, holds, confirmed or consistent |
| 1 | no: a claim is false, an audit refutes, epsilon is infinite; or an error |
| 2 | wrong usage or input |
| 3 | refused by a budget; nothing was charged |
| 4 | open (`check`, `dpsgd --claim`), or a damaged ledger |
"""


def printed(*words: str) -> str:
    with redirect_stdout(StringIO()) as out:
        assert answer(words) == 0
    return out.getvalue()


def sections() -> Iterator[str]:
    for panel in dict.fromkeys(listed.panel for listed in COMMANDS.values()):
        yield f"\n## {panel}\n"
        for name, listed in COMMANDS.items():
            if listed.panel == panel:
                yield from described(load_command(name), f"cumulant {name}", "###")


def described(command: Any, name: str, level: str) -> Iterator[str]:
    """What the help of a command says, in the words of the page: its text, examples and options."""
    text, _, examples = command.help.partition("\b\n")
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join([name, *(each.make_metavar(None) if not each.metavar else each.metavar for each in arguments)])
    yield (
        f"\n{level} {usage}\n\n"
        + "\n\n".join(" ".join(each.split()) for each in text.split("\n\n") if each.strip())
        + "\n"
    )
    lines = [line.strip() for line in examples.splitlines()[1:] if line.strip()]
    if lines:
        yield "\n```text\n" + "".join(f"{line}\n" for line in lines) + "```\n"
    options = [each for each in command.params if each.param_type_name == "option" and each.help]
    if options:
        yield "\n| option | meaning |\n|---|---|\n"
    for each in options:
        needed = " (required)" if each.required else ""
        yield f"| `{each.opts[-1]}`{needed} | {each.help.replace('|', '&#124;')} |\n"
    for inner, each in getattr(command, "commands", {}).items():
        yield from described(each, f"{name} {inner}", "####")


def page() -> str:
    shown = printed(*shlex.split(FIRST))
    return HEAD.format(first=FIRST, answer=shown) + "".join(sections())


def test_the_page_shows_what_the_shell_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", COLUMNS)
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    os.environ["COLUMNS"] = COLUMNS
    PAGE.write_text(page(), encoding="utf-8")
