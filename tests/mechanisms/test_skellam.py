"""Skellam noise: masses from the definition, all shifts, vectors, and its limit."""

import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.special import ive

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, product, renyi, violations

ORDERS = [1.001, 1.5, 2, 7.3, 20]


def noise(variance: float, centre: int, reach: int) -> Law:
    """The masses on [-reach, reach]; what lies beyond is left out, which needs less."""
    return ive(np.abs(np.arange(-reach, reach + 1) - centre), variance)


def test_it_is_the_difference_of_two_poisson_counts() -> None:
    mean = 1.7
    count = np.array([math.exp(-mean) * mean**n / math.factorial(n) for n in range(60)])
    difference = np.convolve(count, count[::-1])
    assert difference[59 - 20 : 59 + 21] == pytest.approx(noise(2 * mean, 0, 20), rel=1e-9)


def test_all_shifts_of_one_answer() -> None:
    """Every shift up to the sensitivity, in both directions; the largest needs all of it."""
    rng = random.Random(2)
    for _ in range(effort.drawn(100)):
        shift, variance = rng.randint(1, 4), rng.randint(2, 90) / 10
        mechanism = cm.Skellam(variance=variance, sensitivity=shift, dimension=1)
        base = noise(variance, 0, 60)
        pairs = [(noise(variance, s, 60), base) for s in range(-shift, shift + 1) if s]
        epsilons = [0.0, rng.uniform(0, 2 * shift / math.sqrt(variance)), 1.5]
        wrong, share = violations(mechanism, [*pairs, *((q, p) for p, q in pairs)], epsilons, ORDERS)
        assert not wrong, mechanism
        assert share == pytest.approx(1, rel=1e-6)
        found = [renyi(*pairs[-1], order) for order in ORDERS]
        assert mechanism.curve().rdp(ORDERS) == pytest.approx(np.array(found), rel=1e-6)


def test_vectors() -> None:
    """Coordinates are independent, so that the divergence of a vector is a sum; every integer vector of this length."""
    rng = random.Random(3)
    closest = 0.0
    for _ in range(effort.drawn(100)):
        variance = math.exp(rng.uniform(-2, 6))
        moved = [rng.choice((0, 1, 1, 2, 3)) for _ in range(rng.randint(1, 6))]
        if not any(moved):
            continue
        reach = 60 + int(30 * math.sqrt(variance))
        base = noise(variance, 0, reach)
        squared = sum(each**2 for each in moved)
        given: dict[str, Any] = {"variance": variance, "sensitivity": str(math.sqrt(squared) + 1e-9)}
        claims = [cm.Skellam(**given), cm.Skellam(**given, dimension=max(len(moved), 2))]
        orders = [1.2, 2, 3.4, 9]
        needed = [sum(renyi(noise(variance, each, reach), base, order) for each in moved) for order in orders]
        for claim in claims:
            claimed = claim.curve().rdp(orders)
            assert (np.array(needed) <= claimed * (1 + 1e-9)).all(), (claim, moved)
            closest = max(closest, float((np.array(needed) / claimed).max()))
    assert closest > 0.99


def test_two_adaptive_answers() -> None:
    """The second query has another sign for each first answer."""
    rng = random.Random(4)
    for _ in range(10):
        shift, variance = rng.randint(1, 3), rng.randint(5, 60) / 10
        epsilon = round(rng.uniform(0, 2 * shift / math.sqrt(variance)), 3)
        first, base = noise(variance, shift, 30), noise(variance, 0, 30)
        one = np.concatenate([a * noise(variance, rng.choice((-shift, shift)), 30) for a in first])
        other = product([base, base])
        claimed = (cm.Skellam(variance=variance, sensitivity=shift, dimension=1) * 2).delta(epsilon=epsilon)
        assert claimed >= hockey_stick(one, other, epsilon) * (1 - 1e-9)
        worst = hockey_stick(product([first, first]), other, epsilon)
        assert worst * (1 - 1e-9) <= claimed <= worst * 1.02


def test_much_noise_is_gaussian() -> None:
    skellam, gaussian = cm.Skellam(variance=10_000, sensitivity=3, dimension=1), cm.Gaussian(sigma=100, sensitivity=3)
    assert skellam.curve().rdp([2, 30]) == pytest.approx(gaussian.curve().rdp([2, 30]), rel=1e-3)
    assert skellam.epsilon(1e-6) == pytest.approx(gaussian.epsilon(1e-6), rel=1e-3)
    vectors = cm.Skellam(variance=10_000, sensitivity=3)
    assert gaussian.rdp(2) < vectors.rdp(2) < 1.001 * gaussian.rdp(2)


def test_sensitivities_are_whole() -> None:
    assert cm.Skellam(9, "2.7", dimension=1) == cm.Skellam(9, 2, dimension=1)
    assert cm.Skellam(9, "0.5").epsilon(0) == 0
    assert cm.Skellam(9, "1.5") == cm.Skellam(9, "1.42")  # the square is 2
    assert cm.Skellam(9, 3, dimension=2).rdp(2) < cm.Skellam(9, 3).rdp(2)


def test_text_sampling_and_calibration() -> None:
    run = cm.Skellam(variance="70/3", sensitivity=2, dimension=1) @ cm.Poisson(rate="0.1") * 4
    assert cm.parse(str(run)) == run
    guarantee = run.guarantee(delta=1e-6)
    assert guarantee.lower is not None
    assert guarantee.lower <= guarantee.epsilon <= guarantee.lower * 1.02
    for dimension in ("", ", dimension=1"):
        found = cm.calibrate(f"Skellam(variance=?, sensitivity=3{dimension}) * 10", epsilon=1, delta="1e-6")
        assert found.guarantee.epsilon <= 1


def test_one_round_is_proved_and_vectors_have_no_lower_end() -> None:
    found = cm.Skellam(variance=10, dimension=1).guarantee(epsilon="0.2")
    assert (found.rigour, found.lower is not None) == ("proved", True)
    vectors = cm.Skellam(variance=10, sensitivity=2).guarantee(delta="1e-6")
    assert (vectors.rigour, vectors.lower) == ("proved", None)


def test_one_unit_of_sensitivity_moves_one_coordinate() -> None:
    """An integer vector of squared length 1 is a unit vector, in every dimension, known or not."""
    for variance in ("0.3", 10, 10**8):
        line = cm.Skellam(variance=variance, dimension=1)
        assert cm.Skellam(variance=variance).epsilon("1e-6") == line.epsilon("1e-6")
        assert cm.Skellam(variance=variance, sensitivity="1.4", dimension=9) == line


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"variance": 0}, "variance=0 must be"),
        ({"variance": 1, "dimension": "1.5"}, "dimension=1.5 must be an integer"),
        ({"variance": 1, "sensitivity": -1}, "sensitivity=-1 must be"),
    ],
    ids=["no noise", "half a dimension", "negative"],
)
def test_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        cm.Skellam(**given)
