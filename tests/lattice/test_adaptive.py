"""Adaptive rounds: every policy by enumeration, the optimum by a recursion without a grid, and random adversaries."""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import cumulant as cm
from cumulant.lattice import adaptive
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.extremes import Extremes
from cumulant.pairs.pair import Pair
from tests.oracles.triples import random_pure_triples

Laws = tuple[np.ndarray, np.ndarray]


def report_laws(values: int, size: int, odds: float) -> list[np.ndarray]:
    """The output law of each of the first three inputs of subset selection, set by set, from its definition."""
    sets = list(combinations(range(values), size))
    found = []
    for own in range(min(values, 3)):
        weight = np.array([odds if own in each else 1.0 for each in sets])
        found.append(weight / weight.sum())
    return found


def rounds_of(values: int, size: int, odds: float, rate: float) -> list[Laws]:
    """All rounds that inputs can make: a and b for every choice of r, p, q."""
    laws = report_laws(values, size, odds)
    if len(laws) < 3:
        laws.append(laws[0])
    found = []
    for r, p, q in ((1, 0, 1), (0, 0, 1), (2, 0, 1)):
        if values > 2 or r < 2:
            found.append(((1 - rate) * laws[r] + rate * laws[p], (1 - rate) * laws[r] + rate * laws[q]))
    return found


def optimum(rounds: list[Laws], times: int, epsilon: float) -> float:
    """delta of the best policy, by recursion over the exact ratios that have occurred."""
    merged = []
    for a, b in rounds:
        places = np.round(np.log(a / b), 13)
        merged.append([(float(loss), float(b[places == loss].sum())) for loss in np.unique(places)])

    @cache
    def value(left: int, log_ratio: float) -> float:
        if not left:
            return max(math.exp(log_ratio) - math.exp(epsilon), 0.0)
        return max(sum(m * value(left - 1, round(log_ratio + loss, 12)) for loss, m in one) for one in merged)

    return value(times, 0.0)


PAIRS: dict[str, tuple[Pair | None, tuple[int, int, float]]] = {
    "RandomizedResponse": (cm.RandomizedResponse(p="0.8").pair(), (2, 1, 4.0)),
    "PureDP": (cm.PureDP("1.2").pair(), (3, 1, math.exp(1.2))),
    "KaryResponse": (cm.KaryResponse(values=5, epsilon=2).pair(), (5, 1, math.exp(2))),
    "KaryResponse by p": (cm.KaryResponse(values=4, p="1/2").pair(), (4, 1, 3.0)),
    "KaryResponse that lies": (cm.KaryResponse(values=4, p="1/10").pair(), (4, 1, 1 / 3)),
    "SubsetSelection": (cm.SubsetSelection(values=6, size=2, epsilon=1).pair(), (6, 2, math.exp(1))),
}


def extremes_of(name: str) -> Extremes:
    pair = PAIRS[name][0]
    found = None if pair is None else pair.extremes()
    assert found is not None
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_triples_are_those_of_the_mechanism(name: str) -> None:
    """For random convex functions the largest of the extreme triples is the largest of all that inputs make."""
    rng, rate = np.random.default_rng(7), 0.3
    values, size, odds = PAIRS[name][1]
    extremes = extremes_of(name)
    with BALLS.at(128):
        listed = [
            [(float(t.mid()), float(m.mid())) for _, t, m in atoms]
            for atoms in extremes.triples(extremes.odds_ball(), BALLS.number(Fraction(3, 10)))
        ]
    pure = name == "PureDP"  # its two answers are not inputs of 3-ary response
    laws = (
        [*rounds_of(2, 1, odds, rate), rounds_of(3, 1, odds, rate)[2]] if pure else rounds_of(values, size, odds, rate)
    )
    for _ in range(200):
        corners, sizes = rng.uniform(0.5, 2.5, 3), rng.uniform(size=3)

        def convex(t: float, corners: np.ndarray = corners, sizes: np.ndarray = sizes) -> float:
            return float(np.maximum(t - corners, 0) @ sizes)

        ours = max(
            sum(m * convex(t) for t, m in atoms) + (1 - sum(m for _, m in atoms)) * convex(1.0) for atoms in listed
        )
        truth = max(sum(q * convex(p / q) for p, q in zip(a, b, strict=True)) for a, b in laws)
        assert ours == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("times", [2, 4, 12])
def test_both_ends_enclose_the_optimum(name: str, times: int) -> None:
    values, size, odds = PAIRS[name][1]
    rate = 0.2
    laws = rounds_of(values, size, odds, rate)
    if name == "PureDP":
        laws = [*rounds_of(2, 1, odds, rate), rounds_of(3, 1, odds, rate)[2]]
    extremes = extremes_of(name)
    above = adaptive.from_above(extremes, Fraction(1, 5), times, -20.0)
    below = adaptive.from_below(extremes, Fraction(1, 5), times, -20.0)
    assert above is not None
    assert below is not None
    most = times * max(float(np.log(a / b).max()) for a, b in laws)
    for epsilon in np.linspace(0.0, 0.7, 5) * most:
        truth = optimum(laws, times, float(epsilon))
        assert below.needed_delta(float(epsilon)) <= truth * (1 + 1e-11)
        assert truth * (1 - 1e-11) <= above.delta(float(epsilon))
        assert above.delta(float(epsilon)) <= truth * 1.01 + 1e-9
        assert below.needed_delta(float(epsilon)) >= truth * 0.9 - 1e-5
        assert below.needed_epsilon(truth) <= epsilon + 1e-10
        assert above.epsilon(truth) >= epsilon - 1e-9


def test_enumeration_of_every_policy() -> None:
    """Four rounds of PureDP(1), rate 0.1: the recursion without a grid is the best of all policies."""
    laws = [*rounds_of(2, 1, math.e, 0.1), rounds_of(3, 1, math.e, 0.1)[2]]
    truth = optimum(laws, 4, 0.1)
    found = adaptive.from_above(extremes_of_pure(Fraction(1)), Fraction(1, 10), 4, -20.0)
    assert found is not None
    assert truth * (1 - 1e-11) <= found.delta(0.1) <= truth * (1 + 1e-4)
    alone = max(optimum([one], 4, 0.1) for one in laws)
    assert truth >= alone


def extremes_of_pure(epsilon: Fraction) -> Extremes:
    found = cm.PureDP(epsilon).pair().extremes()
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(6))
def test_random_adversaries_stay_below(seed: int) -> None:
    """In each of three rounds one of four random triples with up to six outputs, chosen anew after every output."""
    rng = np.random.default_rng(seed)
    epsilon, rate, times = float(rng.uniform(0.2, 3)), float(rng.choice([0.05, 0.3, 0.8])), 3
    found = adaptive.from_above(extremes_of_pure(Fraction(str(epsilon))), Fraction(str(rate)), times, -20.0)
    assert found is not None
    r, p, q = random_pure_triples(rng, epsilon, 4)
    a, b = (1 - rate) * r + rate * p, (1 - rate) * r + rate * q
    for x in rng.uniform(0, times * math.log1p(rate * math.expm1(epsilon)), 4):

        def value(left: int, ratio: np.ndarray, x: float = float(x)) -> np.ndarray:
            if not left:
                return np.maximum(ratio - math.exp(x), 0.0)
            after = value(left - 1, ratio[..., None, None] * (a / b))
            return np.asarray((after * b).sum(axis=-1).max(axis=-1))

        assert float(value(times, np.array(1.0))) <= found.delta(float(x)) * (1 + 1e-9) + 1e-15


def test_numbers_of_the_public_interface() -> None:
    sample = cm.WithoutReplacement(rate="0.01")
    for run, low, high in (
        (cm.PureDP(1) @ sample * 1000, 1.5366, 1.5372),
        (cm.RandomizedResponse(p="0.9") @ sample * 1000, 4.2287, 4.2401),
    ):
        found = run.guarantee(delta=1e-6)
        assert found.lower is not None
        assert low - 1e-4 <= found.lower <= found.epsilon <= high * 1.0005
        assert (found.conversion, found.bound, found.rigour) == ("adaptive", "extreme-triples", "bounded")
        assert found.verify().holds
        assert run.delta(epsilon=found.epsilon) <= 1e-6 * 1.001


def test_what_is_not_said_is_not_claimed() -> None:
    """Other noise, several kinds of rounds, Poisson samples, several reports on a sample and the named profile do without."""
    sample, poisson = cm.WithoutReplacement(rate="0.01"), cm.Poisson(rate="0.01")
    assert cm.UnaryEncoding(p="3/4", q="1/4").pair().extremes() is None
    both = (cm.PureDP(1) @ sample * 30 + cm.PureDP(2) @ sample * 30).guarantee(delta=1e-6)
    assert both.conversion != "adaptive"
    assert (cm.PureDP(1) @ poisson * 30).guarantee(delta=1e-6).conversion != "adaptive"
    assert ((cm.PureDP(1) * 2) @ sample * 30).guarantee(delta=1e-6).conversion != "adaptive"
    run = cm.PureDP(1) @ sample * 1000
    assert run.epsilon(1e-6, method="exact", bound="profile") > run.epsilon(1e-6, method="exact") * 1.1


def test_a_coefficient_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the third triple, as for one bit, PureDP would be told too little."""
    full = extremes_of_pure(Fraction(2))
    less = Extremes(full.epsilon, full.odds, full.two)
    laws = [*rounds_of(2, 1, math.exp(2), 0.2), rounds_of(3, 1, math.exp(2), 0.2)[2]]
    short = adaptive.from_above(less, Fraction(1, 5), 12, -20.0)
    assert short is not None
    assert short.delta(0.5) < optimum(laws, 12, 0.5)
