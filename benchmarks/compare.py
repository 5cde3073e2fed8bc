"""Runs the same work in this library and in its peers and prints the ratios; see README.md for what each line means."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from allocation import allocation
from amplification import every_bound, large_order, real_orders
from cases import compositions, curves, rounds
from certificates import certificates
from draws import draws
from imports import imports
from losses import loss_distributions
from measure import Comparison, Fact, LeftOut
from mechanisms import mechanisms
from questions import many_questions
from training import training

CASES: dict[str, Callable[[bool], Iterator[Comparison | Fact | LeftOut]]] = {
    "curves": curves,
    "rounds": rounds,
    "compositions": compositions,
    "imports": imports,
    "real-orders": real_orders,
    "every-bound": every_bound,
    "large-order": large_order,
    "certificates": certificates,
    "loss-distributions": loss_distributions,
    "questions": many_questions,
    "draws": draws,
    "training": training,
    "allocation": allocation,
    "mechanisms": mechanisms,
}

LIBRARIES = ("cumulant", "dp-accounting", "autodp", "opacus", "prv-accountant", "numpy", "scipy")


def main() -> None:
    """Run the chosen cases, printing each as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"what to run (all of it): {', '.join(CASES)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, larger extrapolations: about a minute")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    parser.add_argument(
        "--page", metavar="FILE", help="write the page of the documentation, with its date and its command"
    )
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    chosen = parser.parse_args()
    if unknown := set(chosen.cases) - set(CASES):
        parser.error(f"unknown case {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    logging.disable(logging.WARNING)
    versions = {name: _version(name) for name in LIBRARIES}
    aloud = not chosen.json
    if aloud:
        print(f"Python {platform.python_version()}, {os.cpu_count()} cores;", end=" ")
        print(", ".join(f"{name} {number}" for name, number in versions.items()), end="\n\n", flush=True)
    results: list[dict[str, Any]] = []
    for name in chosen.cases or CASES:
        for result in CASES[name](chosen.quick):
            results.append({"case": name, **result.as_json()})
            if aloud:
                print(result, end="\n\n", flush=True)
    if chosen.json:
        print(json.dumps({"python": platform.python_version(), "versions": versions, "results": results}, indent=2))
    if chosen.page:
        file = Path(chosen.page)
        kept = APART.search(file.read_text(encoding="utf-8")) if file.exists() else None
        file.write_text(page(results, versions, chosen, kept[0] if kept else ""), encoding="utf-8")


ACCURACY = ("draws", "mechanisms")
"""Cases whose facts are ratios of epsilons or deltas, not of times."""

APART = re.compile("<!-- peers with environments of their own -->.*?<!-- end -->\n", re.DOTALL)
"""The part of the page that stays: these peers do not install beside the others, so they are asked by scripts of their own."""


def page(
    results: Sequence[Mapping[str, Any]], versions: Mapping[str, str], chosen: argparse.Namespace, apart: str
) -> str:
    """Return the results as a page of the documentation: time, accuracy, internal targets, and what was left out."""
    today = datetime.now(UTC).date()
    command = " ".join(["python benchmarks/compare.py", *(["--quick"] if chosen.quick else []), *chosen.cases])
    found = ", ".join(f"{name} {number}" for name, number in versions.items() if number != "not installed")
    times = _table(
        ("case", "work", "cumulant", "other libraries", "ratio"),
        (
            (
                each["case"],
                each["work"],
                _shown(each["ours"]["seconds"]),
                "; ".join(f"{peer['library']} {_shown(peer['seconds'])}" for peer in each["peers"]),
                "" if each["ratio"] is None else f"{each['ratio']:.3g}",
            )
            for each in results
            if "ours" in each
        ),
    )
    facts = [each for each in results if "value" in each]
    accuracy = _table(
        ("work", "ratio", "numbers"),
        ((each["work"], f"{each['value']:.3g}", each["detail"]) for each in facts if each["case"] in ACCURACY),
    )
    targets = _table(
        ("case", "work", "value", "wanted"),
        (
            (
                each["case"],
                f"{each['work']}; {each['detail']}",
                f"{each['value']:.3g}",
                "" if each["limit"] is None else f"below {each['limit']:g}",
            )
            for each in facts
            if each["case"] not in ACCURACY
        ),
    )
    left = "".join(f"\n* {each['work']}: {each['left out']}" for each in results if "left out" in each)
    return f"""# Benchmarks

This page compares the same work in this library and in others, in one run on one machine. Ratios count: a busy machine moves
them less than times. [How benchmarks are measured](../benchmarks/README.md) explains every case. `make bench` runs all.

Measured on {today} by `{command}`: Python {platform.python_version()}, {os.cpu_count()} cores, {found}.
{chosen.note}

## Time

The ratio is the time of the fastest other library over ours. Above 1, this library is faster.

{times}

{apart}
## Accuracy

The ratio is our epsilon or delta over the smallest of the others. Below 1, ours is tighter, and it is proved.

{accuracy}

[The comparison](comparison.md) has the epsilons of twelve standard settings, with lower ends.

## Internal targets

These counts and ratios concern this library alone. We watch them so that it stays fast.

{targets}
{f"{chr(10)}Left out:{chr(10)}{left}{chr(10)}" if left else ""}"""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (heads, ["---"] * len(heads), *rows)
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _shown(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
