"""Answers to remember before code is moved, bit for bit.

    python -m benchmarks.golden write FILE [--seed 1]
    python -m benchmarks.golden check FILE

Random runs, each asked by every method for epsilon, delta, Renyi divergences by every bound that applies, and guarantees with
their provenance: some thousand answers, floats as `float.hex()`. `check` asks again and prints what differs. The file belongs
to one machine: another libm rounds elsewhere.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cumulant as cm

RUNS = 90
BASES = (
    "Gaussian(sigma={sigma})",
    'Gaussian(sigma={sigma}, geometry="ball")',
    "Laplace(scale={sigma})",
    "RandomizedResponse(p={p})",
    "PureDP(epsilon={epsilon})",
    "ApproximateDP(epsilon={epsilon}, delta={tiny})",
    "ZeroConcentrated(rho={epsilon})",
    "from_masses(p=[0.5, 0.3, 0.2], q=[0.2, 0.3, 0.5])",
    "from_masses(p=[0.6, 0.3, 0.1], q=[0.3, 0.3, 0.4])",
    "from_rdp_points(orders=[2, 4, 8, 32], values=[0.1, 0.3, 0.5, 2])",
    "(Gaussian(sigma={sigma}) * 2)",
    "(Laplace(scale={sigma}) + PureDP(epsilon={epsilon}))",
)
SCHEMES = ("", " @ WithoutReplacement(rate={rate})", " @ Poisson(rate={rate})")
ORDERS = (1, 1.5, 2, 3, 17, 64.5, 300, 20_000)


def runs(seed: int) -> Iterator[str]:
    """Texts of runs: every base with every scheme that takes it at least once, some with several kinds."""
    generator = random.Random(seed)

    def one(base: str, scheme: str) -> str:
        numbers = {
            "sigma": f"{10 ** generator.uniform(-0.6, 1.5):.3g}",
            "p": f"{generator.uniform(0.51, 0.95):.3f}",
            "epsilon": f"{10 ** generator.uniform(-2, 0.7):.3g}",
            "tiny": f"{10 ** generator.uniform(-12, -7):.3g}",
            "rate": f"{10 ** generator.uniform(-4, -0.2):.3g}",
        }
        return (base + scheme).format(**numbers) + f" * {int(10 ** generator.uniform(0, 4.5))}"

    kinds = [(base, scheme) for scheme in SCHEMES for base in BASES if not ("ball" in base and "Poisson" in scheme)]
    for base, scheme in kinds:
        yield one(base, scheme)
    for _ in range(RUNS - len(kinds)):
        scheme = generator.choice(SCHEMES)
        bases = [base for base, each in kinds if each == scheme]
        yield " + ".join(one(generator.choice(bases), scheme) for _ in range(generator.randint(1, 2)))


def answers(text: str) -> Iterator[tuple[str, Any]]:
    """Everything that is asked of one run, and what came out, as JSON."""
    run = cm.parse(text)
    for delta in ("1e-3", "1e-6", "1e-10"):
        for method in ("best", "exact", "rdp", "paper", "naive", "optimal"):
            yield f"epsilon {delta} {method}", said(lambda: run.epsilon(delta, method=method))  # noqa: B023
    for epsilon in ("0.1", "1", "5"):
        for method in ("best", "rdp"):
            yield f"delta {epsilon} {method}", said(lambda: run.delta(epsilon, method=method))  # noqa: B023
    for bound in cm.BOUNDS:
        yield f"rdp {bound}", said(lambda: run.rdp(ORDERS, bound=bound).tolist())  # noqa: B023
    for method in ("best", "rdp"):
        yield f"guarantee {method}", said(lambda: fields(run.guarantee("1e-6", method=method)))  # noqa: B023
    yield "epsilon_over", said(lambda: run.epsilon_over([1, 10, 1000], 1e-6, method="rdp").tolist())
    yield "ends", said(lambda: [run.kl, run.pure])


def fields(found: cm.Guarantee) -> list[Any]:
    """What a guarantee says, without its words."""
    terms = [[term.mechanism, term.times, term.bound, list(term.nodes), term.value] for term in found.terms]
    return [found.epsilon, found.delta, found.lower, found.order, found.bound, found.conversion, found.rigour, terms]


def said(ask: Any) -> Any:
    """The answer, or the kind of error."""
    try:
        return plain(ask())
    except cm.CumulantError as error:
        return type(error).__name__


def plain(value: Any) -> Any:
    """The value with every float as its bits."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return float(value).hex() if isinstance(value, float | np.floating) else value


def asked(texts: Iterator[str]) -> dict[str, dict[str, Any]]:
    """All answers about these runs."""
    found = {}
    for text in texts:
        print(text, file=sys.stderr, flush=True)
        found[text] = dict(answers(text))
    return found


def main() -> int:
    """Write the answers, or compare with those that were written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.what == "write":
        options.file.write_text(json.dumps(asked(runs(options.seed)), indent=0))
        return 0
    before = json.loads(options.file.read_text())
    after = asked(iter(before))
    different = [
        (text, question)
        for text, each in before.items()
        for question in each
        if each[question] != after[text][question]
    ]
    for text, question in different:
        print(f"{text}\n  {question}\n    was {before[text][question]}\n    is  {after[text][question]}")
    print(f"{sum(map(len, before.values()))} answers, {len(different)} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
