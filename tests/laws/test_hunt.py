"""The hunt over questions: its truths against integrals of the definition, and faults that are planted for it to find."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import cumulant as cm
from benchmarks import hunt_questions as hunt
from benchmarks.settings import DRAWS
from benchmarks.truths import truth
from cumulant.mechanisms.mechanism import MECHANISMS
from tests.laws.strategies import RATED, WHOLE_RUNS

# ---- the truths

Density = Any


def normal(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def laplace(x: float) -> float:
    return math.exp(-abs(x)) / 2


def quadrature(density: Density, shift: float, rate: float, epsilon: float) -> float:
    """E_Q (p/q - e^eps)_+ from the definition, the larger of both directions."""

    def mixed(x: float) -> float:
        return (1 - rate) * float(density(x)) + rate * float(density(x - shift))

    ends = np.linspace(-30, 30, 61)
    return max(
        sum(
            integrate.quad(
                lambda x, f=f, g=g: max(f(x) - math.exp(epsilon) * g(x), 0.0), a, b, epsabs=1e-14, limit=200
            )[0]
            for a, b in pairwise(ends)
        )
        for f, g in ((mixed, density), (density, mixed))
    )


@pytest.mark.parametrize(("rate", "epsilon"), [("1", "0.7"), ("0.3", "0.2"), ("0.3", "0.9")])
@pytest.mark.parametrize("scheme", RATED)
def test_one_round_is_an_integral(scheme: str, rate: str, epsilon: str) -> None:
    for base, density in ((cm.Gaussian(sigma="0.5"), normal), (cm.Laplace(scale="0.5"), laplace)):
        known = truth(base @ RATED[scheme](rate=rate))
        assert known is not None
        low, high = known(Fraction(epsilon))
        assert low <= high <= low * (1 + 1e-12)
        assert low == pytest.approx(quadrature(density, 2.0, float(rate), float(epsilon)), rel=1e-7)


def test_repeated_responses_are_binomial() -> None:
    p, rate, times, epsilon = Fraction(7, 10), Fraction(1, 4), 9, Fraction(1, 2)
    known = truth(cm.RandomizedResponse(p=p) @ cm.Poisson(rate=rate) * times)
    assert known is not None
    mixed = rate * p + (1 - rate) * (1 - p)  # the answer that p makes likely, with the record
    alpha = Fraction(math.exp(epsilon))
    exact = Fraction(0)
    for i in range(times + 1):
        one = mixed**i * (1 - mixed) ** (times - i)
        other = (1 - p) ** i * p ** (times - i)
        exact += math.comb(times, i) * max(one - alpha * other, Fraction(0))
    low, high = known(epsilon)
    assert low <= high
    assert low == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("times", [2, 5])
def test_convolved_rounds_hold_the_truth_between_them(times: int) -> None:
    """Nearly unsampled Gaussians against unsampled ones, of which k are one."""
    nearly = truth(cm.Gaussian(sigma=2) @ cm.WithoutReplacement(rate="0.9999999999") * times)
    known = truth(cm.Gaussian(sigma=2) * times)
    assert nearly is not None
    assert known is not None
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        low, high = nearly(epsilon)
        assert low <= known(epsilon)[1]
        assert known(epsilon)[0] * (1 - 1e-8) <= high
        assert low >= 0.5 * high


def test_nothing_is_known_to_be_lost_at_the_largest_loss() -> None:
    """The sum of the largest losses of Laplace noise has positive mass, and where it lies is rounded."""
    run = cm.Laplace(scale="25.83") * 4
    known = truth(run)
    assert known is not None
    assert known(Fraction(run.epsilon(0)))[0] == 0
    assert known(Fraction("0.15"))[0] > 0


def test_promises_are_as_bad_as_their_worst_mechanism() -> None:
    known = truth(cm.ApproximateDP(1, "0.01") * 10)
    assert known is not None
    assert known(Fraction(100))[0] == pytest.approx(1 - 0.99**10, rel=1e-12)
    assert truth(cm.from_rdp_points([2], [1])) is None
    assert truth(cm.Gaussian(sigma=1) + cm.Laplace(scale=1)) is None


# ---- planted faults


def faults(run: cm.Expression) -> str:
    asked = hunt.Asked()
    hunt.check(run, ["1e-6", "0.01"], ["0.1", "0.5"], "best", asked)
    return "\n".join(asked.faults)


RUN = cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.1") * 3


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert faults(RUN) == ""


def test_a_claim_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right, guaranteed = cm.Expression.delta, cm.Expression.guarantee
    monkeypatch.setattr(cm.Expression, "delta", lambda *a, **b: right(*a, **b) * 0.5)
    assert "where delta is" in faults(RUN)
    monkeypatch.setattr(cm.Expression, "delta", right)

    def smaller(*arguments: Any, **others: Any) -> cm.Guarantee:
        found = guaranteed(*arguments, **others)
        object.__setattr__(found, "epsilon", found.epsilon * 0.7)
        return found

    monkeypatch.setattr(cm.Expression, "guarantee", smaller)
    assert "where delta is" in faults(RUN)
    assert "the interval is" in faults(RUN)


def test_a_lower_end_that_is_too_large_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    guaranteed = cm.Expression.guarantee

    def larger(*arguments: Any, **others: Any) -> cm.Guarantee:
        found = guaranteed(*arguments, **others)
        object.__setattr__(found, "lower", found.epsilon * 1.2)
        return found

    monkeypatch.setattr(cm.Expression, "guarantee", larger)
    assert "lower is" in faults(RUN)


def test_what_grows_and_what_breaks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cm.Expression, "delta", lambda run, epsilon, **_: float(Fraction(epsilon)) / 2)
    assert "delta grows with epsilon" in faults(RUN)
    monkeypatch.setattr(cm.Expression, "delta", lambda *_, **__: math.nan)
    assert "is nan" in faults(RUN)

    def broken(*_: Any, **__: Any) -> float:
        raise ZeroDivisionError

    monkeypatch.setattr(cm.Expression, "delta", broken)
    assert "ZeroDivisionError" in faults(RUN)


# ---- all of it


def test_every_mechanism_and_every_kind_of_sample_is_hunted() -> None:
    differ = set(DRAWS) ^ (set(MECHANISMS) - WHOLE_RUNS)
    assert not differ, (
        f"{differ} is registered or in DRAWS, not both; add it to DRAWS of benchmarks/settings.py, see CONTRIBUTING"
    )
    found = hunt.hunt(questions=1, seed=1, only="PureDP")
    assert set(found) == {("PureDP", family) for family in hunt.FAMILIES}
    assert all(asked.questions > 3 for asked in found.values())
    assert all(asked.faults == [] for asked in found.values())
    assert len(hunt.report(found).splitlines()) == 1 + len(found)
