"""Poisson samples in which a record is replaced: every noise against its definition, from above and from below."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special

import cumulant as cm
from tests.effort import drawn

Array = np.ndarray[Any, np.dtype[np.float64]]
Noise = Callable[[Array], Array]
ADDED = cm.Relation.ADD_REMOVE
OUTPUTS = np.arange(-400.0, 401.0)


def poisson(rate: str) -> cm.Poisson:
    return cm.Poisson(rate=rate, relation="replace-one")


def discrete_gaussian(variance: float) -> Noise:
    total = np.exp(-(OUTPUTS**2) / (2 * variance)).sum()
    return lambda x: np.exp(-(x**2) / (2 * variance)) / total


def discrete_laplace(scale: float) -> Noise:
    return lambda x: np.tanh(0.5 / scale) * np.exp(-np.abs(x) / scale)


def skellam(variance: float) -> Noise:
    return lambda x: np.asarray(special.ive(np.abs(x), variance))


INTEGERS: list[tuple[cm.Mechanism, Noise, int]] = [
    (cm.DiscreteGaussian(sigma=3, sensitivity=2, dimension=1, relation=ADDED), discrete_gaussian(9), 2),
    (cm.DiscreteGaussian(sigma="0.7", dimension=1, relation=ADDED), discrete_gaussian(0.49), 1),
    (cm.DiscreteLaplace(scale=3, sensitivity=4, relation=ADDED), discrete_laplace(3), 4),
    (cm.DiscreteLaplace(scale="0.5", relation=ADDED), discrete_laplace(0.5), 1),
    (cm.Skellam(variance=20, sensitivity=3, dimension=1, relation=ADDED), skellam(20), 3),
]
RATES = ("0.02", "0.3", "0.9")


def laws(noise: Noise, rate: float, record: int, other: int) -> tuple[Array, Array]:
    """The two output laws, on the integers."""
    still = (1 - rate) * noise(OUTPUTS)
    return still + rate * noise(OUTPUTS - record), still + rate * noise(OUTPUTS - other)


def hockey_stick(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("mechanism", "noise", "moved"), INTEGERS, ids=[str(each[0]) for each in INTEGERS])
def test_opposite_records_are_the_worst_and_need_all_of_it(
    mechanism: cm.Mechanism, noise: Noise, moved: int, rate: str
) -> None:
    run = mechanism @ poisson(rate)
    for epsilon in (0.0, 0.05, 0.4, 1.5):
        claimed = run.delta(epsilon)
        p, q = laws(noise, float(rate), moved, -moved)
        assert claimed == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-9, abs=1e-15)
        for record, other in itertools.product(range(-moved, moved + 1), repeat=2):
            assert hockey_stick(*laws(noise, float(rate), record, other), epsilon) <= claimed * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("mechanism", "noise", "moved"), INTEGERS, ids=[str(each[0]) for each in INTEGERS])
def test_two_rounds_in_which_the_record_may_change_its_mind(mechanism: cm.Mechanism, noise: Noise, moved: int) -> None:
    """Both ends hold the hockey-stick divergence of the product, and no second pair of records needs more."""
    rng, rate = np.random.default_rng(1), "0.3"
    near = np.abs(OUTPUTS) <= 60
    run = mechanism @ poisson(rate) * 2
    first = laws(noise, 0.3, moved, -moved)
    squares = [np.outer(law[near], law[near]) for law in first]
    for delta in (1e-2, 1e-5):
        statement = run.guarantee(delta=delta)
        assert statement.lower is not None
        assert hockey_stick(squares[0], squares[1], statement.epsilon) <= delta * (1 + 1e-9)
        assert hockey_stick(squares[0], squares[1], statement.lower) >= delta * (1 - 1e-6)
        assert statement.lower >= statement.epsilon * 0.997
        for _ in range(drawn(6)):
            after = {x: tuple(rng.integers(-moved, moved + 1, 2).tolist()) for x in OUTPUTS[near]}
            rows = [laws(noise, 0.3, *after[x]) for x in OUTPUTS[near]]
            p, q = (np.array([first[i][near][k] * rows[k][i][near] for k in range(int(near.sum()))]) for i in (0, 1))
            assert hockey_stick(p, q, statement.epsilon) <= delta * (1 + 1e-9)


def density(kind: str, z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) if kind == "gaussian" else math.exp(-abs(z)) / 2


def integral(kind: str, c: float, rate: float, term: Callable[[float, float], float]) -> float:
    """Integral of a function of both densities, by pieces at the kinks."""
    far = c + (30.0 if kind == "gaussian" else 60.0)
    ends = [-far, -c, 0.0, c, far]

    def f(z: float) -> float:
        p, q = ((1 - rate) * density(kind, z) + rate * density(kind, z - s) for s in (c, -c))
        return term(p, q)

    pieces = np.unique(np.concatenate([np.linspace(a, b, 9) for a, b in itertools.pairwise(ends)]))
    return sum(integrate.quad(f, a, b, epsabs=1e-14, epsrel=1e-11, limit=200)[0] for a, b in itertools.pairwise(pieces))


def continuous(kind: str, c: str) -> cm.Mechanism:
    if kind == "gaussian":
        return cm.Gaussian(sigma=1, sensitivity=c, relation=ADDED)
    return cm.Laplace(scale=1, sensitivity=c, relation=ADDED)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize(("c", "rate"), [("1", "0.1"), ("0.3", "0.7"), ("2.5", "0.02"), ("1", "0.95")])
def test_profile_and_divergences_by_quadrature(kind: str, c: str, rate: str) -> None:
    run, numbers = continuous(kind, c) @ poisson(rate), (kind, float(c), float(rate))
    for epsilon in (0.0, 0.05, 0.4):
        needed = integral(*numbers, lambda p, q, e=epsilon: max(p - math.exp(e) * q, 0.0))  # type: ignore[misc]
        assert run.delta(epsilon) == pytest.approx(needed, rel=1e-6, abs=1e-10)
    for order in (1.5, 2, 5):
        needed = math.log(integral(*numbers, lambda p, q, a=order: p * (p / q) ** (a - 1) if q else 0.0)) / (order - 1)  # type: ignore[misc]
        assert needed * (1 - 1e-9) <= run.rdp(order) <= needed * (1 + (1e-9 if kind == "gaussian" else 1e-4))
    needed = integral(*numbers, lambda p, q: p * math.log(p / q) if q else 0.0)
    assert needed * (1 - 1e-9) <= run.kl() <= needed * (1 + (1e-9 if kind == "gaussian" else 1e-4))


def test_two_directions_need_less_than_two_ends() -> None:
    """Records in the plane: binned outputs are a garbling, so that what they need is needed, and nothing exceeds the claim."""
    rng, edges = np.random.default_rng(2), np.linspace(-7, 7, 61)
    most = dict.fromkeys((0.0, 0.3), 0.0)
    run = cm.Gaussian(sigma=1, relation=ADDED) @ poisson("0.3")

    def binned(record: Array) -> Array:
        along = [np.diff(special.ndtr(edges - x), prepend=0.0, append=1.0) for x in record]
        return np.outer(*along)

    still = 0.7 * binned(np.zeros(2))
    for _ in range(200):
        records = [rng.normal(size=2) for _ in range(2)]
        p, q = (still + 0.3 * binned(each / max(float(np.linalg.norm(each)), 1.0)) for each in records)
        for epsilon, found in most.items():
            most[epsilon] = max(found, hockey_stick(p, q, epsilon))
    for epsilon, found in most.items():
        assert 0.7 * run.delta(epsilon) < found <= run.delta(epsilon)


def test_vectors_with_laplace_noise_on_two_coordinates() -> None:
    """On the integers, L1 sensitivity 3: every pair of records by enumeration."""
    run = cm.DiscreteLaplace(scale=2, sensitivity=3, relation=ADDED) @ poisson("0.4")
    x, noise = np.arange(-50.0, 51.0), discrete_laplace(2)
    points = [(a, b) for a in range(-3, 4) for b in range(-3, 4) if abs(a) + abs(b) == 3]
    found = {point: 0.4 * np.outer(noise(x - point[0]), noise(x - point[1])) for point in points}
    still = 0.6 * np.outer(noise(x), noise(x))
    for epsilon in (0.0, 0.3, 1.0):
        needed = max(hockey_stick(still + p, still + q, epsilon) for p, q in itertools.permutations(found.values(), 2))
        assert needed <= run.delta(epsilon) * (1 + 1e-9)
        assert needed == pytest.approx(run.delta(epsilon), rel=1e-6)


def test_a_published_example_and_its_interval() -> None:
    """A convolution of the two densities at steps of 2e-6 has 0.40215234, the upper bound of another library 0.40222."""
    for clipped in (
        cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove"),
        cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one"),
    ):
        statement = (clipped @ poisson("0.01") * 100).guarantee(delta=1e-6)
        assert statement.lower is not None
        assert 0.4021523 < statement.lower <= statement.epsilon < 0.4021524
        assert statement.verify().holds


def test_both_spellings_agree_with_the_whole_data_at_rate_one() -> None:
    twice = cm.Gaussian(sigma=1, sensitivity=2)
    for spelled in (
        cm.Gaussian(sigma=1, relation=ADDED),
        cm.Gaussian(sigma=1, sensitivity=2, geometry="ball"),
    ):
        run = spelled @ poisson("1")
        assert (run * 3).epsilon(1e-6) == pytest.approx((twice * 3).epsilon(1e-6), rel=1e-3)
        assert run.rdp(3) == twice.rdp(3)
        assert run.gaussian_mu() == 2
        assert (spelled @ poisson("0")).epsilon(0) == 0
    assert (cm.Gaussian(sigma=1, relation=ADDED) @ poisson("0.2")).gaussian_mu() == 2


def test_an_irrational_distance_is_rounded_up_above_and_down_below() -> None:
    run = cm.Gaussian(sigma=1, squared_sensitivity=2, relation=ADDED) @ poisson("0.1")
    near = cm.Gaussian(sigma=1, sensitivity=Fraction(math.sqrt(2)), relation=ADDED) @ poisson("0.1")
    statement = run.guarantee(delta=1e-6)
    assert statement.lower is not None
    assert statement.lower <= near.epsilon(1e-6) * (1 + 1e-12)
    assert statement.epsilon >= (near.guarantee(delta=1e-6).lower or math.inf)
    assert statement.epsilon == pytest.approx(statement.lower, rel=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        cm.Gaussian(sigma=1),
        cm.Laplace(scale=1),
        cm.DiscreteLaplace(scale=1),
        cm.Laplace(scale=1, relation=cm.Relation.REPLACE_ONE),
        cm.Gaussian(sigma=1, relation=cm.Relation.REPLACE_ONE),
    ],
    ids=str,
)
def test_who_does_not_say_the_distance_of_an_absent_record_is_refused(mechanism: cm.Mechanism) -> None:
    with pytest.raises(cm.HypothesisError, match='say so by relation="add-remove"'):
        mechanism @ poisson("0.1")


def test_integer_vectors_of_sensitivity_1_move_one_coordinate() -> None:
    """Two unit vectors, the same, opposite or orthogonal, on the plane's own masses; opposite ones need all of it."""
    sigma, rate, epsilon = 1.3, 0.4, 0.3
    claimed = (cm.DiscreteGaussian(sigma=sigma, relation=ADDED) @ poisson("0.4")).delta(epsilon)
    x = np.arange(-20, 21)
    laws = {c: np.exp(-((x - c) ** 2) / (2 * sigma**2)) for c in (-1, 0, 1)}
    laws = {c: law / law.sum() for c, law in laws.items()}
    absent = np.outer(laws[0], laws[0])
    found = []
    for u, w in (((1, 0), (-1, 0)), ((1, 0), (0, 1)), ((1, 0), (0, -1)), ((1, 0), (0, 0))):
        p, q = ((1 - rate) * absent + rate * np.outer(laws[a], laws[b]) for a, b in (u, w))
        found.append(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    assert max(found) == found[0] == pytest.approx(claimed, rel=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        cm.PureDP(1),
        cm.DiscreteGaussian(sigma=2, sensitivity=2, relation=ADDED),
        cm.Skellam(variance=20, sensitivity=2, relation=ADDED),
        cm.GaussianMixture(sigma=1, shifts=[0, 1], weights=["1/2", "1/2"]),
        cm.Gaussian(sigma=1, relation=ADDED) * 2,
    ],
    ids=str,
)
def test_what_has_no_such_noise_is_refused(mechanism: cm.Expression) -> None:
    with pytest.raises(cm.HypothesisError, match="one sum with log-concave noise"):
        mechanism @ poisson("0.1")


def test_theorems_about_three_values_need_a_ball() -> None:
    ball = cm.Gaussian(sigma=1, sensitivity=2, geometry="ball") @ poisson("0.1")
    added = cm.Gaussian(sigma=1, relation=ADDED) @ poisson("0.1")
    assert ball.rdp(4) == added.rdp(4) < ball.rdp(4, bound="gaussian-ball") < ball.rdp(4, bound="theorem9")
    assert added.rdp(4, bound="lower") == pytest.approx(added.rdp(4), rel=1e-9)
    with pytest.raises(cm.HypothesisError, match="theorem9 does not apply"):
        added.rdp(4, bound="theorem9")
    with pytest.raises(cm.HypothesisError, match="the epsilon of a replaced record"):
        (added * 3).epsilon(1e-6, method="strong")
    with pytest.raises(cm.HypothesisError, match="lower does not apply"):
        (cm.Laplace(1, relation=ADDED) @ poisson("0.1")).rdp(2, bound="lower")


def test_text_pickles_and_assumptions() -> None:
    from cumulant.accounting.text import assumptions

    for mechanism, *_ in INTEGERS:
        run = mechanism @ poisson("0.1") * 3
        assert cm.parse(str(run)) == run == pickle.loads(pickle.dumps(run))
        assert run.guarantee(delta=1e-5).verify().holds
    assert cm.DiscreteLaplace(1) != cm.DiscreteLaplace(1, relation=ADDED)
    added = cm.Gaussian(sigma=1, relation=ADDED) @ poisson("0.1")
    assert "clipping to norm C counts as C" in " ".join(assumptions(added.record()))
    ball = cm.Gaussian(sigma=1, sensitivity=2, geometry="ball") @ poisson("0.1")
    assert "clipping to norm C counts as 2C" in " ".join(assumptions(ball.record()))


@pytest.mark.parametrize("rate", ["1e-9", "1e-4", "0.5", "0.9999"])
@pytest.mark.parametrize("sigma", ["0.01", "0.1", "1", "30", "1e5"])
def test_extremes_stay_between_two_records_and_the_sample(sigma: str, rate: str) -> None:
    """A record replaced needs no less than one removed, and no more than one replaced without a sample."""
    added = cm.Gaussian(sigma=sigma, relation=ADDED)
    run, least, most = added @ poisson(rate), added @ cm.Poisson(rate=rate), cm.Gaussian(sigma=sigma, sensitivity=2)
    for delta in (1e-2, 1e-12):
        statement = run.guarantee(delta=delta)
        assert (least.guarantee(delta=delta).lower or 0.0) <= statement.epsilon * (1 + 1e-9)
        assert statement.lower is None or statement.lower <= statement.epsilon <= most.epsilon(delta) * (1 + 1e-9)
    assert least.rdp(3) * (1 - 1e-9) <= run.rdp(3) <= most.rdp(3) * (1 + 1e-9)
