"""Slack under composition and sampling: enumerated laws that leak or answer at random, against what the curve says."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.choices import Method
from cumulant.numerics.rounding import at_least_once

Laws = tuple[list[float], list[float]]


def worst(loss: float, leak: float) -> Laws:
    """The pair that every (loss, leak)-DP pair is a post-processing of: it tells all, or randomizes its response."""
    truth = (1 - leak) / (1 + math.exp(-loss))
    lie = 1 - leak - truth
    return [leak, truth, lie, 0.0], [0.0, lie, truth, leak]


def composed(rounds: Sequence[Laws]) -> tuple[np.ndarray, np.ndarray]:
    """Both laws of all answers together."""
    outputs = list(product(*(range(len(p)) for p, _ in rounds)))
    p = [math.prod(each[0][i] for each, i in zip(rounds, output, strict=True)) for output in outputs]
    q = [math.prod(each[1][i] for each, i in zip(rounds, output, strict=True)) for output in outputs]
    return np.array(p), np.array(q)


def needed(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The exact delta of a finite pair, the larger of both orders."""
    both = (np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))
    return float(max(both))


MIXED = [(1.0, 0.1), (2.0, 0.2), (0.5, 0.0), (0.0, 0.05)]


def test_different_promises() -> None:
    run = cm.ApproximateDP(1, "0.1") + cm.ApproximateDP(2, "0.2")
    assert run.epsilon(delta="0.28", method="rdp") == 3.0
    assert run.epsilon(delta="0.28") == 3.0
    assert run.epsilon(delta="0.2799", method="rdp") == math.inf
    assert run.delta(epsilon=3, method="rdp") == pytest.approx(0.28, rel=1e-15)


@pytest.mark.parametrize("times", [1, 2, 100, 10**6, 10**12])
def test_a_failure_without_loss(times: int) -> None:
    run = cm.ApproximateDP(0, Fraction(1, times + 1)) * times
    exact = -math.expm1(times * math.log1p(-1 / (times + 1)))
    for found in (run.delta(0, method="rdp"), run.delta([0], method="rdp")[0], run.delta(5, method="rdp")):
        assert exact * (1 - 1e-10) <= found <= exact * (1 + 1e-10)
    assert run.epsilon(exact * (1 - 1e-9), method="rdp") == math.inf
    assert run.epsilon(exact * (1 + 1e-9), method="rdp") == 0.0
    assert run.guarantee(delta=exact * (1 + 1e-9), method="rdp").verify().holds


@pytest.mark.parametrize("method", ["rdp", "best"])
@pytest.mark.parametrize("counts", [(1, 1, 0, 0), (2, 1, 0, 1), (0, 3, 1, 0), (1, 1, 1, 1), (0, 0, 2, 2)])
def test_compositions_are_never_underestimated(counts: tuple[int, ...], method: Method) -> None:
    rounds = [worst(*each) for each, times in zip(MIXED, counts, strict=True) for _ in range(times)]
    p, q = composed(rounds)
    terms = [cm.ApproximateDP(loss, leak) * k for (loss, leak), k in zip(MIXED, counts, strict=True) if k]
    run = sum(terms[1:], start=terms[0])
    total = sum(loss * times for (loss, _), times in zip(MIXED, counts, strict=True))
    for epsilon in np.linspace(0, total, 13).tolist():
        found, exact = run.delta(epsilon, method=method), needed(p, q, epsilon)
        assert found >= exact * (1 - 1e-12)
        assert run.delta([epsilon], method=method)[0] == pytest.approx(found, rel=1e-9)
        if exact < 1 and found < 1:
            assert run.epsilon(found * (1 + 1e-9), method=method) <= epsilon * (1 + 1e-6) + 1e-9
    assert run.delta(total * (1 + 1e-9), method=method) == pytest.approx(needed(p, q, total), rel=1e-6)


@pytest.mark.parametrize("rate", ["0.1", "0.9"])
@pytest.mark.parametrize("bound", ["best", "caps", "lemma3", "pure-response"])
def test_poisson_samples_of_promises(rate: str, bound: str) -> None:
    """Each round draws its own sample; both directions, enumerated."""
    g, loss, leak = float(rate), 1.5, 0.1
    with_it, without = worst(loss, leak)
    mixed = [(1 - g) * b + g * a for a, b in zip(with_it, without, strict=True)]
    run = cm.ApproximateDP(loss, leak) @ cm.Poisson(rate=rate) * 3
    assert run.curve(bound).slack() == 1 - (1 - Fraction(rate) / 10) ** 3
    p, q = composed([(mixed, without)] * 3)
    for epsilon in (0.0, 0.05, 0.3, 1.0, 3.0, 4.4):
        assert run.delta(epsilon, method="rdp", bound=bound) >= needed(p, q, epsilon) * (1 - 1e-12)


@pytest.mark.parametrize("rate", ["0.1", "0.9"])
@pytest.mark.parametrize("bound", ["best", "caps", "lemma3"])
@pytest.mark.parametrize("other", ["same", "reversed", "neither"])
def test_samples_without_replacement_of_promises(rate: str, bound: str, other: str) -> None:
    """(1-g) R + g P against (1-g) R + g Q, where R too is a promise away from both."""
    g, loss, leak = float(rate), 1.5, 0.1
    p, q = worst(loss, leak)
    r = {"same": q, "reversed": p, "neither": [(a + b) / 2 for a, b in zip(p, q, strict=True)]}[other]
    pair = tuple([(1 - g) * c + g * a for a, c in zip(law, r, strict=True)] for law in (p, q))
    run = cm.ApproximateDP(loss, leak) @ cm.WithoutReplacement(rate=rate) * 3
    assert run.curve(bound).slack() == 1 - (1 - Fraction(rate) / 10) ** 3
    both = composed([(pair[0], pair[1])] * 3)
    for epsilon in (0.0, 0.05, 0.3, 1.0, 3.0, 4.4):
        assert run.delta(epsilon, method="rdp", bound=bound) >= needed(*both, epsilon) * (1 - 1e-12)


@pytest.mark.parametrize("method", ["strong", "optimal"])
def test_baselines_of_promises(method: Method) -> None:
    """Where (epsilon, delta) is all that is known, it is also what these theorems start from."""
    failing = 1 - 0.9**4
    run = cm.ApproximateDP(0, "0.1") * 4
    assert run.epsilon(failing * (1 + 1e-9), method=method) == pytest.approx(0.0, abs=1e-9)
    assert run.epsilon(failing * (1 - 1e-9), method=method) == math.inf
    two = cm.ApproximateDP(1, "0.1") + cm.ApproximateDP(2, "0.2")
    assert two.epsilon(0.28 * (1 + 1e-9), method=method) == pytest.approx(3.0, rel=1e-9)
    assert two.epsilon(0.28 * (1 - 1e-9), method=method) == math.inf
    assert two.epsilon(0.3 * (1 + 1e-9), method="naive") == pytest.approx(3.0, rel=1e-9)
    assert two.epsilon(0.3 * (1 - 1e-9), method="naive") == math.inf


def test_the_probability_of_at_least_one_failure() -> None:
    assert at_least_once([]) == 0
    assert at_least_once([(Fraction(1, 3), 2), (Fraction(0), 10**12)]) == Fraction(5, 9)
    for p, times in [(Fraction(1, 10**6), 10**5), (Fraction(1, 7), 3000), (Fraction(1, 10**400), 10**12)]:
        from flint import arb, ctx, fmpq

        with ctx.workprec(3000):
            kept = (1 - arb(fmpq(p.numerator, p.denominator))).log() * times
            exact = -kept.expm1()
            found = at_least_once([(p, times)])
            ball = arb(fmpq(found.numerator, found.denominator))
            assert ball >= exact
            assert ball / exact - 1 < arb(2) ** -60
