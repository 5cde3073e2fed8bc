"""Gaussian pairs around discrete Gaussian and Skellam noise, against sums over the integers."""

import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy.special import ive

import cumulant as cm
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.near_gaussian import near_gaussian_pair


def log_sum(sigma: float, shift: int, epsilon: float) -> float:
    """Return log of SUM (p - e^eps q)_+ over the integers; the terms are positive, so that nothing cancels."""
    x = np.arange(-3, math.ceil(60 * sigma + epsilon * sigma**2 / shift) + shift)
    log_p, log_q = (-((x - c) ** 2) / (2 * sigma**2) for c in (shift, 0))
    above = log_p - log_q > epsilon
    if not above.any():
        return -math.inf
    terms = log_p[above] + np.log(-np.expm1(epsilon - (log_p - log_q)[above]))
    theta = np.exp(-(np.arange(-60 * sigma, 60 * sigma + 1) ** 2) / (2 * sigma**2)).sum()
    return float(np.logaddexp.reduce(terms) - np.log(theta))


def test_two_gaussians_enclose_the_sums() -> None:
    """Theorem D on one integer against the sums, from delta near 1 down to 1e-200."""
    narrowest = math.inf
    for sigma, shift in ((3, 1), (3, 4), (4, 7), (6, 1), (11, 2), (25, 3), (25, 200)):
        pair = near_gaussian_pair(shift**2, Fraction(sigma**2), 1)
        assert pair is not None
        assert not pair.attained
        assert pair.lower_pair is not pair
        mu = shift / sigma
        for step in range(-12, 220):
            epsilon = max(0.0, mu * mu / 2 + mu * step / 8)
            true = log_sum(sigma, shift, epsilon)
            above, below = pair.log_profile(epsilon), pair.lower_pair.log_profile(epsilon)
            assert below - 1e-9 <= true <= above + 1e-9, (sigma, shift, epsilon)
            narrowest = min(narrowest, above - true, true - below)
    assert narrowest < 1e-3  # the two are not far apart


def quantile_steps(masses: list[Any]) -> list[float]:
    """Return the differences of the normal quantiles of the tails P(X > t) of symmetric noise, for t >= 0.

    A shift by one is dominated by a Gaussian pair if its shift is at least each of them.
    """
    tails, total = [], arb(0)
    for mass in reversed(masses[1:]):
        total += mass
        tails.append(total)
    quantiles = [normal_quantile(tail) for tail in reversed(tails)]
    return [float(2 * quantiles[0]), *(float(b - a) for a, b in itertools.pairwise(quantiles))]


def normal_quantile(tail: Any) -> Any:
    """Return x with P(N > x) = tail by Newton's method on its logarithm; the error is below 1e-40."""
    goal = tail.log()
    x = arb(max(0.0, math.sqrt(-2 * float(goal)) - 0.5))
    for _ in range(60):
        here = (x / arb(2).sqrt()).erfc() / 2
        step = (here.log() - goal) * here * (2 * arb.pi()).sqrt() * (x * x / 2).exp()
        x = arb((x + step).mid())
        if abs(float(step)) < 1e-45:
            break
    return x


@pytest.mark.parametrize("variance", [1, 2, 9, 64])
def test_steps_of_discrete_gaussian_quantiles(variance: int) -> None:
    """Theorem S: a shift by one is a Gaussian shift of variance v - 1/8; v - 1/12 would nearly do."""
    with BALLS.at(400):
        far = 14 * math.isqrt(variance) + 30
        masses = [(-arb(n * n) / (2 * variance)).exp() for n in range(2 * far)]
        theta = masses[0] + 2 * sum(masses[1:], arb(0))
        steps = quantile_steps([mass / theta for mass in masses])[:far]
    assert max(steps) <= 1 / math.sqrt(variance - 1 / 8)
    assert max(steps) > 1 / math.sqrt(variance - 1 / 13)


@pytest.mark.parametrize("variance", [5, 12, 100, 400])
def test_steps_of_skellam_quantiles(variance: int) -> None:
    """Theorem S: a shift by one is a Gaussian shift of variance v - 6/5; the largest step is at 0, about v - 1/3."""
    with BALLS.at(400):
        far = 14 * math.isqrt(variance) + 40
        v = arb(variance)
        masses = [v.bessel_i(n) * (-v).exp() for n in range(2 * far)]
        steps = quantile_steps(masses)[:far]
        turan = [1 - masses[n + 1] * masses[abs(n - 1)] / masses[n] ** 2 for n in range(far)]
    assert all(float(t) <= 1 / variance + 1 / (2 * variance**2) for t in turan)  # the bound of its proof
    assert max(steps) == steps[0] <= 1 / math.sqrt(variance - 6 / 5)
    assert max(steps) > 1 / math.sqrt(variance - 1 / 4)


def test_wide_skellam_noise_is_nearly_gaussian() -> None:
    """One round and a million, vectors and integers: within 1e-5 of Gaussian noise, which the curve missed by 7 %."""
    for run, sigma, times in (
        (cm.Skellam(variance="1e7", dimension=1) * 10**6, math.sqrt(1e7), 10**6),
        (cm.Skellam(variance="1e8", sensitivity="1e4") * 1, 1, 1),
        (cm.Skellam(variance="1e12", sensitivity=7, dimension=50) * 10**9, 1e6 / 7, 10**9),
    ):
        found = run.guarantee(delta="1e-6")
        limit = (cm.Gaussian(sigma=sigma) * times).epsilon("1e-6")
        assert found.epsilon == pytest.approx(limit, rel=1e-5)
        assert (found.rigour, found.lower) == ("proved", None)
        assert found.verify().holds
        assert run.epsilon("1e-6", method="rdp") > 1.06 * found.epsilon


@pytest.mark.parametrize(("variance", "shifts"), [(5, (1, 1)), (8, (2, 1)), (20, (1, 2, 2)), (11, (3,)), (30, (5, 1))])
def test_skellam_vectors_by_sums(variance: int, shifts: tuple[int, ...]) -> None:
    """Every profile of two products of masses lies below that of the claim, and a group moves as often as far."""
    square = sum(s * s for s in shifts)
    x = np.arange(-70, 71)
    log_p, log_q = (
        functools.reduce(np.add.outer, [np.log(ive(np.abs(x - c), variance)) for c in centres])
        for centres in (shifts, [0] * len(shifts))
    )
    for epsilon in (0.0, 0.2, 1.0, 3.0):
        needed = float(np.maximum(np.exp(log_p) - math.exp(epsilon) * np.exp(log_q), 0).sum())
        claimed = cm.Skellam(variance, math.sqrt(square) + 1e-9).delta(epsilon)
        assert needed * (1 - 1e-9) <= claimed
        if all(s % 2 == 0 for s in shifts):
            continue
        doubled = functools.reduce(np.add.outer, [np.log(ive(np.abs(x - 2 * c), variance)) for c in shifts])
        group = cm.Skellam(variance, math.sqrt(square) + 1e-9) @ cm.Group(size=2)
        assert float(np.maximum(np.exp(doubled) - math.exp(epsilon) * np.exp(log_q), 0).sum()) * (
            1 - 1e-9
        ) <= group.delta(epsilon)


def test_little_skellam_noise_has_no_gaussian_pair() -> None:
    assert cm.Skellam(variance="4.9", sensitivity=2).pair() is None
    assert "known by its curve only" in cm.Skellam(variance="4.9", sensitivity=2).guarantee(delta="1e-6").note


def test_a_group_has_no_lower_pair() -> None:
    """Nothing is known of a group from below, nor of a sum with one."""
    pair = near_gaussian_pair(4, Fraction(100), 3)
    assert pair is not None
    group = pair.group_pair(3)
    assert not group.attained
    assert group.lower_pair is group
    joined = cm.Gaussian(sigma=10).pair()
    assert joined is not None
    whole = joined.composed_pair([(joined, 5), (group, 2)])
    assert whole is not None
    assert not whole.attained
    assert not whole.lower_pair.attained
