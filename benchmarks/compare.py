"""Runs the same work in this library and in its peers and prints the ratios; see README.md for what each line means."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version

from amplification import every_bound, large_order, real_orders
from cases import compositions, curves, rounds
from certificates import certificates
from imports import imports
from losses import loss_distributions
from measure import Comparison, Fact, LeftOut
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
    "training": training,
}

LIBRARIES = ("cumulant", "dp-accounting", "autodp", "opacus", "prv-accountant", "numpy", "scipy")


def main() -> None:
    """Run the chosen cases, printing each as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"what to run (all of it): {', '.join(CASES)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, larger extrapolations: about a minute")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    chosen = parser.parse_args()
    if unknown := set(chosen.cases) - set(CASES):
        parser.error(f"unknown case {', '.join(sorted(unknown))}; choose from {', '.join(CASES)}")
    logging.disable(logging.WARNING)
    versions = {name: _version(name) for name in LIBRARIES}
    if not chosen.json:
        print(f"Python {platform.python_version()}, {os.cpu_count()} cores;", end=" ")
        print(", ".join(f"{name} {number}" for name, number in versions.items()), end="\n\n", flush=True)
    results = []
    for name in chosen.cases or CASES:
        for result in CASES[name](chosen.quick):
            results.append({"case": name, **result.as_json()})
            if not chosen.json:
                print(result, end="\n\n", flush=True)
    if chosen.json:
        print(json.dumps({"python": platform.python_version(), "versions": versions, "results": results}, indent=2))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
