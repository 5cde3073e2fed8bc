"""The exponential mechanism: random scores by definition, adaptive rounds, and the numbers of other accountants."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact.adaptive import value_iteration
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, violations

ORDERS = [1.001, 1.5, 2, 7.3, 40]


def chosen(scores: Law, epsilon: float) -> Law:
    """exp(epsilon u / 2), normalised: scores of sensitivity 1."""
    weights = np.exp(epsilon * (scores - scores.max()) / 2)
    return weights / weights.sum()


def test_random_scores() -> None:
    rng = np.random.default_rng(1)
    for _ in range(effort.drawn(100)):
        epsilon = round(float(rng.uniform(0.05, 4)), 3)
        mechanism = cm.ExponentialMechanism(epsilon)
        scores = rng.uniform(-4, 4, rng.integers(2, 6))
        moved = scores + (rng.choice([-1, 1], scores.size) if rng.random() < 0.5 else rng.uniform(-1, 1, scores.size))
        p, q = chosen(scores, epsilon), chosen(moved, epsilon)
        assert not violations(mechanism, [(p, q), (q, p)], [0.0, epsilon / 3, 0.9 * epsilon], ORDERS)[0]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_some_scores_need_all_of_it(epsilon: float) -> None:
    """Two candidates and the best gap between them, for each epsilon and each order its own."""
    pair, curve = cm.ExponentialMechanism(epsilon).pair(), cm.ExponentialMechanism(epsilon).curve()
    assert pair is not None
    gaps = np.linspace(-40, 40, 40001) / epsilon
    p, q = (1 / (1 + np.exp(epsilon * (gaps + s) / 2)) for s in (-1, 1))
    laws_p, laws_q = np.stack([p, 1 - p]), np.stack([q, 1 - q])
    for x in (0.0, epsilon / 3, 0.9 * epsilon):
        needed = np.maximum(laws_p - math.exp(x) * laws_q, 0).sum(axis=0).max()
        assert needed == pytest.approx(pair.profile(x), rel=1e-5)
    for order in (1.5, 2, 8, 30):
        moments = (laws_p**order * laws_q ** (1 - order)).sum(axis=0).max()
        assert math.log(moments) / (order - 1) == pytest.approx(float(curve.rdp([order])[0]), rel=1e-5)


def adaptive(rng: random.Random, epsilon: float, rounds: int) -> tuple[Law, Law]:
    """A tree of binary choices, each with a gap of its own that depends on what was chosen before."""
    if not rounds:
        return np.ones(1), np.ones(1)
    gap, sign = rng.uniform(-3, 3), rng.choice((-1, 1))
    p, q = (1 / (1 + math.exp(epsilon * (gap + s) / 2)) for s in (sign, -sign))
    first, second = adaptive(rng, epsilon, rounds - 1), adaptive(rng, epsilon, rounds - 1)
    return np.concatenate([p * first[0], (1 - p) * second[0]]), np.concatenate([q * first[1], (1 - q) * second[1]])


@pytest.mark.parametrize("rounds", [2, 3])
def test_adaptive_rounds(rounds: int) -> None:
    rng = random.Random(rounds)
    for epsilon in (0.4, 1.0, 2.5):
        optimum = value_iteration.bounded_range_optimum(Fraction(str(epsilon)), rounds)
        assert optimum is not None
        share = 0.0
        for _ in range(effort.drawn(60)):
            p, q = adaptive(rng, epsilon, rounds)
            x = rng.uniform(0, rounds * epsilon)
            needed, claimed = hockey_stick(p, q, x), optimum.delta(x)
            assert claimed >= needed * (1 - 1e-9)
            share = max(share, needed / claimed)
        assert share > 0.8


def test_against_other_accountants() -> None:
    """Between the best single ratio repeated and the recursion; others say 13.34 and 20.0, and 15.32 and 33.3."""
    assert 12.004 <= (cm.ExponentialMechanism(1) * 20).epsilon(1e-6) <= 12.10
    assert 14.305 <= (cm.ExponentialMechanism("0.5") * 100).epsilon(1e-6) <= 14.403
    assert (cm.ExponentialMechanism("0.5") * 100).epsilon(1e-6, method="rdp") == pytest.approx(15.096, abs=1e-3)


def test_between_nothing_and_pure_privacy() -> None:
    for epsilon in ("0.1", "1", "5"):
        ours, flip, pure = cm.ExponentialMechanism(epsilon), cm.PermuteAndFlip(epsilon), cm.PureDP(epsilon)
        for order in (1.0, 1.5, 2.0, 30.0, math.inf):
            assert ours.rdp(order) <= flip.rdp(order) * (1 + 1e-12)
            assert flip.rdp(order) <= pure.rdp(order) * (1 + 1e-12)
        for x in ("0", "0.05", "0.7"):
            assert ours.delta(x) <= flip.delta(x) <= pure.delta(x)
    assert cm.ExponentialMechanism(0).epsilon(0) == 0
    tiny = cm.ExponentialMechanism("1e-6")
    assert tiny.rdp(4) == pytest.approx(4e-12 / 8, rel=1e-6)


def test_text_samples_and_calibration() -> None:
    run = cm.ExponentialMechanism("1/3") @ cm.Poisson(rate="0.1") * 4 + cm.NoisyMax(scale=2, noise="gumbel")
    assert cm.parse(str(run)) == run
    sampled = cm.ExponentialMechanism(1) @ cm.WithoutReplacement(rate="0.1") * 10
    assert sampled.epsilon(1e-6) < (cm.PureDP(1) @ cm.WithoutReplacement(rate="0.1") * 10).epsilon(1e-6)
    assert sampled.guarantee(delta=1e-6).lower is None  # no two data sets have the pair
    with pytest.raises(cm.HypothesisError, match="neighbouring data sets have"):
        sampled.rdp(2, bound="lower")
    found = cm.calibrate("ExponentialMechanism(epsilon=?) * 10", epsilon=2, delta="1e-6", digits=3)
    assert found.guarantee.epsilon <= 2
