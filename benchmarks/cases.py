"""The accountant: curves of Theorem 9, many round counts, many compositions with a question now and then."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial

import numpy as np
import peers
from measure import Comparison, Timing, timed
from peers import Floats, Noise

import cumulant as cm

DELTA = 1e-8
RATE = 0.001
ORDERS = range(2, 257)
COUNTS = range(1000, 600_001, 1000)
THREE = (Noise("Gaussian", 5.0, RATE), Noise("Laplace", 2.0, RATE), Noise("RandomizedResponse", 0.6, RATE))
EXPECTED = 50.0
SAME = {"bound": "theorem9", "conversion": "cks"}
"""What the peers do; the default of this library, every bound, is measured beside it."""

_never_used = itertools.count(1)


def exact(noise: Noise, shift: str = "0") -> cm.Expression:
    """The mechanism with its parameter moved by a decimal."""
    name = {"Gaussian": "sigma", "Laplace": "scale", "RandomizedResponse": "p"}[noise.kind]
    mechanism: cm.Mechanism = getattr(cm, noise.kind)(**{name: Decimal(str(noise.parameter)) + Decimal(shift)})
    return mechanism @ cm.WithoutReplacement(rate=str(noise.rate))


def fresh(noise: Noise) -> cm.Expression:
    """The mechanism with its parameter moved by a multiple of 1e-11 never used before: no cache can know it."""
    return exact(noise, f"{next(_never_used)}e-11")


def agreement(name: str, peer: Floats, ours: Floats) -> str:
    """How far the numbers of two libraries are apart."""
    peer, ours = np.asarray(peer), np.asarray(ours)
    apart = np.max(np.abs(peer - ours) / np.abs(ours))
    if apart < 1e-6:
        return f"{name} agrees to {apart:.1e} relative"
    return f"{name} / cumulant: {np.min(peer / ours):.6g} to {np.max(peer / ours):.6g}"


# ---- 1. curves


def curves(quick: bool) -> Iterator[Comparison]:
    """Literal Theorem 9 at orders 2 to 256."""

    def ours(step: Callable[[Noise], cm.Expression]) -> list[Floats]:
        return [step(noise).rdp(ORDERS, bound="theorem9") for noise in THREE]

    def autodp() -> list[Floats]:
        return [peers.autodp_curve(noise, ORDERS) for noise in THREE]

    repetitions = 5 if quick else 21
    yield Comparison(
        "Theorem 9 at orders 2 to 256, rate 0.001: Gaussian, Laplace, randomized response",
        timed("cumulant", lambda _: ours(fresh), repetitions),
        (timed("autodp", lambda _: autodp(), 1 if quick else 3),),
        (agreement("autodp", np.concatenate(autodp()), np.concatenate(ours(exact))),),
        EXPECTED,
    )


# ---- 2. many round counts


def rounds(quick: bool) -> Iterator[Comparison]:
    """epsilon after 1,000, 2,000, … 600,000 rounds."""
    every = 100 if quick else 20
    some = COUNTS[every // 2 :: every]  # from the middle: small counts cost a peer most, and would weigh too much
    part = f"every {every}th count measured, the rest extrapolated"
    repetitions = 5 if quick else 21

    def ours(noise: Noise, _: int = 0) -> Floats:
        return fresh(noise).epsilon_over(COUNTS, delta=DELTA, **SAME)

    def default(noise: Noise, _: int = 0) -> Floats:
        return fresh(noise).epsilon_over(COUNTS, delta=DELTA, method="rdp")

    def literal(noise: Noise, counts: Sequence[int]) -> Floats:
        return exact(noise).epsilon_over(counts, delta=DELTA, bound="theorem9", conversion="cks")

    def autodp(noise: Noise) -> tuple[Timing, Floats]:
        start = time.perf_counter()
        mechanism = peers.autodp_mechanism(noise)
        built = time.perf_counter()
        values = np.array([peers.autodp_epsilon([mechanism], [k], DELTA) for k in some])
        seconds = built - start + (time.perf_counter() - built) * len(COUNTS) / len(some)
        return Timing("autodp", seconds, 1, seconds, part), values

    for noise in THREE:
        timing, values = autodp(noise)
        timings = [timing]
        lines = [agreement("autodp", values, literal(noise, some)) + ", Theorem 9 in both"]
        if noise.kind == "Gaussian":
            timings.append(
                timed("dp_accounting", lambda _: peers.google_epsilons(THREE[0], COUNTS, DELTA), 1 if quick else 5)
            )
            lines.append(
                agreement("dp_accounting (156 orders)", peers.google_epsilons(noise, COUNTS, DELTA), ours(noise))
            )
        else:
            lines.append("dp_accounting is left out: without replacement it knows only the Gaussian")
        lines.append(f"with the default, bound='best': {timed('', partial(default, noise), 3).seconds * 1e3:.0f} ms")
        yield Comparison(
            f"epsilon at delta 1e-8 for 600 counts up to 600,000: {noise.kind} at rate 0.001",
            timed("cumulant", partial(ours, noise), repetitions),
            tuple(timings),
            tuple(lines),
            EXPECTED,
        )


# ---- 3. many compositions

COMPOSITIONS = 10_000
DISTINCT = 50
ASK_EVERY = 100


def fifty(kinds: Sequence[str]) -> list[Noise]:
    """50 distinct sampled mechanisms of these kinds in turn, rates 0.005 to 0.01."""
    first = {"Gaussian": 1.5, "Laplace": 1.5, "RandomizedResponse": 0.6}
    step = {"Gaussian": 0.05, "Laplace": 0.05, "RandomizedResponse": 0.004}
    return [
        Noise(kind, round(first[kind] + i * step[kind], 6), round(0.005 + i * 0.0001, 6))
        for i, kind in zip(range(DISTINCT), itertools.cycle(kinds), strict=False)
    ]


def compositions(quick: bool) -> Iterator[Comparison]:
    """10,000 compositions in random order, one at a time, with a question every 100."""
    order = random.Random(1).choices(range(DISTINCT), k=COMPOSITIONS)
    asked = range(ASK_EVERY, COMPOSITIONS + 1, ASK_EVERY)
    counts = {n: np.bincount(order[:n], minlength=DISTINCT).tolist() for n in asked}

    def ours(steps: Sequence[cm.Expression], **row: str) -> Floats:
        accountant = cm.Accountant()
        answers = []
        for done, i in enumerate(order, start=1):
            accountant.compose(steps[i])
            if done % ASK_EVERY == 0:
                answers.append(accountant.epsilon(delta=DELTA, **row))
        return np.array(answers)

    def autodp(mechanisms: Sequence[Noise]) -> tuple[Timing, str]:
        some = asked[19 :: 80 if quick else 20]
        built = mechanisms[:: 10 if quick else 5]
        seconds = timed("", lambda _: [peers.autodp_mechanism(noise) for noise in built], 1).seconds
        all_built = [peers.autodp_mechanism(noise) for noise in mechanisms]
        start = time.perf_counter()
        values = np.array([peers.autodp_epsilon(all_built, counts[n], DELTA) for n in some])
        total = seconds * DISTINCT / len(built) + (time.perf_counter() - start) * len(asked) / len(some)
        steps = [exact(noise) for noise in mechanisms]
        literal = ours(steps, bound="theorem9", conversion="cks")[np.array(some) // ASK_EVERY - 1]
        note = f"{len(built)} of 50 mechanisms and {len(some)} of 100 questions measured, the rest extrapolated"
        return Timing("autodp", total, 1, total, note), agreement("autodp", values, literal) + ", Theorem 9 in both"

    def google(mechanisms: Sequence[Noise]) -> tuple[Timing, Timing, str]:
        some = mechanisms[:: 25 if quick else 5]
        accountant = peers.google_accountant()
        start = time.perf_counter()
        for noise in some:
            accountant.compose(peers.google_event(noise))
        each = (time.perf_counter() - start) / len(some)
        start = time.perf_counter()
        accountant.get_epsilon(DELTA)
        question = time.perf_counter() - start
        literal = each * COMPOSITIONS + question * len(asked)
        remembered = each * DISTINCT + question * len(asked)
        note = f"{len(some)} compositions and 1 question measured, the rest extrapolated"
        count = COMPOSITIONS // len(some)
        twin = peers.google_accountant()
        for noise in some:
            twin.compose(peers.google_event(noise), count)
        run = sum((exact(noise) * count for noise in some[1:]), start=exact(some[0]) * count)
        line = agreement("dp_accounting", np.array([twin.get_epsilon(DELTA)]), np.array([run.epsilon(delta=DELTA)]))
        return (
            Timing("dp_accounting", literal, 1, literal, note),
            Timing("dp_accounting, 50 curves kept by the caller", remembered, 1, remembered, note),
            line + f" on a run of {len(some)} of the mechanisms",
        )

    repetitions = 1 if quick else 5
    mixed = fifty(("Gaussian", "Laplace", "RandomizedResponse"))
    timing, line = autodp(mixed)
    yield Comparison(
        "10,000 compositions of 50 distinct mechanisms, epsilon asked every 100: the three kinds in turn",
        timed("cumulant", lambda _: ours([fresh(noise) for noise in mixed], **SAME), repetitions),
        (timing,),
        (
            line,
            "dp_accounting is left out: without replacement it knows only the Gaussian",
            f"with the default, bound='best': {timed('', lambda _: ours([fresh(n) for n in mixed]), 1).seconds:.1f} s",
        ),
        EXPECTED,
    )
    gaussians = fifty(("Gaussian",))
    literal, remembered, line = google(gaussians)
    yield Comparison(
        "10,000 compositions of 50 distinct mechanisms, epsilon asked every 100: Gaussian only",
        timed("cumulant", lambda _: ours([fresh(noise) for noise in gaussians], **SAME), repetitions),
        (literal, remembered),
        (line, "autodp is compared on the three kinds above"),
        EXPECTED,
    )
