"""Attacks by what (epsilon, delta) statements leave them: against closed forms and every attack on random finite pairs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from cumulant.conversion import tradeoff
from cumulant.errors import InputError
from tests import effort

Masses = list[Fraction]


def random_masses(rng: np.random.Generator, size: int) -> Masses:
    """A law on so many outputs, some of them impossible."""
    weights = [int(w) for w in rng.integers(0, 1000, size)]
    weights[int(rng.integers(size))] += 1
    return [Fraction(w, sum(weights)) for w in weights]


def profile(p: Masses, q: Masses, epsilon: float) -> float:
    """delta of a finite pair at epsilon, the larger of both orders, rounded up."""
    factor = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 10**12))
    both = (sum(max(x - factor * y, Fraction(0)) for x, y in zip(*pair, strict=True)) for pair in ((p, q), (q, p)))
    return math.nextafter(float(max(both)), math.inf)


def attacks(p: Masses, q: Masses) -> list[tuple[Fraction, Fraction]]:
    """The corners (false, true positive rate) of the best attacks: outputs are accepted by falling likelihood ratio."""
    corners = [(Fraction(0), Fraction(0))]
    pairs = sorted(zip(p, q, strict=True), key=lambda pair: -(pair[0] / pair[1]) if pair[1] else -math.inf)
    for x, y in pairs:
        corners.append((corners[-1][0] + y, corners[-1][1] + x))
    return corners


@pytest.mark.parametrize("seed", range(effort.drawn(8)))
def test_no_attack_on_a_finite_pair_is_above_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    p, q = random_masses(rng, size), random_masses(rng, size)
    epsilons = [0.0, *rng.exponential(1.0, int(rng.integers(0, 6))).tolist()]
    deltas = [profile(p, q, epsilon) for epsilon in epsilons]
    for pair in ((p, q), (q, p)):
        corners = attacks(*pair)
        bound = tradeoff.true_positive_rate([a for a, _ in corners], epsilons, deltas)
        assert all(Fraction(most) >= b for most, (_, b) in zip(bound.tolist(), corners, strict=True))
        assert tradeoff.advantage(epsilons, deltas) >= max(b - a for a, b in corners)
    # at epsilon = 0 delta is the total variation distance, which the best attack reaches
    assert tradeoff.advantage(epsilons, deltas) == pytest.approx(float(max(b - a for a, b in attacks(p, q))), abs=1e-12)


def test_many_statements_of_a_finite_pair_meet_its_best_attack() -> None:
    p, q = [Fraction(n, 20) for n in (9, 6, 4, 1)], [Fraction(n, 20) for n in (1, 4, 6, 9)]  # symmetric
    losses = [abs(math.log(x / y)) for x, y in zip(p, q, strict=True)]
    deltas = [profile(p, q, epsilon) for epsilon in losses]
    corners = attacks(p, q)
    found = tradeoff.true_positive_rate([a for a, _ in corners], losses, deltas)
    assert found == pytest.approx([float(b) for _, b in corners], abs=1e-11)


@pytest.mark.parametrize("shift", [0.1, 1.0, 4.0])
def test_gaussian_statements_lead_to_the_gaussian_attack(shift: float) -> None:
    """delta(eps) = Phi(t/2 - eps/t) - e^eps Phi(-t/2 - eps/t) on a fine grid gives Phi(Phi^-1(fpr) + t)."""
    epsilons = np.linspace(0, shift * 6 + shift**2, 4000)
    deltas = special.ndtr(shift / 2 - epsilons / shift) - np.exp(
        epsilons + special.log_ndtr(-shift / 2 - epsilons / shift)
    )
    rates = np.geomspace(1e-6, 0.999, 30)
    found = tradeoff.true_positive_rate(rates, epsilons, np.maximum(deltas, 0.0))
    assert found == pytest.approx(special.ndtr(special.ndtri(rates) + shift), rel=1e-4)


def test_pure_privacy_in_closed_form() -> None:
    """min(e^eps a, 1 - e^-eps (1 - a)): where they meet, a = 1 / (1 + e^eps), the advantage is tanh(eps / 2)."""
    meet = 1 / (1 + math.e)
    found = tradeoff.true_positive_rate([0, 0.1, meet, 0.5, 1], [1], [0])
    assert found == pytest.approx([0, 0.1 * math.e, 1 - meet, 1 - 0.5 / math.e, 1], rel=1e-13)
    assert found[0] == 0
    assert tradeoff.advantage([1], [0]) == pytest.approx(math.tanh(0.5), rel=1e-13)
    assert tradeoff.advantage([1], [0]) >= math.tanh(0.5)


def test_rounding_is_upwards() -> None:
    from flint import arb, ctx

    rates, epsilon, delta = ["1e-9", "0.01", "0.3", "0.7"], "0.1", "1e-6"
    found = tradeoff.true_positive_rate(rates, [epsilon], [delta])
    with ctx.workprec(300):
        for rate, value in zip(rates, found.tolist(), strict=True):
            a, grow, slack = arb(rate), arb(epsilon).exp(), arb(delta)
            exact = min(slack + grow * a, 1 - (1 - slack - a) / grow, key=float)
            assert exact <= arb(value)
            assert arb(value) - exact < arb("1e-14")


def test_statements_that_say_nothing() -> None:
    assert tradeoff.true_positive_rate([0, 0.5], [1000, 0], [0, 1]).tolist() == [0.0, 1.0]
    assert tradeoff.advantage([1000], [0]) == 1.0
    assert tradeoff.advantage([0], [0]) == 0.0


@pytest.mark.parametrize(
    ("rates", "epsilons", "deltas", "sentence"),
    [
        ([1.1], [1], [0], r"fpr=1.1 must be a number in \[0, 1\]"),
        ([float("nan")], [1], [0], "fpr=nan must be a number"),
        ([0.5], [-1], [0], "epsilon=-1 must be a number"),
        ([0.5], [1], [float("inf")], "delta=inf must be a number"),
        ([0.5], [1, 2], [0], "epsilon has 2 numbers and delta 1; give one delta for each epsilon"),
        ([0.5], [], [], "epsilon has 0 numbers and delta 0"),
    ],
)
def test_bad_input(rates: list[float], epsilons: list[float], deltas: list[float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        tradeoff.true_positive_rate(rates, epsilons, deltas)
