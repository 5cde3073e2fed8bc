"""Runs the same work in this library and in its peers and prints the ratios; see README.md for what each line means."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
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
        Path(chosen.page).write_text(page(results, versions, chosen), encoding="utf-8")


def page(results: Sequence[Mapping[str, Any]], versions: Mapping[str, str], chosen: argparse.Namespace) -> str:
    """The results as a page of the documentation."""
    today = datetime.now(UTC).date()
    command = " ".join(["python benchmarks/compare.py", *(["--quick"] if chosen.quick else []), *chosen.cases])
    found = ", ".join(f"{name} {number}" for name, number in versions.items() if number != "not installed")
    rows = []
    for each in results:
        if "ours" in each:
            peers = "; ".join(f"{peer['library']} {_shown(peer['seconds'])}" for peer in each["peers"])
            ratio = "" if each["ratio"] is None else f"{each['ratio']:.3g}"
            rows.append((each["case"], each["work"], _shown(each["ours"]["seconds"]), peers, ratio))
        elif "value" in each:
            limit = "" if each["limit"] is None else f" (wanted: below {each['limit']:g})"
            rows.append((each["case"], f"{each['work']}; {each['detail']}", f"{each['value']:.3g}{limit}", "", ""))
        else:
            rows.append((each["case"], each["work"], "left out", each["left out"], ""))
    table = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)
    return f"""# Benchmarks

The same work in this library and in its peers, in one run on one machine: what counts are ratios, which a busy machine
moves less than times. `ratio` is the time of the fastest peer over ours; what each case does, and how it is measured, stands in
[benchmarks/README.md](../benchmarks/README.md). `make bench` makes the environment and runs all of it.

Measured on {today} by `{command}`: Python {platform.python_version()}, {os.cpu_count()} cores, {found}.
{chosen.note}

| case | work | cumulant | peers | ratio |
|---|---|---|---|---|
{table}
"""


def _shown(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
