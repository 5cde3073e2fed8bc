"""Discrete Laplace noise: the masses summed from the definition, and its relatives."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.pairs.discrete_laplace import MOST_LOSSES
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, product, violations

ORDERS = [1.001, 1.5, 2, 7.3, 40]


def noise(scale: float, centre: int, reach: int) -> Law:
    """The masses on [-reach, reach], what lies beyond at the ends, where the ratio is constant."""
    x = np.arange(-reach, reach + 1)
    mass = np.tanh(1 / scale / 2) * np.exp(-np.abs(x - centre) / scale)
    tail = np.exp(-(reach + 1 - np.array([-centre, centre])) / scale) / (1 + np.exp(-1 / scale))
    mass[[0, -1]] += tail
    return mass


def test_all_shifts_of_one_answer() -> None:
    """Every shift up to the sensitivity, in both directions; the largest needs all of it."""
    rng = random.Random(2)
    for _ in range(effort.drawn(100)):
        shift, scale = rng.randint(1, 6), rng.randint(30, 400) / 100
        mechanism = cm.DiscreteLaplace(scale=scale, sensitivity=shift)
        base = noise(scale, 0, 12)
        pairs = [(noise(scale, s, 12), base) for s in range(-shift, shift + 1) if s]
        epsilons = [0.0, rng.uniform(0, mechanism.pure()), 0.9 * mechanism.pure()]
        wrong, share = violations(mechanism, [*pairs, *((q, p) for p, q in pairs)], epsilons, ORDERS)
        assert not wrong, mechanism
        assert share == pytest.approx(1, rel=1e-6)


def test_vectors_of_the_same_l1_norm_need_no_more() -> None:
    rng = random.Random(3)
    for _ in range(effort.drawn(8)):
        scale = rng.randint(50, 300) / 100
        shifts = [rng.randint(-2, 2) for _ in range(2)]
        if not any(shifts):
            continue
        mechanism = cm.DiscreteLaplace(scale=scale, sensitivity=sum(map(abs, shifts)))
        p = product([noise(scale, shift, 6) for shift in shifts])
        q = product([noise(scale, 0, 6) for _ in shifts])
        assert not violations(mechanism, [(p, q), (q, p)], [0.0, 0.3, 0.8 * mechanism.pure()], ORDERS)[0]


def test_two_adaptive_answers() -> None:
    """The second query has another sign for each first answer; in units of the noise that changes nothing."""
    rng = random.Random(4)
    for _ in range(12):
        shift, scale = rng.randint(1, 3), rng.randint(50, 300) / 100
        epsilon = round(rng.uniform(0, 1.5 * shift / scale), 3)
        first, base = noise(scale, shift, 10), noise(scale, 0, 10)
        one = np.concatenate([a * noise(scale, rng.choice((-shift, shift)), 10) for a in first])
        other = product([base, base])
        claimed = (cm.DiscreteLaplace(scale=scale, sensitivity=shift) * 2).delta(epsilon=epsilon)
        assert claimed >= hockey_stick(one, other, epsilon) * (1 - 1e-9)
        worst = hockey_stick(product([first, first]), other, epsilon)
        assert worst * (1 - 1e-9) <= claimed <= worst * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("scale", ["0.3", "1", "25"])
def test_sensitivity_one_is_randomized_response(scale: str) -> None:
    noise, response = cm.DiscreteLaplace(scale=scale), cm.PureDP(1 / float(scale))
    for order in (1, 1.5, 2, 30, math.inf):
        assert noise.rdp(order) == pytest.approx(response.rdp(order), rel=1e-9)
    assert noise.delta(epsilon="0.01") == pytest.approx(response.delta(epsilon="0.01"), rel=1e-9)
    assert (noise * 10).epsilon(1e-6) == pytest.approx((response * 10).epsilon(1e-6), rel=1e-5)


def test_it_tends_to_laplace_from_above() -> None:
    limit = cm.Laplace(scale=2)
    before = math.inf
    for m in (1, 2, 4, 32, 1024):
        discrete = cm.DiscreteLaplace(scale=2 * m, sensitivity=m)
        here = discrete.rdp(3)
        assert limit.rdp(3) < here < before
        assert discrete.delta(epsilon="0.1") >= limit.delta(epsilon="0.1")
        before = here
    assert before == pytest.approx(limit.rdp(3), rel=1e-6)


def test_long_shifts_are_rounded_up() -> None:
    for shift in (MOST_LOSSES + 1, 3 * MOST_LOSSES + 7, 10**6):
        coarse = cm.DiscreteLaplace(scale=shift, sensitivity=shift)
        assert cm.Laplace(scale=1).rdp(3) < coarse.rdp(3) < 1.004 * cm.Laplace(scale=1).rdp(3)
        assert cm.Laplace(scale=1).pure() <= coarse.pure() <= 1 + 2 / 1024


@pytest.mark.parametrize("shift", [MOST_LOSSES + 1, 3 * MOST_LOSSES + 7])
def test_a_shift_that_was_rounded_up_shows_nothing_from_below(shift: int) -> None:
    t, noise = Fraction(1, 5), cm.DiscreteLaplace(scale=5, sensitivity=shift)
    pure = noise.guarantee(epsilon=t * shift, method="exact")  # the noise itself is private with this epsilon
    assert pure.delta > 0
    assert not pure.lower
    assert not (noise @ cm.Group(size=2)).guarantee(epsilon=2 * t * shift, method="exact").lower
    x = shift - 3
    epsilon, truth = t * (2 * x - shift), -math.expm1(float(t * (x - shift)))  # a vertex: the delta of Laplace noise
    for times in (1, 2):
        found = (noise * times).guarantee(epsilon=epsilon * times, method="exact")
        assert found.lower is not None
        assert found.lower <= (truth if times == 1 else found.delta) * (1 + 1e-12)


def test_sensitivities_are_whole() -> None:
    assert cm.DiscreteLaplace(scale=2, sensitivity="2.7") == cm.DiscreteLaplace(scale=2, sensitivity=2)
    assert cm.DiscreteLaplace(scale=2, sensitivity="0.5").epsilon(0) == 0
    with pytest.raises(cm.InputError, match="scale=0 must be"):
        cm.DiscreteLaplace(scale=0)


def test_text_sampling_and_calibration() -> None:
    run = cm.DiscreteLaplace(scale="7/3", sensitivity=2) @ cm.Poisson(rate="0.1") * 4
    assert cm.parse(str(run)) == run
    found = cm.calibrate("DiscreteLaplace(scale=?, sensitivity=3) * 10", epsilon=1, delta="1e-6")
    assert found.guarantee.epsilon <= 1
    guarantee = run.guarantee(delta=1e-6)
    assert guarantee.lower is not None
    assert guarantee.lower <= guarantee.epsilon <= guarantee.lower * 1.02
