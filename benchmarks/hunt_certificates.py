"""Attack the certificates: random settings, each number against its own plan at four times the precision.

    python -m benchmarks.hunt_certificates [--settings 100000] [--seed 1] [--jobs 2]

A setting is a run, a bound, a conversion and a question. The library searches an order in floats and answers with a
number that it calls proved; here the same curve, exact order, delta and conversion are evaluated in balls of four times
the precision. The number must not be below the upper end of that ball, and must be above it by less than four units in
its last place. A number that is only `bounded` must not be below the lower end of such a ball. Exits with 1 if one
setting says otherwise, and prints for each that does the Python that shows it.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

import cumulant as cm
from benchmarks.settings import COMMON, EXTREME, Setting, decimal, expression, row_of
from cumulant.accounting.cache import remembered_curve
from cumulant.conversion import order_search, renyi_to_dp
from cumulant.conversion.certify import FIRST_BITS
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least

MOST_ULPS = 4
TIMES_THE_BITS = 4
QUESTIONS, FEW = 24, 6
"""How many questions one run is asked: a setting costs the search for its order, and a curve remembers. Few where a
certificate may take seconds, so that one run does not hold up the others: moments, and noise of a thousandth."""

WEIGHTS = {
    "unsampled": 18.0,
    "caps": 24.0,
    "lemma3": 24.0,
    "pure-response": 8.0,
    "theorem9": 10.0,
    "pure-extras": 3.0,
    "poisson-sum": 2.0,
    "one-bit": 1.5,
    "profile": 2.0,
    "poisson": 2.0,
    "best": 1.5,
    "gaussian-ball": 0.4,
    "gaussian-diameter": 0.4,
    "allocation": 0.2,
    "with-replacement": 0.2,
    "truncated-poisson": 0.2,
    "theorem9-max": 0.2,
} | dict.fromkeys(("theorem27", "theorem27-min", "absolute-moment", "positive-part"), 0.25)
"""The share of each bound: closed forms and finite sums get most, integrals and moments what is left; 1 if not named."""

MOMENTS = ("theorem27", "theorem27-min", "absolute-moment", "positive-part")
MOST_ORDER = 256
"""The largest order tried of moments, alternating sums of as many terms at thousands of bits, and of sums over sums (a
sample of a sample): above it a certificate takes seconds to minutes."""


# ---- what is asked and checked


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a setting was answered, by how many units in the last place above the evaluation, and what is wrong with it."""

    value: float
    rigour: str
    ulps: float = 0.0
    fault: str = ""


def checked(setting: Setting) -> Outcome | None:
    """Ask the library, then evaluate its plan again; None where that would take too long."""
    curve, conversion = setting.run.curve(row_of(setting.bound)), CONVERSIONS[setting.conversion]
    if (setting.bound in MOMENTS or nested(setting.run)) and _order(setting, curve) > MOST_ORDER:
        return None
    ask = renyi_to_dp.proved_epsilon if setting.question == "epsilon" else renyi_to_dp.proved_delta
    answer = ask(curve, setting.asked, conversion)
    if answer.rigour == "proved" and (answer.proof is None or (setting.question == "delta" and answer.value == 1)):
        return Outcome(answer.value, "nothing")
    order = None if answer.order == math.inf else Fraction(repr(answer.order))
    with BALLS.at(TIMES_THE_BITS * (answer.proof.bits if answer.proof else FIRST_BITS)):
        try:
            ball = evaluated(setting, curve, order)
        except cm.CertificateError:  # what has no ball form cannot be proved
            ball = BALLS.number(math.inf)
        value, where = Fraction(answer.value), f"{answer.value!r} at order {order}, evaluated {ball}"
        if answer.rigour != "proved":
            below = ball.is_finite() and value < -at_least((-ball).upper())
            return Outcome(answer.value, answer.rigour, fault=f"{answer.rigour} {where}" if below else "")
        if not ball.is_finite():
            return Outcome(answer.value, "proved", math.inf, where)
        top = max(at_least(ball.upper()), Fraction(0))
        top = min(top, Fraction(1)) if setting.question == "delta" else top
        ulps = float((value - top) / Fraction(math.ulp(answer.value)))
        return Outcome(answer.value, "proved", ulps, "" if 0 <= ulps < MOST_ULPS else f"{where}: {ulps:.3g} ulp above")


def evaluated(setting: Setting, curve: Curve, order: Fraction | None) -> Any:
    """The ball of the same plan: this curve at this exact order, delta or epsilon, and conversion."""
    if order is None:
        return curve.pure(BALLS) if setting.question == "epsilon" else BALLS.number(curve.slack())
    lam, conversion = order - 1, CONVERSIONS[setting.conversion]
    cgf = curve._cgf(np.array([lam], dtype=object), BALLS)[0]
    if setting.question == "epsilon":
        log_delta = BALLS.number(curve.left(setting.asked)).log()
        return conversion.epsilon(BALLS.number(lam), cgf, log_delta, BALLS)
    log_delta = conversion.log_delta(BALLS.number(lam), cgf, BALLS.number(setting.asked), BALLS)
    slack = BALLS.number(curve.slack())
    return slack + (1 - slack) * log_delta.exp()


def nested(run: cm.Expression) -> bool:
    """Whether a part of it is a sample of a sample."""
    samples = [part.inner for part in run.terms if isinstance(part, cm.Sampled)]
    return any(isinstance(part, cm.Sampled) for inner in samples for part in inner.terms)


def _order(setting: Setting, curve: Curve) -> float:
    """The largest finite order that the search of floats finds; 0 for none."""
    conversion = CONVERSIONS[setting.conversion]
    if setting.question == "epsilon":
        found = order_search.best_epsilon(curve, [setting.asked], conversion).order
    else:
        found = order_search.best_delta(curve, [setting.asked], conversion).order
    return float(np.max(found[np.isfinite(found)], initial=0.0))


# ---- many of them


@dataclass(slots=True)
class Tally:
    """What the settings of one bound showed: `bounded` ones claim no proof, `nothing` is infinite or 1 or 0."""

    settings: int = 0
    proved: int = 0
    bounded: int = 0
    nothing: int = 0
    left_out: int = 0
    largest: float = 0.0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        for name in ("settings", "proved", "bounded", "nothing", "left_out", "seconds", "faults"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest = max(self.largest, other.largest)


def batch(bound: str, seed: int, number: int, size: int = QUESTIONS) -> tuple[str, Tally]:
    """One run, asked many times: other repetitions, deltas and conversions, and epsilons near the answers.

    It is the same whatever else is hunted, so a fault can be found again.
    """
    rng, tally = random.Random(f"{seed} {bound} {number}"), Tally()
    start, ranges = time.perf_counter(), EXTREME if number % 4 == 0 else COMMON
    run = expression(rng, bound, ranges)
    while tally.settings < size:
        repeated = run * int(Fraction(decimal(rng, *ranges.times)))
        delta = Fraction(decimal(rng, *ranges.delta))
        for conversion in CONVERSIONS:
            setting = Setting(repeated, bound, conversion, "epsilon", delta)
            outcome = _counted(setting, tally)
            if outcome is not None and 0 < outcome.value < math.inf and tally.settings < size:
                epsilon = Fraction(f"{outcome.value * rng.choice((1, rng.uniform(0.5, 2))):.4g}")
                _counted(Setting(repeated, bound, conversion, "delta", epsilon), tally)
            if tally.settings >= size:
                break
        if tally.left_out > size:  # out of reach altogether: another run
            run, tally.left_out = expression(rng, bound, ranges), 0
    remembered_curve.cache_clear()
    tally.seconds = time.perf_counter() - start
    return bound, tally


def _counted(setting: Setting, tally: Tally) -> Outcome | None:
    outcome = checked(setting)
    if outcome is None:
        tally.left_out += 1
        return None
    tally.settings += 1
    setattr(tally, outcome.rigour, getattr(tally, outcome.rigour) + 1)
    tally.largest = max(tally.largest, outcome.ulps)
    if outcome.fault:
        tally.faults.append(f"{setting}: {outcome.fault}")
    return outcome


def shares(settings: int) -> dict[str, int]:
    """How many settings each bound gets; a bound that has no weight of its own counts like a moment."""
    upper = [name for name, row in cm.BOUNDS.items() if row.upper]
    weights = {name: WEIGHTS.get(name, 1.0) for name in ("unsampled", *upper)}
    found = {name: max(1, int(settings * weight / sum(weights.values()))) for name, weight in weights.items()}
    found["caps"] += settings - sum(found.values())
    return found


def hunt(
    settings: int, seed: int, jobs: int = 1, advance: Callable[[int], None] = lambda done: None
) -> dict[str, Tally]:
    """So many settings, and what they showed for each bound."""
    each = dict.fromkeys((*MOMENTS, "gaussian-ball", "gaussian-diameter"), FEW)
    tasks = [
        (bound, seed, number, min(size, share - number * size))
        for bound, share in shares(settings).items()
        for size in (each.get(bound, QUESTIONS),)
        for number in range(math.ceil(share / size))
    ]
    random.Random(seed).shuffle(tasks)
    found: dict[str, Tally] = defaultdict(Tally)
    with multiprocessing.Pool(jobs) if jobs > 1 else _here() as pool:
        for bound, tally in pool.imap_unordered(_task, tasks):
            found[bound].add(tally)
            advance(tally.settings)
    return {bound: found[bound] for bound in shares(settings)}


def _task(arguments: tuple[str, int, int, int]) -> tuple[str, Tally]:
    return batch(*arguments)


class _Here:
    """A pool of no processes."""

    imap_unordered = staticmethod(map)


@contextmanager
def _here() -> Iterator[_Here]:
    yield _Here()


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=sys.stderr)) as bar:
        yield partial(bar.advance, bar.add_task("settings", total=total))


def report(found: dict[str, Tally]) -> str:
    """One line for each bound, and one for all."""
    rows = dict(found)
    rows["all"] = Tally()
    for tally in found.values():
        rows["all"].add(tally)
    lines = [
        f"{'bound':<18}{'settings':>9}{'proved':>9}{'bounded':>9}{'nothing':>9}{'most ulp':>10}{'ms each':>9}{'wrong':>7}"
    ]
    for name, tally in rows.items():
        each = 1e3 * tally.seconds / max(tally.settings, 1)
        lines.append(
            f"{name:<18}{tally.settings:>9}{tally.proved:>9}{tally.bounded:>9}{tally.nothing:>9}"
            f"{tally.largest:>10.4f}{each:>9.1f}{len(tally.faults):>7}"
        )
    return "\n".join(lines)


def main() -> int:
    """Hunt, report, and say whether a number was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    chosen = parser.parse_args()
    start = time.perf_counter()
    with progress(chosen.settings) as advance:
        found = hunt(chosen.settings, chosen.seed, chosen.jobs, advance)
    print(report(found))
    print(f"seed {chosen.seed}, {chosen.jobs} processes, {time.perf_counter() - start:.0f} s")
    faults = [fault for tally in found.values() for fault in tally.faults]
    for fault in faults:
        print(fault)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
