"""Mechanisms given by masses: as many points as a histogram has, against sums written down from the definitions."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.answer import Floats
from cumulant.sampling.scheme import Scheme
from tests import effort

COUNT = 5_000
"""Work that grows with the square of this takes many minutes."""


@pytest.fixture(scope="module")
def laws() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(31)
    p, q = rng.random(COUNT), rng.random(COUNT)
    return p / p.sum(), q / q.sum()


@pytest.fixture(scope="module")
def histogram(laws: tuple[Floats, Floats]) -> cm.Mechanism:
    return cm.from_masses(laws[0].tolist(), laws[1].tolist())


def hockey_stick(p: Floats, q: Floats, epsilon: float) -> float:
    alpha = math.exp(epsilon)
    return max(float(np.maximum(a - alpha * b, 0).sum()) for a, b in ((p, q), (q, p)))


def test_thousands_of_points_have_an_exact_guarantee(histogram: cm.Mechanism, laws: tuple[Floats, Floats]) -> None:
    found = histogram.guarantee(delta=1e-3)
    assert hockey_stick(*laws, found.epsilon) <= 1e-3 * (1 + 1e-9)
    assert hockey_stick(*laws, found.epsilon * (1 - 1e-6)) > 1e-3
    assert histogram.delta(1) == pytest.approx(hockey_stick(*laws, 1), rel=1e-9)


def test_thousands_of_points_have_a_curve(histogram: cm.Mechanism, laws: tuple[Floats, Floats]) -> None:
    p, q = laws
    for order in (1.5, 2.0, 30.0):
        largest = max(math.log(np.sum(a**order * b ** (1 - order))) / (order - 1) for a, b in ((p, q), (q, p)))
        assert histogram.rdp(order) == pytest.approx(largest, rel=1e-9)
    assert histogram.pure() == pytest.approx(np.abs(np.log(p / q)).max(), rel=1e-9)


@pytest.mark.parametrize("scheme", [cm.WithoutReplacement(rate=0.01), cm.Poisson(rate=0.01)])
def test_thousands_of_points_are_sampled(histogram: cm.Mechanism, laws: tuple[Floats, Floats], scheme: Scheme) -> None:
    p, q = laws
    sampled = histogram @ scheme
    pairs = [(0.99 * b + 0.01 * a, b) for a, b in ((p, q), (q, p))]
    least = max(math.log(np.sum(a**2 / b)) for a, b in pairs)
    assert least * (1 - 1e-9) <= sampled.rdp(2) <= 2.5 * least
    run = sampled * 3
    epsilon = run.epsilon(delta=1e-3)
    assert 0 < epsilon <= 3 * sampled.pure()
    assert run.delta(epsilon) <= 1e-3 * (1 + 1e-2)


def test_masses_without_a_common_denominator_of_reasonable_length_are_refused() -> None:
    rest = [Fraction(2**3990, 2**4000 + 2 * i + 1) for i in range(300)]
    with pytest.raises(cm.CumulantError, match="no common denominator"):
        cm.from_masses([*rest, 1 - Fraction(1, 2)], [*rest, 1 - Fraction(1, 2)])


def test_equal_laws_lose_nothing_at_any_order() -> None:
    """At order infinity the enclosure is a little wider than its value 0, which a ball then settles."""
    same = cm.from_masses([0.5, 0.5], [0.5, 0.5])
    assert same.rdp([1, 2, math.inf]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "run",
    [
        cm.from_masses(["0.8", "0.2"], ["0.5", "0.5"]),
        cm.from_masses(["0.3", "0.7"], ["0.6", "0.4"]),
        cm.RandomizedResponse(p="0.65"),
    ],
    ids=str,
)
def test_the_distance_itself_needs_no_epsilon(run: cm.Mechanism) -> None:
    """The total variation distance is 0.3, so that at delta 0.3 epsilon is 0; it was 1.3e-317."""
    assert run.epsilon("0.3") == 0
    assert list(run.epsilon(["0.3", "0.31"])) == [0, 0]
    assert (run @ cm.Poisson(rate="1/2")).epsilon("0.15") == 0
    assert 0 < run.epsilon("0.2999") < 0.01
    assert run.guarantee(delta="0.2999").lower > 0  # type: ignore[operator]
    assert run.check(epsilon=0, delta="0.3").verdict == "holds"
    assert run.check(epsilon=0, delta="0.2999").verdict == "false"


def test_what_masses_assume_is_said() -> None:
    """The two orders of the laws have other lower ends: which law belongs to the larger data set matters."""
    run = cm.from_masses(["0.7", "0.25", "0.05"], ["0.2", "0.3", "0.5"]) @ cm.Poisson(rate="0.3") * 2
    assert "dominate every pair of neighbours; lower ends hold if neighbours attain them in both orders" in (
        " ".join(run.guarantee(delta="1e-3").explain().split())
    )


def test_the_first_list_is_the_law_with_the_record_in_lower_ends() -> None:
    """The profile of 20 steps at rate 1/10, by its sum over the binomial counts, once for each role of the two laws."""
    laws, rate, steps, delta = ([0.9, 0.1], [0.5, 0.5]), 0.1, 20, 1e-5

    def epsilon(member: list[float], other: list[float]) -> float:
        mixed = [(1 - rate) * y + rate * x for x, y in zip(member, other, strict=True)]

        def profile(at: float, p: list[float], q: list[float]) -> float:
            ratio = math.exp(at)
            terms = (
                p[0] ** k * p[1] ** (steps - k) - ratio * q[0] ** k * q[1] ** (steps - k) for k in range(steps + 1)
            )
            return sum(math.comb(steps, k) * max(0.0, term) for k, term in enumerate(terms))

        low, high = 0.0, 60.0
        for _ in range(60):
            middle = (low + high) / 2
            enough = max(profile(middle, mixed, other), profile(middle, other, mixed)) <= delta
            low, high = (low, middle) if enough else (middle, high)
        return high

    expected = [epsilon(*laws), epsilon(*laws[::-1])]
    assert expected == pytest.approx([1.311436, 2.885878], abs=1e-6)
    for (p, q), truth in zip((laws, laws[::-1]), expected, strict=True):
        found = (cm.from_masses(p, q) @ cm.Poisson(rate=rate) * steps).guarantee(delta=delta)
        assert found.lower == pytest.approx(truth, rel=1e-9)
        assert found.epsilon >= max(expected)  # the upper end holds in both orders


@pytest.mark.parametrize("rounds", [1, 2])
def test_lower_ends_of_one_round_take_the_first_list_with_the_record(rounds: int) -> None:
    """All tests of a few outputs from the definition: one round needs no more than the order that is written."""
    rng = random.Random(7)
    for _ in range(effort.drawn(6)):
        drawn = [[rng.randint(0, 9) + 1 for _ in range(3)] for _ in range(2)]
        member, other = ([Fraction(each, sum(law)) for each in law] for law in drawn)
        rate, at = Fraction(rng.randint(1, 9), 10), rng.choice((0.1, 0.5))
        mixed = [(1 - rate) * y + rate * x for x, y in zip(member, other, strict=True)]
        several = [[math.prod(each) for each in itertools.product(law, repeat=rounds)] for law in (mixed, other)]
        truth = max(
            sum(max(0.0, float(x) - math.exp(at) * float(y)) for x, y in zip(p, q, strict=True))
            for p, q in (several, several[::-1])
        )
        run = cm.from_masses(member, other) @ cm.Poisson(rate=rate) * rounds
        found = run.guarantee(epsilon=at)
        assert (found.lower or 0.0) <= truth * (1 + 1e-9) <= found.delta * (1 + 2e-9)
        assert run.check(epsilon=at, delta=min(truth * (1 + 1e-6) + 1e-12, 0.99)).verdict != "false"


def test_laws_without_a_common_output_are_told_apart_in_a_sum() -> None:
    """The lower end had no finite loss, and ended in a foreign ValueError."""
    disjoint, response = cm.from_masses(p=[0, 1], q=[1, 0]), cm.from_masses(p=["1/4", "3/4"], q=["3/4", "1/4"])
    for run in (disjoint + response, disjoint * 2 + response * 3):
        found = run.guarantee(epsilon="0.3")
        assert found.delta == 1
        assert found.lower is None or 0.999 < found.lower <= 1
        assert run.check(epsilon=1, delta="0.1").verdict == "false"


def test_losses_that_differ_by_less_than_a_float_have_no_lattice() -> None:
    """Two losses of these corners differ by 1e-17: a ratio was 1 as a float, and its logarithm divided by zero."""
    last, third = "3602879701896397/4503599627370496", "1445210365569923/2251799813685248"
    alphas = ["0", "6170933542515415/288230376151711744", "6782745116371849/36028797018963968", third, last, "1"]
    betas = [last, third, "847843139546481/4503599627370496", "771366692814427/36028797018963968", "0", "0"]
    found = (cm.TradeOff(alphas=alphas, betas=betas) @ cm.Poisson(rate="0.01")).guarantee(epsilon="0.3")
    assert found.verify()
    assert (found.lower or 0) <= found.delta < 0.01
