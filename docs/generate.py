"""Write the parts of pages that come from elsewhere: `python docs/generate.py` (a test compares them).

The README shows the output of a command and the map of the documentation, docs/README.md the whole map, and
docs/comparison.md the epsilons of all peers. Each part stands between two comments that name it.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cumulant.accounting.numbers import rounded_down, rounded_nearest, rounded_up

ROOT = Path(__file__).resolve().parents[1]
RUN = "Gaussian(noise_multiplier=1, relation='add-remove') @ Poisson(rate=512/50000) * 5860"
COMMAND = f'cumulant epsilon "{RUN}" --delta 1e-5'
"""The command whose output the README and the home page show."""

MOST_SHOWN = 4
"""Pages of a group that the README names; convention: a row of its table fits on a screen."""


def output() -> str:
    """The command and what it prints, as two blocks."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(COMMAND)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80", "LANG": "C.UTF-8", "NO_COLOR": "1"},
    )
    return f"```console\n$ {COMMAND}\n```\n\n```text\n{done.stdout.rstrip()}\n```"


def title(page: str) -> str:
    """The heading of a page; notebooks have it in their first cell."""
    if page == "docs/reference/index.md":
        return "Reference"
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".ipynb"):
        text = "".join(json.loads(text)["cells"][0]["source"])
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    assert found is not None, page
    return found[1]


def groups() -> list[dict[str, Any]]:
    """The groups of docs/map.toml."""
    return list(tomllib.loads((ROOT / "docs" / "map.toml").read_text(encoding="utf-8"))["group"])


def linked(pages: list[str], start: str) -> list[str]:
    """The pages as links from the folder `start`; pages that only the site has are left out."""
    found = []
    for page in pages:
        if page in ("README.md", "docs/reference/index.md"):
            continue
        inside = page.startswith(start)
        target = page.removeprefix(start) if inside else "../" * start.count("/") + page
        found.append(f"[{title(page)}]({target})")
    return found


def short_map() -> str:
    """The groups with their questions and first pages, for the README."""
    rows = ["| | the question | start with |", "|---|---|---|"]
    for group in groups():
        shown = ", ".join(linked(group["pages"], "")[:MOST_SHOWN])
        rows.append(f"| **{group['title']}** | {group['question']} | {shown} |")
    return "\n".join(rows)


def whole_map() -> str:
    """Every group with every page, for docs/README.md."""
    parts = []
    for group in groups():
        pages = "\n".join(f"* {each}" for each in linked(group["pages"], "docs/"))
        parts.append(f"## {group['title']}\n\n{group['question']}\n\n{pages}")
    return "\n\n".join(parts)


def comparison() -> str:
    """The epsilons of the standard settings: ours as an interval, then every peer."""
    import cumulant as cm

    settings = runpy.run_path(str(ROOT / "benchmarks" / "standard_settings.py"))["SETTINGS"]
    peers = json.loads((ROOT / "benchmarks" / "peer_epsilons.json").read_text())
    names = [name.replace("dp_accounting", "dp_acc.").replace("prv_accountant", "prv_acc.") for name in peers]
    rows = [f"| setting | lower end | cumulant | {' | '.join(names)} |", "|---|---|---|" + "---|" * len(peers)]
    for one in settings:
        found = cm.parse(one.expression).guarantee(delta=one.delta)
        assert found.lower is not None, one.name
        ours = f"{rounded_down(found.lower)} | **{rounded_up(found.epsilon)}**"
        cells = [shown_epsilon(each["epsilon"][one.name]) for each in peers.values()]
        rows.append(f"| {one.name} | {ours} | {' | '.join(cells)} |")
    return "\n".join(rows)


def shown_epsilon(value: float | str | None) -> str:
    """A peer's answer in a cell: its epsilon rounded to the nearest, a dash where it has none, or the name of its error."""
    if value is None:
        return "–"
    return rounded_nearest(value) if isinstance(value, float | int) else value


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"output": output, "map": short_map},
    "docs/index.md": {"output": output},
    "docs/README.md": {"map": whole_map},
    "docs/comparison.md": {"epsilons": comparison},
}
"""The generated parts of each page by name."""


def replaced(page: str) -> str:
    """The text of a page with its generated parts written anew."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, write in PARTS[page].items():
        between = re.compile(rf"(<!-- {name}: docs/generate.py -->\n).*?(\n<!-- end -->)", re.DOTALL)
        assert between.search(text), f"{page} has no part {name}"
        text = between.sub(lambda found, write=write: found[1] + write() + found[2], text)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    for each in PARTS:
        (ROOT / each).write_text(replaced(each), encoding="utf-8")
