"""Attack the answers: random questions to every mechanism on every kind of sample, against laws and independent truths.

    python -m benchmarks.hunt_questions [--questions 1000] [--seed 1] [--jobs 2] [--limit 60] [--only Gaussian]

A batch is one run, repeated once or often, its parameters from many scales, asked for epsilon at some deltas and for delta
at some epsilons. Checked are

* epsilon falls with delta and delta with epsilon, up to the stated accuracy, unless a note says that it was not reached;
* `run.delta(0.999 * lower) >= delta`, and lower <= epsilon;
* no NaN, nothing negative, no delta above 1, no exception but a CumulantError;
* what is claimed is not below the truth, and a lower end not above it, where the truth is known (benchmarks/truths.py).

Every fault is printed as the Python that shows it. Exits with 1 if there is one. A call that takes longer than the limit is
a fault too, and the process that made it is ended; the slowest call of each line is printed.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from typing import Any

import cumulant as cm
from benchmarks.settings import DRAWS, decimal
from benchmarks.truths import Truth, truth
from cumulant.accounting.choices import Method
from cumulant.accounting.question import DEFAULT_ACCURACY
from cumulant.conversion.failure import Failure, Reason
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import SCHEMES

NONE = "none"
RATED = {name: scheme for name, scheme in SCHEMES.items() if issubclass(scheme, Rated)}
FAMILIES = (NONE, *RATED)
"""Without a sample, and on every kind of sample."""

QUESTIONS = 11
"""About how many questions one run is asked."""

METHODS: tuple[Method, ...] = ("best", "best", "best", "exact", "rdp", "paper")
ROUNDED = 1e-9  # of numbers that are the same up to rounding
OF_ORDERS = 1e-10  # the epsilon by which searches for the best order may miss it
ULP = Fraction(1, 2**50)
LONG = 10.0


def nobody(asked: Asked, text: str) -> None:
    """Does not listen."""


@dataclass(slots=True)
class Asked:
    """The calls that were made: how many, which was the slowest, and what is wrong with the answers."""

    questions: int = 0
    refused: int = 0
    slowest: float = 0.0
    slow: str = ""
    faults: list[str] = field(default_factory=list)
    said: Callable[[Asked, str], None] = nobody
    """Told before each call what is asked."""

    def call(self, text: str, ask: Callable[[], Any]) -> Any:
        """The answer, or None where there is none; only a CumulantError is an answer too."""
        self.questions += 1
        self.said(self, text)
        start, answer = time.perf_counter(), None
        try:
            answer = ask()
        except cm.CumulantError:
            self.refused += 1
        except Exception as error:
            self.wrong(f"{text}: {type(error).__name__}: {str(error)[:200]}")
        taken = time.perf_counter() - start
        if taken > self.slowest:
            self.slowest, self.slow = taken, text
        return answer

    def wrong(self, text: str) -> None:
        """Something that is not so."""
        self.faults.append(text)

    def add(self, other: Asked) -> None:
        """What others showed as well."""
        self.questions += other.questions
        self.refused += other.refused
        self.faults += other.faults
        if other.slowest > self.slowest:
            self.slowest, self.slow = other.slowest, other.slow

    def plain(self) -> Asked:
        """The same without a listener, to be sent."""
        return replace(self, said=nobody)


# ---- the laws of one run


def check(run: cm.Expression, deltas: list[str], epsilons: list[str], method: Method, asked: Asked) -> None:
    """Ask a run at each delta and epsilon, and check every law on the answers."""
    known = truth(run)
    for (one, before), (other, after) in pairwise(_sorted(deltas, lambda d: _epsilon(run, d, method, known, asked))):
        if after > before * (1 + DEFAULT_ACCURACY) + OF_ORDERS and not _gave_up(after, math.inf, method):
            asked.wrong(
                f"{_text(run)}: epsilon grows with delta, {before!r} at {float(one)!r}, {after!r} at {float(other)!r}, "
                f"method={method!r}"
            )
    for (one, before), (other, after) in pairwise(_sorted(epsilons, lambda e: _delta(run, e, method, known, asked))):
        # a delta is as accurate as the epsilon it belongs to
        close = other <= one * Fraction(1 + 2 * DEFAULT_ACCURACY)
        if not close and after > before * (1 + ROUNDED) and not _gave_up(after, 1.0, method):
            asked.wrong(
                f"{_text(run)}: delta grows with epsilon, {before!r} at {float(one)!r}, {after!r} at {float(other)!r}, "
                f"method={method!r}"
            )


def _gave_up(answer: float, nothing: float, method: Method) -> bool:
    """Loss distributions alone may say that nothing is known; the default has the curve to fall back on."""
    return method == "exact" and answer == nothing


def _sorted(asked: list[str], answer: Callable[[str], float | None]) -> list[tuple[Fraction, float]]:
    """What was asked, in order, with the answers that there are."""
    answers = [(Fraction(each), answer(each)) for each in asked]
    return sorted((each, found) for each, found in answers if found is not None)


def _text(run: cm.Expression) -> str:
    return f"cm.parse({str(run)!r})"


def _epsilon(run: cm.Expression, delta: str, method: Method, known: Truth | None, asked: Asked) -> float | None:
    text = f"{_text(run)}.guarantee({delta!r}, method={method!r})"
    found: cm.Guarantee | None = asked.call(text, lambda: run.guarantee(delta=delta, method=method))
    if found is None:
        return None
    if not found.epsilon >= 0:
        asked.wrong(f"{text}: epsilon is {found.epsilon!r}")
        return None
    if known and math.isfinite(found.epsilon) and known(Fraction(found.epsilon))[0] > Fraction(delta) * (1 + ULP):
        asked.wrong(f"{text}: epsilon is {found.epsilon!r}, where delta is {known(Fraction(found.epsilon))}")
    if found.lower is not None:
        _check_lower(run, found, found.lower, Fraction(delta), text, known, asked)
    return None if found.note == Failure(Reason.STRAINED).sentence else found.epsilon


def _check_lower(
    run: cm.Expression,
    found: cm.Guarantee,
    lower: float,
    delta: Fraction,
    text: str,
    known: Truth | None,
    asked: Asked,
) -> None:
    if not 0 <= lower <= found.epsilon:
        asked.wrong(f"{text}: the interval is [{lower!r}, {found.epsilon!r}]")
    if not 0 < lower < math.inf:
        return
    nearly = 0.999 * lower
    claimed = asked.call(f"{_text(run)}.delta({nearly!r})", lambda: run.delta(nearly))
    if claimed is not None and not claimed >= delta:
        asked.wrong(f"{text}: lower is {lower!r}, but {_text(run)}.delta({nearly!r}) is {claimed!r}")
    if known and "Proposition 11" in found.witness and known(Fraction(lower))[1] < delta * (1 - ULP):
        asked.wrong(f"{text}: lower is {lower!r}, where delta is {known(Fraction(lower))}")


def _delta(run: cm.Expression, epsilon: str, method: Method, known: Truth | None, asked: Asked) -> float | None:
    text = f"{_text(run)}.delta({epsilon!r}, method={method!r})"
    found = asked.call(text, lambda: run.delta(epsilon, method=method))
    if found is None:
        return None
    if not 0 <= found <= 1:
        asked.wrong(f"{text} is {found!r}")
        return None
    if known and known(Fraction(epsilon))[0] > found:
        asked.wrong(f"{text} is {found!r}, where delta is {known(Fraction(epsilon))}")
    return float(found)


# ---- random runs and questions

RATES = ((-1, 0), (-4, 0), (-12, 0))
COUNTS = ((0, 0), (0, 1), (0, 4), (3, 7), (6, 12))


def batch(name: str, family: str, seed: int, number: int, said: Callable[[Asked, str], None] = nobody) -> Asked:
    """One run and its questions; the same whatever else is hunted, so that a fault can be found again."""
    rng, asked = random.Random(f"{seed} {name} {family} {number}"), Asked(said=said)
    run = _step(rng, name, family) * int(Fraction(decimal(rng, *rng.choice(COUNTS))))
    deltas, epsilons = _deltas(rng, run, asked), _epsilons(rng, run, asked)
    check(run, deltas, epsilons, rng.choice(METHODS), asked)
    return asked


def _step(rng: random.Random, name: str, family: str) -> cm.Expression:
    """One round; what is not stated under the relation of the sample is drawn again."""
    while True:
        try:
            return DRAWS[name](rng) if family == NONE else DRAWS[name](rng) @ sample(rng, family)
        except cm.RelationError:
            continue


def sample(rng: random.Random, family: str) -> Rated:
    """A sample of this kind, now and then of everything."""
    rate = decimal(rng, *rng.choice(RATES)) if rng.random() < 0.95 else "1"
    return RATED[family](rate=rate if Fraction(rate) < 1 else "1")


def _deltas(rng: random.Random, run: cm.Expression, asked: Asked) -> list[str]:
    """Of every size, and close to the largest one, beyond which epsilon is 0."""
    found = [decimal(rng, *span) for span in ((-300, -12), (-12, -3), (-3, -0.05))]
    most = asked.call(f"{_text(run)}.delta(0)", lambda: run.delta(0))
    if most is not None and 1e-300 < most <= 1:
        close = rng.choice((0.9, 0.95, 0.99, 0.999, 0.999999))
        found += [f"{most * close:.12g}", f"{most * rng.uniform(0.3, 1):.6g}"]
    return [delta for delta in found if 0 < Fraction(delta) < 1]


def _epsilons(rng: random.Random, run: cm.Expression, asked: Asked) -> list[str]:
    """Of every size, and near an answer."""
    found = ["0", decimal(rng, -12, -3), decimal(rng, -3, 3)]
    delta = decimal(rng, -12, -1)
    near = asked.call(f"{_text(run)}.epsilon({delta!r})", lambda: run.epsilon(delta))
    if near is not None and 0 < near < math.inf:
        found += [f"{near * factor:.8g}" for factor in (0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 2.0)]
    return rng.sample(found, min(len(found), 5))


# ---- all of them


def fits(name: str, family: str) -> bool:
    """Whether such a mechanism may run on such a sample."""
    if family == NONE:
        return True
    relations = {DRAWS[name](random.Random(seed)).relation for seed in range(8)}
    return not relations.isdisjoint((cm.Relation.ANY, RATED[family].relation))


Line = tuple[str, str]
Task = tuple[str, str, int, int]


def hunt(
    questions: int,
    seed: int,
    jobs: int = 1,
    limit: float = 60.0,
    only: str = "",
    said: Callable[[str], None] = lambda fault: None,
) -> dict[Line, Asked]:
    """So many questions for each mechanism and kind of sample, and what they showed; each fault is said as it is found."""
    lines = [(name, family) for name in DRAWS for family in FAMILIES if only in name and fits(name, family)]
    tasks = [(*line, seed, number) for line in lines for number in range(math.ceil(questions / QUESTIONS))]
    random.Random(seed).shuffle(tasks)
    found: dict[Line, Asked] = {line: Asked() for line in lines}
    for (name, family, *_), asked in answered(tasks, jobs, limit):
        found[name, family].add(asked)
        for fault in asked.faults:
            said(fault)
    return found


@dataclass(slots=True)
class Worker:
    """A process that does tasks, what it last said, and since when it is silent."""

    process: multiprocessing.Process
    pipe: Connection
    task: Task
    asked: Asked = field(default_factory=Asked)
    asking: str = ""
    since: float = field(default_factory=time.monotonic)


def answered(tasks: list[Task], jobs: int, limit: float) -> Iterator[tuple[Task, Asked]]:
    """Each task and its outcome, done by some processes; one that is silent for too long is ended and replaced."""
    left, workers = list(reversed(tasks)), list[Worker]()
    while left or workers:
        while left and len(workers) < jobs:
            workers.append(_started(left.pop()))
        ready = wait([worker.pipe for worker in workers], timeout=1.0)
        for worker in list(workers):
            if worker.pipe in ready:
                worker.since, (worker.asked, worker.asking) = time.monotonic(), worker.pipe.recv()
                if not worker.asking:  # done
                    yield worker.task, worker.asked
                    if left:
                        worker.task = left.pop()
                        worker.pipe.send(worker.task)
                    else:
                        worker.pipe.send(None)
                        workers.remove(worker)
            elif time.monotonic() - worker.since > limit:
                worker.process.kill()
                workers.remove(worker)
                worker.asked.wrong(f"{worker.asking}: not done after {limit:g} s")
                yield worker.task, worker.asked


def _started(task: Task) -> Worker:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_work, args=(theirs,), daemon=True)
    process.start()
    ours.send(task)
    return Worker(process, ours, task)


def _work(pipe: Connection) -> None:
    """Tasks until there are no more; what is asked is said first, so that a call that hangs is known."""
    while (task := pipe.recv()) is not None:
        name, family, seed, number = task
        done = batch(name, family, seed, number, lambda asked, text: pipe.send((asked.plain(), text)))
        pipe.send((done.plain(), ""))


def report(found: dict[Line, Asked]) -> str:
    """One line for each mechanism and kind of sample."""
    lines = [f"{'mechanism':<28}{'scheme':<20}{'questions':>10}{'refused':>9}{'violations':>12}{'slowest':>10}"]
    for (name, family), asked in found.items():
        lines.append(
            f"{name:<28}{family:<20}{asked.questions:>10}{asked.refused:>9}{len(asked.faults):>12}{asked.slowest:>8.2f} s"
        )
    return "\n".join(lines)


def main() -> int:
    """Hunt, report, and say whether an answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=1000, help="for each mechanism and kind of sample")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a call is stopped")
    parser.add_argument("--only", default="", help="mechanisms whose name contains this")
    chosen = parser.parse_args()
    start = time.perf_counter()
    found = hunt(chosen.questions, chosen.seed, chosen.jobs, chosen.limit, chosen.only, partial(print, flush=True))
    print(report(found))
    print(f"seed {chosen.seed}, {chosen.jobs} processes, {time.perf_counter() - start:.0f} s")
    for asked in found.values():
        if asked.slowest > LONG:
            print(f"{asked.slowest:.1f} s: {asked.slow}")
    return int(any(asked.faults for asked in found.values()))


if __name__ == "__main__":
    sys.exit(main())
