"""Laplace noise in an interval: outputs integrated from the definition, and its limit."""

import math
import random

import numpy as np
import pytest

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, product, renyi

ORDERS = [1.001, 1.5, 2, 7.3, 40]
SLIP = 1 + 1e-9


def noise(centre: float, bound: float, edges: Law) -> Law:
    """The mass of each bin, the scale being 1."""
    inside = np.clip(edges - centre, -bound, bound)
    low, high = inside[:-1], inside[1:]  # no bin has the centre inside of it
    near = np.minimum(np.abs(low), np.abs(high))
    return np.exp(-near) * -np.expm1(low - high) / (-2 * math.expm1(-bound))


def bins(shifts: list[float], bound: float, count: int) -> Law:
    """Bins that end where a density has a kink or a jump; merging outputs into bins can only hide something."""
    kinks = [end for shift in (0.0, *shifts) for end in (shift - bound, shift, shift + bound)]
    low, high = min(kinks), max(kinks)
    return np.unique(np.concatenate([kinks, np.linspace(low, high, count)]))


def test_all_shifts_of_one_answer() -> None:
    """Shifts up to the sensitivity, in both directions, whatever the bound; the largest needs all of it."""
    rng = random.Random(2)
    for _ in range(effort.drawn(100)):
        shift = rng.choice((0.01, 0.3, 1.0, 2.5)) * rng.uniform(0.3, 1)
        bound = shift * rng.choice((1.0, 1.01, 1.5, 4.0, 20.0))
        mechanism = cm.BoundedLaplace(scale=1, bound=bound, sensitivity=shift)
        pair, curve = mechanism.pair(), mechanism.curve()
        shifts = [shift, -shift, shift * rng.uniform(-1, 1)]
        edges = bins(shifts, bound, 600)
        base = noise(0.0, bound, edges)
        epsilons = [0.0, rng.uniform(0, shift), 0.9 * shift, shift, 1.2 * shift]
        claimed = pair.profile(np.array(epsilons))
        slack, divergences = float(curve.slack()), curve.rdp(ORDERS)
        share = np.zeros(len(epsilons))
        for other in shifts:
            moved = noise(other, bound, edges)
            for p, q in ((moved, base), (base, moved)):
                needed = np.array([hockey_stick(p, q, epsilon) for epsilon in epsilons])
                assert (needed <= claimed * SLIP + 1e-14).all(), mechanism
                share = np.maximum(share, needed / claimed)
            if abs(other) == shift:
                both = (moved > 0) & (base > 0)
                assert moved[~both].sum() == pytest.approx(slack, rel=1e-9)
                rest = [side[both] / (1 - slack) for side in (moved, base)]
                found = np.array([renyi(rest[0], rest[1], order) for order in ORDERS])
                assert (found <= divergences * SLIP + 1e-12).all(), mechanism
                assert found == pytest.approx(divergences, rel=2e-2)
        assert share.min() > 0.98


def test_two_adaptive_answers_in_a_vector() -> None:
    """The second of two coordinates is moved the way the first answer says; together by the sensitivity."""
    rng = random.Random(4)
    for _ in range(20):
        bound, shift = rng.uniform(1, 4), rng.uniform(0.1, 1)
        part = shift * rng.uniform(0, 1)
        edges = bins([part, shift - part, part - shift], bound, 60)
        first, base = noise(part, bound, edges), noise(0.0, bound, edges)
        rows = [a * noise(rng.choice((-1, 1)) * (shift - part), bound, edges) for a in first]
        one, other = np.concatenate(rows), product([base, base])
        mechanism = cm.BoundedLaplace(scale=1, bound=bound, sensitivity=shift)
        for epsilon in (0.0, 0.4 * shift, shift):
            claimed = mechanism.delta(epsilon=epsilon)
            assert hockey_stick(one, other, epsilon) <= claimed * SLIP
            assert hockey_stick(other, one, epsilon) <= claimed * SLIP


@pytest.mark.parametrize("bound", ["1", "1.5", "30"])
def test_rounds_and_samples_are_enclosed_from_both_sides(bound: str) -> None:
    base = cm.BoundedLaplace(scale=1, bound=bound)
    edges = bins([1.0], float(bound), 300)
    p, q = noise(1.0, float(bound), edges), noise(0.0, float(bound), edges)
    two = [hockey_stick(product([x, x]), product([y, y]), 0.7) for x, y in ((p, q), (q, p))]
    found = (base * 2).guarantee(epsilon="0.7")
    assert found.rigour == "bounded"
    assert found.lower is not None
    assert found.lower <= max(two) * 1.02
    assert max(two) * (1 - 1e-9) <= found.delta <= max(two) * 1.02
    mixed = 0.7 * q + 0.3 * p
    by_hand = max(hockey_stick(mixed, q, 0.2), hockey_stick(q, mixed, 0.2))
    sampled = (base @ cm.Poisson(rate="0.3")).delta(epsilon="0.2")
    assert by_hand * (1 - 1e-9) <= sampled <= by_hand * 1.02


def test_far_ends_are_laplace_noise() -> None:
    base, limit = cm.BoundedLaplace(scale=2, bound=300, sensitivity=1), cm.Laplace(scale=2)
    orders = [1, 1.5, 2, 40, math.inf]
    assert base.curve().rdp(orders) == pytest.approx(limit.curve().rdp(orders), rel=1e-12)
    assert base.delta(epsilon="0.2") == pytest.approx(limit.delta(epsilon="0.2"), rel=1e-12)
    deltas = [cm.BoundedLaplace(scale=1, bound=bound).delta(epsilon="0.5") for bound in (1, 2, 4, 8, 16, 32)]
    assert deltas == sorted(deltas, reverse=True)


def test_a_group_of_records() -> None:
    base = cm.BoundedLaplace(scale=1, bound=5)
    assert (base @ cm.Group(size=3)).delta(epsilon=1) == cm.BoundedLaplace(scale=1, bound=5, sensitivity=3).delta(1)
    with pytest.raises(cm.HypothesisError, match="may fail"):
        base @ cm.Group(size=6)


def test_text_and_calibration() -> None:
    run = cm.BoundedLaplace(scale="7/3", bound=40, sensitivity=2) @ cm.WithoutReplacement(rate="0.1") * 4
    assert cm.parse(str(run)) == run
    assert cm.BoundedLaplace(scale=2, bound=4, sensitivity=2) == cm.BoundedLaplace(scale=1, bound=2)
    found = cm.calibrate("BoundedLaplace(scale=20, bound=?) * 10", epsilon=1, delta="1e-6")
    assert found.guarantee.epsilon <= 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scale": 1, "bound": "0.5"}, "sensitivity=1 must be at most bound=0.5"),
        ({"scale": 0, "bound": 1}, "scale=0 must be"),
        ({"scale": 1, "bound": -1}, "bound=-1 must be"),
    ],
    ids=["short", "no scale", "no bound"],
)
def test_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        cm.BoundedLaplace(**given)
