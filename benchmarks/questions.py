"""Many questions about one run, and how the cost of one grows: DP-SGD with Poisson samples against dp_accounting.

Processor time. Each of our repetitions asks about noise that was never asked about before, so nothing is remembered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from statistics import median
from typing import Any

from measure import Comparison, Timing

import cumulant as cm

SIGMA, SAMPLE, POPULATION, STEPS, DELTA = 1.0, 256, 60_000, 23_400, 1e-5
INTERVAL = 2.4e-4
"""The grid of dp_accounting whose error is 1.7e-4 at one epsilon; ours is 1e-10 there, and proved."""

DELTAS = [10 ** (-3 - 9 * i / 28) for i in range(29)]
EPOCHS = [780 * (i + 1) for i in range(30)]

_asked = 0


def asked() -> int:
    """A number that was not there before."""
    global _asked
    _asked += 1
    return _asked


def fresh(sigma: float = SIGMA, steps: int = STEPS) -> cm.Expression:
    """The run, with noise that nobody asked about before."""
    noise = Fraction(str(sigma)) + Fraction(asked(), 10**9)
    return cm.Gaussian(sigma=noise) @ cm.Poisson(rate=f"{SAMPLE}/{POPULATION}") * steps


def clocked(library: str, work: Callable[[], Any], repetitions: int, note: str = "") -> Timing:
    """Processor seconds of some repetitions."""
    seconds = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return Timing(library, median(seconds), repetitions, seconds[0], note)


def loss(sigma: float = SIGMA) -> Any:
    """One round as dp_accounting takes it."""
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=SAMPLE / POPULATION, value_discretization_interval=INTERVAL, use_connect_dots=True
    )


def epochs() -> list[float]:
    """The peer's fastest way: one epoch, composed with itself one after the other."""
    one = loss().self_compose(EPOCHS[0])
    whole, found = one, []
    for _ in EPOCHS:
        found.append(whole.get_epsilon_for_delta(DELTA))
        whole = whole.compose(one)
    return found


def noise_for(epsilon: float) -> float:
    """The peer's bisection of the noise multiplier, to 1e-5."""
    low, high = 0.5, 4.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        value = loss(middle).self_compose(STEPS).get_epsilon_for_delta(DELTA)
        low, high = (low, middle) if value <= epsilon else (middle, high)
    return high


def many_questions(quick: bool) -> Iterator[Comparison]:
    """What is asked again and again about one training run."""
    repetitions = 2 if quick else 5
    fresh().epsilon(DELTA)
    loss().self_compose(STEPS)  # both have imported what they need
    cases: Sequence[tuple[str, Callable[[], Any], Callable[[], Any], float]] = (
        (
            "one proved epsilon",
            lambda: fresh().epsilon(DELTA),
            lambda: loss().self_compose(STEPS).get_epsilon_for_delta(DELTA),
            5,
        ),
        (
            "an array of one",
            lambda: fresh().epsilon([DELTA]),
            lambda: loss().self_compose(STEPS).get_epsilon_for_delta(DELTA),
            10,
        ),
        (
            "29 deltas",
            lambda: fresh().epsilon(DELTAS),
            lambda: (lambda whole: [whole.get_epsilon_for_delta(each) for each in DELTAS])(loss().self_compose(STEPS)),
            20,
        ),
        ("30 epochs", lambda: fresh(steps=1).epsilon_over(EPOCHS, delta=DELTA), epochs, 8),
        (
            "calibrate to 1e-5",
            lambda: cm.calibrate(
                f"Gaussian(sigma=?) @ Poisson(rate={SAMPLE}/{POPULATION}) * {STEPS + asked()}", epsilon=3, delta=DELTA
            ),
            lambda: noise_for(3.0),
            8,
        ),
    )
    for name, ours, theirs, wanted in cases:
        peer = clocked("dp_accounting", theirs, 1 if name.startswith(("30", "calibrate")) else repetitions)
        yield Comparison(f"DP-SGD, Poisson: {name}", clocked("cumulant", ours, repetitions), (peer,), (), wanted)
    yield from many_kinds(quick)


def many_kinds(quick: bool) -> Iterator[Comparison]:
    """Fifty different Gaussians, once, and an accountant of them that is asked after every composition."""
    noises = [1 + i / 50 for i in range(50)]

    def composed(counts: Sequence[int]) -> float:
        whole = None
        for noise, count in zip(noises, counts, strict=True):
            one = loss(noise).self_compose(count)
            whole = one if whole is None else whole.compose(one)
        return float(whole.get_epsilon_for_delta(DELTA))  # type: ignore[union-attr]

    def kinds(steps: int = 1000) -> cm.Expression:
        found = [fresh(noise, steps) for noise in noises]
        return sum(found[1:], start=found[0])

    peer = clocked("dp_accounting", lambda: composed([1000] * 50), 1)
    yield Comparison(
        "50 different Gaussians, one epsilon", clocked("cumulant", lambda: kinds().epsilon(DELTA), 1), (peer,), (), 3
    )
    yield Comparison(
        "50 different Gaussians, an array of one",
        clocked("cumulant", lambda: kinds().epsilon([DELTA]), 1),
        (peer,),
        (),
        3,
    )
    yield from accountants(quick, noises, composed)


def accountants(
    quick: bool, noises: Sequence[float], composed: Callable[[Sequence[int]], float]
) -> Iterator[Comparison]:
    """One hundred questions to an accountant of fifty kinds, one after each composition: all of ours are asked."""
    count, measured = 100, 2 if quick else 5

    def ours(ask: Callable[[cm.Accountant], Any]) -> None:
        accountant, steps = cm.Accountant(), [fresh(noise, 1) for noise in noises]
        for each in steps:
            accountant.compose(each, times=1000)
        for question in range(count):
            accountant.compose(steps[question % 50], times=10)
            ask(accountant)

    def counts(question: int) -> list[int]:
        return [1000 + 10 * (question >= kind) for kind in range(50)]

    part = clocked("dp_accounting", lambda: [composed(counts(each)) for each in range(measured)], 1)
    asked = f"{measured} of {count} questions measured, all kinds composed for each"
    peer = Timing("dp_accounting, loss distributions", part.seconds * count / measured, 1, part.seconds, asked)
    cases: list[tuple[str, Callable[[cm.Accountant], Any], float | None]] = [
        ("an array of one", lambda accountant: accountant.epsilon([DELTA]), 25),
        ('method="rdp", proved', lambda accountant: accountant.epsilon(DELTA, method="rdp"), 25),
    ]
    if not quick:
        cases.append(("proved", lambda accountant: accountant.epsilon(DELTA), None))
    for name, ask, wanted in cases:
        timing = clocked("cumulant", lambda: ours(ask), 1, f"all {count} questions")  # noqa: B023
        yield Comparison(f"100 questions to an accountant of 50 Gaussians, {name}", timing, (peer,), (), wanted)
        if "rdp" in name:
            yield Comparison(
                "the same, beside divergences at fixed orders, unproved", timing, divergences(count, noises)
            )


def divergences(count: int, noises: Sequence[float]) -> tuple[Timing, Timing]:
    """The peer's accountant of Rényi divergences: made anew for a question, and kept, with one more kind composed into it."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    def event(noise: float, times: int) -> Any:
        one = dp_event.PoissonSampledDpEvent(SAMPLE / POPULATION, dp_event.GaussianDpEvent(noise))
        return dp_event.SelfComposedDpEvent(one, times)

    kept = RdpAccountant()

    def made() -> None:
        for noise in noises:
            kept.compose(event(noise, 1000))
        kept.get_epsilon(DELTA)

    def more() -> None:
        for question in range(count):
            kept.compose(event(noises[question % 50], 10))
            kept.get_epsilon(DELTA)

    first = clocked("dp_accounting, divergences", made, 1)
    anew = Timing(first.library, count * first.seconds, 1, first.seconds, f"1 of {count} measured, all kinds composed")
    rest = clocked(f"{first.library}, kept", more, 1, f"all {count} questions, one sum that the caller keeps")
    return anew, Timing(rest.library, first.seconds + rest.seconds, 1, first.seconds, rest.note)


def growth(quick: bool) -> Iterator[str]:
    """How one question grows: with deltas, counts, rounds, accuracy and kinds; each line against one scalar question."""
    repetitions = 3 if quick else 7

    def cost(work: Callable[[], Any]) -> float:
        return clocked("", work, repetitions).seconds

    fresh().epsilon(DELTA)
    one, array = cost(lambda: fresh().epsilon(DELTA)), cost(lambda: fresh().epsilon([DELTA]))
    yield f"one epsilon {1000 * one:.0f} ms, an array of one {1000 * array:.0f} ms"
    wanted = {16: 2, 64: 4}
    for many in (16, 64):
        deltas = [10 ** (-3 - 9 * i / (many - 1)) for i in range(many)]
        yield f"{many} deltas: {cost(lambda: fresh().epsilon(deltas)) / array:.1f} times one (<= {wanted[many]})"  # noqa: B023
    yield f"30 counts: {cost(lambda: fresh(steps=1).epsilon_over(EPOCHS, delta=DELTA)) / one:.1f} times one (<= 5)"
    small, large = (cost(lambda: fresh(steps=k).epsilon(DELTA)) for k in (10**4, 10**7))  # noqa: B023
    yield f"rounds from 1e4 to 1e7: {large / small:.1f} times (<= 1.5)"
    coarse, fine = (cost(lambda: fresh().epsilon(DELTA, accuracy=a)) for a in ("1e-3", "1e-5"))  # noqa: B023
    yield f"accuracy from 1e-3 to 1e-5: {fine / coarse:.1f} times (<= 5)"

    def kinds() -> cm.Expression:
        return sum((fresh(1 + i / 10, 1000) for i in range(1, 10)), start=fresh(1, 1000))

    # the least of several, after one that imports and remembers what all of them share: other work only adds to it
    alone, listed = (
        min(clocked("", work, 1).seconds for _ in range(repetitions + 1))
        for work in (lambda: kinds().epsilon(DELTA), lambda: kinds().epsilon([DELTA]))
    )
    yield f"ten kinds: {100 * alone:.1f} ms each, in an array {100 * listed:.1f} ms each (<= 10)"
    both = cost(lambda: fresh().guarantee(delta=DELTA))
    yield f"guarantee: {1000 * (both - one):.0f} ms more than epsilon (<= 300)"


if __name__ == "__main__":
    for comparison in many_questions(quick=True):
        print(comparison, flush=True)
    for sentence in growth(quick=True):
        print(sentence, flush=True)
