"""Every command alike: -h with examples that are there, --json, --quiet; nothing is called proved that need not be."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cumulant.cli.app import COMMANDS as LISTED
from cumulant.cli.app import answer, load_command

COMMANDS: dict[str, Any] = {}


def _collected(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    for each, inner in (getattr(command, "commands", None) or {}).items():
        yield from _collected(inner, f"{name} {each}".strip())
    if not hasattr(command, "commands"):
        yield name, command


for _name in LISTED:
    COMMANDS.update(_collected(load_command(_name), _name))


def test_no_command_is_lost() -> None:
    assert len(COMMANDS) >= 30
    assert {"epsilon", "sweep", "serve", "ledger spend"} <= COMMANDS.keys()


def test_the_help_has_panels_and_summaries_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    panels = [line[:-1] for line in lines if line[:1].isupper() and line.endswith(":")]
    assert panels == ["Options", "Ask", "Train", "Review", "Budget", "Paper"]
    for name, listed in LISTED.items():
        (line,) = [line for line in lines if line.split()[:1] == [name] and line.startswith("  ")]
        assert line.split(maxsplit=1)[1] == listed.summary
        assert len(line) <= 80


@pytest.mark.parametrize("name", LISTED)
def test_the_summary_is_the_first_line_of_the_help(name: str) -> None:
    assert load_command(name).help.split("\n")[0] == LISTED[name].summary


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_examples_json_and_quiet(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer([*name.split(), "-h"]) == 0
    told = capsys.readouterr().out
    assert "--json" in told
    assert "--quiet" in told
    assert "-h" in told
    folded = re.sub(r" \\\n *|\n +(?=@ )", " ", told.split("Example")[1])
    examples = re.findall(r"^ *cumulant (.*)$", folded, re.MULTILINE)
    assert any(each.startswith(name) for each in examples), told
    options = {option for each in COMMANDS.values() for parameter in each.params for option in parameter.opts}
    for each in examples:
        words = shlex.split(each, comments=True)
        assert {word.partition("=")[0] for word in words if re.match(r"--\w", word)} <= options, each


@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith("ledger")])
def test_what_is_bounded_is_not_called_proved(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer([name, "-h"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    said = re.findall(r"[^.]*\bprove[sd]?\b[^.]*", told.replace("--prove", ""))
    assert all("where it is proved" in each and name == "bounds" for each in said), said


# commands whose answer is a word, a number or a list, what is printed with --quiet; {} is a folder
QUIET = {
    "rdp 'PureDP(1) * 2' --orders 2,inf": "1.470651329 2.000000001",  # 2 log(p^2/q + q^2/p) with p/q = e; arrays are moved up
    "sweep 'PureDP({{e}}) * 3' --set e=1,2,-1 --delta 0": "3\n6\n-",
    "dpsgd --batch 5 --records 5 --steps 3 --noise-multiplier 9 --delta 1e-5 --sampling fixed-size": None,
    "archive 'PureDP(1) * 2' --delta 0 --out {}/archive --no-plot": "2",
    "verify {}/archive": "confirmed",
    "bounds": None,
    "plot 'PureDP(1)' --kind trade-off --out {}/attack.png": "{}/attack.png",
    "conformance {}/batches.txt --population 3 --sample 3": None,
    "ledger create sqlite:///{}/l.db a --epsilon 1 --delta 0": "",
    "ledger status sqlite:///{}/l.db": "",
}


def test_quiet_and_json_of_commands_that_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "batches.txt").write_text("0 1 2\n" * 50)
    for line, expected in QUIET.items():
        words = [word.replace("{{", "{").replace("}}", "}").replace("{}", str(tmp_path)) for word in shlex.split(line)]
        code = answer([*words, "--quiet"])
        quiet = capsys.readouterr()
        assert (code in (0, 1), quiet.err) == (True, ""), line
        if expected is not None:
            assert quiet.out.strip() == expected.replace("{}", str(tmp_path)), line
        assert not quiet.out or len(quiet.out.split("\n")[0].split()) <= 3, line
        if words[0] != "archive" and words[:2] != ["ledger", "create"]:
            assert answer([*words, "--json"]) == code
            json.loads(capsys.readouterr().out)
