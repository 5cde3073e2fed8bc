"""What certification adds to an answer: one evaluation in balls, after the search in floats has found the order."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from statistics import median
from unittest import mock

from measure import Fact

import cumulant as cm
from cumulant.conversion import certify
from cumulant.conversion.conversions import conversion

DELTA = Fraction(1, 10**8)
RATE = "0.001"
SUM, FAR = 2.0, 30.0
"""Wanted medians in milliseconds: finite sums at orders up to 300; integrals, and order 1e5."""

_never_used = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Line:
    """A run from parameters moved by a decimal never used before, its bound, the order to certify, and the limit in ms."""

    work: str
    run: Callable[[Decimal], cm.Expression]
    bound: str
    order: Fraction
    limit: float | None


def _sampled(
    make: Callable[..., cm.Mechanism], name: str, value: str, **more: str
) -> Callable[[Decimal], cm.Expression]:
    return lambda moved: make(**{name: Decimal(value) + moved}, **more) @ cm.WithoutReplacement(rate=RATE) * 600_000


_gaussian, _laplace = _sampled(cm.Gaussian, "sigma", "5"), _sampled(cm.Laplace, "scale", "2")
_response = _sampled(cm.RandomizedResponse, "p", "0.6")
_ball = _sampled(cm.Gaussian, "sigma", "5", geometry="ball")


def _fifty(moved: Decimal) -> cm.Expression:
    """Fifty sampled mechanisms of three kinds."""
    kinds = (
        (cm.Gaussian, "sigma", "1.5", "0.05"),
        (cm.Laplace, "scale", "1.5", "0.05"),
        (cm.RandomizedResponse, "p", "0.6", "0.004"),
    )
    steps: list[cm.Expression] = []
    for i, (make, name, first, step) in zip(range(50), itertools.cycle(kinds), strict=False):
        mechanism: cm.Mechanism = make(**{name: Decimal(first) + i * Decimal(step) + moved})
        steps.append(mechanism @ cm.WithoutReplacement(rate=Decimal("0.005") + i * Decimal("0.0001")) * (i + 1))
    return sum(steps[1:], start=steps[0])


def _twice(moved: Decimal) -> cm.Expression:
    """Two promises on one sample: at order 14 the projection is a chord, 5 % below the smallest of the bounds."""
    return (cm.PureDP(1 + moved) * 2) @ cm.WithoutReplacement(rate="0.1") * 100


def _nested(moved: Decimal) -> cm.Expression:
    """Two rounds of a sampled mechanism on a sample: a sum over sums."""
    inner = cm.Gaussian(sigma=5 + moved) @ cm.WithoutReplacement(rate="0.1") * 2
    return inner @ cm.WithoutReplacement(rate="0.01") * 600_000


LINES = (
    Line("theorem9, order 100", _gaussian, "theorem9", Fraction(100), SUM),
    Line("theorem9, order 300", _gaussian, "theorem9", Fraction(300), SUM),
    Line("theorem27, order 300", _gaussian, "theorem27", Fraction(300), SUM),
    Line("theorem27 of Laplace, order 300", _laplace, "theorem27", Fraction(300), SUM),
    Line("positive-part, order 300", _gaussian, "positive-part", Fraction(300), SUM),
    Line("pure-extras, order 300", _laplace, "pure-extras", Fraction(300), SUM),
    Line("one-bit, order 300", _response, "one-bit", Fraction(300), SUM),
    Line("caps, order 300.5", _laplace, "caps", Fraction(601, 2), SUM),
    Line("lemma3, order 300.5", _laplace, "lemma3", Fraction(601, 2), SUM),
    Line("profile of the Gaussian, order 35.6", _gaussian, "profile", Fraction(356, 10), FAR),
    Line("profile of Laplace, order 35.6", _laplace, "profile", Fraction(356, 10), FAR),
    Line("gaussian-ball, order 35.6", _ball, "gaussian-ball", Fraction(356, 10), FAR),
    Line("gaussian-diameter, order 35.6", _gaussian, "gaussian-diameter", Fraction(356, 10), FAR),
    Line("theorem9, order 1e5, by blocks", _gaussian, "theorem9", Fraction(10**5), FAR),
    Line("pure-extras, order 1e5, by blocks", _laplace, "pure-extras", Fraction(10**5), FAR),
    Line("theorem27, order 1e5, by blocks", _gaussian, "theorem27", Fraction(10**5), FAR),
    Line("theorem9, a sample of a sample, order 300", _nested, "theorem9", Fraction(300), None),
    Line("best, a projected chord, order 14", _twice, "best", Fraction(14), FAR),
    Line("theorem9, a sum of 50 mechanisms, order 20", _fifty, "theorem9", Fraction(20), None),
    Line("best, a sum of 50 mechanisms, order 20", _fifty, "best", Fraction(20), None),
)


def certificates(quick: bool) -> Iterator[Fact]:
    """The median milliseconds of one certificate, each on a curve that has never been evaluated in balls.

    Processor time, because a certificate does nothing but compute, and a busy machine would double the rest.
    """
    for line in LINES:
        seconds = [_once(line) for _ in range(5 if quick else 21)]
        spread = f"{1e3 * min(seconds):.3g} to {1e3 * max(seconds):.3g}"
        detail = f"milliseconds of processor time, median of {len(seconds)}, {spread}"
        yield Fact(f"Certificate: {line.work}", 1e3 * median(seconds), line.limit, detail)
    yield _calibration()


def _once(line: Line) -> float:
    curve = line.run(Decimal(f"{next(_never_used)}e-11")).curve(line.bound)
    curve.cgf([float(line.order) - 1])  # the search has been here: tables and plans are known
    start = time.process_time()
    certify.certified_epsilon(curve, line.order, DELTA, conversion("cks"))
    return time.process_time() - start


def _calibration() -> Fact:
    """The share of a calibration that is spent on the certificates of the values it tries."""
    spent: list[float] = []
    prove = certify.certified_epsilon

    def timed(*arguments: object) -> object:
        start = time.process_time()
        try:
            return prove(*arguments)  # type: ignore[arg-type]
        finally:
            spent.append(time.process_time() - start)

    start = time.process_time()
    with mock.patch.object(certify, "certified_epsilon", timed):
        run = "Gaussian(sigma=?) @ WithoutReplacement(rate=0.001) * 600000"
        found = cm.calibrate(run, epsilon=2, delta="1e-8", method="rdp")
    total = time.process_time() - start
    detail = f"milliseconds of {1e3 * total:.0f}; {len(spent)} certificates, sigma = {found.value}"
    return Fact(
        "Certificates of one calibration, 600,000 rounds of the sampled Gaussian", 1e3 * sum(spent), None, detail
    )


if __name__ == "__main__":
    for fact in certificates(quick=False):
        print(fact, end="\n\n", flush=True)
