"""Laws of the answers, for every registered mechanism, kind of sample and number of rounds: what `make hunt` asks at random.

epsilon falls with delta and delta with epsilon, up to the stated accuracy; no claim below the lower end; no NaN; nothing
comes out but numbers and CumulantErrors.
"""

import itertools
import math

import numpy as np
import pytest

import cumulant as cm
from benchmarks.hunt_questions import FAMILIES, NONE, Asked, check
from cumulant.accounting.choices import Method
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.sampling.rated import Rated
from tests.effort import share
from tests.laws.strategies import RATED, WHOLE_RUNS

USUAL: dict[str, cm.Mechanism] = {
    "Gaussian": cm.Gaussian(sigma=2),
    "Laplace": cm.Laplace(scale=3),
    "RandomizedResponse": cm.RandomizedResponse(p="0.6"),
    "PureDP": cm.PureDP("0.2"),
    "ApproximateDP": cm.ApproximateDP("0.1", "1e-9"),
    "ZeroConcentrated": cm.ZeroConcentrated(rho="0.01"),
    "from_rdp_points": cm.from_rdp_points([2, 8, 32], ["0.01", "0.05", "0.3"]),
    "from_masses": cm.from_masses(["0.5", "0.3", "0.2"], ["0.4", "0.2", "0.4"]),
    "ExponentialFamilyMechanism": cm.ExponentialFamilyMechanism(diameter="0.1", hessian="0.5"),
    "DirichletPosterior": cm.DirichletPosterior([2, 2], records=100, tempering="0.1"),
    "GaussianMeanPosterior": cm.GaussianMeanPosterior(diameter=1, variance=1, records=100),
    "KaryResponse": cm.KaryResponse(values=5, p="0.3"),
    "UnaryEncoding": cm.UnaryEncoding(p="0.5", q="0.3"),
    "SubsetSelection": cm.SubsetSelection(values=10, size=3, epsilon="0.2"),
    "LocalRandomizer": cm.LocalRandomizer(
        inputs=3, masses=["0.4", "0.3", "0.3", "0.3", "0.4", "0.3", "0.3", "0.3", "0.4"]
    ),
    "DiscreteLaplace": cm.DiscreteLaplace(scale=5, sensitivity=2),
    "BoundedLaplace": cm.BoundedLaplace(scale=5, bound=150),
    "DiscreteGaussian": cm.DiscreteGaussian(sigma=2, dimension=1),
    "Skellam": cm.Skellam(variance=10, dimension=1),
    "GaussianMixture": cm.GaussianMixture(sigma=8, shifts=[0, 1, 2], weights=["0.81", "0.18", "0.01"]),
    "ExponentialMechanism": cm.ExponentialMechanism("0.2"),
    "PermuteAndFlip": cm.PermuteAndFlip("0.2"),
    "NoisyMax": cm.NoisyMax(scale=10),
    "GaussianDP": cm.GaussianDP(mu="0.3"),
    "PrivacyProfile": cm.PrivacyProfile([0, "0.5", 2], ["0.1", "0.02", "1e-9"]),
    "TradeOff": cm.TradeOff([0, "0.4", 1], [1, "0.4", 0]),
    "PartitionSelection": cm.PartitionSelection("0.5", "1e-7"),
    "SparseVector": cm.SparseVector(threshold=20, query=40),
}
COUNTS = (1, 2, 10, 1000, 10**6)
CLOSE = (0.3, 0.9, 0.95, 0.999999, 0.99)
"""Parts of the total variation: just below it epsilon is nearly 0."""

NEAR = (0.9, 1.01)
"""Parts of an answer at which delta is asked."""

BELOW = ("0", "1e-12", "1e-6")
"""Epsilons at which delta is nearly the total variation."""

TINY = ("1e-300", "1e-30", "1e-100", "1e-12")
FAR = ("1e-12", "1e3", "1e-6", "10")


def test_every_mechanism_is_asked() -> None:
    assert set(USUAL) == set(MECHANISMS) - WHOLE_RUNS


def on(base: cm.Mechanism, family: str, rate: str) -> cm.Expression:
    if family == NONE:
        return base
    scheme: type[Rated] = RATED[family]
    return base @ scheme(rate=rate)


def fitting(family: str, bases: dict[str, cm.Mechanism]) -> list[str]:
    """Those that may run on such a sample."""
    relations = (cm.Relation.ANY,) if family == NONE else (cm.Relation.ANY, RATED[family].relation)
    return [name for name, base in bases.items() if family == NONE or base.relation in relations]


def top(run: cm.Expression, parts: tuple[float, ...] = CLOSE) -> list[str]:
    """Deltas close to the largest one that matters."""
    most = run.delta(0)
    return [f"{part * most:.12g}" for part in parts if 1e-300 < part * most < 1]


def place(family: str, name: str) -> int:
    """Return a number that differs from one mechanism to the next and from one kind of sample to the next."""
    return 2 * FAMILIES.index(family) + list(USUAL).index(name)


def taken(family: str, name: str) -> list[int]:
    """Return the places of the counts that this mechanism is asked on this kind of sample: one, in a hunt all."""
    return share(range(len(COUNTS)), place(family, name))


def sizes(family: str, name: str, i: int) -> list[str]:
    """Return the sizes of a delta that is asked beside 1e-6: tiny or close to the total variation, in a hunt both."""
    return ["close"] if COUNTS[i] == COUNTS[-1] else share(("tiny", "close"), place(family, name) // len(COUNTS))


SIDES = ("deltas", "epsilons")
"""What is asked of a run in turn, in a hunt both: the laws of one side never look at the other."""


def side_of_count(family: str, name: str) -> list[str]:
    """Return the sides that the count of this mechanism is asked for."""
    return share(SIDES, place(family, name) // 10)


def one_round(family: str, name: str) -> list[tuple[str, int, Method, list[str]]]:
    """Return the rate, the place, the method and the sides of each question about one round; the next has the other side."""
    methods: tuple[Method, ...] = ("best", "exact")
    rates, at = ["0.3"] if family == NONE else ["0.001", "0.3"], place(family, name)
    asked = [
        (rate, at + i, method)
        for i, rate in enumerate(rates)
        for method in (methods if family == NONE else share(methods, at + i))
    ]
    return [(*each, share(SIDES, at // 2 + k)) for k, each in enumerate(asked)]


def side_of_extreme(at: int) -> list[str]:
    """Return the sides that the extreme at this place is asked for."""
    return share(SIDES, at // 4)


def test_every_count_is_taken() -> None:
    """By every kind of sample with several mechanisms, and by every mechanism at as many counts as there are kinds."""
    for family in FAMILIES:
        assert {i for name in USUAL for i in taken(family, name)} == set(range(len(COUNTS)))
    for name in USUAL:
        assert len({i for family in FAMILIES for i in taken(family, name)}) >= len(FAMILIES)


def test_every_part_is_taken() -> None:
    """By every kind of sample: two parts of the total variation per run, with several mechanisms all of them."""
    for family in FAMILIES:
        by_deltas = [name for name in USUAL if "deltas" in side_of_count(family, name)]
        asked = {(i, size) for name in by_deltas for i in taken(family, name) for size in sizes(family, name, i)}
        assert asked == {*itertools.product(range(len(TINY)), ("tiny", "close")), (len(TINY), "close")}
        by_epsilons = [name for name in USUAL if "epsilons" in side_of_count(family, name)]
        parts = {
            (i, part) for name in by_epsilons for i in taken(family, name) for part in share(NEAR, place(family, name))
        }
        assert parts == {*itertools.product(range(len(COUNTS)), NEAR)}


def test_every_side_is_taken() -> None:
    """With every method by every kind of sample, and for every extreme sample with every delta and count."""
    for family in FAMILIES:
        asked = [each for name in fitting(family, USUAL) for each in one_round(family, name)]
        assert {(method, side) for _, _, method, sides in asked for side in sides} == {
            *itertools.product(("best", "exact"), SIDES)
        }
        parts = {part for _, at, _, sides in asked if "deltas" in sides for part in share(CLOSE, at, 2)}
        assert parts == set(CLOSE)
        assert {each for _, at, _, sides in asked if "epsilons" in sides for each in share(BELOW, at, 2)} == set(BELOW)
    for j in range(len(SAMPLES)):
        places = range(j, j + len(EXTREMES))
        found = {(at % 2, at // 2 % 2, side) for at in places for side in side_of_extreme(at)}
        assert found == {*itertools.product((0, 1), (0, 1), SIDES)}


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in FAMILIES for name in fitting(family, USUAL)])
def test_every_count(family: str, name: str) -> None:
    asked, sides = Asked(), side_of_count(family, name)
    step = on(USUAL[name], family, "0.02")
    for i in taken(family, name):
        run, deltas, epsilons = step * COUNTS[i], list[str](), list[str]()
        if "deltas" in sides:
            wanted = sizes(family, name, i)
            close = top(run, (CLOSE[i],)) if "close" in wanted else []
            deltas = ["1e-6", *([TINY[i]] if "tiny" in wanted else []), *close]
        if "epsilons" in sides:
            near, far = run.epsilon("1e-6"), FAR[i : i + 1]
            parts = share(NEAR, place(family, name)) if far else NEAR
            epsilons = [*(f"{part * near:.9g}" for part in parts if 0 < near < math.inf), *far]
        check(run, deltas, epsilons, "best", asked)
    assert asked.faults == []


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in FAMILIES for name in fitting(family, USUAL)])
def test_one_round_just_below_the_total_variation(family: str, name: str) -> None:
    asked = Asked()
    for rate, at, method, sides in one_round(family, name):
        run = on(USUAL[name], family, rate)
        deltas = top(run, tuple(share(CLOSE, at, 2))) if "deltas" in sides else []
        check(run, deltas, share(BELOW, at, 2) if "epsilons" in sides else [], method, asked)
    assert asked.faults == []


EXTREMES: dict[str, cm.Mechanism] = {
    "little noise": cm.Gaussian(sigma="1e-3"),
    "much noise": cm.Gaussian(sigma="1e6"),
    "little Laplace": cm.Laplace(scale="1e-3"),
    "much Laplace": cm.Laplace(scale="1e6"),
    "a fair coin": cm.RandomizedResponse(p="1/2"),
    "a sure coin": cm.RandomizedResponse(p="0.999999999"),
    "nothing": cm.PureDP(0),
    "everything": cm.PureDP(1000),
    "tiny": cm.PureDP("1e-9"),
    "failing": cm.ApproximateDP(0, "1e-3"),
    "concentrated": cm.ZeroConcentrated(rho="1e-13"),
    "disjoint": cm.from_masses([1, 0], [0, 1]),
    "rare": cm.from_masses(["1e-12", "0.999999999999"], ["2e-12", "0.999999999998"]),
}


SAMPLES = [(NONE, "1"), *((scheme, rate) for scheme in RATED for rate in ("1e-12", "0.5"))]


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize(("family", "rate"), SAMPLES)
def test_extreme_values(family: str, rate: str, name: str) -> None:
    """One round or very many of a rare record, and a delta that is tiny or large, change from case to case."""
    asked, at = Asked(), list(EXTREMES).index(name) + SAMPLES.index((family, rate))
    for times in share((1, 10**12), at // 2) if rate == "1e-12" else (30,):
        run = on(EXTREMES[name], family, rate) * times
        rdp = run.rdp([1, 1 + 1e-9, 2, 1e9, math.inf])
        assert not np.isnan(rdp).any()
        assert (rdp >= 0).all()
        sides = side_of_extreme(at)
        deltas = [*share(("1e-300", "0.5"), at), *top(run, (0.97,))] if "deltas" in sides else []
        check(run, deltas, ["1e-12", "1e3"] if "epsilons" in sides else [], "best", asked)
    assert asked.faults == []
