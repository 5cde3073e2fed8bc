"""Gaussian noise around a random shift: outputs binned from the definition, its limits, and both directions."""

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import cumulant as cm
from cumulant.curves.gaussian_mixture import Shifts
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.enclosure import BOUNDED
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, product, renyi

ORDERS = [1.001, 1.5, 2, 7.3, 20]
SLIP = 1 + 1e-9


def noise(centre: float, edges: Law) -> Law:
    """The normal mass of each bin, from the side on which nothing cancels."""
    low, high = edges[:-1] - centre, edges[1:] - centre
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def drawn(rng: random.Random) -> tuple[list[float], list[Fraction]]:
    shifts = [rng.choice((0.0, 0.0, 0.1, 0.5, 1.0, 2.0)) * rng.uniform(0.5, 1) for _ in range(rng.randint(2, 4))]
    parts = [rng.choice((1, 1, 10, 100)) * rng.randint(1, 9) for _ in shifts]
    return shifts, [Fraction(part, sum(parts)) for part in parts]


def test_every_way_to_move_the_sum_by_less() -> None:
    """Any shifts of at most these sizes and of either sign; both directions. With all of them it needs all of it."""
    rng = random.Random(2)
    edges = np.concatenate([[-np.inf], np.linspace(-8, 10, 400), [np.inf]])
    base = noise(0.0, edges)
    for _ in range(effort.drawn(100)):
        shifts, weights = drawn(rng)
        if not any(shifts):
            continue
        mechanism = cm.GaussianMixture(sigma=1, shifts=shifts, weights=weights)
        epsilons = np.array([0.0, rng.uniform(0, 0.3), rng.uniform(0, 2)])
        claimed, divergences = mechanism.pair().profile(epsilons), mechanism.curve().rdp(ORDERS)
        moves = [[rng.uniform(-shift, shift) for shift in shifts], [rng.choice((-1, 1)) * shift for shift in shifts]]
        for i, moved in enumerate([*moves, shifts]):
            law = sum(float(w) * noise(s, edges) for w, s in zip(weights, moved, strict=True))
            needed = np.array([max(hockey_stick(law, base, e), hockey_stick(base, law, e)) for e in epsilons])
            assert (needed <= claimed * SLIP + 1e-12).all(), (mechanism, moved)
            found = np.array([max(renyi(law, base, a), renyi(base, law, a)) for a in ORDERS])
            assert (found <= divergences * (1 + 1e-6) + 1e-12).all(), (mechanism, moved)
            if i == 2:
                assert needed == pytest.approx(claimed, rel=1e-2, abs=1e-4)
                assert found[:3] == pytest.approx(divergences[:3], rel=2e-2)  # higher orders look beyond the bins


def test_two_adaptive_rounds_in_the_plane() -> None:
    """The second sum is moved in a direction that the first output chooses; a record that is there is there twice."""
    rng = random.Random(4)
    edges = np.concatenate([[-np.inf], np.linspace(-6, 8, 60), [np.inf]])
    base = noise(0.0, edges)
    other = product([base, base])
    for _ in range(effort.drawn(5)):
        shifts, weights = drawn(rng)
        if not any(shifts):
            continue
        first = sum(float(w) * noise(s, edges) for w, s in zip(weights, shifts, strict=True))
        rows = []
        for mass in first:
            sign = rng.choice((-1, 1))
            rows.append(mass * sum(float(w) * noise(sign * s, edges) for w, s in zip(weights, shifts, strict=True)))
        one, epsilon = np.concatenate(rows), round(rng.uniform(0, 1), 3)
        claimed = (cm.GaussianMixture(sigma=1, shifts=shifts, weights=weights) * 2).delta(epsilon=epsilon)
        assert hockey_stick(one, other, epsilon) <= claimed * SLIP + 1e-12
        assert hockey_stick(other, one, epsilon) <= claimed * SLIP + 1e-12
        exact = max(
            hockey_stick(product([first, first]), other, epsilon), hockey_stick(other, product([first] * 2), epsilon)
        )
        assert claimed <= exact * 1.05 + 1e-4


@pytest.mark.parametrize(("sigma", "rate"), [("0.7", "0.2"), ("3", "0.001"), ("3", "1")])
def test_two_shifts_are_a_poisson_sample(sigma: str, rate: str) -> None:
    kept = str(1 - Fraction(rate))
    mixture = cm.GaussianMixture(sigma=sigma, shifts=[0, 1], weights=[kept, rate])
    sampled = cm.Gaussian(sigma=sigma) @ cm.Poisson(rate=rate)
    orders = [1, 1.5, 2, 30]
    assert mixture.rdp(orders) == pytest.approx(sampled.rdp(orders), rel=1e-10)
    assert mixture.delta(epsilon="0.1") == pytest.approx(sampled.delta(epsilon="0.1"), rel=1e-12)
    many = (mixture * 50).guarantee(delta="1e-6")
    assert many.epsilon == pytest.approx((sampled * 50).epsilon(delta="1e-6"), rel=2e-3)
    assert many.lower is not None
    assert many.lower <= many.epsilon


def test_a_sample_of_a_mixture_is_a_mixture() -> None:
    base = cm.GaussianMixture(sigma=2, shifts=[0, 1, 3], weights=["0.2", "0.5", "0.3"])
    flat = cm.GaussianMixture(sigma=2, shifts=[0, 1, 3], weights=["0.92", "0.05", "0.03"])
    sampled = base @ cm.Poisson(rate="0.1")
    assert sampled.rdp([1, 2.5, 8]) == pytest.approx(flat.rdp([1, 2.5, 8]), rel=1e-12)
    for times in (1, 20):
        one, other = (sampled * times).guarantee(delta="1e-5"), (flat * times).guarantee(delta="1e-5")
        assert one.epsilon == pytest.approx(other.epsilon, rel=1e-9)
        assert one.lower == pytest.approx(other.lower, rel=1e-9)


def test_one_shift_is_gaussian_noise() -> None:
    mixture, gaussian = cm.GaussianMixture(sigma=2, shifts=[3], weights=[1]), cm.Gaussian(sigma=2, sensitivity=3)
    assert mixture.rdp([1, 1.5, 30]) == pytest.approx(gaussian.rdp([1, 1.5, 30]), rel=1e-10)
    assert mixture.delta(epsilon=1) == pytest.approx(gaussian.delta(epsilon=1), rel=1e-12)
    assert cm.GaussianMixture(sigma=2, shifts=[0], weights=[1]).epsilon(0) == 0
    assert mixture == cm.GaussianMixture(sigma=4, shifts=[6, 6, 1], weights=["0.5", "0.5", 0])


@pytest.mark.parametrize("weights", [["0.9", "0.1"], ["0.999999999999", "1e-12"]], ids=str)
def test_arithmetics_agree(weights: list[str]) -> None:
    """Balls, enclosures and floats of one formula, in both directions, far out too."""
    for shifts in (["0", "1"], ["1", "2"], ["0", "0.001"]):
        for curve in cm.GaussianMixture(sigma=1, shifts=shifts, weights=weights).pair().directions:
            lam = [0.01, 0.5, 3.0]
            floats, enclosed = curve.cgf(lam), curve.cgf(lam, BOUNDED)
            with BALLS.at(128):
                exact = [float(each) for each in curve.cgf([Fraction(x) for x in lam], BALLS)]
            assert (enclosed.lower() <= exact).all()
            assert (exact <= enclosed.upper()).all()
            assert floats == pytest.approx(np.array(exact), rel=1e-9)
            far = curve.rdp([1e3, 1e5, 1e12, 1e300])
            assert (np.diff(far) >= -1e-9 * far[1:]).all()


def test_text_and_calibration() -> None:
    run = cm.GaussianMixture(sigma="7/3", shifts=[0, 1], weights=["2/3", "1/3"]) @ cm.Poisson(rate="0.1") * 4
    assert cm.parse(str(run)) == run
    found = cm.calibrate("GaussianMixture(sigma=?, shifts=[0, 1], weights=[0.9, 0.1]) * 10", epsilon=1, delta="1e-6")
    assert found.guarantee.epsilon <= 1
    assert math.isfinite(found.guarantee.epsilon)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shifts": [0, 1], "weights": ["0.5", "0.4"]}, "must sum to 1, not 0.9"),
        ({"shifts": [0, 1], "weights": [1]}, "same length, not 2 and 1"),
        ({"shifts": [0, -1], "weights": ["0.5", "0.5"]}, r"shifts\[1\]=-1 must be"),
        ({"shifts": [0, 1], "weights": ["1.5", "-0.5"]}, r"weights\[0\]=1.5 must be"),
        ({"shifts": [], "weights": []}, "must be a list"),
    ],
    ids=["sum", "length", "negative", "weight", "empty"],
)
def test_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        cm.GaussianMixture(sigma=1, **given)


def test_replace_one_is_refused_in_words() -> None:
    mixture = cm.GaussianMixture(sigma=1, shifts=[0, 1], weights=["0.5", "0.5"])
    with pytest.raises(cm.RelationError, match=r"replace-one statements but .* is stated for add-remove"):
        mixture @ cm.WithoutReplacement(rate="0.1")
    with pytest.raises(cm.RelationError):
        mixture + cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate="0.1")


@pytest.mark.parametrize(("count", "gap"), [(9, 1.0), (200, 1.0), (200, 0.01), (60, 7.0)])
def test_many_shifts_are_summed_where_they_count(count: int, gap: float) -> None:
    """L = log SUM w_i e^{c_i z - c_i^2/2}, summed over all shifts with 200 bits."""
    rng = random.Random(count)
    parts = [rng.choice((1, 1, 10**6, 10**12)) * rng.randint(1, 9) for _ in range(count)]
    shifts = [Fraction(i) * Fraction(gap) for i in range(count)]
    law = Shifts.of(shifts, [Fraction(part, sum(parts)) for part in parts])
    z = np.array([rng.uniform(-12, count * gap + 12) for _ in range(3000)])
    found = law.log_ratio(z, FLOATS)
    with BALLS.at(200):
        for i in rng.sample(range(3000), 60):
            at = BALLS.number(z[i])
            terms = [
                BALLS.number(w) * (BALLS.number(c) * at - BALLS.number(c * c / 2)).exp()
                for c, w in zip(law.shifts, law.weights, strict=True)
            ]
            truth = float(sum(terms[1:], terms[0]).log())
            assert abs(found[i] - truth) <= 1e-13 * (1 + abs(z[i]) * count * gap) * min(1.0, abs(truth) + 1e-3)


def test_two_hundred_shifts_three_times() -> None:
    """Three rounds on a grid hold the adaptive enclosure of one round with the largest shift from above."""
    count = 200
    one = cm.GaussianMixture(sigma=20, shifts=list(range(count)), weights=[Fraction(1, count)] * count)
    found, largest = (one * 3).epsilon("1e-6"), (cm.Gaussian(sigma=20, sensitivity=199) * 3).epsilon("1e-6")
    assert one.epsilon("1e-6") < found < largest
    lower = (one * 3).guarantee(delta="1e-6").lower
    assert lower is not None
    assert found >= lower > 0.99 * found


# ---- far shifts


def test_a_negligible_far_shift_costs_its_weight_and_no_more() -> None:
    """It was 271,140: no grid holds so large losses, and no order of a divergence forgets them."""
    run = cm.GaussianMixture(1, [0, 1000], ["0.999999999999", "1e-12"]) * 2
    found = run.guarantee(delta="1e-6")
    assert 0 <= found.epsilon < 1e-6
    assert found.verify().holds
    assert run.epsilon("1e-13") > 1e5  # below the weight the far shift is seen
    assert run.guarantee(epsilon=1).lower is None
    near = cm.GaussianMixture(1, [0, 1], ["0.9", "0.1"]) * 5
    far = cm.GaussianMixture(1, [0, 1, 1000], ["0.9", "0.099999999999", "1e-12"]) * 5
    assert far.epsilon("1e-6") == pytest.approx(near.epsilon("1e-6"), rel=1e-5)


@pytest.mark.parametrize("weight", [1e-3, 1e-6])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_two_rounds_with_a_far_shift_by_quadrature(weight: float, epsilon: float) -> None:
    """Outputs near 400 have no mass without the record, and others hardly any density from the far part.

    The announced coin is on both sides, which may cost about its weight.
    """
    y = np.linspace(-9, 10, 1901)
    normal = np.exp(-y * y / 2) / math.sqrt(2 * math.pi) * (y[1] - y[0])
    shifted = np.exp(-((y - 1) ** 2) / 2) / math.sqrt(2 * math.pi) * (y[1] - y[0])
    near = 0.9 * normal + (0.1 - weight) * shifted
    p, q = np.multiply.outer(near, near), np.multiply.outer(normal, normal)
    remove = 1 - (1 - weight) ** 2 + float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
    add = float(np.maximum(q - math.exp(epsilon) * p, 0).sum())
    rest = Fraction(1, 10) - Fraction(str(weight))
    run = cm.GaussianMixture(1, [0, 1, 400], ["0.9", rest, str(weight)]) * 2
    exact = max(remove, add)
    assert exact * (1 - 1e-6) <= run.delta(epsilon=epsilon) <= exact * (1 + 2e-3) + weight
    loss = run.privacy_loss("add")
    assert add * (1 - 1e-6) <= loss.hockey_stick(epsilon)


@pytest.mark.parametrize("digits", [20, 28, 100, 300])
def test_a_rare_shift_is_found_beside_one(digits: int) -> None:
    """A weight below 2e-22 had no signs around R = 1 at any precision, and its epsilon did not come back."""
    rare = Fraction(1, 10**digits)
    run = cm.GaussianMixture(sigma=1, shifts=[0, 1], weights=[1 - rare, rare])
    distance = float(rare) * (2 * ndtr(0.5) - 1)
    assert distance * (1 - 1e-12) <= run.delta(0) <= distance * (1 + 1e-12)
    assert run.epsilon("1e-6") == 0
    # beside the rare shift nothing changes the ratio: its excess over 1 is that of Gaussian noise, times the weight
    for part, s in ((10, ratio_at(0.1)), (100, ratio_at(0.01))):
        assert run.epsilon(rare / part) == pytest.approx(float(rare) * (s - 1), rel=1e-9)


def ratio_at(delta: float) -> float:
    """Return e^epsilon of Gaussian noise of sigma 1 at delta."""
    return float(brentq(lambda r: ndtr(0.5 - math.log(r)) - r * ndtr(-0.5 - math.log(r)) - delta, 1, 100))
