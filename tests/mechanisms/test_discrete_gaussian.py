"""Discrete Gaussian noise: the masses summed from the definition, and the Gaussian it tends to."""

import itertools
import math
import random

import numpy as np
import pytest

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, product, violations

ORDERS = [1.001, 1.5, 2, 7.3, 40]


def noise(sigma: float, centre: int, reach: int) -> Law:
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-((x - centre) ** 2) / (2 * sigma * sigma))
    return mass / mass.sum()


def reach(sigma: float, shift: int) -> int:
    """Where the masses end: every ratio is kept, and what is left out is below 1e-30."""
    return shift + math.ceil(12 * sigma) + 1


def test_all_shifts_of_one_answer() -> None:
    """Every integer shift up to the sensitivity, both directions; the largest needs all of it."""
    rng = random.Random(2)
    for _ in range(effort.drawn(100)):
        shift, sigma = rng.randint(1, 3), rng.randint(40, 300) / 100
        mechanism = cm.DiscreteGaussian(sigma=sigma, sensitivity=shift, dimension=1)
        width = reach(sigma, shift)
        base = noise(sigma, 0, width)
        pairs = [(noise(sigma, s, width), base) for s in range(-shift, shift + 1) if s]
        epsilons = [0.0, rng.uniform(0, 3), rng.uniform(0, shift / sigma)]
        orders = [order for order in ORDERS if order * shift < width - 6 * sigma]  # else the sum ends too soon
        wrong, share = violations(mechanism, [*pairs, *((q, p) for p, q in pairs)], epsilons, orders)
        assert not wrong, mechanism
        assert share == pytest.approx(1, rel=1e-6)


def test_the_curve_is_the_sum() -> None:
    for sigma, shift, order in ((0.3, 1, 1.5), (0.5, 1, 2.25), (0.7, 2, 1.3), (0.4, 3, 1.7), (2.0, 1, 3.5)):
        width = 400
        x = np.arange(-width, width + 1).astype(float)
        log_p, log_q = (-((x - c) ** 2) / (2 * sigma**2) for c in (shift, 0))
        exponents = order * log_p + (1 - order) * log_q
        total = np.logaddexp.reduce(exponents) - np.logaddexp.reduce(log_q)
        found = cm.DiscreteGaussian(sigma=sigma, sensitivity=shift, dimension=1).rdp(order)
        assert found == pytest.approx(total / (order - 1), rel=1e-12)


def test_vectors_and_the_safe_default() -> None:
    """Without a dimension the curve covers every integer vector of that norm."""
    rng = random.Random(5)
    for _ in range(effort.drawn(12)):
        sigma = rng.randint(30, 120) / 100
        shifts = [rng.randint(-1, 1) for _ in range(3)]
        if not any(shifts):
            continue
        squared = sum(s * s for s in shifts)
        mechanism = cm.DiscreteGaussian(sigma=sigma, sensitivity=math.sqrt(squared) + 1e-9)
        width = reach(sigma, 1) // 2
        p, q = (product([noise(sigma, s, width) for s in each]) for each in (shifts, [0] * 3))
        assert not violations(mechanism, [(p, q), (q, p)], [0.0, 0.5, 2.0], [1.5, 2, 3])[0]
        assert mechanism.rdp(2) == pytest.approx(squared / sigma**2, rel=1e-9)
    assert cm.DiscreteGaussian(sigma="1/2", sensitivity=2).pair() is None
    assert cm.DiscreteGaussian(sigma=1, dimension=2) != cm.DiscreteGaussian(sigma=1)  # Theorem D knows more of it
    assert cm.DiscreteGaussian(sigma=1, dimension=1) != cm.DiscreteGaussian(sigma=1)


def test_two_adaptive_answers() -> None:
    rng = random.Random(4)
    for _ in range(12):
        shift, sigma = rng.randint(1, 2), rng.randint(40, 200) / 100
        width = reach(sigma, shift)
        epsilon = round(rng.uniform(0, 3), 3)
        first, base = noise(sigma, shift, width), noise(sigma, 0, width)
        one = np.concatenate([a * noise(sigma, rng.choice((-shift, shift)), width) for a in first])
        claimed = (cm.DiscreteGaussian(sigma=sigma, sensitivity=shift, dimension=1) * 2).delta(epsilon=epsilon)
        other = product([base, base])
        worst = hockey_stick(product([first, first]), other, epsilon)
        assert claimed >= hockey_stick(one, other, epsilon) * (1 - 1e-9)
        assert worst * (1 - 1e-9) <= claimed <= worst * (1 + 1e-6) + 1e-12


def test_the_gaussian_is_above_and_meets_it_at_integers() -> None:
    for sigma in ("0.3", "0.5", "1", "2"):
        discrete, smooth = cm.DiscreteGaussian(sigma=sigma, dimension=1), cm.Gaussian(sigma=sigma)
        for order in (2, 3, 17):
            assert discrete.rdp(order) == pytest.approx(smooth.rdp(order), rel=1e-13)
        for between in (1.25, 1.5, 7.3):
            assert discrete.rdp(between) <= smooth.rdp(between) * (1 + 1e-15)
    assert cm.DiscreteGaussian(sigma="0.3", dimension=1).rdp(1.5) < 0.9 * cm.Gaussian(sigma="0.3").rdp(1.5)
    for broad in (2, 10, 60, 1000):
        run, limit = cm.DiscreteGaussian(sigma=broad, dimension=1) * 4, cm.Gaussian(sigma=broad) * 4
        assert run.epsilon(1e-6) == pytest.approx(limit.epsilon(1e-6), rel=0.05 if broad == 2 else 0.01)


def test_two_gaussians_enclose_vectors() -> None:
    """Every integer vector of squared length 5 or less in the plane, on the plane's own masses."""
    sigma, width = 3, 40
    pair = cm.DiscreteGaussian(sigma=sigma, sensitivity="2.24", dimension=2).pair()
    assert pair is not None
    base = product([noise(sigma, 0, width)] * 2)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        needed = [
            hockey_stick(product([noise(sigma, i, width), noise(sigma, j, width)]), base, epsilon)
            for i in range(3)
            for j in range(3)
            if i * i + j * j <= 5
        ]
        assert pair.lower_pair.profile(epsilon) <= max(needed) <= pair.profile(epsilon)


def test_wide_noise_is_answered_from_both_sides() -> None:
    """Beyond sigma 1,690 and for vectors: within 1e-5 of Gaussian noise, which Rényi divergences miss by 7 % and more."""
    for times, sigma in ((10**8, "1e4"), (1, "1e5")):
        for run in (cm.DiscreteGaussian(sigma=sigma, dimension=1) * times, cm.DiscreteGaussian(sigma, 1, 50) * times):
            found = run.guarantee(delta="1e-6")
            assert found.lower is not None
            assert found.lower <= found.epsilon <= found.lower * (1 + 1e-6)
            assert found.epsilon == pytest.approx((cm.Gaussian(sigma=sigma) * times).epsilon("1e-6"), rel=1e-5)
            assert found.verify().holds
            assert run.epsilon("1e-6", method="rdp") > 1.06 * found.epsilon
    sampled = cm.DiscreteGaussian(sigma=10, sensitivity=2, dimension=7) @ cm.Poisson(rate="0.01") * 10
    assert sampled.epsilon("1e-6") < 0.0234 < sampled.epsilon("1e-6", method="rdp") / 1.6


def test_sums_with_other_noise_keep_a_valid_lower_end() -> None:
    """One Gaussian for all rounds: its lower end has the smaller squared shift."""
    both = cm.DiscreteGaussian(sigma=10, dimension=3) * 5 + cm.Gaussian(sigma=10) * 5
    found, limit = both.guarantee(delta="1e-6"), (cm.Gaussian(sigma=10) * 10).epsilon("1e-6")
    assert found.lower is not None
    assert limit * 0.99 < found.lower < limit < found.epsilon < limit * 1.01


def test_little_noise_has_no_gaussian_pair() -> None:
    little = cm.DiscreteGaussian(sigma="0.9", sensitivity=2, dimension=2)
    assert little.pair() is None
    assert little.guarantee(delta="1e-6").lower is None
    assert cm.DiscreteGaussian(sigma=1, sensitivity=2, dimension=2).guarantee(delta="1e-6").lower is None


def test_one_unit_of_sensitivity_moves_one_coordinate() -> None:
    """An integer vector of squared length 1 is a unit vector, in every dimension, known or not."""
    for sigma in ("0.4", 3, 10_000):
        line = cm.DiscreteGaussian(sigma=sigma, dimension=1)
        for given in ({}, {"dimension": 9}, {"sensitivity": "1.4"}):
            vectors = cm.DiscreteGaussian(sigma=sigma, **given)
            assert vectors.epsilon("1e-6") == line.epsilon("1e-6")
            assert (vectors * 3).guarantee(epsilon=1).lower == pytest.approx((line * 3).guarantee(epsilon=1).lower)


def test_unknown_dimensions_are_answered_from_both_sides() -> None:
    """Rényi divergences alone say 3.13; every integer vector of squared length 4 lies between the ends."""
    found = (cm.DiscreteGaussian(sigma=10, sensitivity=2) * 10).guarantee(delta="1e-6")
    assert found.lower is not None
    assert 2.905 < found.lower < (cm.Gaussian(sigma=5) * 10).epsilon("1e-6") < found.epsilon < 2.924


def reachable(square: int, dimension: int, size: int) -> set[tuple[int, ...]]:
    """The vectors by which so many records move a sum, if each moves it by this squared length at most."""
    one = [u for u in itertools.product(range(-3, 4), repeat=dimension) if sum(x * x for x in u) <= square]
    found = {(0,) * dimension}
    for _ in range(size):
        found = {tuple(map(sum, zip(u, w, strict=True))) for u in found for w in one}
    return found


@pytest.mark.parametrize(
    ("square", "dimension", "size"), [(3, 2, 2), (2, 2, 3), (3, 2, 3), (3, 1, 2), (5, 2, 2), (6, 2, 2)]
)
def test_a_group_moves_by_sums_of_integer_vectors(square: int, dimension: int, size: int) -> None:
    """Two vectors of squared length 3 in the plane never make one of length 10, which was taken for the lower end."""
    sigma, width = 6, 60
    group = cm.DiscreteGaussian(sigma, math.sqrt(square) + 1e-9, dimension) @ cm.Group(size=size)
    base = product([noise(sigma, 0, width)] * dimension)
    moved = {tuple(sorted(map(abs, u))) for u in reachable(square, dimension, size)}
    laws = [product([noise(sigma, x, width) for x in u]) for u in moved]
    for epsilon in (0.05, 0.4, 1.5):
        needed = max(hockey_stick(law, base, epsilon) for law in laws)
        found = group.guarantee(epsilon=epsilon)
        assert found.lower is not None
        assert found.lower * (1 - 1e-12) <= needed <= found.delta * (1 + 1e-12)
        assert group.check(epsilon=epsilon, delta=needed * 1.001).verdict != "false"


def test_small_noise() -> None:
    """sigma 0.3: 16.67 in one dimension, where Renyi divergences say 21.98."""
    assert cm.DiscreteGaussian(sigma="0.3", dimension=1).epsilon(1e-6) == pytest.approx(16.67, abs=0.01)
    assert cm.DiscreteGaussian(sigma="0.3", dimension=1).epsilon(1e-6, method="rdp") > 20


def test_what_is_given_and_refused() -> None:
    assert cm.DiscreteGaussian(sigma=1, sensitivity="1.7", dimension=1) == cm.DiscreteGaussian(sigma=1, dimension=1)
    assert cm.DiscreteGaussian(sigma=1, sensitivity="1.7").rdp(2) == pytest.approx(2, rel=1e-12)
    assert cm.DiscreteGaussian(sigma=1, sensitivity="0.7", dimension=1).epsilon(0) == 0
    with pytest.raises(cm.InputError, match="dimension"):
        cm.DiscreteGaussian(sigma=1, dimension="1.5")
    with pytest.raises(cm.InputError, match="sigma=0 must be"):
        cm.DiscreteGaussian(sigma=0)


def test_text_sampling_and_calibration() -> None:
    run = cm.DiscreteGaussian(sigma="7/3", sensitivity=2, dimension=1) @ cm.Poisson(rate="0.1") * 4
    assert cm.parse(str(run)) == run
    guarantee = run.guarantee(delta=1e-6)
    assert guarantee.lower is not None
    assert guarantee.lower <= guarantee.epsilon <= guarantee.lower * 1.02
    assert guarantee.epsilon < run.epsilon(1e-6, method="rdp")
    found = cm.calibrate("DiscreteGaussian(sigma=?, dimension=1) * 10", epsilon=1, delta="1e-6", digits=3)
    assert found.guarantee.epsilon <= 1
