"""Permute and flip, and noisy maxima: probabilities of every index from the definition."""

import itertools
import math

import numpy as np
import pytest

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import Law, violations

ORDERS = [1.001, 1.5, 2, 7.3, 40]


def flipped(scores: Law, epsilon: float) -> Law:
    """The definition: a random order of the candidates, each accepted with its probability."""
    accepted = np.exp(epsilon * (scores - scores.max()) / 2)
    found = np.zeros(scores.size)
    orders = list(itertools.permutations(range(scores.size)))
    for order in orders:
        left = 1.0
        for candidate in order:
            found[candidate] += left * accepted[candidate]
            left *= 1 - accepted[candidate]
    return found / len(orders)


def largest(scores: Law, noise: str, scale: float) -> Law:
    """INT f(x - u_j) PROD F(x - u_i) dx, by the trapezoidal rule."""
    x = np.linspace(scores.min() - 40 * scale, scores.max() + 40 * scale, 4001)
    z = (x - scores[:, None]) / scale
    if noise == "laplace":
        tail = np.exp(-np.abs(z)) / 2
        density, below = tail, np.where(z < 0, tail, 1 - tail)
    else:
        below = np.exp(-np.exp(-np.clip(z, -40, None)))
        density = np.exp(-np.clip(z, -40, None)) * below
    found = [np.sum(density[j] * np.prod(np.delete(below, j, axis=0), axis=0)) for j in range(scores.size)]
    return np.array(found) / np.sum(found)


@pytest.mark.parametrize("kind", ["permute", "laplace", "gumbel"])
def test_random_scores(kind: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(effort.drawn(100)):
        epsilon = round(float(rng.uniform(0.05, 4)), 3)
        scores = rng.uniform(-3, 3, rng.integers(2, 5))
        moved = scores + (rng.choice([-1, 1], scores.size) if rng.random() < 0.5 else rng.uniform(-1, 1, scores.size))
        if kind == "permute":
            mechanism: cm.Mechanism = cm.PermuteAndFlip(epsilon)
            p, q = flipped(scores, epsilon), flipped(moved, epsilon)
        else:
            scale = round(2 / epsilon, 6)
            mechanism = cm.NoisyMax(scale=scale, noise=kind)
            p, q = largest(scores, kind, scale), largest(moved, kind, scale)
        epsilons = [0.0, epsilon / 3, 0.9 * epsilon]
        slack = 1e-5 if kind == "laplace" else 0.0  # the rule has kinks between its points
        p, q = (p + slack) / (1 + slack * p.size), (q + slack) / (1 + slack * q.size)
        assert not violations(mechanism, [(p, q), (q, p)], epsilons, ORDERS)[0], mechanism


def test_one_way_scores() -> None:
    rng = np.random.default_rng(8)
    for _ in range(effort.drawn(20)):
        scores = rng.uniform(-3, 3, rng.integers(2, 5))
        moved = scores + rng.uniform(0, 1, scores.size)
        mechanism = cm.NoisyMax(scale=2, monotone=True)  # R = 1: half of the epsilon
        p, q = flipped(scores, 1.0), flipped(moved, 1.0)
        assert not violations(mechanism, [(p, q), (q, p)], [0.0, 0.2, 0.45], ORDERS)[0]


def test_two_candidates_need_all_of_it() -> None:
    """The best gap for each epsilon."""
    pair = cm.PermuteAndFlip(1).pair()
    assert pair is not None
    for x in (0.0, 0.3, 0.8):
        needed = 0.0
        for gap in np.linspace(-6, 6, 2401):
            p, q = flipped(np.array([gap + 1, 0.0]), 1.0), flipped(np.array([gap - 1, 0.0]), 1.0)
            needed = max(needed, float(np.maximum(p - math.exp(x) * q, 0).sum()))
        assert needed == pytest.approx(pair.profile(x), rel=1e-3)


def test_an_eighth_of_the_square_is_not_enough() -> None:
    """rho = epsilon^2 / 8 is false for permute and flip: the truth is four times that for small epsilon."""
    epsilon = 0.1
    p, q = flipped(np.array([1.0, 0.0]), epsilon), flipped(np.array([-1.0, 0.0]), epsilon)
    needed = math.log((p**2 / q).sum()) / 2
    assert needed > 1.9 * epsilon**2 / 8
    assert cm.PermuteAndFlip(epsilon).rdp(2) / 2 > 3.5 * epsilon**2 / 8


def test_names_and_refusals() -> None:
    assert cm.NoisyMax(scale=4, sensitivity=2) == cm.NoisyMax(scale=2)
    assert cm.NoisyMax(scale=2, noise="gumbel").rdp(3) == cm.ExponentialMechanism(1).rdp(3)
    assert cm.NoisyMax(scale=2).rdp(3) == cm.PermuteAndFlip(1).rdp(3) == cm.Laplace(scale=1).rdp(3)
    with pytest.raises(cm.InputError, match="choose one of exponential, laplace, gumbel"):
        cm.NoisyMax(scale=1, noise="gaussian")
    with pytest.raises(cm.InputError, match="True or False"):
        cm.NoisyMax(scale=1, monotone=1)  # type: ignore[arg-type]
    one_way = cm.NoisyMax(scale=1, monotone=True)
    with pytest.raises(cm.RelationError, match="add-remove"):
        one_way @ cm.WithoutReplacement(rate="0.1")
    run = one_way @ cm.Poisson(rate="0.1") * 3
    assert cm.parse(str(run)) == run
    assert (cm.PermuteAndFlip(1) * 2).guarantee(delta=1e-6).lower is None
    assert cm.PermuteAndFlip(0).epsilon(0) == 0
