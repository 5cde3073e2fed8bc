"""What a spend costs: processor time, syncs of the disk, entries that are there already, verification, adaptivity.

    python -m benchmarks.ledger [--url sqlite|postgresql] [--entries 100000] [--json]

Wall-clock numbers depend on the disk and are given as fractions of its measured rate of fdatasync; those of single spends are
information. Exits with 1 if a bar is missed: processor time per spend 1 ms, a spend at the end of many entries 1.2 times one
at their beginning, 100,000 entries verified in 20 s, batches of 1,000 at 1,500 entries per second or the disk's limit,
adaptivity 6 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from statistics import median

import numpy as np

import cumulant as cm
from cumulant.filters.filter import Tariff
from cumulant.filters.mixture import Mixture
from cumulant.ledger.account import Account
from tests.ledger.crowd import crowd
from tests.ledger.kill import place

STEP = cm.Gaussian(sigma=100_000)


@dataclass(frozen=True)
class Line:
    """One measurement, and the bar it has to clear."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    at_most: bool = True

    @property
    def good(self) -> bool:
        return self.bar is None or (self.value <= self.bar if self.at_most else self.value >= self.bar)

    def __str__(self) -> str:
        bar = "" if self.bar is None else f"   (wanted {'<=' if self.at_most else '>='} {self.bar:g})"
        return f"{'  ' if self.good else '! '}{self.name:58} {self.value:10.4g} {self.unit}{bar}"


def syncs(folder: Path, seconds: float = 2.0) -> float:
    """How often per second this disk syncs 4 kB that were appended to a file."""
    file = os.open(folder / "sync", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        os.write(file, bytes(4096))
        os.fdatasync(file)
        count += 1
    os.close(file)
    return count / (time.perf_counter() - start)


def spend_for(url: str, name: str, seconds: float) -> tuple[int, float]:
    """How many one process spends in this time, and its longest wait."""
    account = cm.Ledger(url).account(name)
    account.would_fit(STEP)
    count, longest, start = 0, 0.0, time.perf_counter()
    while (before := time.perf_counter()) - start < seconds:
        account.spend(STEP)
        count, longest = count + 1, max(longest, time.perf_counter() - before)
    return count, longest


def latency(accounts: Sequence[Account], rounds: int) -> list[tuple[float, float, float]]:
    """The medians of the wall-clock time and of the processor time of one spend, in seconds, of accounts in any order.

    Then the processor time that a tenth of the spends do not exceed: after each wait for the disk the caches belong to other
    programs, and on a busy machine the median is mostly theirs.
    """
    found: list[list[tuple[float, float]]] = [[] for _ in accounts]
    for account in accounts:
        account.spend(STEP)
    pairs, draw = list(zip(accounts, found, strict=True)), random.Random(1)
    for _ in range(rounds):
        draw.shuffle(pairs)  # whoever comes after a wait may find the processor taken
        for account, times in pairs:
            before, processor = time.perf_counter(), time.process_time()
            account.spend(STEP)
            times.append((time.perf_counter() - before, time.process_time() - processor))
    middle = [(median(wait for wait, _ in times), sorted(used for _, used in times)) for times in found]
    return [(wait, median(used), used[rounds // 10]) for wait, used in middle]


def measured(url: str, empty: str, folder: Path, entries: int, seconds: float) -> Iterator[Line]:
    """Everything about one database; `empty` is the address of another one of its kind, which stays nearly so."""
    ledger = cm.Ledger(url)
    account, other = (each.create("one", epsilon=1, delta="1e-6") for each in (ledger, cm.Ledger(empty)))
    rate = syncs(folder)
    yield Line("fdatasync of this disk", rate, "per second")
    ((wait, processor, undisturbed),) = latency([account], 400)
    yield Line("processor time of one spend, charge known", processor * 1e3, "ms", 1.0)
    yield Line("the same, the least disturbed tenth", undisturbed * 1e3, "ms")
    yield Line("wall-clock time of one spend, median", wait * 1e3, "ms")
    alone, _ = spend_for(url, "one", seconds)
    yield Line("one process, part of the disk's rate", alone / seconds / rate, "")
    together = crowd(spend_for, [(url, "one", seconds)] * 8)
    yield Line("eight processes, part of the disk's rate", sum(n for n, _ in together) / seconds / rate, "")
    yield Line("eight processes, longest wait", max(wait for _, wait in together), "s")
    head, start, used, written = account.head().seq, time.perf_counter(), time.process_time(), 0
    runs = [STEP] * 1000
    while head + written < entries:
        account.spend_all(runs)
        written += len(runs)
    batches = written / (time.perf_counter() - start)
    yield Line("batches of 1,000, processor time of one entry", (time.process_time() - used) / written * 1e3, "ms")
    limit = 1000 * rate  # one sync for each batch
    yield Line("batches of 1,000", batches, "entries per second", min(1500.0, limit), at_most=False)
    yield Line("batches of 1,000, part of the disk's limit", batches / limit, "")
    (late, late_processor, _), (early, early_processor, _) = latency(
        [account, other], 200
    )  # in turn: the machine is as busy
    yield Line(f"a spend after {head + written:,} entries over one after none", late / early, "", 1.2)
    yield Line("the same in processor time", late_processor / early_processor, "", 1.2)
    start, used = time.perf_counter(), time.process_time()
    verdict = ledger.verify()
    most = 20.0 * verdict.entries / 100_000
    yield Line(f"verify {verdict.entries:,} entries", time.perf_counter() - start, "s", most)
    yield Line("the same in processor time", time.process_time() - used, "s")
    assert verdict, str(verdict)


def adaptivity() -> Iterator[Line]:
    """How many spends fit, against the best order for parameters that are fixed in advance."""
    workloads = [
        (1, "1e-6", cm.Gaussian(sigma=300)),
        (1, "1e-6", cm.PureDP("0.01")),
        (1, "1e-6", cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.004")),
        (3, "1e-6", cm.Gaussian(sigma=100)),
        (3, "1e-6", cm.Laplace(scale=40)),
        (3, "1e-6", cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.001")),
    ]
    for epsilon, delta, run in workloads:
        rule = Mixture.for_budget(Fraction(epsilon), Fraction(delta))
        prices = [(price.upper, times) for price, times in Tariff(rule).prices(run)]
        lam = np.geomspace(0.05, 4000, 20_000)
        room = math.log(float(rule.delta)) + lam * epsilon + lam * np.log1p(1 / lam) + np.log1p(lam)
        free = int(np.max(room / np.asarray(run.curve().cgf(lam))))
        cost = 1 - rule.would_fit(rule.zero(), prices, 10**9) / free
        yield Line(f"adaptivity, ({epsilon}, {delta}) {run}", 100 * cost, "%", 6.0)


def main() -> int:
    """Measure and say which bars were missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    lines = []
    with ExitStack() as stack:
        (url, _), (empty, _) = (stack.enter_context(place(given.url, crash=False)) for _ in range(2))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for line in chain(adaptivity(), measured(url, empty, folder, given.entries, given.seconds)):
            lines.append(line)
            if not given.json:
                print(line, flush=True)
    if given.json:
        print(
            json.dumps([{"name": line.name, "value": line.value, "unit": line.unit, "bar": line.bar} for line in lines])
        )
    return int(not all(line.good for line in lines))


if __name__ == "__main__":
    sys.exit(main())
