"""Adaptive rounds: every policy by enumeration, the optimum by a recursion without a grid, and random adversaries."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact.adaptive import value_iteration
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.worst_triples import Extremes
from tests.oracles.reports import PAIRS, Laws, extremes_of, optimum, pure_rounds, rounds_of
from tests.oracles.triples import random_pure_triples


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
    laws = pure_rounds(odds, rate) if pure else rounds_of(values, size, odds, rate)
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
        laws = pure_rounds(odds, rate)
    extremes = extremes_of(name)
    above = value_iteration.optimum_from_above(((extremes, Fraction(1, 5), times),), -20.0)
    below = value_iteration.optimum_from_below(((extremes, Fraction(1, 5), times),), -20.0)
    assert above is not None
    assert below is not None
    most = times * max(float(np.log(a / b).max()) for a, b in laws)
    for epsilon in np.linspace(0.0, 0.7, 5) * most:
        truth = optimum([(laws, times)], float(epsilon))
        assert below.needed_delta(float(epsilon)) <= truth * (1 + 1e-11)
        assert truth * (1 - 1e-11) <= above.delta(float(epsilon))
        assert above.delta(float(epsilon)) <= truth * 1.01 + 1e-9
        assert below.needed_delta(float(epsilon)) >= truth * 0.9 - 1e-5
        assert below.needed_epsilon(truth) <= epsilon + 1e-10
        assert above.epsilon(truth) >= epsilon - 1e-9


def test_enumeration_of_every_policy() -> None:
    """Four rounds of PureDP(1), rate 0.1: the recursion without a grid is the best of all policies."""
    laws = pure_rounds(math.e, 0.1)
    truth = optimum([(laws, 4)], 0.1)
    found = value_iteration.optimum_from_above(((extremes_of_pure(Fraction(1)), Fraction(1, 10), 4),), -20.0)
    assert found is not None
    assert truth * (1 - 1e-11) <= found.delta(0.1) <= truth * (1 + 1e-4)
    alone = max(optimum([([one], 4)], 0.1) for one in laws)
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
    found = value_iteration.optimum_from_above(
        ((extremes_of_pure(Fraction(str(epsilon))), Fraction(str(rate)), times),), -20.0
    )
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
        assert (found.route, found.evidence.bound, found.rigour) == ("adaptive", "extreme-triples", "bounded")
        assert found.verify().holds
        assert run.delta(epsilon=found.epsilon) <= 1e-6 * 1.001


def test_what_is_not_said_is_not_claimed() -> None:
    """Other noise, among reports too, Poisson samples, several reports on a sample and the named profile do without."""
    sample, poisson = cm.WithoutReplacement(rate="0.01"), cm.Poisson(rate="0.01")
    assert cm.UnaryEncoding(p="3/4", q="1/4").pair().extremes() is None
    both = (cm.PureDP(1) @ sample * 30 + cm.Laplace(scale=1) @ sample * 30).guarantee(delta=1e-6)
    assert both.route != "adaptive"
    assert (cm.PureDP(1) @ sample * 30 + cm.PureDP(1)).guarantee(delta=1e-6).route != "adaptive"
    assert (cm.PureDP(1) @ poisson * 30).guarantee(delta=1e-6).route != "adaptive"
    assert ((cm.PureDP(1) * 2) @ sample * 30).guarantee(delta=1e-6).route != "adaptive"
    run = cm.PureDP(1) @ sample * 1000
    assert run.epsilon(1e-6, method="exact", bound="profile") > run.epsilon(1e-6, method="exact") * 1.1


def test_a_coefficient_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the third triple, as for one bit, PureDP would be told too little."""
    full = extremes_of_pure(Fraction(2))
    less = Extremes(full.epsilon, full.odds, full.two)
    laws = pure_rounds(math.exp(2), 0.2)
    short = value_iteration.optimum_from_above(((less, Fraction(1, 5), 12),), -20.0)
    assert short is not None
    assert short.delta(0.5) < optimum([(laws, 12)], 0.5)


SEVERAL: dict[str, list[tuple[cm.Mechanism, list[Laws], str, int]]] = {
    "two losses": [
        (cm.PureDP(1), pure_rounds(math.e, 0.1), "0.1", 4),
        (cm.PureDP(2), pure_rounds(math.exp(2), 0.1), "0.1", 3),
    ],
    "two rates": [
        (cm.PureDP(1), pure_rounds(math.e, 0.1), "0.1", 3),
        (cm.PureDP(1), pure_rounds(math.e, 0.3), "0.3", 3),
    ],
    "three reports": [
        (cm.RandomizedResponse(p="0.8"), rounds_of(2, 1, 4.0, 0.3), "0.3", 2),
        (cm.KaryResponse(values=5, epsilon=2), rounds_of(5, 1, math.exp(2), 0.05), "0.05", 2),
        (cm.SubsetSelection(values=6, size=2, epsilon=1), rounds_of(6, 2, math.e, 0.2), "0.2", 1),
    ],
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_kinds_in_whichever_order(name: str) -> None:
    """Both ends enclose every fixed order, and are close to the orders that an adversary and its opponent choose."""
    round_types = [(laws, times) for _, laws, _, times in SEVERAL[name]]
    pairs = [(one.pair(), rate, times) for one, _, rate, times in SEVERAL[name]]
    reports = tuple(
        (found, Fraction(rate), times) for pair, rate, times in pairs if pair and (found := pair.extremes())
    )
    above, below = (
        value_iteration.optimum_from_above(reports, -20.0),
        value_iteration.optimum_from_below(reports, -20.0),
    )
    assert above is not None
    assert below is not None
    again = value_iteration.optimum_from_above(reports[::-1], -20.0)
    assert again is not None
    for epsilon in (0.1, 0.4):
        worst, best = optimum(round_types, epsilon), optimum(round_types, epsilon, min)
        fixed = (
            [one_after_the_other(round_types, order, epsilon) for order in ((0, 1), (1, 0))]
            if len(round_types) == 2
            else [best]
        )
        assert best * (1 - 1e-9) <= min(fixed) <= max(fixed) <= worst * (1 + 1e-9)
        assert worst * (1 - 1e-9) <= above.delta(epsilon) <= worst * (1 + 1e-3)
        assert best * 0.9 <= below.needed_delta(epsilon) <= best * (1 + 1e-9)
        assert again.delta(epsilon) == above.delta(epsilon)


def one_after_the_other(round_types: list[tuple[list[Laws], int]], order: tuple[int, int], epsilon: float) -> float:
    """All rounds of one kind, then all of the other."""
    first, second = (round_types[i] for i in order)
    return optimum(
        [first, second], epsilon, lambda found: next(iter(found))
    )  # the generator yields the first kind while it has rounds left


def test_what_several_kinds_say() -> None:
    sample = cm.WithoutReplacement(rate="0.01")
    run = cm.PureDP(1) @ sample * 30 + cm.PureDP(2) @ sample * 20
    found = run.guarantee(delta=1e-6)
    assert (found.route, found.evidence.bound, found.rigour) == ("adaptive", "extreme-triples", "bounded")
    assert found.lower is not None
    assert found.lower <= found.epsilon <= found.lower * 1.01
    assert found.epsilon < 0.97 * run.epsilon(1e-6, method="exact", bound="profile")
    swapped = cm.PureDP(2) @ sample * 20 + cm.PureDP(1) @ sample * 30
    assert swapped.epsilon(1e-6) == found.epsilon


def test_numbers_below_the_smallest_are_not_taken_for_nothing() -> None:
    """V is e^-epsilon delta, smaller than any float here, while both of them are numbers."""
    run = cm.PureDP(8) @ cm.WithoutReplacement(rate="0.01") * 100
    for delta in ("1e-150", "1e-190", "1e-196"):
        needed = run.guarantee(delta=delta).lower
        assert needed is not None
        assert run.epsilon(delta=delta) >= needed > 287


def test_the_order_matters() -> None:
    """Were the kinds taken one after the other, the worst order would be told too little."""
    round_types = [(laws, times) for _, laws, _, times in SEVERAL["two losses"]]
    worst, best = optimum(round_types, 0.4), optimum(round_types, 0.4, min)
    assert worst > 1.02 * best
    assert min(one_after_the_other(round_types, order, 0.4) for order in ((0, 1), (1, 0))) < worst * 0.999


@pytest.mark.parametrize("epsilon", [600, 690, 700, 710, 1000, 10**6])
def test_odds_beyond_all_floats(epsilon: int) -> None:
    run = cm.PureDP(epsilon=epsilon) @ cm.WithoutReplacement(rate="0.5") * 30
    assert 1 - 1e-9 <= run.delta(0) <= 1
    assert run.epsilon("1e-6") <= 30 * epsilon
