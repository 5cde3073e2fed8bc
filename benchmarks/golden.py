"""Record the bits of some thousand answers, and compare them after the code has moved.

    python -m benchmarks.golden write FILE.json[.gz] [--only TEXT]
    python -m benchmarks.golden compare FILE.json[.gz] [--only TEXT]

Every registered mechanism is asked under every way of sampling and every combinator: epsilon and delta by every method, Rényi
divergences by every bound, the fields of guarantees, and the intervals that balls prove. Floats are stored as `float.hex()`.
`compare` asks again and groups what differs: an answer must be identical, an interval must overlap the stored one and may not
be wider. `write` leaves out what takes a run longer than a second; `compare` asks what is stored. The file belongs to one
machine, because another processor rounds elsewhere; so this is no test of CI.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cumulant as cm

MECHANISMS = (
    "ApproximateDP(epsilon=0.1, delta=1e-8)",
    "BoundedLaplace(scale=1, bound=20)",
    "DirichletPosterior(prior=[2, 2], records=10)",
    "DiscreteGaussian(sigma=2)",
    "DiscreteGaussian(sigma=3, dimension=1)",
    "DiscreteLaplace(scale=2)",
    "ExponentialFamilyMechanism(diameter=1, hessian=1/4)",
    "ExponentialMechanism(epsilon=1)",
    "from_masses(p=[0.6, 0.3, 0.1], q=[0.3, 0.3, 0.4])",
    "from_rdp_points(orders=[2, 4, 8, 32], values=[0.1, 0.3, 0.5, 2])",
    "Gaussian(sigma=5)",
    'Gaussian(sigma=2, geometry="ball")',
    "GaussianDP(mu=1/2)",
    "GaussianMeanPosterior(diameter=1, variance=1, records=9, prior_precision=1)",
    "GaussianMixture(sigma=2, shifts=[0, 1, 2], weights=[0.81, 0.18, 0.01])",
    "KaryResponse(values=4, p=1/2)",
    "Laplace(scale=2)",
    "NoisyMax(scale=2)",
    "PermuteAndFlip(epsilon=1)",
    "PrivacyProfile(epsilons=[0, 0.5, 1, 3], deltas=[0.2, 0.05, 0.01, 1e-6])",
    "PureDP(epsilon=0.1)",
    "RandomizedResponse(p=0.75)",
    "Skellam(variance=100, sensitivity=3, dimension=1)",
    "LocalRandomizer(inputs=2, masses=[3/4, 1/4, 1/4, 3/4])",
    "SparseVector(threshold=2, query=4)",
    "SubsetSelection(values=10, size=3, epsilon=1)",
    "TradeOff(alphas=[0, 1/4, 1], betas=[1, 1/4, 0])",
    "UnaryEncoding(p=1/2, q=1/5)",
    "ZeroConcentrated(rho=1/50)",
)
"""One expression for every registered mechanism; two where its geometry or dimension chooses other theorems."""

SCHEMES = (
    "{} * 10",
    "{} @ WithoutReplacement(rate=0.01) * 1000",
    "{} @ Poisson(rate=0.01) * 1000",
    '{} @ Poisson(rate=0.02, relation="replace-one") * 100',
    "{} @ WithReplacement(sample=10, population=1000) * 10",
    "{} @ TruncatedPoisson(rate=1/50, limit=20, population=500) * 10",
    "{} @ RandomAllocation(steps=4) * 3",
    "{} @ Group(size=2) * 3",
    "{} @ RepeatAndSelect(mean=10)",
    "{} @ Shuffle(reports=1000) * 2",
    "{} @ ShuffledBatches() * 2",
)
"""Every registered scheme and combinator, around the mechanism that stands for {}."""

RUNS = (
    "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000",
    'Gaussian(noise_multiplier=1.1, clip=1, relation="add-remove") @ Poisson(rate=1%) * 1000',
    "Gaussian(sigma=1.3) @ WithoutReplacement(rate=0.01) * 500 + Laplace(scale=9) @ WithoutReplacement(rate=0.02) * 200",
    "Gaussian(sigma=4) @ Poisson(rate=0.05) * 300 + RandomizedResponse(p=0.55) @ Poisson(rate=0.05) * 40 + PureDP(0.01) * 9",
    "(Laplace(scale=5) + Gaussian(sigma=7)) @ WithoutReplacement(rate=0.1) * 20",
    "(Gaussian(sigma=5) @ WithoutReplacement(rate=0.1)) @ WithoutReplacement(rate=0.1) * 50",
    "Laplace(scale=0.5) * 4 + PureDP(epsilon=2)",
    "ExponentialMechanism(epsilon=0.1) * 400",
    "Gaussian(sigma=0.3)",
    "Laplace(scale=40) @ Poisson(rate=0.3) * 20000",
)
"""Runs with several components, nested samples, many rounds or a single one."""

ORDERS = (1, 1.5, 2, 3, 17, 64.5, 300, 20_000)
DELTAS = ("1e-3", "1e-6", "1e-10")
EPSILONS = ("0.1", "1", "5")
METHODS = ("best", "exact", "rdp", "paper", "naive", "strong", "optimal")
RUN_SECONDS = 1.0
"""Processor time for one run, in seconds: `write` leaves out its remaining questions; convention, 318 runs in five minutes."""


def texts() -> Iterator[str]:
    """Return the notation of every run that is asked, always in the same order."""
    yield from RUNS
    for scheme in SCHEMES:
        yield from (scheme.format(mechanism) for mechanism in MECHANISMS)


def questions() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Return the name of each question, with the call that asks it; the cheap ones first."""
    for method in METHODS[2:]:
        for delta in DELTAS:
            yield f"epsilon {delta} {method}", lambda run, d=delta, m=method: run.epsilon(d, method=m)
    for epsilon in EPSILONS:
        yield f"delta {epsilon} rdp", lambda run, e=epsilon: run.delta(e, method="rdp")
    yield "guarantee rdp", lambda run: fields(run.guarantee(delta="1e-6", method="rdp"))
    yield "ball epsilon", lambda run: interval(run.guarantee(delta="1e-6", method="rdp"))
    yield "ball delta", lambda run: interval(run.guarantee(epsilon="1", method="rdp"))
    yield "ends", lambda run: [run.kl(), run.pure()]
    yield "epsilon 1e-6 best", lambda run: run.epsilon("1e-6")
    for bound in cm.BOUNDS:
        yield f"rdp {bound}", lambda run, b=bound: run.rdp(ORDERS, bound=b).tolist()
    yield "ball verified", lambda run: enclosure(run.guarantee(delta="1e-5", method="rdp"))
    yield "guarantee best", lambda run: fields(run.guarantee(delta="1e-6"))
    yield "ball exact", lambda run: interval(run.guarantee(delta="1e-6"))
    for method in METHODS[:2]:
        for delta in DELTAS:
            yield f"epsilon {delta} {method} again", lambda run, d=delta, m=method: run.epsilon(d, method=m)
    for epsilon in EPSILONS:
        yield f"delta {epsilon} best", lambda run, e=epsilon: run.delta(e)


def fields(found: cm.Guarantee) -> list[Any]:
    """Return what a guarantee states, without its sentences."""
    terms = [[term.mechanism, term.times, term.bound, list(term.nodes), term.value] for term in found.evidence.terms]
    proof = found.evidence
    return [found.epsilon, found.delta, found.lower, proof.order, proof.bound, found.route, found.rigour, terms]


def interval(found: cm.Guarantee) -> Any:
    """Return the interval that the ball of an answer encloses; None if the answer was not proved by a ball."""
    value = found.delta if found.asked == "epsilon" else found.epsilon
    radius = found.evidence.radius
    if radius is None or not math.isfinite(value):
        return None
    return {"ball": [float(value - 2 * radius).hex(), float(value).hex()]}


def enclosure(found: cm.Guarantee) -> Any:
    """Return the interval in which the second evaluation of an answer lies."""
    check = found.verify()
    return {"ball": [float(check.lower).hex(), float(check.upper).hex()], "holds": bool(check)}


def plain(value: Any) -> Any:
    """Return the value as JSON, every float by its bits."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return float(value).hex() if isinstance(value, float | np.floating) else value


def answers(text: str, stored: Collection[str] | None = None) -> dict[str, Any]:
    """Return the stored answers about one run, or all that fit into its time; a refusal is the name of its exception."""
    try:
        run = cm.parse(text)
    except cm.CumulantError as error:
        return {"parse": type(error).__name__}
    found: dict[str, Any] = {}
    begin = time.process_time()
    for name, ask in questions():
        if name not in stored if stored is not None else time.process_time() - begin > RUN_SECONDS:
            continue
        try:
            found[name] = plain(ask(run))
        except cm.CumulantError as error:
            found[name] = type(error).__name__
    return found


def difference(before: Any, after: Any) -> str:
    """Return what is wrong with an answer: nothing, or the kind of difference."""
    if before == after:
        return ""
    if not (isinstance(before, dict) and isinstance(after, dict) and "ball" in before and "ball" in after):
        return "differs"
    (low, high), (new_low, new_high) = ([float.fromhex(end) for end in each["ball"]] for each in (before, after))
    if new_high < low or high < new_low:
        return "balls apart"
    if new_high - new_low > high - low:
        return "ball wider"
    return "" if before.get("holds") == after.get("holds") else "differs"


def compare(stored: dict[str, dict[str, Any]], only: str) -> int:
    """Ask everything that is stored again, print the differences by kind of question, and return their number."""
    grouped: dict[str, list[str]] = defaultdict(list)
    count = balls = 0
    for text, before in stored.items():
        if only not in text:
            continue
        after = answers(text, before)
        for name in before | after:
            count += 1
            balls += isinstance(before.get(name), dict)
            kind = difference(before.get(name, "not asked"), after.get(name, "not asked"))
            if kind:
                was, now = before.get(name), after.get(name)
                grouped[f"{name}: {kind}"].append(f"  {text}\n    was {was}\n    is  {now}")
    for name, lines in sorted(grouped.items()):
        print(f"{name} ({len(lines)})", *lines, sep="\n")
    wrong = sum(map(len, grouped.values()))
    print(f"{count} answers, {balls} of them intervals; {wrong} differ")
    return wrong


def save(file: Path, found: dict[str, dict[str, Any]]) -> None:
    """Write what has been found so far."""
    data = json.dumps(found, indent=0).encode()
    file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)


def write(file: Path, only: str) -> None:
    """Write all answers to a file, and print what the slowest runs took."""
    found, seconds = {}, {}
    for text in texts():
        if only not in text:
            continue
        begin = time.process_time()
        found[text] = answers(text)
        seconds[text] = time.process_time() - begin
        if len(found) % 20 == 0:
            save(file, found)
    save(file, found)
    for text in sorted(seconds, key=seconds.__getitem__, reverse=True)[:12]:
        print(f"{seconds[text]:8.1f} s  {text}")
    flat = [answer for each in found.values() for answer in each.values()]
    balls = sum(isinstance(answer, dict) for answer in flat)
    print(f"{len(flat)} answers, {balls} of them intervals, {sum(seconds.values()):.0f} s")


def main() -> int:
    """Write the answers, or compare with those that were written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="ask only runs whose text contains this")
    options = parser.parse_args()
    if options.action == "write":
        write(options.file, options.only)
        return 0
    data = options.file.read_bytes()
    stored = json.loads(gzip.decompress(data) if options.file.suffix == ".gz" else data)
    return 1 if compare(stored, options.only) else 0


if __name__ == "__main__":
    sys.exit(main())
